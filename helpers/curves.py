"""Draw quantities over sizes, on two logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping

from helpers import plotting
from helpers.plotting import Chart


def plot_curves(
    message: str,
    series: Mapping[str, Mapping[int, float]],
    *,
    xlabel: str,
    ylabel: str,
    caption: str = "",
) -> Chart:
    """Draw up to four curves with their names at their ends.

    Parameters
    ----------
    message : str
        The title, a sentence.
    series : mapping of str to mapping of int to float
        For each curve its value at each size; both positive.
    xlabel, ylabel : str
        What they count, with the unit.
    caption : str
        How it was measured.

    Returns
    -------
    Chart
        With one row per curve and size.

    Raises
    ------
    ValueError
        If there is nothing to draw, a value is not above zero, or there are more than four curves.

    Examples
    --------
    >>> chart = plot_curves("Half of it", {"a": {1: 2.0, 10: 1.0}}, xlabel="n", ylabel="b")
    >>> chart.rows
    (('a', '1', '2'), ('a', '10', '1'))
    """
    if not series or not all(series.values()):
        raise ValueError("series must hold at least one curve with one size, got nothing to draw")
    if len(series) > 4:
        raise ValueError(f"series must hold at most 4 curves, got {len(series)}; draw two figures")
    for name, points in series.items():
        if min(points.values()) <= 0:
            raise ValueError(f"values of {name} must be above zero, got {min(points.values())}")
    figure, axes = plotting.new_figure(message)
    colors, rows, ends = plotting.colors(), [], []
    for kind, (name, points) in zip(plotting.MARKERS, series.items(), strict=False):
        sizes = sorted(points)
        values = [points[n] for n in sizes]
        dash = "--" if kind == "baseline" else "-"
        axes.plot(sizes, values, dash, color=colors[kind], marker=plotting.MARKERS[kind])
        ends.append((name, values[-1], colors[kind]))
        rows += [(name, f"{n:,}", f"{points[n]:.2g}") for n in sizes]
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    ticks = sorted({n for points in series.values() for n in points})
    if len(ticks) <= 8:  # few sizes: name them, instead of powers between them
        axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
        axes.set_xticks([], minor=True)
    plotting.label_ends(axes, max(max(points) for points in series.values()), ends)
    plotting.write_caption(figure, caption)
    return Chart(figure, message, ("curve", "size", "value"), tuple(rows))
