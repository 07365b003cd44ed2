"""Keep one file for each record: locked, merged, written atomically, read back."""

import errno
import json
import os
import re
import time
import uuid
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from helpers._paths import progress_home

in_memory = {}  # path to the record that could not be saved


@dataclass(frozen=True)
class Shelf:
    """Describe one kind of record: where its files lie and what may stand in them.

    Attributes
    ----------
    folder : str
        Folder in the reader's progress folder.
    id : re.Pattern
        What an id looks like; it is the name of the file.
    accept : callable
        Returns what a file holds as a record, or None if it is none.
    merge : callable
        Joins two records of one id; order and repetition must make no difference.
    """

    folder: str
    id: re.Pattern
    accept: Callable
    merge: Callable

    def path(self, id: str) -> Path:
        """Return the file of an id."""
        return progress_home() / self.folder / f"{id}.json"

    def update(self, blank: dict, change: Callable) -> tuple[dict, str]:
        """Merge ``change(record)`` into the record of an id and store it.

        Parameters
        ----------
        blank : dict
            The record of that id of which nothing is known.
        change : callable
            Takes the record as it is and returns it with what is new.

        Returns
        -------
        (dict, str)
            The record as it now is, and one sentence if it could not be saved, else "".
        """
        path = self.path(blank["id"])
        with locked(path.parent):
            old = self._read(path, blank)
            record = self.merge(old, change(old))
            if record == old and path not in in_memory:
                return record, ""
            try:
                write(path, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
            except OSError as error:
                in_memory[path] = record
                return record, f"Not saved, because {why(error)}: {_REMEMBERED}"
            in_memory.pop(path, None)
        return record, ""

    def read(self, blank: dict) -> dict:
        """Return the record of an id, `blank` if there is none; write nothing."""
        return self._read(self.path(blank["id"]), blank)

    def read_all(self) -> dict[str, dict]:
        """Return all records, by id; write nothing."""
        folder = progress_home() / self.folder
        try:
            paths = {path for path in folder.iterdir() if self.id.fullmatch(path.stem)}
        except OSError:
            paths = set()
        paths = {path for path in paths if path.suffix == ".json"}
        paths |= {path for path in in_memory if path.parent == folder}
        records = (self._read(path, None) for path in sorted(paths))
        return {record["id"]: record for record in records if record is not None}

    def _read(self, path: Path, blank: dict | None) -> dict | None:
        record = self._load(path) or in_memory.get(path) or blank
        return record if path not in in_memory else self.merge(record, in_memory[path])

    def _load(self, path: Path) -> dict | None:
        """Return the record in a file, or None; a file that is none of ours is set aside."""
        try:
            data = path.read_bytes()
        except OSError:
            return None
        with suppress(ValueError, RecursionError):  # ValueError: not UTF-8, not JSON
            record = self.accept(json.loads(data))
            if record is not None and record["id"] == path.stem:
                return record
        with suppress(OSError):
            path.rename(path.with_name(f"{path.name}.aside-{uuid.uuid4().hex[:6]}"))
        return None


_REMEMBERED = "this is remembered until the kernel ends."


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, and read it back.

    Raises
    ------
    OSError
        If it cannot be written, or what is read back differs; the old file is then whole.
    """
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


def may_replace(path: Path, mark: str) -> bool:
    """Tell whether a file may be replaced: it is not there, or its first bytes hold our mark."""
    if not path.exists() and not path.is_symlink():
        return True
    try:
        with path.open("rb") as file:
            return mark.encode() in file.read(1_000)
    except OSError:
        return False


def why(error: OSError, place: str = "the progress folder") -> str:
    """Return in words why a file could not be written."""
    reasons = {
        errno.ENOSPC: "the disk is full",
        getattr(errno, "EDQUOT", -1): "your disk quota is used up",
        errno.EROFS: f"{place} is read-only",
        errno.EACCES: f"{place} is read-only",
        errno.EPERM: f"{place} is read-only",
    }
    return reasons.get(error.errno, f"{place} cannot be written")


@contextmanager
def locked(folder: Path, patience: float = 2.0):
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


def _try_lock(fcntl, file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
