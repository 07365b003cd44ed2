"""Explore how two shapes meet: what stretches, what fails, and which bytes are new."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from helpers import memory
from helpers.table import Table
from helpers.units import format_bytes
from helpers.widgets import _panel

OPERATIONS = ("a + b", "a += b")
_DIMENSIONS = 4
_ELEMENTS = 1_000_000  # of an input: inputs are real tensors, a result need not be
_SHOWN = 5  # rows and columns of a grid


@dataclass(frozen=True)
class BroadcastState:
    """Hold what the explorer shows.

    Parameters
    ----------
    a, b : str
        The two shapes as typed: sizes with commas between them; nothing for a scalar.
    operation : str
        One of `OPERATIONS`.
    """

    a: str = "5, 1"
    b: str = "5"
    operation: str = "a + b"


@dataclass(frozen=True)
class Side:
    """Hold what was read from one real input and its broadcast view.

    Attributes
    ----------
    shape : tuple of int
        Of the input.
    stretched : tuple of int
        Dimensions of the view, counted from the left, along which the input is repeated.
    stride : tuple of int
        Of the view: 0 along a stretched dimension.
    kept, seen : int
        Bytes that the view keeps in memory, and bytes that it shows.
    shares : bool
        Whether the view looks into the storage of the input.
    """

    shape: tuple[int, ...]
    stretched: tuple[int, ...]
    stride: tuple[int, ...]
    kept: int
    seen: int
    shares: bool


@dataclass(frozen=True)
class Meeting:
    """Hold how two shapes meet.

    Attributes
    ----------
    shape : tuple of int
        Of the result.
    a, b : Side
        The inputs.
    new : int
        Bytes of the result that are new; 0 where it is written into a.
    """

    shape: tuple[int, ...]
    a: Side
    b: Side
    new: int


def parse(text: str) -> tuple[int, ...] | str:
    """Read a shape, or say what is wrong with it.

    Parameters
    ----------
    text : str
        Sizes with commas between them; brackets and a last comma are allowed.

    Returns
    -------
    tuple of int or str
        The text of the objection where it is no shape that the explorer can hold.

    Examples
    --------
    >>> parse("(4, 1)"), parse("3,"), parse("")
    ((4, 1), (3,), ())
    >>> parse("4, x")
    "write sizes with commas between them, such as 4, 1; got '4, x'"
    """
    inner = text.strip().removeprefix("(").removesuffix(")").strip().removesuffix(",")
    parts = [part.strip() for part in inner.split(",")] if inner.strip() else []
    if not all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts):
        return f"write sizes with commas between them, such as 4, 1; got {text[:40]!r}"
    shape = tuple(int(part) for part in parts)
    if len(shape) > _DIMENSIONS:
        return f"use at most {_DIMENSIONS} dimensions, got {len(shape)}"
    if _count(shape) > _ELEMENTS:
        return f"use at most {_ELEMENTS:,} elements, got {_count(shape):,}"
    return shape


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def meet(a: tuple[int, ...], b: tuple[int, ...], *, operation: str = "a + b") -> Meeting | str:
    """Run an operation on real float32 tensors of these shapes and read what became of them.

    Parameters
    ----------
    a, b : tuple of int
        The shapes.
    operation : str
        One of `OPERATIONS`.

    Returns
    -------
    Meeting or str
        The text of torch's error where the operation raises. The result of ``a + b`` is sized, not
        computed: it may be larger than memory.

    Raises
    ------
    ValueError
        If the operation is not one of them.

    Examples
    --------
    >>> meet((5, 1), (5,)).shape, meet((5, 1), (5,)).a.stride
    ((5, 5), (1, 0))
    >>> meet((3, 2), (3,))
    'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1'
    """
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, got {operation!r}")
    inputs = torch.zeros(a), torch.zeros(b)
    try:
        views = torch.broadcast_tensors(*inputs)
        if operation == "a += b":
            inputs[0].add_(inputs[1])
    except RuntimeError as error:
        return str(error)
    sides = [_side(x, view) for x, view in zip(inputs, views, strict=True)]
    new = 4 * _count(views[0].shape) if operation == "a + b" else 0
    return Meeting(tuple(views[0].shape), *sides, new)


def _side(x: torch.Tensor, view: torch.Tensor) -> Side:
    sizes = _padded(tuple(x.shape), view.dim())
    return Side(
        shape=tuple(x.shape),
        stretched=tuple(d for d, size in enumerate(sizes) if _grows(size, view.shape[d])),
        stride=view.stride(),
        kept=memory.storage_bytes(view),
        seen=memory.tensor_bytes(view),
        shares=memory.shares_storage(view, x),
    )


def _padded(shape: tuple[int, ...], length: int) -> tuple[int | None, ...]:
    """Align a shape on the right; None stands for a dimension that it lacks."""
    return (None,) * (length - len(shape)) + shape


def _grows(size: int | None, together: int) -> bool:
    return (1 if size is None else size) != together


def render(state: BroadcastState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : BroadcastState
        Shapes that cannot be read are named in the heading.

    Examples
    --------
    >>> render(BroadcastState("3, 2", "3")).heading
    'a + b raises: dimension 1 has the sizes 2 and 3, and neither is 1.'
    """
    shapes = parse(state.a), parse(state.b)
    code = f"a, b = torch.zeros({shapes[0]}), torch.zeros({shapes[1]}); {state.operation}"
    for name, shape in zip("ab", shapes, strict=True):
        if isinstance(shape, str):
            table = Table(["shape", "typed"], [["a", state.a[:40]], ["b", state.b[:40]]])
            note = _panel.Text(10, 24, "No picture: a shape cannot be read.")
            return _panel.View(f"Shape of {name}: {shape}.", "a, b", table, [note], (700, 40))
    found = meet(*shapes, operation=state.operation)
    parts, height = _alignment(*shapes, found)
    if isinstance(found, str):
        table = Table(["tensor", "shape"], [["a", shapes[0]], ["b", shapes[1]], ["torch", found]])
        return _panel.View(_refusal(*shapes, state.operation), code, table, parts, (700, height))
    grids, height = _grids(found, state.operation, height)
    return _panel.View(
        _finding(found, state.operation),
        code,
        _table(found, state.operation),
        [*parts, *grids],
        (700, height),
    )


def _clash(a: tuple[int, ...], b: tuple[int, ...]) -> list[int]:
    """Return the dimensions, counted from the left of the longer shape, in which two sizes clash."""
    length = max(len(a), len(b))
    pairs = zip(_padded(a, length), _padded(b, length), strict=True)
    return [d for d, (i, j) in enumerate(pairs) if i != j and not {i, j} & {1, None}]


def _refusal(a: tuple[int, ...], b: tuple[int, ...], operation: str) -> str:
    clash = _clash(a, b)
    if not clash:
        together = tuple(torch.broadcast_shapes(a, b))
        return f"{operation} raises: the result has shape {together}, and a has room for {a}."
    d, length = clash[-1], max(len(a), len(b))
    i, j = _padded(a, length)[d], _padded(b, length)[d]
    return f"{operation} raises: dimension {d} has the sizes {i} and {j}, and neither is 1."


def _finding(found: Meeting, operation: str) -> str:
    both = [
        f"{name} stretches along {_dimensions(side.stretched)}"
        for name, side in (("a", found.a), ("b", found.b))
        if side.stretched
    ]
    return f"{operation} has shape {found.shape}: {', '.join(both) or 'nothing stretches'}."


def _dimensions(numbers: tuple[int, ...]) -> str:
    *rest, last = map(str, numbers)
    return f"dimensions {', '.join(rest)} and {last}" if rest else f"dimension {last}"


def _table(found: Meeting, operation: str) -> Table:
    rows = [
        [name, side.shape, side.stride, format_bytes(side.kept), format_bytes(side.seen)]
        for name, side in (("a", found.a), ("b", found.b))
    ]
    new = format_bytes(found.new) if operation == "a + b" else "written into a"
    rows.append(["result", found.shape, "-", new, format_bytes(4 * _count(found.shape))])
    return Table(["tensor", "shape", "strides as read", "bytes in memory", "bytes shown"], rows)


def _size_text(size: int) -> str:
    """Write a size in at most five characters.

    Examples
    --------
    >>> [_size_text(n) for n in (7, 9999, 20_000, 123_456, 1_000_000)]
    ['7', '9999', '20k', '123k', '1M']
    """
    for factor, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= factor and size >= 10_000:
            return f"{size / factor:.3g}{letter}"
    return str(size)


def _alignment(
    a: tuple[int, ...], b: tuple[int, ...], found: Meeting | str
) -> tuple[list[Any], int]:
    """Return the shapes under each other, aligned on the right, and how far down they reach."""
    length, clash = max(len(a), len(b)), _clash(a, b)
    together = (None,) * length if clash else tuple(torch.broadcast_shapes(a, b))
    if isinstance(found, str) and not clash:  # in place: a has no room for the result
        clash = [d for d, size in enumerate(_padded(a, length)) if _grows(size, together[d])]
    parts: list[Any] = [_panel.Text(10, 20, "dimension", "reference")]
    parts += [_panel.Text(120 + 46 * d, 20, str(d), "reference", "middle") for d in range(length)]
    if not length:
        parts.append(_panel.Text(100, 48, "two scalars: no dimension to align"))
    for row, (name, shape) in enumerate((("a", a), ("b", b), ("result", together))):
        parts.append(_panel.Text(10, 48 + 36 * row, name))
        for d, size in enumerate(_padded(shape, length)):
            if name != "result":
                parts.append(_size_box(d, row, size, together[d], clash=d in clash))
            elif size is None and d in clash:
                parts.append(_panel.Box(100 + 46 * d, 100, "no", "paper", "ink", "gradient", True))
            elif size is not None:
                parts.append(_size_box(d, row, size, size, clash=False))
    return parts, 140


def _size_box(d: int, row: int, size: int | None, together: int | None, *, clash: bool) -> Any:
    """Return one size: filled where it counts, outlined where it stretches, framed in a clash."""
    text = "(1)" if size is None else _size_text(size)
    x, y = 100 + 46 * d, 28 + 36 * row
    if clash:
        return _panel.Box(x, y, text, "paper", "ink", "gradient", marked=True)
    if size is None or together is not None and _grows(size, together):
        return _panel.Box(x, y, text, "paper", "ink", "reference")
    return _panel.Box(x, y, text, "memory", "paper", "reference")


def _grids(found: Meeting, operation: str, top: int) -> tuple[list[Any], int]:
    """Return both inputs as they are read and the result, last two dimensions, side by side."""
    rows, columns = (min(size, _SHOWN) for size in ((1, 1) + found.shape)[-2:])
    places = [(i, j) for i in range(rows) for j in range(columns)]
    width, y = max(42 * columns + 24, 150), top + 40
    bottom = y + 32 * max(rows, 1) + 16
    new = f"new: {format_bytes(found.new)}" if operation == "a + b" else "written into a"
    lines = [f"in memory: {format_bytes(side.kept)}" for side in (found.a, found.b)] + [new]
    parts: list[Any] = []
    for place, (title, line) in enumerate(zip(("a", "b", operation), lines, strict=True)):
        x = 10 + width * place
        parts += [_panel.Text(x, y - 10, title), _panel.Text(x, bottom, line)]
        parts += [_cell(found, title, i, j, x + 42 * j, y + 32 * i) for i, j in places]
    parts.append(_panel.Text(10, bottom + 28, _legend(found), "reference"))
    return parts, bottom + 40


def _cell(found: Meeting, title: str, i: int, j: int, x: float, y: float) -> _panel.Box:
    """Return a cell of a grid: one in memory is filled, one that is read again is outlined."""
    a, b = _value(found.a, i, j), 100 * _value(found.b, i, j)
    value = str({"a": a, "b": b}.get(title, a + b))
    side = {"a": found.a, "b": found.b}.get(title)
    if side is not None and _is_ghost(side, i, j):
        return _panel.Box(x, y, value, "paper", "reference", "reference")
    return _panel.Box(x, y, value, "memory", "paper", "reference")


def _steps(side: Side, i: int, j: int) -> list[tuple[int, int]]:
    """Pair the indices of the last two dimensions with their strides."""
    return list(zip((i, j), ((0, 0) + side.stride)[-2:], strict=True))


def _value(side: Side, i: int, j: int) -> int:
    return sum(index * stride for index, stride in _steps(side, i, j)) % 100


def _is_ghost(side: Side, i: int, j: int) -> bool:
    return any(index and not stride for index, stride in _steps(side, i, j))


def _legend(found: Meeting) -> str:
    shown = ((1, 1) + found.shape)[-2:]
    cut = "" if max(shown) <= _SHOWN and len(found.shape) <= 2 else " · a corner is drawn"
    if not _count(found.shape):
        return "no cell: a size is 0"
    return f"filled: in memory · outlined: the same cell read again, stride 0{cut}"


def explore(
    a: tuple[int, ...] = (5, 1), b: tuple[int, ...] = (5,), *, operation: str = "a + b"
) -> _panel.Panel:
    """Show the broadcasting explorer.

    Parameters
    ----------
    a, b : tuple of int
        The shapes shown first.
    operation : str
        One of `OPERATIONS`.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If the operation is not one of them, or a shape is none that the explorer can hold.

    Examples
    --------
    >>> print(explore((2, 3), (3,)).text().splitlines()[0])
    a + b has shape (2, 3): b stretches along dimension 0.
    """
    texts = [", ".join(map(str, shape)) for shape in (a, b)]
    for name, shape in zip("ab", map(parse, texts), strict=True):
        if not isinstance(shape, tuple):
            raise ValueError(f"shape of {name}: {shape}")  # noqa: TRY004 - the text is at fault
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, got {operation!r}")

    def controls(change: Callable[..., None], now: Callable[[], BroadcastState]) -> list[Any]:
        return [
            _shape_field("Shape of a", now().a, lambda text: change(a=text)),
            _shape_field("Shape of b", now().b, lambda text: change(b=text)),
            _panel.choice("Operation", OPERATIONS, now().operation, lambda o: change(operation=o)),
        ]

    return _panel.Panel(render, BroadcastState(*texts, operation), controls, replace)


def _shape_field(label: str, value: str, take: Callable[[str], None]) -> Any:
    """Return a field for a text that is read at every key press; its label is its name."""
    import ipywidgets as widgets

    shown = widgets.Text(value=value, description=label, continuous_update=True)
    shown.style.description_width = "initial"
    shown.observe(lambda event: take(event["new"]), names="value")
    return shown
