"""A reader types shapes into the broadcasting explorer and chooses an operation by keyboard."""

from browser.driver import Notebook
from helpers.widgets.broadcasting import BroadcastState, render

NAME = "12_compute_with_tensors"


def test_the_broadcasting_explorer_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, NAME).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("broadcasting.explore()")
    notebook.run(place)
    shown = notebook.outputs(place)
    cells = page.locator(".jp-Notebook .jp-Cell").count()

    def heading(*state):
        shown.locator("strong", has_text=render(BroadcastState(*state)).heading).wait_for()

    heading()
    shown.get_by_role("textbox", name="Shape of b").fill("")
    page.keyboard.type("1, 3")
    heading("5, 1", "1, 3")
    shown.locator("td", has_text="(5, 3)").first.wait_for()
    shown.get_by_role("textbox", name="Shape of a").focus()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.keyboard.type("2")
    heading("5, 2", "1, 3")
    shown.get_by_role("textbox", name="Shape of a").fill("5, b")
    heading("5, b", "1, 3")
    shown.get_by_role("textbox", name="Shape of a").fill("5, 1")
    shown.get_by_role("button", name="a += b", exact=True).focus()
    page.keyboard.press("Space")
    heading("5, 1", "1, 3", "a += b")
    assert shown.get_by_role("button", name="● a += b", exact=True).count() == 1
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    assert notebook.exceptions == []
    page.close()
