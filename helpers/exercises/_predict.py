"""Store a guess before a measurement and judge it afterwards."""

import math
from dataclasses import dataclass

from helpers import _display
from helpers.exercises import _catalog, _progress
from helpers.exercises._guess import as_text, band_for, clip, distance_in_words, read_guess
from helpers.exercises._model import Choice
from helpers.exercises._strip import strip

_NO_GUESS = "No guess was stored before; one made from now on counts as late."
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
    with_unit = {"bytes": 'such as "2 MiB"', "s": 'such as "1 ms"'}.get(asked.unit, asked.unit)
    kind = "a number" if asked.among is None else f"a whole number from 0 to {asked.among}"
    number = f"{kind} ({with_unit})" if with_unit else kind
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
    >>> type(predict("13.p1")).__name__
    'Prediction'
    """
    asked = _catalog.find_prediction(id)
    stored = _progress.read(id, "prediction")["guess"]
    if guess is None or guess is ...:
        return _shown(id, stored)
    try:
        value = read_guess(asked, guess)
    except ValueError as error:
        return _shown(id, stored, str(error))
    notice = ""
    if stored is None:
        record, notice = _store_guess(id, asked, value)
        stored = record["guess"]
    if stored["value"] != value:
        notice = f"The first guess counts: {as_text(asked, value)} came after it."
    return _shown(id, stored, notice)


def _shown(id, stored, remark=""):
    if stored is None:
        return Prediction(id, remark=remark)
    guess = as_text(_catalog.find_prediction(id), stored["value"])
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
    picture : str
        SVG of the guess on a log axis, "" where there is none.
    """

    id: str
    sentence: str
    lesson: str = ""
    band: str = ""
    notice: str = ""
    picture: str = ""

    def text(self):
        """Return measurement, judgement and lesson, one a line."""
        return _display.lines(self.sentence, self.lesson, self.notice)

    def html(self):
        """Return the same as a card, with the picture."""
        return _display.card("note", self.sentence, self.lesson, self.notice, extra=self.picture)


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
        return Reveal(id, f"Not judged: a number was expected, got {clip(value)!r}.")
    _measured[id] = truth
    guess, notice = _progress.read(id, "prediction")["guess"], ""
    if guess is not None:
        notice = _store_truth(id, asked, truth, unit)
    judge = _judge_choice if isinstance(asked, Choice) else _judge_number
    sentence, lesson, band = judge(asked, guess, value, truth, unit)
    picture = _picture(asked, guess, truth, unit)
    return Reveal(id, sentence, lesson, band, notice, picture)


def _picture(asked, guess, truth, unit):
    """Return the guess on a log axis; a choice and a count out of some have none."""
    if guess is None or isinstance(asked, Choice) or asked.among is not None:
        return ""
    return strip(
        guess["value"],
        truth,
        guess_text=as_text(asked, guess["value"]),
        truth_text=as_text(asked, truth, unit),
    )


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
    shown = clip(value, 200)
    if isinstance(value, BaseException):
        shown = f"an error, {type(value).__name__}: {shown}"
    if truth not in asked.options:
        shown = f"{shown}, which none of the options says"
    if guess is None:
        return f"This machine measured {shown}.", _NO_GUESS, ""
    sentence = f"You guessed {guess['value']}. This machine measured {shown}."
    band = "as measured" if guess["value"] == truth else "not as measured"
    lesson = asked.options.get(guess["value"], "")
    return _with_late(guess, sentence), lesson, "" if guess["late"] else band


def _judge_number(asked, guess, value, truth, unit):
    shown = as_text(asked, truth, unit)
    if guess is None:
        return f"This machine measured {shown}.", _NO_GUESS, ""
    band = band_for(asked, guess["value"], truth)
    told = as_text(asked, guess["value"])
    distance = distance_in_words(asked, guess["value"], truth)
    sentence = f"You guessed {told}. This machine measured {shown}{distance}."
    notes = (note for low, high, note in asked.notes if low <= guess["value"] < high)
    return _with_late(guess, sentence), next(notes, ""), "" if guess["late"] else band


def _with_late(guess, sentence):
    return f"Late guess, not scored. {sentence}" if guess["late"] else sentence


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
