"""Copy the notebooks, without outputs, to where the reader works; never overwrite their work.

What happens to a copy when the course is opened:

============================================  ==============================================
the copy                                      what happens
============================================  ==============================================
is missing or empty                           it is laid
is as it was laid                             it is replaced when anything in the notebook
                                              is newer
was run, saved, but no source was changed     it is replaced when a source is newer; its
                                              outputs go, and Run All brings them back
has changed sources                           it stays; a newer notebook is laid beside it
                                              as NAME.new.ipynb, once, and named in a line
cannot be read as a notebook                  it stays; the notebook is laid beside it, once
============================================  ==============================================

A NAME.new.ipynb that the reader has changed is never overwritten either: the next one is
NAME.new2.ipynb. The programs in notebooks/scripts/ follow the same rules.

    python -m tools.workbook

lays the copies without opening JupyterLab, as a shared server does when a user's server starts.
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAID = ".laid.json"
FORMAT = 1


@dataclass(frozen=True)
class Copy:
    """A file of the course as the reader gets it."""

    name: str
    content: bytes

    @property
    def exact(self) -> str:
        """Hash of every byte."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def meaning(self) -> str:
        """Hash of what a reader edits."""
        return fingerprint(self.name, self.content)


def without_outputs(content: bytes) -> bytes:
    """Return a notebook without outputs, execution counts and the marks that fold outputs."""
    notebook = json.loads(content)
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        metadata = cell["metadata"]
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            metadata.pop("execution", None)
            metadata.pop("collapsed", None)
            # The course stores its reveals folded; the reader's own are to be seen.
            metadata.get("jupyter", {}).pop("outputs_hidden", None)
            if not metadata.get("jupyter", True):
                del metadata["jupyter"]
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    return text.encode()


def fingerprint(name: str, content: bytes) -> str:
    """Hash what a reader edits: of a notebook its sources, of another file all bytes.

    JupyterLab adds outputs, counts, ids and metadata whenever it saves; they are left out.
    """
    sources = notebook_sources(content) if name.endswith(".ipynb") else None
    if sources is not None:
        content = json.dumps(sources).encode()
    return hashlib.sha256(content).hexdigest()


def notebook_sources(content: bytes) -> list[tuple[str, str]] | None:
    """Return type and source of each cell; None when this is no notebook."""
    try:
        cells = json.loads(content)["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (ValueError, KeyError, TypeError):
        return None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a kill leaves the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".laying-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def course_files(source: Path) -> Iterator[Copy]:
    """Yield the notebooks without outputs, then the programs that they start."""
    for path in sorted(source.glob("*.ipynb")):
        yield Copy(path.name, without_outputs(path.read_bytes()))
    for path in sorted(source.glob("scripts/**/*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield Copy(path.relative_to(source).as_posix(), path.read_bytes())


def read_records(target: Path) -> dict:
    """Return what was laid before; a lost or damaged record counts as none."""
    try:
        records = json.loads(Path(target, LAID).read_bytes())
        return dict(records["copies"]) if records["format"] == FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def beside(path: Path, number: int) -> Path:
    """Return the name of a newer version laid beside a copy."""
    return path.with_name(f"{path.stem}.new{number if number > 1 else ''}{path.suffix}")


def lay_beside(copy: Copy, path: Path, laid: dict) -> Path:
    """Lay a newer version beside a changed copy, sparing what the reader changed there."""
    number = 1
    while True:
        other = beside(path, number)
        if not other.exists() or fingerprint(copy.name, other.read_bytes()) in (
            laid.get(other.name),
            copy.meaning,
        ):
            break
        number += 1
    write_atomically(other, copy.content)
    laid[other.name] = copy.meaning
    return other


def lay_copy(copy: Copy, target: Path, record: dict) -> Iterator[str]:
    """Bring one copy up to date and its record with it; yield what the reader must know."""
    path = Path(target, copy.name)
    found = path.read_bytes() if path.exists() else b""
    meaning = fingerprint(copy.name, found)
    if not found or hashlib.sha256(found).hexdigest() == record.get("exact"):
        if found != copy.content:
            write_atomically(path, copy.content)
    elif meaning == copy.meaning:
        pass  # run or saved, or the reader took the newer version over: nothing to replace
    elif meaning == record.get("meaning"):
        write_atomically(path, copy.content)
        yield f"{copy.name} is newer now; Run All brings its outputs back."
    else:
        yield from offer(copy, path, record, found)
        return
    record.update(exact=copy.exact, meaning=copy.meaning)


def offer(copy: Copy, path: Path, record: dict, found: bytes) -> Iterator[str]:
    """Lay the course's version beside a copy that must stay, unless the reader had it already."""
    broken = path.suffix == ".ipynb" and notebook_sources(found) is None
    known = {record.get("offered")} if broken else {record.get("offered"), record.get("meaning")}
    if copy.meaning in known:
        return
    other = lay_beside(copy, path, record.setdefault("beside", {}))
    record["offered"] = copy.meaning
    if broken:
        yield f"{copy.name} cannot be read as a notebook; a fresh copy is beside it: {other.name}"
    else:
        yield f"{copy.name} has your changes and stays; the newer version is beside it: {other.name}"


def lay(source: Path, target: Path) -> list[str]:
    """Copy the course's notebooks into the reader's folder.

    Parameters
    ----------
    source, target
        The folder of the course's notebooks and the reader's own.

    Returns
    -------
    list of str
        One line for each copy about which the reader must know something.

    Raises
    ------
    OSError
        When the folder cannot be written.
    """
    records, lines = read_records(target), []
    for copy in course_files(source):
        lines += lay_copy(copy, target, records.setdefault(copy.name, {}))
    content = json.dumps({"format": FORMAT, "copies": records}, indent=1, sort_keys=True) + "\n"
    write_atomically(Path(target, LAID), content.encode())
    return lines


def folder(environment) -> Path:
    """Return the reader's folder: COURSE_WORKBOOK, or workbook/ beside the notebooks."""
    chosen = environment.get("COURSE_WORKBOOK")
    return Path(chosen).expanduser().absolute() if chosen else ROOT / "workbook"


def refusal(error: OSError) -> str:
    """Say why the copies could not be laid, and what to do."""
    return (
        f"The workbook cannot be written ({error.strerror}); free some space, or set "
        "COURSE_WORKBOOK to a folder of your own."
    )


def main() -> int:
    """Lay the copies and say what the reader must know; 1 when that is impossible."""
    try:
        for line in lay(ROOT / "notebooks", folder(os.environ)):
            print(line)
    except OSError as error:
        print(refusal(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
