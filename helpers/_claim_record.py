"""Keep what a cell measured about a claim: one file for each claim, the newest measurement wins."""

import ast
import hashlib
import json
import linecache
import math
import re
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from helpers._shelf import Shelf

ID = re.compile(r"A\d-\d\d")
DEVICES = ("cpu", "cuda", "mps", "xpu")
TEXTS = rf"[0-9a-f]{{16,128}}|nan|-?inf|text|{'|'.join(DEVICES)}"


def blank(id: str) -> dict:
    """Return the record of a claim that nobody has measured."""
    return {
        "schema": 1,
        "id": id,
        "values": {},
        "met": None,
        "verdict": None,
        "fingerprint": None,
        "torch": None,
        "device": None,
        "cores": None,
        "at": 0,
    }


def merge(a: dict, b: dict) -> dict:
    """Return the newer of two records; order, grouping and repetition make no difference.

    Raises
    ------
    ValueError
        If the records have different ids.

    Examples
    --------
    >>> old, new = {**blank("A1-28"), "at": 1}, {**blank("A1-28"), "at": 2}
    >>> merge(old, new) == merge(new, old) == new
    True
    """
    if a["id"] != b["id"]:
        raise ValueError(f"records must have one id, got {a['id']} and {b['id']}")
    return max(a, b, key=lambda record: (record["at"], json.dumps(record, sort_keys=True)))


def as_record(value: object) -> dict | None:
    """Return a value if it has exactly the fields of a record, each of its type and size."""
    fits = (
        isinstance(value, dict)
        and value.keys() == _FIELDS.keys()
        and all(check(value[name]) for name, check in _FIELDS.items())
    )
    return value if fits else None


def keep(
    claim: Any, values: Mapping[str, float | str | None], met: bool | None, cell: str | None
) -> str:
    """Write the record of a claim; return why it could not be written, or an empty text."""
    from helpers.device import describe_machine

    machine = describe_machine()

    def change(record: dict) -> dict:
        return {
            **record,
            "values": {name: storable(value) for name, value in values.items()},
            "met": met,
            "verdict": claim.verdict,
            "fingerprint": cell,
            "torch": machine.torch,
            "device": machine.device,
            "cores": machine.cores,
            "at": stamp(record),
        }

    return SHELF.update(blank(claim.id), change)[1]


def stamp(record: dict) -> float:
    """Return the time for a new measurement: now, but after the one that the record holds."""
    return max(time.time(), record["at"] + 0.001)


def storable(value: float | str | None) -> float | str | None:
    """Return a measured value as a record may hold it: no text but hashes and kinds of devices.

    Examples
    --------
    >>> storable(float("nan")), storable(2**70), storable("cpu"), storable("/home/ada")
    ('nan', 1.1805916207174113e+21, 'cpu', 'text')
    """
    if isinstance(value, str):
        return value if re.fullmatch(TEXTS, value) else "text"
    if isinstance(value, int) and abs(value) >= 2**63:
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def fingerprint(source: str) -> str | None:
    """Return a hash of what a cell does: comments, spaces and the form of a number do not count.

    It is the SHA-256, cut to 16 hexadecimal digits, of the cell's syntax tree as ``ast.dump``
    shows it, but without empty fields: Python 3.11 to 3.14 have different ones.

    Parameters
    ----------
    source : str
        A notebook cell; lines that start with ``%`` or ``!`` are read as IPython reads them.

    Returns
    -------
    str or None
        None if the source is no Python.

    Examples
    --------
    >>> fingerprint("n = 1000") == fingerprint("n = 1_000  # runs")
    True
    >>> fingerprint("n = 1000") == fingerprint("n = 100")
    False
    """
    try:
        tree = ast.parse(_transformed(source))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return hashlib.sha256(_dump(tree).encode()).hexdigest()[:16]


def fingerprint_of_caller(frame: FrameType) -> str | None:
    """Return the fingerprint of the cell that a frame runs; None outside of a cell.

    A kernel keeps the source of each cell in ``linecache``, and its namespace, unlike that of a
    program, names no file.
    """
    if frame.f_globals.get("__name__") != "__main__" or "__file__" in frame.f_globals:
        return None
    source = "".join(linecache.getlines(frame.f_code.co_filename))
    return fingerprint(source) if source else None


def _transformed(source: str) -> str:
    """Return a cell as IPython hands it to Python; needed only where magics stand in it."""
    try:
        ast.parse(source)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        return TransformerManager().transform_cell(source)
    return source


def _dump(node: object) -> str:
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields)
        there = [f"{name}={_dump(value)}" for name, value in fields if value not in (None, [])]
        return f"{type(node).__name__}({', '.join(there)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    return repr(node)


_LONGEST = 200


def _real(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _text(value: object) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST)


def _values(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= 50
        and all(re.fullmatch(r"[A-Za-z_]\w{0,59}", name) for name in value)
        and all(_text(v) or isinstance(v, bool) or _real(v) for v in value.values())
    )


_FIELDS = {
    "schema": lambda value: value == 1 and not isinstance(value, bool),
    "id": lambda value: isinstance(value, str) and bool(ID.fullmatch(value)),
    "values": _values,
    "met": lambda value: value is None or isinstance(value, bool),
    "verdict": _text,
    "fingerprint": lambda value: (
        value is None or (isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{16}", value)))
    ),
    "torch": _text,
    "device": lambda value: value in (None, *DEVICES),
    "cores": lambda value: value is None or (type(value) is int and 0 < value < 100_000),
    "at": lambda value: _real(value) and 0 <= value < 1e11,
}

SHELF = Shelf("claims", ID, as_record, merge)
