"""A reader asks "who holds what?" by keyboard."""

from browser.driver import Notebook
from helpers.widgets.ranks import RanksState, render

NAME = "33_split_a_model"


def test_the_explorer_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, NAME).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("ranks.explore(")
    notebook.run(place)
    shown = notebook.outputs(place)
    cells = page.locator(".jp-Notebook .jp-Cell").count()

    def heading(*state):
        shown.locator("strong", has_text=render(RanksState(*state)).heading).wait_for()

    heading("FSDP2", 4)
    shown.get_by_role("spinbutton", name="Ranks").focus()
    page.keyboard.press("ArrowUp")
    heading("FSDP2", 5)
    shown.get_by_role("button", name="ZeRO-1", exact=True).focus()
    page.keyboard.press("Space")
    heading("ZeRO-1", 5)
    shown.get_by_role("button", name="SGD", exact=True).focus()
    page.keyboard.press("Space")
    heading("ZeRO-1", 5, "SGD")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    assert notebook.exceptions == []
    page.close()
