"""Say which fields may leave this machine in a report, and refuse every other.

An allow-list, not a block-list: a field passes because its name, type and length stand here.
There is no name, host, path, address, processor, code, answer, free text or printed output, and
no time but the ISO week and the order of events.
"""

import builtins
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from helpers._claim_record import DEVICES, TEXTS
from helpers.claims import VERDICTS, load_ledger
from helpers.exercises import _catalog
from helpers.exercises._model import Choice
from helpers.exercises._record import ORDER
from helpers.table import Table

NAME = "measured-pytorch-report-1"
LARGEST = 1_000_000  # bytes
NO_OPTION = "none of the options"
_MOST = 1_000  # entries in a list
_WORDS = {"ended", "keys", "not attempted", "other error", "other sentence", "passed", "time",
          "unfinished"}  # fmt: skip
_ERRORS = {name for name, value in vars(builtins).items()
           if isinstance(value, type) and issubclass(value, BaseException)}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """Say in words what a field holds, and tell whether a value does."""

    words: str
    fits: Callable


def _one_of(*values):
    words = f"one of {', '.join(values)}"
    return Rule(words, lambda value: isinstance(value, str) and value in values)


def _like(pattern, words):
    return Rule(words, lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)))


def _or_none(rule):
    return Rule(f"{rule.words}, or null", lambda value: value is None or rule.fits(value))


def _whole(low, high):
    return Rule(
        f"a whole number from {low} to {high:,}",
        lambda value: type(value) is int and low <= value <= high,
    )


def is_number(value):
    """Tell whether a value is a finite number and no boolean."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and abs(value) <= 1e300 and math.isfinite(value)


_BOOL = Rule("true or false", lambda value: isinstance(value, bool))
_VERSION = _like(r"\d{1,4}(\.\d{1,4}){1,3}(\.?(a|b|rc|dev|post)\d{0,8}){0,2}", "a version")
_HEX8 = _like("[0-9a-f]{8}", "8 hexadecimal digits")
_WEEK = _or_none(_like(r"20\d\d-W[0-5]\d", "an ISO week such as 2026-W49"))
_ORDER = _whole(1, _MOST * 3)
_ENTRY = {"id": Rule("an id of the course", lambda value: isinstance(value, str)),
          "week": _WEEK, "order": _ORDER}  # fmt: skip
_MESSAGE = Rule("an id of a sentence, from the exercise's list", lambda v: isinstance(v, str))
_GUESS = Rule("a number, or an option of the question",
              lambda value: isinstance(value, str) or is_number(value))  # fmt: skip
_MISSES = Rule("at most 100 ids of sentences", lambda value: isinstance(value, list)
               and len(value) <= 100 and all(isinstance(each, str) for each in value))  # fmt: skip
_VALUES = Rule("measured numbers by the names that the claim's test has; of a text a hash only",
               lambda value: isinstance(value, dict) and all(map(_is_value, value.values())))  # fmt: skip

EXERCISE = {
    **_ENTRY,
    "best": _one_of(*ORDER),
    "solution": _BOOL,
    "checks": _whole(0, 10**9),
    "hints": _whole(0, 10**9),
    "message": _or_none(_MESSAGE),
    "misses": _MISSES,
}
PREDICTION = {**_ENTRY, "guess": _GUESS, "truth": _or_none(_GUESS), "late": _BOOL}
CLAIM = {
    **_ENTRY,
    "values": _VALUES,
    "met": _or_none(_BOOL),
    "verdict": _one_of(*VERDICTS),
    "fingerprint": _or_none(_like("[0-9a-f]{16}", "16 hexadecimal digits")),
    "torch": _or_none(_VERSION),
    "device": _or_none(_one_of(*DEVICES)),
    "cores": _or_none(_whole(1, 99_999)),
}
LISTS = {"exercises": EXERCISE, "predictions": PREDICTION, "claims": CLAIM}
REPORT = {
    "schema": _one_of(NAME),
    "sample": _BOOL,
    "reader": _HEX8,
    "course": _VERSION,
    "torch": _VERSION,
    "device": _one_of(*DEVICES),
    "cores": _whole(1, 99_999),
    **{
        name: Rule(
            f"a list of at most {_MOST:,}", lambda v: isinstance(v, list) and len(v) <= _MOST
        )
        for name in LISTS
    },
}


def fields():
    """Return every field that a report may hold, with what may stand in it.

    Returns
    -------
    Table
        It displays itself.

    Examples
    --------
    >>> fields().rows[0]
    ('schema', 'one of measured-pytorch-report-1')
    """
    rows = [(name, rule.words) for name, rule in REPORT.items()]
    for name, entry in LISTS.items():
        rows += [(f"{name}: {field}", rule.words) for field, rule in entry.items()]
    return Table(("field", "holds"), rows)


def public(evidence, reader):
    """Return what may leave this machine of some evidence, built field by field.

    Parameters
    ----------
    evidence : Evidence
        The records.
    reader : str
        The reader's random id.

    Returns
    -------
    dict
        It passes `check`.
    """
    from helpers import __version__

    times = {id: record["last"] or record["first"] or 0 for id, record in evidence.records.items()}
    times |= {id: record["at"] for id, record in evidence.claims.items()}
    order = {id: n for n, id in enumerate(sorted(times, key=lambda id: (times[id], id)), 1)}
    found, known = {name: [] for name in LISTS}, {name: _known(name) for name in LISTS}
    for id, record in sorted([*evidence.records.items(), *evidence.claims.items()]):
        when = {"id": id, "week": week(times[id]), "order": min(order[id], _MOST * 3)}
        name = "claims" if "values" in record else "predictions" if ".p" in id else "exercises"
        entry = _PUBLIC[name](id, record) if id in known[name] else None
        if entry is not None and len(found[name]) < _MOST:
            found[name].append({**when, **entry})
    return {
        "schema": NAME,
        "sample": evidence.sample,
        "reader": reader,
        "course": __version__,
        "torch": _version(evidence.torch) or "0.0",
        "device": evidence.device,
        "cores": evidence.cores,
        **found,
    }


def _public_exercise(id, record):
    known = messages(id)
    message = record["message"]
    return {
        "best": record["best"],
        "solution": record["solution"],
        "checks": min(sum(record["checks"].values()), 10**9),
        "hints": min(sum(record["hints"].values()), 10**9),
        "message": message if message in known or message is None else "other sentence",
        "misses": sorted(known.intersection(record["misses"])),
    }


def _public_prediction(id, record):
    guess, truth = record["guess"], record["truth"]
    if guess is None:
        return None
    value = None if truth is None else truth["value"]
    if not _fits_question(id, guess["value"]) or not _fits_question(id, value, truth=True):
        return None  # asked otherwise by another version of the course
    return {"guess": guess["value"], "truth": value, "late": bool(guess.get("late"))}


def _public_claim(id, record):
    claim = _claims()[id]
    values = {name: record["values"].get(name) for name in claim.names}
    verdict = record["verdict"] if record["verdict"] in VERDICTS else claim.verdict
    return {
        "values": {name: v if _is_value(v) else "text" for name, v in values.items()},
        "met": record["met"],
        "verdict": verdict,
        "fingerprint": record["fingerprint"],
        "torch": _version(record["torch"]),
        "device": record["device"],
        "cores": record["cores"],
    }


_PUBLIC = {
    "exercises": _public_exercise,
    "predictions": _public_prediction,
    "claims": _public_claim,
}


def messages(id):
    """Return the ids of sentences that a record of an exercise may hold."""
    return {*_WORDS, *_ERRORS, *(wrong.name for wrong in _catalog.find_exercise(id).wrong)}


def week(seconds):
    """Return the ISO week of a Unix time, in UTC; None for no time.

    Examples
    --------
    >>> week(1_796_000_000), week(0)
    ('2026-W49', None)
    """
    if not 946_684_800 < seconds < 4_102_444_800:  # the years 2000 to 2099
        return None
    year, number, _ = datetime.fromtimestamp(seconds, UTC).isocalendar()
    return f"{year}-W{number:02}"


@cache
def _claims():
    return {claim.id: claim for claim in load_ledger()}


def _version(text):
    text = str(text).partition("+")[0]
    return text if _VERSION.fits(text) else None


def _is_value(value):
    if isinstance(value, str):
        return bool(re.fullmatch(TEXTS, value))
    return value is None or isinstance(value, bool) or is_number(value)


def _fits_question(id, value, *, truth=False):
    asked = _catalog.find_prediction(id)
    if value is None:
        return truth
    if isinstance(asked, Choice):
        return value in asked.options or (truth and value == NO_OPTION)
    return is_number(value)


def read(text):
    """Read a report, and refuse whatever does not stand in the schema; nothing is executed.

    Parameters
    ----------
    text : str or bytes
        What `LabReport.to_json` returned.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    ValueError
        If it is larger than 1 MB, no JSON, or holds a field, type or length that is not allowed;
        the sentence names the place, and never what stands there.

    Examples
    --------
    >>> read("[]")
    Traceback (most recent call last):
    ...
    ValueError: report must hold the fields of a report, got list
    """
    size = len(text.encode("utf-8", "replace") if isinstance(text, str) else text)
    if size > LARGEST:
        raise ValueError(f"a report has at most 1 MB, got {size / 1e6:.1f} MB")
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ValueError("expected the JSON of a lab report, got something else") from None
    check(data)
    return data


def _refuse(word):
    raise ValueError(f"{word} is no JSON")


def check(data):
    """Raise ValueError unless a value is a report with nothing but allowed fields."""
    _check_fields(data, REPORT, "report")
    for name, rules in LISTS.items():
        ids, known = [], _known(name)
        for n, entry in enumerate(data[name]):
            where = f"{name}[{n}]"
            _check_fields(entry, rules, where)
            if entry["id"] not in known:
                raise ValueError(f"{where}: id must be one of this version of the course")
            _check_meaning(name, entry, where)
            ids.append(entry["id"])
        if len(ids) > len(set(ids)):
            raise ValueError(f"{name} must name each id once, got one twice")


def _check_fields(value, rules, where):
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise ValueError(f"{where} must hold the fields of a report, got {kind}")  # noqa: TRY004
    missing = [name for name in rules if name not in value]
    unknown = [ascii(name)[:40] for name in value if name not in rules]
    if missing or unknown:
        raise ValueError(
            f"{where} must hold exactly the fields of the schema; missing: "
            f"{', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        )
    for name, rule in rules.items():
        if not rule.fits(value[name]):
            kind = type(value[name]).__name__
            raise ValueError(f"{where}: {name} must be {rule.words}, got another {kind}")


def _check_meaning(name, entry, where):
    """Raise unless each text of an entry is one of the course's own."""
    id = entry["id"]
    if name == "exercises" and not {*entry["misses"], entry["message"]} <= {*messages(id), None}:
        raise ValueError(f"{where}: message and misses must be ids that {id} has")
    if name == "predictions":
        guess = _fits_question(id, entry["guess"])
        if not (guess and _fits_question(id, entry["truth"], truth=True)):
            raise ValueError(f"{where}: guess and truth must be answers that {id} allows")
    if name == "claims" and entry["values"].keys() != set(_claims()[id].names):
        raise ValueError(f"{where}: values must have the names that the test of {id} has")


def _known(name):
    if name == "claims":
        return {id for id, claim in _claims().items() if claim.expectation}
    return set(_catalog.known_ids(name.upper()))
