"""Explore what a conversion shares: write on one side, and see the bytes of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from helpers.table import Table
from helpers.widgets import _panel

# Each line is run with a = np.arange(6, dtype=np.float32).
CONVERSIONS = (
    "torch.from_numpy(a)",
    "torch.from_numpy(a)[::2]",
    "torch.as_tensor(a)",
    "torch.as_tensor(a, dtype=torch.float64)",
    "torch.tensor(a)",
    "torch.from_numpy(a).clone()",
)
SIDES = ("a[2] = 77", "a[3] = 77", "t[1] = 77")


@dataclass(frozen=True)
class SharingState:
    """Hold what the explorer shows.

    Parameters
    ----------
    conversion : str
        One of `CONVERSIONS`.
    write : str
        One of `SIDES`.
    """

    conversion: str = CONVERSIONS[0]
    write: str = SIDES[0]


@dataclass(frozen=True)
class Written:
    """Hold both sides after the write, read from the real objects.

    Attributes
    ----------
    array, tensor : tuple of float
        The values on each side.
    changed_array, changed_tensor : dict of int to tuple of str
        For each element that the write changed its bytes before and after, in hexadecimal.
    distance : int or None
        Bytes from the first element of the array to that of the tensor; None if no byte is common.
    step : int
        Bytes between two elements of the tensor.
    itemsize : int
        Bytes of one element of the tensor.
    """

    array: tuple[float, ...]
    tensor: tuple[float, ...]
    changed_array: dict[int, tuple[str, str]]
    changed_tensor: dict[int, tuple[str, str]]
    distance: int | None
    step: int
    itemsize: int


def write(conversion: str, line: str) -> Written:
    """Convert, run one writing line, and read both sides.

    Parameters
    ----------
    conversion : str
        One of `CONVERSIONS`.
    line : str
        One of `SIDES`.

    Raises
    ------
    ValueError
        If it is not one of them: only these lines are ever run.

    Examples
    --------
    >>> write("torch.from_numpy(a)", "a[2] = 77").tensor
    (0.0, 1.0, 77.0, 3.0, 4.0, 5.0)
    >>> write("torch.tensor(a)", "a[2] = 77").changed_tensor
    {}
    """
    for given, known in ((conversion, CONVERSIONS), (line, SIDES)):
        if given not in known:
            raise ValueError(f"the line must be one of {', '.join(known)}, got {given!r}")
    a = np.arange(6, dtype=np.float32)
    names = {"a": a, "np": np, "torch": torch}
    t = names["t"] = eval(conversion, names)
    before = _elements(a), _elements(t.numpy())
    exec(line, names)  # noqa: S102 - one of the lines above
    common = np.shares_memory(a, t.numpy())
    return Written(
        array=tuple(a.tolist()),
        tensor=tuple(t.tolist()),
        changed_array=_changes(before[0], _elements(a)),
        changed_tensor=_changes(before[1], _elements(t.numpy())),
        distance=t.data_ptr() - a.ctypes.data if common else None,
        step=t.stride(0) * t.element_size(),
        itemsize=t.element_size(),
    )


def _elements(array: np.ndarray) -> list[str]:
    """Return the bytes of each element, in the order in which they lie in memory."""
    return [element.tobytes().hex(" ") for element in array]


def _changes(before: list[str], after: list[str]) -> dict[int, tuple[str, str]]:
    pairs = enumerate(zip(before, after, strict=True))
    return {i: (old, new) for i, (old, new) in pairs if old != new}


def render(state: SharingState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Examples
    --------
    >>> render(SharingState("torch.tensor(a)", "a[2] = 77")).heading
    'The write a[2] = 77 stays on its side: no byte is common.'
    """
    found = write(state.conversion, state.write)
    both = bool(found.changed_array) and bool(found.changed_tensor)
    if both:
        heading = f"The write {state.write} shows on both sides: they look at the same bytes."
    elif found.distance is not None:
        heading = f"The write {state.write} hit bytes that only one side looks at."
    else:
        heading = f"The write {state.write} stays on its side: no byte is common."
    rows = [
        ["array a", " ".join(f"{v:g}" for v in found.array)],
        ["tensor t", " ".join(f"{v:g}" for v in found.tensor)],
        ["bytes that changed in a", _listed("a", found.changed_array)],
        ["bytes that changed in t", _listed("t", found.changed_tensor)],
        [
            "t begins, from a's first byte",
            "elsewhere" if found.distance is None else f"+{found.distance} B",
        ],
        ["t steps by", f"{found.step} B"],
    ]
    code = f"a = np.arange(6, dtype=np.float32); t = {state.conversion}; {state.write}"
    return _panel.View(heading, code, Table(["fact", "value"], rows), _draw(found), (700, 154))


def _listed(name: str, changed: dict[int, tuple[str, str]]) -> str:
    return ", ".join(f"{name}[{i}]: {old} → {new}" for i, (old, new) in changed.items()) or "none"


def _draw(found: Written) -> list:
    """Draw the array over the tensor, in one block where bytes are common and in two elsewhere."""
    per_byte = 11
    left = 110
    parts = [_panel.Text(10, 44, "array a"), _panel.Text(10, 104, "tensor t")]
    for i, value in enumerate(found.array):
        parts.append(_box(left + 4 * i * per_byte, 24, value, "baseline", i in found.changed_array))
    shift = left if found.distance is None else left + found.distance * per_byte
    if found.distance is None:
        shift = left + 6 * 4 * per_byte + 40
        parts.append(_panel.Text(shift, 68, "another block"))
    for i, value in enumerate(found.tensor):
        x = shift + i * found.step * per_byte * (
            4 / found.itemsize if found.distance is None else 1
        )
        parts.append(_box(x, 84, value, "memory", i in found.changed_tensor))
    parts.append(_panel.Text(10, 142, "A thick frame marks what the write changed."))
    return parts


def _box(x: float, y: float, value: float, kind: str, changed: bool) -> _panel.Box:
    edge = "gradient" if changed else "paper"
    return _panel.Box(x, y, f"{value:g}", kind, "paper", edge, marked=changed)


def explore(conversion: str = CONVERSIONS[0]) -> _panel.Panel:
    """Show the sharing explorer.

    Parameters
    ----------
    conversion : str
        One of `CONVERSIONS`, shown first.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If the conversion is not one of them.

    Examples
    --------
    >>> print(explore().text().splitlines()[0])
    The write a[2] = 77 shows on both sides: they look at the same bytes.
    """
    write(conversion, SIDES[0])  # an unknown line is refused here, not in a callback

    def controls(change, now):
        return [
            _panel.choice("t is", CONVERSIONS, now().conversion, lambda c: change(conversion=c)),
            _panel.choice("Write", SIDES, now().write, lambda line: change(write=line)),
        ]

    return _panel.Panel(render, SharingState(conversion), controls, replace)
