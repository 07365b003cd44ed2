"""Draw figures that carry one message, the numbers behind it and the machine they came from.

Every ``plot_*`` function returns a `Chart`: a PNG for the eye, and the message with the table
that was drawn as plain text, for readers of the source, screen readers and the tests (an empty
figure has an empty table). No figure is registered with pyplot, so none piles up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from helpers.table import text_table
from helpers.units import format_bytes, format_ratio, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTES = {
    "light": {
        "new": "#2A71E4",
        "baseline": "#A85F03",
        "memory": "#025B3D",
        "gradient": "#7B2A7F",
        "reference": "#6B7280",
        "ink": "#111418",
        "paper": "#FFFFFF",
    },
    "dark": {
        "new": "#2B7AF1",
        "baseline": "#BC7F49",
        "memory": "#6BC095",
        "gradient": "#E39DE6",
        "reference": "#8B949E",
        "ink": "#E6EDF3",
        "paper": "#111418",
    },
}
MARKERS = {"new": "o", "baseline": "s", "memory": "D", "gradient": "^", "reference": "x"}
SIZE = (7.0, 3.6)  # inches
_theme = "light"


def use_style(theme: str = "light") -> None:
    """Set matplotlib's defaults to the course's style.

    Parameters
    ----------
    theme : {"light", "dark"}
        Which palette to use. Both have an opaque background, so a figure is readable on any page.

    Raises
    ------
    ValueError
        If the theme has no palette.

    Examples
    --------
    >>> use_style()
    >>> import matplotlib
    >>> matplotlib.rcParams["axes.spines.top"]
    False
    """
    global _theme
    if theme not in PALETTES:
        raise ValueError(f"theme must be one of {', '.join(PALETTES)}, got {theme!r}")
    _theme = theme
    import matplotlib as mpl

    mpl.rcParams.update(_style(PALETTES[theme]))


def _style(colors: Mapping[str, str]) -> dict[str, Any]:
    ink, paper = colors["ink"], colors["paper"]
    return {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "axes.titlesize": 12,
        "axes.labelsize": 11,
        "axes.titlelocation": "left",
        "axes.titlepad": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": colors["reference"],
        "axes.facecolor": paper,
        "figure.facecolor": paper,
        "figure.figsize": SIZE,
        "savefig.facecolor": paper,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "lines.linewidth": 1.8,
    }


@dataclass(frozen=True)
class Chart:
    """Hold a figure, its message, and the table it drew.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The figure; ``figure.axes`` to change it further.
    message : str
        The title: what the figure says, as a sentence.
    columns : tuple of str
        Names of the columns of `rows`.
    rows : tuple of tuple of str
        The values that were drawn, as text.
    """

    figure: Figure
    message: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def axes(self) -> Axes:
        """Return the first axes of the figure."""
        return self.figure.axes[0]

    def __repr__(self) -> str:
        return "\n".join([self.message, *text_table(self.columns, self.rows)])

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        width, height = (round(inches * 100) for inches in self.figure.get_size_inches())
        data = {"text/plain": repr(self), "image/png": _png(self.figure)}
        # Drawn at twice the size it is shown at, so that it is sharp on dense screens.
        return data, {"image/png": {"width": width, "height": height}}


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    return buffer.getvalue()


def colors() -> dict[str, str]:
    """Return the colors of the theme in use, by meaning.

    Returns
    -------
    dict of str to str
        Such as ``{"new": "#2A71E4", ...}``; the keys of `MARKERS`, and ink and paper.

    Examples
    --------
    >>> sorted(colors()) == sorted(PALETTES["light"])
    True
    """
    return dict(PALETTES[_theme])


def new_figure(message: str, *, height: float = SIZE[1]) -> tuple[Figure, Axes]:
    """Return a figure in the style of the course that pyplot does not know, and its axes.

    Parameters
    ----------
    message : str
        The title, a sentence.
    height : float
        In inches; the width is that of all figures.

    Returns
    -------
    (matplotlib.figure.Figure, matplotlib.axes.Axes)

    Examples
    --------
    >>> figure, axes = new_figure("One thing is said")
    >>> axes.get_title("left")
    'One thing is said'
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(_style(colors())):
        figure = Figure(figsize=(SIZE[0], height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(message)
    return figure, axes


def write_caption(figure: Figure, text: str) -> None:
    """Write how it was measured under the axes; nothing for an empty text.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Of `new_figure`.
    text : str
        Runs, threads, machine.

    Examples
    --------
    >>> figure, axes = new_figure("One thing is said")
    >>> write_caption(figure, "5 runs")
    >>> figure.get_supxlabel()
    '5 runs'
    """
    if text:
        figure.supxlabel(text, x=0.01, ha="left", fontsize=8.5, color=colors()["reference"])


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Move positions apart until neighbors are at least a gap away, changing them little.

    Direct labels sit at the end of their curve; where curves meet, the labels would overlap.

    Parameters
    ----------
    positions : sequence of float
        Where the labels would like to be, in any order.
    gap : float
        The least distance between two of them, in the same unit.

    Returns
    -------
    list of float
        New positions in the order of the input; their order along the axis is kept.

    Examples
    --------
    >>> spread([1.0, 1.0, 5.0], 2.0)
    [0.0, 2.0, 5.0]
    """
    order = sorted(range(len(positions)), key=lambda i: (positions[i], i))
    # Blocks of labels that touch: [sum of (wish - offset), members]. A block sits at the mean.
    blocks: list[list[Any]] = []
    for i in order:
        blocks.append([positions[i], [i]])
        while len(blocks) > 1 and _top(blocks[-2], gap) > blocks[-1][0] / len(blocks[-1][1]):
            total, members = blocks.pop()
            lower = blocks[-1]
            shift = gap * len(lower[1]) * len(members)
            lower[0] += total - shift
            lower[1] += members
    placed = [0.0] * len(positions)
    for total, members in blocks:
        for offset, i in enumerate(members):
            placed[i] = total / len(members) + gap * offset
    return placed


def _top(block: list[Any], gap: float) -> float:
    return block[0] / len(block[1]) + gap * len(block[1])


def plot_costs(
    message: str,
    series: Mapping[str, Mapping[int, Any]],
    *,
    xlabel: str,
    caption: str = "",
) -> Chart:
    """Draw how long calls take over sizes, on two logarithmic axes.

    Parameters
    ----------
    message : str
        The title, a sentence.
    series : mapping of str to mapping of int to Measurement
        For each curve (at most four) the measurement at each size. A point is the median, the
        whisker its interquartile range, in seconds.
    xlabel : str
        What a size counts, with its unit.
    caption : str
        How it was measured: runs, threads, machine.

    Returns
    -------
    Chart
        With one row per curve and size.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not series or not all(series.values()):
        raise ValueError("series must hold at least one curve with one size, got nothing to draw")
    palette = colors()
    figure, axes = new_figure(message)
    rows, ends = [], []
    for kind, (name, points) in zip(MARKERS, series.items(), strict=False):
        sizes = sorted(points)
        medians = [points[n].median for n in sizes]
        _line(axes, sizes, [points[n] for n in sizes], kind=kind)
        ends.append((name, medians[-1], palette[kind]))
        rows += [
            (name, f"{n:,}", format_time(points[n].median), format_time(points[n].iqr))
            for n in sizes
        ]
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel="time (s)")
    label_ends(axes, max(max(points) for points in series.values()), ends)
    write_caption(figure, caption)
    return Chart(figure, message, ("call", "size", "median", "IQR"), tuple(rows))


def _line(axes: Axes, sizes: Sequence[int], measured: Sequence[Any], *, kind: str) -> None:
    color = colors()[kind]
    medians = [m.median for m in measured]
    whiskers = [
        [m.median - q for m, q in zip(measured, _quartile(measured, 1), strict=True)],
        [q - m.median for m, q in zip(measured, _quartile(measured, 3), strict=True)],
    ]
    axes.errorbar(
        sizes, medians, yerr=whiskers, color=color, marker=MARKERS[kind], markersize=6, capsize=3,
        linestyle="--" if kind == "baseline" else "-",
    )  # fmt: skip


def _quartile(measured: Sequence[Any], which: int) -> list[float]:
    quantiles = []
    for m in measured:
        ordered = sorted(m.times)
        place = (len(ordered) - 1) * which / 4
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        quantiles.append(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
    return quantiles


def label_ends(axes: Axes, x: float, ends: Sequence[tuple[str, float, str]]) -> None:
    """Write each name beside the end of its curve, so that no two of them overlap.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        With a logarithmic vertical axis whose limits are final.
    x : float
        Where the curves end.
    ends : sequence of (str, float, str)
        For each curve its name, its last value and its color.

    Examples
    --------
    >>> figure, axes = new_figure("Two meet")
    >>> _ = axes.set(yscale="log", ylim=(1, 10))
    >>> label_ends(axes, 1.0, [("a", 5.0, "black"), ("b", 5.0, "black")])
    >>> [text.get_text() for text in axes.texts]
    ['a', 'b']
    """
    # A label of 10 pt needs about 6 % of the height of the axes.
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    places = spread([(math.log10(y) - low) / (high - low) for _, y, _ in ends], 0.065)
    for (name, y, color), place in zip(ends, places, strict=True):
        axes.annotate(
            name, (x, y), xytext=(1.02, place), textcoords="axes fraction", color=color,
            va="center", fontweight="bold", annotation_clip=False,
        )  # fmt: skip


def plot_ratios(
    message: str,
    speedups: Mapping[str, Any],
    *,
    baseline: str,
    new: str,
    caption: str = "",
) -> Chart:
    """Draw ratios of times around 1, with their intervals, and name no winner where there is none.

    Parameters
    ----------
    message : str
        The title, a sentence.
    speedups : mapping of str to Speedup
        One per row, from top to bottom; see `helpers.timing.speedup`.
    baseline, new : str
        What is compared: a ratio above 1 means that `new` is faster.
    caption : str
        How it was measured: runs, threads, machine.

    Returns
    -------
    Chart
        With one row per speedup.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not speedups:
        raise ValueError("speedups must hold at least one ratio, got nothing to draw")
    figure, axes = new_figure(message, height=1.3 + 0.42 * len(speedups))
    rows = []
    for y, (name, s) in enumerate(speedups.items()):
        winner = None if s.refusal else new if s.ratio > 1 else baseline
        _ratio_row(axes, y, s, winner=winner, new=new)
        rows.append((name, format_ratio(s.ratio), winner or "no winner"))
    axes.axvline(1, color=colors()["reference"], linestyle="--", zorder=0)
    axes.set(
        xscale="log", xlabel=f"time of {baseline} / time of {new}", ylim=(len(rows) - 0.5, -0.5)
    )
    axes.set_yticks(range(len(rows)), list(speedups))
    _decade_ticks(axes, speedups.values())
    write_caption(figure, caption)
    return Chart(figure, message, ("operation", f"{baseline} / {new}", "faster"), tuple(rows))


def _ratio_row(axes: Axes, y: int, s: Any, *, winner: str | None, new: str) -> None:
    kind = "reference" if winner is None else "new" if winner == new else "baseline"
    color = colors()[kind]
    axes.plot([s.low, s.high], [y, y], color=color, linewidth=3, alpha=0.5, solid_capstyle="butt")
    axes.plot(
        s.ratio, y, marker=MARKERS[kind], color=color, markersize=8,
        markerfacecolor="none" if winner is None else color,
    )  # fmt: skip
    text = f"{winner} {format_ratio(max(s.ratio, 1 / s.ratio))}" if winner else "no winner"
    axes.annotate(
        text, (s.high, y), xytext=(9, 0), textcoords="offset points", va="center", color=color
    )


def _decade_ticks(axes: Axes, speedups: Any) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low = min(min(s.low, 1) for s in speedups)
    high = max(max(s.high, 1) for s in speedups)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [10.0**k for k in range(min(first, -1), max(last, 1) + 1)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlim(ticks[0] / 1.3, ticks[-1] * 4)  # room for the words at the right end


def plot_times(message: str, times: Mapping[str, Sequence[float]], *, caption: str = "") -> Chart:
    """Draw single times as dots on a logarithmic axis, one row each, with the median as a line.

    Parameters
    ----------
    message : str
        The title, a sentence.
    times : mapping of str to sequence of float
        Seconds, for each row from top to bottom.
    caption : str
        How it was measured: runs, threads, machine.

    Returns
    -------
    Chart
        With one row per series: how many, the shortest, the median and the longest time.

    Raises
    ------
    ValueError
        If there is nothing to draw or a time is not above zero.
    """
    if not times or not all(len(seconds) for seconds in times.values()):
        raise ValueError("times must hold at least one time per row, got nothing to draw")
    for name, seconds in times.items():
        if min(seconds) <= 0:
            raise ValueError(f"times of {name} must be above zero, got {min(seconds)}")
    figure, axes = new_figure(message, height=1.3 + 0.5 * len(times))
    palette, rows = colors(), []
    for y, (name, seconds) in enumerate(times.items()):
        ordered = sorted(seconds)
        median = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        axes.plot(ordered, [y] * len(ordered), "o", color=palette["new"], alpha=0.6, markersize=6)
        axes.plot([median, median], [y - 0.3, y + 0.3], color=palette["baseline"], linewidth=3)
        shown = (format_time(t) for t in (ordered[0], median, ordered[-1]))
        rows.append((name, str(len(ordered)), *shown))
    axes.set(xscale="log", xlabel="time", ylim=(len(rows) - 0.4, -0.6))
    axes.set_yticks(range(len(rows)), list(times))
    _time_ticks(axes, min(map(min, times.values())), max(map(max, times.values())))
    write_caption(figure, caption)
    return Chart(figure, message, ("series", "n", "shortest", "median", "longest"), tuple(rows))


def _time_ticks(axes: Axes, shortest: float, longest: float) -> None:
    """Label a logarithmic axis with times and their units, few enough not to collide."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    first, last = math.floor(math.log10(shortest)), math.ceil(math.log10(longest))
    decades = range(first, last + 1)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    low, high = axes.get_xlim()
    shown = [tick for tick in ticks if low <= tick <= high]
    if len(shown) < 2:  # within one decade even steps serve as well
        shown = [t for t in MaxNLocator(4).tick_values(low, high) if low <= t <= high]
    axes.set_xticks(shown, [format_time(tick) for tick in shown])
    axes.xaxis.set_minor_locator(NullLocator())


def plot_images(message: str, images: Mapping[str, Any]) -> Chart:
    """Draw gray-level images under each other, all on one scale.

    Parameters
    ----------
    message : str
        The title, a sentence.
    images : mapping of str to array or tensor of shape (height, width)
        One per row, from top to bottom, with its label. The smallest value of all is drawn
        darkest, the largest brightest.

    Returns
    -------
    Chart
        With one row per image: shape, sum, and the place of its largest value.

    Raises
    ------
    ValueError
        If there is nothing to draw or an image has not two dimensions.
    """
    import numpy as np

    if not images:
        raise ValueError("images must hold at least one image, got nothing to draw")
    arrays = {name: np.asarray(image) for name, image in images.items()}
    for name, array in arrays.items():
        if array.ndim != 2:
            raise ValueError(f"{name} must have shape (height, width), got {array.shape}")
    low = min(array.min() for array in arrays.values())
    high = max(array.max() for array in arrays.values())
    width = max(array.shape[1] for array in arrays.values())
    heights = [0.3 + SIZE[0] * array.shape[0] / width for array in arrays.values()]
    figure, axes = new_figure("", height=0.45 + sum(heights))
    axes.remove()
    ink = colors()["ink"]
    figure.suptitle(message, x=0.01, ha="left", fontsize=12, color=ink)
    for place, (name, array) in enumerate(arrays.items()):
        part = figure.add_subplot(len(arrays), 1, place + 1)
        part.imshow(array, cmap="cividis", vmin=low, vmax=high, aspect="equal")
        part.set_title(name, loc="left", fontsize=10, color=ink, pad=4)
        part.axis("off")
    rows = [
        (name, "×".join(map(str, array.shape)), f"{array.sum():g}", str(int(array.argmax())))
        for name, array in arrays.items()
    ]
    return Chart(figure, message, ("image", "shape", "sum", "brightest pixel"), tuple(rows))


@dataclass(frozen=True)
class _Extent:
    """Say where an object's elements lie: first byte, offsets of its elements, bytes of one."""

    start: int
    offsets: tuple[int, ...]
    itemsize: int

    @property
    def end(self) -> int:
        return max(self.offsets, default=0) + self.itemsize


def _extent(thing: Any) -> _Extent:
    import numpy as np

    if isinstance(thing, np.ndarray):
        strides, address = thing.strides, thing.__array_interface__["data"][0]
    else:
        strides = [step * thing.element_size() for step in thing.stride()]
        address = thing.data_ptr()
    offsets = [0]
    for length, step in zip(thing.shape, strides, strict=True):
        offsets = [offset + i * step for offset in offsets for i in range(length)]
    low = min(offsets, default=0)
    relative = tuple(offset - low for offset in offsets)
    return _Extent(address + low, relative, thing.dtype.itemsize)


def _blocks(extents: Mapping[str, _Extent]) -> dict[str, tuple[int, int]]:
    """Group extents that overlap or touch: for each name the number of its block and its offset."""
    order = sorted(extents, key=lambda name: extents[name].start)
    groups: list[list[str]] = []
    end = -1
    for name in order:
        if not groups or extents[name].start > end:
            groups.append([])
        groups[-1].append(name)
        end = max(end, extents[name].start + extents[name].end)
    # Numbered by first appearance, since addresses differ from run to run.
    groups.sort(key=lambda group: min(list(extents).index(name) for name in group))
    return {
        name: (number, extents[name].start - min(extents[n].start for n in group))
        for number, group in enumerate(groups)
        for name in group
    }


def plot_memory(message: str, objects: Mapping[str, Any], *, limit: int = 64) -> Chart:
    """Draw which bytes each array or tensor looks at, from its real address and strides.

    Parameters
    ----------
    message : str
        The title, a sentence.
    objects : mapping of str to numpy.ndarray or torch.Tensor
        One row each, from top to bottom. Objects with common bytes stand over each other; a
        gap separates blocks of memory that do not touch.
    limit : int
        The most elements that one object may have, so that single elements can be seen.

    Returns
    -------
    Chart
        With one row per object: block, first byte in it, elements, bytes per element. Blocks are
        lettered in order of appearance, so that the table is the same in every run.

    Raises
    ------
    ValueError
        If there is nothing to draw or an object has more than `limit` elements.
    """
    if not objects:
        raise ValueError("objects must hold at least one array or tensor, got nothing to draw")
    extents = {name: _extent(thing) for name, thing in objects.items()}
    for name, extent in extents.items():
        if len(extent.offsets) > limit:
            raise ValueError(
                f"{name} has {len(extent.offsets):,} elements; single elements can be seen up "
                f"to {limit}: draw a small example"
            )
    blocks = _blocks(extents)
    figure, axes = new_figure(message, height=1.2 + 0.5 * len(objects))
    starts = _block_starts(extents, blocks)
    rows = []
    for y, (name, extent) in enumerate(extents.items()):
        block, offset = blocks[name]
        _memory_row(axes, y, starts[block] + offset, extent, kind=_kind(objects[name]))
        _write_values(axes, y, starts[block] + offset, extent, objects[name])
        letter = chr(ord("A") + block)
        rows.append(
            (name, letter, str(offset), str(len(extent.offsets)), format_bytes(extent.itemsize))
        )
    _memory_axes(axes, list(objects), starts, extents, blocks)
    heads = ("object", "block", "first byte", "elements", "per element")
    return Chart(figure, message, heads, tuple(rows))


def _kind(thing: Any) -> str:
    import numpy as np

    return "baseline" if isinstance(thing, np.ndarray) else "memory"


def _block_starts(
    extents: Mapping[str, _Extent], blocks: Mapping[str, tuple[int, int]]
) -> list[int]:
    """Lay the blocks side by side: where each one begins on the axis, in bytes."""
    count = max(number for number, _ in blocks.values()) + 1
    lengths = [
        max(blocks[n][1] + extents[n].end for n in extents if blocks[n][0] == number)
        for number in range(count)
    ]
    gap = max(4, sum(lengths) // 10)
    return [sum(lengths[:number]) + gap * number for number in range(count)]


def _memory_row(axes: Axes, y: int, start: int, extent: _Extent, *, kind: str) -> None:
    from matplotlib.patches import Rectangle

    palette = colors()
    for offset in sorted(set(extent.offsets)):
        axes.add_patch(
            Rectangle(
                (start + offset, y - 0.32), extent.itemsize, 0.64, facecolor=palette[kind],
                edgecolor=palette["paper"], linewidth=1.5,
            )
        )  # fmt: skip


def _write_values(axes: Axes, y: int, start: int, extent: _Extent, thing: Any) -> None:
    """Write each element's value into its bytes, where there is room for it."""
    if len(extent.offsets) > 16:
        return
    values = thing.reshape(-1).tolist()
    for offset, value in dict(zip(extent.offsets, values, strict=True)).items():
        axes.text(start + offset + extent.itemsize / 2, y, _short(value), ha="center", va="center",
                  fontsize=9, color=colors()["paper"])  # fmt: skip


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _byte_ticks(
    axes: Axes,
    starts: Sequence[int],
    extents: Mapping[str, _Extent],
    blocks: Mapping[str, tuple[int, int]],
) -> None:
    """Count bytes from the beginning of each block, in at most four steps."""
    places, labels = [], []
    for number, start in enumerate(starts):
        ends = [blocks[n][1] + extents[n].end for n in extents if blocks[n][0] == number]
        step = 4
        while max(ends) > 4 * step:
            step *= 2
        counts = range(0, max(ends) + 1, step)
        places += [start + count for count in counts]
        labels += [str(count) for count in counts]
    axes.set_xticks(places, labels)


def _memory_axes(
    axes: Axes,
    names: Sequence[str],
    starts: Sequence[int],
    extents: Mapping[str, _Extent],
    blocks: Mapping[str, tuple[int, int]],
) -> None:
    right = max(starts[blocks[n][0]] + blocks[n][1] + extents[n].end for n in names)
    axes.set(xlim=(-1, right + 1), ylim=(len(names) - 0.4, -0.9), xlabel="bytes, block by block")
    axes.set_yticks(range(len(names)), list(names))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    _byte_ticks(axes, starts, extents, blocks)
    for number, start in enumerate(starts):
        axes.text(start, -0.55, f"block {chr(ord('A') + number)}", va="bottom", fontsize=9,
                  color=colors()["reference"])  # fmt: skip


BANDS = {
    "parameter": ("reference", ""),
    "optimizer state": ("memory", ""),
    "gradient": ("gradient", "..."),
    "activation": ("new", ""),
    "recomputed": ("new", "///"),
    "temporary": ("baseline", "xxx"),
    "other": ("ink", ""),
}


def plot_timeline(message: str, timeline: Any, *, caption: str = "") -> Chart:
    """Draw the live bytes of each category over the operations of a block, with the peak marked.

    Parameters
    ----------
    message : str
        The title, a sentence.
    timeline : helpers.memory.Timeline
        What ``track_memory(...)`` kept: its attribute ``timeline``.
    caption : str
        How it was counted.

    Returns
    -------
    Chart
        With one row per phase: its highest total, and the category that was largest then.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not timeline.total:
        raise ValueError("timeline must hold at least one point, got nothing to draw")
    figure, axes = new_figure(message)
    palette, unit = colors(), 2**20
    drawn = {name: timeline.by_category[name] for name in BANDS if any(timeline.by_category[name])}
    x, low = timeline.operations, [0.0] * len(timeline)
    for name, column in drawn.items():
        color, hatch = BANDS[name]
        high = [a + b / unit for a, b in zip(low, column, strict=True)]
        axes.fill_between(
            x, low, high, step="post", label=name, facecolor=palette[color], hatch=hatch,
            edgecolor=palette["paper"], linewidth=0,
        )  # fmt: skip
        low = high
    at = timeline.total.index(max(timeline.total))
    top = timeline.total[at] / unit
    axes.annotate(
        f"peak: {format_bytes(timeline.total[at])}, {timeline.phases[at]}", (x[at], top),
        xytext=(12, 12), textcoords="offset points", arrowprops={"arrowstyle": "->"},
    )  # fmt: skip
    axes.set(xlabel="operation", ylabel="live tensors (MiB)", ylim=(0, 1.25 * top))
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, reverse=True)
    write_caption(figure, caption)
    heads = ("phase", "highest", "largest category")
    return Chart(figure, message, heads, tuple(_phase_rows(timeline)))


def _phase_rows(timeline: Any) -> list[tuple[str, str, str]]:
    rows = []
    for phase in dict.fromkeys(timeline.phases):
        places = [i for i, name in enumerate(timeline.phases) if name == phase]
        at = max(places, key=lambda i: timeline.total[i])
        largest = max(timeline.by_category, key=lambda name: timeline.by_category[name][at])
        rows.append((phase, format_bytes(timeline.total[at]), largest))
    return rows
