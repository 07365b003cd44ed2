"""Join the lab reports of a class into one table that names nobody.

Reports are read as text and checked against the schema of `helpers.lab_report`; nothing in them
is executed. Two reports of one reader count once. A row that fewer than five readers stand
behind shows "<5", and ids of readers never appear. Make the table once, at the end: two tables,
one before and one after somebody's report, tell what that report holds.
"""

import csv
import io
import json
import math
import os
import random
import stat
import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from helpers import _display, _report_part, _report_schema, plotting
from helpers._report_board import STATES, state_of
from helpers._report_guesses import factor_of
from helpers._report_part import Grid
from helpers.exercises import _catalog
from helpers.exercises._model import Choice
from helpers.exercises._record import ORDER

__all__ = ["FEWEST", "ClassTable", "build", "generated", "merge", "read", "wilson"]

FEWEST = 5
FEW = f"<{FEWEST}"
EXERCISES = ("exercise", "passed", "after the solution", "tried", "class", "passed of tried, 95 %",
             "checks (median)", "most frequent wrong answer")  # fmt: skip
PREDICTIONS = ("prediction", "guessed in time", "class", "guesses", "as measured or within 1.5x")
_Z = statistics.NormalDist().inv_cdf(0.975)
_NONE = "none"


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


def wilson(k, n):
    """Return the 95 % interval of a rate after k successes in n tries.

    Parameters
    ----------
    k, n : int
        Successes and tries.

    Returns
    -------
    tuple of float
        Low and high end; (0, 1) without a try, since then nothing is known.

    Raises
    ------
    ValueError
        If k is not between 0 and n.

    See Also
    --------
    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927).

    Examples
    --------
    >>> [round(100 * end) for end in wilson(5, 5)], [round(100 * end) for end in wilson(15, 20)]
    ([57, 100], [53, 89])
    """
    if not 0 <= k <= n:
        raise ValueError(f"k must be between 0 and n, got k = {k} and n = {n}")
    if n == 0:
        return 0.0, 1.0
    middle = (k + _Z**2 / 2) / (n + _Z**2)
    half = _Z / (n + _Z**2) * math.sqrt(k * (n - k) / n + _Z**2 / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, repr=False)
class ClassTable(_display.Shown):
    """Show for a class what was passed, missed and guessed.

    Attributes
    ----------
    readers : int
        Number of readers.
    exercises, predictions : tuple of tuple of str
        The rows under ``EXERCISES`` and ``PREDICTIONS``, sorted by id.
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
    missed: tuple
    notebooks: tuple
    sample: bool = False

    def text(self):
        """Return both tables in plain text."""
        return "\n\n".join([self._head(), *(grid.text() for grid in self._grids())])

    def html(self):
        """Return both tables."""
        return f"<p>{self._head()}</p>" + "".join(grid.html() for grid in self._grids())

    def to_markdown(self):
        """Return both tables in Markdown.

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
        """Return both tables as one text of comma-separated values.

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
        return plot_class(self)

    def _head(self):
        made = "Generated class, nobody's records. " if self.sample else ""
        return f"{made}{self.readers if self.readers >= FEWEST else FEW} readers. A row with " \
               f"fewer than {FEWEST} readers shows {FEW}."  # fmt: skip

    def _grids(self):
        exercises = "Exercises: passed without the solution, after it, and tried"
        return (
            Grid(exercises, EXERCISES, self.exercises),
            Grid("Predictions: guesses made before the measurement", PREDICTIONS, self.predictions),
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
    exercises, predictions = {}, {}
    for report in readers.values():
        for entry in report["exercises"]:
            exercises.setdefault(entry["id"], []).append(entry)
        for entry in report["predictions"]:
            predictions.setdefault(entry["id"], []).append(entry)
    ids = sorted(exercises, key=_catalog.sort_key)
    asked = sorted(predictions, key=_catalog.sort_key)
    missed = filter(None, (_missed(id, exercises[id]) for id in ids))
    return ClassTable(
        readers=len(readers),
        exercises=tuple(_exercise_row(id, exercises[id], len(readers)) for id in ids),
        predictions=tuple(_prediction_row(id, predictions[id], len(readers)) for id in asked),
        missed=tuple(sorted(missed, key=lambda row: (-row[1], row[0]))),
        notebooks=_notebooks(exercises, len(readers)),
        sample=any(report["sample"] for report in readers.values()),
    )


def _tried(entries):
    return [entry for entry in entries if entry["best"] != "not attempted"]


def _exercise_row(id, entries, readers):
    tried = _tried(entries)
    if len(tried) < FEWEST:
        return (id, *[FEW] * 3, _count(readers), FEW, FEW, FEW)
    after = sum(entry["best"] == "passed" and entry["solution"] for entry in tried)
    passed = sum(entry["best"] == "passed" for entry in tried) - after
    low, high = wilson(passed, len(tried))
    missed = _missed(id, entries)
    told = f"{missed[1]} of {len(tried)}: {missed[0].partition(' ')[2]}" if missed else _NONE
    checks = statistics.median(entry["checks"] for entry in tried)
    return (id, str(passed), str(after), str(len(tried)), _count(readers),
            f"{100 * low:.0f} to {100 * high:.0f} %", f"{checks:g}", told)  # fmt: skip


def _count(n):
    return str(n) if n >= FEWEST else FEW


def _missed(id, entries):
    """Return the exercise with its most frequent wrong answer, or None where nobody met one."""
    tried = _tried(entries)
    if len(tried) < FEWEST:
        return None
    wrong = _catalog.find_exercise(id).wrong
    sentences = {each.name: f"{each.name} (told: … {each.says} …)" for each in wrong}
    found = Counter(name for entry in tried for name in entry["misses"] if name in sentences)
    if not found:
        return None
    name, count = min(found.items(), key=lambda item: (-item[1], item[0]))
    return f"{id} {sentences[name]}", count, len(tried)


def _notebooks(exercises, readers):
    """Return how far the exercises of each notebook came that five readers or more tried."""
    rows = []
    for number in sorted({id[:2] for id in exercises}):
        asked = [id for id in _catalog.known_ids("EXERCISES") if id[:2] == number]
        if max(len(_tried(exercises.get(id, []))) for id in asked) >= FEWEST:
            found = Counter(state_of(entry) for id in asked for entry in exercises.get(id, []))
            found[STATES[-1]] += len(asked) * readers - found.total()
            rows.append((number, *(found[state] for state in STATES)))
    return tuple(rows)


def _prediction_row(id, entries, readers):
    in_time = [entry for entry in entries if not entry["late"]]
    if len(in_time) < FEWEST:
        return id, FEW, _count(readers), FEW, FEW
    asked = _catalog.find_prediction(id)
    if isinstance(asked, Choice):
        found = Counter(entry["guess"] for entry in in_time)
        guesses = "; ".join(f"{option}: {found[option]}" for option in asked.options)
        hits = [e["guess"] == e["truth"] for e in in_time if e["truth"] is not None]
    else:
        factors = [factor_of(entry["guess"], entry["truth"]) for entry in in_time]
        factors = [factor for factor in factors if factor is not None]
        guesses = _quartiles(factors)
        hits = [max(f, 1 / f) <= 1.5 for f in factors]
    near = f"{sum(hits)} of {len(hits)}" if len(hits) >= FEWEST else FEW
    return id, str(len(in_time)), _count(readers), guesses, near


def _quartiles(factors):
    """Return the median factor between its quartiles, taken of the logarithms."""
    if len(factors) < FEWEST:
        return FEW
    low, middle, high = (2**q for q in statistics.quantiles(map(math.log2, factors), n=4))
    return f"median factor {middle:.2g}, quartiles {low:.2g} and {high:.2g}"


def plot_class(table, *, most=10):
    """Draw how far the exercises of each notebook came, above what was missed most.

    Parameters
    ----------
    table : ClassTable
        Of any number of readers; what fewer than five stand behind is not drawn.
    most : int
        Number of wrong answers.

    Returns
    -------
    plotting.Chart
        With one row per bar.
    """
    missed, notebooks = table.missed[:most], table.notebooks
    message = _message(table)
    heights = [0.3 * max(2, len(notebooks)), 0.42 * max(2, len(missed))]
    with _report_part.drawn_for(_report_part.theme()):
        figure, upper = plotting.new_figure(message, height=2.4 + sum(heights))
        places = figure.add_gridspec(2, 1, height_ratios=heights)
        upper.set_subplotspec(places[0])
        _draw_notebooks(upper, notebooks)
        _draw_missed(figure.add_subplot(places[1]), missed)
    rows = [(f"notebook {number}", *map(str, counts)) for number, *counts in notebooks]
    rows += [(told, f"met by {met}", "", f"tried by {tried}", "") for told, met, tried in missed]
    return plotting.Chart(figure, message, ("bar", *STATES), tuple(rows))


def _message(table):
    counts = [sum(column) for column in zip(*(row[1:] for row in table.notebooks), strict=True)]
    if not counts:
        return f"Fewer than {FEWEST} readers tried any exercise"
    return f"{100 * sum(counts[:2]) / sum(counts):.0f} % of the exercises were passed"


def _draw_notebooks(axes, notebooks):
    colors, looks = plotting.colors(), ("new", "memory", "baseline", "reference")
    totals = [sum(counts) for _, *counts in notebooks]
    low = [0.0] * len(notebooks)
    for n, (state, look) in enumerate(zip(STATES, looks, strict=True)):
        shares = [100 * row[n + 1] / total for row, total in zip(notebooks, totals, strict=True)]
        axes.barh(range(len(notebooks)), shares, left=low, height=0.7, color=colors[look],
                  hatch=("", "///", "xxx", "...")[n], edgecolor=colors["paper"], label=state)  # fmt: skip
        low = [a + b for a, b in zip(low, shares, strict=True)]
    axes.set(xlabel="share of readers × exercises (%)", ylim=(len(notebooks) - 0.4, -0.6))
    axes.set_yticks(range(len(notebooks)), [number for number, *_ in notebooks])
    if notebooks:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _draw_missed(axes, missed):
    colors = plotting.colors()
    axes.set_title("Wrong answers that most readers met" if missed else "No wrong answer to show")
    for y, (_, met, tried) in enumerate(missed):
        axes.barh(y, tried, height=0.6, facecolor="none", edgecolor=colors["reference"])
        axes.barh(y, met, height=0.6, color=colors["baseline"])
        axes.annotate(f"{met} of {tried}", (tried, y), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=9)  # fmt: skip
    axes.set(xlabel="readers: filled met it, outlined tried", ylim=(len(missed) - 0.4, -0.6))
    axes.set_xlim(0, 1.15 * max([tried for _, _, tried in missed], default=1))
    axes.set_yticks(range(len(missed)), [_short(told) for told, _, _ in missed], fontsize=9)


def _short(text, longest=48):
    text = text.replace(" (told: …", ":").removesuffix(" …)")
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


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
