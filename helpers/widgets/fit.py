"""Explore whether the training step of a language model fits on a card, by three estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from helpers import sizing
from helpers.table import Table
from helpers.units import format_bytes
from helpers.widgets import _panel

# What the data sheets call GB, taken as 10**9 bytes: a card never has less, and the context of
# CUDA and the rounding of blocks need the rest.
CARDS = {
    "T4, 16 GB": 16 * 10**9,
    "L4, 24 GB": 24 * 10**9,
    "A100, 40 GB": 40 * 10**9,
    "H100, 80 GB": 80 * 10**9,
    "H200, 141 GB": 141 * 10**9,
}
LENGTH = 1024  # tokens of a sequence
_MOST = 512
_LEFT, _WIDTH = 190, 330


@dataclass(frozen=True)
class FitState:
    """Hold what the explorer shows.

    Parameters
    ----------
    model : str
        A key of `helpers.sizing.MODELS`.
    batch : int
        Sequences of `LENGTH` tokens in a step.
    card : str
        A key of `CARDS`.
    optimizer : str
        A key of `helpers.sizing.OPTIMIZERS`; the default is what Adam does on CUDA.
    """

    model: str = "GPT-2 124M"
    batch: int = 8
    card: str = "T4, 16 GB"
    optimizer: str = "Adam, foreach"


@dataclass(frozen=True)
class Estimates:
    """Hold the bytes of one step by three estimates.

    Attributes
    ----------
    rule : int
        16 bytes for each parameter.
    published : int
        16 bytes for each parameter, and the activations as published for 16-bit training with
        dropout and stored scores: layers · s · b · h · (34 + 5 · a · s / h).
    summed : int
        The sum of `helpers.sizing.forecast`, in float32.
    moment : str
        Where in the step that sum is the peak.
    """

    rule: int
    published: int
    summed: int
    moment: str


def estimate(state: FitState) -> Estimates:
    """Estimate the peak of a step in three ways.

    Parameters
    ----------
    state : FitState

    Returns
    -------
    Estimates

    See Also
    --------
    Korthikanti and others, Reducing Activation Recomputation in Large Transformer Models (2022) :
        https://arxiv.org/abs/2205.05198, equation 1

    Examples
    --------
    >>> found = estimate(FitState())
    >>> format_bytes(found.rule), format_bytes(found.summed), found.moment
    ('1.85 GiB', '10.5 GiB', 'early in backward')
    """
    shape = sizing.MODELS[state.model]
    rule = 16 * shape.parameters
    tokens = state.batch * LENGTH
    kept = shape.layers * tokens * (34 * shape.width + 5 * shape.heads * LENGTH)
    found = sizing.forecast(shape, state.batch, length=LENGTH, optimizer=state.optimizer)
    return Estimates(rule, rule + kept, found.total, found.moment)


def largest_batch(state: FitState) -> int:
    """Return the most sequences that fit by the sum; 0 if one does not.

    Examples
    --------
    >>> largest_batch(FitState())
    11
    """
    low, high = 0, 1

    def fits(batch: int) -> bool:
        return estimate(replace(state, batch=batch)).summed <= CARDS[state.card]

    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def render(state: FitState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : FitState

    Examples
    --------
    >>> print(render(FitState("Llama-2-7B", 1, "H100, 80 GB")).heading)
    Llama-2-7B with 1 sequence does not fit on H100, 80 GB: no sequence does.
    """
    found, budget = estimate(state), CARDS[state.card]
    named = {"16 · parameters": found.rule, "published": found.published, "sum": found.summed}
    rows = [
        [name, format_bytes(size), _error(size, found.summed), "yes" if size <= budget else "no"]
        for name, size in named.items()
    ]
    rows[-1][2] = f"peak {found.moment}"
    table = Table(["estimate", "bytes", "against the sum", "fits"], rows)
    code = (
        f'sizing.forecast(sizing.MODELS["{state.model}"], {state.batch}, '
        f'optimizer="{state.optimizer}").total'
    )
    return _panel.View(_finding(state, found), code, table, _picture(named, state), (700, 215))


def _error(size: int, summed: int) -> str:
    share = 100 * (size / summed - 1)
    return f"{share:+.0f} %".replace("-", "−")


def _finding(state: FitState, found: Estimates) -> str:
    what = f"{state.batch:,} sequence" + ("" if state.batch == 1 else "s")
    most = largest_batch(state)
    fits = "fits" if found.summed <= CARDS[state.card] else "does not fit"
    limit = f"the most is {most:,}" if most else "no sequence does"
    return f"{state.model} with {what} {fits} on {state.card}: {limit}."


def _picture(named: dict[str, int], state: FitState) -> list[Any]:
    budget = CARDS[state.card]
    span = max(budget, *named.values())
    parts: list[Any] = []
    colors = ("reference", "baseline", "memory")
    for row, ((name, size), color) in enumerate(zip(named.items(), colors, strict=True)):
        y = 42 + 40 * row
        parts.append(_panel.Text(10, y + 18, name))
        parts.append(_panel.Bar(_LEFT, y, max(1.0, _WIDTH * size / span), 26, color))
        word = "fits" if size <= budget else "too much"
        parts.append(_panel.Text(_LEFT + _WIDTH + 14, y + 18, f"{format_bytes(size)}, {word}"))
    x = _LEFT + _WIDTH * budget / span
    parts.append(_panel.Line([(x, 32), (x, 160)], "ink", 2, "4 3"))
    label = f"{state.card}: {format_bytes(budget)}"
    parts.append(_panel.Text(min(max(x, 100), 600), 24, label, "ink", "middle"))
    parts.append(_panel.Text(10, 180, f"float32, {state.optimizer}, {LENGTH:,} tokens a sequence"))
    note = "published: for 16-bit training with stored scores; the sum stores none"
    parts.append(_panel.Text(10, 202, note, "reference"))
    return parts


def explore(
    model: str = "GPT-2 124M",
    batch: int = 8,
    *,
    card: str = "T4, 16 GB",
    optimizer: str = "Adam, foreach",
) -> _panel.Panel:
    """Show the explorer "will it fit?".

    Parameters
    ----------
    model : str
        A key of `helpers.sizing.MODELS`.
    batch : int
        Sequences in a step, 1 to 512.
    card : str
        A key of `CARDS`.
    optimizer : str
        A key of `helpers.sizing.OPTIMIZERS`.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If a name is unknown or the batch is out of its range.

    Examples
    --------
    >>> print(explore().text().splitlines()[0])
    GPT-2 124M with 8 sequences fits on T4, 16 GB: the most is 11.
    """
    allowed = {
        "model": (model, sizing.MODELS),
        "card": (card, CARDS),
        "optimizer": (optimizer, sizing.OPTIMIZERS),
    }
    for name, (given, names) in allowed.items():
        if given not in names:
            raise ValueError(f"{name} must be one of {'; '.join(names)}, got {given!r}")
    if not 1 <= batch <= _MOST:
        raise ValueError(f"batch must be from 1 to {_MOST}, got {batch}")

    def controls(change: Callable[..., None], now: Callable[[], FitState]) -> list[Any]:
        return [
            _panel.choice("Model", list(sizing.MODELS), now().model, lambda m: change(model=m)),
            _panel.number("Sequences", 1, _MOST, now().batch, lambda b: change(batch=b)),
            _panel.choice("Card", list(CARDS), now().card, lambda c: change(card=c)),
        ]

    return _panel.Panel(render, FitState(model, batch, card, optimizer), controls, replace)
