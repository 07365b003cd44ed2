"""Watch a training loop while it runs: its curves, how far it is, and a way to stop it early."""

from __future__ import annotations

import base64
import math
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from types import TracebackType
from typing import Any, Self

from helpers import _display
from helpers.plotting import spread
from helpers.table import Table
from helpers.widgets import _panel

ROLES = ("new", "baseline", "memory", "gradient")
_DASHES = {"new": "", "baseline": "7 4", "memory": "2 3", "gradient": "9 3 2 3"}
SIZE = (640, 290)
_LEFT, _TOP, _RIGHT, _BOTTOM = 66, 52, 470, 240  # the frame of the curves
_MOST_POINTS = 400  # of one curve; more cannot be told apart
_EVERY = 0.1  # seconds between two pictures


@dataclass(frozen=True)
class Run:
    """Hold what a training loop has logged so far.

    Parameters
    ----------
    total : int
        Planned rounds.
    unit : str
        What one round is, in the singular.
    log_scale : bool
        Whether the axis of the values is logarithmic.
    begun, done : int
        Rounds that were begun and completed.
    curves : tuple of (str, tuple of float)
        Each value with the name it was logged under, one per round; nan where none was logged.
    state : str
        "running", "finished", "stopped", or the name of the exception that ended the loop.
    """

    total: int
    unit: str = "epoch"
    log_scale: bool = False
    begun: int = 0
    done: int = 0
    curves: tuple[tuple[str, tuple[float, ...]], ...] = ()
    state: str = "running"


def add(run: Run, values: dict[str, float]) -> Run:
    """Return the run with these values in the present round.

    Examples
    --------
    >>> add(Run(total=3, begun=1), {"loss": 2.3}).curves
    (('loss', (2.3,)),)
    """
    curves = dict(run.curves)
    rounds = max(run.begun, 1)
    for name, value in values.items():
        old = curves.get(name, ())[: rounds - 1]
        curves[name] = (*old, *[math.nan] * (rounds - 1 - len(old)), value)
    if len(curves) > len(ROLES):
        raise ValueError(
            f"log takes at most {len(ROLES)} curves, got {', '.join(curves)}; watch a second loop"
        )
    return replace(run, curves=tuple(curves.items()))


def read_number(name: str, value: object) -> float:
    """Return a value as a float, so that no graph is kept.

    Raises
    ------
    TypeError
        If it is no number and no tensor or array.
    ValueError
        If it has more than one element.

    Examples
    --------
    >>> import torch
    >>> read_number("loss", torch.ones(1, requires_grad=True))
    1.0
    """
    if getattr(value, "numel", None) is not None and value.numel() != 1:
        raise ValueError(
            f"{name} must be one number, got shape {tuple(value.shape)}; take its mean"
        )
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise TypeError(f"{name} must be a number, got {kind}; log one number per curve") from None


# The picture --------------------------------------------------------------------------


class _Page(_panel.View):
    """Show a run: there is no line to copy."""

    def text(self) -> str:
        """Return heading and table as text."""
        return "\n".join([self.heading, repr(self.table)])

    def _page(self, picture: str) -> str:
        return (
            f'<div class="mp-view"><strong>{escape(self.heading)}</strong>'
            f"<div>{picture}</div>{self.table._repr_html_()}</div>"
        )


def render(run: Run) -> _Page:
    """Return the picture, the state in words and the table of a run.

    Parameters
    ----------
    run : Run
        With up to four curves; values that are not finite are left out of the picture and
        named in the heading.

    Examples
    --------
    >>> curves = (("loss", (2.0, 0.5, 1.0)),)
    >>> render(Run(total=3, begun=3, done=3, curves=curves, state="finished")).text()
    'All 3 epochs ran: loss ended at 1.\\ncurve  first  lowest  in epoch  last\\nloss   2      0.5     2         1'
    """
    columns = ["curve", "first", "lowest", f"in {run.unit}", "last"]
    rows = [_row(name, values) for name, values in run.curves]
    return _Page(_heading(run), "", Table(columns, rows), _draw(run), SIZE)


def _row(name: str, values: Sequence[float]) -> list[object]:
    finite = [(value, place) for place, value in enumerate(values, 1) if math.isfinite(value)]
    lowest, place = min(finite, default=(math.nan, "-"))
    return [name, f"{values[0]:.4g}", f"{lowest:.4g}", place, f"{values[-1]:.4g}"]


def _heading(run: Run) -> str:
    last = ", ".join(f"{name} ended at {values[-1]:.4g}" for name, values in run.curves)
    where = f"{run.unit} {run.done} of {run.total}"
    said = {
        "running": f"{where[0].upper()}{where[1:]} is done.",
        "finished": f"All {run.total} {run.unit}s ran{': ' if last else ''}{last}.",
        "stopped": f"Stopped after {where}.",
    }.get(run.state, f"Ended by {run.state} after {where}.")
    return " ".join([said, *_breaks(run)])


def _breaks(run: Run) -> list[str]:
    """Say for each curve from which round on it was nan or infinite."""
    found = []
    for name, values in run.curves:
        bad = [n for n, value in enumerate(values, 1) if not math.isfinite(value)]
        if bad and bad[-1] == len(values):
            start = next(n for n in bad if all(k in bad for k in range(n, len(values) + 1)))
            found.append(f"{name} is {values[-1]} since {run.unit} {start}.")
    return found


def _draw(run: Run) -> list[Any]:
    share = run.done / run.total if run.total else 1
    parts: list[Any] = [
        _panel.Text(_LEFT, 18, f"{run.done} of {run.total} {run.unit}s"),
        _panel.Bar(_LEFT, 26, _RIGHT - _LEFT, 8, "reference"),
        _panel.Bar(_LEFT + 1, 27, _RIGHT - _LEFT - 2, 6, "paper"),
        _panel.Bar(_LEFT, 26, share * (_RIGHT - _LEFT), 8, "new"),
        _panel.Line([(_LEFT, _TOP), (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], "reference", 1),
        _panel.Text(_LEFT, _BOTTOM + 20, "1", "ink", "middle"),
        _panel.Text(_RIGHT, _BOTTOM + 20, str(run.total), "ink", "middle"),
        _panel.Text((_LEFT + _RIGHT) / 2, _BOTTOM + 38, run.unit, "ink", "middle"),
    ]
    limits = _limits(run)
    if limits is None:
        return parts
    low, high = limits
    for value in (low, math.sqrt(low * high) if run.log_scale else (low + high) / 2, high):
        y = _height(value, limits, run.log_scale)
        parts.append(_panel.Text(8, y + 4, f"{value:.2g}"))
        parts.append(_panel.Line([(_LEFT - 5, y), (_LEFT, y)], "reference", 1))
    return parts + _curves(run, limits)


def _shown(run: Run, value: float) -> bool:
    return math.isfinite(value) and (value > 0 or not run.log_scale)


def _limits(run: Run) -> tuple[float, float] | None:
    """Return the lowest and highest value of the axis, or None where nothing can be drawn."""
    values = [v for _, curve in run.curves for v in curve if _shown(run, v)]
    if not values:
        return None
    low, high = min(values), max(values)
    low = low if run.log_scale else min(low, 0.0)
    return (low, high) if high > low else (low, low * 2 or 1.0)


def _height(value: float, limits: tuple[float, float], log_scale: bool) -> float:
    low, high = limits
    if log_scale:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)


def _curves(run: Run, limits: tuple[float, float]) -> list[Any]:
    """Draw each curve, with its name at its end."""
    step = (_RIGHT - _LEFT) / max(run.total - 1, 1)
    parts, ends = [], []
    for role, (name, values) in zip(ROLES, run.curves, strict=False):
        places = [
            (_LEFT + n * step, _height(value, limits, run.log_scale))
            for n, value in enumerate(values)
            if _shown(run, value)
        ]
        if places:
            parts.append(_panel.Line(_thin(places), role, 2, _DASHES[role]))
            x, y = places[-1]
            parts.append(_panel.Bar(x - 3, y - 3, 6, 6, role))
            ends.append((f"{name} {values[-1]:.3g}", y, role))
    heights = spread([y for _, y, _ in ends], 17)
    labels = zip(ends, heights, strict=True)
    return parts + [_panel.Text(_RIGHT + 12, y + 4, text, role) for (text, _, role), y in labels]


def _thin(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep from each stretch of a long curve its lowest and its highest point, and the end."""
    if len(places) <= _MOST_POINTS:
        return list(places)
    length = math.ceil(2 * len(places) / _MOST_POINTS)
    kept = []
    for start in range(0, len(places), length):
        stretch = places[start : start + length]
        ends = {min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])}
        kept += sorted(ends)
    return [*kept, places[-1]]


# Where it is shown --------------------------------------------------------------------


class _Nowhere:
    """Show nothing: there is no notebook."""

    def draw(self, run: Run) -> None:
        """Do nothing."""

    close = draw


class _Output(_Nowhere):
    """Show the run in one output of the cell, which is replaced in place."""

    def __init__(self, run: Run) -> None:
        from IPython.display import display

        self._handle = display(self._first(run), raw=True, display_id=True)

    def _first(self, run: Run) -> dict[str, Any]:
        return _bundle(run)

    def draw(self, run: Run) -> None:
        """Replace the picture."""
        self._handle.update(_bundle(run), raw=True)

    def close(self, run: Run) -> None:
        """Leave the last picture, which needs no kernel and is stored with the notebook."""
        self._handle.update(_bundle(run), raw=True)


class _Widget(_Output):
    """Show the run in a widget with a button, and leave the last picture in its place."""

    def __init__(self, run: Run, stop: threading.Event) -> None:
        import ipywidgets as widgets

        self._html = widgets.HTML(render(run).html())
        parts = [widgets.HTML(escape(_how_to_stop()))]
        if _takes_presses():
            parts.insert(0, _stop_button(stop))
        row = widgets.Box(parts, layout=widgets.Layout(flex_flow="row wrap"))
        self._box = widgets.VBox([row, self._html])
        super().__init__(run)

    def _first(self, run: Run) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self._box.model_id}
        return _bundle(run) | {_display.VIEW: view}

    def draw(self, run: Run) -> None:
        self._html.value = render(run).html()

    def close(self, run: Run) -> None:
        super().close(run)
        self._box.close()


def _stop_button(stop: threading.Event) -> Any:
    """Return a button whose presses are heard while the main thread is busy."""
    button = _display.button("Stop", lambda _: stop.set())
    # ipykernel 7.4 sends presses to the thread that spoke last on this channel, the busy one.
    # Without this note they go where the front end sent them: to a thread of their own.
    getattr(button.comm, "__dict__", {}).pop("_reply_subshell_id", None)
    return button


def _how_to_stop() -> str:
    button = "the button or, where it does not react, " if _takes_presses() else ""
    return f"To stop early: {button}“Interrupt the kernel” (■). What was logged is kept."


def _takes_presses() -> bool:
    """Tell whether the kernel can hear a button while a cell runs.

    ipykernel 7 has subshells for that, and JupyterLab sends presses there; other front ends may
    not, and an older kernel hears the press when the cell is done.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return bool(getattr(getattr(shell, "kernel", None), "_supports_kernel_subshells", False))


def _bundle(run: Run) -> dict[str, Any]:
    view = render(run)
    return {
        "text/plain": view.text(),
        "text/html": view.static_html(),
        "image/png": base64.b64encode(view.png()).decode(),
    }


def _in_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


# The loop -----------------------------------------------------------------------------


@dataclass
class Watch(_display.Shown):
    """Count the rounds of a loop, collect what it logs, and end it when asked to.

    Attributes
    ----------
    run : Run
        What was logged so far.
    """

    run: Run
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _screen: Any = field(default_factory=_Nowhere, init=False)
    _drawn: float = field(default=-math.inf, init=False)

    __repr__ = _display.Shown.__repr__

    def __enter__(self) -> Self:
        """Open the panel; a second `with` begins again."""
        self.run = Run(self.run.total, self.run.unit, self.run.log_scale)
        self._stop.clear()
        if _display.in_notebook():
            self._screen = _Widget(self.run, self._stop)
        elif _in_kernel():
            self._screen = _Output(self.run)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Draw the end; an interrupt of the kernel ends the loop like the button does."""
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        if kind is not None:
            self.run = replace(self.run, state="stopped" if interrupted else kind.__name__)
        elif self.run.state == "running":
            ended = "finished" if self.run.done == self.run.total else "stopped"
            self.run = replace(self.run, state=ended)
        self._screen.close(self.run)
        self._screen = _Nowhere()
        return interrupted

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each round, from 0, until all are done or someone stops it."""
        for number in range(self.run.total):
            if self._stop.is_set():
                return
            self.run = replace(self.run, begun=number + 1)
            yield number
            self.run = replace(self.run, done=number + 1)
            if time.perf_counter() - self._drawn > _EVERY:
                self._screen.draw(self.run)
                self._drawn = time.perf_counter()

    def log(self, **values: object) -> None:
        """Keep one number per curve for the present round.

        Parameters
        ----------
        **values
            Numbers, or tensors with one element: the number is taken out, no graph is kept.

        Raises
        ------
        TypeError, ValueError
            If a value is not one number, or there are more than four curves.
        """
        numbers = {name: read_number(name, value) for name, value in values.items()}
        self.run = add(self.run, numbers)

    def stop(self) -> None:
        """End the loop after the present round, as the button does."""
        self._stop.set()

    def __getitem__(self, name: str) -> tuple[float, ...]:
        """Return a curve by its name.

        Raises
        ------
        KeyError
            If nothing was logged under it.
        """
        curves = dict(self.run.curves)
        if name not in curves:
            logged = ", ".join(curves) or "nothing"
            raise KeyError(f"{name} was not logged; logged: {logged}")
        return curves[name]

    def text(self) -> str:
        """Return the state and the table as text."""
        return render(self.run).text()

    def html(self) -> str:
        """Return the page without a kernel."""
        return render(self.run).static_html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return _bundle(self.run)


def watch(total: int, unit: str = "epoch", *, log_scale: bool = False) -> Watch:
    """Watch a loop of so many rounds.

    Parameters
    ----------
    total : int
        Planned rounds.
    unit : str
        What a round is, in the singular: "epoch", "step".
    log_scale : bool
        Whether the axis of the values is logarithmic.

    Returns
    -------
    Watch
        To be used as ``with watch(20) as live: for epoch in live: live.log(loss=...)``. In a
        notebook it draws while the loop runs, about ten times a second at most, and leaves a
        picture with a table. Without widgets it redraws its output in place; outside a notebook
        it draws nothing. `KeyboardInterrupt` ends the loop and goes no further.

    Raises
    ------
    ValueError
        If `total` is no whole number above 0.

    Examples
    --------
    >>> with watch(3) as live:
    ...     for epoch in live:
    ...         live.log(loss=1 / (epoch + 1))
    >>> live["loss"][0], live.run.state
    (1.0, 'finished')
    """
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        raise ValueError(f"total must be a whole number above 0, got {total!r}; pass the rounds")
    return Watch(Run(total, unit, log_scale))
