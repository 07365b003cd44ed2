"""Describe what is known of one prediction or exercise, and join two such records."""

import json
import math
import re

ORDER = ("not attempted", "unfinished", "raised", "wrong", "passed")
ID = re.compile(r"\d\d\.p?\d{1,3}")

_MOST_MISSES = 100
_NEWEST = ("kind", "course", "torch", "latest", "message")


def blank(id, kind):
    """Return the record of an id of which nothing is known."""
    return {
        "schema": 1,
        "id": id,
        "kind": kind,
        "course": None,
        "torch": None,
        "best": "not attempted",
        "latest": None,
        "message": None,
        "misses": [],
        "checks": {},
        "hints": {},
        "solution": False,
        "first": None,
        "last": None,
        "passed_at": None,
        "guess": None,
        "truth": None,
    }


def merge(a, b):
    """Join two records of one id; order, grouping and repetition make no difference.

    Raises
    ------
    ValueError
        If the records have different ids.

    Examples
    --------
    >>> one = {**blank("13.2", "exercise"), "checks": {"0badcafe": 2}, "best": "passed"}
    >>> two = {**blank("13.2", "exercise"), "checks": {"0badcafe": 1}, "best": "wrong"}
    >>> merge(one, two)["best"], merge(two, one)["checks"]
    ('passed', {'0badcafe': 2})
    """
    if a["id"] != b["id"]:
        raise ValueError(f"records must have one id, got {a['id']} and {b['id']}")
    newest = max(
        a, b, key=lambda record: (record["last"] or 0, as_json([record[f] for f in _NEWEST]))
    )
    return {
        "schema": 1,
        "id": a["id"],
        **{name: newest[name] for name in _NEWEST},
        "best": max(a["best"], b["best"], key=ORDER.index),
        "misses": sorted({*a["misses"], *b["misses"]})[:_MOST_MISSES],
        "checks": _larger_counts(a["checks"], b["checks"]),
        "hints": _larger_counts(a["hints"], b["hints"]),
        "solution": a["solution"] or b["solution"],
        "first": _pick(min, a["first"], b["first"]),
        "last": _pick(max, a["last"], b["last"]),
        "passed_at": _pick(min, a["passed_at"], b["passed_at"]),
        "guess": _pick(min, a["guess"], b["guess"], key=_by_time),
        "truth": _pick(max, a["truth"], b["truth"], key=_by_time),
    }


def _pick(choose, a, b, key=None):
    there = [value for value in (a, b) if value is not None]
    return choose(there, key=key) if there else None


def _by_time(event):
    return event["at"], as_json(event)


def _larger_counts(a, b):
    return {kernel: max(a.get(kernel, 0), b.get(kernel, 0)) for kernel in sorted({*a, *b})}


def as_json(value):
    """Return the one JSON text of a value."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


def as_record(value):
    """Return a value as a record, with what older versions did not know; None if it is none.

    Examples
    --------
    >>> old = blank("13.2", "exercise")
    >>> del old["misses"]
    >>> as_record(old)["misses"], as_record({"id": "13.2"})
    ([], None)
    """
    value = {"misses": [], **value} if isinstance(value, dict) else None
    return value if is_record(value) else None


def is_record(value):
    """Tell whether a value has exactly the fields of a record, each of its type and size."""
    return (
        isinstance(value, dict)
        and value.keys() == _FIELDS.keys()
        and all(fits(value[name]) for name, fits in _FIELDS.items())
    )


def _number(value):
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _time(value):
    return value is None or (_number(value) and 0 <= value < 1e11)


def _text(value):
    return value is None or (isinstance(value, str) and len(value) <= 200)


def _texts(value):
    few = isinstance(value, list) and len(value) <= _MOST_MISSES
    return few and None not in value and all(map(_text, value))


def _counts(value):
    return (
        isinstance(value, dict)
        and len(value) <= 10_000
        and all(isinstance(key, str) and re.fullmatch("[0-9a-f]{8}", key) for key in value)
        and all(isinstance(n, int) and 0 <= n < 1e9 for n in value.values())
    )


def _event(value):
    return value is None or (
        isinstance(value, dict)
        and {"value", "unit", "at"} <= value.keys() <= {"value", "unit", "at", "late"}
        and (_number(value["value"]) or _text(value["value"]))
        and _text(value["unit"])
        and value["at"] is not None
        and _time(value["at"])
        and isinstance(value.get("late", False), bool)
    )


_FIELDS = {
    "schema": lambda value: value == 1,
    "id": lambda value: isinstance(value, str) and bool(ID.fullmatch(value)),
    "kind": lambda value: value in ("exercise", "prediction"),
    "course": _text,
    "torch": _text,
    "best": lambda value: value in ORDER,
    "latest": lambda value: value is None or value in ORDER,
    "message": _text,
    "misses": _texts,
    "checks": _counts,
    "hints": _counts,
    "solution": lambda value: isinstance(value, bool),
    "first": _time,
    "last": _time,
    "passed_at": _time,
    "guess": _event,
    "truth": _event,
}
