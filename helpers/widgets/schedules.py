"""Compose a learning-rate schedule, and see the rates that PyTorch itself computes for it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from helpers.table import Table
from helpers.widgets import _panel

RATE = 0.1  # what the optimizer is built with
EPOCHS, BATCHES = 10, 45  # of the run, and in an epoch
SHAPES = ("constant", "cosine", "straight line", "two drops", "one cycle")
COUNTED = (
    "batches, after each batch",
    "epochs, after each batch",
    "epochs, after each epoch",
    "batches, after each epoch",
)
_MOST = 5  # epochs of warm-up
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 560, 34, 190


@dataclass(frozen=True)
class ScheduleState:
    """Hold what the composer shows.

    Parameters
    ----------
    shape : str
        One of `SHAPES`: what follows the warm-up.
    warm_up : int
        Epochs during which the rate grows.
    counted : str
        One of `COUNTED`: the unit of the lengths that the scheduler is given, and when its
        ``step`` is called.
    """

    shape: str = "cosine"
    warm_up: int = 1
    counted: str = COUNTED[0]


@dataclass(frozen=True)
class Rates:
    """Hold the rate of each batch of a run.

    Attributes
    ----------
    rates : tuple of float
        One for each batch; fewer if the scheduler raised.
    error : str or None
        What it raised.
    """

    rates: tuple[float, ...]
    error: str | None


def write(state: ScheduleState) -> str:
    """Return the expression that builds the scheduler of a state.

    Parameters
    ----------
    state : ScheduleState

    Examples
    --------
    >>> write(ScheduleState("cosine", 0))
    'lr_scheduler.CosineAnnealingLR(optimizer, 450)'
    >>> write(ScheduleState("straight line", 0, "epochs, after each epoch"))
    'lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=10)'
    """
    unit = BATCHES if state.counted.startswith("batches") else 1
    warm, total = state.warm_up * unit, EPOCHS * unit
    rest = total - warm
    if state.shape == "one cycle":
        # PyTorch divides by zero if the share is one step, and by -1 if it is none.
        share = f"{warm + 1} / {total}" if warm else "0.0"
        return (
            f"lr_scheduler.OneCycleLR(optimizer, {RATE}, total_steps={total}, "
            f"pct_start={share}, cycle_momentum=False)"
        )
    main = {
        "constant": "ConstantLR(optimizer, 1.0)",
        "cosine": f"CosineAnnealingLR(optimizer, {rest})",
        "straight line": f"LinearLR(optimizer, 1.0, 0.0, total_iters={rest})",
        "two drops": f"MultiStepLR(optimizer, [{rest // 2}, {3 * rest // 4}], 0.1)",
    }[state.shape]
    if not warm:
        return f"lr_scheduler.{main}"
    line = f"lr_scheduler.LinearLR(optimizer, 1 / {warm + 1}, total_iters={warm})"
    return f"lr_scheduler.SequentialLR(optimizer, [{line}, lr_scheduler.{main}], [{warm}])"


@lru_cache(maxsize=64)
def compute(state: ScheduleState) -> Rates:
    """Let PyTorch compute the rate of each batch of a run of `EPOCHS` epochs.

    Parameters
    ----------
    state : ScheduleState

    Returns
    -------
    Rates

    See Also
    --------
    torch.optim.lr_scheduler : https://docs.pytorch.org/docs/stable/optim.html

    Examples
    --------
    >>> found = compute(ScheduleState("two drops", 0))
    >>> len(found.rates), found.rates[0], round(found.rates[-1], 6)
    (450, 0.1, 0.001)
    """
    import torch
    from torch.optim import lr_scheduler

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    names = {"lr_scheduler": lr_scheduler, "optimizer": optimizer}
    every = 1 if state.counted.endswith("batch") else BATCHES
    rates, error = [], None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = eval(write(state), names)  # our own text, the one to copy
        optimizer.step()  # once, or the scheduler warns of the wrong order
        for batch in range(1, EPOCHS * BATCHES + 1):
            rates.append(optimizer.param_groups[0]["lr"])
            try:
                if batch % every == 0:
                    scheduler.step()
            except ValueError as raised:
                error = str(raised)
                break
    return Rates(tuple(rates), error)


def count_rises(rates: tuple[float, ...]) -> int:
    """Count how often the rate begins to rise after it has fallen.

    Examples
    --------
    >>> count_rises((0.0, 1.0, 0.5, 0.5, 0.7, 0.2, 0.1))
    1
    """
    rises, falling = 0, False
    for before, after in itertools.pairwise(rates):
        if after > before and falling:
            rises, falling = rises + 1, False
        elif after < before:
            falling = True
    return rises


def render(state: ScheduleState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : ScheduleState

    Examples
    --------
    >>> print(render(ScheduleState()).heading)
    Cosine: the rate is at most 0.1, first at batch 46, and 1.5e-06 at the end.
    """
    found = compute(state)
    table = Table(["at", "batch", "rate"], _rows(found.rates))
    code = f"scheduler = {write(state)}  # step() {state.counted.partition(', ')[2]}"
    return _panel.View(_finding(state, found), code, table, _picture(state, found), (700, 240))


def _rows(rates: tuple[float, ...]) -> list[list[object]]:
    high, low = rates.index(max(rates)), rates.index(min(rates))
    places = {"start": 0, "highest": high, "lowest": low, "end": len(rates) - 1}
    rows: list[list[object]] = [
        [name, place + 1, f"{rates[place]:.4g}"] for name, place in places.items()
    ]
    return [*rows, ["mean", f"1 to {len(rates)}", f"{sum(rates) / len(rates):.4g}"]]


def _finding(state: ScheduleState, found: Rates) -> str:
    rates, name = found.rates, state.shape.capitalize()
    if found.error is not None:
        return f"{name}: it raises after batch {len(rates)}: {found.error}"
    moves = len(set(rates)) > 1
    if moves and state.counted == COUNTED[1]:
        return f"{name}: {_wave_or_stop(rates)} The lengths count epochs."
    if state.counted == COUNTED[3] and (state.warm_up or state.shape != "constant"):
        steps = f"{EPOCHS} of {EPOCHS * BATCHES} steps are made"
        return f"{name}: the rate ends at {rates[-1]:.2g}, as {steps}. The lengths count batches."
    first, end = rates.index(max(rates)) + 1, f"{rates[-1]:.2g} at the end"
    return f"{name}: the rate is at most {max(rates):.3g}, first at batch {first}, and {end}."


def _wave_or_stop(rates: tuple[float, ...]) -> str:
    rises = count_rises(rates)
    if rises:
        return f"the rate falls and rises again {rises} times."
    still = len(rates) - len([*itertools.takewhile(lambda r: r == rates[-1], reversed(rates))])
    return f"the rate stays at {rates[-1]:.2g} from batch {still + 1} of {len(rates)} on."


def _picture(state: ScheduleState, found: Rates) -> list[Any]:
    across, up = (_RIGHT - _LEFT) / (EPOCHS * BATCHES), (_BOTTOM - _TOP) / RATE
    places = [(_LEFT + n * across, _BOTTOM - rate * up) for n, rate in enumerate(found.rates)]
    places.append((places[-1][0] + across, places[-1][1]))
    parts: list[Any] = [
        _panel.Line([(_LEFT, _TOP), (_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], "reference", 1),
        _panel.Text(10, 18, "learning rate"),
        _panel.Text((_LEFT + _RIGHT) / 2, _BOTTOM + 38, "epoch", "ink", "middle"),
    ]
    for rate in (0, RATE / 2, RATE):
        y = _BOTTOM - rate * up
        parts.append(_panel.Text(14, y + 4, f"{rate:g}"))
        parts.append(_panel.Line([(_LEFT - 5, y), (_LEFT, y)], "reference", 1))
    for epoch in range(0, EPOCHS + 1, 2):
        x = _LEFT + epoch * BATCHES * across
        parts.append(_panel.Text(x, _BOTTOM + 20, f"{epoch}", "ink", "middle"))
        parts.append(_panel.Line([(x, _BOTTOM), (x, _BOTTOM + 5)], "reference", 1))
    parts.append(_panel.Line(places, "new", 2))
    x, y = places[-1]
    parts.append(_panel.Bar(x - 3, y - 3, 6, 6, "new"))
    word = "raises" if found.error else f"{found.rates[-1]:.2g}"
    return [*parts, _panel.Text(x + 10, max(y, _TOP + 8) - 4, word, "new")]


def explore(shape: str = "cosine", warm_up: int = 1, *, counted: str = COUNTED[0]) -> _panel.Panel:
    """Show the schedule composer.

    Parameters
    ----------
    shape : str
        One of `SHAPES`.
    warm_up : int
        Epochs of warm-up, 0 to 5.
    counted : str
        One of `COUNTED`.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If a name is unknown or the warm-up is out of its range.

    Examples
    --------
    >>> print(explore(counted="epochs, after each batch").text().splitlines()[0])
    Cosine: the rate falls and rises again 25 times. The lengths count epochs.
    """
    for name, given, names in (("shape", shape, SHAPES), ("counted", counted, COUNTED)):
        if given not in names:
            raise ValueError(f"{name} must be one of {'; '.join(names)}, got {given!r}")
    if not 0 <= warm_up <= _MOST:
        raise ValueError(f"warm_up must be from 0 to {_MOST} epochs, got {warm_up}")

    def controls(change: Callable[..., None], now: Callable[[], ScheduleState]) -> list[Any]:
        given, called = "Lengths given in, and when step() is called", now().counted
        return [
            _panel.choice("Shape", SHAPES, now().shape, lambda s: change(shape=s)),
            _panel.number("Warm-up epochs", 0, _MOST, now().warm_up, lambda n: change(warm_up=n)),
            _panel.choice(given, COUNTED, called, lambda c: change(counted=c)),
        ]

    return _panel.Panel(render, ScheduleState(shape, warm_up, counted), controls, replace)
