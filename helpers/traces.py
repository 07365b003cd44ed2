"""Read the file that a profiler writes, and draw the phases of a step over time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers import plotting
from helpers.plotting import Chart
from helpers.units import format_time

_NO_OPERATOR = ("ProfilerStep*", "Optimizer.step#")  # labels that torch itself sets
_KINDS = ("new", "gradient", "memory", "baseline", "reference", "ink")


@dataclass(frozen=True)
class Span:
    """Hold one labeled stretch of time.

    Attributes
    ----------
    name : str
        The label.
    start, seconds : float
        When it began, from the first one on, and how long it took, in seconds.
    """

    name: str
    start: float
    seconds: float


def operator_rows(rows: Iterable[Any]) -> list[Any]:
    """Return the rows of operators: those that are no label of ``record_function``.

    Parameters
    ----------
    rows : iterable of torch.autograd.profiler_util.FunctionEventAvg
        ``prof.key_averages()``.

    Returns
    -------
    list
        Some of the rows, in their order.

    Examples
    --------
    >>> from types import SimpleNamespace as Row
    >>> rows = [Row(key="aten::mm", is_user_annotation=False), Row(key="ProfilerStep*")]
    >>> [row.key for row in operator_rows(rows)]
    ['aten::mm']
    """
    return [
        row
        for row in rows
        if not getattr(row, "is_user_annotation", False) and not row.key.startswith(_NO_OPERATOR)
    ]


def operator_seconds(rows: Iterable[Any]) -> float:
    """Return the seconds inside operators on the CPU, each counted once.

    Parameters
    ----------
    rows : iterable of torch.autograd.profiler_util.FunctionEventAvg
        ``prof.key_averages()``.

    Returns
    -------
    float
        Seconds.
    """
    return sum(row.self_cpu_time_total for row in operator_rows(rows)) / 1e6


def read_spans(path: str | Path, names: Iterable[str]) -> list[Span]:
    """Read from a trace the stretches that ``record_function`` labeled.

    Parameters
    ----------
    path : str or pathlib.Path
        What ``export_chrome_trace`` wrote: JSON, or JSON in gzip if it ends in ``.gz``.
    names : iterable of str
        The labels that are wanted.

    Returns
    -------
    list of Span
        In order of time.

    Raises
    ------
    ValueError
        If none of the labels is in the file.

    See Also
    --------
    The format: Trace Event Format, Chrome's documentation; complete events have the phase X, and
    their times are in microseconds.
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    wanted = set(names)
    found = [
        (event["ts"], event["dur"], event["name"])
        for event in events
        if event.get("ph") == "X"
        and event.get("cat") == "user_annotation"  # the same label on a GPU has another
        and event["name"] in wanted
    ]
    if not found:
        raise ValueError(
            f"the trace must hold at least one of {', '.join(sorted(wanted))}, got none; wrap the "
            "phases in record_function while the profiler records"
        )
    first = min(found)[0]
    return [Span(name, (ts - first) / 1e6, dur / 1e6) for ts, dur, name in sorted(found)]


def plot_spans(message: str, spans: Sequence[Span], *, caption: str = "") -> Chart:
    """Draw labeled stretches of time as bars, one row for each label.

    Parameters
    ----------
    message : str
        The title, a sentence.
    spans : sequence of Span
        What `read_spans` returned.
    caption : str
        How it was measured.

    Returns
    -------
    Chart
        With one row for each label: how often it came, and its time.

    Raises
    ------
    ValueError
        If there is nothing to draw, or more than six labels.

    Examples
    --------
    >>> plot_spans("Two steps", [Span("a", 0.0, 0.002), Span("a", 0.003, 0.002)]).rows
    (('a', '2', '4.00 ms'),)
    """
    if not spans:
        raise ValueError("spans must hold at least one stretch of time, got nothing to draw")
    names = list(dict.fromkeys(span.name for span in spans))
    if len(names) > len(_KINDS):
        raise ValueError(f"spans must have at most {len(_KINDS)} labels, got {len(names)}")
    figure, axes = plotting.new_figure(message, height=1.4 + 0.4 * len(names))
    colors, rows = plotting.colors(), []
    for place, (name, kind) in enumerate(zip(names, _KINDS, strict=False)):
        mine = [span for span in spans if span.name == name]
        bars = [(1e3 * span.start, 1e3 * span.seconds) for span in mine]
        axes.broken_barh(bars, (place - 0.35, 0.7), facecolors=colors[kind])
        rows.append((name, str(len(mine)), format_time(sum(span.seconds for span in mine))))
    axes.set(xlabel="time (ms)", yticks=range(len(names)), yticklabels=names)
    axes.invert_yaxis()
    plotting.write_caption(figure, caption)
    return Chart(figure, message, ("label", "times", "together"), tuple(rows))
