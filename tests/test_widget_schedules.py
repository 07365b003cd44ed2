"""The schedule composer shows the rates of a training loop, and code that makes the same ones."""

import base64
import itertools
import math
import re
import time
import warnings
import xml.etree.ElementTree as ET

import pytest
import torch
from color_math import contrast
from torch.optim import lr_scheduler

from helpers.plotting import PALETTES
from helpers.widgets import _panel, schedules
from helpers.widgets.schedules import (
    BATCHES,
    COUNTED,
    EPOCHS,
    RATE,
    SHAPES,
    ScheduleState,
    compute,
    count_rises,
    explore,
    render,
)

TOTAL = EPOCHS * BATCHES
STATES = [ScheduleState(*parts) for parts in itertools.product(SHAPES, (0, 1, 5), COUNTED)]
RIGHT = [s for s in STATES if s.counted in (COUNTED[0], COUNTED[2])]


def train_with(code, *, per_epoch):
    """Run the code that is offered for copying in a loop of its own, with a real optimizer step."""
    weight = torch.nn.Parameter(torch.ones(1))
    scope = {"optimizer": torch.optim.SGD([weight], lr=RATE), "lr_scheduler": lr_scheduler}
    exec(code, scope)  # noqa: S102 - the line to copy
    optimizer, rates = scope["optimizer"], []
    for _ in range(EPOCHS):
        for _ in range(BATCHES):
            before = weight.item()
            weight.grad = torch.ones(1)
            optimizer.step()
            rates.append(before - weight.item())
            if not per_epoch:
                scope["scheduler"].step()
        if per_epoch:
            scope["scheduler"].step()
    return rates


@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_line_to_copy_moves_a_weight_by_the_rates_that_are_drawn(state):
    found = compute(state)
    per_epoch = state.counted.endswith("epoch")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="The epoch parameter")
        if found.error:
            with pytest.raises(ValueError, match=re.escape(found.error)):
                train_with(render(state).code, per_epoch=per_epoch)
            return
        moved = train_with(render(state).code, per_epoch=per_epoch)
    assert len(found.rates) == TOTAL
    assert moved == pytest.approx(found.rates, abs=2e-6)


def cosine(share):
    return RATE * (1 + math.cos(math.pi * share)) / 2


CLOSED = {
    "constant": lambda share: RATE,
    "cosine": cosine,
    "straight line": lambda share: RATE * (1 - share),
}


@pytest.mark.parametrize(
    "state",
    [s for s in RIGHT if s.shape in CLOSED],
    ids=str,
)
def test_the_rates_are_those_of_a_closed_formula(state):
    unit = BATCHES if state.counted == COUNTED[0] else 1
    warm = state.warm_up * unit
    expected = []
    for batch in range(TOTAL):
        step = batch * unit // BATCHES
        share = (step - warm) / (EPOCHS * unit - warm)
        expected.append(
            RATE * (step + 1) / (warm + 1) if step < warm else CLOSED[state.shape](share)
        )
    assert compute(state).rates == pytest.approx(expected, abs=1e-9)


def test_two_drops_divide_by_ten_at_a_half_and_at_three_quarters():
    by_batch = compute(ScheduleState("two drops", 0, COUNTED[0])).rates
    drops = [n for n in range(1, TOTAL) if by_batch[n] < by_batch[n - 1]]
    assert drops == [225, 337]
    assert [by_batch[n] for n in drops] == pytest.approx([0.01, 0.001])
    by_epoch = compute(ScheduleState("two drops", 0, COUNTED[2])).rates
    assert by_epoch.count(0.1) == 5 * BATCHES


@pytest.mark.parametrize("warm_up", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("counted", [COUNTED[0], COUNTED[2]])
@pytest.mark.parametrize("shape", SHAPES)
def test_after_the_warm_up_comes_the_highest_rate(shape, warm_up, counted):
    rates = compute(ScheduleState(shape, warm_up, counted)).rates
    assert max(rates) == pytest.approx(RATE)
    assert rates[: warm_up * BATCHES] == tuple(sorted(rates[: warm_up * BATCHES]))
    assert rates.index(max(rates)) == warm_up * BATCHES


def test_epochs_counted_as_batches_make_a_wave():
    """With T_max=10 the rate is at 0 after 10, 30, 50, ... steps."""
    rates = compute(ScheduleState("cosine", 0, COUNTED[1])).rates
    low = [n for n, rate in enumerate(rates) if rate < 1e-9]
    assert low == list(range(10, TOTAL, 20))
    assert count_rises(rates) == len(low)
    assert f"rises again {len(low)} times" in render(ScheduleState("cosine", 0, COUNTED[1])).heading


def test_one_cycle_raises_when_its_steps_are_used_up():
    found = compute(ScheduleState("one cycle", 1, COUNTED[1]))
    assert len(found.rates) == EPOCHS + 1
    assert found.error == "Tried to step 11 times. The specified number of total steps is 10"
    assert found.error in render(ScheduleState("one cycle", 1, COUNTED[1])).heading


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (("cosine", 0, COUNTED[0]), "Cosine: the rate is at most 0.1, first at batch 1, and 1.2e-06 at the end."),
        (("straight line", 0, COUNTED[1]), "Straight line: the rate stays at 0 from batch 11 of 450 on. The lengths count epochs."),
        (("cosine", 1, COUNTED[3]), "Cosine: the rate ends at 0.022, as 10 of 450 steps are made. The lengths count batches."),
        (("constant", 0, COUNTED[3]), "Constant: the rate is at most 0.1, first at batch 1, and 0.1 at the end."),
    ],
)  # fmt: skip
def test_the_heading_says_what_the_rates_do(state, says):
    assert render(ScheduleState(*state)).heading == says


@pytest.mark.parametrize(
    ("rates", "rises"),
    [((), 0), ((1.0,), 0), ((0.0, 1.0), 0), ((1.0, 0.0, 1.0, 0.0, 1.0), 2), ((1.0, 1.0), 0)],
)
def test_a_rise_counts_only_after_a_fall(rates, rises):
    assert count_rises(rates) == rises


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_state_is_drawn_within_its_picture(state):
    shown = render(state)
    tree = ET.fromstring(shown.svg("p-"))
    assert tree.find("{*}title").text == shown.heading
    for part in shown.parts:
        if isinstance(part, _panel.Line):
            assert all(schedules._LEFT - 5 <= x <= schedules._RIGHT for x, _ in part.points)
            assert all(schedules._TOP - 0.01 <= y <= schedules._BOTTOM + 5 for _, y in part.points)
        if isinstance(part, _panel.Text):
            assert 0 < part.y < shown.size[1]
    rates = compute(state).rates
    assert [row[0] for row in shown.table.rows] == ["start", "highest", "lowest", "end", "mean"]
    assert shown.table.rows[1][2] == f"{max(rates):.4g}"
    assert shown.table.rows[4][2] == f"{sum(rates) / len(rates):.4g}"


@pytest.mark.parametrize("theme", PALETTES)
def test_values_can_be_read_in_both_themes(theme):
    colors = PALETTES[theme]
    for part in render(ScheduleState()).parts:
        if isinstance(part, _panel.Text):
            assert contrast(colors[part.ink], colors["paper"]) >= 4.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"shape": "linear"}, "shape must be one of constant; "),
        ({"counted": "batches"}, "counted must be one of batches, after each batch; "),
        ({"warm_up": -1}, "warm_up must be from 0 to 5 epochs, got -1"),
        ({"warm_up": 6}, "warm_up must be from 0 to 5 epochs, got 6"),
    ],
)
def test_what_is_not_known_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explore(**arguments)


def test_every_control_changes_the_picture():
    panel = explore()
    shape, warm_up, counted, picture = panel.widget().children
    assert warm_up.description == "Warm-up epochs"
    warm_up.value = 3
    assert "first at batch 136" in picture.value
    counted.children[1].children[1].click()
    assert "rises again" in picture.value
    shape.children[1].children[4].click()
    assert "One cycle: it raises after batch 11" in picture.value
    assert [c.children[0].value for c in (shape, counted)] == [
        "Shape",
        "Lengths given in, and when step() is called",
    ]
    assert panel.state == ScheduleState("one cycle", 3, COUNTED[1])


def test_behind_the_widget_stand_a_picture_a_table_and_text(monkeypatch):
    monkeypatch.setattr("helpers._display.in_notebook", lambda: True)
    bundle = explore()._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert not re.search("<svg|<style", bundle["text/html"])
    assert bundle["text/plain"] == explore().text()
    assert explore().text().splitlines()[1].strip().startswith("scheduler = lr_scheduler.")


def test_a_state_is_drawn_between_two_key_presses():
    seconds = []
    for _ in range(9):
        compute.cache_clear()
        start = time.perf_counter()
        render(ScheduleState()).html()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) <= 3 * 0.016
