"""Show a picture under controls, and the picture with a table where there are none."""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from helpers import _display
from helpers.plotting import PALETTES
from helpers.table import Table

_numbers = itertools.count(1)

BOX = (40, 30)  # width and height of a cell
_FRAME = 4  # of a marked cell; inside it lies as much paper, so that it shows on any fill

# Where a page says that it is dark: JupyterLab, VS Code, Colab.
_DARK = (
    '[data-jp-theme-light="false"]',
    ".vscode-dark",
    ".vscode-high-contrast:not(.vscode-high-contrast-light)",
    "html[theme=dark]",
)


def _css(role: str) -> str:
    """Return a color that follows the page's theme; an image has no page and stays light."""
    return f"var(--mp-{role},{PALETTES['light'][role]})"


def _style() -> str:
    """Return the style sheet that gives the roles their colors in both themes."""
    light, dark = (
        ";".join(f"--mp-{role}:{color}" for role, color in PALETTES[theme].items())
        for theme in ("light", "dark")
    )
    selectors = ",".join(f"{page} .mp-view" for page in _DARK)
    return (
        f"<style>.mp-view{{{light}}}{selectors}{{{dark}}}"
        ".mp-view th,.mp-view td{padding-right:1.5em}</style>"
    )


def new_prefix() -> str:
    """Return a prefix for the ids of one picture: ids are shared by a whole page."""
    return f"mp{next(_numbers)}-"


@dataclass(frozen=True)
class Box:
    """Draw a cell with a value in it; its upper left corner is at x, y.

    Colors are roles of `helpers.plotting.PALETTES`; a marked cell has a frame of its own.
    """

    x: float
    y: float
    text: str
    fill: str
    ink: str
    edge: str
    marked: bool = False

    def layers(self) -> list[tuple[float, str, str, float]]:
        """Return inset, fill, edge and width of edge of each rectangle, the lowest first."""
        if not self.marked:
            return [(0, self.fill, self.edge, 1.5)]
        return [(0, "paper", self.edge, _FRAME), (_FRAME, self.fill, self.fill, 0)]

    def label(self) -> Text:
        """Return the value, centered."""
        return Text(self.x + BOX[0] / 2, self.y + 20, self.text, self.ink, "middle")

    def svg(self, prefix: str) -> str:
        """Return SVG."""
        boxes = (
            f'<rect x="{self.x + inset:g}" y="{self.y + inset:g}" width="{BOX[0] - 2 * inset}" '
            f'height="{BOX[1] - 2 * inset}" stroke-width="{width}" '
            f'style="fill:{_css(fill)};stroke:{_css(edge)}"/>'
            for inset, fill, edge, width in self.layers()
        )
        return "".join(boxes) + self.label().svg(prefix)

    def draw(self, axes: Any) -> None:
        """Draw the same with matplotlib."""
        from matplotlib.patches import Rectangle

        colors = PALETTES["light"]
        for inset, fill, edge, width in self.layers():
            corner, size = (self.x + inset, self.y + inset), [side - 2 * inset for side in BOX]
            style = {"facecolor": colors[fill], "edgecolor": colors[edge]}
            axes.add_patch(Rectangle(corner, *size, linewidth=0.7 * width, **style))
        self.label().draw(axes)


@dataclass(frozen=True)
class Text:
    """Draw a line of text; its baseline begins at x, y, or is centered there."""

    x: float
    y: float
    text: str
    ink: str = "ink"
    anchor: str = "start"

    def svg(self, prefix: str) -> str:
        """Return SVG."""
        return (
            f'<text x="{self.x:g}" y="{self.y:g}" text-anchor="{self.anchor}" '
            f'style="fill:{_css(self.ink)}">{escape(self.text)}</text>'
        )

    def draw(self, axes: Any) -> None:
        """Draw the same with matplotlib."""
        where = {"start": "left", "middle": "center"}[self.anchor]
        style = {"color": PALETTES["light"][self.ink], "ha": where, "va": "baseline"}
        axes.text(self.x, self.y, self.text, fontsize=9.4, **style)


@dataclass(frozen=True)
class Arrow:
    """Draw an arrow from one point to another."""

    start: tuple[float, float]
    end: tuple[float, float]
    color: str

    def svg(self, prefix: str) -> str:
        """Return SVG; the head is a marker, whose id belongs to the whole page."""
        (x1, y1), (x2, y2) = self.start, self.end
        color = _css(self.color)
        return (
            f'<defs><marker id="{prefix}head" markerWidth="8" markerHeight="8" refX="6" refY="4" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" style="fill:{color}"/></marker></defs>'
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke-width="2" '
            f'style="stroke:{color}" marker-end="url(#{prefix}head)"/>'
        )

    def draw(self, axes: Any) -> None:
        """Draw the same with matplotlib."""
        color = PALETTES["light"][self.color]
        style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.5}
        axes.annotate("", self.end, self.start, arrowprops=style)


@dataclass(frozen=True)
class Line:
    """Draw a line through points."""

    points: Sequence[tuple[float, float]]
    color: str
    width: float = 2
    dash: str = ""

    def svg(self, prefix: str) -> str:
        """Return SVG."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)
        return (
            f'<polyline points="{places}" fill="none" stroke-width="{self.width:g}" '
            f'stroke-dasharray="{self.dash}" style="stroke:{_css(self.color)}"/>'
        )

    def draw(self, axes: Any) -> None:
        """Draw the same with matplotlib."""
        color, dash = PALETTES["light"][self.color], [float(part) for part in self.dash.split()]
        style = {"linestyle": (0, dash) if dash else "-", "linewidth": 0.7 * self.width}
        axes.plot(*zip(*self.points, strict=True), color=color, **style)


@dataclass(frozen=True)
class Bar:
    """Draw a filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    color: str

    def svg(self, prefix: str) -> str:
        """Return SVG."""
        return (
            f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:.1f}" '
            f'height="{self.height:g}" style="fill:{_css(self.color)}"/>'
        )

    def draw(self, axes: Any) -> None:
        """Draw the same with matplotlib."""
        from matplotlib.patches import Rectangle

        color = PALETTES["light"][self.color]
        axes.add_patch(Rectangle((self.x, self.y), self.width, self.height, facecolor=color))


@dataclass(frozen=True)
class View:
    """Hold what one state looks like.

    Attributes
    ----------
    heading : str
        The finding in one sentence.
    code : str
        The line to copy.
    table : Table
        The same facts in rows.
    parts : sequence of Box, Text, Arrow, Line and Bar
        The picture; later parts lie over earlier ones.
    size : tuple of int
        Width and height of the picture.
    """

    heading: str
    code: str
    table: Table
    parts: Sequence[Box | Text | Arrow | Line | Bar]
    size: tuple[int, int]

    def svg(self, prefix: str) -> str:
        """Return the picture on an opaque background; the heading is its name."""
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{prefix}title" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'style="max-width:100%;height:auto" font-family="DejaVu Sans, sans-serif" '
            f'font-size="13"><title id="{prefix}title">{escape(self.heading)}</title>'
            f'<rect width="{width}" height="{height}" style="fill:{_css("paper")}"/>'
            f"{''.join(part.svg(prefix) for part in self.parts)}</svg>"
        )

    def png(self) -> bytes:
        """Return the picture as PNG, for front ends that show nothing else."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        width, height = self.size
        figure = Figure(figsize=(width / 100, height / 100))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        for part in self.parts:
            part.draw(axes)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100, facecolor=PALETTES["light"]["paper"])
        return buffer.getvalue()

    def html(self) -> str:
        """Return heading, line to copy, picture and table for a live page."""
        return _style() + self._page(self.svg(new_prefix()))

    def static_html(self) -> str:
        """Return the same with the picture as an image: front ends strip SVG they do not trust."""
        data = base64.b64encode(self.svg("").encode()).decode()
        return self._page(
            f'<img alt="{escape(self.heading)}" src="data:image/svg+xml;base64,{data}">'
        )

    def _page(self, picture: str) -> str:
        return (
            f'<div class="mp-view"><strong role="status">{escape(self.heading)}</strong>'
            f"{_display.source_block(self.code)}{picture}{self.table._repr_html_()}</div>"
        )

    def text(self) -> str:
        """Return heading, line to copy and table as text."""
        return "\n".join([self.heading, f"    {self.code}", repr(self.table)])


@dataclass
class Panel(_display.Shown):
    """Show a view that controls change.

    Parameters
    ----------
    view : callable
        Takes the state, returns a `View`; pure, and fast enough for every key press.
    state : object
        The first state.
    controls : callable
        Takes a function ``change(**fields)`` and a function ``now()`` that returns the state;
        returns the ipywidgets controls, at most three groups.
    update : callable
        Takes a state and changed fields, returns the new state.
    """

    view: Callable[[Any], View]
    state: Any
    controls: Callable[..., Sequence[Any]]
    update: Callable[..., Any]
    html_widget: Any = field(default=None, init=False)
    _box: Any = field(default=None, init=False)

    __repr__ = _display.Shown.__repr__

    def text(self) -> str:
        """Return the present view as text."""
        return self.view(self.state).text()

    def html(self) -> str:
        """Return the present view for a page without a kernel."""
        return self.view(self.state).static_html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(include, exclude)
        return bundle | {"image/png": base64.b64encode(self.view(self.state).png()).decode()}

    def widget(self) -> Any:
        """Return the controls above the picture: the same ones wherever the panel is shown."""
        import ipywidgets as widgets

        if self._box is None:
            self.html_widget = widgets.HTML(self.view(self.state).html())
            controls = self.controls(self.change, lambda: self.state)
            self._box = widgets.VBox([*controls, self.html_widget])
        return self._box

    def change(self, **fields: Any) -> None:
        """Change the state and draw it."""
        self.state = self.update(self.state, **fields)
        if self.html_widget is not None:
            self.html_widget.value = self.view(self.state).html()


def choice(label: str, options: Sequence[str], chosen: str, take: Callable[[str], None]) -> Any:
    """Return a group of buttons of which one is marked: Tab reaches each, Space chooses.

    Buttons, because JupyterLab takes the arrow keys of lists and radio buttons for itself.
    The mark is part of the label, so that no color is needed to see it.
    """
    import ipywidgets as widgets

    buttons = {}

    def mark(name: str) -> None:
        for option, button in buttons.items():
            button.description = f"● {option}" if option == name else option

    def press(option: str) -> Callable[[Any], None]:
        def pressed(_: Any) -> None:
            mark(option)
            take(option)

        return pressed

    for option in options:
        buttons[option] = _display.button(option, press(option))
    mark(chosen)
    row = widgets.Layout(flex_flow="row wrap")
    return widgets.VBox([widgets.HTML(escape(label)), widgets.Box([*buttons.values()], layout=row)])


def number(label: str, low: int, high: int, value: int, take: Callable[[int], None]) -> Any:
    """Return a field for a whole number: arrow keys count, and its label is its name."""
    import ipywidgets as widgets

    shown = widgets.BoundedIntText(value=value, min=low, max=high, description=label)
    shown.style.description_width = "initial"
    shown.observe(lambda change: take(change["new"]), names="value")
    return shown
