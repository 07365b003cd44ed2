"""A reader composes a schedule by keyboard."""

from browser.driver import Notebook
from helpers.widgets.schedules import COUNTED, ScheduleState, render

NAME = "51_steer_the_optimizer"


def test_the_composer_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, NAME).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("schedules.explore(")
    notebook.run(place)
    shown = notebook.outputs(place)
    cells = page.locator(".jp-Notebook .jp-Cell").count()

    def heading(*state):
        shown.locator("strong", has_text=render(ScheduleState(*state)).heading).wait_for()

    heading("cosine", 1, COUNTED[0])
    shown.get_by_role("spinbutton", name="Warm-up epochs").focus()
    page.keyboard.press("ArrowUp")
    heading("cosine", 2, COUNTED[0])
    page.keyboard.press("ArrowUp")
    heading("cosine", 3, COUNTED[0])
    shown.get_by_role("button", name=COUNTED[1], exact=True).focus()
    page.keyboard.press("Space")
    heading("cosine", 3, COUNTED[1])
    shown.get_by_role("button", name="one cycle", exact=True).focus()
    page.keyboard.press("Space")
    heading("one cycle", 3, COUNTED[1])
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    assert notebook.exceptions == []
    page.close()
