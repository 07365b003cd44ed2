"""Read a guess, write it with its unit, and judge a number by its factor to the measurement."""

import math
import re

from helpers.exercises._model import Choice

BANDS = ((1.1, "within 10 %"), (1.5, "within 1.5x"), (2.0, "within 2x"), (10.0, "within 10x"))
FURTHER = "further than 10x"
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


def read_guess(asked, guess):
    """Return a guess as an option or a number in bytes, seconds or counts.

    Raises
    ------
    ValueError
        If it is neither; the sentence is for readers.
    """
    if isinstance(asked, Choice):
        for option in asked.options:
            if _same_option(option, guess):
                return option
        known = ", ".join(f'"{option}"' for option in asked.options)
        raise ValueError(f"The guess must be one of {known}, got {clip(guess)!r}.")
    value = _read_number(guess, asked.unit)
    if value is None or not math.isfinite(value):
        raise ValueError(f"The guess must be a number, got {clip(guess)!r}.")
    if value < 0 and not asked.signed:
        raise ValueError(f"This quantity cannot be negative, got {clip(guess)!r}.")
    if asked.among is not None and not (value == int(value) and value <= asked.among):
        raise ValueError(
            f"The guess must be a whole number from 0 to {asked.among}, got {clip(guess)!r}."
        )
    return value


def _same_option(option, guess):
    """Tell whether a guess means an option: case, spaces and the form of a number do not count."""
    wanted, known = ("".join(str(text).split()).casefold() for text in (guess, option))
    try:
        return wanted == known or float(wanted) == float(known)
    except ValueError:
        return False


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


def clip(value, longest=60):
    """Return the text of a value, cut where it is long."""
    text = str(value)
    return text if len(text) <= longest else f"{text[:longest]} …"


def as_text(asked, value, unit=None):
    """Return a guess or a measurement in the unit of its question."""
    if isinstance(asked, Choice) or isinstance(value, str):
        return str(value)
    unit = asked.unit if unit is None else unit
    if unit in ("bytes", "s", "ratio"):
        from helpers import units

        show = {"bytes": units.format_bytes, "s": units.format_time, "ratio": units.format_ratio}
        return show[unit](int(value) if unit == "bytes" and value == int(value) else value)
    whole = abs(value) < 1e15 and value == int(value)
    number = f"{value:,.0f}" if whole else f"{value:,.3g}"
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}".rstrip()


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


def band_for(asked, guess, truth):
    """Return the band of a guess: how many it is off for a count, else its factor.

    Examples
    --------
    >>> from helpers.exercises import Number
    >>> band_for(Number(question="How many of 12?", among=12), 9, 8)
    'off by 1'
    """
    if getattr(asked, "among", None) is None:
        return band_of(guess, truth)
    off = abs(guess - truth)
    return f"off by {off:g}" if off else "exact"


def distance_in_words(asked, guess, truth):
    """Return how the measurement lies to the guess, as the end of a sentence."""
    off = truth - guess
    if asked.among is None or off == 0:
        return factor_in_words(guess, truth)
    return f", {abs(off):g} {'more' if off > 0 else 'fewer'}"


def factor_in_words(guess, truth):
    """Return how the measurement lies to the guess, as the end of a sentence."""
    if guess == truth:
        return ", as you guessed"
    if guess * truth <= 0:
        return "; no factor leads from one to the other"
    if band_of(guess, truth) == BANDS[0][1]:
        return ", within 10 %"
    factor = max(guess / truth, truth / guess)
    times = f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"
    return f", {times} times {'more' if abs(truth) > abs(guess) else 'less'}"
