"""plot_arrows draws what it is given, and tells lengths and angles."""

import re

import pytest

from helpers.arrows import plot_arrows


def draw(arrows):
    return plot_arrows("It turned", arrows, xlabel="g1", ylabel="g2", caption="exact")


def test_a_row_tells_coordinates_length_and_angle_to_the_first():
    chart = draw({"gradient": (4.0, 3.0), "halved": (2.0, 1.5), "turned": (-3.0, 4.0)})
    assert chart.rows == (
        ("gradient", "4", "3", "5", "0"),
        ("halved", "2", "1.5", "2.5", "0"),
        ("turned", "-3", "4", "5", "90"),
    )
    assert repr(chart).startswith("It turned\nvector")


def test_arrows_begin_at_the_origin_and_end_at_their_coordinates():
    chart = draw({"gradient": (3.0, 0.4), "clipped": (0.5, 0.4)})
    heads = [t.xy for t in chart.axes.texts if not t.get_text()]
    assert heads == [(3.0, 0.4), (0.5, 0.4)]
    assert [t.get_text() for t in chart.axes.texts if t.get_text()] == ["gradient", "clipped"]
    assert chart.axes.get_aspect() == 1.0


@pytest.mark.parametrize(
    ("arrows", "says"),
    [
        ({}, "arrows must hold 1 to 4 vectors, got 0"),
        ({str(i): (1, 1) for i in range(5)}, "arrows must hold 1 to 4 vectors, got 5"),
        ({"a": (0, 0)}, "a must have a finite length above zero, got (0, 0)"),
        ({"a": (float("nan"), 0)}, "a must have a finite length above zero, got (nan, 0)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arrows, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        draw(arrows)
