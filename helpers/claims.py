"""Record what a cell measured about a claim of the ledger, and let the ledger decide.

``claims.csv`` holds statements of two public tutorials with a verdict each, given for the
environment that the tutorial asks for. A statement that a cell can settle carries an expectation,
a comparison of named measured values; ``record`` takes those values and the expectation decides.
What was measured is kept in the progress folder, for ``helpers.lab_report``.
"""

import csv
import numbers
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape

from helpers import _claim_record
from helpers._claim_record import fingerprint
from helpers._expression import evaluate, names_in
from helpers._literals import literal_arguments, typed_in_call
from helpers._paths import ROOT

__all__ = [
    "Claim",
    "Outcome",
    "Report",
    "fingerprint",
    "literal_arguments",
    "load_ledger",
    "record",
    "report",
]

VERDICTS = ("holds", "holds partly", "outdated", "fails", "unsupported")
EVIDENCE = ("cell", "cell-with-cuda", "source", "no-claim")
_RECORDABLE = ("cell", "cell-with-cuda")
_AS_VERB = {"outdated": "is outdated", "unsupported": "is unsupported"}
_recorded: dict[str, "Outcome"] = {}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Hold one row of the ledger.

    Attributes
    ----------
    id : str
        ``A1-01`` to the last row of the second tutorial.
    source : str
        Where the statement was published, with its date.
    statement : str
        What the tutorial says, in English and in our words.
    asks_for : str
        The environment the tutorial assumes; a missing GPU is no fault of a claim.
    verdict : str
        One of ``VERDICTS``.
    correct : str
        What is right instead, or what else one has to know.
    evidence : str
        One of ``EVIDENCE``: what can settle the statement.
    reference : str
        The documentation that settles it, for evidence ``source``.
    notebook : int
        The notebook that owns the statement.
    expectation : str
        The comparison of measured values that the verdict rests on.
    """

    id: str
    source: str
    statement: str
    asks_for: str
    verdict: str
    correct: str
    evidence: str
    reference: str
    notebook: int
    expectation: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the values that ``record`` needs."""
        return names_in(self.expectation) if self.expectation else ()

    def __str__(self) -> str:
        """Return id, verdict and statement in one line."""
        return f"{self.id} {_AS_VERB.get(self.verdict, self.verdict)}: {self.statement}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Outcome:
    """Hold what one machine measured about one claim.

    Attributes
    ----------
    claim : Claim
        The row of the ledger.
    values : tuple of (str, value) pairs
        The measured values in the order of the expectation; None where nothing was measured.
    met : bool or None
        Whether the values meet the expectation; None when one is missing.
    notice : str
        Why the measurement was not saved, if so.
    """

    claim: Claim
    values: tuple[tuple[str, float | str | None], ...]
    met: bool | None
    notice: str = ""

    @property
    def status(self) -> str:
        """Return the outcome in words, such as ``A1-12 fails; this machine agrees``."""
        if self.met is None:
            needs = ": needs CUDA" if self.claim.evidence == "cell-with-cuda" else ""
            return f"{self.claim.id}: not measured here{needs}"
        if self.met:
            verdict = _AS_VERB.get(self.claim.verdict, self.claim.verdict)
            return f"{self.claim.id} {verdict}; this machine agrees"
        return f"{self.claim.id}: this machine disagrees with the audit"

    @property
    def measured(self) -> str:
        """Return the values as text, such as ``values_equal = 1, itemsize = 4``."""
        return ", ".join(f"{name} = {show_value(value)}" for name, value in self.values)

    def _rows(self) -> tuple[tuple[str, str], ...]:
        return (
            ("The tutorial says", self.claim.statement),
            ("What is true", self.claim.correct),
            ("Our test", self.claim.expectation),
            ("Measured here", self.measured),
        )

    def __repr__(self) -> str:
        """Return the text that a notebook shows and compares."""
        rows = [f"  {name}: {text}" for name, text in self._rows()]
        return "\n".join([self.status, *rows, *filter(None, [self.notice])])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<dt style='float:none;width:auto;font-weight:600'>{name}</dt>"
            f"<dd style='float:none;width:auto;margin:0'>{_html_text(name, text)}</dd>"
            for name, text in self._rows()
        )
        notice = f"<div>{escape(self.notice)}</div>" if self.notice else ""
        return (
            "<div style='border-left:3px solid currentColor;padding-left:.8em'>"
            f"<strong>{escape(self.status)}</strong><dl style='display:grid;grid-template-columns:"
            f"max-content 1fr;gap:.2em 1em;margin:.3em 0'>{rows}</dl>{notice}</div>"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """Hold what was recorded in this process beside what the ledger asks for.

    Attributes
    ----------
    outcomes : tuple of Outcome
        The last record of each claim, in the order of the ledger.
    missing : tuple of Claim
        Claims that a cell can settle and that were not recorded here.
    undecidable : tuple of Claim
        Claims that documentation settles, or nothing.
    """

    outcomes: tuple[Outcome, ...]
    missing: tuple[Claim, ...]
    undecidable: tuple[Claim, ...]

    def counts(self) -> dict[str, int]:
        """Count the outcomes: each verdict that was met, then the other two kinds."""
        found = Counter(_kind(outcome) for outcome in self.outcomes)
        return {kind: found[kind] for kind in (*VERDICTS, "disagrees", "not measured here")}

    def _lines(self) -> list[str]:
        total = len(self.outcomes) + len(self.missing)
        settled = Counter(claim.evidence for claim in self.undecidable)
        lines = [
            f"{len(self.outcomes)} of {total} claims that a cell can settle were recorded here",
            *_counted("Audit and machine agree", self.counts(), VERDICTS),
            *_counted("Otherwise", self.counts(), ("disagrees", "not measured here")),
            *(f"  {outcome.status}" for outcome in self.outcomes),
        ]
        if self.missing:
            lines.append("Not recorded: " + _by_notebook(self.missing))
        if self.undecidable:
            lines.append(
                f"Settled by documentation: {settled['source']}; by nothing: {settled['no-claim']}"
            )
        return lines

    def __repr__(self) -> str:
        """Return the text that a notebook shows and compares."""
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        first, *rest = self._lines()
        body = "<br>".join(escape(line).replace("  ", "&emsp;") for line in rest)
        return f"<div><strong>{escape(first)}</strong><br>{body}</div>"


@cache
def load_ledger() -> tuple[Claim, ...]:
    """Read the ledger.

    Returns
    -------
    tuple of Claim
        One for each row of ``claims.csv``, in its order.

    Raises
    ------
    FileNotFoundError
        If ``claims.csv`` is not beside the helpers, as in an incomplete clone.

    Examples
    --------
    >>> from helpers import claims
    >>> claims.load_ledger()[0].id
    'A1-01'
    """
    path = ROOT / "claims.csv"
    if not path.is_file():
        raise FileNotFoundError(
            "claims.csv is missing beside the helpers folder; restore it with git checkout claims.csv"
        )
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(
            Claim(**{**row, "notebook": int(row["notebook"])}) for row in csv.DictReader(file)
        )


def record(claim_id: str, /, **values: object) -> Outcome:
    """Record what was measured about a claim, and decide it by the ledger's expectation.

    The outcome is kept for ``report``; recording a claim again replaces it. It is also written
    to the progress folder, one file for each claim, with a fingerprint of the cell that measured
    it. No exercise record is made of it: a course whose exercises and predictions are untouched
    still counts as untouched. Where nothing can be written, the outcome says so and stays whole.

    Parameters
    ----------
    claim_id : str
        The id of a claim that a cell can settle.
    **values : number, bool, str, 0-d array or tensor, or None
        One value for each name of the expectation; None says that it cannot be measured here.
        NaN meets no expectation. Literals are refused: they would agree on every machine.

    Returns
    -------
    Outcome
        Displays itself: status, what the tutorial says, what is true, our test, measured values.

    Raises
    ------
    ValueError
        If the id is unknown or not for a cell to settle, if names are missing or unknown, or if
        a value is a literal.
    TypeError
        If a value is neither a single number nor a text.

    Examples
    --------
    >>> import torch
    >>> from helpers import claims
    >>> total = torch.sum(torch.tensor([1, 2, 3, 4, 5]))
    >>> print(claims.record("A1-28", total=total))
    A1-28 holds; this machine agrees
      The tutorial says: torch.sum of [1, 2, 3, 4, 5] gives tensor(15).
      What is true: It does, as int64.
      Our test: total == 15
      Measured here: total = 15
    """
    claim = _find(claim_id)
    typed = typed_in_call(sys._getframe(1))
    if typed:
        raise ValueError(
            f"{claim.id} takes measured values, got the literal {', '.join(typed)}; "
            "pass the variable that the cell measured"
        )
    _check_names(claim, values)
    measured = {name: _as_value(claim, name, values[name]) for name in claim.names}
    complete = None not in measured.values()
    met = evaluate(claim.expectation, measured) if complete else None
    cell = _claim_record.fingerprint_of_caller(sys._getframe(1))
    notice = _claim_record.keep(claim, measured, met, cell)
    outcome = Outcome(claim=claim, values=tuple(measured.items()), met=met, notice=notice)
    _recorded[claim.id] = outcome
    return outcome


def report(notebook: int | None = None) -> Report:
    """Collect what was recorded in this process, and what is missing.

    Parameters
    ----------
    notebook : int, optional
        The notebook whose claims to show, such as 13; the whole ledger by default.

    Returns
    -------
    Report
        Displays itself; its counts are computed from the records.

    Raises
    ------
    ValueError
        If the notebook owns no claim.

    Examples
    --------
    >>> from helpers import claims
    >>> len(claims.report(72).undecidable)
    3
    """
    ledger = [claim for claim in load_ledger() if notebook in (None, claim.notebook)]
    if not ledger:
        owners = ", ".join(map(str, sorted({claim.notebook for claim in load_ledger()})))
        raise ValueError(f"notebook {notebook!r} owns no claim; these own some: {owners}")
    recordable = [claim for claim in ledger if claim.evidence in _RECORDABLE]
    return Report(
        outcomes=tuple(_recorded[claim.id] for claim in ledger if claim.id in _recorded),
        missing=tuple(claim for claim in recordable if claim.id not in _recorded),
        undecidable=tuple(claim for claim in ledger if claim.evidence not in _RECORDABLE),
    )


def _find(claim_id: str) -> Claim:
    """Return a claim that a cell can settle, or say why there is none."""
    ledger = {claim.id: claim for claim in load_ledger()}
    if claim_id not in ledger:
        first, last = next(iter(ledger)), next(reversed(ledger))
        raise ValueError(
            f"expected an id of the ledger, {first} to {last}, got {claim_id!r}; "
            "claims.load_ledger() lists them"
        )
    claim = ledger[claim_id]
    if claim.evidence == "no-claim":
        raise ValueError(
            f"{claim.id} names no quantity, setting or comparison, so no measurement can decide "
            f"it; it stays {claim.verdict}"
        )
    if claim.evidence == "source":
        raise ValueError(
            f"{claim.id} is settled by documentation, not by a measurement; "
            f"cite it instead: {claim.reference}"
        )
    return claim


def _check_names(claim: Claim, values: Mapping[str, object]) -> None:
    missing = [name for name in claim.names if name not in values]
    unknown = [name for name in values if name not in claim.names]
    if missing or unknown:
        raise ValueError(
            f"{claim.id} expects {', '.join(claim.names)}; "
            f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        )


def _as_value(claim: Claim, name: str, value: object) -> float | str | None:
    """Return a plain number, text or None; 0-d tensors, arrays and NumPy scalars are read out."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(
        f"{claim.id}: {name} must be a single number, got {type(value).__name__}; "
        "pass a count, a ratio or a 0-d tensor"
    )


def show_value(value: float | str | None) -> str:
    """Return a measured value as text: integers exact, other numbers with 3 significant digits.

    Examples
    --------
    >>> show_value(16_777_217), show_value(3.14159), show_value(0.999999), show_value(None)
    ('16,777,217', '3.14', '0.999999', 'not measured')
    """
    if value is None:
        return "not measured"
    if isinstance(value, str):
        return value if len(value) <= 16 else value[:16] + "…"
    if not isinstance(value, float):
        return f"{value:,}" if type(value) is int else str(value)
    rounded = float(f"{value:.3g}")
    if abs(value) < 100 and rounded == round(value) != value:
        return f"{value:.7g}"  # 0.9999990 shown as 1 would look like a claim that fails
    if rounded == 0 or 1e-3 <= abs(rounded) < 1e7:
        return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"
    return f"{rounded:.3g}"


def _html_text(name: str, text: str) -> str:
    return f"<code>{escape(text)}</code>" if name in ("Our test", "Measured here") else escape(text)


def _kind(outcome: Outcome) -> str:
    if outcome.met is None:
        return "not measured here"
    return outcome.claim.verdict if outcome.met else "disagrees"


def _counted(heading: str, counts: Mapping[str, int], kinds: Iterable[str]) -> list[str]:
    """Return one line with the kinds that occurred, or none."""
    found = ", ".join(f"{kind} {counts[kind]}" for kind in kinds if counts[kind])
    return [f"{heading}: {found}"] if found else []


def _by_notebook(missing: Iterable[Claim]) -> str:
    """Return how many claims are missing in each notebook, such as ``11 (8), 12 (9)``."""
    count = Counter(claim.notebook for claim in missing)
    return ", ".join(f"{notebook} ({count[notebook]})" for notebook in sorted(count))
