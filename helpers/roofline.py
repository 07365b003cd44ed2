"""Bound how fast an operation can be on a machine, and draw how close it comes.

A machine computes at most `peak` FLOP/s and moves at most `bandwidth` bytes per second; an
operation needs some of both. See Williams, Waterman and Patterson (2009), "Roofline: an
insightful visual performance model", https://doi.org/10.1145/1498765.1498785.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from helpers import plotting
from helpers.units import format_rate, format_time


@dataclass(frozen=True)
class Roof:
    """Hold the two limits of a machine.

    Parameters
    ----------
    peak : float
        FLOP per second.
    bandwidth : float
        Bytes per second.

    Raises
    ------
    ValueError
        If a limit is not above zero.

    Examples
    --------
    >>> Roof(peak=100e9, bandwidth=50e9).ridge
    2.0
    """

    peak: float
    bandwidth: float

    def __post_init__(self) -> None:
        for name in ("peak", "bandwidth"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(
                    f"{name} must be above zero, got {getattr(self, name)}; measure it"
                )

    @property
    def ridge(self) -> float:
        """Return the FLOPs per byte above which computing takes longer than moving."""
        return self.peak / self.bandwidth

    def least_seconds(self, work: Work) -> float:
        """Return the shortest possible time of an operation, in seconds.

        Examples
        --------
        >>> Roof(peak=100e9, bandwidth=50e9).least_seconds(Work(flops=1e9, nbytes=1e9, seconds=1))
        0.02
        """
        return max(work.flops / self.peak, work.nbytes / self.bandwidth)


@dataclass(frozen=True)
class Work:
    """Hold what an operation needs and how long it took.

    Parameters
    ----------
    flops : float
        Additions and multiplications.
    nbytes : float
        Bytes that must be read or written at least.
    seconds : float
        Measured time.

    Raises
    ------
    ValueError
        If a value is not above zero.
    """

    flops: float
    nbytes: float
    seconds: float

    def __post_init__(self) -> None:
        for name in ("flops", "nbytes", "seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above zero, got {getattr(self, name)}")

    @property
    def intensity(self) -> float:
        """Return FLOPs per byte."""
        return self.flops / self.nbytes

    @property
    def rate(self) -> float:
        """Return the FLOP per second that were reached."""
        return self.flops / self.seconds


def plot_roofline(
    message: str, roof: Roof, works: Mapping[str, Work], *, caption: str = ""
) -> plotting.Chart:
    """Draw the limits of a machine and where operations lie below them.

    Parameters
    ----------
    message : str
        The title, a sentence.
    roof : Roof
        The limits, drawn dashed.
    works : mapping of str to Work
        Each operation is a dot at its FLOPs per byte and the FLOP/s it reached.
    caption : str
        How it was measured.

    Returns
    -------
    helpers.plotting.Chart
        With one row per operation: FLOPs per byte, time, least time, and their ratio.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not works:
        raise ValueError("works must hold at least one operation, got nothing to draw")
    figure, axes = plotting.new_figure(message)
    colors = plotting.colors()
    points = [work.intensity for work in works.values()]
    ends = min(*points, roof.ridge) / 3, max(*points, roof.ridge) * 8
    edge = [min(roof.peak, x * roof.bandwidth) for x in (ends[0], roof.ridge, ends[1])]
    axes.plot([ends[0], roof.ridge, ends[1]], edge, "--", color=colors["reference"])
    axes.set(xscale="log", yscale="log", xlim=ends, xlabel="FLOPs per byte", ylabel="FLOP/s")
    _label_points(axes, works, colors)
    note = f"roof: {roof.peak / 1e9:.3g} GFLOP/s, {format_rate(roof.bandwidth)}"
    plotting.write_caption(figure, f"{note} · {caption}" if caption else note)
    rows = tuple(_row(name, work, roof) for name, work in works.items())
    heads = ("operation", "FLOPs per byte", "time", "least time", "time / least time")
    return plotting.Chart(figure, message, heads, rows)


def _label_points(axes, works: Mapping[str, Work], colors: Mapping[str, str]) -> None:
    """Draw each operation with its name; names that would lie over each other move apart."""
    low = min(work.rate for work in works.values()) / 4
    axes.set_ylim(low, axes.get_ylim()[1] * 2)
    lowest, highest = (math.log10(limit) for limit in axes.get_ylim())
    heights = [(math.log10(work.rate) - lowest) / (highest - lowest) for work in works.values()]
    for (name, work), place in zip(works.items(), plotting.spread(heights, 0.075), strict=True):
        axes.plot(work.intensity, work.rate, "o", color=colors["new"], markersize=7)
        level = 10 ** (lowest + place * (highest - lowest))
        axes.annotate(
            name, (work.intensity, level), xytext=(8, -9), textcoords="offset points",
            va="center", color=colors["new"],
        )  # fmt: skip


def _row(name: str, work: Work, roof: Roof) -> tuple[str, ...]:
    least = roof.least_seconds(work)
    times = format_time(work.seconds), format_time(least)
    return (name, f"{work.intensity:.3g}", *times, f"{work.seconds / least:.3g}")
