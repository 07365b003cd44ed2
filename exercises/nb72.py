"""Ask and check what 72_read_your_lab_report teaches."""

import dataclasses
import math
import random
import statistics

import numpy as np

from exercises._answers import edited, returning
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "72.p1": Choice(
        question="All your guesses of a number, typically: too low or too high?",
        options={
            "too low": "Who guesses low forgets a part: a copy, a second moment, a launch. The "
            "list of your largest factors says in which notebook.",
            "too high": "Who guesses high counts a thing twice, or takes the slow way for the "
            "usual one. The list of your largest factors says where.",
            "to no side": "On no side is not the same as close: look at how many lie within 1.5x.",
            "too few guesses to say": "Below five, the next guess can turn the sign. From five on "
            "this cell answers.",
        },
    ),
    "72.p2": Choice(
        question="A cell measured a claim. Which edit makes its record stale?",
        options={
            "a comment": "A comment is not part of the syntax tree, and the tree is what is hashed.",
            "spaces, and 1_000 for 1000": "Both are ways to write one tree: the number is the same.",
            "n = 100 for n = 1000": "Right: another number can measure something else.",
            "any edit": "Then a comment would cost you a measurement. The tree decides.",
        },
    ),
    "72.p3": Number(
        question="The ledger has 114 statements of two tutorials. How many of them can nothing "
        "decide, no cell, no GPU and no source?",
        unit="statements",
        among=114,
        notes=(
            (0, 1, "Some of them name nothing that could be measured."),
            (1, 10, "The right order: few, and no accident of the hardware."),
            (
                10,
                40,
                "Most vague statements can be made precise by the code that stands beside them.",
            ),
            (40, 115, "Most statements name a quantity and a setting, also those that are wrong."),
        ),
    ),
    "72.p4": Choice(
        question="A class table holds counts only. Can the instructor tell from it whether Ada "
        "passed 13.2?",
        options={
            "no, there are no names": "A difference needs no name: somebody came between two "
            "tables, and everybody saw who.",
            "only with her id": "The tables hold no ids. Two of them are enough.",
            "yes, from the tables before and after hers": "Right: what is in one and not in the "
            "other is hers alone.",
        },
    ),
    "72.p5": Choice(
        question="Of those who tried exercise A, 100 % passed; of those who tried B, 75 %. Which "
        "one is harder?",
        options={
            "B": "Of whom? Look at how many tried each, and how many are in the class.",
            "A": "You suspect that few dared to try it. The rates alone do not say so.",
            "it cannot be told": "Right: a rate has lost its denominator.",
        },
    ),
}


def _kind(value):
    """Name the type of what came back."""
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


def _number(value, what):
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise Wrong(f"{what} must be a number, got {_kind(value)}")
    return float(value)


# --- 72.1 -------------------------------------------------------------------------------

_ORDER = ("not attempted", "unfinished", "raised", "wrong", "passed")
_NAMES = ("best", "checks", "passed_at")
_KERNELS = ("0badcafe", "1a2b3c4d", "5eed5eed", "c0ffee00")


def _record(best, checks=None, passed_at=None):
    return {"best": best, "checks": checks or {}, "passed_at": passed_at}


def _draw_record():
    best = random.choice(_ORDER)
    kernels = random.sample(_KERNELS, random.randint(0, 3))
    passed_at = float(random.randint(10**8, 10**9)) if best == "passed" else None
    return _record(best, {kernel: random.randint(1, 9) for kernel in kernels}, passed_at)


def _triples():
    first, second, third, _ = _KERNELS
    passed = _record("passed", {first: 2, second: 1}, 1_000.0)
    yield _record("wrong", {first: 1}), _record("raised", {second: 1}), _record("not attempted")
    yield _record("wrong", {first: 1}), _record("passed", {first: 1}, 50.0), _record("raised")
    yield passed, _record("unfinished", {second: 1}), _record("wrong")
    yield passed, _record("passed", {first: 1, third: 4}, 2_000.0), _record("not attempted")
    for _ in range(200):
        yield _draw_record(), _draw_record(), _draw_record()


def _joined(a, b):
    """Merge two records field by field, written unlike the solution."""
    times = sorted(record["passed_at"] for record in (a, b) if record["passed_at"] is not None)
    counts = sorted([*a["checks"].items(), *b["checks"].items()], key=lambda item: item[1])
    places = sorted(_ORDER.index(record["best"]) for record in (a, b))
    return _record(_ORDER[places[-1]], dict(counts), times[0] if times else None)


def test_merge(answer, call):
    for a, b, c in _triples():
        grouped = (_joined(a, b), c), (a, _joined(b, c))
        for left, right in ((a, b), (b, a), (a, a), *grouped):
            _look_at_merged(_merged(answer, call, left, right), left, right, answer, call)


def _merged(answer, call, a, b):
    got = call(answer, a, b)
    if not isinstance(got, dict):
        raise Wrong(f"Return a new dict with {', '.join(_NAMES)}, got {_kind(got)}")
    if got.keys() != set(_NAMES):
        raise Wrong(f"The merge has the keys {', '.join(_NAMES)}, got {', '.join(map(str, got))}.")
    if not isinstance(got["checks"], dict):
        raise Wrong(f"`checks` stays a dict from kernel to count, got {_kind(got['checks'])}")
    return got


def _look_at_merged(got, a, b, answer, call):
    want = _joined(a, b)
    for name in _NAMES:
        if got[name] != want[name]:
            other = _merged(answer, call, b, a)[name]
            why = _ABOUT[name](got[name], other, a[name], b[name])
            raise Wrong(
                f"`{name}` of {a[name]!r} and {b[name]!r} is {want[name]!r}, "
                f"got {got[name]!r}. {why}"
            )
    if got is a or got is b or any(got["checks"] is one["checks"] for one in (a, b)):
        raise Wrong(
            "The merge holds a dict of an input, not a new one: what is counted there later "
            "changes both reports."
        )


def _about_best(got, other, a, b):
    if got != other:
        return "Order matters here, so one more look at an old report can take a pass away."
    if got == max(a, b):
        return "Compared as texts, 'wrong' comes after 'passed': compare places in ORDER."
    return "The better one is the one further to the right in ORDER."


def _about_checks(got, other, a, b):
    if got == {kernel: a.get(kernel, 0) + b.get(kernel, 0) for kernel in {*a, *b}}:
        return "Added up, the same report twice counts twice: take the larger count of a kernel."
    if got != other:
        return "The second report wins, whatever it holds: take the larger count of a kernel."
    if got.keys() != {*a, *b}:
        return "A kernel that only one report knows has counts, too."
    return "For each kernel the larger count is the newer one."


def _about_passed_at(got, other, a, b):
    if got == 0:
        return "0 seconds is New Year 1970: None means never, and a time beats it."
    if got != other:
        return "Which report comes first does not say which pass came first."
    if got == max((t for t in (a, b) if t is not None), default=None):
        return "An exercise is passed when it is passed for the first time."
    return "Of the times that are there, the earliest."


_ABOUT = {"best": _about_best, "checks": _about_checks, "passed_at": _about_passed_at}

_ORDER_LINE = (
    'ORDER = ("not attempted", "unfinished", "raised", "wrong", "passed")\n'
    '# A record: {"best": "wrong", "checks": {"0badcafe": 1}, "passed_at": None}\n\n\n'
)
_MERGE = (
    _ORDER_LINE + "def merge(a, b):\n"
    "    kernels = {*a['checks'], *b['checks']}\n"
    "    times = [r['passed_at'] for r in (a, b) if r['passed_at'] is not None]\n"
    "    return {\n"
    "        'best': max(a['best'], b['best'], key=ORDER.index),\n"
    "        'checks': {k: max(a['checks'].get(k, 0), b['checks'].get(k, 0)) for k in kernels},\n"
    "        'passed_at': min(times, default=None),\n"
    "    }\n"
)


# --- 72.2 -------------------------------------------------------------------------------


def _draw_guesses():
    side = random.uniform(-2, 2)
    for _ in range(random.randint(1, 9)):
        truth = 10 ** random.uniform(-6, 9)
        yield truth * math.exp(side + random.gauss(0, 1)), truth, random.random() < 0.3


def _guess_lists():
    late = (10**6, 1.0, True)
    yield [(4.0, 1.0, False), (0.5, 1.0, False), (1 / 128, 1.0, False), late, late, late]
    yield [(10.0, 1.0, False), (0.1, 1.0, False)]
    yield []
    yield [late]
    for _ in range(60):
        yield list(_draw_guesses())


def _middle_factor(guesses):
    """Return the typical factor without a logarithm: the middle ratio, or the root of two."""
    ratios = sorted(guess / truth for guess, truth, late in guesses if not late)
    if not ratios:
        return None
    return math.sqrt(ratios[(len(ratios) - 1) // 2] * ratios[len(ratios) // 2])


def test_typical_factor(answer, call):
    for guesses in _guess_lists():
        got, want = call(answer, list(guesses)), _middle_factor(guesses)
        if want is None:
            if got is not None:
                raise Wrong(f"Without a guess in time there is no factor: return None, got {got}.")
            continue
        got = _number(got, "The factor")
        if not math.isclose(got, want, rel_tol=_NEAR):
            pairs = ", ".join(f"{g:.3g} for {t:.3g}{' late' * late}" for g, t, late in guesses[:6])
            raise Wrong(
                f"The typical factor of {pairs} is {want:.4g}, got {got:.4g}. "
                f"{_why_factor(got, guesses)}"
            )


_NEAR = 1e-5  # a tensor of torch's default dtype is right, too
_ONE_OF_TWO = statistics.median_low, statistics.median_high
_TWO_MIDDLES = (
    "An even number of guesses has two in the middle, and that is one of them: take the middle of "
    "their logarithms."
)
_OF_UNIT = "A difference depends on the unit: in KiB it is another number."


def _why_factor(got, guesses):
    ratios = [guess / truth for guess, truth, late in guesses if not late]
    apart = [guess - truth for guess, truth, late in guesses if not late]
    every = [(guess, truth, False) for guess, truth, _ in guesses]
    logs = [math.log2(ratio) for ratio in ratios]
    found = (
        (_middle_factor(every), "A late guess saw the measurement: leave it out."),
        (1 / _middle_factor(guesses), "You divided truth by guess: a guess twice too high is 2."),
        *((middle(ratios), _TWO_MIDDLES) for middle in _ONE_OF_TWO),
        (statistics.median(ratios), "Between two middle ratios lies the root of their product. On "
         "the log scale the median finds it."),
        (statistics.mean(ratios), "A mean of ratios lets the high ones win: 10 and 0.1 give 5.05."),
        (2 ** statistics.mean(logs), "That is the mean on the log scale. One guess that is off by "
         "a million moves it: take the median."),
        (statistics.median(logs), "That is the logarithm of the factor: raise 2 to it."),
        (math.exp(statistics.median(logs)), "A logarithm to base 2 is undone by a power of 2."),
        (2 ** statistics.median(map(abs, logs)), "That says how far you are off, and not to which "
         "side: keep the sign of the logarithm."),
        (statistics.median(apart), _OF_UNIT),
        (statistics.mean(apart), _OF_UNIT),
    )  # fmt: skip
    near = [why for value, why in found if math.isclose(got, value, rel_tol=_NEAR)]
    return near[0] if near else "Take the median of log2(guess / truth), and 2 to that power."


_FACTOR = (
    "import math\nimport statistics\n\n\n"
    "def typical_factor(guesses):\n"
    "    logs = [math.log2(guess / truth) for guess, truth, late in guesses if not late]\n"
    "    return 2 ** statistics.median(logs) if logs else None\n"
)


# --- 72.3 -------------------------------------------------------------------------------

_ALLOWED = {
    "id": {"13.1", "13.2", "13.p1"},
    "best": set(_ORDER),
    "message": {"passed", "TypeError", "adds counts", "order matters"},
    "checks": int,
    "guess": float,
}
_TIMES = ("guess_at", "measured_at")
_HOME = "/home/ada/clinic"
_ERROR = f"FileNotFoundError: [Errno 2] No such file or directory: '{_HOME}/weights.pt'"
_EXTRAS = (
    {"cwd": _HOME},
    {"machine": {"host": "ada-laptop", "cores": 8}},
    {"ip": 3_232_235_777},
    {"minutes_awake": 312.5},
    {"printed": ["hello", f"{_HOME}/data.csv"]},
    {"User": "ada"},
    {"answer": "def f(x):\n    return x\n"},
)
_BAD_VALUES = (
    {"message": _ERROR},
    {"message": [_ERROR]},
    {"best": {"state": "wrong", "user": "ada"}},
    {"id": f"{_HOME}/13.2"},
    {"checks": f"3, the last one by ada in {_HOME}"},
    {"guess": {"value": 28.0, "unit": "GiB", "host": "ada-laptop"}},
    {"message": "ada"},
    {"id": "ada-laptop"},
    {"best": "TypeError"},
    {"checks": 3.5},
    {"guess": 28},
)


def _home_record():
    at = random.uniform(1e9, 2e9)
    return {
        "id": random.choice(sorted(_ALLOWED["id"])),
        "best": random.choice(_ORDER),
        "message": random.choice(sorted(_ALLOWED["message"])),
        "checks": random.randint(1, 9),
        "guess": random.uniform(1, 100),
        "guess_at": at,
        "measured_at": at + random.choice((-60.0, 60.0)),
    }


def _home_records():
    plain = _home_record()
    everything = {name: value for extra in _EXTRAS for name, value in extra.items()}
    for extra in (everything, *_EXTRAS):
        yield {**plain, **extra}
    yield plain
    for changed in ({"measured_at": plain["guess_at"] + 5.0}, {"checks": 0}, {"guess": 0.0}):
        yield {**plain, **changed}
    for bad in _BAD_VALUES:
        yield {**_home_record(), **bad}
    for _ in range(30):
        record = {**_home_record(), **random.choice(_EXTRAS), **random.choice(_BAD_VALUES)}
        items = random.sample(sorted(record.items()), len(record))
        dropped = random.choice(("id", "best", "message", "checks", "guess"))
        yield {name: value for name, value in items if name != dropped}


def _fits(name, value):
    allowed = _ALLOWED[name]
    if isinstance(allowed, set):
        return any(value == text for text in allowed)
    return type(value) is allowed


def test_public(answer, call):
    for record in _home_records():
        got = call(answer, record)
        if not isinstance(got, dict):
            raise Wrong(f"Return a dict, got {_kind(got)}")
        for name, value in sorted(got.items(), key=lambda item: item[0] in _TIMES):
            _look_for_leak(name, value, record)
        _look_for_loss(got, record)


def _look_for_leak(name, value, record):
    if name in _TIMES:
        raise Wrong(f"{name} came through: when somebody works is nobody's business.")
    if name != "late" and name not in _ALLOWED:
        raise Wrong(f"{name!r}: {value!r} came through. {_about_leak(value)}")
    if name != "late" and not _fits(name, value):
        raise Wrong(
            f"`{name}` holds {value!r}. The name is allowed, the value is not: look at both. "
            f"{_about_value(name, value)}".strip()
        )


def _about_value(name, value):
    allowed = _ALLOWED[name]
    if allowed in (int, float) and type(value) in (int, float):
        return f"Its type is to be {allowed.__name__}."
    if allowed not in (int, float) and isinstance(value, str) and "/" not in value:
        return "A short text can be a name, too: only the list of its own field counts."
    return ""


def _about_leak(value):
    if "~" in str(value):
        return "The user's name is gone, the project's is not."
    if isinstance(value, int | float):
        return "A number is no text, and can be an address: keep the names in FIELDS, no others."
    return "A block-list knows the names that its author thought of. List what is allowed."


def _look_for_loss(got, record):
    for name in _ALLOWED:
        if name in record and _fits(name, record[name]) and name not in got:
            why = "" if record[name] else " Ask whether it is there, not whether it is true."
            raise Wrong(f"`{name}` with {record[name]!r} is allowed, and is gone.{why}")
        if name in got and (name not in record or got[name] != record[name]):
            raise Wrong(f"`{name}` was {record.get(name)!r} and is now {got[name]!r}.")
    late = record["guess_at"] > record["measured_at"]
    if "late" not in got:
        raise Wrong("Without its times nobody can tell a late guess from one in time: add `late`.")
    if got["late"] is not late:
        raise Wrong(
            f"The guess came {'after' if late else 'before'} the measurement, so `late` is "
            f"{late}, got {got['late']!r}."
        )


_LISTS = (
    'IDS = {"13.1", "13.2", "13.p1"}\n'
    'STATES = {"not attempted", "unfinished", "raised", "wrong", "passed"}\n'
    'MESSAGES = {"passed", "TypeError", "adds counts", "order matters"}\n'
    'FIELDS = {"id": IDS, "best": STATES, "message": MESSAGES, "checks": int, "guess": float}\n'
    "\n\n"
)
_LATE = "    kept['late'] = record['guess_at'] > record['measured_at']\n"
_PUBLIC = (
    _LISTS + "def public(record):\n"
    "    kept = {}\n"
    "    for name, allowed in FIELDS.items():\n"
    "        value = record.get(name)\n"
    "        if isinstance(allowed, set):\n"
    "            fits = isinstance(value, str) and value in allowed\n"
    "        else:\n"
    "            fits = isinstance(value, allowed)\n"
    "        if fits:\n"
    "            kept[name] = value\n" + _LATE + "    return kept\n"
)


def _keeping(condition, value="value"):
    """Return a wrong `public` that keeps what a condition lets through, and adds `late`."""
    return (
        _LISTS + "def public(record):\n"
        f"    kept = {{name: {value} for name, value in record.items() if {condition}}}\n"
        + _LATE
        + "    return kept\n"
    )


# --- 72.4 -------------------------------------------------------------------------------

_SHARES = tuple((i + 0.5) / 100 for i in range(100))


def _covered(intervals, share):
    """Return how often an interval holds the share, over all groups of this size."""
    n = len(intervals) - 1
    return sum(
        math.comb(n, k) * share**k * (1 - share) ** (n - k)
        for k, (low, high) in enumerate(intervals)
        if low <= share <= high
    )


def _exact_width(n):
    """Return the mean width of the intervals that never hold the share too seldom."""
    from scipy.stats import beta

    ks = range(n + 1)
    lows = [float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0 for k in ks]
    return statistics.mean(1 - lows[n - k] - lows[k] for k in ks)


def test_interval(answer, call):
    _look_at_ends(call(answer, 5, 5), 5, 5)
    for n in (5, *random.sample(range(6, 40), 3)):
        intervals = [_look_at_ends(call(answer, k, n), k, n) for k in range(n + 1)]
        held = [_covered(intervals, share) for share in _SHARES]
        _look_at_coverage(statistics.mean(held), n, intervals)
    low, high = _look_at_ends(call(answer, 0, 0), 0, 0)
    if (low, high) != (0, 1):
        raise Wrong(f"Where nobody tried, every share is possible: (0.0, 1.0), got {(low, high)}.")


def _look_at_ends(got, k, n):
    if not isinstance(got, tuple | list):
        raise Wrong(f"Return (low, high), got {_kind(got)}")
    if len(got) != 2:
        raise Wrong(f"Return two numbers, (low, high), got {len(got)} in a {_kind(got)}")
    low, high = (_number(value, "Each end of the interval") for value in got)
    said = f"{k} of {n}: got {low:.4g} to {high:.4g}."
    if math.isnan(low + high):
        raise Wrong(f"{said} nan is no share: look for 0 / 0 or the root of a negative number.")
    if max(abs(low), abs(high)) > 2:
        raise Wrong(f"{said} Shares go from 0 to 1.")
    if low > high:
        raise Wrong(f"{said} The first is the lower end: center − half, then center + half.")
    if low == high and n:
        raise Wrong(
            f"{k} of {n} gives {low:.0%} and no doubt at all. p(1 − p) is 0 there, which is no "
            "proof: the next one may fail."
        )
    if low < -1e-9 or high > 1 + 1e-9:
        raise Wrong(f"{said} No share is below 0 or above 1.")
    return low, high


def _look_at_coverage(held, n, intervals):
    width = statistics.mean(high - low for low, high in intervals)
    if held < 0.935:
        raise Wrong(
            f"With n = {n} the interval holds the true share in {held:.1%} of all groups, on "
            "average over the shares. It promised 95 %: it is too narrow, or in the wrong place."
        )
    if width > 1.05 * _exact_width(n):
        raise Wrong(
            f"With n = {n} the interval holds the true share in {held:.1%} of all groups, and is "
            f"{width:.2f} wide. 95 % can be had with less: a wider one says less."
        )


_INTERVAL = (
    "def interval(k, n):\n"
    "    if n == 0:\n"
    "        return 0.0, 1.0\n"
    "    z = 1.96\n"
    "    center = (k + z**2 / 2) / (n + z**2)\n"
    "    half = z / (n + z**2) * (k * (n - k) / n + z**2 / 4) ** 0.5\n"
    "    return max(0.0, center - half), min(1.0, center + half)\n"
)

EXERCISES = {
    "72.1": Exercise(
        title="Merge two reports",
        minutes=8,
        task="Two reports hold a record of one exercise. Return their merge as a new dict: of "
        "`best` the one further right in ORDER, in `checks` the larger count of each kernel, of "
        "`passed_at` the earlier time; None means never. Order and repetition must change nothing.",
        stub=_ORDER_LINE
        + 'def merge(a, b):\n    """Return the merge of two records."""\n    ...\n',
        answer="merge",
        test=test_merge,
        hints=(
            "A maximum does not care about order, grouping or repetition. A sum does.",
            "Merge a report with itself: which of your three fields changes?",
            "kernels = {*a['checks'], *b['checks']}",
        ),
        solution=_MERGE,
    ),
    "72.2": Exercise(
        title="Say by which factor you err",
        minutes=6,
        task="`guesses` holds (guess, truth, late), all positive numbers. Return the factor by "
        "which a guess is typically too high, below 1 if too low: the median on a log scale. "
        "Late guesses do not count. None if no guess is left.",
        stub="def typical_factor(guesses):\n"
        '    """Return the typical guess / truth, or None."""\n    ...\n',
        answer="typical_factor",
        test=test_typical_factor,
        hints=(
            "Twice too high and twice too low cancel: their factors multiply to 1, and their "
            "logarithms add to 0.",
            "Guesses of 10 and 0.1 where the truth is 1 must give 1.",
            "logs = [math.log2(guess / truth) for guess, truth, late in guesses if not late]",
        ),
        solution=_FACTOR,
    ),
    "72.3": Exercise(
        title="Let out only what is listed",
        minutes=8,
        task="This block-list lets through what nobody thought of. Repair it: keep a name of FIELDS "
        "if its value is in that set, or has that type. Drop all else, also the two "
        "times, which every record has: in their place add `late`, True if the guess came after.",
        stub=_LISTS + "def public(record):\n"
        '    hidden = {"user", "host", "path"}\n'
        "    return {name: value for name, value in record.items() if name not in hidden}\n",
        answer="public",
        test=test_public,
        hints=(
            "Go through FIELDS, not through the record: what you never ask for cannot get out.",
            "An exception's text in `message` has an allowed name. A list in `message` cannot even "
            "be looked up in a set.",
            "for name, allowed in FIELDS.items():",
        ),
        solution=_PUBLIC,
    ),
    "72.4": Exercise(
        title="Give a share its interval",
        minutes=8,
        task="k of n passed. Return (low, high), from 0 to 1: over many groups of n it shall hold "
        "the true share in about 95 of 100, and be no wider than that needs. If nobody tried, "
        "every share is possible: (0.0, 1.0).",
        stub="def interval(k, n):\n"
        '    """Return the 95 % interval of a share, low and high."""\n    ...\n',
        answer="interval",
        test=test_interval,
        hints=(
            "Five of five does not prove that the sixth will pass. At k = 0 and k = n the interval "
            "needs a width, too.",
            "Wilson: center = (k + z²/2) / (n + z²), half = z / (n + z²) · √(k(n − k)/n + z²/4).",
            "if n == 0: return 0.0, 1.0",
        ),
        solution=_INTERVAL,
    ),
}


def _edited(id, name, old, new, says):
    return edited(EXERCISES[id], name, says, (old, new))


def _returning(id, what, says):
    plain = dataclasses.replace(EXERCISES[id], stub=EXERCISES[id].stub.partition("\n\n\n")[2])
    return returning(plain if plain.stub else EXERCISES[id], what, says)


_BEST = "max(a['best'], b['best'], key=ORDER.index)"
_CHECKS = "{k: max(a['checks'].get(k, 0), b['checks'].get(k, 0)) for k in kernels}"
_LOGS = "[math.log2(guess / truth) for guess, truth, late in guesses if not late]"
_MEDIAN = "2 ** statistics.median(logs)"

_WRONG = {
    "72.1": (
        _edited(
            "72.1",
            "adds counts",
            _CHECKS,
            _CHECKS.replace(", 0), b", ", 0) + b").replace("max", ""),
            "the same report twice counts twice",
        ),
        WrongAnswer(
            "returns the second",
            _ORDER_LINE + "def merge(a, b):\n    return {**b, 'checks': dict(b['checks'])}\n",
            "take a pass away",
        ),
        _edited("72.1", "compares states as texts", ", key=ORDER.index", "", "Compared as texts"),
        _edited(
            "72.1",
            "second count wins",
            _CHECKS,
            "{**a['checks'], **b['checks']}",
            "The second report wins",
        ),
        _edited(
            "72.1",
            "never is 1970",
            "min(times, default=None)",
            "min(a['passed_at'] or 0, b['passed_at'] or 0)",
            "New Year 1970",
        ),
        WrongAnswer(
            "updates in place",
            _ORDER_LINE + "def merge(a, b):\n"
            "    for kernel, count in b['checks'].items():\n"
            "        a['checks'][kernel] = max(count, a['checks'].get(kernel, 0))\n"
            "    a['best'] = max(a['best'], b['best'], key=ORDER.index)\n    return a\n",
            "changed its input",
        ),
        _edited(
            "72.1",
            "latest pass",
            "min(times, default=None)",
            "max(times, default=None)",
            "passed for the first time",
        ),
        _edited(
            "72.1",
            "common kernels only",
            "{*a['checks'], *b['checks']}",
            "a['checks'].keys() & b['checks'].keys()",
            "only one report knows",
        ),
        _edited(
            "72.1",
            "smaller count",
            "max(a['checks'].get",
            "min(a['checks'].get",
            "the larger count is the newer one",
        ),
        _edited("72.1", "worse state", "max(a['best']", "min(a['best']", "further to the right"),
        _edited(
            "72.1",
            "first time wins",
            "min(times, default=None)",
            "times[0] if times else None",
            "does not say which pass",
        ),
        _edited("72.1", "compares None", "if r['passed_at'] is not None", "", "TypeError"),
        _edited(
            "72.1",
            "a sum for the counts",
            _CHECKS,
            "sum(a['checks'].values())",
            "`checks` stays a dict",
        ),
        _edited(
            "72.1",
            "no time",
            "        'passed_at': min(times, default=None),\n",
            "",
            "The merge has the keys",
        ),
        WrongAnswer(
            "an input when they are equal",
            _MERGE.replace("    kernels", "    if a == b:\n        return a\n    kernels", 1),
            "dict of an input",
        ),
        _returning("72.1", "None", "is a return missing?"),
        _returning("72.1", "[a, b]", "got list"),
    ),
    "72.2": (
        _edited(
            "72.2",
            "mean of ratios",
            _MEDIAN,
            "statistics.mean(2**log for log in logs)",
            "lets the high ones win",
        ),
        _edited("72.2", "counts late ones", " if not late", "", "A late guess saw the measurement"),
        _edited(
            "72.2",
            "truth over guess",
            "guess / truth",
            "truth / guess",
            "You divided truth by guess",
        ),
        WrongAnswer(
            "difference",
            "import statistics\n\n\ndef typical_factor(guesses):\n"
            "    apart = [guess - truth for guess, truth, late in guesses if not late]\n"
            "    return statistics.median(apart) if apart else None\n",
            "A difference depends on the unit",
        ),
        _edited("72.2", "raises when empty", " if logs else None", "", "StatisticsError"),
        _edited("72.2", "1 when empty", "else None", "else 1.0", "there is no factor: return None"),
        _edited(
            "72.2",
            "median of ratios",
            _MEDIAN,
            "statistics.median(2**log for log in logs)",
            "the root of their product",
        ),
        _edited(
            "72.2",
            "mean of logarithms",
            _MEDIAN,
            "2 ** statistics.mean(logs)",
            "off by a million moves it",
        ),
        _edited("72.2", "logarithm left", _MEDIAN, "statistics.median(logs)", "raise 2 to it"),
        _edited(
            "72.2",
            "e for 2",
            _MEDIAN,
            "math.exp(statistics.median(logs))",
            "undone by a power of 2",
        ),
        _edited(
            "72.2",
            "no side",
            "[math.log2(guess / truth)",
            "[abs(math.log2(guess / truth))",
            "not to which side",
        ),
        _edited(
            "72.2",
            "lower middle",
            "statistics.median(logs)",
            "statistics.median_low(logs)",
            "has two in the middle",
        ),
        WrongAnswer(
            "upper middle",
            "def typical_factor(guesses):\n"
            "    ratios = sorted(guess / truth for guess, truth, late in guesses if not late)\n"
            "    return ratios[len(ratios) // 2] if ratios else None\n",
            "has two in the middle",
        ),
        _edited(
            "72.2", "only the late ones", " if not late", " if late", "Take the median of log2"
        ),
        _returning("72.2", "None", "is a return missing?"),
        _returning("72.2", "'2x'", "got str"),
    ),
    "72.3": (
        WrongAnswer(
            "longer block-list",
            _keeping("name not in ('user', 'host', 'path', 'ip')"),
            "A block-list knows the names",
        ),
        WrongAnswer(
            "home folder as ~",
            _keeping(
                "name != 'host'",
                f"value.replace({_HOME[:9]!r}, '~') if type(value) is str else value",
            ),
            "the project's is not",
        ),
        WrongAnswer(
            "any number",
            _keeping("name in FIELDS or type(value) in (int, float)"),
            "can be an address",
        ),
        WrongAnswer("names only", _keeping("name in FIELDS"), "the value is not"),
        WrongAnswer(
            "names, and any text",
            _keeping("name in FIELDS and isinstance(value, (str, int, float))"),
            "the value is not",
        ),
        WrongAnswer(
            "text without a slash",
            _PUBLIC.replace("and value in allowed", "and '/' not in value"),
            "A short text can be a name",
        ),
        WrongAnswer(
            "any of the lists",
            _PUBLIC.replace("value in allowed", "value in IDS | STATES | MESSAGES"),
            "only the list of its own field",
        ),
        WrongAnswer(
            "any number for a number",
            _PUBLIC.replace("isinstance(value, allowed)", "isinstance(value, (int, float))"),
            "Its type is to be",
        ),
        WrongAnswer(
            "keeps times",
            _PUBLIC.replace(_LATE, _LATE + "    kept['guess_at'] = record['guess_at']\n"),
            "guess_at came through",
        ),
        WrongAnswer("drops late", _PUBLIC.replace(_LATE, ""), "add `late`"),
        _edited("72.3", "late turned round", "['guess_at'] >", "['guess_at'] <", "so `late` is"),
        _edited(
            "72.3",
            "drops what is false",
            "if fits:",
            "if fits and value:",
            "not whether it is true",
        ),
        _edited("72.3", "looks up a list", "isinstance(value, str) and ", "", "unhashable"),
        _edited(
            "72.3", "every field must be there", "record.get(name)", "record[name]", "KeyError"
        ),
        _edited(
            "72.3",
            "all as text",
            "kept[name] = value",
            "kept[name] = str(value)",
            "the value is not",
        ),
        WrongAnswer(
            "deletes from the record",
            "def public(record):\n"
            "    for name in ('user', 'host', 'path', 'cwd'):\n"
            "        record.pop(name, None)\n    return record\n",
            "changed its input",
        ),
        _edited("72.3", "no states", "STATES, ", "set(), ", "is allowed, and is gone"),
        _edited(
            "72.3",
            "first known message",
            "kept[name] = value",
            "kept[name] = min(allowed) if isinstance(allowed, set) else value",
            "and is now",
        ),
        _returning("72.3", "None", "is a return missing?"),
        _returning("72.3", "str(record)", "got str"),
    ),
    "72.4": (
        WrongAnswer(
            "p plus or minus",
            "def interval(k, n):\n    p = k / n\n"
            "    half = 1.96 * (p * (1 - p) / n) ** 0.5\n    return p - half, p + half\n",
            "no doubt at all",
        ),
        WrongAnswer(
            "p plus or minus, one step inside",
            "def interval(k, n):\n"
            "    p = min(max(k / n, 0.01), 0.99)\n"
            "    half = 1.96 * (p * (1 - p) / n) ** 0.5\n"
            "    return max(0.0, p - half), min(1.0, p + half)\n",
            "it is too narrow",
        ),
        _edited(
            "72.4",
            "nobody tried",
            "    if n == 0:\n        return 0.0, 1.0\n",
            "",
            "ZeroDivisionError",
        ),
        _edited(
            "72.4",
            "nobody tried is 0 %",
            "return 0.0, 1.0\n",
            "return 0.0, 0.0\n",
            "Where nobody tried",
        ),
        _edited("72.4", "90 %", "1.96", "1.645", "it is too narrow"),
        _edited("72.4", "99 %", "1.96", "2.576", "95 % can be had with less"),
        _edited("72.4", "one standard deviation", "z = 1.96", "z = 1", "it is too narrow"),
        WrongAnswer(
            "everything", "def interval(k, n):\n    return 0.0, 1.0\n", "95 % can be had with less"
        ),
        WrongAnswer(
            "in percent",
            _INTERVAL.replace("max(0.0, center - half)", "100 * max(0.0, center - half)").replace(
                "min(1.0, center + half)", "100 * min(1.0, center + half)"
            ),
            "Shares go from 0 to 1",
        ),
        _edited(
            "72.4",
            "not cut",
            "max(0.0, center - half), min(1.0, center + half)",
            "center - 1.2 * half, center + 1.2 * half",
            "No share is below 0 or above 1",
        ),
        _edited(
            "72.4",
            "center at p",
            "(k + z**2 / 2) / (n + z**2)\n",
            "k / n\n",
            "in the wrong place",
        ),
        _edited(
            "72.4",
            "high before low",
            "max(0.0, center - half), min(1.0, center + half)",
            "min(1.0, center + half), max(0.0, center - half)",
            "The first is the lower end",
        ),
        _edited(
            "72.4",
            "of those who failed",
            "(k + z**2 / 2)",
            "(n - k + z**2 / 2)",
            "in the wrong place",
        ),
        _edited(
            "72.4",
            "center and half",
            "max(0.0, center - half), min(1.0, center + half)",
            "center, half",
            "The first is the lower end",
        ),
        _returning("72.4", "None", "is a return missing?"),
        _edited(
            "72.4",
            "below 0",
            "max(0.0, center - half), min",
            "center - 1.2 * half, min",
            "No share is below 0 or above 1",
        ),
        _returning("72.4", "k / n", "got float"),
        _returning("72.4", "[k / n]", "got 1 in a list."),
        _returning("72.4", "float('nan'), 1.0", "nan is no share"),
        _returning("72.4", "('0', '1')", "must be a number"),
    ),
}

EXERCISES = {
    id: dataclasses.replace(exercise, wrong=_WRONG[id]) for id, exercise in EXERCISES.items()
}
