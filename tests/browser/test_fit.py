"""A reader asks "will it fit?" by keyboard."""

from browser.driver import Notebook
from helpers.widgets.fit import FitState, render

NAME = "41_account_for_memory"
CARD = "A100, 40 GB"


def test_the_explorer_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, NAME).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("fit.explore(")
    notebook.run(place)
    shown = notebook.outputs(place)
    cells = page.locator(".jp-Notebook .jp-Cell").count()

    def heading(*state):
        shown.locator("strong", has_text=render(FitState(*state)).heading).wait_for()

    heading("GPT 1.4B", 4, CARD)
    shown.get_by_role("spinbutton", name="Sequences").focus()
    page.keyboard.press("ArrowUp")
    heading("GPT 1.4B", 5, CARD)
    page.keyboard.press("ArrowUp")
    heading("GPT 1.4B", 6, CARD)
    shown.get_by_role("button", name="H100, 80 GB", exact=True).focus()
    page.keyboard.press("Space")
    heading("GPT 1.4B", 6, "H100, 80 GB")
    shown.get_by_role("button", name="Llama-2-7B", exact=True).focus()
    page.keyboard.press("Space")
    heading("Llama-2-7B", 6, "H100, 80 GB")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    assert notebook.exceptions == []
    page.close()
