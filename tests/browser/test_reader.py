"""A reader opens a copy, runs it, guesses, answers, and finds the progress again."""

import re
import shutil
from contextlib import contextmanager

import pytest

from browser.driver import CUT_OFF, LOW_CONTRAST, PICTURES, Notebook, write_notebook
from exercises import nb13
from helpers._paths import ROOT
from helpers.widgets import sharing, strides

NAMES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
SHARING = "13_share_memory_with_numpy"
STRIDES = "11_create_and_inspect_tensors"


@pytest.fixture(scope="module", params=NAMES)
def notebook(request, server, browser):
    """Open one notebook, run all its cells once, and hand it to the tests that only look."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    yield Notebook(page, server, request.param).open().run_all()
    page.close()


def test_run_all_ends_without_an_error(notebook):
    assert notebook.problems() == []
    assert notebook.page.locator(".jp-Notebook .jp-CodeCell").count() > 5


def test_run_all_names_the_error_that_kept_cells_from_running(server, browser):
    write_notebook(server.folder, "error", ["1 + 1", "1 / 0", "2 + 2", "3 + 3"])
    page = browser.new_page()
    with pytest.raises(AssertionError, match=r"2 cells did not run after.*ZeroDivisionError"):
        Notebook(page, server, "error").open().run_all()
    page.close()


def test_every_picture_is_drawn(notebook):
    pictures = notebook.page.evaluate(PICTURES)
    assert pictures["all"] >= 1
    assert pictures["empty"] == 0


def test_no_output_is_cut_off(notebook):
    assert notebook.page.evaluate(CUT_OFF) == []


def test_the_cut_off_check_finds_a_wide_output(notebook):
    with _inserted(notebook.page, '<p style="width:3000px">wide</p>'):
        assert len(notebook.page.evaluate(CUT_OFF)) == 1


@contextmanager
def _inserted(page, html):
    """Put HTML into the first output, and take it out again."""
    page.evaluate(
        "html => { const e = document.querySelector('.jp-OutputArea-output');"
        " e.insertAdjacentHTML('beforeend', `<div id=planted>${html}</div>`); }",
        html,
    )
    try:
        yield
    finally:
        page.evaluate("document.getElementById('planted').remove()")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_every_text_in_an_output_can_be_read(notebook, theme):
    notebook.theme(theme)
    assert notebook.page.evaluate(LOW_CONTRAST, 4.5) == []


@pytest.mark.parametrize(
    "html",
    [
        '<p style="color:#999;background:#aaa">faint</p>',
        '<p style="color:#000;background:#fff;opacity:0.3">faint</p>',
        '<input style="color:#999;background:#aaa" value="faint">',
    ],
    ids=["color", "opacity", "field"],
)
def test_the_contrast_check_finds_what_cannot_be_read(notebook, html):
    with _inserted(notebook.page, html):
        found = notebook.page.evaluate(LOW_CONTRAST, 4.5)
    assert len(found) == 1
    assert found[0].endswith("faint")


def test_no_script_in_the_page_failed(notebook):
    assert notebook.exceptions == []


@pytest.fixture(scope="module")
def reader(server, browser):
    """Open notebook 13 as a reader who works through it, with a kernel of its own."""
    again = server.folder / "again"
    again.mkdir()
    shutil.copy(server.folder / f"{SHARING}.ipynb", again)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    yield Notebook(page, server, f"again/{SHARING}").open()
    page.close()


def test_a_guess_by_click_is_stored_and_judged(reader, server):
    place = reader.index('predict("13.p1")')
    reader.run_above(place)
    reader.outputs(place).get_by_role("button", name="0.0").click()
    reader.outputs(place).get_by_text("Your guess: 0.0").wait_for()
    assert server.record("13.p1")["guess"]["value"] == "0.0"
    assert server.record("13.p1")["guess"]["late"] is False
    reader.run(reader.index('reveal("13.p1"'))
    shown = reader.outputs(reader.index('reveal("13.p1"')).inner_text()
    assert "You guessed 0.0. This machine measured 7.0." in shown
    assert nb13.PREDICTIONS["13.p1"].options["0.0"] in shown


def test_a_guess_by_keyboard_is_stored(reader, server):
    place = reader.index('predict("13.p3")')
    reader.run_above(place)
    reader.outputs(place).get_by_role("button", name="34.67").focus()
    reader.page.keyboard.press("Enter")
    reader.outputs(place).get_by_text("Your guess: 34.67").wait_for()
    assert server.record("13.p3")["guess"]["value"] == "34.67"


def test_a_number_is_typed_and_stored(reader, server):
    place = reader.index('predict("13.p2")')
    reader.run(place)
    reader.outputs(place).get_by_role("textbox").fill("nine")
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Enter")
    # The kernel answers before the next text is typed, as with a person.
    reader.outputs(place).get_by_text("nine").wait_for()
    assert server.record("13.p2") is None
    reader.outputs(place).get_by_role("textbox").fill("9")
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Enter")
    reader.outputs(place).get_by_text("Your guess: 9").wait_for()
    assert server.record("13.p2")["guess"]["value"] == 9


def test_a_wrong_answer_gets_its_sentence_and_a_right_one_passes(reader, server):
    place = reader.index('check("13.2"')
    exercise = nb13.EXERCISES["13.2"]
    for wrong in exercise.wrong[:2]:
        reader.write(place, f'{wrong.source}\n\ncheck("13.2", record)')
        reader.run(place)
        assert wrong.says in reader.outputs(place).inner_text()
    assert server.record("13.2")["best"] == "wrong"
    reader.write(place, f'{exercise.solution}\n\ncheck("13.2", record)')
    reader.run(place)
    assert "Passed: 13.2" in reader.outputs(place).inner_text()
    assert server.record("13.2")["best"] == "passed"


def test_hints_open_by_keyboard(reader, server):
    place = reader.index('check("13.4"')
    reader.run(place)
    assert "Not attempted: 13.4" in reader.outputs(place).inner_text()
    reader.outputs(place).get_by_role("button", name="Hint 1 of 3").focus()
    reader.page.keyboard.press("Enter")
    reader.outputs(place).get_by_text(nb13.EXERCISES["13.4"].hints[0][:40]).wait_for()
    assert sum(server.record("13.4")["hints"].values()) == 1


def test_a_killed_kernel_and_a_reload_lose_no_progress(reader, server):
    place = reader.index("progress()")
    killed = server.kernel_process(reader.kernel_id())
    killed.kill()
    killed.wait(10)
    reader.page.wait_for_timeout(1000)
    reader.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    reader.page.reload()
    reader.open()
    reader.run(place)  # too early: the new kernel knows no name
    shown = reader.outputs(place).last.inner_text()
    assert "`progress` is made by the cell that begins with `import os`" in shown
    reader.run(reader.index("import numpy as np"))
    reader.run(reader.index('predict("13.p1")'))
    assert "Your guess: 0.0" in reader.outputs(reader.index('predict("13.p1")')).inner_text()
    reader.run(place)
    row = reader.outputs(place).locator("tbody tr", has_text="13").inner_text().split()
    assert row[:2] == ["13", "1"]


def test_the_sharing_explorer_follows_the_keyboard(reader):
    place = reader.index("sharing_explorer.explore()")
    reader.run(reader.index("import numpy as np"))
    reader.run(place)
    shown = reader.outputs(place)
    for state in (
        sharing.SharingState("torch.tensor(a)", "a[2] = 77"),
        sharing.SharingState("torch.from_numpy(a)[::2]", "a[2] = 77"),
    ):
        shown.get_by_role("button", name=state.conversion, exact=True).focus()
        reader.page.keyboard.press("Space")
        shown.locator("strong", has_text=sharing.render(state).heading).wait_for()
        marked = shown.get_by_role("button", name=f"● {state.conversion}", exact=True)
        assert marked.count() == 1
    shown.get_by_role("button", name="t[1] = 77", exact=True).focus()
    reader.page.keyboard.press("Enter")
    now = sharing.write(state.conversion, "t[1] = 77")
    values = " ".join(f"{value:g}" for value in now.tensor)
    shown.locator("td", has_text=values).first.wait_for()


def test_the_stride_explorer_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, STRIDES).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("strides.explore()")
    notebook.run(place)
    shown = notebook.outputs(place)
    field = shown.get_by_role("spinbutton", name="Element")
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    for element in (2, 3):
        field.focus()
        page.keyboard.press("ArrowUp")
        walk = strides.walk("x.t()")
        cell = re.compile(rf"= {walk.cells[element]}$")
        shown.locator("td", has_text=cell).first.wait_for()
    shown.get_by_role("button", name="x.t().reshape(12)", exact=True).focus()
    page.keyboard.press("Enter")
    shown.locator("strong", has_text="x.t().reshape(12) is a copy").wait_for()
    assert strides.walk("x.t().reshape(12)").cells[3] == 3
    shown.locator("td", has_text="= 3").first.wait_for()
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    page.close()


def test_no_script_failed_while_the_reader_worked(reader):
    # ipywidgets says this of a stored view whose kernel was killed, until its cell runs again.
    known = "widget model not found"
    assert [text for text in reader.exceptions if known not in text] == []
