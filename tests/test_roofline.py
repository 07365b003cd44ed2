"""The roofline bounds times by both limits and draws each operation with its name."""

import itertools

import pytest

from helpers import roofline
from helpers.roofline import Roof, Work

ROOF = Roof(peak=100e9, bandwidth=40e9)


@pytest.mark.parametrize(
    ("flops", "nbytes", "seconds"), [(1e9, 1e6, 0.01), (1e6, 40e9, 1.0), (2.5e9, 1e9, 0.025)]
)
def test_the_longer_of_computing_and_moving_is_the_least_time(flops, nbytes, seconds):
    assert ROOF.least_seconds(Work(flops, nbytes, 1.0)) == pytest.approx(seconds)


def test_both_limits_meet_at_the_ridge():
    work = Work(ROOF.ridge * 1e6, 1e6, 1.0)
    assert work.intensity == pytest.approx(2.5)
    assert work.flops / ROOF.peak == pytest.approx(work.nbytes / ROOF.bandwidth)


def test_the_chart_holds_a_row_for_each_operation_and_a_dashed_roof():
    works = {"add": Work(1e6, 12e6, 1e-3), "matmul": Work(2e9, 12e6, 25e-3)}
    chart = roofline.plot_roofline("Two limits", ROOF, works, caption="1 thread")
    assert chart.rows[0] == ("add", "0.0833", "1.00 ms", "300 µs", "3.33")
    assert [row[0] for row in chart.rows] == ["add", "matmul"]
    assert {text.get_text() for text in chart.axes.texts} == {"add", "matmul"}
    assert chart.axes.lines[0].get_linestyle() == "--"
    assert "roof: 100 GFLOP/s, 40.0 GB/s · 1 thread" in chart.figure.get_supxlabel()
    assert chart._repr_mimebundle_()[0]["image/png"].startswith(b"\x89PNG")


def test_names_of_equally_fast_operations_do_not_overlap():
    works = {f"op {n}": Work(1e6, 12e6 * (1 + n / 10), 1e-3) for n in range(4)}
    heights = [t.xy[1] for t in roofline.plot_roofline("m", ROOF, works).axes.texts]
    assert all(b / a > 1.05 for a, b in itertools.pairwise(heights))


@pytest.mark.parametrize("values", [(0, 1e9), (1e9, -1), (float("inf"), 1e9)])
def test_a_roof_without_a_limit_is_refused(values):
    with pytest.raises(
        ValueError, match=r"^(peak|bandwidth) must be above zero, got .*; measure it"
    ):
        Roof(*values)


@pytest.mark.parametrize("values", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, float("nan"))])
def test_work_without_a_size_or_a_time_is_refused(values):
    with pytest.raises(ValueError, match=r"^(flops|nbytes|seconds) must be above zero, got "):
        Work(*values)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match=r"^works must hold at least one operation"):
        roofline.plot_roofline("m", ROOF, {})
