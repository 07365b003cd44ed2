"""Work out the rows of a class table, and hide those that too few readers stand behind."""

import math
import statistics
from collections import Counter

from helpers._report_board import STATES, state_of
from helpers._report_guesses import factor_of
from helpers.claims import show_value
from helpers.exercises import _catalog
from helpers.exercises._model import Choice

FEWEST = 5
FEW = f"<{FEWEST}"
_Z = statistics.NormalDist().inv_cdf(0.975)
_NEAR = 1.5


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


def tried_of(entries):
    return [entry for entry in entries if entry["best"] != "not attempted"]


def exercise_row(id, entries, readers):
    tried = tried_of(entries)
    if len(tried) < FEWEST:
        return (id, *[FEW] * 3, _count(readers), FEW, FEW, FEW)
    after = sum(entry["best"] == "passed" and entry["solution"] for entry in tried)
    passed = sum(entry["best"] == "passed" for entry in tried) - after
    low, high = wilson(passed, len(tried))
    missed = most_missed(id, entries)
    told = f"{missed[1]} of {len(tried)}: {missed[0].partition(' ')[2]}" if missed else "none"
    checks = statistics.median(entry["checks"] for entry in tried)
    return (id, str(passed), str(after), str(len(tried)), _count(readers),
            f"{100 * low:.0f} to {100 * high:.0f} %", f"{checks:g}", told)  # fmt: skip


def _count(n):
    return str(n) if n >= FEWEST else FEW


def most_missed(id, entries):
    """Return the exercise with its most frequent wrong answer, or None where nobody met one."""
    tried = tried_of(entries)
    if len(tried) < FEWEST:
        return None
    wrong = _catalog.find_exercise(id).wrong
    sentences = {each.name: f"{each.name} (told: … {each.says} …)" for each in wrong}
    found = Counter(name for entry in tried for name in entry["misses"] if name in sentences)
    if not found:
        return None
    name, count = min(found.items(), key=lambda item: (-item[1], item[0]))
    return f"{id} {sentences[name]}", count, len(tried)


def notebook_rows(exercises, readers):
    """Return how far the exercises of each notebook came that five readers or more tried."""
    rows = []
    for number in sorted({id[:2] for id in exercises}):
        asked = [id for id in _catalog.known_ids("EXERCISES") if id[:2] == number]
        if max(len(tried_of(exercises.get(id, []))) for id in asked) >= FEWEST:
            found = Counter(state_of(entry) for id in asked for entry in exercises.get(id, []))
            found[STATES[-1]] += len(asked) * readers - found.total()
            rows.append((number, *(found[state] for state in STATES)))
    return tuple(rows)


def prediction_row(id, entries, readers):
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
        hits = [max(f, 1 / f) <= _NEAR for f in factors]
    near = f"{sum(hits)} of {len(hits)}" if len(hits) >= FEWEST else FEW
    return id, str(len(in_time)), _count(readers), guesses, near


def _quartiles(factors):
    """Return the median factor between its quartiles, taken of the logarithms."""
    if len(factors) < FEWEST:
        return FEW
    low, middle, high = (2**q for q in statistics.quantiles(map(math.log2, factors), n=4))
    return f"median factor {middle:.2g}, quartiles {low:.2g} and {high:.2g}"


def claim_row(id, entries, readers):
    measured = [entry for entry in entries if entry["met"] is not None]
    if len(measured) < FEWEST:
        return id, FEW, _count(readers), FEW, FEW
    met = sum(entry["met"] for entry in measured)
    names = dict.fromkeys(name for entry in measured for name in entry["values"])
    numbers = (_spread(name, [entry["values"].get(name) for entry in measured]) for name in names)
    counts = str(len(measured)), _count(readers), f"{met} of {len(measured)}"
    return id, *counts, "; ".join(numbers)


def _spread(name, values):
    """Return the one value of all machines, or the median between its quartiles."""
    known = [value for value in values if value is not None]
    if len(known) < FEWEST:
        return f"{name}: {FEW}"
    if len(set(known)) == 1:
        return f"{name} = {show_value(known[0])}"
    if any(isinstance(value, str) for value in known):
        return f"{name}: {len(set(known))} different values"
    low, middle, high = map(show_value, statistics.quantiles(known, n=4))
    return f"{name}: median {middle}, quartiles {low} and {high}"
