"""The training panel draws every run, keeps numbers only, stops when asked, and never flickers."""

import base64
import itertools
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import nbformat
import pytest
import torch
from color_math import contrast

from helpers._paths import ROOT
from helpers.plotting import PALETTES
from helpers.widgets import _panel, training
from tools.kernel import execute


def run_of(*curves, total=4, state="running", **more):
    done = max((len(values) for _, values in curves), default=0)
    return training.Run(total, begun=done, done=done, curves=curves, state=state, **more)


NAN, INF = math.nan, math.inf
RUNS = {
    "empty": run_of(),
    "one point": run_of(("loss", (2.3,))),
    "two curves that end together": run_of(("a", (2.0, 1.0)), ("b", (3.0, 1.0))),
    "four curves": run_of(*[(name, (1.0, 1.0, 1.0)) for name in "abcd"]),
    "all zero": run_of(("loss", (0.0, 0.0))),
    "negative": run_of(("reward", (-3.0, -1.0))),
    "nan": run_of(("loss", (2.0, NAN, NAN))),
    "nan only": run_of(("loss", (NAN,))),
    "infinite": run_of(("loss", (2.0, INF))),
    "logarithmic": run_of(("loss", (2.0, 0.01)), log_scale=True),
    "logarithmic with zero": run_of(("loss", (2.0, 0.0)), log_scale=True),
    "huge": run_of(("loss", (1e30, 1e-30)), log_scale=True),
    "long": run_of(("loss", tuple(1 / n for n in range(1, 5001))), total=5000),
    "one round": run_of(("loss", (1.0,)), total=1, state="finished"),
    "stopped": run_of(("loss", (1.0, 0.5)), state="stopped"),
    "markup": run_of(("<b>&", (1.0, 0.5))),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_run_is_drawn_inside_the_picture(run):
    view = training.render(run)
    tree = ET.fromstring(view.svg("p-"))
    assert tree.find("{*}title").text == view.heading
    assert view.png().startswith(b"\x89PNG")
    for line in tree.findall("{*}polyline"):
        for x, y in (map(float, point.split(",")) for point in line.get("points").split()):
            assert 0 <= x <= view.size[0]
            assert 0 <= y <= view.size[1]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_labels_of_curves_do_not_overlap(run):
    heights = [p.y for p in training.render(run).parts if isinstance(p, _panel.Text) and p.x > 470]
    assert all(abs(a - b) >= 16.9 for a, b in itertools.combinations(heights, 2))


@pytest.mark.parametrize("theme", PALETTES)
def test_every_curve_and_label_can_be_seen(theme):
    colors = PALETTES[theme]
    assert all(contrast(colors[role], colors["paper"]) >= 4.5 for role in training.ROLES)
    dashes = [training._DASHES[role] for role in training.ROLES]
    assert len(set(dashes)) == len(dashes)


def test_points_lie_where_the_values_are():
    (line,) = [
        part
        for part in training.render(run_of(("loss", (4.0, 3.0, 0.0)))).parts
        if isinstance(part, training._panel.Line) and part.width == 2
    ]
    (x0, y0), (x1, y1), (x2, y2) = line.points
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert (y2 - y1) == pytest.approx(3 * (y1 - y0))


def test_a_long_curve_keeps_its_spike():
    values = [1.0] * 10_000
    values[4_321] = 9.0
    points = [(float(n), value) for n, value in enumerate(values)]
    thin = training._thin(points)
    assert len(thin) <= 402
    assert (4_321.0, 9.0) in thin
    assert thin[-1] == points[-1]
    assert thin == sorted(thin)


@pytest.mark.parametrize(
    ("run", "heading"),
    [
        (run_of(("loss", (1.0,))), "Epoch 1 of 4 is done."),
        (run_of(("a", (1.0,) * 4), state="finished"), "All 4 epochs ran: a ended at 1."),
        (RUNS["stopped"], "Stopped after epoch 2 of 4."),
        (run_of(("a", (1.0,)), state="ValueError"), "Ended by ValueError after epoch 1 of 4."),
        (RUNS["nan"], "Epoch 3 of 4 is done. loss is nan since epoch 2."),
        (RUNS["infinite"], "Epoch 2 of 4 is done. loss is inf since epoch 2."),
        (run_of(("loss", (1.0, NAN, 0.5))), "Epoch 3 of 4 is done."),
    ],
)
def test_the_heading_says_how_it_stands(run, heading):
    assert training.render(run).heading == heading


def test_the_table_names_the_lowest_value_and_its_epoch():
    table = training.render(run_of(("loss", (2.0, 0.5, NAN, 0.7)))).table
    assert list(table.rows[0]) == ["loss", "2", "0.5", 2, "0.7"]
    assert list(training.render(RUNS["nan only"]).table.rows[0]) == [
        "loss",
        "nan",
        "nan",
        "-",
        "nan",
    ]


def test_names_are_escaped():
    view = training.render(RUNS["markup"])
    assert not re.search("<b>", view.html() + view.static_html())


def test_a_loop_logs_counts_and_finishes():
    with training.watch(3) as live:
        for epoch in live:
            live.log(training=1 / (epoch + 1))
            live.log(validation=2.0)
    assert live["training"] == (1.0, 0.5, pytest.approx(1 / 3))
    assert live["validation"] == (2.0, 2.0, 2.0)
    assert (live.run.done, live.run.state) == (3, "finished")


def test_a_curve_that_comes_late_or_pauses_keeps_its_places():
    with training.watch(4) as live:
        for epoch in live:
            live.log(training=1.0)
            if epoch % 2:
                live.log(validation=float(epoch))
    assert [math.isnan(value) for value in live["validation"]] == [True, False, True, False]
    assert live["validation"][1::2] == (1.0, 3.0)


def test_no_graph_is_kept():
    weight = torch.ones(1, requires_grad=True)
    with training.watch(1) as live:
        for _ in live:
            live.log(loss=(weight * 2).sum())
    assert live["loss"] == (2.0,)
    assert type(live["loss"][0]) is float


def test_stop_ends_the_loop_after_the_present_round():
    seen = []
    with training.watch(9) as live:
        for epoch in live:
            live.log(loss=1.0)
            if epoch == 2:
                live.stop()
            seen.append(epoch)
    assert seen == [0, 1, 2]
    assert (live.run.done, live.run.state) == (3, "stopped")


def test_break_counts_as_stopped():
    with training.watch(9) as live:
        for epoch in live:
            if epoch == 2:
                break
    assert (live.run.done, live.run.state) == (2, "stopped")


def test_an_interrupt_ends_the_loop_and_goes_no_further():
    with training.watch(9) as live:
        for epoch in live:
            live.log(loss=1.0)
            if epoch == 4:
                raise KeyboardInterrupt
    assert (live.run.done, live.run.state, len(live["loss"])) == (4, "stopped", 5)


def test_any_other_error_is_named_and_raised():
    live = training.watch(9)

    def fail():
        with live:
            for epoch in live:
                live.log(loss=1 / epoch)

    with pytest.raises(ZeroDivisionError):
        fail()
    assert live.text().startswith("Ended by ZeroDivisionError after epoch 0 of 9.")


def test_a_second_run_begins_again():
    live = training.watch(2)
    for _ in range(2):
        with live:
            for epoch in live:
                live.log(loss=epoch)
                live.stop()
        assert live["loss"] == (0.0,)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("2.3", None, ""),
        ("much", TypeError, "loss must be a number, got str; log one number per curve"),
        (None, TypeError, "got NoneType"),
        ([1.0], TypeError, "got list"),
        (torch.ones(3), ValueError, r"loss must be one number, got shape \(3,\); take its mean"),
        (torch.ones(0), ValueError, r"got shape \(0,\)"),
        (1 + 2j, TypeError, "got complex"),
    ],
)
def test_what_is_not_one_number_is_refused(value, error, words):
    live = training.watch(1)
    if error is None:
        live.log(loss=value)
        assert live["loss"] == (2.3,)
    else:
        with pytest.raises(error, match=words):
            live.log(loss=value)


def test_a_fifth_curve_is_refused():
    live = training.watch(1)
    with pytest.raises(ValueError, match="at most 4 curves, got a, b, c, d, e; watch a second"):
        live.log(a=1, b=1, c=1, d=1, e=1)


@pytest.mark.parametrize("total", [0, -1, 2.0, "3", None, True])
def test_a_total_that_counts_nothing_is_refused(total):
    with pytest.raises(ValueError, match="total must be a whole number above 0, got "):
        training.watch(total)


def test_an_unknown_curve_is_named():
    live = training.watch(1)
    with pytest.raises(KeyError, match="loss was not logged; logged: nothing"):
        live["loss"]


# In a notebook --------------------------------------------------------------------------


class Kernel:
    """Stand for a shell with a kernel."""

    kernel = object()


@pytest.fixture
def shown(monkeypatch):
    """Pretend to be in a notebook and collect what is displayed and how it is updated."""
    import IPython
    import IPython.display

    outputs = []

    class Handle:
        def update(self, data, raw):
            outputs.append(("update", data))

    def display(data, raw, display_id):
        outputs.append(("display", data))
        return Handle()

    monkeypatch.setattr(IPython, "get_ipython", Kernel)
    monkeypatch.setattr(IPython.display, "display", display)
    monkeypatch.setattr(training, "_EVERY", 0.0)
    return outputs


def run_two(live):
    with live:
        for epoch in live:
            live.log(loss=1 / (epoch + 1))


VIEW = "application/vnd.jupyter.widget-view+json"


def test_with_widgets_one_output_is_made_and_replaced_once_at_the_end(shown):
    live = training.watch(2)
    run_two(live)
    assert [kind for kind, _ in shown] == ["display", "update"]
    assert VIEW in shown[0][1]
    last = shown[1][1]
    assert VIEW not in last
    assert last["text/plain"].startswith("All 2 epochs ran: loss ended at 0.5.")
    assert base64.b64decode(last["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in last["text/html"]
    assert "<table>" in last["text/html"]


def test_while_it_runs_the_picture_changes_inside_the_widget(shown):
    pages = []
    live = training.watch(3)
    with live:
        for epoch in live:
            live.log(loss=epoch)
            pages.append(live._screen._html.value)
    assert "Epoch 1 of 3 is done." in pages[1]
    assert "Epoch 2 of 3 is done." in pages[2]
    assert all('role="status"' not in page for page in pages), "read aloud ten times a second"


def test_pictures_are_drawn_no_faster_than_eyes_see(shown, monkeypatch):
    monkeypatch.setattr(training, "_EVERY", 60.0)
    drawn = []
    monkeypatch.setattr(training._Widget, "draw", lambda self, run: drawn.append(run.done))
    with training.watch(50) as live:
        for epoch in live:
            live.log(loss=epoch)
    assert drawn == [1]


def test_without_widgets_the_one_output_is_replaced_in_place(shown, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    run_two(training.watch(2))
    assert [kind for kind, _ in shown] == ["display", "update", "update", "update"]
    assert all(VIEW not in data for _, data in shown)
    assert "Epoch 1 of 2 is done." in shown[1][1]["text/plain"]


def test_the_button_is_there_only_where_it_is_heard(shown, monkeypatch):
    import ipywidgets as widgets

    for hears in (True, False):
        monkeypatch.setattr(training, "_takes_presses", lambda hears=hears: hears)
        with training.watch(3) as live:
            row = live._screen._box.children[0]
            buttons = [child for child in row.children if isinstance(child, widgets.Button)]
            assert len(buttons) == hears
            assert "Interrupt the kernel" in row.children[-1].value
            for _ in live:
                for button in buttons:
                    button.click()
        assert live.run.done == (1 if hears else 3)


def test_the_stored_output_is_the_last_picture(tmp_path):
    source = (
        "from helpers.widgets import training\n"
        "with training.watch(3) as live:\n"
        "    for n in live:\n"
        "        live.log(loss=1 / (n + 1))"
    )
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    execute(nb, tmp_path)
    (output,) = nb.cells[0].outputs
    assert output.data["text/plain"].startswith("All 3 epochs ran: loss ended at 0.3333.")
    assert VIEW not in output.data
    assert "Stop" not in output.data["text/html"]


def test_outside_a_notebook_nothing_is_shown():
    program = (
        "import sys\nfrom helpers.widgets import training\n"
        "with training.watch(2) as live:\n"
        "    for n in live:\n"
        "        live.log(loss=n)\n"
        "assert 'ipywidgets' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout + done.stderr == ""
