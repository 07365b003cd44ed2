"""Figures show what they were given, label it without collisions, and say it in text."""

import itertools
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from color_math import contrast

from helpers import plotting


def measurement(median, spread=0.1):
    times = [median * (1 - spread), median, median * (1 + spread)]
    return SimpleNamespace(median=median, iqr=median * spread, times=times)


def ratio(value, refusal=None):
    return SimpleNamespace(ratio=value, low=value * 0.9, high=value * 1.1, refusal=refusal)


@pytest.fixture
def light():
    plotting.use_style("light")
    yield
    plotting.use_style("light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_color_can_be_read_as_text_on_its_paper(theme):
    colors = plotting.PALETTES[theme]
    for name in set(colors) - {"paper"}:
        assert contrast(colors[name], colors["paper"]) >= 4.5, name


def test_every_meaning_has_a_marker_of_its_own():
    assert len(set(plotting.MARKERS.values())) == len(plotting.MARKERS)
    assert set(plotting.MARKERS) < set(plotting.PALETTES["light"])


def test_an_unknown_theme_is_refused():
    with pytest.raises(ValueError, match="theme must be one of light, dark, got 'sepia'"):
        plotting.use_style("sepia")


@pytest.mark.parametrize("positions", [[0.5, 0.5, 0.5], [3.0, 1.0, 2.0], [0.0, 0.05, 1.0], [1.0]])
def test_labels_are_moved_apart_and_keep_their_order(positions):
    placed = plotting.spread(positions, 0.1)
    ordered = sorted(placed)
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(ordered))
    assert [placed.index(p) for p in ordered] == sorted(
        range(len(positions)), key=lambda i: (positions[i], i)
    )


def test_labels_far_apart_stay_where_they_are():
    assert plotting.spread([0.9, 0.1], 0.1) == [0.9, 0.1]


@pytest.mark.usefixtures("light")
def test_labels_of_meeting_curves_do_not_overlap_on_the_page():
    series = {name: {10: measurement(1e-6), 100: measurement(1e-6)} for name in ("a", "b", "c")}
    chart = plotting.plot_costs("Three curves meet", series, xlabel="elements")
    chart.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in chart.axes.texts]
    assert len(boxes) == 3
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_the_text_of_a_chart_is_its_message_and_the_table_it_drew():
    chart = plotting.plot_costs("Costs", {"f": {10: measurement(2e-6)}}, xlabel="elements")
    data, metadata = chart._repr_mimebundle_()
    assert data["text/plain"].splitlines()[0] == "Costs"
    assert "2.00 µs" in data["text/plain"]
    assert data["image/png"].startswith(b"\x89PNG")
    assert metadata["image/png"]["width"] == 700


def test_a_ratio_without_a_verdict_names_no_winner():
    chart = plotting.plot_ratios(
        "Races", {"sum": ratio(3.0), "tanh": ratio(0.1), "add": ratio(1.02, "interval contains 1")},
        baseline="NumPy", new="torch",
    )  # fmt: skip
    assert [row[2] for row in chart.rows] == ["torch", "NumPy", "no winner"]
    words = [text.get_text() for text in chart.axes.texts]
    assert words == ["torch 3.0x", "NumPy 10x", "no winner"]


def test_memory_is_drawn_from_addresses_and_strides():
    array = np.arange(6, dtype=np.float32)
    tensor = torch.from_numpy(array)
    chart = plotting.plot_memory(
        "Who owns it",
        {"array": array, "tensor": tensor, "odd": array[1::2], "back": array[::-1],
         "copy": tensor.clone()},
    )  # fmt: skip
    assert [row[1:4] for row in chart.rows] == [
        ("A", "0", "6"), ("A", "0", "6"), ("A", "4", "3"), ("A", "0", "6"), ("B", "0", "6"),
    ]  # fmt: skip
    odd = [patch.get_x() for patch in chart.axes.patches if round(patch.get_y() + 0.32) == 2]
    assert odd == [4, 12, 20]


def test_an_expanded_tensor_is_drawn_as_the_one_element_it_has():
    chart = plotting.plot_memory("One", {"row": torch.zeros(1).expand(4)})
    assert len(chart.axes.patches) == 1


def test_images_share_one_scale_and_tell_what_they_hold():
    dark, bright = np.zeros((2, 4)), np.full((2, 4), 2.0)
    bright[1, 1] = 4
    chart = plotting.plot_images("Two", {"dark": dark, "bright": torch.from_numpy(bright)})
    assert chart.rows == (("dark", "2×4", "0", "0"), ("bright", "2×4", "18", "5"))
    drawn = [axes.images[0] for axes in chart.figure.axes]
    chart.figure.canvas.draw()
    titles = [chart.figure._suptitle, *(axes._left_title for axes in chart.figure.axes)]
    boxes = [title.get_window_extent() for title in titles]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert [image.get_clim() for image in drawn] == [(0, 4), (0, 4)]


def test_an_image_of_three_dimensions_is_refused():
    with pytest.raises(
        ValueError, match=r"cube must have shape \(height, width\), got \(2, 2, 2\)"
    ):
        plotting.plot_images("x", {"cube": np.zeros((2, 2, 2))})


def test_single_times_are_drawn_with_their_median():
    chart = plotting.plot_times("Times", {"calls": [3e-6, 1e-6, 2e-6, 40e-6], "one": [5e-3]})
    assert chart.rows[0] == ("calls", "4", "1.00 µs", "2.50 µs", "40.0 µs")
    assert chart.rows[1][3] == "5.00 ms"
    assert len(chart.axes.lines[0].get_xdata()) == 4


def test_a_time_of_zero_is_refused():
    with pytest.raises(ValueError, match="times of f must be above zero, got 0"):
        plotting.plot_times("x", {"f": [0, 1]})


def test_nothing_to_draw_is_an_error():
    for draw in (
        lambda: plotting.plot_times("x", {}),
        lambda: plotting.plot_times("x", {"f": []}),
        lambda: plotting.plot_images("x", {}),
        lambda: plotting.plot_memory("x", {}),
        lambda: plotting.plot_costs("x", {}, xlabel="n"),
        lambda: plotting.plot_costs("x", {"f": {}}, xlabel="n"),
        lambda: plotting.plot_ratios("x", {}, baseline="a", new="b"),
    ):
        with pytest.raises(ValueError, match="got nothing to draw"):
            draw()


def test_too_many_elements_are_refused():
    with pytest.raises(ValueError, match=r"big has 1,000 elements.*up to 64"):
        plotting.plot_memory("x", {"big": np.zeros(1000)})


def test_no_figure_is_left_open():
    import matplotlib.pyplot as plt

    plotting.plot_costs("Costs", {"f": {10: measurement(2e-6)}}, xlabel="elements")
    assert plt.get_fignums() == []


def tick_labels(chart):
    axes = chart.figure.axes[0]
    return [(tick.get_position()[0], tick.get_text()) for tick in axes.get_xticklabels()]


def test_bytes_are_counted_from_the_beginning_of_each_block():
    objects = {"a": np.arange(8, dtype=np.float32), "b": np.arange(3, dtype=np.float64)}
    labels = [text for _, text in tick_labels(plotting.plot_memory("Two blocks", objects))]
    assert labels == ["0", "8", "16", "24", "32", "0", "8", "16", "24"]


@pytest.mark.parametrize(("shortest", "longest"), [(2e-5, 9e-3), (3e-5, 4e-5), (1e-9, 10.0)])
def test_times_are_labeled_with_units_and_labels_do_not_collide(shortest, longest):
    chart = plotting.plot_times("Times", {"calls": [shortest, longest]})
    chart.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in chart.figure.axes[0].get_xticklabels() if t.get_text()]
    boxes.sort(key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert all(text[-1] == "s" for _, text in tick_labels(chart))


def test_a_timeline_is_drawn_with_its_peak_and_one_row_for_each_phase():
    import torch

    from helpers.memory import track_memory

    model = torch.nn.Linear(100, 10)
    with track_memory(model) as peak:
        model(torch.ones(50, 100)).sum().backward()
    chart = plotting.plot_timeline("Backward adds", peak.timeline, caption="counted")
    assert [row[0] for row in chart.rows] == ["forward", "backward"]
    assert chart.columns == ("phase", "highest", "largest category")
    labels = [text.get_text() for text in chart.axes.get_legend().get_texts()]
    assert "parameter" in labels
    assert "recomputed" not in labels
    note = next(child for child in chart.axes.texts)
    assert note.get_text().startswith("peak: ")


def test_an_empty_timeline_is_refused():
    from helpers.memory import track_memory

    with track_memory() as peak:
        pass
    with pytest.raises(ValueError, match="at least one point, got nothing to draw"):
        plotting.plot_timeline("Nothing", peak.timeline)
