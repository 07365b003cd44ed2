"""The graph viewer follows the keyboard, and shows what torch computes."""

from browser.driver import Notebook
from helpers.widgets import graph

NAME = "14_follow_gradients_with_autograd"


def test_the_graph_viewer_follows_the_keyboard(server, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(page, server, NAME).open()
    notebook.run(notebook.index("plotting.use_style()"))
    place = notebook.index("graph.explore(")
    notebook.run(place)
    shown = notebook.outputs(place)
    field = shown.get_by_role("spinbutton", name="Step")
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    for step in (3, 4):
        field.focus()
        page.keyboard.press("ArrowUp")
        heading = graph.render(graph.GraphState("diamond", step)).heading
        shown.locator("strong", has_text=heading).wait_for()
    for preset, key in (("second backward", "Space"), ("detached", "Enter")):
        shown.get_by_role("button", name=preset, exact=True).focus()
        page.keyboard.press(key)
        before = graph.record(preset).before["x"]
        shown.locator("text", has_text=f"x.grad is {before}").wait_for()
        field.focus()
        for _ in range(graph.steps(preset)):
            page.keyboard.press("ArrowUp")
        after = graph.record(preset).after["x"]
        shown.locator("text", has_text=f"x.grad is {after}").wait_for()
    shown.get_by_role("button", name="hidden", exact=True).focus()
    page.keyboard.press("Space")
    shown.get_by_role("button", name="● hidden", exact=True).wait_for()
    assert shown.locator("text", has_text="version").count() == 0
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "a key reached the notebook"
    page.close()
