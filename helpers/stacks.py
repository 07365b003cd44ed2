"""Draw how totals are made up, one bar for each total."""

from __future__ import annotations

from collections.abc import Mapping

from helpers import plotting
from helpers.plotting import Chart
from helpers.units import format_bytes


def plot_stacks(
    message: str,
    stacks: Mapping[str, Mapping[str, int]],
    *,
    limit: int | None = None,
    limit_name: str = "limit",
    caption: str = "",
) -> Chart:
    """Draw one bar for each name, cut into the bytes of its categories.

    Parameters
    ----------
    message : str
        The title, a sentence.
    stacks : mapping of str to mapping of str to int
        For each bar, from top to bottom, the bytes of the categories of
        `helpers.memory.track_memory`: a peak's ``by_category``.
    limit : int, optional
        Bytes at which a dashed line stands.
    limit_name : str
        What the line is.
    caption : str
        How it was counted.

    Returns
    -------
    Chart
        With one row per bar: its total, and the bytes of each category that is drawn.

    Raises
    ------
    ValueError
        If there is nothing to draw, a category is unknown, or bytes are negative.

    Examples
    --------
    >>> chart = plot_stacks("Half is weights", {"step": {"parameter": 8, "activation": 8}})
    >>> chart.rows
    (('step', '16 B', '8', '8'),)
    """
    names = _drawn(stacks)
    figure, axes = plotting.new_figure(message, height=1.9 + 0.36 * len(stacks))
    colors = plotting.colors()
    axes.set_title("")  # long names of bars would push it out of the figure
    figure.suptitle(message, x=0.01, ha="left", fontsize=12, color=colors["ink"])
    totals = {bar: sum(parts.values()) for bar, parts in stacks.items()}
    left = [0.0] * len(stacks)
    for name in names:
        color, hatch = plotting.BANDS[name]
        widths = [parts.get(name, 0) / 2**20 for parts in stacks.values()]
        axes.barh(range(len(stacks)), widths, 0.7, left=left, label=name, hatch=hatch,
                  facecolor=colors[color], edgecolor=colors["paper"], linewidth=0)  # fmt: skip
        left = [a + b for a, b in zip(left, widths, strict=True)]
    _finish(axes, totals, limit, limit_name)
    plotting.write_caption(figure, caption)
    rows = tuple(
        (bar, format_bytes(totals[bar]), *(f"{parts.get(name, 0):,}" for name in names))
        for bar, parts in stacks.items()
    )
    return Chart(figure, message, ("bar", "total", *names), rows)


def _drawn(stacks: Mapping[str, Mapping[str, int]]) -> list[str]:
    if not stacks or not any(any(parts.values()) for parts in stacks.values()):
        raise ValueError("stacks must hold at least one bar with bytes, got nothing to draw")
    for bar, parts in stacks.items():
        for name, size in parts.items():
            if name not in plotting.BANDS:
                known = ", ".join(plotting.BANDS)
                raise ValueError(f"categories must be among {known}; got {name!r} for {bar}")
            if size < 0:
                raise ValueError(f"bytes must not be negative, got {size} for {name} of {bar}")
    return [n for n in plotting.BANDS if any(parts.get(n) for parts in stacks.values())]


def _finish(axes, totals: Mapping[str, int], limit: int | None, limit_name: str) -> None:
    colors = plotting.colors()
    label = {"facecolor": colors["paper"], "edgecolor": "none", "pad": 1}  # over the line
    for y, total in enumerate(totals.values()):
        axes.annotate(format_bytes(total), (total / 2**20, y), xytext=(5, 0), va="center",
                      textcoords="offset points", bbox=label)  # fmt: skip
    bottom = len(totals) - 0.4
    if limit is not None:
        axes.axvline(limit / 2**20, color=colors["reference"], linestyle="--")
        axes.annotate(f"{limit_name}: {format_bytes(limit)}", (limit / 2**20, bottom),
                      xytext=(5, 3), textcoords="offset points", color=colors["reference"])  # fmt: skip
        bottom += 0.5
    widest = max([*totals.values(), limit or 0]) / 2**20
    axes.set(xlabel="live tensors at the peak (MiB)", xlim=(0, 1.2 * widest), ylim=(bottom, -0.6))
    axes.set_yticks(range(len(totals)), list(totals))
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize=9)
