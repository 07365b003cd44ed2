"""A missing name is answered with the cell that makes it."""

import json
import os
import re
import sys

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from sample_notebooks import code, notebook

from helpers import order
from helpers._paths import ROOT
from tools import lab
from tools import notebooks as tool


def cells(*sources):
    return [
        {"cell_type": "markdown" if s.startswith("#") else "code", "source": s} for s in sources
    ]


@pytest.mark.parametrize(
    "source",
    ["a = 1", "(a, b) = 1, 2", "for a in []: pass", "import a", "import a.b", "import x as a",
     "from x import a", "def a(): pass", "class a: pass", "with x as a: pass", "if x:\n    a = 1",
     "[y := 1]\na += 1"],
)  # fmt: skip
def test_whatever_binds_a_name_makes_it(source):
    assert order.maker_of("a", cells("# One", "b.a", "# Two\ntext\n## Three", source)) == (
        source.splitlines()[0],
        "Three",
    )


@pytest.mark.parametrize(
    "source", ["a", "a.b = 1", "def f(a):\n    a = 1", "!ls", "print(a=1)", ""]
)
def test_what_only_uses_a_name_does_not_make_it(source):
    assert order.maker_of("a", cells(source)) is None


def test_every_name_that_an_exercise_cell_needs_is_made_by_a_cell():
    for path in tool.find():
        found = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
        exercises = [source for source in code if "\ncheck(" in source]
        for name in ("check", "torch", "np"):
            if any(re.search(rf"\b{name}\b", source) for source in exercises):
                assert order.maker_of(name, found), f"{path.stem}: {name}"


def test_the_advice_names_the_cell_and_how_to_run_it(tmp_path):
    path = tmp_path / "13_sample.ipynb"
    nbformat.write(notebook(code("races = {}"), code("races")), path)
    assert order.advice("races", path) == (
        "`races` is made by the cell that begins with `races = {}`. Run that cell first, or "
        "choose Run > Run All Above Selected Cell."
    )
    assert order.advice("unknown", path) == ""
    assert order.advice("races", tmp_path / "missing.ipynb") == ""
    path.write_text("{")
    assert order.advice("races", path) == ""


def run(client, source):
    """Return the types of the outputs and their texts."""
    client.execute(source)
    seen = []
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return seen
        if message["msg_type"] in ("error", "stream"):
            content = message["content"]
            seen.append((message["msg_type"], content.get("ename") or content["text"]))


def test_a_kernel_of_the_lab_adds_the_advice_below_the_error(tmp_path, monkeypatch):
    path = tmp_path / "13_sample.ipynb"
    nbformat.write(notebook(code("races = {}"), code("races")), path)
    environment = {
        **os.environ,
        **lab.settings({}),
        "JPY_SESSION_NAME": str(path),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "PYTHONPATH": str(ROOT),
    }
    manager, client = start_new_kernel(env=environment, kernel_name="python3")
    try:
        said = run(client, "races")
        assert said[0] == ("error", "NameError")
        assert said[1][1].startswith("`races` is made by the cell that begins with")
        assert run(client, "nothing_of_the_kind") == [("error", "NameError")]
        assert run(client, "1 / 0") == [("error", "ZeroDivisionError")]
        assert run(client, "order") == [("error", "NameError")]  # the startup leaves no name
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_readers_own_startup_file_stays():
    assert lab.settings({"PYTHONSTARTUP": "/own.py"})["PYTHONSTARTUP"] == "/own.py"


def test_without_ipython_nothing_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert order.install() is None
