"""Each notebook works for a reader who guesses, who solves everything, and who runs cells again.

The untouched state is the run by nbval, which also checks that nothing was recorded.
One execution answers one option of every prediction; the first also solves every exercise.
"""

import importlib
import json
from itertools import zip_longest
from types import SimpleNamespace

import nbformat
import pytest
from sample_notebooks import code, notebook

from helpers.exercises import Choice, Exercise, Number
from tools import notebooks as tool
from tools import reader
from tools.kernel import execute

NOTEBOOKS = tool.find()


def module_of(path):
    return importlib.import_module(f"exercises.nb{path.stem[:2]}")


def with_exercises():
    names = [path for path in NOTEBOOKS if (tool.ROOT / f"exercises/nb{path.stem[:2]}.py").exists()]
    return pytest.mark.parametrize("path", names, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def records(home):
    found = [json.loads(path.read_text()) for path in home.rglob("*.json")]
    return {record["id"]: record for record in found}


def shown_by(nb, call, id):
    """Return what the last cell that makes this call shows as text."""
    cells = [c for c in nb.cells if (call, id) in reader.CALL.findall(c.source)]
    texts = [out.get("text") or out.data.get("text/plain", "") for out in cells[-1].outputs]
    return " ".join(" ".join(texts).split())


@with_exercises()
def test_notebook_and_module_agree(path):
    assert reader.differences(read(path), module_of(path)) == []


def run(nb, path, home):
    """Execute a notebook with this progress folder; return the notebook and the records."""
    execute(nb, path.parent, course_home=home)
    return nb, records(home)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Return the results of a reader who guesses each first option and solves everything."""
    results = {}

    def result(path):
        if path not in results:
            module, home = module_of(path), tmp_path_factory.mktemp(path.stem)
            guesses = {id: reader.guesses_of(p)[0] for id, p in module.PREDICTIONS.items()}
            nb = reader.with_guesses(read(path), guesses)
            nb = reader.with_solutions(nb, module.EXERCISES)
            results[path] = (*run(nb, path, home), guesses, home)
        return results[path]

    return result


def assert_judged(nb, kept, guesses, module):
    """Each guess is stored, in time, and answered by the sentence of its option."""
    assert {id: kept[id]["guess"]["value"] for id in guesses} == guesses
    assert [id for id in guesses if kept[id]["guess"]["late"]] == []
    for id, guess in guesses.items():
        asked = module.PREDICTIONS[id]
        if isinstance(asked, Choice):
            truth = str(kept[id]["truth"]["value"])
            assert truth in asked.options, f"{id}: no option fits {truth}"
            assert " ".join(asked.options[guess].split()) in shown_by(nb, "reveal", id)


@with_exercises()
def test_every_solution_passes_and_the_progress_says_so(path, solved):
    nb, kept, guesses, _ = solved(path)
    module = module_of(path)
    best = {id: kept.get(id, {}).get("best") for id in module.EXERCISES}
    assert best == dict.fromkeys(module.EXERCISES, "passed")
    assert_judged(nb, kept, guesses, module)


@with_exercises()
def test_every_other_option_is_stored_and_answered(path, solved, tmp_path):
    module, (_, kept, _, _) = module_of(path), solved(path)
    tries = {
        id: reader.guesses_of(asked, kept[id]["truth"]["value"])[1:]
        for id, asked in module.PREDICTIONS.items()
    }
    for n, column in enumerate(zip_longest(*tries.values())):
        guesses = {id: g for id, g in zip(tries, column, strict=True) if g is not None}
        nb = reader.with_guesses(read(path), guesses)
        assert_judged(*run(nb, path, tmp_path / str(n)), guesses, module)


@with_exercises()
def test_cells_run_twice_in_a_new_kernel_lose_nothing(path, solved):
    _, before, guesses, home = solved(path)
    _, after = run(reader.each_cell_twice(read(path)), path, home)
    assert {id: record["best"] for id, record in after.items()} == {
        id: record["best"] for id, record in before.items()
    }
    assert {id: after[id]["guess"] for id in guesses} == {id: before[id]["guess"] for id in guesses}


# The tools themselves, on a small module --------------------------------------------------

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
