"""Judge scores over seeds: a mean with its interval, and figures that show every seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVEL = 0.95
_DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Interval:
    """Hold a mean with the interval that its spread allows; show both on one line.

    Attributes
    ----------
    mean, low, high : float
        In the unit of the scores.
    n : int
        Number of scores.

    Examples
    --------
    >>> Interval(2.0, 0.8, 3.2, 5)
    2 [0.8, 3.2]
    >>> f"{Interval(2.0, 0.8, 3.2, 5):+.1f}"
    '+2.0 [+0.8, +3.2]'
    """

    mean: float
    low: float
    high: float
    n: int

    def __format__(self, spec: str) -> str:
        """Write the three numbers, each by the format given."""
        spec = spec or ".4g"
        return f"{self.mean:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __repr__(self) -> str:
        return format(self, "")


def interval(scores: Sequence[float]) -> Interval:
    """Return the mean of scores and its 95 % interval, from Student's t distribution.

    The interval speaks of what differed between the scores, and of nothing else: if only the
    seed did, then of other seeds, on the same images.

    Parameters
    ----------
    scores : sequence of float or torch.Tensor
        At least two, one per seed, in any unit. For paired runs pass their differences.

    Returns
    -------
    Interval
        In the unit of the scores.

    Raises
    ------
    ValueError
        If there are fewer than two scores, or one is not finite.

    See Also
    --------
    Student, "The Probable Error of a Mean", Biometrika 6 (1908).

    Examples
    --------
    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0])
    3 [1.037, 4.963]
    """
    from scipy.stats import t

    values = [float(score) for score in scores]
    if len(values) < 2:
        raise ValueError(
            f"scores must hold at least two numbers, got {len(values)}; train with more seeds"
        )
    for value in values:
        if not math.isfinite(value):
            raise ValueError(f"scores must be finite, got {value}; look at the run that made it")
    n = len(values)
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = float(t.ppf(0.5 + LEVEL / 2, n - 1)) * deviation / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def plot_scores(
    message: str,
    scores: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    reference: float | None = None,
    caption: str = "",
) -> plotting.Chart:
    """Draw one dot per seed, one row per recipe, and the mean with its 95 % interval.

    Parameters
    ----------
    message : str
        The title, a sentence.
    scores : mapping of str to sequence of float
        At least two scores per row, from top to bottom.
    xlabel : str
        What the scores are, with their unit.
    reference : float, optional
        Where a dashed line stands, such as 0 for differences.
    caption : str
        How it was measured.

    Returns
    -------
    Chart
        With one row per recipe: n, mean and both ends of the interval.

    Raises
    ------
    ValueError
        If there is nothing to draw, or a row has fewer than two scores.
    """
    if not scores:
        raise ValueError("scores must hold at least one row, got nothing to draw")
    figure, axes = plotting.new_figure(message, height=1.3 + 0.42 * len(scores))
    rows = []
    for y, (name, values) in enumerate(scores.items()):
        found = interval(values)
        _score_row(axes, y, values, found)
        rows.append(
            (name, str(found.n), *(f"{v:.3g}" for v in (found.mean, found.low, found.high)))
        )
    if reference is not None:
        color = plotting.colors()["reference"]
        axes.axvline(reference, color=color, linestyle="--", zorder=0)
    axes.set(xlabel=xlabel, ylim=(len(rows) - 0.4, -0.6))
    axes.set_yticks(range(len(rows)), list(scores))
    plotting.write_caption(figure, caption)
    return plotting.Chart(figure, message, ("recipe", "n", "mean", "low", "high"), tuple(rows))


def _score_row(axes: Axes, y: int, values: Sequence[float], found: Interval) -> None:
    colors = plotting.colors()
    dots = [float(value) for value in values]
    axes.plot(dots, [y - 0.16] * len(dots), "o", color=colors["reference"], alpha=0.8, markersize=5)
    axes.plot([found.low, found.high], [y + 0.12] * 2, color=colors["new"], linewidth=3)
    axes.plot(found.mean, y + 0.12, "o", color=colors["new"], markersize=8)


def plot_curves(
    message: str,
    curves: Mapping[str, Mapping[float, float]],
    *,
    xlabel: str,
    ylabel: str,
    baseline: str | None = None,
    caption: str = "",
) -> plotting.Chart:
    """Draw curves on linear axes that begin at 0, each with its name at its end.

    Parameters
    ----------
    message : str
        The title, a sentence.
    curves : mapping of str to mapping of float to float
        Name to the points x: y. All curves have the same x; y is not negative.
    xlabel, ylabel : str
        What the axes are, with their unit.
    baseline : str, optional
        The curve that the others are compared with; it gets the color and mark of a baseline.
    caption : str
        How it was measured.

    Returns
    -------
    Chart
        With one row per curve and one column per x.

    Raises
    ------
    ValueError
        If there is nothing to draw, curves have different x, or a y is negative.
    """
    places = _common_places(curves)
    figure, axes = plotting.new_figure(message)
    colors, ends, rows = plotting.colors(), [], []
    others = [name for name in curves if name != baseline]
    for name, points in curves.items():
        kind = "baseline" if name == baseline else "new"
        dash = "-" if name == baseline else _DASHES[others.index(name) % len(_DASHES)]
        axes.plot(places, list(points.values()), dash, color=colors[kind],
                  marker=plotting.MARKERS[kind], markersize=6)  # fmt: skip
        ends.append((name, points[places[-1]], colors[kind]))
        rows.append((name, *(f"{value:.3g}" for value in points.values())))
    axes.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, None))
    axes.set_xticks(places, [f"{x:g}" for x in places])
    _name_ends(axes, ends)
    plotting.write_caption(figure, caption)
    return plotting.Chart(figure, message, ("curve", *(f"{x:g}" for x in places)), tuple(rows))


def _common_places(curves: Mapping[str, Mapping[float, float]]) -> list[float]:
    if not curves or not all(curves.values()):
        raise ValueError("curves must hold at least one point each, got nothing to draw")
    first, *rest = curves.items()
    for name, points in rest:
        if list(points) != list(first[1]):
            raise ValueError(
                f"all curves must have the same x, got {list(first[1])} for {first[0]} and "
                f"{list(points)} for {name}"
            )
    for name, points in curves.items():
        if min(points.values()) < 0:
            raise ValueError(f"y must not be negative, got {min(points.values())} for {name}")
    return list(first[1])


def _name_ends(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    top = axes.get_ylim()[1]
    wishes = [y / top for _, y, _ in ends]
    for (name, _, color), place in zip(ends, plotting.spread(wishes, 0.075), strict=True):
        axes.annotate(
            name, (1, place), xytext=(1.02, place), textcoords="axes fraction", color=color,
            xycoords="axes fraction", va="center", fontweight="bold", annotation_clip=False,
        )  # fmt: skip
