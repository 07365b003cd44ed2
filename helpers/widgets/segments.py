"""Explore what checkpointing in k segments spares and costs, by numbers that were measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from helpers.table import Table
from helpers.units import format_bytes, format_time
from helpers.widgets import _panel

_TOP, _ROW, _BAR = 46, 34, 22
_BYTES_AT, _TIME_AT, _WIDTH = 130, 430, 150


@dataclass(frozen=True)
class Run:
    """Hold what was measured with one number of segments.

    Attributes
    ----------
    segments : int
        0 for the plain run.
    peak : int
        Bytes.
    arithmetic : float
        Floating-point operations of a step, in those of the plain run.
    seconds : float
        Time of a step.
    """

    segments: int
    peak: int
    arithmetic: float
    seconds: float

    @property
    def name(self) -> str:
        """Return the run as a text: plain, 1 segment, 2 segments."""
        if not self.segments:
            return "plain"
        return f"{self.segments} segment" + ("" if self.segments == 1 else "s")


@dataclass(frozen=True)
class SegmentsState:
    """Hold what the explorer shows.

    Parameters
    ----------
    runs : tuple of Run
        The plain run first; names are unique.
    chosen : str
        The name of a run.
    """

    runs: tuple[Run, ...]
    chosen: str

    @property
    def run(self) -> Run:
        """Return the chosen run."""
        return next(run for run in self.runs if run.name == self.chosen)


def render(state: SegmentsState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : SegmentsState

    Examples
    --------
    >>> runs = (Run(0, 2**20, 1.0, 0.1), Run(4, 2**18, 1.2, 0.13))
    >>> print(render(SegmentsState(runs, "4 segments")).heading)
    4 segments: 256 KiB, 25 % of the plain peak, for 120 % of the arithmetic and 130 % of the time.
    """
    plain = state.runs[0]
    rows = [
        [
            run.name,
            format_bytes(run.peak),
            _share(run.peak, plain.peak),
            _share(run.arithmetic, plain.arithmetic),
            format_time(run.seconds),
            _share(run.seconds, plain.seconds),
        ]
        for run in state.runs
    ]
    heads = ["run", "peak", "of plain", "arithmetic", "time", "of plain"]
    size = (700, _TOP + _ROW * len(state.runs) + 16)
    return _panel.View(_finding(state), _code(state.run), Table(heads, rows), _picture(state), size)


def _share(value: float, of: float) -> str:
    return f"{100 * value / of:.0f} %"


def _code(run: Run) -> str:
    if not run.segments:
        return "y = model(x)"
    return (
        f"for part in parts: x = checkpoint(part, x, use_reentrant=False)  # {run.segments} parts"
    )


def _finding(state: SegmentsState) -> str:
    plain, run = state.runs[0], state.run
    if not run.segments:
        return f"plain: {format_bytes(run.peak)} in {format_time(run.seconds)}; all is kept."
    return (
        f"{run.name}: {format_bytes(run.peak)}, {_share(run.peak, plain.peak)} of the plain peak, "
        f"for {_share(run.arithmetic, plain.arithmetic)} of the arithmetic and "
        f"{_share(run.seconds, plain.seconds)} of the time."
    )


def _picture(state: SegmentsState) -> list[Any]:
    highest = max(run.peak for run in state.runs)
    longest = max(run.seconds for run in state.runs)
    parts: list[Any] = [
        _panel.Text(_BYTES_AT, 26, "peak of live bytes"),
        _panel.Text(_TIME_AT, 26, "time of a step"),
    ]
    for row, run in enumerate(state.runs):
        y, marked = _TOP + _ROW * row, run.name == state.chosen
        parts.append(_panel.Text(10, y + 16, f"▸ {run.name}" if marked else run.name))
        values = (
            (_BYTES_AT, run.peak / highest, format_bytes(run.peak), "memory"),
            (_TIME_AT, run.seconds / longest, format_time(run.seconds), "new"),
        )
        for x, share, text, color in values:
            width = max(1.0, _WIDTH * share)
            parts.append(_panel.Bar(x, y, width, _BAR, color if marked else "reference"))
            parts.append(_panel.Text(x + width + 8, y + 16, text))
    return parts


def explore(
    peaks: Mapping[int, int],
    seconds: Mapping[int, float],
    *,
    arithmetic: Mapping[int, float],
    segments: int | None = None,
) -> _panel.Panel:
    """Show the explorer of segments; it measures nothing itself.

    Parameters
    ----------
    peaks : mapping of int to int
        For each number of segments the peak in bytes; 0 stands for the plain run.
    seconds : mapping of int to float
        For the same numbers the time of a step.
    arithmetic : mapping of int to float
        For the same numbers the floating-point operations of a step, in any unit.
    segments : int, optional
        What is shown first; the number with the lowest peak unless told otherwise.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If the plain run is missing, the mappings have different numbers, a value is not above
        zero, or `segments` was not measured.

    Examples
    --------
    >>> panel = explore({0: 900, 1: 950, 4: 300}, {0: 0.1, 1: 0.13, 4: 0.12},
    ...                 arithmetic={0: 9, 1: 12, 4: 11})
    >>> panel.state.chosen
    '4 segments'
    """
    _require(peaks, seconds, arithmetic)
    numbers = sorted(peaks)
    runs = tuple(Run(k, peaks[k], arithmetic[k] / arithmetic[0], seconds[k]) for k in numbers)
    first = min(peaks, key=lambda k: peaks[k]) if segments is None else segments
    if first not in peaks:
        known = ", ".join(map(str, numbers))
        raise ValueError(f"segments must be one of {known}, which were measured; got {first!r}")
    chosen = next(run.name for run in runs if run.segments == first)

    def controls(change: Callable[..., None], now: Callable[[], SegmentsState]) -> list[Any]:
        names = [run.name for run in now().runs]
        return [_panel.choice("Segments", names, now().chosen, lambda name: change(chosen=name))]

    return _panel.Panel(render, SegmentsState(runs, chosen), controls, replace)


def _require(*measured: Mapping[int, float]) -> None:
    for name, values in zip(("peaks", "seconds", "arithmetic"), measured, strict=True):
        if 0 not in values:
            raise ValueError(f"{name} must hold the plain run under 0, got {sorted(values)}")
        if set(values) != set(measured[0]):
            raise ValueError(
                f"{name} must hold the same numbers of segments as peaks, {sorted(measured[0])}, "
                f"got {sorted(values)}"
            )
        for k, value in values.items():
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be above zero, got {value} for {k} segments")
