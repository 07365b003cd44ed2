"""One word for one idea: italics define terms, each once, and every one is in the glossary."""

import json
from collections import Counter

import pytest

from helpers import glossary
from helpers._paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_terms_are_unique_and_complete():
    names = [term.name for term in glossary.load()]
    assert len(set(names)) == len(names)
    for term in glossary.load():
        assert term.definition.endswith("."), term.name
        assert any("\u4e00" <= letter <= "\u9fff" for letter in term.chinese), term.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_word_in_italics_is_a_term(path):
    assert [word for word in glossary.italics(path) if glossary.find(word) is None] == []


def test_each_term_is_defined_once_in_the_course():
    terms = (glossary.find(word) for path in NOTEBOOKS for word in glossary.italics(path))
    found = Counter(term.name for term in terms if term is not None)
    assert [name for name, count in found.items() if count > 1] == []
    assert len(found) >= 10


def notebook(tmp_path, text):
    path = tmp_path / "46_x.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": [text]}]}))
    return path


def test_a_word_that_is_no_term_would_be_found(tmp_path):
    path = notebook(tmp_path, "A *frobnicator* beside a *view*, `a *b* c`, **bold** and 2*3*4.")
    assert glossary.italics(path) == ["frobnicator", "view"]
    assert glossary.find("frobnicator") is None


def test_the_table_names_the_notebook_that_defines(tmp_path):
    notebook(tmp_path, "A *stride*.")
    shown = glossary.table(tmp_path)
    assert [row[:2] for row in shown.rows] == [["stride", "46"]]
    assert shown.rows[0][3] == "步幅"


def test_a_term_is_defined_by_a_notebook_or_waits_for_one():
    path = ROOT / "tests" / "terms_not_yet_defined.txt"
    waiting = path.read_text(encoding="utf-8").splitlines()
    defined = {glossary.find(word) for path in NOTEBOOKS for word in glossary.italics(path)}
    assert [term.name for term in glossary.load() if term not in defined] == waiting, (
        "the list may only shrink: put a new term in italics where its notebook defines it"
    )
