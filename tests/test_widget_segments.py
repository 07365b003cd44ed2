"""The explorer of segments shows numbers that were measured before, and measures none."""

import base64
import re
import time
import xml.etree.ElementTree as ET

import pytest
from color_math import contrast

from helpers.plotting import PALETTES
from helpers.widgets import _panel, segments
from helpers.widgets.segments import Run, SegmentsState, explore, render

PEAKS = {0: 100 * 2**20, 1: 104 * 2**20, 2: 60 * 2**20, 4: 40 * 2**20, 16: 24 * 2**20}
SECONDS = {0: 0.2, 1: 0.27, 2: 0.26, 4: 0.255, 16: 0.25}
FLOPS = {0: 3_000, 1: 4_000, 2: 3_900, 4: 3_800, 16: 3_600}


def panel(**options):
    return explore(PEAKS, SECONDS, arithmetic=FLOPS, **options)


STATES = [SegmentsState(panel().state.runs, run.name) for run in panel().state.runs]


def test_the_runs_hold_what_was_measured_and_arithmetic_counts_in_plain_steps():
    runs = panel().state.runs
    assert runs[0] == Run(0, 100 * 2**20, 1.0, 0.2)
    assert runs[-1] == Run(16, 24 * 2**20, 1.2, 0.25)
    assert [run.name for run in runs[:3]] == ["plain", "1 segment", "2 segments"]


def test_the_lowest_peak_is_shown_first_unless_told_otherwise():
    assert panel().state.chosen == "16 segments"
    assert panel(segments=0).state.chosen == "plain"
    assert panel(segments=1).state.chosen == "1 segment"


def test_the_heading_says_what_is_spared_and_what_it_costs():
    assert render(panel(segments=4).state).heading == (
        "4 segments: 40.0 MiB, 40 % of the plain peak, for 127 % of the arithmetic and 128 % of "
        "the time."
    )
    assert render(panel(segments=0).state).heading == "plain: 100 MiB in 200 ms; all is kept."


def test_the_table_holds_every_run():
    rows = render(panel().state).table.rows
    assert rows[1] == ["1 segment", "104 MiB", "104 %", "133 %", "270 ms", "135 %"]
    assert len(rows) == len(PEAKS)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.chosen)
def test_every_state_is_drawn_within_its_picture_with_one_run_marked(state):
    shown = render(state)
    tree = ET.fromstring(shown.svg("p-"))
    assert tree.find("{*}title").text == shown.heading
    bars = [part for part in shown.parts if isinstance(part, _panel.Bar)]
    assert [bar.color for bar in bars if bar.color != "reference"] == ["memory", "new"]
    assert all(bar.x + bar.width < shown.size[0] - 90 for bar in bars)
    assert max(bar.y + bar.height for bar in bars) < shown.size[1]
    texts = [part.text for part in shown.parts if isinstance(part, _panel.Text)]
    assert [text for text in texts if text.startswith("▸")] == [f"▸ {state.chosen}"]


def test_bars_are_as_long_as_their_values():
    bars = [part for part in render(panel().state).parts if isinstance(part, _panel.Bar)]
    widths = [bar.width for bar in bars[::2]]
    assert widths == pytest.approx([segments._WIDTH * n / PEAKS[1] for n in PEAKS.values()])


@pytest.mark.parametrize("theme", PALETTES)
def test_texts_can_be_read_in_both_themes(theme):
    colors = PALETTES[theme]
    for part in render(panel().state).parts:
        if isinstance(part, _panel.Text):
            assert contrast(colors[part.ink], colors["paper"]) >= 4.5


@pytest.mark.parametrize(
    ("peaks", "seconds", "options", "says"),
    [
        ({1: 5}, SECONDS, {}, "peaks must hold the plain run under 0, got [1]"),
        ({}, SECONDS, {}, "peaks must hold the plain run under 0, got []"),
        ({0: 5}, {0: 1, 2: 1}, {}, "seconds must hold the same numbers of segments as peaks, [0]"),
        (PEAKS, SECONDS | {2: 0.0}, {}, "seconds must be above zero, got 0.0 for 2 segments"),
        (PEAKS, SECONDS | {2: float("nan")}, {}, "seconds must be above zero, got nan"),
        (PEAKS, SECONDS, {"segments": 3}, "segments must be one of 0, 1, 2, 4, 16, which were"),
    ],
)
def test_what_was_not_measured_is_refused(peaks, seconds, options, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explore(peaks, seconds, arithmetic=FLOPS, **options)


def test_every_button_changes_the_picture():
    shown = panel()
    choice, picture = shown.widget().children
    assert choice.children[0].value == "Segments"
    for button, state in zip(choice.children[1].children, STATES, strict=True):
        button.click()
        assert render(state).heading in picture.value
        assert button.description == f"● {state.chosen}"
    assert shown.state == STATES[-1]


def test_behind_the_widget_stand_a_picture_a_table_and_text(monkeypatch):
    monkeypatch.setattr("helpers._display.in_notebook", lambda: True)
    bundle = panel()._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert not re.search("<svg|<style", bundle["text/html"])
    assert bundle["text/plain"] == panel().text()


def test_a_state_is_drawn_between_two_key_presses():
    taken = []
    for _ in range(15):
        start = time.perf_counter()
        render(STATES[-1]).html()
        taken.append(time.perf_counter() - start)
    assert sorted(taken)[7] <= 3 * 0.016
