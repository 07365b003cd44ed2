"""The explorer "will it fit?" shows three estimates, and the largest batch of one of them."""

import base64
import re
import time
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from color_math import contrast

from helpers import sizing
from helpers.plotting import PALETTES
from helpers.widgets import _panel, fit
from helpers.widgets.fit import CARDS, FitState, estimate, explore, largest_batch, render

STATES = [FitState(m, b, c) for m in sizing.MODELS for b in (1, 8, 512) for c in CARDS]


def test_the_first_estimate_is_16_bytes_a_parameter():
    assert estimate(FitState()).rule == 16 * 124_439_808


def test_the_published_estimate_is_the_formula_of_the_paper():
    # 12 layers, s = 1024, b = 8, h = 768, a = 12
    kept = 12 * 1024 * 8 * 768 * (34 + 5 * 12 * 1024 / 768)
    assert estimate(FitState()).published == 16 * 124_439_808 + kept


def test_the_third_estimate_is_the_sum_that_is_tested_against_counts():
    for state in STATES[:6]:
        shape = sizing.MODELS[state.model]
        expected = sizing.forecast(shape, state.batch, optimizer=state.optimizer)
        assert estimate(state).summed == expected.total
        assert estimate(state).moment == expected.moment


@pytest.mark.parametrize("state", [s for s in STATES if s.batch == 8], ids=str)
def test_the_largest_batch_fits_and_one_more_does_not(state):
    most = largest_batch(state)
    if most:
        assert estimate(replace(state, batch=most)).summed <= CARDS[state.card]
    assert estimate(replace(state, batch=most + 1)).summed > CARDS[state.card]


def test_foreach_needs_another_copy_of_the_parameters_in_the_step():
    loop, foreach = (
        estimate(FitState("Llama-2-7B", 1, optimizer=name)) for name in ("Adam", "Adam, foreach")
    )
    assert loop.moment == foreach.moment == "in the optimizer step"
    assert foreach.summed > 1.2 * loop.summed


def test_the_heading_says_whether_it_fits():
    assert render(FitState("Llama-2-7B", 1, "H200, 141 GB")).heading == (
        "Llama-2-7B with 1 sequence fits on H200, 141 GB: the most is 5."
    )
    assert "does not fit" in render(FitState(batch=12)).heading


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_state_is_drawn_within_its_picture(state):
    shown = render(state)
    tree = ET.fromstring(shown.svg("p-"))
    assert tree.find("{*}title").text == shown.heading
    for part in shown.parts:
        if isinstance(part, fit._panel.Bar):
            assert part.x + part.width <= fit._LEFT + fit._WIDTH + 1
        if isinstance(part, _panel.Text):
            assert 0 < part.y < shown.size[1]
    answers = [row[3] for row in shown.table.rows]
    words = [p.text for p in shown.parts if isinstance(p, _panel.Text) and ", " in p.text]
    assert answers == ["yes" if w.endswith("fits") else "no" for w in words if "iB, " in w]


@pytest.mark.parametrize("theme", PALETTES)
def test_values_can_be_read_in_both_themes(theme):
    colors = PALETTES[theme]
    for part in render(FitState()).parts:
        if isinstance(part, _panel.Text):
            assert contrast(colors[part.ink], colors["paper"]) >= 4.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"model": "GPT-5"}, "model must be one of GPT-2 124M; "),
        ({"card": "T4"}, "card must be one of T4, 16 GB; "),
        ({"optimizer": "Lion"}, "optimizer must be one of SGD; "),
        ({"batch": 0}, "batch must be from 1 to 512, got 0"),
        ({"batch": 513}, "batch must be from 1 to 512, got 513"),
    ],
)
def test_what_is_not_known_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explore(**arguments)


def test_every_control_changes_the_picture():
    panel = explore()
    model, batch, card, picture = panel.widget().children
    assert batch.description == "Sequences"
    batch.value = 12
    assert "with 12 sequences does not fit on T4" in picture.value
    card.children[1].children[1].click()
    assert "with 12 sequences fits on L4" in picture.value
    model.children[1].children[3].click()
    assert "Llama-2-7B with 12 sequences does not fit" in picture.value
    assert [c.children[0].value for c in (model, card)] == ["Model", "Card"]
    assert panel.state == FitState("Llama-2-7B", 12, "L4, 24 GB")


def test_behind_the_widget_stand_a_picture_a_table_and_text(monkeypatch):
    monkeypatch.setattr("helpers._display.in_notebook", lambda: True)
    bundle = explore()._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert not re.search("<svg|<style", bundle["text/html"])
    assert bundle["text/plain"] == explore().text()


def test_a_state_is_drawn_between_two_key_presses():
    seconds = []
    for _ in range(15):
        start = time.perf_counter()
        render(FitState("Llama-2-7B", 512, "H200, 141 GB")).html()
        seconds.append(time.perf_counter() - start)
    assert sorted(seconds)[7] <= 3 * 0.016
