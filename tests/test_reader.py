"""The tools that put a reader's guesses and answers into a notebook, on a small module."""

from types import SimpleNamespace

import nbformat
import pytest
from sample_notebooks import code, notebook

from helpers.exercises import Choice, Exercise, Number
from tools import reader

EXERCISE = Exercise(
    title="Double", minutes=1, task="Return 2x.", answer="double", test=lambda answer, call: None,
    stub="def double(x):\n    ...\n", solution="def double(x):\n    return 2 * x\n",
    hints=("a", "b", "c"),
)  # fmt: skip
MODULE = SimpleNamespace(
    PREDICTIONS={
        "99.p1": Choice(question="?", options={"0": "no", "it's 1": "yes"}),
        "99.p2": Number(question="?", unit="bytes", notes=((0, 4, "few"), (4, 9, "many"))),
    },
    EXERCISES={"99.1": EXERCISE},
)
STUB = 'def double(x):\n    ...\n\ncheck("99.1", double)'


def sample():
    return notebook(
        code('predict("99.p1")'), code('reveal("99.p1", 1)'),
        code('predict("99.p2", guess=...)'), code('reveal("99.p2", 1)'), code(STUB),
    )  # fmt: skip


def test_guesses_are_every_option_or_low_high_and_right():
    choice, number = MODULE.PREDICTIONS.values()
    assert reader.guesses_of(choice) == ["0", "it's 1"]
    assert reader.guesses_of(number, truth=8) == [0.001, 1e15, 8]
    assert reader.guesses_of(Number(question="?", among=12), truth=8) == [0, 12, 8]


def test_guesses_replace_what_stood_in_the_call():
    nb = reader.with_guesses(sample(), {"99.p1": "it's 1", "99.p2": 4.0})
    assert nb.cells[0].source == 'predict("99.p1", guess="it\'s 1")'
    assert nb.cells[2].source == 'predict("99.p2", guess=4.0)'
    assert nb.cells[1].source == 'reveal("99.p1", 1)'


def test_a_solution_takes_the_place_of_its_stub():
    nb = reader.with_solutions(sample(), MODULE.EXERCISES)
    assert nb.cells[4].source == 'def double(x):\n    return 2 * x\n\ncheck("99.1", double)'


def test_a_stub_may_be_two_lines_above_its_check():
    nb = sample()
    nb.cells[4].source = STUB.replace("\n\n", "\n\n\n")
    assert reader.differences(nb, MODULE) == []
    assert "return 2 * x" in reader.with_solutions(nb, MODULE.EXERCISES).cells[4].source


def test_each_code_cell_stands_twice_under_its_own_id():
    nb = reader.each_cell_twice(sample())
    assert len(nb.cells) == len({cell.id for cell in nb.cells}) == 10
    nbformat.validate(nb)


def test_a_notebook_that_agrees_with_its_module_has_no_differences():
    assert reader.differences(sample(), MODULE) == []


@pytest.mark.parametrize(
    ("place", "source", "words"),
    [
        (0, "1", "the notebook calls predict for ['99.p2']"),
        (0, 'predict("99.p2")', "calls predict for ['99.p2', '99.p2']"),
        (1, "1", "calls reveal for ['99.p2']"),
        (4, "1", "calls check for []"),
        (4, STUB.replace("...", "pass"), "no cell holds the stub of 99.1"),
        (4, STUB.replace("\n\n", "\n"), "no cell holds the stub of 99.1"),
    ],
)
def test_a_difference_is_found_and_named(place, source, words):
    nb = sample()
    nb.cells[place].source = source
    assert any(words in finding for finding in reader.differences(nb, MODULE))
