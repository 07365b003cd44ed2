"""Store a guess before a measurement and judge it afterwards."""

import math
import re
from dataclasses import dataclass

from helpers.exercises import _catalog, _display, _progress
from helpers.exercises._model import Choice

BANDS = ((1.1, "within 10 %"), (1.5, "within 1.5x"), (2.0, "within 2x"), (10.0, "within 10x"))
FURTHER = "further than 10x"
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_measured = {}  # id to the truth of this kernel; only with a guess does it reach the disk


@dataclass(frozen=True, repr=False)
class Prediction(_display.Shown):
    """Show a question with its options, or the guess that was stored.

    Attributes
    ----------
    id : str
        The prediction.
    guess : str
        The stored guess as text, "" if there is none.
    late : bool
        Whether it came after the measurement.
    remark : str
        What was wrong with a guess, or why it was not stored.
    """

    id: str
    guess: str = ""
    late: bool = False
    remark: str = ""

    def text(self):
        """Return the question and how to answer it, or the stored guess."""
        options = [f"  - {option}" for option in self._options()]
        return _display.lines(self._headline(), *options, *self._below())

    def html(self):
        """Return the same as a card."""
        options = self._options()
        below = "".join(f"<div>{_display.escape(line)}</div>" for line in self._below() if line)
        extra = (_display.items(options) if options else "") + below
        return _display.card("note", self._headline(), extra=extra)

    def widget(self):
        """Return the question with one button per option, or a field for a number."""
        return None if self.guess else _ask(self)

    def _headline(self):
        return f"{self.id} {_catalog.find_prediction(self.id).question}"

    def _options(self):
        asked = _catalog.find_prediction(self.id)
        return list(asked.options) if isinstance(asked, Choice) and not self.guess else []

    def _below(self):
        if self.guess:
            late = "Late: the measurement was there before, so it is not scored."
            return [f"Your guess: {self.guess}", late if self.late else "", self.remark]
        return [self.remark, how_to_guess(self.id)]


def how_to_guess(id):
    """Return the sentence that shows how a guess is written without a button."""
    asked = _catalog.find_prediction(id)
    if isinstance(asked, Choice):
        first = next(iter(asked.options))
        return f'Choose before you measure, for example `predict("{id}", guess="{first}")`.'
    with_unit = {"bytes": 'such as "2 MiB"', "s": 'such as "1 ms"'}.get(asked.unit, "")
    number = f"a number ({with_unit or asked.unit})" if asked.unit else "a number"
    return f'Before you measure, put {number} in place of the dots: `predict("{id}", guess=...)`.'


def predict(id, guess=None):
    """Ask for a prediction and store the first guess.

    Parameters
    ----------
    id : str
        Id of the prediction, such as ``"13.p1"``.
    guess : str or float, optional
        An option as text, or a number: bytes, seconds or a count. ``"28 GiB"`` and ``"3 ms"``
        are understood where the unit is bytes or seconds. Without it the question is shown,
        with buttons in a notebook.

    Returns
    -------
    Prediction
        It displays itself. A guess that is no option or no number is shown as such, not raised.

    Raises
    ------
    KeyError
        If no prediction has this id; the text lists those that exist.

    Examples
    --------
    >>> predict("13.p1").guess
    ''
    """
    asked = _catalog.find_prediction(id)
    stored = _progress.read(id, "prediction")["guess"]
    if guess is None or guess is ...:
        return _shown(id, stored)
    try:
        value = _read_guess(asked, guess)
    except ValueError as error:
        return _shown(id, stored, str(error))
    notice = ""
    if stored is None:
        record, notice = _store_guess(id, asked, value)
        stored = record["guess"]
    if stored["value"] != value:
        notice = f"The first guess counts: {_as_text(asked, value)} came after it."
    return _shown(id, stored, notice)


def _shown(id, stored, remark=""):
    if stored is None:
        return Prediction(id, remark=remark)
    guess = _as_text(_catalog.find_prediction(id), stored["value"])
    return Prediction(id, guess, stored["late"], remark)


def _store_guess(id, asked, value):
    def change(record):
        now = _progress.stamp(record)
        late = record["truth"] is not None or id in _measured
        guess = {"value": value, "unit": getattr(asked, "unit", None), "at": now, "late": late}
        first = record["first"] or now
        return {**record, **_progress.versions(), "kind": "prediction", "guess": guess,
                "first": first, "last": now}  # fmt: skip

    return _progress.update(id, "prediction", change)


def _read_guess(asked, guess):
    if isinstance(asked, Choice):
        wanted = str(guess).strip().casefold()
        for option in asked.options:
            if option.casefold() == wanted:
                return option
        known = ", ".join(f'"{option}"' for option in asked.options)
        raise ValueError(f"The guess must be one of {known}, got {_clip(guess)!r}.")
    value = _read_number(guess, asked.unit)
    if value is None or not math.isfinite(value):
        raise ValueError(f"The guess must be a number, got {_clip(guess)!r}.")
    if value < 0 and not asked.signed:
        raise ValueError(f"This quantity cannot be negative, got {_clip(guess)!r}.")
    return value


def _read_number(guess, unit):
    if isinstance(guess, bool):
        return None
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", str(guess).strip())  # 1,000 but not 28,5
    try:
        return float(text)
    except ValueError:
        pass
    match = re.fullmatch(r"(-?[\d.]+(?:e[+-]?\d+)?)\s*([^\d\s.]+)", text, re.IGNORECASE)
    scale = match and _scale(match[2], unit)
    try:
        return float(match[1]) * scale if scale else None
    except ValueError:
        return None


def _scale(word, unit):
    if unit == "s":
        return _SECONDS.get(word.lower())
    if unit == "ratio":
        return 1.0 if word in ("x", "times") else None
    size = (
        re.fullmatch(r"([kmgtp]?)(i?)b(?:ytes?)?", word, re.IGNORECASE) if unit == "bytes" else None
    )
    if size is None:
        return None
    return float((1024 if size[2] else 1000) ** _PREFIXES[size[1].lower()])


def _clip(value, longest=60):
    text = str(value)
    return text if len(text) <= longest else f"{text[:longest]} …"


def _as_text(asked, value, unit=None):
    if isinstance(asked, Choice) or isinstance(value, str):
        return str(value)
    unit = asked.unit if unit is None else unit
    if unit in ("bytes", "s", "ratio"):
        from helpers import units

        show = {"bytes": units.format_bytes, "s": units.format_time, "ratio": units.format_ratio}
        return show[unit](int(value) if unit == "bytes" and value == int(value) else value)
    whole = abs(value) < 1e15 and value == int(value)
    number = f"{value:,.0f}" if whole else f"{value:,.3g}"
    return f"{number} {unit}".rstrip()


@dataclass(frozen=True, repr=False)
class Reveal(_display.Shown):
    """Show a measurement beside the guess.

    Attributes
    ----------
    id : str
        The prediction.
    sentence : str
        Guess and measurement in words.
    lesson : str
        The sentence of the option, or of the range, that was guessed.
    band : str
        How far the guess of a number was off, "" if it is not scored.
    notice : str
        Why nothing was saved, if so.
    """

    id: str
    sentence: str
    lesson: str = ""
    band: str = ""
    notice: str = ""

    def text(self):
        """Return measurement, judgement and lesson, one a line."""
        return _display.lines(self.sentence, self.lesson, self.notice)

    def html(self):
        """Return the same as a card."""
        return _display.card("note", self.sentence, self.lesson, self.notice)


def reveal(id, value, unit=None):
    """Show what was measured beside what was guessed.

    A number is never right or wrong: it is within 10 %, 1.5x, 2x, 10x, or further. A choice shows
    the sentence of the option that was guessed. Without a guess nothing is written to disk.

    Parameters
    ----------
    id : str
        Id of the prediction.
    value : object
        What was measured: a number, a text, or an exception; None where it was not measured.
    unit : str, optional
        Unit of a number, instead of the one in the question.

    Returns
    -------
    Reveal
        It displays itself.

    Raises
    ------
    KeyError
        If no prediction has this id; the text lists those that exist.

    Examples
    --------
    >>> reveal("13.p1", None)
    Not measured here.
    """
    asked = _catalog.find_prediction(id)
    if getattr(value, "ndim", None) == 0:  # a tensor or array of one number
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Reveal(id, "Not measured here.")
    try:
        truth = _truth(asked, value)
    except (TypeError, ValueError):
        return Reveal(id, f"Not judged: a number was expected, got {_clip(value)!r}.")
    _measured[id] = truth
    guess, notice = _progress.read(id, "prediction")["guess"], ""
    if guess is not None:
        notice = _store_truth(id, asked, truth, unit)
    judge = _judge_choice if isinstance(asked, Choice) else _judge_number
    sentence, lesson, band = judge(asked, guess, value, truth, unit)
    return Reveal(id, sentence, lesson, band, notice)


def _truth(asked, value):
    if isinstance(asked, Choice):
        name = "an error" if isinstance(value, BaseException) else str(value)
        return name if name in asked.options else "none of the options"
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a measurement must be finite")
    return number


def _store_truth(id, asked, truth, unit):
    unit = unit or getattr(asked, "unit", None)

    def change(record):
        old = record["truth"]
        if old is not None and (old["value"], old["unit"]) == (truth, unit):
            return record
        now = _progress.stamp(record)
        return {**record, "truth": {"value": truth, "unit": unit, "at": now}, "last": now}

    return _progress.update(id, "prediction", change)[1]


def _judge_choice(asked, guess, value, truth, unit):
    shown = _clip(value, 200)
    if isinstance(value, BaseException):
        shown = f"an error, {type(value).__name__}: {shown}"
    if truth not in asked.options:
        shown = f"{shown}, which none of the options says"
    if guess is None:
        return f"This machine measured {shown}.", "", ""
    sentence = f"You guessed {guess['value']}. This machine measured {shown}."
    band = "as measured" if guess["value"] == truth else "another outcome"
    lesson = asked.options.get(guess["value"], "")
    return _with_late(guess, sentence), lesson, "" if guess["late"] else band


def _judge_number(asked, guess, value, truth, unit):
    shown = _as_text(asked, truth, unit)
    if guess is None:
        return f"This machine measured {shown}.", "", ""
    band = band_of(guess["value"], truth)
    told = _as_text(asked, guess["value"])
    sentence = f"You guessed {told}. This machine measured {shown}{_factor(guess['value'], truth)}."
    notes = (note for low, high, note in asked.notes if low <= guess["value"] < high)
    return _with_late(guess, sentence), next(notes, ""), "" if guess["late"] else band


def _with_late(guess, sentence):
    return f"Late guess, not scored. {sentence}" if guess["late"] else sentence


def band_of(guess, truth):
    """Return the band of a guess: the factor between guess and truth, whichever is larger.

    Examples
    --------
    >>> band_of(28, 104), band_of(100, 104), band_of(0, 5), band_of(0, 0)
    ('within 10x', 'within 10 %', 'further than 10x', 'within 10 %')
    """
    if guess == truth:
        return BANDS[0][1]
    if guess * truth <= 0:  # no factor leads from zero, or across it
        return FURTHER
    factor = max(guess / truth, truth / guess)
    return next((name for limit, name in BANDS if factor <= limit), FURTHER)


def _factor(guess, truth):
    if guess == truth:
        return ", as you guessed"
    if guess * truth <= 0:
        return "; no factor leads from one to the other"
    if band_of(guess, truth) == BANDS[0][1]:
        return ", within 10 %"
    factor = max(guess / truth, truth / guess)
    times = f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"
    return f", {times} times {'more' if abs(truth) > abs(guess) else 'less'}"


def _ask(shown):
    """Return the question above its buttons; a click stores the guess and shows it."""
    import ipywidgets as widgets

    asked = _catalog.find_prediction(shown.id)
    status = widgets.HTML(_display.escape(shown.remark))

    def take(guess):
        done = predict(shown.id, guess)
        status.value = "".join(f"<div>{_display.escape(t)}</div>" for t in done._below() if t)
        for control in controls:
            control.disabled = bool(done.guess)

    if isinstance(asked, Choice):
        controls = [_option_button(option, take) for option in asked.options]
        box = widgets.VBox(controls)
    else:
        field = widgets.Text(description=f"Guess ({asked.unit})" if asked.unit else "Guess")
        field.style.description_width = "initial"
        controls = [field, _display.button("Store guess", lambda _: take(field.value))]
        box = widgets.HBox(controls)
    return widgets.VBox([widgets.HTML(_display.card("note", shown._headline())), box, status])


def _option_button(option, take):
    return _display.button(option, lambda _: take(option))
