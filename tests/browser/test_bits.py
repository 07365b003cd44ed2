"""A reader types a number into the bit explorer, chooses a format and steps to neighbors."""

from browser.driver import Notebook
from helpers.widgets.bits import BitsState, render

NAME = "42_train_in_mixed_precision"


def test_the_bit_explorer_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, NAME).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("bits.explore()")
    notebook.run(place)
    shown = notebook.outputs(place)
    cells = page.locator(".jp-Notebook .jp-Cell").count()

    def heading(*state):
        shown.locator("strong", has_text=render(BitsState(*state)).heading).wait_for()

    heading()
    shown.get_by_role("textbox", name="Number").fill("")
    page.keyboard.type("65520")
    heading("65520")
    shown.get_by_role("button", name="float16", exact=True).focus()
    page.keyboard.press("Space")
    heading("65520", "float16")
    shown.get_by_role("textbox", name="Number").fill("0.1")
    heading("0.1", "float16")
    shown.get_by_role("spinbutton", name="Numbers up").focus()
    page.keyboard.press("ArrowUp")
    heading("0.1", "float16", 1)
    shown.get_by_role("textbox", name="Number").fill("x")
    heading("x", "float16", 1)
    assert shown.get_by_role("button", name="● float16", exact=True).count() == 1
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    assert notebook.exceptions == []
    page.close()
