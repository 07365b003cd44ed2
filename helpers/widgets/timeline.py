"""Explore an asynchronous device: what the host orders, what waits, and what the clock sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from helpers.simulated import Event, SimulatedDevice
from helpers.table import Table
from helpers.units import format_ratio, format_time
from helpers.widgets import _panel

MODES = ("no synchronize", "synchronize at the end", ".item() each launch")
LAUNCH_S = 5e-6
_DEPTH = 1024
_DRAWN = 12  # launches of the upper picture
_SAMPLES = 100  # of the length of the queue
_LEFT, _RIGHT = 90, 660  # the time axis
_LOOPS = {
    MODES[0]: "start = clock(); [call() for _ in range({n})]; seconds = clock() - start",
    MODES[
        1
    ]: "start = clock(); [call() for _ in range({n})]; synchronize(); seconds = clock() - start",
    MODES[2]: "start = clock(); [call().item() for _ in range({n})]; seconds = clock() - start",
}


@dataclass(frozen=True)
class TimelineState:
    """Hold what the explorer shows.

    Parameters
    ----------
    kernel : int
        Microseconds that the device works on one launch.
    launches : int
        How many launches the loop makes.
    mode : str
        One of `MODES`: when the loop waits for the device.
    """

    kernel: int = 40
    launches: int = 500
    mode: str = MODES[0]


@dataclass(frozen=True)
class Timed:
    """Hold what happened between the two readings of the clock, and after.

    Attributes
    ----------
    clock, finished : float
        Seconds until the second reading, and until the device is through.
    first_wait : float or None
        When the host first waited, in seconds; None if it never did.
    queue : tuple of (float, int)
        Time in seconds and length of the queue, over the whole run.
    events : tuple of Event
        Of the first launches, on the lanes "host" and "compute".
    """

    clock: float
    finished: float
    first_wait: float | None
    queue: tuple[tuple[float, int], ...]
    events: tuple[Event, ...]


@lru_cache(maxsize=64)
def simulate(state: TimelineState) -> Timed:
    """Run the loop of a state on a simulated device.

    Parameters
    ----------
    state : TimelineState
        Kernel, launches and mode.

    Returns
    -------
    Timed

    Raises
    ------
    ValueError
        If the mode is not one of `MODES`, or kernel or launches is below 1.

    Examples
    --------
    >>> timed = simulate(TimelineState(kernel=1000, launches=100))
    >>> round(1e6 * timed.clock / 100), round(1e6 * timed.finished / 100)
    (5, 1000)
    """
    _check(state)
    device = SimulatedDevice(launch_s=LAUNCH_S, queue_depth=_DEPTH)
    seconds, every, queue, first_wait = (
        state.kernel * 1e-6,
        -(-state.launches // _SAMPLES),
        [],
        None,
    )
    for n in range(state.launches):
        before = device.clock()
        device.launch("kernel", seconds)
        if first_wait is None and device.clock() - before > 1.5 * LAUNCH_S:
            first_wait = before
        if n % every == 0:
            queue.append((device.clock(), device.queued))
        if state.mode == MODES[2]:
            first_wait = device.clock() if first_wait is None else first_wait
            device.item()
    if state.mode == MODES[1]:
        first_wait = device.clock() if first_wait is None else first_wait
        queue.append((device.clock(), device.queued))
        device.synchronize()
    clock = device.clock()
    queue.append((clock, device.queued))
    device.synchronize()
    queue.append((device.clock(), 0))
    return Timed(clock, device.clock(), first_wait, tuple(queue), device.events[: 3 * _DRAWN])


def _check(state: TimelineState) -> None:
    if state.mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {state.mode!r}")
    for name in ("kernel", "launches"):
        if getattr(state, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(state, name)}")


def render(state: TimelineState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : TimelineState
        Kernel, launches and mode.

    Examples
    --------
    >>> print(render(TimelineState(kernel=2)).heading)
    The timer says 5.00 µs per launch, and so long it took: the device waits for orders.
    """
    timed = simulate(state)
    says, took = timed.clock / state.launches, timed.finished / state.launches
    table = Table(
        ["per launch", "value"],
        [
            ["the timer says", format_time(says)],
            ["until the device is through", format_time(took)],
            ["the device works", format_time(state.kernel * 1e-6)],
            ["the host writes an order", format_time(LAUNCH_S)],
            ["the device is busy", f"{state.kernel * 1e-4 / took:.0f} %"],
            ["longest queue", _orders(max(length for _, length in timed.queue))],
        ],
    )
    parts = [*_first_launches(timed), *_whole_run(state, timed)]
    code = _LOOPS[state.mode].format(n=state.launches)
    return _panel.View(_finding(state, timed, says, took), code, table, parts, (700, 345))


def _orders(count: int) -> str:
    return f"{count:,} order" if count == 1 else f"{count:,} orders"


def _finding(state: TimelineState, timed: Timed, says: float, took: float) -> str:
    start = f"The timer says {format_time(says)} per launch"
    if state.mode == MODES[2]:
        kernel = state.kernel * 1e-6
        free = max(LAUNCH_S, kernel) + min(LAUNCH_S, kernel) / state.launches
        return (
            f"{start}: an order plus a kernel. Without the waits it would be {format_time(free)}."
        )
    if state.mode == MODES[1]:
        return f"{start}, and so long it took: the clock was read when the work was done."
    if took <= 1.02 * says:
        why = "the queue was full" if timed.first_wait else "the device waits for orders"
        return f"{start}, and so long it took: {why}."
    wrong = f"{start}, it took {format_time(took)}: {format_ratio(took / says)} too short"
    why = "the queue was full for a part of the time" if timed.first_wait else "orders were timed"
    return f"{wrong}, {why}."


def _lane(y: float, label: str) -> _panel.Text:
    return _panel.Text(10, y + 14, label)


def _place(moment: float, span: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * min(1.0, moment / span)


def _bar(y: float, start: float, end: float, span: float, color: str) -> _panel.Bar:
    x = _place(start, span)
    return _panel.Bar(x, y, max(1.0, _place(end, span) - x), 20, color)


def _first_launches(timed: Timed) -> list[Any]:
    """Draw each order, wait and kernel of the first launches."""
    orders = [e for e in timed.events if e.lane == "host" and e.name != "wait"][:_DRAWN]
    kernels = [e for e in timed.events if e.lane != "host"]
    span = max(orders[-1].end, kernels[0].end)
    parts: list[Any] = [
        _panel.Text(
            10, 20, f"The first {len(orders)} launches" if len(orders) > 1 else "The launch"
        ),
        _lane(34, "host"),
        _lane(64, "device"),
    ]
    colors = {"wait": "reference", "kernel": "baseline"}
    for event in timed.events:
        if event.start < span:
            y, color = (34, colors[event.name]) if event.lane == "host" else (64, "new")
            shorter = 0.15 * min(event.end - event.start, LAUNCH_S)  # a gap, so that one can count
            parts.append(_bar(y, event.start, event.end - shorter, span, color))
    return parts + _axis(98, span)


def _axis(y: float, span: float) -> list[Any]:
    return [
        _panel.Line([(_LEFT, y - 8), (_RIGHT, y - 8)], "reference", 1),
        _panel.Text(_LEFT, y + 8, "0", "reference", "middle"),
        _panel.Text(_RIGHT, y + 8, format_time(span), "reference", "middle"),
    ]


def _whole_run(state: TimelineState, timed: Timed) -> list[Any]:
    """Draw the run as bands, the length of the queue, and the second reading of the clock."""
    span, longest = timed.finished, max(length for _, length in timed.queue)
    waits = timed.clock if timed.first_wait is None else timed.first_wait
    stop = _place(timed.clock, span)
    points = [(_place(t, span), 248 - 46 * n / max(longest, 1)) for t, n in timed.queue]
    parts: list[Any] = [
        _panel.Text(10, 140, f"All {state.launches:,} launches"),
        _lane(154, "host"),
        _bar(154, 0, waits, span, "baseline"),
        _panel.Text(10, 218, "queue"),
        _panel.Text(10, 236, f"0 to {longest:,}", "reference"),
        _panel.Line([(_LEFT, 248), *points], "memory", 2),
        _lane(262, "device"),
        _bar(262, LAUNCH_S, timed.finished, span, "new"),
    ]
    if timed.clock > waits:
        parts.append(_bar(154, waits, timed.clock, span, "reference"))
    parts += [*_axis(296, span), _panel.Line([(stop, 148), (stop, 290)], "ink", 2, "4 3")]
    parts.append(_panel.Text(min(max(stop + 4, 140), 580), 140, "clock is read"))
    legend = "host: orange orders, gray waits · device: blue works"
    return [*parts, _panel.Text(10, 334, legend, "reference")]


def explore(kernel: int = 40, launches: int = 500, *, mode: str = MODES[0]) -> _panel.Panel:
    """Show the explorer of the asynchronous timeline.

    Parameters
    ----------
    kernel : int
        Microseconds of one kernel, 1 to 1000.
    launches : int
        How many, 1 to 20,000.
    mode : str
        One of `MODES`.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If a value lies outside of its range or the mode is not one of `MODES`.

    Examples
    --------
    >>> print(explore(1000, 100).text().splitlines()[0])
    The timer says 5.00 µs per launch, it took 1.00 ms: 200x too short, orders were timed.
    """
    state = TimelineState(kernel, launches, mode)
    _check(state)
    for name, value, most in (("kernel", kernel, 1000), ("launches", launches, 20_000)):
        if value > most:
            raise ValueError(f"{name} must be at most {most:,}, got {value:,}")

    def controls(change: Callable[..., None], now: Callable[[], TimelineState]) -> list[Any]:
        return [
            _panel.number("Kernel (µs)", 1, 1000, now().kernel, lambda k: change(kernel=k)),
            _panel.number("Launches", 1, 20_000, now().launches, lambda n: change(launches=n)),
            _panel.choice("The loop waits", MODES, now().mode, lambda m: change(mode=m)),
        ]

    return _panel.Panel(render, state, controls, replace)
