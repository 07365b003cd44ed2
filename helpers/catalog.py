"""Read what each notebook promises, and lay paths through the course by time.

The first cell of a notebook states title, promise and facts once; the README and 00 show them.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from helpers._paths import ROOT
from helpers.table import Table

_FACTS = re.compile(r"^(\d+) min · (.+?) · after (.+)$", re.MULTILINE)
_PATHS = (
    ("Two hours", "the core: tensors, broadcasting, gradients", ("11", "12", "14")),
    ("One day", "Part 1: from the first tensor to a trained network", ("1",)),
    ("Half a day", "Part 3: many devices; you know 22, 44 and 54", ("3",)),
    ("Half a day", "Part 4: memory; you know 14, 15 and 22", ("4",)),
    ("Half a day", "Part 5: craft; you know 16, 22 and 42", ("5",)),
    ("Half a day", "Part 6: deployment; you know 15, 22 and 54", ("6",)),
    ("Half a day", "Part 7: the capstone, then your report; you know 33, 43 to 45 and 61", ("7",)),
    ("Weeks", "everything; Part 3 needs Parts 4 and 5", ("0", "1", "2", "4", "5", "3", "6", "7")),
)


@dataclass(frozen=True)
class Entry:
    """Hold what the first cell of a notebook says.

    Attributes
    ----------
    number, title, promise : str
        Such as ``"13"``, ``"Share memory with NumPy"`` and what the reader has afterwards.
    minutes : int
        Time a reader needs.
    runs_on : str
        Such as ``"CPU, GPU optional"``.
    after : str
        Notebooks to read before.
    path : pathlib.Path
        The notebook.
    """

    number: str
    title: str
    promise: str
    minutes: int
    runs_on: str
    after: str
    path: Path


def read_entry(path):
    """Read the first cell of a notebook.

    Parameters
    ----------
    path : pathlib.Path
        An .ipynb file.

    Returns
    -------
    Entry

    Raises
    ------
    ValueError
        If the first cell has no title, no promise or no line of facts.
    """
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    paragraphs = [part.strip() for part in first.split("\n\n") if part.strip()]
    facts = _FACTS.search(first)
    if len(paragraphs) < 2 or not paragraphs[0].startswith("# ") or not facts:
        raise ValueError(
            f"{path.name} must begin with '# Title', a promise, and a line such as "
            "'30 min · CPU, GPU optional · after 11'"
        )
    title, promise = paragraphs[0].removeprefix("# "), " ".join(paragraphs[1].split())
    return Entry(path.stem[:2], title, promise, int(facts[1]), facts[2], facts[3], path)


def read_entries(folder=ROOT / "notebooks"):
    """Return the entries of all notebooks of a folder, in the order of their numbers.

    Examples
    --------
    >>> read_entries()[0].title
    'Start here'
    """
    return tuple(read_entry(path) for path in sorted(Path(folder).glob("*.ipynb")))


def paths_by_time(folder=ROOT / "notebooks"):
    """Return the paths through the course, with the time that their notebooks add up to.

    Parameters
    ----------
    folder : path-like
        Where the notebooks lie. A path names those that are there.

    Returns
    -------
    Table
        One row for each path: time at hand, what for, notebooks, hours.

    Examples
    --------
    >>> paths_by_time().columns
    ('you have', 'path', 'notebooks', 'adds up to')
    """
    entries = read_entries(folder)
    rows = []
    for time, purpose, begins in _PATHS:
        chosen = [entry for part in begins for entry in entries if entry.number.startswith(part)]
        hours = sum(entry.minutes for entry in chosen) / 60
        rows.append((time, purpose, ", ".join(entry.number for entry in chosen), f"{hours:.1f} h"))
    return Table(("you have", "path", "notebooks", "adds up to"), rows)
