"""Bars that are cut into categories show what they sum to."""

import base64
import re

import pytest

from helpers.plotting import PALETTES, use_style
from helpers.stacks import plot_stacks

STACKS = {
    "plain": {"parameter": 3 * 2**20, "activation": 5 * 2**20, "other": 0},
    "lean": {"parameter": 3 * 2**20, "activation": 0, "temporary": 2**19},
}


def test_rows_hold_the_totals_and_what_was_drawn():
    chart = plot_stacks("One is lower", STACKS)
    assert chart.columns == ("bar", "total", "parameter", "activation", "temporary")
    assert chart.rows[0] == ("plain", "8.00 MiB", "3,145,728", "5,242,880", "0")
    assert chart.rows[1] == ("lean", "3.50 MiB", "3,145,728", "0", "524,288")
    assert repr(chart).startswith("One is lower\n")


def test_the_bars_end_at_their_totals():
    axes = plot_stacks("One is lower", STACKS).axes
    ends = {}
    for bar in axes.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends.get(row, 0), bar.get_x() + bar.get_width())
    assert ends == {0: 8.0, 1: 3.5}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["plain", "lean"]
    assert axes.get_xlim()[0] == 0


def test_a_limit_is_drawn_and_named():
    axes = plot_stacks("One is lower", STACKS, limit=4 * 2**20, limit_name="budget").axes
    (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert list(line.get_xdata()) == [4, 4]
    assert "budget: 4.00 MiB" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("theme", PALETTES)
def test_both_themes_draw_a_picture(theme):
    use_style(theme)
    try:
        data, _ = plot_stacks("One is lower", STACKS, caption="c")._repr_mimebundle_()
    finally:
        use_style("light")
    png = data["image/png"]
    assert (png if isinstance(png, bytes) else base64.b64decode(png)).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("stacks", "says"),
    [
        ({}, "stacks must hold at least one bar with bytes, got nothing to draw"),
        ({"a": {"parameter": 0}}, "got nothing to draw"),
        ({"a": {"weights": 1}}, "categories must be among parameter, optimizer state"),
        ({"a": {"parameter": -1, "other": 2}}, "bytes must not be negative, got -1 for parameter"),
    ],
)
def test_what_cannot_be_drawn_is_refused(stacks, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        plot_stacks("m", stacks)
