"""A reader chooses a number of segments by keyboard."""

from browser.driver import CUT_OFF, LOW_CONTRAST, Notebook, write_notebook
from helpers.widgets.segments import explore

PEAKS, SECONDS = {0: 90, 1: 95, 4: 40, 16: 24}, {0: 0.2, 1: 0.27, 4: 0.26, 16: 0.25}
FLOPS = {0: 30, 1: 40, 4: 38, 16: 36}
SOURCE = f"""from helpers.widgets import segments
segments.explore({PEAKS}, {SECONDS}, arithmetic={FLOPS})"""


def expected(segments):
    shown = explore(PEAKS, SECONDS, arithmetic=FLOPS, segments=segments)
    return shown.text().splitlines()[0]


def test_the_explorer_follows_the_keyboard(server, browser):
    write_notebook(server.folder, "segments", [SOURCE])
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, "segments").open()
    notebook.run(0)
    shown = notebook.outputs(0)
    heading = shown.locator("strong")
    heading.get_by_text(expected(16)).wait_for()
    for name, segments in (("4 segments", 4), ("1 segment", 1), ("plain", 0)):
        shown.get_by_role("button", name=name, exact=True).focus()
        page.keyboard.press("Space")
        heading.get_by_text(expected(segments)).wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    heading.get_by_text(expected(1)).wait_for()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.theme(theme)
        assert page.evaluate(LOW_CONTRAST, 4.5) == []
    assert page.evaluate(CUT_OFF) == []
    assert page.locator(".jp-Notebook .jp-Cell").count() == 1, "a key reached the notebook"
    assert notebook.exceptions == []
    page.close()
