"""Draw a guess beside its measurement on a log axis, over the bands that judge it."""

import math

from helpers import _display
from helpers.exercises._guess import BANDS

_WIDTH, _LEFT, _RIGHT = 460, 20, 440
_TOP, _HEIGHT = 22, 16


def strip(guess, truth, *, guess_text, truth_text):
    """Return an SVG of the bands around a measurement, with the guess on the same log axis.

    Parameters
    ----------
    guess, truth : float
        Both above zero, or both below.
    guess_text, truth_text : str
        The same with their units.

    Returns
    -------
    str
        SVG in the colors of the page, or "" where no factor leads from one to the other.

    Examples
    --------
    >>> strip(28, 104, guess_text="28", truth_text="104").count("<rect")
    4
    >>> strip(0, 104, guess_text="0", truth_text="104")
    ''
    """
    if guess * truth <= 0:
        return ""
    off = math.log10(guess / truth)
    reach = max(1.1, min(abs(off), 6) * 1.15)  # decades to each side; ten times always fits

    def place(decades):
        middle, half = (_LEFT + _RIGHT) / 2, (_RIGHT - _LEFT) / 2
        return middle + half * max(-1.0, min(1.0, decades / reach))

    bands = "".join(
        f'<rect x="{place(-width):.1f}" y="{_TOP}" height="{_HEIGHT}" fill="currentColor" '
        f'width="{place(width) - place(-width):.1f}" fill-opacity="0.12"/>'
        for width in (math.log10(limit) for limit, _ in reversed(BANDS))
    )
    x, bottom = place(off), _TOP + _HEIGHT
    said = _display.html.escape(f"You guessed {guess_text}; measured {truth_text}.")
    return (
        f'<svg role="img" aria-label="{said}" width="{_WIDTH}" height="62" '
        f'viewBox="0 0 {_WIDTH} 62" style="max-width:100%">{bands}'
        f'<path d="M{place(0):.1f},{_TOP - 3}V{bottom + 3}" stroke="currentColor" '
        'stroke-width="2"/>'
        f'<path d="M{x:.1f},{bottom - 6}l-6,12h12z" fill="currentColor"/>'
        f"{_label(place(0), _TOP - 8, f'measured {truth_text}')}"
        f"{_label(x, bottom + 20, f'you {guess_text}')}</svg>"
    )


def _label(x, y, text):
    """Return a text that is centered at x and stays inside the picture."""
    half = 3.4 * len(text)  # about half its width at 12 px
    center = max(half, min(_WIDTH - half, x))
    return (
        f'<text x="{center:.1f}" y="{y}" text-anchor="middle" font-size="12" '
        f'fill="currentColor">{_display.html.escape(text)}</text>'
    )
