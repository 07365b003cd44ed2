"""No mouse: a reader works in JupyterLab with keys alone, in a notebook and in every widget."""

import re
import shutil
from pathlib import Path

import pytest

from browser.axe import violations
from browser.driver import Notebook, write_notebook
from exercises import nb11, nb12
from helpers import widgets

NAME = "11_create_and_inspect_tensors"
SETUP = """import time
from helpers.exercises import predict
from helpers.widgets import bits, broadcasting, fit, graph, ranks, schedules, segments
from helpers.widgets import sharing, strides, timeline, training"""
# What shows each widget; every module of helpers/widgets has its line.
SHOWS = {
    "bits": "bits.explore()",
    "broadcasting": "broadcasting.explore()",
    "fit": "fit.explore()",
    "graph": 'graph.explore("diamond", 2)',
    "ranks": "ranks.explore()",
    "schedules": "schedules.explore()",
    "segments": "segments.explore({0: 90, 4: 40}, {0: 0.2, 4: 0.3}, arithmetic={0: 30, 4: 40})",
    "sharing": "sharing.explore()",
    "strides": "strides.explore()",
    "timeline": "timeline.explore()",
}
WATCH = """with training.watch(3000, "step") as live:
    for n in live:
        time.sleep(0.02)
        live.log(loss=1 / (n + 1))"""
CHOICE, NUMBER = "12.p1", "12.p3"  # no other test guesses them
CELLS = [SETUP, *SHOWS.values(), f'predict("{CHOICE}")', f'predict("{NUMBER}")', WATCH]

# Where the focus is: the cell, and the place among the controls of its outputs (-1: elsewhere).
CONTROLS = "button, input, select, textarea, a[href], [role=slider]"
FOCUS = """controls => {
  const element = document.activeElement, cell = element.closest('.jp-Cell');
  const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
  const output = cell?.querySelector('.jp-OutputArea');
  return {cell: cells.indexOf(cell), itself: element === cell,
    control: output ? [...output.querySelectorAll(controls)].indexOf(element) : -1};
}"""
CHANGED = """([cell, before]) => document.querySelectorAll('.jp-Notebook .jp-Cell')[cell]
  .querySelector('.mp-view').innerHTML !== before"""
NAMED = ("button-name", "input-button-name", "label", "select-name", "aria-input-field-name")


class Keys:
    """Press keys in an open notebook, and look; nothing else."""

    def __init__(self, notebook):
        self.notebook, self.page = notebook, notebook.page

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def focus(self):
        return self.page.evaluate(FOCUS, CONTROLS)

    def cell(self):
        """Return the number of the active cell."""
        return self.page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex")

    def back_to_the_cell(self):
        """Go from an output or an editor to the cell around it."""
        self.press("Escape")
        for _ in range(80):
            if self.focus()["itself"]:
                return
            self.press("Shift+Tab")
        raise AssertionError("Shift+Tab does not lead back to the cell")

    def go(self, index):
        """Walk to a cell with the arrow keys."""
        self.back_to_the_cell()
        for _ in range(200):
            here = self.cell()
            if here == index:
                return
            self.press("ArrowDown" if here < index else "ArrowUp")
        raise AssertionError(f"the arrow keys do not lead to cell {index}")

    def run(self, index, shows):
        """Run a cell in its place and wait for what it shows."""
        self.go(index)
        self.press("Control+Enter")
        self.notebook.outputs(index).locator(shows).first.wait_for(timeout=60_000)

    def tab_to(self, index, control):
        """Press Tab until a control of a cell's output has the focus."""
        for _ in range(80):
            self.press("Tab")
            if self.focus() == {"cell": index, "itself": False, "control": control}:
                return
        raise AssertionError(f"Tab does not reach control {control} of cell {index}")


@pytest.fixture(scope="module")
def keys(server, browser):
    """Open a notebook that shows every widget."""
    write_notebook(server.folder, "keys", CELLS)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    keys = Keys(Notebook(page, server, "keys").open())
    keys.go(0)
    keys.press("Control+Enter")
    yield keys
    page.close()


def test_every_widget_of_the_course_is_tried_here():
    modules = {path.stem for path in Path(widgets.__file__).parent.glob("[!_]*.py")}
    assert modules == {*SHOWS, "training"}


def key_for(control):
    """Return the keys that change a control; none for the option that is chosen already."""
    if control.evaluate("e => e.tagName") == "BUTTON":
        return [] if control.inner_text().startswith("●") else ["Space"]
    if control.get_attribute("type") == "number":
        at_the_end = control.input_value() == control.get_attribute("max")
        return ["ArrowDown" if at_the_end else "ArrowUp"]
    return ["End", "1"]


@pytest.mark.parametrize("name", SHOWS)
def test_tab_reaches_each_control_and_a_key_changes_what_is_shown(keys, name):
    place = CELLS.index(SHOWS[name])
    keys.run(place, ".mp-view")
    shown = keys.notebook.outputs(place)
    controls, view = shown.locator(CONTROLS), shown.locator(".mp-view")
    assert controls.count() >= 2
    for number in range(controls.count()):
        keys.tab_to(place, number)
        before, pressed = view.inner_html(), key_for(controls.nth(number))
        keys.press(*pressed)
        if pressed:
            keys.page.wait_for_function(CHANGED, arg=[place, before])
    assert violations(keys.page, [".jp-OutputArea"], rules=NAMED) == []


def test_a_choice_is_guessed_with_tab_and_space(keys, server):
    place = CELLS.index(f'predict("{CHOICE}")')
    keys.run(place, "button")
    options = list(nb12.PREDICTIONS[CHOICE].options)
    controls = keys.notebook.outputs(place).locator(CONTROLS)
    assert controls.all_inner_texts() == options
    for number in range(len(options)):  # each of them, before the last one is chosen
        keys.tab_to(place, number)
    keys.press("Space")
    keys.notebook.outputs(place).get_by_text(f"Your guess: {options[-1]}").wait_for()
    assert server.record(CHOICE)["guess"]["value"] == options[-1]


def test_a_number_is_guessed_with_tab_digits_and_enter(keys, server):
    place = CELLS.index(f'predict("{NUMBER}")')
    keys.run(place, "input")
    keys.tab_to(place, 0)
    keys.page.keyboard.type("7")
    keys.tab_to(place, 1)
    keys.press("Enter")
    keys.notebook.outputs(place).get_by_text("Your guess: 7").wait_for()
    assert server.record(NUMBER)["guess"]["value"] == 7


def test_a_running_loop_is_stopped_with_tab_and_space(keys):
    place = CELLS.index(WATCH)
    keys.run(place, "button")
    keys.tab_to(place, 0)
    assert violations(keys.page, [".jp-OutputArea"], rules=NAMED) == []
    keys.press("Space")
    stopped = re.compile(r"Stopped after step \d+ of 3000")
    keys.notebook.outputs(place).get_by_text(stopped).first.wait_for(timeout=20_000)


def test_axe_finds_nothing_serious_in_any_output(keys):
    assert keys.page.locator(".jp-OutputArea .mp-view").count() == len(SHOWS) + 1
    assert violations(keys.page, [".jp-OutputArea-output"]) == []


def test_no_key_changed_the_notebook_itself(keys):
    assert keys.page.locator(".jp-Notebook .jp-Cell").count() == len(CELLS)
    sources = keys.page.evaluate(
        "jupyterapp.shell.currentWidget.content.widgets.map(w => w.model.sharedModel.getSource())"
    )
    assert sources == CELLS
    assert keys.notebook.exceptions == []


def test_an_exercise_is_solved_and_a_hint_opened_with_keys_alone(server, browser):
    again = server.folder / "keyboard"
    again.mkdir()
    shutil.copy(server.folder / f"{NAME}.ipynb", again)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, f"keyboard/{NAME}").open()
    keys, exercise = Keys(notebook), nb11.EXERCISES["11.3"]
    folded, setup = notebook.index("google.colab"), notebook.index("plotting.use_style()")
    assert setup == folded + 1
    keys.go(folded - 1)  # the arrow keys pass by a folded cell, Shift+Enter does not
    keys.press("Shift+Enter", "Shift+Enter", "Control+Enter")
    notebook.outputs(setup).get_by_text("Machine: ").wait_for(timeout=60_000)

    place = notebook.index('check("11.3"')
    keys.run(place, "text=Not attempted: 11.3")
    keys.tab_to(place, 0)
    keys.press("Enter")
    notebook.outputs(place).get_by_text(exercise.hints[0][:30]).wait_for()
    for answer, verdict in ((".contiguous()", "Not yet: 11.3"), (".clone()", "Passed: 11.3")):
        keys.go(place)
        keys.press("Enter", "Control+Home", "ArrowDown", "Home", "Shift+End")
        page.keyboard.type(f"    return x[:n]{answer}")
        keys.press("Control+Enter")
        notebook.outputs(place).get_by_text(verdict).wait_for(timeout=20_000)
    record = server.record("11.3")
    assert record["best"] == "passed"
    assert sum(record["hints"].values()) == 1
    assert notebook.exceptions == []
    page.close()
