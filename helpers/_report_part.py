"""Show one part of a lab report: a heading, sentences, tables, and at most one figure."""

import base64
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import BytesIO

from helpers import _display, plotting
from helpers.table import text_table

_LEFT = ' style="text-align:left;vertical-align:top"'


@dataclass(frozen=True)
class Link:
    """Name a notebook of the course by its number and lead to it."""

    text: str
    target: str

    def __str__(self):
        return self.text

    def html(self):
        """Return the link."""
        return f'<a href="{escape(self.target)}">{escape(self.text)}</a>'


@dataclass(frozen=True)
class State:
    """Say a state in a word, with a border in the tone that goes with it.

    Attributes
    ----------
    word : str
        What a reader without colors reads.
    tone : str
        good, bad, open or note.
    """

    word: str
    tone: str

    def __str__(self):
        return self.word

    def html(self):
        """Return the word beside its color."""
        border = f"border-left:4px solid {_display.TONES[self.tone]}"
        return f'<span style="{border};padding-left:6px">{escape(self.word)}</span>'


@dataclass(frozen=True)
class Grid:
    """Hold a table with its caption.

    Attributes
    ----------
    caption : str
        What the table shows.
    columns : tuple of str
        The heads.
    rows : tuple of tuple
        Cells: texts, numbers, `Link` or `State`, or a list of these.
    folded : bool
        Whether a reader opens it; its text then is its caption alone.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple, ...]
    folded: bool = False

    def text(self):
        """Return the caption and, unless it is folded, the rows."""
        rows = [[_text(cell) for cell in row] for row in self.rows]
        shown = [] if self.folded or not rows else text_table(self.columns, rows)
        return "\n".join([self.caption, *shown])

    def html(self):
        """Return the table; a folded one opens by its caption."""
        head = "".join(f'<th scope="col"{_LEFT}>{escape(name)}</th>' for name in self.columns)
        body = "".join(_row(row) for row in self.rows)
        caption = f'<caption style="text-align:left">{escape(self.caption)}</caption>'
        table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        if not self.folded:
            return table
        return f"<details><summary>{escape(self.caption)}</summary>{table}</details>"


def _text(cell):
    return ", ".join(map(_text, cell)) if isinstance(cell, list) else str(cell)


def _html(cell):
    if isinstance(cell, list):
        return ", ".join(map(_html, cell))
    return cell.html() if hasattr(cell, "html") else escape(str(cell))


def _row(row):
    first, *others = map(_html, row)
    cells = "".join(f"<td{_LEFT}>{cell}</td>" for cell in others)
    return f'<tr><th scope="row"{_LEFT}>{first}</th>{cells}</tr>'


LABEL = "Sample record: generated, not yours"


class Part(_display.Shown):
    """Display what a subclass states: ``heading``, ``remarks()``, ``grids()`` and ``chart()``.

    A part of a sample says so itself, because it may be shown alone.
    """

    heading = ""
    sample = False

    def sentences(self):
        """Return the label of a sample, then the remarks."""
        return (*([f"{LABEL}."] if self.sample else []), *self.remarks())

    def remarks(self):
        """Return sentences that stand above the tables."""
        return ()

    def grids(self):
        """Return the tables."""
        return ()

    def chart(self):
        """Return the `plotting.Chart` of this part in the current theme, or None."""
        return

    def text(self):
        """Return heading, sentences, message of the figure and tables."""
        figure = self.chart()
        said = [self.heading, *self.sentences(), *([f"Figure: {figure.message}"] if figure else [])]
        return "\n".join([*said, *(grid.text() for grid in self.grids())])

    def html(self):
        """Return the same with the figure, under a bold heading."""
        return f"<div><strong>{escape(self.heading)}</strong>{self.body()}</div>"

    def body(self, pictures=None):
        """Return the HTML below the heading.

        Parameters
        ----------
        pictures : callable, optional
            Returns the HTML of this part's figure; by default it is drawn in the current theme.
        """
        said = "".join(f"<p>{escape(text)}</p>" for text in self.sentences())
        figure = (pictures or picture)(self)
        return said + figure + "".join(grid.html() for grid in self.grids())


def picture(part):
    """Return a part's figure as HTML that needs no other file, or an empty text."""
    chart = part.chart()
    return f"<figure>{image(chart)}</figure>" if chart else ""


def image(chart):
    """Return an image element with the PNG inside; its alt text is the message of the figure."""
    width, height = (round(inches * 100) for inches in chart.figure.get_size_inches())
    alt = f"{chart.message}. The table below the figure holds the values."
    return (
        f'<img alt="{escape(alt)}" width="{width}" height="{height}" '
        f'style="max-width:100%;height:auto" src="{data_uri(chart)}">'
    )


def data_uri(chart):
    """Return a figure's PNG as a data URI, at twice the size it is shown at, in few colors."""
    from PIL import Image

    full, _ = chart._repr_mimebundle_()
    small = BytesIO()
    with Image.open(BytesIO(full["image/png"])) as drawn:
        few = drawn.convert("RGB").quantize(64, dither=Image.Dither.NONE)
        few.save(small, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode()


def theme():
    """Return the name of the theme in which figures are drawn now."""
    colors = plotting.colors()
    return next(name for name, palette in plotting.PALETTES.items() if palette == colors)


@contextmanager
def drawn_for(name):
    """Draw in a theme, whatever the notebook chose, without changing what it chose."""
    import matplotlib as mpl

    before = theme()
    try:
        with mpl.rc_context():
            plotting.use_style(name)
            yield
    finally:
        with mpl.rc_context():
            plotting.use_style(before)
