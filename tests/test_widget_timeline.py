"""The timeline agrees with the simulated device, and draws every state within its picture."""

import base64
import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from color_math import contrast

from helpers.plotting import PALETTES
from helpers.simulated import SimulatedDevice
from helpers.units import format_time
from helpers.widgets import _panel, timeline
from helpers.widgets.timeline import MODES, TimelineState, explore, render, simulate

STATES = [
    TimelineState(kernel, launches, mode)
    for kernel, launches, mode in itertools.product((1, 2, 5, 40, 1000), (1, 2, 500, 5000), MODES)
]
END = "synchronize at the end"


def replay(state):
    """Return both times as a plain loop on the simulated device shows them."""
    device = SimulatedDevice()
    for _ in range(state.launches):
        device.launch("kernel", state.kernel * 1e-6)
        if state.mode == ".item() each launch":
            device.item()
    if state.mode == END:
        device.synchronize()
    clock = device.clock()
    device.synchronize()
    return clock, device.clock()


@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_times_are_those_of_the_simulated_device(state):
    timed = simulate(state)
    assert (timed.clock, timed.finished) == replay(state)
    longest = max(length for _, length in timed.queue)
    assert 1 <= longest <= min(state.launches, 1024)


def test_the_timer_is_right_for_tiny_kernels_wrong_in_between_and_nearly_right_for_long_loops():
    shares = [
        simulate(TimelineState(kernel, launches)).clock
        / simulate(TimelineState(kernel, launches)).finished
        for kernel, launches in ((2, 500), (10, 500), (40, 500), (1000, 20_000))
    ]
    assert [f"{share:.2f}" for share in shares] == ["1.00", "0.50", "0.12", "0.95"]


def test_the_heading_says_what_the_timer_says_and_why():
    headings = [render(state).heading for state in (
        TimelineState(2, 500), TimelineState(40, 500), TimelineState(1000, 5000),
        TimelineState(40, 500, MODES[1]), TimelineState(40, 500, MODES[2]),
    )]  # fmt: skip
    assert headings == [
        "The timer says 5.00 µs per launch, and so long it took: the device waits for orders.",
        "The timer says 5.00 µs per launch, it took 40.0 µs: 8.0x too short, orders were timed.",
        (
            "The timer says 795 µs per launch, it took 1.00 ms: 1.26x too short, the queue was full "
            "for a part of the time."
        ),
        (
            "The timer says 40.0 µs per launch, and so long it took: the clock was read when the work "
            "was done."
        ),
        (
            "The timer says 45.0 µs per launch: an order plus a kernel. Without the waits it would be "
            "40.0 µs."
        ),
    ]


@pytest.mark.parametrize("kernel", [1, 5, 40])
def test_what_it_would_be_without_waits_is_what_the_other_mode_measures(kernel):
    shown = render(TimelineState(kernel, 300, MODES[2])).heading
    free = simulate(TimelineState(kernel, 300, END)).clock / 300
    assert f"it would be {format_time(free)}." in shown


def test_the_line_to_copy_runs():
    for mode in MODES:
        device = SimulatedDevice()

        def call(device=device):
            device.launch("kernel", 40e-6)
            return device

        scope = {"clock": device.clock, "call": call, "synchronize": device.synchronize}
        exec(render(TimelineState(40, 500, mode)).code, scope)  # noqa: S102 - our own line
        assert scope["seconds"] == pytest.approx(simulate(TimelineState(40, 500, mode)).clock)


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_state_is_drawn_within_its_picture(state):
    shown = render(state)
    tree = ET.fromstring(shown.svg("p-"))
    assert tree.find("{*}title").text == shown.heading
    assert shown.png().startswith(b"\x89PNG")
    width, height = shown.size
    for bar in tree.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, w, h = (float(bar.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + w <= width + 1
        assert y + h <= height
    for part in shown.parts:
        if isinstance(part, _panel.Text):
            assert 0 < part.y < height
            assert contrast(PALETTES["light"][part.ink], PALETTES["light"]["paper"]) >= 4.5
            assert contrast(PALETTES["dark"][part.ink], PALETTES["dark"]["paper"]) >= 4.5


def test_launches_kernels_and_waits_are_drawn_one_by_one():
    shown = render(TimelineState(40, 500, MODES[2]))
    upper = [p for p in shown.parts if getattr(p, "height", None) and p.y < 100]
    colors = [part.color for part in upper]
    assert colors.count("baseline") == 12
    assert colors.count("new") >= 11
    assert colors.count("reference") >= 11


def test_the_controls_have_labels_and_change_the_picture():
    panel = explore(40, 500)
    kernel, launches, choice, picture = panel.widget().children
    assert (kernel.description, launches.description) == ("Kernel (µs)", "Launches")
    assert choice.children[0].value == "The loop waits"
    assert "it took 40.0 µs" in picture.value
    kernel.value = 2
    assert "the device waits for orders" in picture.value
    kernel.value = 1000
    launches.value = 20_000
    assert "The timer says 949 µs" in picture.value
    choice.children[1].children[1].click()
    assert "the clock was read when the work was done" in picture.value
    assert panel.state == TimelineState(1000, 20_000, END)


def test_behind_the_widget_stand_a_picture_a_table_and_text(monkeypatch):
    monkeypatch.setattr("helpers._display.in_notebook", lambda: True)
    bundle = explore()._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert "<table>" in bundle["text/html"]
    assert not re.search("<svg|<style", bundle["text/html"])
    assert bundle["text/plain"] == explore().text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0, 1), r"^kernel must be at least 1, got 0$"),
        ((1, 0), r"^launches must be at least 1, got 0$"),
        ((1001, 1), r"^kernel must be at most 1,000, got 1,001$"),
        ((1, 20_001), r"^launches must be at most 20,000, got 20,001$"),
    ],
)
def test_values_out_of_range_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        explore(*arguments)


def test_another_mode_is_refused():
    with pytest.raises(ValueError, match=r"^mode must be one of no synchronize, .* got 'never'$"):
        explore(mode="never")


def test_a_state_is_simulated_once():
    timeline.simulate.cache_clear()
    for _ in range(3):
        render(TimelineState(1000, 20_000))
    assert timeline.simulate.cache_info().misses == 1
