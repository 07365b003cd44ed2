"""Name what a reader has shown to be able to do, and what proves it."""

from dataclasses import dataclass

from helpers import _report_evidence
from helpers._report_board import notebook, state_of
from helpers._report_part import Grid, Part, State
from helpers.claims import show_value
from helpers.exercises import _catalog
from helpers.exercises._guess import as_text


@dataclass(frozen=True)
class Milestone:
    """Say what somebody has done who passed these exercises and measured these claims.

    Attributes
    ----------
    name : str
        In the past tense.
    exercises : tuple of str
        All of them must be passed.
    claims : tuple of str
        All of them must be measured, and agree with the ledger.
    numbers : tuple of str
        Predictions whose measured value is shown beside it.
    """

    name: str
    exercises: tuple[str, ...]
    claims: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


MILESTONES = (
    Milestone("built an autograd that agrees with torch", ("16.1", "16.2")),
    Milestone("declined a speedup that was noise", ("22.3",), numbers=("22.p4",)),
    Milestone("made two processes agree", ("31.4",), claims=("A1-40",)),
    Milestone("killed a worker and lost nothing", ("34.1",), numbers=("34.p2",)),
    Milestone("sized a 7B model", ("41.5",), numbers=("41.p6",)),
    Milestone("saved memory and kept the gradient", ("43.1", "44.1"), claims=("A1-50",)),
    Milestone("served a model under load", ("63.1", "63.2", "63.3"), numbers=("63.p4",)),
    Milestone("trained under a budget", ("71.3",)),
)
_MET = {True: "measured", False: "measured otherwise", None: "not measured"}
_OWN, _AFTER, _NOT_YET = "reached by your own work", "reached after the solution", "not yet"
_TONES = {_OWN: "good", _AFTER: "note", _NOT_YET: "open"}


@dataclass(frozen=True, repr=False)
class Milestones(Part):
    """Show each milestone: reached or not yet, what proves it, and the reader's own numbers.

    Attributes
    ----------
    rows : tuple of tuple
        Milestone, state, what proves it, the notebooks where, own numbers.
    sample : bool
        Whether all of it was generated.
    """

    rows: tuple
    sample: bool = False

    heading = "Milestones"

    @classmethod
    def of(cls, evidence):
        """Decide every milestone from the records alone."""
        rows = tuple(_judged(milestone, evidence) for milestone in MILESTONES)
        return cls(rows, evidence.sample)

    @property
    def reached(self):
        """Return the names of those that are reached."""
        return tuple(name for name, state, *_ in self.rows if state != _NOT_YET)

    def remarks(self):
        """Say how many the records prove."""
        return (f"{len(self.reached)} of {len(self.rows)} are proved by what was recorded.",)

    def grids(self):
        """Return one row for each milestone."""
        rows = [(name, State(state, _TONES[state]), *rest) for name, state, *rest in self.rows]
        columns = ("you", "state", "proved by", "in", "measured here")
        return (Grid("What the records prove", columns, tuple(rows)),)


def _judged(milestone, evidence):
    states = {id: state_of(evidence.record(id)) for id in milestone.exercises}
    met = {id: (evidence.claims.get(id) or {}).get("met") for id in milestone.claims}
    proof = [f"{id} {state}" for id, state in states.items()]
    proof += [f"{id} {_MET[value]}" for id, value in met.items()]
    passed = all(state.startswith("passed") for state in states.values())
    if not (passed and all(met.values())):
        state = _NOT_YET
    else:
        state = _OWN if all(state == "passed" for state in states.values()) else _AFTER
    where = [notebook(number) for number in sorted({id[:2] for id in states})]
    return milestone.name, state, "; ".join(proof), where, _numbers(milestone, evidence)


def _numbers(milestone, evidence):
    """Return what the reader's machine measured for it, or a dash."""
    told = []
    for id in milestone.claims:
        values = (evidence.claims.get(id) or {}).get("values", {})
        told += [f"{name} = {show_value(value)}" for name, value in values.items()]
    for id in milestone.numbers:
        truth = evidence.record(id)["truth"]
        if truth is not None and id in _report_evidence.known("PREDICTIONS"):
            told.append(f"{id}: {as_text(_catalog.find_prediction(id), truth['value'])}")
    return ", ".join(told) or "–"
