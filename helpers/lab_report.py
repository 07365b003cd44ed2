"""Show what the course recorded about a reader, and write it so that it can be passed on.

``build()`` reads the records of guesses, checks and claims in the progress folder and writes
nothing. What `LabReport.save` writes holds no more fields than ``fields()`` lists.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from helpers import (
    _claim_record,
    _display,
    _reader,
    _report_evidence,
    _report_page,
    _report_sample,
    _report_schema,
    _shelf,
)
from helpers._report_board import Board, Incomplete
from helpers._report_claims import Claims
from helpers._report_evidence import Evidence
from helpers._report_guesses import Guesses
from helpers._report_milestones import Milestones
from helpers._report_part import LABEL
from helpers._report_schema import fields
from helpers.exercises import _record
from helpers.exercises._check import Page

__all__ = ["FILES", "LabReport", "build", "fields"]

FILES = ("lab-report.html", "lab-report.json")
_OWN = {FILES[0]: _report_page.GENERATOR, FILES[1]: f'"schema": "{_report_schema.NAME}"'}


@dataclass(frozen=True, repr=False)
class LabReport(_display.Shown):
    """Show guesses, checks and claims in parts, each of which displays itself too.

    Attributes
    ----------
    evidence : Evidence
        The records that it is made of.
    board : Board
        Exercises by notebook: passed, after the solution, tried and not passed, not attempted.
    guesses : Guesses
        Which way the guesses err, by topic.
    claims : Claims
        The whole ledger by verdict and by state, with the numbers measured here.
    milestones : Milestones
        What the records prove.
    incomplete : Incomplete
        What each notebook still holds.
    """

    evidence: Evidence
    board: Board
    guesses: Guesses
    claims: Claims
    milestones: Milestones
    incomplete: Incomplete

    @property
    def is_sample(self):
        """Return whether the record was generated, because nothing was recorded here."""
        return self.evidence.sample

    @property
    def parts(self):
        """Return the parts in the order in which they are shown."""
        return self.board, self.guesses, self.claims, self.milestones, self.incomplete

    def text(self):
        """Return the machine's kind and every part as text."""
        return "\n\n".join(["\n".join(self._head()), *(part.text() for part in self.parts)])

    def html(self):
        """Return the same with the figures."""
        head = "".join(f"<div>{_display.escape(line)}</div>" for line in self._head())
        return f"{head}{''.join(f'<hr>{part.html()}' for part in self.parts)}"

    def to_json(self):
        """Return what may leave this machine, as JSON.

        The first call that is no sample gives the reader a random id of 8 hexadecimal digits,
        so that two reports of one reader can be merged. It is a pseudonym;
        ``progress.new_id()`` replaces it.

        Returns
        -------
        str
            An object that holds exactly the fields that ``fields()`` lists.
        """
        reader = _report_sample.READER if self.is_sample else _reader.reader_id()
        return json.dumps(_report_schema.public(self.evidence, reader), indent=1, allow_nan=False)

    def to_html(self):
        """Return the report as one HTML page that needs no other file.

        Returns
        -------
        str
            A page in English with a light and a dark theme, headings, captions and alt texts.
        """
        return _report_page.page("Lab report", self._head(), self.parts)

    def save(self, folder="."):
        """Write the page and the JSON, and name both.

        Parameters
        ----------
        folder : str or pathlib.Path
            Where to write. Only files that an earlier ``save`` wrote are replaced.

        Returns
        -------
        Page
            It names the two files, or says why nothing was written; no error reaches the cell.
        """
        foreign = [name for name in FILES if not _shelf.may_replace(Path(folder, name), _OWN[name])]
        if foreign:
            told = f"{' and '.join(foreign)} is there and was not written by a lab report: "
            return Page("Nothing written", told + "move it, or choose another folder.")
        texts = dict(zip(FILES, (self.to_html(), self.to_json() + "\n"), strict=True))
        try:
            for name, text in texts.items():
                _shelf.write(Path(folder, name), text.encode())
        except OSError as error:
            return Page("Not saved", f"Not saved, because {_shelf.why(error, 'the folder')}.")
        if self.is_sample:
            told = f"{FILES[0]} and {FILES[1]} are a sample: nothing of yours is recorded here."
            return Page("Saved", told)
        return Page("Saved", f"{FILES[0]} to read, {FILES[1]} to pass on.")

    def merged_with(self, other):
        """Join two reports of one reader, such as of two machines; nothing counts twice.

        Parameters
        ----------
        other : LabReport
            In any order, any number of times.

        Returns
        -------
        LabReport
            On the machine of this one.

        Raises
        ------
        ValueError
            If one of them is a sample and the other is not.

        Examples
        --------
        >>> report = build(sample=True)
        >>> report.merged_with(report) == report
        True
        """
        if self.is_sample != other.is_sample:
            raise ValueError("a sample was generated: merge only reports of your own records")
        evidence = Evidence(**{
            **vars(self.evidence),
            "records": _joined(self.evidence.records, other.evidence.records, _record.merge),
            "claims": _joined(self.evidence.claims, other.evidence.claims, _claim_record.merge),
        })  # fmt: skip
        return _of(evidence)

    def _head(self):
        label = [f"{LABEL}."] if self.is_sample else []
        return [*label, self.evidence.machine]


def build(sample=False):
    """Build the report of what is recorded on this machine; write nothing.

    Parameters
    ----------
    sample : bool
        Whether to show the generated sample also where there are records.

    Returns
    -------
    LabReport
        It displays itself. Where nothing is recorded it is the labeled sample.

    Examples
    --------
    >>> print(build(sample=True).text().splitlines()[0])
    Sample record: generated, not yours.
    """
    evidence = None if sample else _report_evidence.gather()
    if evidence is None or not (evidence.records or evidence.claims):
        evidence = _report_sample.sample()
    return _of(evidence)


def _of(evidence):
    board, claims = Board.of(evidence), Claims.of(evidence)
    return LabReport(
        evidence=evidence,
        board=board,
        guesses=Guesses.of(evidence),
        claims=claims,
        milestones=Milestones.of(evidence),
        incomplete=Incomplete.of(evidence, board, claims),
    )


def _joined(a, b, merge):
    both = {id: merge(a[id], b[id]) for id in a.keys() & b.keys()}
    return dict(sorted({**a, **b, **both}.items()))
