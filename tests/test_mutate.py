"""The mutation run finds a check that cannot fail, and only such checks."""

import textwrap

import nbformat
import pytest
from sample_notebooks import code, notebook

from exercises import nb00
from helpers import exercises
from tools import check, mutate

MODULE = textwrap.dedent(
    """
    from helpers.exercises import Exercise, Wrong, WrongAnswer

    def test_gib(answer, call):
        got = call(answer, 2)
        if not isinstance(got, int):
            raise Wrong("Return an int.")
        if got != 4:
            raise Wrong("Twice two is four.")

    EXERCISES = {
        "00.1": Exercise(
            title="Double", minutes=1, task="Return 2x.", answer="gib", test=test_gib,
            stub="def gib(x):\\n    ...\\n", solution="def gib(x):\\n    return 2 * x\\n",
            hints=("a", "b", "c"),
            wrong=(
                WrongAnswer("three", "def gib(x):\\n    return 3 * x\\n", "Twice two"),
                WrongAnswer("text", "def gib(x):\\n    return 'four'\\n", "Return an int"),
            ),
        )
    }
    """
)


@pytest.fixture(autouse=True)
def catalog():
    exercises.use(nb00)


def test_a_module_whose_every_refusal_is_needed_has_no_survivor():
    assert mutate.unnoticed_in_exercises(MODULE) == []


def test_a_refusal_that_no_stored_answer_meets_is_named():
    kept = [line for line in MODULE.splitlines() if 'WrongAnswer("text"' not in line]
    without = "\n".join(kept)
    found = mutate.unnoticed_in_exercises(without, "exercises/nb00.py")
    assert found == ['nb00.py, line 7: no stored answer needs `raise Wrong("Return an int.")`']


def test_a_test_that_nothing_falsifies_is_named():
    start, end = MODULE.index("wrong=("), MODULE.index("    )\n}")
    found = mutate.unnoticed_in_exercises(MODULE[:start] + MODULE[end:])
    assert found[0] == "00.1: a test that always passes goes unnoticed"
    assert len(found) == 3


SETUP = "from helpers import timing\nfrom functools import partial"
TIMED = "a = timing.benchmark(partial(sum, range(10**4)), min_run_time=0.01)\n"
TIMED += "b = timing.benchmark(partial(sum, range(10**2)), min_run_time=0.01)"


def ignored(source):
    cell = code(source)
    cell.metadata["tags"] = [mutate.IGNORED]
    return cell


def test_cells_that_use_a_measured_name_are_found_also_through_others():
    nb = notebook(
        code(SETUP), code(TIMED), code("c = a.median"), ignored("c"), ignored("1"), code("b")
    )
    assert mutate.measuring(nb) == [3]


TRACKED = """import torch
from helpers import memory
with memory.track_memory() as peak:
    x = torch.ones(10**4)
assert peak.total < 10**5
peak.total"""


def test_a_cell_is_named_when_no_assert_of_it_notices_false_times_or_bytes(tmp_path):
    claims = ("assert a.median > 5 * b.median", "assert a.median > 0", "a.median", TRACKED)
    path = tmp_path / "00_sample.ipynb"
    nbformat.write(notebook(code(SETUP), code(TIMED), *map(ignored, claims)), path)
    assert mutate.unnoticed_in_notebook(path) == [
        f"00_sample, cell {index}: no assert notices false measurements" for index in (3, 4)
    ]


def test_check_hands_over_to_the_mutation_run(monkeypatch):
    monkeypatch.setattr(mutate, "main", lambda arguments: arguments)
    assert check.main(["--mutate", "13"]) == ["13"]
