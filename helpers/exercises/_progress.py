"""Keep one record for each prediction and exercise: merged, written atomically, read back."""

import base64
import errno
import json
import math
import os
import re
import time
import uuid
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

ORDER = ("not attempted", "unfinished", "raised", "wrong", "passed")
PREFIX = "measured-pytorch-1"
KERNEL = uuid.uuid4().hex[:8]
NOTICE_FOR_READER = "For you alone: this text holds times. Read it in with progress.load(...)."

_NEWEST = ("kind", "course", "torch", "latest", "message")
_ID = re.compile(r"\d\d\.p?\d{1,3}")
_LARGEST_TEXT, _LARGEST_JSON = 1_000_000, 4_000_000
_in_memory = {}


def home():
    """Return the folder of the reader's progress: COURSE_HOME, or the system's place for data."""
    if os.environ.get("COURSE_HOME"):
        return Path(os.environ["COURSE_HOME"])
    import platformdirs

    return platformdirs.user_data_path("measured-pytorch")


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
        a, b, key=lambda record: (record["last"] or 0, _json([record[f] for f in _NEWEST]))
    )
    return {
        "schema": 1,
        "id": a["id"],
        **{name: newest[name] for name in _NEWEST},
        "best": max(a["best"], b["best"], key=ORDER.index),
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
    return event["at"], _json(event)


def _larger_counts(a, b):
    return {kernel: max(a.get(kernel, 0), b.get(kernel, 0)) for kernel in sorted({*a, *b})}


def _json(value):
    return json.dumps(value, sort_keys=True, allow_nan=False)


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
    "id": lambda value: isinstance(value, str) and bool(_ID.fullmatch(value)),
    "kind": lambda value: value in ("exercise", "prediction"),
    "course": _text,
    "torch": _text,
    "best": lambda value: value in ORDER,
    "latest": lambda value: value is None or value in ORDER,
    "message": _text,
    "checks": _counts,
    "hints": _counts,
    "solution": lambda value: isinstance(value, bool),
    "first": _time,
    "last": _time,
    "passed_at": _time,
    "guess": _event,
    "truth": _event,
}


def update(id, kind, change):
    """Merge ``change(record)`` into the record of an id and store it.

    Returns
    -------
    (dict, str)
        The record as it now is, and one sentence if it could not be saved, else "".
    """
    path = _path(id)
    with _locked(path.parent):
        old = _read(path, kind)
        record = merge(old, change(old))
        if record == old and path not in _in_memory:
            return record, ""
        try:
            _write(path, record)
        except OSError as error:
            _in_memory[path] = record
            return record, _why(error)
        _in_memory.pop(path, None)
    return record, ""


def read(id, kind):
    """Return the record of an id, blank if there is none."""
    return _read(_path(id), kind)


def read_all():
    """Return all records, by id."""
    folder = home() / "exercises"
    try:
        paths = {path for path in folder.iterdir() if _ID.fullmatch(path.stem)}
    except OSError:
        paths = set()
    paths = {path for path in paths if path.suffix == ".json"}
    paths |= {path for path in _in_memory if path.parent == folder}
    records = (_read(path, None) for path in sorted(paths))
    return {record["id"]: record for record in records if record["kind"] is not None}


def stamp(record):
    """Return the time for a new event of a record: now, but after its last event.

    Two events of one record never tie, also where the clock is coarse or was set back.
    """
    return max(time.time(), (record["last"] or 0) + 0.001)


def versions():
    """Return the versions that a record carries."""
    import torch

    from helpers import __version__

    return {"course": __version__, "torch": torch.__version__}


def _path(id):
    return home() / "exercises" / f"{id}.json"


def _read(path, kind):
    record = _load(path) or _in_memory.get(path) or blank(path.stem, kind)
    return merge(record, _in_memory.get(path, record))


def _load(path):
    """Return the record in a file, or None; a file that is none of ours is set aside."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    with suppress(ValueError, RecursionError):  # ValueError: not UTF-8, not JSON
        record = json.loads(data)
        if is_record(record) and record["id"] == path.stem:
            return record
    with suppress(OSError):
        path.rename(path.with_name(f"{path.name}.aside-{uuid.uuid4().hex[:6]}"))
    return None


def _write(path, record):
    data = (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    temp = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:6]}.tmp")
    try:
        with open(temp, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)
    except BaseException:
        with suppress(OSError):
            temp.unlink(missing_ok=True)
        raise
    if path.read_bytes() != data:
        raise OSError("what was written is not what is there")


def _why(error):
    reasons = {
        errno.ENOSPC: "the disk is full",
        getattr(errno, "EDQUOT", -1): "your disk quota is used up",
        errno.EROFS: "the progress folder is read-only",
        errno.EACCES: "the progress folder is read-only",
        errno.EPERM: "the progress folder is read-only",
    }
    reason = reasons.get(error.errno, "the progress folder cannot be written")
    return f"Not saved, because {reason}: this is remembered until the kernel ends."


@contextmanager
def _locked(folder, patience=2.0):
    """Hold the folder's lock, which dies with the process; go on unlocked after two seconds."""
    file = None
    with suppress(OSError, ImportError):
        import fcntl

        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "a")  # noqa: SIM115 - closed below, which unlocks it
        give_up = time.monotonic() + patience
        while not _try_lock(fcntl, file) and time.monotonic() < give_up:
            time.sleep(0.01)
    try:
        yield
    finally:
        if file is not None:
            file.close()


def _try_lock(fcntl, file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def pack(records):
    """Return records as a text that a reader can copy from one machine to another."""
    data = zlib.compress(_json(sorted(records, key=lambda record: record["id"])).encode(), 9)
    code = base64.b64encode(data).decode()
    return f"{PREFIX}:{zlib.crc32(data):08x}:{code}"


def unpack(text):
    """Return the records in a transfer text.

    Raises
    ------
    ValueError
        If the text is cut, changed, too large or not of this course; the sentence is for readers.
    """
    if not isinstance(text, str):
        text = ""
    if len(text) > _LARGEST_TEXT:
        raise ValueError("This text is longer than any that progress.export() makes.")
    _, found, rest = re.sub(r"[\s\"'\\]", "", text).partition(f"{PREFIX}:")
    if not found:
        raise ValueError(f"A transfer text holds {PREFIX}: and this one does not.")
    checksum, _, code = rest.partition(":")
    try:
        data = base64.b64decode(code, validate=True)
    except ValueError:
        raise ValueError("The text was cut or changed: copy all of it again.") from None
    if f"{zlib.crc32(data):08x}" != checksum:
        raise ValueError("The text was cut or changed: copy all of it again.")
    return _records_in(data)


def _records_in(data):
    try:
        opened = zlib.decompressobj()
        plain = opened.decompress(data, _LARGEST_JSON)
        records = json.loads(plain) if opened.eof else None
    except (zlib.error, ValueError, RecursionError):
        records = None
    if not isinstance(records, list) or not all(map(is_record, records)):
        raise ValueError("The text holds no records that this version of the course can read.")
    return records
