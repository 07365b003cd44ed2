"""A reader changes kernel, launches and mode of the timeline by keyboard."""

from browser.driver import Notebook
from helpers.widgets.timeline import MODES, TimelineState, render

NAME = "22_measure_a_speedup"


def test_the_timeline_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, NAME).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("timeline.explore()")
    notebook.run(place)
    shown = notebook.outputs(place)
    cells = page.locator(".jp-Notebook .jp-Cell").count()

    def heading(*state):
        shown.locator("strong", has_text=render(TimelineState(*state)).heading).wait_for()

    heading()
    shown.get_by_role("spinbutton", name="Kernel (µs)").focus()
    page.keyboard.press("ArrowUp")
    heading(41)
    shown.locator("td", has_text="41.0 µs").first.wait_for()
    shown.get_by_role("spinbutton", name="Kernel (µs)").fill("1000")
    page.keyboard.press("Tab")
    heading(1000)
    shown.get_by_role("spinbutton", name="Launches").fill("20000")
    page.keyboard.press("Enter")
    heading(1000, 20_000)
    shown.get_by_role("button", name=MODES[1], exact=True).focus()
    page.keyboard.press("Space")
    heading(1000, 20_000, MODES[1])
    assert shown.get_by_role("button", name=f"● {MODES[1]}", exact=True).count() == 1
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    assert notebook.exceptions == []
    page.close()
