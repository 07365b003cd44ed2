"""Intervals cover what they promise, and figures show every seed."""

import itertools
import statistics

import pytest
import torch

from helpers import plotting, scores


@pytest.fixture(autouse=True)
def light():
    plotting.use_style("light")
    yield
    plotting.use_style("light")


def test_the_interval_of_five_scores_uses_the_tabled_quantile_of_student():
    values = [93.0, 95.5, 94.0, 96.0, 91.5]
    found = scores.interval(values)
    half = 2.7764 * statistics.stdev(values) / 5**0.5
    assert found.n == 5
    assert found.mean == pytest.approx(statistics.mean(values))
    assert found.high - found.mean == pytest.approx(half, rel=1e-4)
    assert found.mean - found.low == pytest.approx(half, rel=1e-4)


def test_about_95_of_100_intervals_hold_the_true_mean():
    draws = torch.randn(1000, 5, generator=torch.Generator().manual_seed(0))
    held = sum(found.low <= 0 <= found.high for found in map(scores.interval, draws))
    assert 930 <= held <= 970


def test_equal_scores_have_an_interval_without_width():
    found = scores.interval([2.0, 2.0])
    assert (found.mean, found.low, found.high) == (2.0, 2.0, 2.0)


def test_an_interval_writes_its_three_numbers_in_the_format_asked_for():
    assert f"{scores.Interval(1.23, -0.5, 2.96, 5):+.1f}" == "+1.2 [-0.5, +3.0]"
    assert str(scores.Interval(98.7, 98.0, 99.4, 5)) == "98.7 [98, 99.4]"


@pytest.mark.parametrize("few", [[], [1.0], torch.zeros(1)])
def test_fewer_than_two_scores_are_refused(few):
    with pytest.raises(ValueError, match=rf"at least two numbers, got {len(few)}; train with more"):
        scores.interval(few)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match=f"must be finite, got {value}; look at the run"):
        scores.interval([1.0, value])


def test_the_chart_of_scores_draws_each_seed_and_tells_the_interval():
    chart = scores.plot_scores("Spread", {"a": [1.0, 2.0, 3.0], "b": torch.tensor([4.0, 4.0])},
                               xlabel="points", reference=0.0, caption="3 seeds")  # fmt: skip
    assert chart.rows[0][:3] == ("a", "3", "2")
    assert chart.rows[1] == ("b", "2", "4", "4", "4")
    dots = [line for line in chart.axes.lines if len(line.get_xdata()) == 3]
    assert [list(line.get_xdata()) for line in dots] == [[1.0, 2.0, 3.0]]
    assert [text.get_text() for text in chart.axes.get_yticklabels()] == ["a", "b"]


def test_the_chart_of_scores_refuses_nothing_and_too_little():
    with pytest.raises(ValueError, match="at least one row, got nothing to draw"):
        scores.plot_scores("", {}, xlabel="")
    with pytest.raises(ValueError, match="at least two numbers, got 1"):
        scores.plot_scores("", {"a": [1.0]}, xlabel="")


CURVES = {name: {-1: 50.0, 0: 90.0, 1: 50.0 + i} for i, name in enumerate("abcd")}


def test_the_chart_of_curves_has_a_column_for_each_x_and_begins_at_zero():
    chart = scores.plot_curves("Curves", CURVES, xlabel="shift", ylabel="y", baseline="a")
    assert chart.columns == ("curve", "-1", "0", "1")
    assert chart.rows[1] == ("b", "50", "90", "51")
    assert chart.axes.get_ylim()[0] == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_curves_are_told_apart_without_color_and_their_names_do_not_overlap(theme):
    plotting.use_style(theme)
    chart = scores.plot_curves("Curves", CURVES, xlabel="shift", ylabel="y", baseline="a")
    marks = {(line.get_marker(), line.get_linestyle()) for line in chart.axes.lines}
    assert len(marks) == 4
    chart.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in chart.axes.texts]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


@pytest.mark.parametrize(
    ("curves", "words"),
    [
        ({}, "got nothing to draw"),
        ({"a": {}}, "got nothing to draw"),
        ({"a": {0: 1.0}, "b": {1: 1.0}}, r"same x, got \[0\] for a and \[1\] for b"),
        ({"a": {0: -1.0}}, "must not be negative, got -1.0 for a"),
    ],
)
def test_the_chart_of_curves_refuses_what_it_cannot_draw(curves, words):
    with pytest.raises(ValueError, match=words):
        scores.plot_curves("", curves, xlabel="", ylabel="")
