"""Keep the random id under which two lab reports of one reader are merged."""

import math
import re
import time
import uuid

from helpers._shelf import Shelf

ID = re.compile("[0-9a-f]{8}")
_FIELDS = {"schema", "id", "reader", "at"}


def blank() -> dict:
    """Return the record of a reader who has no id."""
    return {"schema": 1, "id": "reader", "reader": None, "at": 0}


def merge(a: dict, b: dict) -> dict:
    """Return the newer of two records; order and repetition make no difference.

    Examples
    --------
    >>> merge(blank(), {**blank(), "reader": "0badcafe", "at": 1})["reader"]
    '0badcafe'
    """
    return max(a, b, key=lambda record: (record["at"], record["reader"] or ""))


def as_record(value: object) -> dict | None:
    """Return a value if it has exactly the fields of a record, each of its type and size."""
    fits = (
        isinstance(value, dict)
        and value.keys() == _FIELDS
        and value["schema"] == 1
        and value["id"] == "reader"
        and isinstance(value["reader"], str)
        and ID.fullmatch(value["reader"])
        and isinstance(value["at"], int | float)
        and math.isfinite(value["at"])
        and 0 <= value["at"] < 1e11
    )
    return value if fits else None


SHELF = Shelf("reader", re.compile("reader"), as_record, merge)


def reader_id() -> str:
    """Return the reader's id; make one if there is none."""
    if SHELF.read(blank())["reader"] is None:
        SHELF.update(blank(), lambda record: record if record["reader"] else _renewed(record))
    return SHELF.read(blank())["reader"]


def new_id() -> str:
    """Replace the reader's id; return why it could not be saved, or an empty text."""
    return SHELF.update(blank(), _renewed)[1]


def _renewed(record: dict) -> dict:
    at = max(time.time(), record["at"] + 0.001)
    return {**record, "reader": uuid.uuid4().hex[:8], "at": at}
