"""Explore who holds what when one model is split over ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from helpers.table import Table
from helpers.units import format_bytes
from helpers.widgets import _panel

METHODS = ("DDP", "ZeRO-1", "FSDP2", "FSDP2, root only", "tensor", "pipeline")
OPTIMIZERS = {"SGD": 0, "Adam": 2}  # moments
CATEGORIES = {"parameters": "new", "gradients": "gradient", "optimizer": "memory"}
MOST = 64
_BLOCKS, _WIDTH, _CLASSES = 8, 64, 10
_SHOWN, _HEIGHT, _BASE = 8, 150, 200
# The residual block of notebook 33, and its head: names and shapes.
_BLOCK = {
    "up.weight": (4 * _WIDTH, _WIDTH),
    "up.bias": (4 * _WIDTH,),
    "down.weight": (_WIDTH, 4 * _WIDTH),
    "down.bias": (_WIDTH,),
}
_HEAD = {"head.weight": (_CLASSES, _WIDTH), "head.bias": (_CLASSES,)}


@dataclass(frozen=True)
class RanksState:
    """Hold what the explorer shows.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    ranks : int
        1 to 64.
    optimizer : str
        A key of `OPTIMIZERS`.
    """

    method: str = "FSDP2"
    ranks: int = 4
    optimizer: str = "Adam"


@dataclass(frozen=True)
class Held:
    """Hold the bytes of one rank between two steps, and what is added for a moment.

    Attributes
    ----------
    parameters, gradients, optimizer : int
        What stays.
    moment : int
        Parameters and gradients of the largest gathered unit, whole.
    """

    parameters: int
    gradients: int
    optimizer: int
    moment: int = 0

    @property
    def total(self) -> int:
        """Return what stays."""
        return self.parameters + self.gradients + self.optimizer


def hold(method: str, ranks: int, optimizer: str = "Adam") -> tuple[Held, ...]:
    """Count what each rank holds of eight residual blocks and a head, in float32.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    ranks : int
        How many.
    optimizer : str
        A key of `OPTIMIZERS`; Adam also keeps a counter of 4 bytes for each tensor.

    Returns
    -------
    tuple of Held
        One per rank. Activations are not counted.

    Raises
    ------
    ValueError
        If a name is unknown or the ranks are out of their range.

    Examples
    --------
    >>> [held.total for held in hold("ZeRO-1", 2)]
    [3184352, 3184280]
    """
    _check(method, ranks, optimizer)
    moments = OPTIMIZERS[optimizer]
    trained = _zero_parts(ranks) if method == "ZeRO-1" else None
    moment = _gathered(method) if ranks > 1 else 0
    found = []
    for rank in range(ranks):
        mine = _parts(method, rank, ranks)
        updated = mine if trained is None else trained[rank]
        state = moments * sum(updated) + (len(updated) if moments else 0)
        found.append(Held(4 * sum(mine), 4 * sum(mine), 4 * state, moment))
    return tuple(found)


def _check(method: str, ranks: int, optimizer: str) -> None:
    for name, given, known in (
        ("method", method, METHODS),
        ("optimizer", optimizer, OPTIMIZERS),
    ):
        if given not in known:
            raise ValueError(f"{name} must be one of {'; '.join(known)}, got {given!r}")
    if not 1 <= ranks <= MOST:
        raise ValueError(f"ranks must be from 1 to {MOST}, got {ranks}")


def _shapes() -> list[tuple[str, tuple[int, ...]]]:
    return [*_BLOCK.items()] * _BLOCKS + [*_HEAD.items()]


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _parts(method: str, rank: int, ranks: int) -> list[int]:
    """Return the sizes of what one rank holds of each tensor."""
    if method == "pipeline":
        blocks = (rank + 1) * _BLOCKS // ranks - rank * _BLOCKS // ranks
        held = [*_BLOCK.values()] * blocks + ([*_HEAD.values()] if rank == ranks - 1 else [])
        return [_count(shape) for shape in held]
    return [_part(method, name, shape, rank, ranks) for name, shape in _shapes()]


def _part(method: str, name: str, shape: tuple[int, ...], rank: int, ranks: int) -> int:
    whole = _count(shape)
    if method.startswith("FSDP2"):
        return whole // shape[0] * _chunk(shape[0], rank, ranks)
    if method == "tensor" and name.startswith("up"):
        return whole // shape[0] * _chunk(shape[0], rank, ranks)
    if method == "tensor" and name == "down.weight":
        return shape[0] * _chunk(shape[1], rank, ranks)
    return whole


def _chunk(rows: int, rank: int, ranks: int) -> int:
    """Return the rows of one rank as torch.chunk deals them: late ranks may get fewer, or none."""
    size = -(-rows // ranks)
    return max(0, min(size, rows - rank * size))


def _zero_parts(ranks: int) -> list[list[int]]:
    """Deal whole tensors as ZeroRedundancyOptimizer does: the largest first, to the emptiest."""
    parts: list[list[int]] = [[] for _ in range(ranks)]
    for size in sorted((_count(shape) for _, shape in _shapes()), reverse=True):
        min(parts, key=sum).append(size)
    return parts


def _gathered(method: str) -> int:
    """Return the bytes of the largest gathered unit: its parameters and its gradients, whole."""
    block = sum(_count(shape) for shape in _BLOCK.values())
    model = sum(_count(shape) for _, shape in _shapes())
    return 2 * 4 * {"FSDP2": block, "FSDP2, root only": model}.get(method, 0)


def render(state: RanksState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : RanksState

    Examples
    --------
    >>> print(render(RanksState("ZeRO-1", 2)).heading)
    ZeRO-1 on 2 ranks, Adam: rank 0 holds 3.04 MiB, 75.0 % of one process.
    """
    found = hold(state.method, state.ranks, state.optimizer)
    one = hold("DDP", 1, state.optimizer)[0].total
    shown = sorted({*range(min(_SHOWN, state.ranks)), state.ranks - 1})
    rows = [
        [
            rank,
            *(format_bytes(n) for n in _columns(found[rank])),
            f"{100 * found[rank].total / one:.1f} %",
        ]
        for rank in shown
    ]
    names = ["rank", *CATEGORIES, "for a moment", "of one process"]
    code = f'ranks.hold("{state.method}", {state.ranks}, "{state.optimizer}")'
    picture = _picture(found[:_SHOWN], state, one)
    return _panel.View(_finding(state, found, one), code, Table(names, rows), picture, (760, 262))


def _columns(held: Held) -> tuple[int, int, int, int]:
    return held.parameters, held.gradients, held.optimizer, held.moment


def _finding(state: RanksState, found: tuple[Held, ...], one: int) -> str:
    first = found[0]
    ranks = f"{state.ranks} rank" + ("" if state.ranks == 1 else "s")
    share = f"{100 * first.total / one:.1f} % of one process"
    more = f", and {format_bytes(first.moment)} more for a moment" if first.moment else ""
    return (
        f"{state.method} on {ranks}, {state.optimizer}: rank 0 holds {format_bytes(first.total)}, "
        f"{share}{more}."
    )


def _picture(found: tuple[Held, ...], state: RanksState, one: int) -> list[Any]:
    span = max(one, *(held.total + held.moment for held in found))
    scale = _HEIGHT / span
    parts: list[Any] = []
    for rank, held in enumerate(found):
        parts += _column(20 + 58 * rank, rank, held, scale)
    y = _BASE - scale * one
    parts.append(_panel.Line([(10, y), (490, y)], "ink", 2, "4 3"))
    parts.append(_panel.Text(500, y + 4, f"one process: {format_bytes(one)}"))
    if state.ranks > _SHOWN:
        parts.append(_panel.Text(10, 248, f"the first {_SHOWN} of {state.ranks} ranks"))
    return parts + _legend(found[0])


def _column(x: float, rank: int, held: Held, scale: float) -> list[Any]:
    parts: list[Any] = []
    y = float(_BASE)
    for name, color in CATEGORIES.items():
        height = scale * getattr(held, name)
        y -= height
        parts.append(_panel.Bar(x, y, 44, round(height, 1), color))
    if held.moment:
        top = y - scale * held.moment
        corners = [(x, y), (x, top), (x + 44, top), (x + 44, y)]
        parts.append(_panel.Line(corners, "reference", 2, "3 3"))
    label = f"rank {rank}" if rank == 0 else str(rank)
    return [*parts, _panel.Text(x + 22, _BASE + 20, label, "ink", "middle")]


def _legend(first: Held) -> list[Any]:
    """Name the parts of a column, from top to bottom, with their sizes on rank 0."""
    parts: list[Any] = [_panel.Text(500, 128, "on rank 0:")]
    y = 150
    if first.moment:
        parts.append(_panel.Line([(500, y - 5), (514, y - 5)], "reference", 2, "3 3"))
        parts.append(_panel.Text(522, y, f"for a moment {format_bytes(first.moment)}"))
    for name, color in reversed(CATEGORIES.items()):
        y += 24
        parts.append(_panel.Bar(500, y - 11, 14, 13, color))
        parts.append(_panel.Text(522, y, f"{name} {format_bytes(getattr(first, name))}"))
    return parts


def explore(method: str = "FSDP2", ranks: int = 4, *, optimizer: str = "Adam") -> _panel.Panel:
    """Show the explorer "who holds what".

    Parameters
    ----------
    method : str
        One of `METHODS`.
    ranks : int
        1 to 64.
    optimizer : str
        A key of `OPTIMIZERS`.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If a name is unknown or the ranks are out of their range.

    Examples
    --------
    >>> print(explore("DDP", 2).text().splitlines()[0])
    DDP on 2 ranks, Adam: rank 0 holds 4.05 MiB, 100.0 % of one process.
    """
    _check(method, ranks, optimizer)

    def controls(change: Callable[..., None], now: Callable[[], RanksState]) -> list[Any]:
        return [
            _panel.choice("Method", METHODS, now().method, lambda m: change(method=m)),
            _panel.number("Ranks", 1, MOST, now().ranks, lambda n: change(ranks=n)),
            _panel.choice(
                "Optimizer", list(OPTIMIZERS), now().optimizer, lambda o: change(optimizer=o)
            ),
        ]

    return _panel.Panel(render, RanksState(method, ranks, optimizer), controls, replace)
