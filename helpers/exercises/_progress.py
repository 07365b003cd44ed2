"""Keep one file for each record: merged, written atomically, read back."""

import errno
import json
import os
import time
import uuid
from contextlib import contextmanager, suppress

from helpers._paths import progress_home
from helpers.exercises._record import ID, blank, is_record, merge

KERNEL = uuid.uuid4().hex[:8]
_in_memory = {}  # path to the record that could not be saved


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
    folder = progress_home() / "exercises"
    try:
        paths = {path for path in folder.iterdir() if ID.fullmatch(path.stem)}
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
    return progress_home() / "exercises" / f"{id}.json"


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
    with suppress(FileNotFoundError):
        path.read_bytes()  # what cannot be read must not be replaced
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
