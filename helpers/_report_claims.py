"""Say of each claim of the ledger whether this reader measured it, and what came out."""

from collections import Counter
from dataclasses import dataclass

from helpers import _report_evidence, plotting
from helpers._report_board import notebook
from helpers._report_part import Grid, Part, State
from helpers.claims import VERDICTS, Claim, load_ledger, show_value

STATES = {
    "measured here": "good",
    "stale": "bad",
    "not measurable here": "open",
    "missing": "open",
    "from source": "note",
    "no claim": "note",
}
_LOOKS = {
    "measured here": ("new", ""),
    "stale": ("gradient", "///"),
    "not measurable here": ("baseline", "xxx"),
    "missing": ("reference", "..."),
    "from source": ("memory", ""),
    "no claim": ("ink", ""),
}


@dataclass(frozen=True)
class ClaimRow:
    """Hold one claim with what is known of it here.

    Attributes
    ----------
    claim : Claim
        The row of the ledger.
    state : str
        One of ``STATES``.
    detail : str
        The measured numbers, where to measure, or the source.
    met : bool or None
        Whether the numbers meet the ledger's expectation; None without numbers.
    """

    claim: Claim
    state: str
    detail: str
    met: bool | None = None


@dataclass(frozen=True, repr=False)
class Claims(Part):
    """Show every claim by verdict and by state, each with its own numbers.

    Attributes
    ----------
    rows : tuple of ClaimRow
        One for each row of the ledger, in its order.
    sample : bool
        Whether all of it was generated.
    """

    rows: tuple
    sample: bool = False

    heading = "Claims"

    @classmethod
    def of(cls, evidence):
        """Decide the state of every claim."""
        return cls(tuple(_judged(claim, evidence) for claim in load_ledger()), evidence.sample)

    def counts(self):
        """Count the claims by verdict and state.

        Returns
        -------
        dict of (str, str) to int
            Verdict and state to the number of claims; they add up to all rows.
        """
        found = Counter((row.claim.verdict, row.state) for row in self.rows)
        return {(verdict, state): found[verdict, state] for verdict in VERDICTS for state in STATES}

    def remarks(self):
        """Name the claims in which this machine and the ledger disagree."""
        fresh = [row for row in self.rows if row.state == "measured here"]
        other = [row.claim.id for row in fresh if row.met is False]
        said = [f"{len(fresh)} of {len(self.rows)} claims are measured here."]
        if other:
            said.append(f"This machine disagrees with the ledger in {', '.join(other)}.")
        if any(row.state == "stale" for row in self.rows):
            said.append("Stale is no accusation: run the cell again.")
        return tuple(said)

    def grids(self):
        """Return the counts, the claims with numbers, and the whole ledger, folded."""
        counts, known = self.counts(), [row for row in self.rows if row.state in _RECORDED]
        table = [(verdict, *(counts[verdict, state] for state in STATES),
                  sum(counts[verdict, state] for state in STATES)) for verdict in VERDICTS]  # fmt: skip
        columns = ("verdict of the ledger", *STATES, "all")
        grids = [Grid("Claims by verdict and by state", columns, tuple(table))]
        if known:
            grids.append(Grid("Claims recorded here", _COLUMNS, tuple(map(_cells, known))))
        caption = f"All {len(self.rows)} claims"
        whole = tuple((id, row.claim.statement, *rest)
                      for row, (id, *rest) in zip(self.rows, map(_cells, self.rows), strict=True))  # fmt: skip
        columns = (_COLUMNS[0], "statement", *_COLUMNS[1:])
        grids.append(Grid(caption, columns, whole, folded=True))
        return tuple(grids)

    def chart(self):
        """Return the bars of the verdicts, divided by state."""
        return plot_claims(self)


_COLUMNS = ("claim", "verdict", "state", "numbers or place")
_RECORDED = ("measured here", "stale")


def _cells(row):
    tone = "bad" if row.detail.startswith("disagrees") else STATES[row.state]
    return row.claim.id, row.claim.verdict, State(row.state, tone), row.detail


def _judged(claim, evidence):
    if claim.evidence == "source":
        return ClaimRow(claim, "from source", claim.reference)
    if claim.evidence == "no-claim":
        return ClaimRow(claim, "no claim", "names no quantity, setting or comparison")
    record, where = evidence.claims.get(claim.id), notebook(f"{claim.notebook:02}")
    if record is None:
        if claim.evidence == "cell-with-cuda" and evidence.device != "cuda":
            return ClaimRow(claim, "not measurable here", f"needs CUDA; with it, in {where}")
        return ClaimRow(claim, "missing", f"measured by {where}")
    if record["met"] is None:
        cuda = claim.evidence == "cell-with-cuda"
        detail = f"needs CUDA; with it, in {where}" if cuda else f"{where} could not measure it"
        return ClaimRow(claim, "not measurable here", detail)
    numbers = ", ".join(f"{name} = {show_value(value)}" for name, value in record["values"].items())
    why = _stale(claim, record, evidence)
    if why:
        return ClaimRow(claim, "stale", f"{numbers}; {why}", record["met"])
    detail = numbers if record["met"] else f"disagrees: {numbers}"
    return ClaimRow(claim, "measured here", detail, record["met"])


def _stale(claim, record, evidence):
    """Return why a measurement does not stand for the course as it is, or an empty text."""
    if (record["torch"] or "").partition("+")[0] != evidence.torch:
        return f"measured with torch {record['torch']}, now it is {evidence.torch}"
    cells = _report_evidence.cells_of(claim.notebook).get(claim.id)
    if not cells or evidence.sample and record["fingerprint"] == SAMPLE_CELL:
        return ""  # no notebook to compare with
    if record["fingerprint"] is None:
        return "recorded outside of a notebook's cell"
    return "" if record["fingerprint"] in cells else "the cell has changed"


SAMPLE_CELL = "0" * 16


def plot_claims(claims):
    """Draw one bar for each verdict, divided by state, with its counts.

    Parameters
    ----------
    claims : Claims
        What to count.

    Returns
    -------
    plotting.Chart
        With one row per verdict and one column per state.
    """
    counts, total = claims.counts(), len(claims.rows)
    fresh = sum(counts[verdict, "measured here"] for verdict in VERDICTS)
    nothing = sum(counts[verdict, "no claim"] for verdict in VERDICTS)
    message = f"{fresh} of {total} claims measured here; {nothing} name nothing to measure"
    figure, axes = plotting.new_figure(message)
    for state in STATES:
        _bars(axes, state, counts)
    axes.set(xlabel="claims", ylim=(len(VERDICTS) - 0.4, -0.6))
    axes.set_yticks(range(len(VERDICTS)), list(VERDICTS))
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    rows = [(verdict, *(str(counts[verdict, state]) for state in STATES)) for verdict in VERDICTS]
    return plotting.Chart(figure, message, ("verdict", *STATES), tuple(rows))


def _bars(axes, state, counts):
    colors, (color, hatch) = plotting.colors(), _LOOKS[state]
    before = list(STATES)[: list(STATES).index(state)]
    for y, verdict in enumerate(VERDICTS):
        count, low = counts[verdict, state], sum(counts[verdict, other] for other in before)
        axes.barh(y, count, left=low, height=0.64, color=colors[color], hatch=hatch,
                  edgecolor=colors["paper"], linewidth=1, label=state if y == 0 else None)  # fmt: skip
        if count:
            box = {"facecolor": colors["paper"], "edgecolor": "none", "pad": 1}
            axes.text(
                low + count / 2, y, str(count), ha="center", va="center", fontsize=9, bbox=box
            )
