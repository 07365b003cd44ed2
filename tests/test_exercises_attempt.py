"""Before a test runs: not attempted, unfinished, or other keys than asked."""

import functools
import linecache

import example_exercises
import pytest

from helpers import exercises
from helpers.exercises._attempt import cell_of, definition, look_at
from helpers.exercises._selftest import judge_source

exercises.use(example_exercises)
DOUBLE = example_exercises.EXERCISES["98.1"]


def status(id, source):
    return judge_source(id, source).status


@pytest.mark.parametrize("id", example_exercises.EXERCISES)
def test_a_stub_is_not_attempted_and_a_solution_passes(id):
    exercise = example_exercises.EXERCISES[id]
    assert status(id, exercise.stub) == "not attempted"
    assert status(id, exercise.solution) == "passed"


def test_comments_spaces_and_docstrings_are_no_attempt():
    source = "def double( numbers ):\n    # I will begin here\n\n    '''Mine.'''\n    ...\n"
    assert status("98.1", source) == "not attempted"


def test_a_docstring_in_a_class_is_no_attempt():
    stub = example_exercises.EXERCISES["98.2"].stub
    assert status("98.2", stub.replace("class Box:", 'class Box:\n    "A box."')) == "not attempted"


def test_a_hole_that_is_left_is_unfinished_and_its_line_is_named():
    verdict = judge_source("98.1", "def double(numbers):\n    a = 2\n    b = ...\n    return a\n")
    assert verdict.status == "unfinished"
    assert verdict.sentence == "`...` is still on line 3 of your cell."


def test_an_ellipsis_that_indexes_is_no_hole():
    source = "def double(numbers):\n    x = np.array(numbers)\n    return list(2 * x[..., :])\n"
    assert status("98.1", source) == "passed"


def test_the_answer_is_found_beside_another_definition_of_its_name():
    source = "class Other:\n    def double(self):\n        ...\n" + DOUBLE.solution
    assert status("98.1", source) == "passed"
    source = "def double(numbers):\n    def double(x):\n        return 1\n    ...\n"
    assert status("98.1", source) == "unfinished"


def test_a_decorated_answer_is_compared_by_what_it_wraps():
    source = "@torch.no_grad()\ndef double(numbers):\n    return [2 * n for n in numbers]\n"
    assert status("98.1", source) == "passed"


@pytest.mark.parametrize(
    "source",
    [
        "double = lambda numbers: [2 * n for n in numbers]",
        "import functools\ndouble = functools.partial(lambda k, x: [k * n for n in x], 2)",
        "double = lambda numbers, make=eval('lambda x: [2 * n for n in x]'): make(numbers)",
    ],
)
def test_answers_without_a_definition_are_tested(source):
    assert status("98.1", source) == "passed"


@pytest.mark.parametrize("answer", [print, functools.partial(print), dict])
def test_other_callables_count_as_attempts(answer):
    assert look_at(answer, DOUBLE) == ("attempted", "")


@pytest.mark.parametrize("answer", [3, None, "text", object(), [..., ...], {"a": 1}])
def test_another_kind_of_answer_is_told_what_to_pass(answer):
    kind = type(answer).__name__
    state, sentence = look_at(answer, DOUBLE)
    assert state == "wrong"
    assert sentence.startswith(f"Expected the function `double`, got {kind}. Pass the function")


@pytest.mark.parametrize("source", ["shares = [True, False]", "shares = None", "shares = 3"])
def test_an_answer_that_is_no_dictionary_is_told_to_be_one(source):
    verdict = judge_source("98.3", source)
    assert verdict.status == "wrong"
    assert verdict.sentence.startswith("Expected a dict with the keys of the stub, got ")
    assert "pass `shares`" in verdict.sentence


def test_an_answer_that_is_no_class_is_told_to_be_one():
    verdict = judge_source("98.2", "Box = 3")
    assert verdict.sentence == "Expected the class `Box`, got int. Pass the class itself."


def test_a_bare_ellipsis_is_not_attempted():
    assert look_at(..., DOUBLE) == ("not attempted", "")


def test_a_dictionary_of_dots_is_not_attempted_and_with_some_unfinished():
    verdict = judge_source("98.3", 'shares = {"from_numpy": True, "tensor": ...}')
    assert verdict.status == "unfinished"
    assert verdict.sentence == "`...` is still in 1 of 2 places."


def test_missing_and_unknown_keys_are_named():
    verdict = judge_source("98.3", 'shares = {"from_numpy": True, "tensr": False}')
    assert (verdict.status, verdict.message) == ("wrong", "keys")
    assert verdict.sentence == (
        "The keys differ from those of the exercise: "
        "'tensor' is missing and 'tensr' was not asked for."
    )


def test_an_empty_dictionary_misses_every_key():
    assert "'from_numpy', 'tensor' is missing" in judge_source("98.3", "shares = {}").sentence


def test_a_function_wrapped_in_a_circle_or_without_source_has_no_definition():
    def answer():
        """Wrap itself."""

    answer.__wrapped__ = answer
    assert definition(answer).name == "answer"
    assert definition(len) is None
    assert cell_of(len) is None


def test_a_cell_that_is_no_python_is_no_definition():
    linecache.cache["<broken>"] = (5, None, ["def (\n"], "<broken>")
    namespace = {}
    exec(compile("def double(x): return x", "<broken>", "exec"), namespace)  # noqa: S102
    assert definition(namespace["double"]) is None


def test_a_dataclass_answer_is_found_though_its_methods_are_generated():
    source = "from dataclasses import dataclass\n@dataclass\nclass Box:\n    content: int\n"
    source += "    def twice(self):\n        return 2 * self.content\n"
    assert status("98.2", source) == "passed"
