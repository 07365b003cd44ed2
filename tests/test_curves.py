"""plot_curves draws what it is given, and refuses what a logarithm cannot show."""

import pytest

from helpers.curves import plot_curves


def test_a_row_for_each_point_and_both_axes_logarithmic():
    chart = plot_curves(
        "It falls", {"a": {10: 0.5, 100: 0.25}, "b": {10: 3e-7}}, xlabel="n", ylabel="error"
    )
    assert chart.rows == (("a", "10", "0.5"), ("a", "100", "0.25"), ("b", "10", "3e-07"))
    assert (chart.axes.get_xscale(), chart.axes.get_yscale()) == ("log", "log")
    assert {text.get_text() for text in chart.axes.texts} == {"a", "b"}
    assert [text.get_text() for text in chart.axes.get_xticklabels()] == ["10", "100"]
    assert repr(chart).startswith("It falls\ncurve  size  value")


@pytest.mark.parametrize("series", [{}, {"a": {}}])
def test_nothing_to_draw_is_refused(series):
    with pytest.raises(ValueError, match="got nothing to draw"):
        plot_curves("x", series, xlabel="n", ylabel="y")


def test_zero_and_a_fifth_curve_are_refused():
    with pytest.raises(ValueError, match=r"values of a must be above zero, got 0.0"):
        plot_curves("x", {"a": {1: 0.0}}, xlabel="n", ylabel="y")
    with pytest.raises(ValueError, match="at most 4 curves, got 5; draw two figures"):
        plot_curves("x", {str(i): {1: 1.0} for i in range(5)}, xlabel="n", ylabel="y")
