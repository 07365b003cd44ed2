"""Reading without running: each widget of a committed notebook stands there as picture and table."""

import ast
import base64
import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from helpers._paths import ROOT
from helpers.exercises import Choice
from helpers.exercises._catalog import find_prediction

PATHS = sorted(ROOT.glob("notebooks/*.ipynb"))
NB = {path: nbformat.read(path, as_version=4) for path in PATHS}


def calls(source):
    """Return the names of what a cell calls, such as ``strides.explore`` and ``predict``."""
    tree = ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE))
    return [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def widget_modules(nb):
    """Return by which name a notebook calls each module of helpers.widgets."""
    found = {}
    for cell in nb.cells:
        if cell.cell_type == "code":
            for line in re.findall(
                r"^from helpers\.widgets import (.+)$", cell.source, re.MULTILINE
            ):
                for part in line.partition("#")[0].split(","):
                    name, _, alias = part.strip().partition(" as ")
                    found[alias or name] = name
    return found


def shown(nb):
    """Return (module, outputs) of each cell that displays a widget."""
    names = widget_modules(nb)
    return [
        (names[call.partition(".")[0]], cell.outputs)
        for cell in nb.cells
        if cell.cell_type == "code"
        for call in calls(cell.source)
        if call.partition(".")[0] in names and call.partition(".")[2] in ("explore", "watch")
    ]


def test_every_widget_is_shown_by_a_notebook():
    modules = {path.stem for path in ROOT.glob("helpers/widgets/[!_]*.py")}
    assert {module for nb in NB.values() for module, _ in shown(nb)} == modules


@pytest.mark.parametrize("path", [p for p in PATHS if shown(NB[p])], ids=lambda path: path.stem[:2])
def test_each_widget_has_a_picture_a_table_and_the_same_in_words(path):
    for module, outputs in shown(NB[path]):
        bundles = [o.data for o in outputs if "mp-view" in o.get("data", {}).get("text/html", "")]
        assert len(bundles) == 1, f"{module} shows nothing without a notebook kernel"
        data = bundles[0]
        assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG"), module
        page = BeautifulSoup(data["text/html"], "html.parser")
        heading, *_ = data["text/plain"].splitlines()
        assert page.strong.get_text() == heading
        # GitHub drops style, script and svg elements, but keeps an img of a data address.
        assert page.find(["style", "script", "svg"]) is None
        assert page.img["src"].startswith("data:image/")
        assert page.img["alt"] == heading
        rows = page.table("tr")
        assert len(rows) >= 3, module
        text = re.sub(r"\s+", "", data["text/plain"])
        for cell in page.table(["th", "td"]):
            assert re.sub(r"\s+", "", cell.get_text()) in text


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem[:2])
def test_no_picture_of_any_output_comes_without_words(path):
    for cell in NB[path].cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                message, *numbers = data["text/plain"].splitlines()
                assert len(message.split()) >= 3
                assert numbers, f"{message}: no table under the message"
            for image in BeautifulSoup(data.get("text/html", ""), "html.parser")("img"):
                assert image.get("alt"), image["src"][:40]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem[:2])
def test_each_question_shows_its_options_or_how_a_number_is_written(path):
    for cell in NB[path].cells:
        if cell.cell_type != "code":
            continue
        for id in re.findall(r"^predict\(\"([\w.]+)\"\)", cell.source, re.MULTILINE):
            asked = find_prediction(id)
            text = "".join(o.get("data", {}).get("text/html", "") for o in cell.outputs)
            text = BeautifulSoup(text, "html.parser").get_text()
            assert asked.question.replace("`", "") in text, id
            expected = list(asked.options) if isinstance(asked, Choice) else [f'predict("{id}"']
            assert [e for e in expected if e.replace("`", "") not in text] == [], id


def test_the_search_finds_a_widget_under_another_name():
    source = "from helpers.widgets import sharing as explorer, strides  # noqa: F401\n!ls"
    cells = [nbformat.v4.new_code_cell(source), nbformat.v4.new_code_cell("explorer.explore()")]
    assert shown(nbformat.v4.new_notebook(cells=cells)) == [("sharing", [])]
