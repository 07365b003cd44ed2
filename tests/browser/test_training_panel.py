"""The training panel runs, stops by keyboard, and leaves its last picture."""

import re

import nbformat
import pytest

from browser.driver import CUT_OFF, LOW_CONTRAST, Notebook

SOURCE = """import time
from helpers.widgets import training
with training.watch(2000, "step") as live:
    for n in live:
        time.sleep(0.02)
        live.log(loss=1 / (n + 1))
print("logged", len(live["loss"]), "last", f"{live['loss'][-1]:.4g}")"""


@pytest.fixture(scope="module")
def panel(server, browser):
    """Start a loop of forty seconds in a notebook of its own."""
    cells = [nbformat.v4.new_code_cell(SOURCE), nbformat.v4.new_code_cell("print('next')")]
    nb = nbformat.v4.new_notebook(cells=cells)
    nb.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(nb, server.folder / "panel.ipynb")
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, "panel").open()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
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
