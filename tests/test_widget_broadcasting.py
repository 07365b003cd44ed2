"""The broadcasting explorer agrees with torch for any two shapes, and draws every state."""

import base64
import itertools
import re
import time
import xml.etree.ElementTree as ET

import pytest
import torch
from color_math import contrast

from helpers.plotting import PALETTES
from helpers.widgets import _panel, broadcasting
from helpers.widgets.broadcasting import BroadcastState, explore, meet, parse, render

SHAPES = [s for n in range(3) for s in itertools.product((0, 1, 2, 3), repeat=n)]
PAIRS = list(itertools.product(SHAPES, repeat=2))
STATES = [
    BroadcastState(),
    BroadcastState("3, 2", "3"),
    BroadcastState("2, 2", "3, 3"),
    BroadcastState("4, 1, 3", "2, 1"),
    BroadcastState("20000, 1", "20000"),
    BroadcastState("0, 1", "3"),
    BroadcastState("", ""),
    BroadcastState("3", "4, 3", "a += b"),
    BroadcastState("4, 3", "3", "a += b"),
    BroadcastState("1, 1, 1, 1", "2, 3, 4, 5"),
    BroadcastState("1000000", "1"),
    BroadcastState("4, x", "<b>3"),
]


def truth(a, b, operation):
    """Return the shape that torch gives, or the error's text."""
    x, y = torch.zeros(a), torch.zeros(b)
    try:
        return tuple((x + y if operation == "a + b" else x.add_(y)).shape)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("operation", broadcasting.OPERATIONS)
def test_every_pair_of_small_shapes_gives_the_shape_or_the_words_of_torch(operation):
    for a, b in PAIRS:
        found = meet(a, b, operation=operation)
        assert getattr(found, "shape", found) == truth(a, b, operation), (a, b)


def test_a_stretched_dimension_has_stride_0_and_no_input_is_copied():
    for a, b in PAIRS:
        found = meet(a, b)
        if isinstance(found, str) or 0 in found.shape:
            continue
        for side in (found.a, found.b):
            x = torch.zeros(side.shape)
            assert side.stride == x.expand(found.shape).stride()
            assert all(side.stride[d] == 0 for d in side.stretched)
            assert side.shares
            assert side.kept == 4 * x.numel()
            assert side.seen == 4 * torch.Size(found.shape).numel()


def test_dimensions_that_stretch_are_those_whose_size_changes():
    found = meet((4, 1, 3), (2, 1))
    assert (found.a.stretched, found.b.stretched) == ((1,), (0, 2))
    assert meet((0, 1), (3,)).a.stretched == (1,)
    assert meet((1,), (0,)).a.stretched == (0,)


def test_a_result_larger_than_memory_is_sized_and_not_computed():
    found = meet((1_000_000, 1), (1_000_000,))
    assert found.new == 4 * 10**12
    assert found.a.kept == 4 * 10**6


def test_written_in_place_nothing_is_new():
    assert meet((4, 3), (3,), operation="a += b").new == 0
    shown = render(BroadcastState("4, 3", "3", "a += b"))
    assert "written into a" in shown.text()
    assert "a has room for (3,)" in render(BroadcastState("3", "4, 3", "a += b")).heading


def test_another_operation_is_refused():
    for call in (
        lambda: meet((1,), (1,), operation="a * b"),
        lambda: explore((1,), (1,), operation="a * b"),
    ):
        with pytest.raises(ValueError, match=r"^operation must be one of a \+ b, a \+= b, got 'a"):
            call()


@pytest.mark.parametrize(
    ("text", "shape"),
    [("5,1", (5, 1)), (" (4, 1) ", (4, 1)), ("3,", (3,)), ("()", ()), ("", ()), ("0", (0,))],
)
def test_a_shape_is_read_as_people_write_it(text, shape):
    assert parse(text) == shape


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("4, x", "got '4, x'"),
        ("-1", "write sizes with commas between them, such as 4, 1; got '-1'"),
        ("2 3", "got '2 3'"),
        ("1.5", "got '1.5'"),
        ("4,,1", "got '4,,1'"),
        ("²", "got '²'"),
        ("9" * 50, "write sizes"),
        ("1,1,1,1,1", "use at most 4 dimensions, got 5"),
        ("1001, 1000", "use at most 1,000,000 elements, got 1,001,000"),
    ],
)
def test_a_text_that_is_no_shape_is_named_with_the_repair(text, says):
    assert says in parse(text)
    assert render(BroadcastState(a=text)).heading == f"Shape of a: {parse(text)}."
    assert render(BroadcastState(b=text)).heading == f"Shape of b: {parse(text)}."


def test_explore_refuses_a_shape_that_it_cannot_hold():
    with pytest.raises(ValueError, match=r"^shape of b: use at most 4 dimensions, got 5$"):
        explore((1,), (1,) * 5)


def test_the_heading_names_what_stretches_and_where_sizes_clash():
    assert render(BroadcastState()).heading == (
        "a + b has shape (5, 5): a stretches along dimension 1, b stretches along dimension 0."
    )
    assert "dimensions 0, 1, 2 and 3" in render(STATES[9]).heading
    assert render(STATES[6]).heading == "a + b has shape (): nothing stretches."
    assert render(STATES[1]).heading == (
        "a + b raises: dimension 1 has the sizes 2 and 3, and neither is 1."
    )


def boxes(state):
    return [part for part in render(state).parts if isinstance(part, _panel.Box)]


def test_cells_in_memory_are_filled_and_cells_read_again_are_outlined():
    filled = [box.text for box in boxes(BroadcastState("3, 1", "2")) if box.fill == "memory"]
    outlined = [box.text for box in boxes(BroadcastState("3, 1", "2")) if box.fill == "paper"]
    sizes, a, b = ["3", "2", "3", "2"], ["0", "1", "2"], ["0", "100"]
    assert sorted(filled) == sorted([*sizes, *a, *b, "0", "100", "1", "101", "2", "102"])
    assert sorted(outlined) == sorted(["1", "(1)", *a, *b, *b])


def test_sizes_that_clash_are_framed():
    assert [box.text for box in boxes(STATES[1]) if box.marked] == ["2", "3", "no"]
    assert [box.text for box in boxes(STATES[7]) if box.marked] == ["(1)", "4"]


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_state_is_drawn_within_its_picture_without_overlap(state):
    shown = render(state)
    tree = ET.fromstring(shown.svg("p-"))
    assert tree.find("{*}title").text == shown.heading
    assert shown.png().startswith(b"\x89PNG")
    cells = boxes(state)
    for box in cells:
        assert 0 <= box.x <= shown.size[0] - _panel.BOX[0]
        assert 0 <= box.y <= shown.size[1] - _panel.BOX[1]
        assert len(box.text) <= 5
    for one, other in itertools.combinations(cells, 2):
        apart = abs(one.x - other.x) >= _panel.BOX[0] or abs(one.y - other.y) >= _panel.BOX[1]
        assert apart, (one.text, other.text)
    for part in shown.parts:
        if isinstance(part, _panel.Text):
            assert 0 < part.y < shown.size[1]


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("state", STATES, ids=str)
def test_values_can_be_read_in_both_themes(state, theme):
    colors = PALETTES[theme]
    for part in render(state).parts:
        under = colors[part.fill] if isinstance(part, _panel.Box) else colors["paper"]
        assert contrast(colors[part.ink], under) >= 4.5


def test_what_was_typed_is_escaped():
    for page in (render(STATES[-1]).html(), render(STATES[-1]).static_html()):
        assert "<b>3" not in page
        assert "&lt;b&gt;3" in page
    again = render(BroadcastState("<script>alert(1)</script>", "1"))
    assert "<script>" not in again.html()


def test_every_key_press_in_a_field_changes_the_picture():
    panel = explore((3,), (3,))
    a, b, _, picture = panel.widget().children
    assert "has shape (3,)" in picture.value
    a.value = "3, "
    assert "has shape (3,)" in picture.value
    a.value = "3, 1"
    assert "has shape (3, 3)" in picture.value
    b.value = "x"
    assert "Shape of b: write sizes" in picture.value
    b.value = "2"
    assert "has shape (3, 2)" in picture.value
    assert panel.state == BroadcastState("3, 1", "2", "a + b")


def test_the_operation_is_chosen_by_a_button():
    panel = explore((3,), (4, 1))
    choice = panel.widget().children[2].children[1]
    choice.children[1].click()
    assert choice.children[1].description == "● a += b"
    assert "a += b raises" in panel.html_widget.value


def test_the_three_controls_have_labels():
    a, b, choice = explore().widget().children[:-1]
    assert (a.description, b.description) == ("Shape of a", "Shape of b")
    assert a.continuous_update
    assert choice.children[0].value == "Operation"


def test_behind_the_widget_stand_a_picture_a_table_and_text(monkeypatch):
    monkeypatch.setattr("helpers._display.in_notebook", lambda: True)
    bundle = explore()._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert "<table>" in bundle["text/html"]
    assert not re.search("<svg|<style", bundle["text/html"])
    assert bundle["text/plain"] == explore().text()


def test_the_largest_state_is_drawn_between_two_key_presses():
    seconds = []
    for _ in range(15):
        start = time.perf_counter()
        render(BroadcastState("1000, 1000", "1000", "a += b")).html()
        seconds.append(time.perf_counter() - start)
    assert sorted(seconds)[7] <= 3 * 0.016
