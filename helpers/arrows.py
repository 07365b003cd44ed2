"""Draw vectors of two numbers as arrows from one point."""

from __future__ import annotations

import math
from collections.abc import Mapping

from helpers import plotting
from helpers.plotting import Chart

_DASHES = {"reference": "--", "new": "-", "baseline": "-.", "gradient": ":"}


def plot_arrows(
    message: str,
    arrows: Mapping[str, tuple[float, float]],
    *,
    xlabel: str,
    ylabel: str,
    caption: str = "",
) -> Chart:
    """Draw up to four vectors with their names, one unit being as long on both axes.

    Parameters
    ----------
    message : str
        The title, a sentence.
    arrows : mapping of str to tuple of float
        For each vector its two coordinates; the first one is what the others came from.
    xlabel, ylabel : str
        What the coordinates are, with the unit.
    caption : str
        How it was measured.

    Returns
    -------
    Chart
        With one row per vector: coordinates, length, and angle in degrees to the first one.

    Raises
    ------
    ValueError
        If there is nothing to draw, a vector has no length or is not finite, or there are more
        than four.

    Examples
    --------
    >>> chart = plot_arrows("Turned", {"a": (3, 0), "b": (0, 4)}, xlabel="x", ylabel="y")
    >>> chart.rows
    (('a', '3', '0', '3', '0'), ('b', '0', '4', '4', '90'))
    """
    if not 1 <= len(arrows) <= len(_DASHES):
        raise ValueError(f"arrows must hold 1 to {len(_DASHES)} vectors, got {len(arrows)}")
    for name, (x, y) in arrows.items():
        if not 0 < math.hypot(x, y) < math.inf:
            raise ValueError(f"{name} must have a finite length above zero, got ({x}, {y})")
    figure, axes = plotting.new_figure(message)
    colors, rows = plotting.colors(), []
    steepest = max(arrows, key=lambda name: math.atan2(arrows[name][1], arrows[name][0]))
    (first_x, first_y), *_ = arrows.values()
    axes.set(xlabel=xlabel, ylabel=ylabel, aspect="equal", adjustable="datalim")
    axes.plot(*zip((0, 0), *arrows.values(), strict=True), alpha=0)  # for the limits
    for (kind, dash), (name, (x, y)) in zip(_DASHES.items(), arrows.items(), strict=False):
        style = {"arrowstyle": "-|>", "color": colors[kind], "linestyle": dash, "lw": 2}
        axes.annotate("", (x, y), (0, 0), arrowprops=style | {"shrinkA": 0, "shrinkB": 0})
        _name(axes, name, (x, y), colors[kind], above=name == steepest)
        angle = math.degrees(math.atan2(y, x) - math.atan2(first_y, first_x))
        measures = (x, y, math.hypot(x, y), round(angle, 1) + 0.0)  # + 0.0 makes 0 of -0
        rows.append((name, *(f"{value:.3g}" for value in measures)))
    plotting.write_caption(figure, caption)
    columns = ("vector", "x", "y", "length", "angle to the first")
    return Chart(figure, message, columns, tuple(rows))


def _name(axes, name: str, head: tuple[float, float], color: str, *, above: bool) -> None:
    """Write a name beside the head, on the side away from the other arrows."""
    far = head[0] > 0.6 * axes.get_xlim()[1]
    side = {"ha": "right" if far else "left", "va": "bottom" if above else "top"}
    offset = (0, 6 if above else -6)
    axes.annotate(name, head, offset, textcoords="offset points", color=color, **side)
