"""Say what was tried and passed in each notebook, and what is still to do."""

from dataclasses import dataclass

from helpers import _report_evidence
from helpers._report_part import Grid, Link, Part

STATES = ("passed", "passed after the solution", "tried", "not attempted")
# As a column beside the others "tried" alone reads as the sum of all who tried.
HEADS = (*STATES[:2], "tried, not passed", STATES[3])


def state_of(record):
    """Return how far an exercise came: one of ``STATES``.

    Examples
    --------
    >>> from helpers.exercises._record import blank
    >>> state_of(blank("13.2", "exercise"))
    'not attempted'
    """
    if record["best"] == "passed":
        return STATES[1] if record["solution"] else STATES[0]
    return STATES[3] if record["best"] == "not attempted" else STATES[2]


@dataclass(frozen=True, repr=False)
class Board(Part):
    """Show for each notebook how many of its exercises came how far.

    Attributes
    ----------
    states : dict of str to str
        Exercise to its state, for every exercise of the course and every recorded one.
    sample : bool
        Whether all of it was generated.
    """

    states: dict
    sample: bool = False

    heading = "Exercises by notebook"

    @classmethod
    def of(cls, evidence):
        """Read the states off the records."""
        ids = {*_report_evidence.known("EXERCISES"), *evidence.records}
        ids = sorted(id for id in ids if ".p" not in id)
        return cls({id: state_of(evidence.record(id)) for id in ids}, evidence.sample)

    def counts(self):
        """Count the exercises in each state."""
        return {state: list(self.states.values()).count(state) for state in STATES}

    def remarks(self):
        """Say how many were passed, of all."""
        passed = self.counts()[STATES[0]] + self.counts()[STATES[1]]
        return (f"{passed} of {len(self.states)} exercises passed.",)

    def grids(self):
        """Return one row for each notebook."""
        rows = []
        for number in sorted({id[:2] for id in self.states}):
            own = [state for id, state in self.states.items() if id[:2] == number]
            rows.append((notebook(number), *(own.count(state) for state in STATES)))
        return (Grid("How far the exercises came", ("notebook", *HEADS), tuple(rows)),)


def notebook(number):
    """Return a link to a notebook, its number and title; the number alone where there is none.

    Examples
    --------
    >>> str(notebook("13"))
    '13 Share memory with NumPy'
    """
    name, title = _report_evidence.notebooks().get(number, ("", ""))
    return Link(f"{number} {title}", name) if name else number


@dataclass(frozen=True, repr=False)
class Incomplete(Part):
    """List what each notebook still holds; nothing is locked, and the order is the reader's.

    Attributes
    ----------
    open : dict of str to tuple of three tuples
        Notebook to its exercises that are not passed, predictions without a guess, and claims
        that were not measured or have to be measured again.
    sample : bool
        Whether all of it was generated.
    """

    open: dict
    sample: bool = False

    heading = "Incomplete"

    @classmethod
    def of(cls, evidence, board, claims):
        """Collect what is open from the other parts."""
        exercises = [id for id, state in board.states.items() if not state.startswith("passed")]
        guesses = [id for id in _report_evidence.known("PREDICTIONS")
                   if not evidence.record(id)["guess"]]  # fmt: skip
        measures = [row.claim for row in claims.rows if row.state in ("missing", "stale")]
        numbers = {id[:2] for id in (*exercises, *guesses)}
        numbers |= {f"{claim.notebook:02}" for claim in measures}
        found = {
            number: (
                tuple(id for id in exercises if id[:2] == number),
                tuple(id for id in guesses if id[:2] == number),
                tuple(claim.id for claim in measures if f"{claim.notebook:02}" == number),
            )
            for number in sorted(numbers)
        }
        return cls(found, evidence.sample)

    def remarks(self):
        """Say that the list forbids nothing."""
        if not self.open:
            return ("Nothing is open.",)
        return ("A list, not a lock: every notebook is open to you, in any order.",)

    def grids(self):
        """Return one row for each notebook that has something open."""
        rows = [(notebook(number), *map(_listed, kinds)) for number, kinds in self.open.items()]
        columns = ("notebook", "exercises", "guesses", "claims to measure")
        return (Grid("What each notebook still holds", columns, tuple(rows)),) if rows else ()


def _listed(ids):
    return ", ".join(ids) or "none"
