"""Each notebook works for a reader who guesses, who solves everything, and who runs cells again.

The untouched state is the run by nbval, which also checks that no guess and no check was recorded.
One more execution solves every exercise and guesses the first option of every prediction;
the other options are put to the engine with the truth that this execution measured. What is
marked `twice` executes notebooks again and again: `course.py test-twice` runs it.

Two files run these tests, each on half of the notebooks, so that two workers share them.
"""

import importlib
import json
from itertools import zip_longest

import nbformat
import pytest

from helpers.exercises import Choice, _predict, predict, reveal
from tools import notebooks as tool
from tools import reader
from tools.kernel import execute

NOTEBOOKS = tool.find()


def module_of(path):
    return importlib.import_module(f"exercises.nb{path.stem[:2]}")


def half(number):
    """Return a ``pytest_generate_tests`` for every second notebook, from the first or the second."""
    names = [path for path in NOTEBOOKS if (tool.ROOT / f"exercises/nb{path.stem[:2]}.py").exists()]

    def pytest_generate_tests(metafunc):
        if "path" in metafunc.fixturenames:
            metafunc.parametrize("path", names[number::2], ids=lambda path: path.stem)

    return pytest_generate_tests


def read(path):
    return nbformat.read(path, as_version=4)


def records(home):
    """Return the records of predictions and exercises; those of claims are made in every run."""
    found = [json.loads(path.read_text()) for path in home.glob("exercises/*.json")]
    return {record["id"]: record for record in found}


def shown_by(nb, call, id):
    """Return what the last cell that makes this call shows as text."""
    cells = [c for c in nb.cells if (call, id) in reader.CALL.findall(c.source)]
    texts = [out.get("text") or out.data.get("text/plain", "") for out in cells[-1].outputs]
    return " ".join(" ".join(texts).split())


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
        if kept[id]["truth"] is None:  # a compiler is missing, or its path has a space
            assert "Not measured here." in shown_by(nb, "reveal", id)
        elif isinstance(asked, Choice):
            truth = str(kept[id]["truth"]["value"])
            assert truth in asked.options, f"{id}: no option fits {truth}"
            assert " ".join(asked.options[guess].split()) in shown_by(nb, "reveal", id)


def test_every_solution_passes_and_the_progress_says_so(path, solved):
    nb, kept, guesses, _ = solved(path)
    module = module_of(path)
    best = {id: kept.get(id, {}).get("best") for id in module.EXERCISES}
    assert best == dict.fromkeys(module.EXERCISES, "passed")
    assert_judged(nb, kept, guesses, module)


def other_guesses(module, kept):
    """Return the guesses per prediction that the solved notebook did not make."""
    return {
        id: reader.guesses_of(asked, kept[id]["truth"]["value"])[1:]
        for id, asked in module.PREDICTIONS.items()
        if kept[id]["truth"] is not None
    }


def test_every_other_option_is_stored_and_answered(path, solved, tmp_path, monkeypatch):
    module, (_, kept, _, _) = module_of(path), solved(path)
    for id, guesses in other_guesses(module, kept).items():
        asked, truth = module.PREDICTIONS[id], kept[id]["truth"]["value"]
        for n, guess in enumerate(guesses):
            monkeypatch.setenv("COURSE_HOME", str(tmp_path / f"{id}-{n}"))
            monkeypatch.setattr(_predict, "_measured", {})  # a new kernel has measured nothing
            predict(id, guess=guess)
            answer = " ".join(str(reveal(id, truth)).split())
            stored = records(tmp_path / f"{id}-{n}")[id]["guess"]
            assert (stored["value"], stored["late"]) == (guess, False)
            if isinstance(asked, Choice):
                assert " ".join(asked.options[guess].split()) in answer


@pytest.mark.twice
def test_every_other_option_works_in_the_whole_notebook(path, solved, tmp_path):
    module, (_, kept, _, _) = module_of(path), solved(path)
    tries = other_guesses(module, kept)
    for n, column in enumerate(zip_longest(*tries.values())):
        guesses = {id: g for id, g in zip(tries, column, strict=True) if g is not None}
        nb = reader.with_guesses(read(path), guesses)
        assert_judged(*run(nb, path, tmp_path / str(n)), guesses, module)


@pytest.mark.twice
def test_cells_run_twice_in_a_new_kernel_lose_nothing(path, solved):
    _, before, guesses, home = solved(path)
    _, after = run(reader.each_cell_twice(read(path)), path, home)
    assert {id: record["best"] for id, record in after.items()} == {
        id: record["best"] for id, record in before.items()
    }
    assert {id: after[id]["guess"] for id in guesses} == {id: before[id]["guess"] for id in guesses}
