"""A reader follows the notebook's link to TensorBoard, sees the curve, and closes it."""

import io
import time

import numpy as np
import psutil
from PIL import Image

from browser.driver import Notebook

NAME = "53_profile_and_log"


def boards(server, notebook):
    kernel = server.kernel_process(notebook.kernel_id())
    return [p for p in kernel.children() if "_serve_board.py" in " ".join(p.cmdline())]


def colored(png):
    """Count the pixels of a picture that are not gray."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=int)
    return int((pixels.max(2) - pixels.min(2) > 25).sum())


def test_the_page_of_tensorboard_shows_the_curve_until_it_is_closed(server, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    notebook = Notebook(context.new_page(), server, NAME).open()
    start = notebook.index("page = board.start(")
    notebook.run_above(start)
    assert notebook.problems() == []
    (process,) = boards(server, notebook)

    link = notebook.outputs(start).locator('a[href^="http://127.0.0.1:"]')
    with context.expect_page() as opened:
        link.click()
    board = opened.value
    board.get_by_role("combobox", name="Filter tags").fill("loss")
    card = board.locator("card-view", has_text="loss").first
    last = card.locator("scalar-card-data-table", has_text="9,999")
    last.wait_for(timeout=60_000)
    chart = card.locator("line-chart").first
    deadline = time.monotonic() + 20
    while colored(chart.screenshot()) < 100 and time.monotonic() < deadline:
        board.wait_for_timeout(200)
    assert colored(chart.screenshot()) >= 100, "no curve: axes and grid are gray"
    board.close()

    notebook.run(notebook.index("page.close()"))
    notebook.outputs(notebook.index("page.close()")).get_by_text("TensorBoard: closed").wait_for()
    assert not psutil.pid_exists(process.pid)
    assert boards(server, notebook) == []
    assert notebook.exceptions == []
    context.close()
