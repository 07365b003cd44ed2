"""Explore which cells of the storage a view walks, in which order, and when a copy is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from helpers import memory
from helpers.table import Table
from helpers.widgets import _panel

# Each line is run on x = torch.arange(12).view(3, 4).
OPERATIONS = (
    "x",
    "x.t()",
    "x[1:]",
    "x[:, ::2]",
    "x[:, 1]",
    "x.view(2, 2, 3).permute(2, 0, 1)",
    "x[:, :1].expand(3, 4)",
    "x.reshape(2, 6)",
    "x.t().reshape(12)",
    "x.t().view(12)",
)


@dataclass(frozen=True)
class StrideState:
    """Hold what the explorer shows.

    Parameters
    ----------
    operation : str
        One of `OPERATIONS`.
    element : int
        Which element of the result to follow, counted in the order of its indices.
    """

    operation: str = "x.t()"
    element: int = 1


@dataclass(frozen=True)
class Walk:
    """Hold what was read from the real tensor of one operation.

    Attributes
    ----------
    shape, stride : tuple of int
        Of the result.
    offset : int
        Storage offset, in elements.
    contiguous, shares : bool
        Whether the result is contiguous, and whether it looks into the storage of x.
    cells : tuple of int
        For each element, in the order of its indices, the cell of the storage it lies in.
    storage : tuple of int
        The values in the storage of the result.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    contiguous: bool
    shares: bool
    cells: tuple[int, ...]
    storage: tuple[int, ...]


def walk(operation: str) -> Walk | str:
    """Run an operation and read from its result where each element lies.

    Parameters
    ----------
    operation : str
        One of `OPERATIONS`.

    Returns
    -------
    Walk or str
        The text of the error where the operation raises.

    Raises
    ------
    ValueError
        If it is not one of them: only these lines are ever run.

    Examples
    --------
    >>> walk("x.t()").stride, walk("x.t()").cells[:4]
    ((1, 4), (0, 4, 8, 1))
    """
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, got {operation!r}")
    x = torch.arange(12).view(3, 4)
    try:
        result = eval(operation, {"x": x})
    except RuntimeError as error:
        return str(error)
    size = result.element_size()
    count = result.untyped_storage().nbytes() // size
    flat = torch.empty(0, dtype=result.dtype).set_(result.untyped_storage(), 0, (count,))
    # as_strided over a storage of 0, 1, 2, ... reads out the cells themselves.
    where = torch.arange(count).as_strided(result.shape, result.stride(), result.storage_offset())
    return Walk(
        shape=tuple(result.shape),
        stride=result.stride(),
        offset=result.storage_offset(),
        contiguous=result.is_contiguous(),
        shares=memory.shares_storage(result, x),
        cells=tuple(where.flatten().tolist()),
        storage=tuple(flat.tolist()),
    )


def indices(shape: tuple[int, ...], element: int) -> tuple[int, ...]:
    """Return the indices of an element that is counted in the order of the indices.

    Examples
    --------
    >>> indices((3, 4), 6)
    (1, 2)
    """
    found = []
    for size in reversed(shape):
        element, index = divmod(element, size)
        found.append(index)
    return tuple(reversed(found))


def render(state: StrideState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : StrideState
        An element past the end counts as the last one.

    Examples
    --------
    >>> render(StrideState("x[1:]", 0)).heading
    'x[1:] is a view: it looks into the storage of x.'
    """
    found = walk(state.operation)
    if isinstance(found, str):
        return _refusal(state, found)
    element = min(state.element, len(found.cells) - 1)
    index = indices(found.shape, element)
    steps = [f"{i}·{s}" for i, s in zip(index, found.stride, strict=True)]
    total = f"{found.offset} + {' + '.join(steps)} = {found.cells[element]}"
    kind = "a view: it looks into" if found.shares else "a copy: it does not look into"
    heading = f"{state.operation} is {kind} the storage of x."
    rows = [
        ["shape", found.shape],
        ["stride", found.stride],
        ["storage offset", found.offset],
        ["contiguous", found.contiguous],
        ["looks into the storage of x", found.shares],
        ["cells, in order", " ".join(map(str, found.cells))],
        [f"element {index}", f"offset + Σ index · stride = {total}"],
    ]
    parts, height = _draw(found, element, total)
    table = Table(["fact", "value"], rows)
    return _panel.View(heading, _code(state.operation), table, parts, (560, height))


def _last(operation: str) -> int:
    """Return the number of the last element of the result."""
    found = walk(operation)
    return 11 if isinstance(found, str) else len(found.cells) - 1


def _code(operation: str) -> str:
    return f"x = torch.arange(12).view(3, 4); y = {operation}"


def _refusal(state: StrideState, error: str) -> _panel.View:
    heading = f"{state.operation} raises: no strides can walk the cells in this order."
    text = "RuntimeError: view refuses. The storage stays as it is:"
    parts = [_panel.Text(10, 24, text), *_tape(tuple(range(12)), {}, None, y=60)]
    table = Table(["fact", "value"], [["raises", f"RuntimeError: {error}"]])
    return _panel.View(heading, _code(state.operation), table, parts, (560, 130))


def _draw(found: Walk, element: int, total: str) -> tuple[list, int]:
    """Draw the tensor as a grid above the tape of its storage, with an arrow between."""
    grid, places, depth = _grid(found, element)
    tape_y = depth + 62
    order: dict[int, list[int]] = {}
    for number, place in enumerate(found.cells):
        order.setdefault(place, []).append(number)
    chosen = found.cells[element]
    arrow = _panel.Arrow(
        (places[element][0] + 20, depth + 4),
        (10 + 44 * chosen + 20, tape_y - 5),
        "gradient",
    )
    owner = "the storage of x" if found.shares else "a storage of its own"
    parts = [
        arrow,
        _panel.Text(10, 18, f"the tensor, shape {found.shape}"),
        *grid,
        *_tape(found.storage, order, chosen, y=tape_y),
        _panel.Text(10, tape_y + 68, f"{owner}; below each cell its number in the walk"),
        _panel.Text(10, tape_y + 88, f"offset + Σ index · stride = {total}"),
    ]
    if found.shares:
        return parts, tape_y + 100
    below = tape_y + 112
    kept = _tape(tuple(range(12)), {}, None, y=below)
    note = "the storage of x: no element of the tensor lies in it"
    return [*parts, *kept, _panel.Text(10, below + 48, note)], below + 60


def _grid(found: Walk, element: int) -> tuple[list, list[tuple[float, float]], int]:
    """Return the boxes of the tensor, where each one stands, and how far down they reach."""
    shape = (1,) * (2 - len(found.shape)) + found.shape
    *planes, height, width = shape
    parts, places = [], []
    count = 1
    for size in planes:
        count *= size
    for number, place in enumerate(found.cells):
        plane, row, column = number // (height * width), number // width % height, number % width
        x = 10 + 42 * column + plane * (42 * width + 18)
        y = 28 + 32 * row
        places.append((x, y))
        edge = "gradient" if number == element else "reference"
        value = str(found.storage[place])
        parts.append(_panel.Box(x, y, value, "paper", "ink", edge, marked=number == element))
    return parts, places, 28 + 32 * height


def _tape(storage, order, chosen, *, y: int) -> list:
    """Return the cells of a storage; those that the tensor reaches are filled."""
    parts = []
    for place, value in enumerate(storage):
        x = 10 + 44 * place
        reached = place in order
        fill, ink = ("memory", "paper") if reached else ("paper", "reference")
        edge = "gradient" if place == chosen else "reference"
        parts.append(_panel.Box(x, y, str(value), fill, ink, edge, marked=place == chosen))
        if reached:
            numbers = order[place]
            text = f"#{numbers[0]}" if len(numbers) == 1 else f"×{len(numbers)}"
            parts.append(_panel.Text(x + 20, y + 46, text, anchor="middle"))
    return parts


def explore(operation: str = "x.t()", element: int = 1) -> _panel.Panel:
    """Show the stride explorer.

    Parameters
    ----------
    operation : str
        One of `OPERATIONS`, shown first.
    element : int
        Element to follow, counted from 0 in the order of its indices.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If the operation is not one of them, or its result has no such element.

    Examples
    --------
    >>> print(explore("x[:, ::2]", 3).text().splitlines()[0])
    x[:, ::2] is a view: it looks into the storage of x.
    """
    if not 0 <= element <= _last(operation):
        raise ValueError(
            f"element must be from 0 to {_last(operation)} for {operation}, got {element}"
        )

    def controls(change, now):
        last, first = _last(now().operation), now().element
        field = _panel.number("Element", 0, last, first, lambda n: change(element=n))

        def take(name):
            change(operation=name)
            field.max = _last(name)  # lowers the element where the result has fewer

        return [_panel.choice("Operation", OPERATIONS, now().operation, take), field]

    return _panel.Panel(render, StrideState(operation, element), controls, replace)
