"""Say from stored guesses which way a reader errs, as factors, topic by topic."""

import math
import statistics
from dataclasses import dataclass

from helpers import plotting
from helpers._report_board import notebook
from helpers._report_part import Grid, Part
from helpers.exercises import _catalog
from helpers.exercises._guess import BANDS, as_text, band_of
from helpers.exercises._model import Choice, Number

TOPICS = {
    "0": "Start",
    "1": "Tensors and gradients",
    "2": "One accelerator",
    "3": "Many devices",
    "4": "Memory",
    "5": "Craft",
    "6": "Deployment",
    "7": "The whole",
}
FEWEST = 5  # guesses that say which way somebody errs
_KINDS = {"bytes": "bytes", "KiB": "bytes", "MiB": "bytes", "GiB": "bytes", "s": "seconds"}
_NEAR = 1.5


@dataclass(frozen=True)
class Guess:
    """Hold one guess beside what was measured.

    Attributes
    ----------
    id : str
        The prediction.
    guess, truth : float, str or None
        As recorded; no truth where nothing was measured yet.
    late : bool
        Whether it came after the measurement: shown, never counted.
    kind : str
        ``factor`` (a quantity), ``count`` (a whole number out of some) or ``choice``.
    unit : str
        Of the question.
    """

    id: str
    guess: float | str
    truth: float | str | None
    late: bool
    kind: str
    unit: str = ""

    @property
    def factor(self):
        """Return guess over truth, above 1 when it was too high; None where there is no factor."""
        return factor_of(self.guess, self.truth) if self.kind == "factor" else None

    @property
    def hit(self):
        """Return whether a choice or a count is what was measured; None where that is open."""
        if self.kind == "factor" or self.truth in (None, "none of the options"):
            return None
        return self.guess == self.truth


def factor_of(guess, truth):
    """Return guess over truth; None if one is missing or no factor leads from one to the other.

    Examples
    --------
    >>> factor_of(28, 112), factor_of(0, 0), factor_of(0, 5), factor_of(5, None)
    (0.25, 1.0, None, None)
    """
    if truth is None or isinstance(truth, str) or isinstance(guess, str):
        return None
    if guess == truth:
        return 1.0
    return guess / truth if guess * truth > 0 and math.isfinite(guess / truth) else None


def typical_factor(factors):
    """Return ``2 ** median(log2(factor))``: below 1 means too low; None without any.

    Examples
    --------
    >>> typical_factor([10, 0.1]), typical_factor([4, 4, 1000]), typical_factor([])
    (1.0, 4.0, None)
    """
    logs = [math.log2(factor) for factor in factors]
    return 2 ** statistics.median(logs) if logs else None


def side(factor):
    """Return a factor in words.

    Examples
    --------
    >>> side(0.25), side(3), side(1.05), side(None)
    ('4.0x too low', '3.0x too high', 'no side', 'none to say')
    """
    if factor is None:
        return "none to say"
    size = max(factor, 1 / factor)
    if size <= BANDS[0][0]:
        return "no side"
    return f"{_digits(size)}x too {'low' if factor < 1 else 'high'}"


def _digits(size):
    return f"{size:.1f}" if size < 10 else f"{size:,.0f}" if size < 1e6 else f"{size:.0e}"


@dataclass(frozen=True, repr=False)
class Guesses(Part):
    """Show guesses as factors, topic by topic; those made after the measurement do not count.

    Attributes
    ----------
    guesses : tuple of Guess
        All that are stored, by notebook and number.
    sample : bool
        Whether all of it was generated.
    """

    guesses: tuple
    sample: bool = False

    heading = "Guesses"

    @classmethod
    def of(cls, evidence):
        """Read the guesses off the records."""
        ids = sorted((id for id in evidence.records if ".p" in id), key=_catalog.sort_key)
        records = (evidence.record(id) for id in ids)
        guesses = tuple(_guess(record) for record in records if record["guess"])
        return cls(guesses, evidence.sample)

    @property
    def counted(self):
        """Return the guesses made in time of which a factor is known."""
        return tuple(g for g in self.guesses if not g.late and g.factor is not None)

    @property
    def typical(self):
        """Return the typical factor of all counted guesses; None without one."""
        return typical_factor(g.factor for g in self.counted)

    def largest(self, n=3):
        """Return the counted guesses that are furthest off, the furthest first."""
        off = [g for g in self.counted if max(g.factor, 1 / g.factor) > BANDS[0][0]]
        return tuple(sorted(off, key=lambda g: -abs(math.log2(g.factor)))[:n])

    def remarks(self):
        """Say how many guesses there are and which way they err."""
        late = sum(g.late for g in self.guesses)
        stored, counted = len(self.guesses), len(self.counted)
        said = [f"{stored} guesses stored, {counted} with a factor counted, {late} late."]
        if len(self.counted) < FEWEST:
            said.append(f"With fewer than {FEWEST} factors nothing can be said about how you err.")
        else:
            near = sum(_is_near(g) for g in self.counted)
            said.append(f"Typical factor: {self.typical:.2g} ({side(self.typical)}); "
                        f"{near} of {len(self.counted)} within {_NEAR}x.")  # fmt: skip
        return tuple(said)

    def grids(self):
        """Return the topics, the largest factors, and every guess, folded."""
        if not self.guesses:
            return ()
        topics = [_topic_row(key, [g for g in self.guesses if g.id[0] == key]) for key in TOPICS]
        columns = ("topic", "factors", "typical", f"within {_NEAR}x", "choices as measured",
                   "counts exact", "late")  # fmt: skip
        grids = [Grid("Guesses by topic", columns, tuple(row for row in topics if row))]
        largest = [(g.id, _text(g, g.guess), _text(g, g.truth), side(g.factor), notebook(g.id[:2]))
                   for g in self.largest()]  # fmt: skip
        if largest:
            columns = ("prediction", "you guessed", "measured", "off", "reread")
            grids.append(Grid("The largest factors teach most", columns, tuple(largest)))
        caption = f"All {len(self.guesses)} guesses"
        rows = tuple(map(_row, self.guesses))
        grids.append(Grid(caption, ("prediction", "you guessed", "measured", "judged"), rows, True))
        return tuple(grids)

    def chart(self):
        """Return the factors on a log axis; None if there is no factor at all."""
        return plot_factors(self) if any(g.factor for g in self.guesses) else None


def _guess(record):
    guess, truth = record["guess"], record["truth"]
    try:
        asked = _catalog.find_prediction(record["id"])
    except KeyError:  # from a version of the course that had it
        asked = None
    kind = "choice" if isinstance(guess["value"], str) or isinstance(asked, Choice) else "factor"
    if getattr(asked, "among", None) is not None:
        kind = "count"
    unit = asked.unit if isinstance(asked, Number) else ""
    value = None if truth is None else truth["value"]
    return Guess(record["id"], guess["value"], value, bool(guess.get("late")), kind, unit)


def _is_near(guess):
    return max(guess.factor, 1 / guess.factor) <= _NEAR


def _topic_row(key, guesses):
    """Return the row of one topic, or nothing if it has no guess."""
    if not guesses:
        return ()
    in_time = [g for g in guesses if not g.late]
    counted = [g for g in in_time if g.factor is not None]
    typical = side(typical_factor(g.factor for g in counted))
    typical = "too few to say" if 0 < len(counted) < FEWEST else typical
    near = _share(map(_is_near, counted))
    hits = [_share([g.hit for g in in_time if g.kind == kind]) for kind in ("choice", "count")]
    return (TOPICS[key], len(counted), typical, near, *hits, len(guesses) - len(in_time))


def _share(hits):
    known = [hit for hit in hits if hit is not None]
    return f"{sum(known)} of {len(known)}" if known else "none"


def _text(guess, value):
    if value is None:
        return "not measured yet"
    return as_text(Number(question="", unit=guess.unit), value)


def _row(guess):
    if guess.truth is None:
        judged = "not measured yet"
    elif guess.hit is not None:
        judged = "as measured" if guess.hit else "not as measured"
    elif guess.factor is None:
        judged = "no factor"
    else:
        judged = f"{band_of(guess.guess, guess.truth)}, {side(guess.factor)}"
    late = "late, not counted: " if guess.late else ""
    return guess.id, _text(guess, guess.guess), _text(guess, guess.truth), late + judged


def message_of(guesses):
    """Return which way the counted guesses of bytes, seconds and other numbers err.

    Parameters
    ----------
    guesses : Guesses
        With any number of guesses.

    Returns
    -------
    str
        A sentence without its period, for the title of a figure.
    """
    if len(guesses.counted) < FEWEST:
        return "Too few guesses to say which way you err"
    sides = []
    for kind in ("bytes", "seconds", "other numbers"):
        own = [g.factor for g in guesses.counted if _KINDS.get(g.unit, "other numbers") == kind]
        word = side(typical_factor(own)).rpartition(" too ")[2]
        if len(own) >= 3 and word in ("low", "high"):
            sides.append(f"{kind} too {word}")
    if not sides:
        return "Your guesses lean to no side"
    return f"You guess {', '.join(sides[:-1])}{' and ' if sides[1:] else ''}{sides[-1]}"


def plot_factors(guesses):
    """Draw one dot for each factor on a log axis, over bands; late ones are hollow.

    Parameters
    ----------
    guesses : Guesses
        With at least one factor.

    Returns
    -------
    plotting.Chart
        With one row per dot.
    """
    drawn = [g for g in guesses.guesses if g.factor is not None]
    topics = [key for key in TOPICS if any(g.id[0] == key for g in drawn)]
    message = message_of(guesses)
    figure, axes = plotting.new_figure(message, height=1.5 + 0.4 * len(topics))
    for y, key in enumerate(topics):
        _dots(axes, y, [g for g in drawn if g.id[0] == key])
    _bands(axes, max(max(g.factor, 1 / g.factor) for g in drawn))
    axes.set(
        ylim=(len(topics) - 0.4, -0.6), xlabel="guess / measured: left too low, right too high"
    )
    axes.set_yticks(range(len(topics)), [TOPICS[key] for key in topics])
    axes.tick_params(axis="y", length=0)
    plotting.write_caption(figure, f"{len(guesses.counted)} counted; hollow: late, not counted. "
                              "Shaded: within 10 %, 1.5x, 2x, 10x.")  # fmt: skip
    rows = tuple((g.id, _text(g, g.guess), _text(g, g.truth), side(g.factor), "late" if g.late
                  else "counted") for g in drawn)  # fmt: skip
    return plotting.Chart(
        figure, message, ("prediction", "guess", "measured", "off", "state"), rows
    )


def _dots(axes, y, guesses):
    colors = plotting.colors()
    for n, guess in enumerate(guesses):
        place = y - 0.24 + 0.48 * (n + 0.5) / len(guesses)  # dots of one topic do not hide others
        face = colors["paper"] if guess.late else colors["new"]
        axes.plot(guess.factor, place, "o", color=colors["new"], markerfacecolor=face, markersize=7)


def _bands(axes, furthest):
    color = plotting.colors()["reference"]
    for width, _ in BANDS:
        axes.axvspan(1 / width, width, color=color, alpha=0.13, linewidth=0, zorder=0)
    axes.axvline(1, color=color, linestyle="--", zorder=1)
    reach = 1.3 * max(10, furthest)
    axes.set(xscale="log", xlim=(1 / reach, reach))
    known = (2, 10, 100, 10**4, 10**6) if reach <= 10**8 else (10**4, 10**8)
    # A label next to 1 needs a twentieth of the axis.
    ticks = [each for each in known if each <= reach <= each**10]
    labels = [*(f"1/{each:,}" for each in reversed(ticks)), "1", *(f"{each:,}" for each in ticks)]
    axes.set_xticks([*(1 / each for each in reversed(ticks)), 1, *ticks], labels)
    axes.set_xticks([], minor=True)
