"""The bit explorer stores what torch stores, in every format, and draws every state."""

import base64
import math
import re
import time
import xml.etree.ElementTree as ET

import pytest
import torch
from color_math import contrast

from helpers.plotting import PALETTES
from helpers.widgets import _panel, bits
from helpers.widgets.bits import FORMATS, BitsState, explore, parse, render, store

NUMBERS = (0.0, -0.0, 1.0, 0.1, -2.5, 1e-3, 65504.0, 65520.0, 1e38, 1e39, 2.9e-8, 1e-45, 448.0)
STATES = [BitsState(str(x), name) for x in NUMBERS for name in FORMATS] + [
    BitsState("nan", "float16"),
    BitsState("-inf", "bfloat16", -3),
    BitsState("1", "float32", 8),
    BitsState("one <b>", "float16"),
    BitsState("", "float8 e4m3"),
]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("number", NUMBERS)
def test_the_stored_value_is_the_one_of_torch(name, number):
    dtype = FORMATS[name].dtype
    expected = torch.tensor(number, dtype=torch.float64).to(dtype).double().item()
    found = store(number, name)
    assert found.value == expected or (math.isnan(found.value) and math.isnan(expected))
    assert len(found.bits) == 8 * dtype.itemsize == 1 + FORMATS[name].exponent + FORMATS[
        name
    ].fraction  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_bits_give_back_the_value_by_the_formula(name):
    form = FORMATS[name]
    bias = 2 ** (form.exponent - 1) - 1
    for number in (1.0, -0.75, 3.0, 0.1, 2.0**-16, 200.0):
        found = store(number, name)
        sign, exponent = int(found.bits[0]), int(found.bits[1 : 1 + form.exponent], 2)
        fraction = int(found.bits[1 + form.exponent :], 2) / 2**form.fraction
        size = 2.0 ** (max(exponent, 1) - bias) * (bool(exponent) + fraction)
        assert found.value == (-1) ** sign * size


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("number", [1.0, 0.1, -1.0, 1000.0, 0.0])
def test_steps_are_those_of_nextafter(name, number):
    dtype = FORMATS[name].dtype
    x = torch.tensor(number).to(dtype)
    for way in (1, -1):
        limit = torch.tensor(way * math.inf, dtype=torch.float32).to(dtype)
        if dtype is torch.float32 or dtype is torch.bfloat16:
            expected = torch.nextafter(x, limit).item()
        else:
            import numpy as np

            expected = float(np.nextafter(np.float16(number), np.float16(way * np.inf)))
        assert store(number, name, steps=way).value == expected


def test_the_gap_beside_one_is_the_last_bit_of_the_fraction():
    for name, form in FORMATS.items():
        assert store(1.0, name).gap == 2.0**-form.fraction


@pytest.mark.parametrize("name", FORMATS)
def test_the_walk_ends_at_the_largest_number(name):
    largest = torch.finfo(FORMATS[name].dtype).max
    assert store(largest, name, steps=5).value == largest
    assert store(-largest, name, steps=-5).value == -largest
    assert store(largest, name).gap is None


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_a_thousandth_is_added_as_torch_adds_it(name):
    for number in (1.0, 0.5, 0.01, 100.0):
        x = torch.tensor(number).to(FORMATS[name].dtype)
        assert store(number, name).added == (x + 1e-3).item()
    assert store(1.0, "bfloat16").added == 1.0


def test_a_text_that_is_no_number_is_named_with_the_repair():
    assert parse("1/3") == "write a number such as 1.5 or 1e-3; got '1/3'"
    assert render(BitsState("x")).heading == f"Number: {parse('x')}."


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_state_is_well_formed_escaped_and_inside_its_picture(state):
    view = render(state)
    root = ET.fromstring(view.svg("p"))
    assert root.get("role") == "img"
    assert "<b>" not in view.html()
    width, height = view.size
    for part in view.parts:
        assert part.x >= 0
        assert part.y <= height
        if isinstance(part, _panel.Box):
            assert part.x + _panel.BOX[0] <= width
            assert part.y + _panel.BOX[1] <= height


def test_an_unknown_format_and_too_many_steps_are_refused():
    for call in (lambda: store(1.0, "fp4"), lambda: explore(1.0, "fp4")):
        with pytest.raises(ValueError, match=r"^format must be one of float32, .* got 'fp4'"):
            call()
    with pytest.raises(ValueError, match=r"^steps must be from -8 to 8, got 9"):
        explore(1.0, steps=9)


def test_no_two_words_of_the_picture_touch():
    for name in FORMATS:
        words = [p for p in render(BitsState("1", name)).parts if isinstance(p, _panel.Text)]
        for i, one in enumerate(words):
            for other in words[i + 1 :]:
                reach = 8 * max(len(one.text), len(other.text))
                assert abs(one.y - other.y) >= 14 or abs(one.x - other.x) > reach


@pytest.mark.parametrize("theme", PALETTES)
def test_each_bit_is_readable_in_both_themes(theme):
    colors = PALETTES[theme]
    for part in render(BitsState("0.1")).parts:
        if isinstance(part, _panel.Box):
            assert contrast(colors[part.fill], colors[part.ink]) >= 4.5


def test_drawing_is_fast_enough_for_every_key_press():
    start = time.perf_counter()
    for _ in range(20):
        render(BitsState("0.1", "float32")).html()
    assert (time.perf_counter() - start) / 20 < 0.1


def test_the_controls_change_the_picture_and_a_static_picture_stands_behind():
    panel = explore()
    panel.widget()
    assert render(BitsState()).heading.split(";")[0] in panel.html_widget.value
    panel.change(format="float16", number="0.1", steps=1)
    assert render(BitsState("0.1", "float16", 1)).heading in panel.html_widget.value
    bundle = panel._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert re.search(r'<img alt="[^"]+" src="data:image/svg', panel.html())
    assert "<table>" in panel.html()
    assert bits.explore().text().splitlines()[0] == render(BitsState("1.0")).heading
