"""Draw how far a class came, and which wrong answers the most readers met."""

from helpers import _report_part, plotting
from helpers._class_rows import FEWEST
from helpers._report_board import HEADS


def plot_class(table, *, most=10):
    """Draw how far the exercises of each notebook came, above what was missed most.

    Parameters
    ----------
    table : ClassTable
        Of any number of readers; what fewer than five stand behind is not drawn.
    most : int
        Number of wrong answers.

    Returns
    -------
    plotting.Chart
        With one row per bar.
    """
    missed, notebooks = table.missed[:most], table.notebooks
    message = _message(table)
    bars = (0.3, len(notebooks)), (0.42, len(missed))
    heights = [each * max(2, many) if many else 0.1 for each, many in bars]
    with _report_part.drawn_for(_report_part.theme()):
        figure, upper = plotting.new_figure(message, height=2.4 + sum(heights))
        places = figure.add_gridspec(2, 1, height_ratios=heights)
        upper.set_subplotspec(places[0])
        _draw_notebooks(upper, notebooks)
        _draw_missed(figure.add_subplot(places[1]), missed)
    rows = [(f"notebook {number}", *map(str, counts)) for number, *counts in notebooks]
    rows += [(told, f"met by {met}", "", f"tried by {tried}", "") for told, met, tried in missed]
    return plotting.Chart(figure, message, ("bar", *HEADS), tuple(rows))


def _message(table):
    counts = [sum(column) for column in zip(*(row[1:] for row in table.notebooks), strict=True)]
    if not counts:
        return f"Fewer than {FEWEST} readers tried any exercise"
    return f"{100 * sum(counts[:2]) / sum(counts):.0f} % of the exercises were passed"


def _draw_notebooks(axes, notebooks):
    colors, looks = plotting.colors(), ("new", "memory", "baseline", "reference")
    totals = [sum(counts) for _, *counts in notebooks]
    low = [0.0] * len(notebooks)
    for n, (state, look) in enumerate(zip(HEADS, looks, strict=True)):
        shares = [100 * row[n + 1] / total for row, total in zip(notebooks, totals, strict=True)]
        axes.barh(range(len(notebooks)), shares, left=low, height=0.7, color=colors[look],
                  hatch=("", "///", "xxx", "...")[n], edgecolor=colors["paper"], label=state)  # fmt: skip
        low = [a + b for a, b in zip(low, shares, strict=True)]
    axes.set(xlabel="share of readers × exercises (%)", ylim=(len(notebooks) - 0.4, -0.6))
    axes.set_yticks(range(len(notebooks)), [number for number, *_ in notebooks])
    if notebooks:
        axes.figure.legend(loc="outside upper left", ncols=2, frameon=False)
    else:
        axes.set_axis_off()


def _draw_missed(axes, missed):
    colors = plotting.colors()
    axes.set_title("Wrong answers met most often" if missed else "No wrong answer to show")
    for y, (_, met, tried) in enumerate(missed):
        axes.barh(y, tried, height=0.6, facecolor="none", edgecolor=colors["reference"])
        axes.barh(y, met, height=0.6, color=colors["baseline"])
        axes.annotate(f"{met} of {tried}", (tried, y), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=9)  # fmt: skip
    axes.set(xlabel="readers: filled met it, outlined tried", ylim=(len(missed) - 0.4, -0.6))
    axes.set_xlim(0, 1.15 * max([tried for _, _, tried in missed], default=1))
    axes.set_yticks(range(len(missed)), [_short(told) for told, _, _ in missed], fontsize=9)
    if not missed:
        axes.set_axis_off()


def _short(text, longest=48):
    text = text.replace(" (told: …", ":").removesuffix(" …)")
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
