"""Every exercise of the course: its stub, its solution and the wrong answers it must refuse."""

import ast
import importlib
import pkgutil
from functools import cache

import pytest

import exercises
from helpers.exercises import Choice, Exercise, Number
from helpers.exercises._selftest import judge_source

MODULES = [
    importlib.import_module(f"exercises.{info.name}")
    for info in pkgutil.iter_modules(exercises.__path__)
    if info.name.startswith("nb")
]
EXERCISES = [
    pytest.param(id, exercise, id=id) for m in MODULES for id, exercise in m.EXERCISES.items()
]
WRONG = [
    pytest.param(id, wrong, id=f"{id} {wrong.name}")
    for module in MODULES
    for id, exercise in module.EXERCISES.items()
    for wrong in exercise.wrong
]
PREDICTIONS = [
    pytest.param(id, asked, id=id) for m in MODULES for id, asked in m.PREDICTIONS.items()
]


def test_the_course_has_modules_of_exercises():
    assert MODULES


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_ids_belong_to_the_notebook_of_the_module(module):
    number = module.__name__[-2:]
    assert {id.partition(".")[0] for id in (*module.EXERCISES, *module.PREDICTIONS)} == {number}
    assert all(id.partition(".")[2].isdigit() for id in module.EXERCISES)
    assert all(id.partition(".")[2][0] == "p" for id in module.PREDICTIONS)


@pytest.mark.parametrize(("id", "exercise"), EXERCISES)
def test_an_untouched_stub_is_not_attempted(id, exercise):
    assert judge_source(id, exercise.stub).status == "not attempted"


@pytest.mark.parametrize(("id", "exercise"), EXERCISES)
def test_the_solution_passes_every_time(id, exercise):
    times = 3 if exercise.limit <= 60 else 1  # the others train whole models
    verdicts = [judge_source(id, exercise.solution) for _ in range(times)]
    assert [v.status for v in verdicts] == ["passed"] * times, verdicts[0].sentence


@pytest.mark.parametrize(("id", "wrong"), WRONG)
def test_a_wrong_answer_gets_its_own_sentence(id, wrong):
    verdict = _verdict(id, wrong.source)
    assert verdict.status in ("wrong", "raised")
    assert wrong.says in verdict.sentence


@pytest.mark.parametrize(("id", "wrong"), WRONG)
def test_the_record_names_the_misconception(id, wrong):
    verdict = _verdict(id, wrong.source)
    assert verdict.status == "raised" or verdict.message in {
        other.name for other in _exercise(id).wrong if other.says in verdict.sentence
    }


@pytest.mark.parametrize(("id", "exercise"), EXERCISES)
def test_an_exercise_keeps_to_its_size(id, exercise):
    assert isinstance(exercise, Exercise)
    assert len(exercise.task.split()) <= 60
    assert len(exercise.stub.strip().splitlines()) <= 12
    assert len(exercise.hints) == 3
    assert all(hint.strip() for hint in exercise.hints)
    assert len(exercise.wrong) >= 4
    assert len({wrong.name for wrong in exercise.wrong}) == len(exercise.wrong)
    assert all(wrong.says.strip() for wrong in exercise.wrong)
    assert 1 <= exercise.minutes <= 20
    assert 0 < exercise.limit <= 120  # 71 trains, in real processes too


@pytest.mark.parametrize(("id", "exercise"), EXERCISES)
def test_stub_and_solution_define_the_answer(id, exercise):
    for source in (exercise.stub, exercise.solution):
        names = {
            getattr(node, "name", getattr(node, "id", "")) for node in ast.walk(ast.parse(source))
        }
        assert exercise.answer in names


@pytest.mark.parametrize(("id", "asked"), PREDICTIONS)
def test_a_prediction_teaches_whatever_is_guessed(id, asked):
    assert asked.question.rstrip().endswith(("?", "."))
    if isinstance(asked, Choice):
        assert all(sentence.strip() for sentence in asked.options.values())
    else:
        assert isinstance(asked, Number)
        assert asked.notes


@cache
def _verdict(id, source):
    """Judge a wrong answer once for all that is asked of its verdict."""
    return judge_source(id, source)


def _exercise(id):
    return next(module.EXERCISES[id] for module in MODULES if id in module.EXERCISES)
