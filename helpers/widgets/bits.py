"""Explore how a format stores a number: its bits, the error, the step to the next number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from helpers.table import Table
from helpers.widgets import _panel


@dataclass(frozen=True)
class Format:
    """Describe a floating-point format.

    Attributes
    ----------
    dtype : torch.dtype
        The dtype that has it.
    exponent, fraction : int
        Bits of each; one more bit holds the sign.
    """

    dtype: torch.dtype
    exponent: int
    fraction: int


FORMATS = {
    "float32": Format(torch.float32, 8, 23),
    "float16": Format(torch.float16, 5, 10),
    "bfloat16": Format(torch.bfloat16, 8, 7),
    "float8 e4m3": Format(torch.float8_e4m3fn, 4, 3),
    "float8 e5m2": Format(torch.float8_e5m2, 5, 2),
}
ADDED = 1e-3
_STEPS = 8  # neighbors on either side
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
_BITS_IN_ROW = 16


@dataclass(frozen=True)
class BitsState:
    """Hold what the explorer shows.

    Parameters
    ----------
    number : str
        As typed.
    format : str
        A key of `FORMATS`.
    steps : int
        How many numbers of the format to go up from the one stored; negative to go down.
    """

    number: str = "1.0"
    format: str = "bfloat16"
    steps: int = 0


@dataclass(frozen=True)
class Stored:
    """Hold what a format makes of a number.

    Attributes
    ----------
    bits : str
        Sign, exponent and fraction, the highest bit first.
    value : float
        The number that is stored.
    gap : float or None
        Distance to the next number away from zero; None beside the largest one.
    added : float
        What the format makes of ``value + 0.001``.
    """

    bits: str
    value: float
    gap: float | None
    added: float


def parse(text: str) -> float | str:
    """Read a number, or say what is wrong with it.

    Examples
    --------
    >>> parse("1e-3"), parse("1/3")
    (0.001, "write a number such as 1.5 or 1e-3; got '1/3'")
    """
    try:
        return float(text)
    except ValueError:
        return f"write a number such as 1.5 or 1e-3; got {text[:40]!r}"


def store(number: float, format: str, *, steps: int = 0) -> Stored:
    """Store a number in a format, go some numbers up or down, and read what is there.

    Parameters
    ----------
    number : float
        Any, also infinity and NaN.
    format : str
        A key of `FORMATS`.
    steps : int
        Up if positive, down if negative; the walk ends at the largest number.

    Returns
    -------
    Stored
        Read from a real tensor.

    Raises
    ------
    ValueError
        If there is no such format.

    Examples
    --------
    >>> store(1.0, "bfloat16")
    Stored(bits='0011111110000000', value=1.0, gap=0.0078125, added=1.0)
    >>> store(1.0, "bfloat16", steps=1).value
    1.0078125
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    dtype = FORMATS[format].dtype
    stored = torch.tensor(number, dtype=torch.float64).to(dtype)
    pattern = _walk(_pattern(stored), steps, dtype)
    value = _number(pattern, dtype)
    sum_ = torch.tensor(value + ADDED if math.isfinite(value) else value, dtype=torch.float64)
    width = 8 * dtype.itemsize
    gap = _number(pattern + 1, dtype) - value if math.isfinite(value) else math.nan
    return Stored(
        bits=f"{pattern:0{width}b}",
        value=value,
        gap=abs(gap) if math.isfinite(gap) else None,
        added=sum_.to(dtype).double().item(),
    )


def _pattern(x: torch.Tensor) -> int:
    """Return the bits of one number as an integer without a sign."""
    size = x.dtype.itemsize
    return x.view(_INTEGERS[size]).item() % (1 << 8 * size)


def _number(pattern: int, dtype: torch.dtype) -> float:
    size = dtype.itemsize
    if size > 1 and pattern >> (8 * size - 1):  # the integers have a sign of their own
        pattern -= 1 << 8 * size
    return torch.tensor(pattern, dtype=_INTEGERS[size]).view(dtype).double().item()


def _walk(pattern: int, steps: int, dtype: torch.dtype) -> int:
    """Count numbers up or down: without their sign, patterns are in the order of the numbers."""
    sign = 1 << (8 * dtype.itemsize - 1)
    if math.isnan(_number(pattern, dtype)) or not steps:
        return pattern
    largest = _pattern(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).to(dtype))
    place = (pattern & (sign - 1)) * (-1 if pattern & sign else 1) + steps
    place = max(-largest, min(largest, place))
    return sign | -place if place < 0 else place


def render(state: BitsState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Examples
    --------
    >>> render(BitsState("1", "bfloat16")).heading
    'bfloat16 stores 1 as 1; the next number is 0.0078125 away, and 1 + 0.001 gives 1.'
    """
    number = parse(state.number)
    if isinstance(number, str):
        table = Table(["field", "typed"], [["number", state.number[:40]]])
        note = _panel.Text(10, 24, "No picture: the number cannot be read.")
        return _panel.View(f"Number: {number}.", "x", table, [note], (700, 40))
    found = store(number, state.format, steps=state.steps)
    form = FORMATS[state.format]
    parts, height = _picture(found, form)
    code = f"x = torch.tensor({number!r}).to({form.dtype})"
    return _panel.View(
        _finding(state, found), code, _table(state, number, found), parts, (700, height)
    )


def _text(value: float) -> str:
    return f"{value:.9g}"


def _finding(state: BitsState, found: Stored) -> str:
    value = _text(found.value)
    what = f"{state.format} stores {state.number.strip()[:40]} as {value}"
    if state.steps:
        way = "up" if state.steps > 0 else "down"
        what = (
            f"{abs(state.steps)} {way} from {state.number.strip()[:40]}, {state.format} has {value}"
        )
    if not math.isfinite(found.value):
        return f"{what}: no number of this format is there."
    gap = (
        "no larger number follows"
        if found.gap is None
        else (f"the next number is {_text(found.gap)} away")
    )
    return f"{what}; {gap}, and {value} + {ADDED} gives {_text(found.added)}."


def _table(state: BitsState, number: float, found: Stored) -> Table:
    form = FORMATS[state.format]
    cut = 1 + form.exponent
    error = found.value - number
    rows = [
        ["bits for sign, exponent, fraction", f"1, {form.exponent}, {form.fraction}"],
        ["sign", found.bits[0]],
        ["exponent", f"{found.bits[1:cut]} ({_power(found.bits[1:cut], form)})"],
        ["fraction", found.bits[cut:]],
        ["stored", _text(found.value)],
        ["error", _text(error) if math.isfinite(error) else "-"],
        ["to the next number", "-" if found.gap is None else _text(found.gap)],
        [f"after + {ADDED}", _text(found.added)],
        ["smallest normal number", _text(torch.finfo(form.dtype).smallest_normal)],
        ["largest number", _text(torch.finfo(form.dtype).max)],
    ]
    return Table(["fact", "value"], rows)


def _power(exponent: str, form: Format) -> str:
    """Say which power of two the exponent's bits stand for."""
    bias = (1 << (form.exponent - 1)) - 1
    stored = int(exponent, 2)
    all_ones = (1 << form.exponent) - 1
    if stored == all_ones and form.dtype is not torch.float8_e4m3fn:
        return "infinity or NaN"
    return f"2^{max(stored, 1) - bias}" if stored else f"2^{1 - bias}, subnormal"


def _picture(found: Stored, form: Format) -> tuple[list[Any], int]:
    """Draw each bit in its group's color; the groups are named under them too."""
    groups = [
        ("sign", "gradient", 1),
        ("exponent: range", "new", form.exponent),
        ("fraction: steps", "memory", form.fraction),
    ]
    parts: list[Any] = []
    place = 0
    for name, role, count in groups:
        label = place
        for bit in found.bits[place : place + count]:
            row, column = divmod(place, _BITS_IN_ROW)
            if bit == "1":
                box = _panel.Box(10 + 42 * column, 30 + 70 * row, bit, role, "paper", "reference")
            else:
                box = _panel.Box(10 + 42 * column, 30 + 70 * row, bit, "paper", "ink", role)
            parts.append(box)
            place += 1
        row, column = divmod(label, _BITS_IN_ROW)
        # The names of sign and exponent would touch, so every other one stands above.
        y = (22 if name != "exponent: range" else 78) + 70 * row
        parts.append(_panel.Text(10 + 42 * column, y, name, role))
    height = 30 + 70 * math.ceil(len(found.bits) / _BITS_IN_ROW)
    parts.append(_panel.Text(10, height + 4, "filled: 1 · outlined: 0", "reference"))
    return parts, height + 14


def explore(number: float = 1.0, format: str = "bfloat16", *, steps: int = 0) -> _panel.Panel:
    """Show the bit explorer.

    Parameters
    ----------
    number : float
        The number shown first.
    format : str
        A key of `FORMATS`.
    steps : int
        From -8 to 8: how many numbers of the format to go up.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If the format is not one of them or the steps are out of range.

    Examples
    --------
    >>> print(explore(2.0, "float16").text().splitlines()[0])
    float16 stores 2.0 as 2; the next number is 0.001953125 away, and 2 + 0.001 gives 2.00195312.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if not -_STEPS <= steps <= _STEPS:
        raise ValueError(f"steps must be from {-_STEPS} to {_STEPS}, got {steps}")

    def controls(change: Callable[..., None], now: Callable[[], BitsState]) -> list[Any]:
        return [
            _field("Number", now().number, lambda text: change(number=text)),
            _panel.choice("Format", list(FORMATS), now().format, lambda f: change(format=f)),
            _panel.number(
                "Numbers up", -_STEPS, _STEPS, now().steps, lambda steps: change(steps=steps)
            ),
        ]

    return _panel.Panel(render, BitsState(str(number), format, steps), controls, replace)


def _field(label: str, value: str, take: Callable[[str], None]) -> Any:
    """Return a field for a text that is read at every key press; its label is its name."""
    import ipywidgets as widgets

    shown = widgets.Text(value=value, description=label, continuous_update=True)
    shown.style.description_width = "initial"
    shown.observe(lambda event: take(event["new"]), names="value")
    return shown
