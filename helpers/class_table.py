"""Join the lab reports of a class into one table that names nobody.

Reports are read as text and checked against the schema of `helpers.lab_report`; nothing in them
is executed. Two reports of one reader count once. A row that fewer than five readers stand
behind shows "<5", and ids of readers never appear. Make the table once, at the end: two tables,
one before and one after somebody's report, tell what that report holds.
"""

import csv
import io
import json
import os
import random
import stat
from dataclasses import dataclass
from pathlib import Path

from helpers import _display, _report_schema
from helpers._class_rows import (
    FEW,
    FEWEST,
    claim_row,
    exercise_row,
    most_missed,
    notebook_rows,
    prediction_row,
    wilson,
)
from helpers._report_part import Grid
from helpers.exercises import _catalog
from helpers.exercises._record import ORDER

__all__ = ["FEW", "FEWEST", "ClassTable", "build", "generated", "merge", "read", "wilson"]

EXERCISES = ("exercise", "passed", "after the solution", "tried", "class", "passed of tried, 95 %",
             "checks (median)", "most frequent wrong answer")  # fmt: skip
PREDICTIONS = ("prediction", "guessed in time", "class", "guesses", "as measured or within 1.5x")
CLAIMS = ("claim", "measured by", "class", "as the ledger expects", "numbers")


def read(path):
    """Read one report from a file.

    Parameters
    ----------
    path : str or pathlib.Path
        A ``lab-report.json`` of at most 1 MB.

    Returns
    -------
    dict
        The report, which holds nothing but what its schema allows.

    Raises
    ------
    ValueError
        If it is no plain file, too large, or no report; the sentence says why.

    Examples
    --------
    >>> read("no such file.json")
    Traceback (most recent call last):
    ...
    ValueError: there is no such file
    """
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("expected a file, got something else")
        if status.st_size > _report_schema.LARGEST:
            raise ValueError(f"a report has at most 1 MB, got {status.st_size / 1e6:.1f} MB")
        with open(path, "rb") as file:
            data = file.read(_report_schema.LARGEST + 1)
    except FileNotFoundError:
        raise ValueError("there is no such file") from None
    except OSError as error:
        raise ValueError(f"it cannot be read: {os.strerror(error.errno or 0)}") from None
    return _report_schema.read(data)


def merge(a, b):
    """Join two reports of one reader; order, grouping and repetition make no difference.

    Parameters
    ----------
    a, b : dict
        Reports with the same reader's id.

    Returns
    -------
    dict
        A report with every exercise and prediction of either.

    Raises
    ------
    ValueError
        If the ids of the readers differ.

    Examples
    --------
    >>> one = generated(readers=1)[0]
    >>> merge(one, one) == one
    True
    """
    if a["reader"] != b["reader"]:
        raise ValueError("reports of two readers are not merged")
    newest = max(a, b, key=_as_json)
    joined = {
        "exercises": _joined(a["exercises"], b["exercises"], _merge_exercise),
        "predictions": _joined(a["predictions"], b["predictions"], _earlier),
        "claims": _joined(a["claims"], b["claims"], _later),
    }
    return {**newest, **joined}


def _joined(a, b, join):
    found = {}
    for entry in (*a, *b):
        known = found.get(entry["id"])
        found[entry["id"]] = join(known, entry) if known else entry
    return [found[id] for id in sorted(found)]


def _merge_exercise(a, b):
    return {
        **_later(a, b),
        "best": max(a["best"], b["best"], key=ORDER.index),
        "solution": a["solution"] or b["solution"],
        "checks": max(a["checks"], b["checks"]),
        "hints": max(a["hints"], b["hints"]),
        "misses": sorted({*a["misses"], *b["misses"]}),
    }


def _when(entry):
    return entry["week"] or "", entry["order"], _as_json(entry)


def _later(a, b):
    return max(a, b, key=_when)


def _earlier(a, b):
    return min(a, b, key=_when)


def _as_json(value):
    return json.dumps(value, sort_keys=True)


@dataclass(frozen=True, repr=False)
class ClassTable(_display.Shown):
    """Show for a class what was passed, missed, guessed and measured.

    Attributes
    ----------
    readers : int
        Number of readers.
    exercises, predictions, claims : tuple of tuple of str
        The rows under ``EXERCISES``, ``PREDICTIONS`` and ``CLAIMS``, sorted by id.
    missed : tuple of (str, int, int)
        Exercise with its most frequent wrong answer and the sentence it is told, readers who met
        it, and readers who tried; the most frequent first.
    notebooks : tuple of (str, int, int, int, int)
        Notebook and how many of its exercises, over all readers, are in each state of a board.
    sample : bool
        Whether any report was generated.
    """

    readers: int
    exercises: tuple
    predictions: tuple
    claims: tuple
    missed: tuple
    notebooks: tuple
    sample: bool = False

    def text(self):
        """Return the tables in plain text."""
        return "\n\n".join([self._head(), *(grid.text() for grid in self._grids())])

    def html(self):
        """Return the tables."""
        return f"<p>{self._head()}</p>" + "".join(grid.html() for grid in self._grids())

    def to_markdown(self):
        """Return the tables in Markdown.

        Returns
        -------
        str
            Tables with a caption each; bars in sentences are escaped.
        """
        parts = [f"# Class table\n\n{self._head()}"]
        for grid in self._grids():
            lines = [grid.columns, ["---"] * len(grid.columns), *grid.rows]
            cells = (" | ".join(str(c).replace("|", r"\|") for c in line) for line in lines)
            parts.append(f"**{grid.caption}**\n\n" + "\n".join(f"| {row} |" for row in cells))
        return "\n\n".join(parts) + "\n"

    def to_csv(self):
        """Return the tables as one text of comma-separated values.

        Returns
        -------
        str
            A block for each table, under its heads.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for grid in self._grids():
            writer.writerows([grid.columns, *grid.rows])
        return text.getvalue()

    def chart(self):
        """Return how far the exercises came and what was missed most, as one figure.

        Returns
        -------
        plotting.Chart
            A bar for each notebook, and one for each of the ten wrong answers that most met.
        """
        from helpers._class_figure import plot_class

        return plot_class(self)

    def _head(self):
        made = "Generated class, nobody's records. " if self.sample else ""
        readers = self.readers if self.readers >= FEWEST else f"Fewer than {FEWEST}"
        return f"{made}{readers} readers. A row with " \
               f"fewer than {FEWEST} readers shows {FEW}."  # fmt: skip

    def _grids(self):
        exercises = "Exercises: passed without the solution, after it, and tried"
        return (
            Grid(exercises, EXERCISES, self.exercises),
            Grid("Predictions: guesses made before the measurement", PREDICTIONS, self.predictions),
            Grid("Claims: measured on how many machines, and what came out", CLAIMS, self.claims),
        )


def build(reports):
    """Join reports into one table of the class.

    Parameters
    ----------
    reports : iterable of dict
        As `read` returns them, in any order; reports of one reader count once.

    Returns
    -------
    ClassTable
        It displays itself.

    Examples
    --------
    >>> build(generated(readers=12)).readers
    12
    """
    readers = {}
    for report in reports:
        _report_schema.check(report)
        known = readers.get(report["reader"])
        readers[report["reader"]] = merge(known, report) if known else report
    exercises, predictions, claims = (
        _by_id(readers.values(), name) for name in _report_schema.LISTS
    )
    missed = filter(None, (most_missed(id, found) for id, found in exercises.items()))
    return ClassTable(
        readers=len(readers),
        exercises=_rows(exercise_row, exercises, len(readers)),
        predictions=_rows(prediction_row, predictions, len(readers)),
        claims=_rows(claim_row, claims, len(readers)),
        missed=tuple(sorted(missed, key=lambda row: (-row[1], row[0]))),
        notebooks=notebook_rows(exercises, len(readers)),
        sample=any(report["sample"] for report in readers.values()),
    )


def _by_id(reports, name):
    """Collect the entries of all reports by their id, in the order of the course."""
    found = {}
    for report in reports:
        for entry in report[name]:
            found.setdefault(entry["id"], []).append(entry)
    return {id: found[id] for id in sorted(found, key=_catalog.sort_key)}


def _rows(row, entries, readers):
    return tuple(row(id, found, readers) for id, found in entries.items())


def generated(readers=20, seed=0):
    """Return reports of a class that does not exist, to try the table on.

    Parameters
    ----------
    readers : int
        How many, at most 1,000.
    seed : int
        Equal seeds give equal classes.

    Returns
    -------
    tuple of dict
        Each says that it is a sample, and passes the schema.

    Examples
    --------
    >>> all(report["sample"] for report in generated(readers=3))
    True
    """
    from helpers import _report_sample

    rng = random.Random(f"class {seed}")
    found = []
    for n in range(readers):
        evidence = _report_sample.sample(f"{seed} {n}", until=rng.choice(("15", "23", "45")))
        found.append(_report_schema.public(evidence, f"{n:08x}"))
    return tuple(found)
