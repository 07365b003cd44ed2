"""The training panel runs, stops by keyboard, and leaves its last picture."""

import re

import pytest

from browser.driver import CUT_OFF, LOW_CONTRAST, Notebook, write_notebook

SOURCE = """import time
from helpers.widgets import training
with training.watch(2000, "step") as live:
    for n in live:
        time.sleep(0.02)
        live.log(loss=1 / (n + 1))
print("logged", len(live["loss"]), "last", f"{live['loss'][-1]:.4g}")"""

# Looks at every frame for a while: how many there were, in how many the picture was missing, and
# how many heights the output had.
FRAMES = """async picture => {
  const output = document.querySelector('.jp-Cell .jp-OutputArea');
  const heights = new Set();
  let frames = 0, blank = 0;
  for (const start = performance.now(); performance.now() - start < 1200; frames++) {
    await new Promise(requestAnimationFrame);
    const shown = output.querySelector(picture);
    const drawn = shown && shown.getBoundingClientRect().height > 100 && shown.complete !== false;
    blank += drawn ? 0 : 1;
    heights.add(Math.round(output.getBoundingClientRect().height));
  }
  return {frames, blank, heights: heights.size};
}"""


@pytest.fixture(scope="module")
def panel(server, browser):
    """Start a loop of forty seconds in a notebook of its own."""
    write_notebook(server.folder, "panel", [SOURCE, "print('next')"])
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, "panel").open()
    notebook.start_all()
    yield notebook
    page.close()


def test_the_curve_grows_while_the_loop_runs(panel):
    shown = panel.outputs(0)
    counts = []
    for _ in range(3):
        text = shown.locator("strong", has_text=re.compile(r"^Step \d+ of 2000 is done"))
        text.first.wait_for()
        counts.append(int(text.first.inner_text().split()[1]))
        panel.page.wait_for_timeout(600)
    assert counts == sorted(set(counts))
    assert shown.locator("svg polyline").count() >= 2


def test_it_never_flickers_or_jumps(panel):
    seen = panel.page.evaluate(FRAMES, ".mp-view svg")
    assert seen["frames"] > 20
    assert (seen["blank"], seen["heights"]) == (0, 1)


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_it_can_be_read_while_it_runs(panel, theme):
    panel.theme(theme)
    assert panel.page.evaluate(LOW_CONTRAST, 4.5) == []
    assert panel.page.evaluate(CUT_OFF) == []


def test_a_key_on_the_button_stops_it_and_the_rest_runs(panel):
    shown = panel.cell(0)
    shown.get_by_role("button", name="Stop", exact=True).focus()
    panel.page.keyboard.press("Space")
    panel.outputs(1).get_by_text("next").wait_for(timeout=10_000)
    text = shown.inner_text()
    done = int(re.search(r"Stopped after step (\d+) of 2000", text)[1])
    assert 10 < done < 1900
    assert f"logged {done} last {1 / done:.4g}" in text
    assert f"{1 / done:.4g}" in shown.locator("td").all_inner_texts()
    assert shown.get_by_role("button", name="Stop").count() == 0
    assert shown.locator("img").count() == 1
    assert panel.problems() == []
    assert panel.exceptions == []


def test_an_interrupt_of_the_kernel_stops_it_too(panel):
    panel.write(0, SOURCE.replace("logged", "kept"))
    panel.select(0)
    panel._start("notebook:run-cell")
    shown = panel.cell(0)
    shown.locator("strong", has_text=re.compile(r"^Step \d\d+ of")).wait_for()
    panel._start("notebook:interrupt-kernel")
    shown.get_by_text(re.compile(r"^kept \d+ last")).wait_for(timeout=10_000)
    text = shown.inner_text()
    kept, done = re.search(r"kept (\d+)", text)[1], re.search(r"after step (\d+) of", text)[1]
    assert int(kept) - int(done) in (0, 1)  # the value of the broken round is kept
    assert panel.problems() == []


def test_without_widgets_the_same_output_changes_in_place(panel):
    hidden = "import sys\nsys.modules['ipywidgets'] = None\n"
    panel.write(0, hidden + SOURCE.replace("2000", "150").replace("logged", "still"))
    panel.select(0)
    panel._start("notebook:run-cell")
    shown = panel.cell(0)
    steps = []
    for _ in range(2):
        head = shown.locator("strong", has_text=re.compile(r"^Step \d+ of 150"))
        head.wait_for()
        steps.append(int(head.inner_text().split()[1]))
        assert shown.locator("img").count() == 1
        panel.page.wait_for_timeout(700)
    assert steps[0] < steps[1]
    seen = panel.page.evaluate(FRAMES, ".mp-view img")
    assert (seen["blank"], seen["heights"]) == (0, 1), seen
    assert shown.get_by_role("button", name="Stop").count() == 0
    shown.get_by_text("still 150 last 0.006667").wait_for(timeout=20_000)
    assert shown.locator("strong", has_text="All 150 steps ran").count() == 1
    assert panel.problems() == []
    assert panel.exceptions == []
