"""Check, hint, solution and the board, outside of a kernel."""

import ast
import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import example_exercises
import pytest

from helpers import _shelf, exercises
from helpers._paths import progress_home
from helpers.exercises import Exercise, _check, _predict, _progress, check, hint, solution
from helpers.exercises._judge import Verdict
from helpers.exercises._selftest import judge_source

exercises.use(example_exercises)
ROOT = Path(__file__).resolve().parents[1]
FIRST = example_exercises.EXERCISES["98.1"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_shelf, "in_memory", {})
    monkeypatch.setattr(_check, "_rungs", {})
    monkeypatch.setattr(_predict, "_measured", {})
    return tmp_path / "home"


def right(numbers):
    return [2 * number for number in numbers]


def repeats(numbers):
    print("here", numbers)
    return numbers * 2


def record(id="98.1"):
    return _progress.read(id, "exercise")


def test_not_attempted_writes_nothing(home):
    result = check("98.1", ...)
    assert repr(result) == (
        "Not attempted: 98.1 Double each number\n"
        'Complete the code, then run the cell again. `hint("98.1")` helps.'
    )
    assert not home.exists()


def test_a_pass_is_told_and_recorded():
    assert repr(check("98.1", right)) == (
        'Passed: 98.1 Double each number\n`solution("98.1")` shows one way to write it.'
    )
    assert (record()["best"], record()["latest"], record()["solution"]) == (
        "passed",
        "passed",
        False,
    )
    assert record()["passed_at"] == record()["last"]


def test_a_wrong_answer_gets_its_sentence_and_what_it_printed_and_its_name_is_recorded():
    result = check("98.1", repeats)
    assert repr(result) == (
        "Not yet: 98.1 Double each number\nTwice 0 is 0.\nPrinted during the check:\n"
        '    here [0]\n`hint("98.1")` helps.'
    )
    assert (record()["latest"], record()["message"]) == ("wrong", "repeats")


def test_a_sentence_of_no_stored_answer_is_recorded_as_a_hash():
    check("98.1", lambda numbers: "no")
    assert record()["message"] == "repeats"  # same sentence
    check("98.1", right)
    assert (record()["message"], record()["misses"]) == ("passed", ["repeats"])
    check("98.3", {"from_numpy": False, "tensor": False})
    assert len(record("98.3")["message"]) == 8
    int(record("98.3")["message"], 16)


def test_checking_twice_shows_the_same_and_counts_one_more():
    results = [check("98.1", repeats) for _ in range(2)]
    assert repr(results[0]) == repr(results[1])
    assert results[0]._repr_mimebundle_() == results[1]._repr_mimebundle_()
    assert sum(record()["checks"].values()) == 2


def test_a_later_failing_edit_takes_no_pass_away():
    check("98.1", right)
    passed_at = record()["passed_at"]
    check("98.1", repeats)
    assert (record()["best"], record()["latest"]) == ("passed", "wrong")
    assert record()["passed_at"] == passed_at


def test_unfinished_and_other_keys_are_recorded_without_a_test():
    check("98.3", {"from_numpy": True, "tensor": ...})
    assert (record("98.3")["best"], record("98.3")["message"]) == ("unfinished", "unfinished")
    check("98.3", {"from_numpy": True})
    assert (record("98.3")["best"], record("98.3")["message"]) == ("wrong", "keys")
    assert sum(record("98.3")["checks"].values()) == 2


@pytest.mark.parametrize(
    ("source", "said", "message"),
    [
        (
            "def double(numbers):\n    n = numbers[0]\n    return n / 0\n",
            (
                "ZeroDivisionError: division by zero (in line 3 of your cell). "
                "Look at the values that this line receives."
            ),
            "ZeroDivisionError",
        ),
        (
            "class Mine(Exception):\n    pass\ndef double(numbers):\n    raise Mine\n",
            "Mine (in line 4 of your cell). Look at the values that this line receives.",
            "other error",
        ),
        (
            (
                "class Mine(Exception):\n    def __str__(self):\n        return 1\n"
                "def double(numbers):\n    raise Mine\n"
            ),
            (
                "Mine: (its text cannot be shown) (in line 5 of your cell). "
                "Look at the values that this line receives."
            ),
            "other error",
        ),
        (
            "def double(numbers, more):\n    pass\n",
            (
                "TypeError: double() missing 1 required positional argument: 'more'. "
                "Call your code with a small input of your own to see where it happens."
            ),
            "TypeError",
        ),
    ],
)
def test_an_exception_is_told_with_its_line_and_without_a_traceback(source, said, message):
    verdict = judge_source("98.1", source)
    assert verdict == Verdict("raised", said, message)


def test_an_error_in_what_the_check_does_with_the_answer_says_so():
    source = "class Box:\n    def __init__(self, c):\n        self.twice = c\n"
    verdict = judge_source("98.2", source.replace("= c", "= lambda: c @ c"))
    assert "of your cell" in verdict.sentence
    verdict = judge_source("98.2", "def Box(c):\n    return c\n")
    assert verdict.status == "raised"
    assert verdict.sentence.endswith(
        "This happened in the check, with what your code returned: "
        "compare its type and shape with the task."
    )


def test_a_huge_text_of_an_exception_is_cut():
    source = "def double(numbers):\n    raise ValueError('x' * 10**6)\n"
    assert len(judge_source("98.1", source).sentence) < 500


def test_a_loop_is_stopped_and_recorded_as_raised_by_time():
    def endless(numbers):
        while True:
            pass

    result = check("98.1", endless)
    assert result.status == "stopped"
    assert result.sentence == (
        "Your code was still running after 1 s. A loop may not end: "
        "check that each round brings its condition closer to false."
    )
    assert (record()["latest"], record()["message"]) == ("raised", "time")


def test_an_interrupt_by_the_reader_passes_through():
    def interrupted(numbers):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("98.1", interrupted)


def test_a_record_is_on_disk_before_the_answer_runs(home):
    seen = []

    def looking(numbers):
        seen.append(json.loads((home / "exercises" / "98.1.json").read_bytes()))
        return [2 * number for number in numbers]

    check("98.1", looking)
    assert (seen[0]["best"], seen[0]["message"]) == ("raised", "ended")
    assert sum(record()["checks"].values()) == 1
    assert record()["latest"] == "passed"


def test_a_changed_input_is_wrong():
    verdict = judge_source("98.1", FIRST.wrong[1].source.replace("numbers[0]", "numbers[-1]"))
    assert verdict.sentence.startswith(("Your function changed its input: `numbers`", "Twice"))
    source = (
        "def double(numbers):\n    r = [2 * n for n in numbers]\n    numbers.clear()\n    return r"
    )
    verdict = judge_source("98.1", source)
    assert verdict.sentence == (
        "Your function changed its input: `numbers` (list). Callers keep using what they passed "
        "in: work on a copy, or use an operation that returns a new object."
    )


def test_an_empty_stub_after_a_pass_says_that_the_pass_stays():
    check("98.1", lambda numbers: [2 * number for number in numbers])
    result = check("98.1", ...)
    assert result.status == "not attempted"
    assert result.sentence.startswith("You passed this earlier, and that stays recorded.")
    assert record()["best"] == "passed"


def test_where_no_alarm_exists_a_pass_says_that_there_was_no_limit(monkeypatch):
    monkeypatch.delattr("signal.setitimer")
    assert check("98.1", right).sentence == "No time limit: this system or thread has no alarm."


def test_hints_open_one_by_one_and_are_counted():
    said = [repr(hint("98.1")).splitlines() for _ in range(4)]
    assert said[0] == ["Hint 1 of 3", "Every number changes."]
    assert said[1] == ["Hint 2 of 3", "[2] becomes [4], not [2, 2]."]
    assert said[2] == [
        "Hint 3 of 3",
        "`return [`",
        'The last hint; `solution("98.1")` comes next.',
    ]
    assert said[3] == said[2]
    assert sum(record()["hints"].values()) == 3
    assert record()["last"] is None


def test_one_hint_can_be_opened_again_without_being_counted_again():
    assert repr(hint("98.1", 2)) == repr(hint("98.1", 2))
    assert sum(record()["hints"].values()) == 2


@pytest.mark.parametrize("n", [0, 4, -1, "2", 1.5])
def test_a_hint_that_does_not_exist_is_told(home, n):
    assert repr(hint("98.1", n)) == f"No such hint\nn must be between 1 and 3, got {n!r}."
    assert not home.exists()


def test_a_solution_opened_before_passing_is_recorded_and_one_after_it_is_not():
    assert repr(solution("98.1")) == f"One solution of 98.1\n{FIRST.solution.rstrip()}"
    check("98.2", type("Box", (), {"__init__": lambda s, c: None, "twice": lambda s: 6}))
    solution("98.2")
    assert (record("98.1")["solution"], record("98.2")["solution"]) == (True, False)


@pytest.mark.parametrize("function", [lambda id: check(id, 1), hint, solution])
def test_an_unknown_id_raises_and_lists_those_that_exist(function):
    with pytest.raises(KeyError) as caught:
        function("98.9")
    assert str(caught.value) == (
        "no exercise has the id '98.9'; known ids: 98.1, 98.2, 98.3, 98.4 (write them as text)"
    )
    with pytest.raises(KeyError, match=r"known ids: .*13\.1.*98\.1"):
        function("07.1")


def test_an_exercise_without_time_is_refused():
    with pytest.raises(ValueError, match="limit must be positive, got 0 s"):
        Exercise(**{**vars(FIRST), "limit": 0})


def test_a_source_that_does_not_define_the_answer_is_refused():
    with pytest.raises(NameError, match=r"the source must define double, as the stub of 98\.1"):
        judge_source("98.1", "triple = 3")


def test_an_empty_course_has_nothing_recorded(home):
    assert repr(exercises.progress()) == "Nothing recorded yet."
    assert "Nothing recorded yet." in exercises.progress()._repr_mimebundle_()["text/html"]
    assert not home.exists()


def test_the_board_counts_by_notebook():
    solution("98.1")
    check("98.1", right)
    check("98.3", {"from_numpy": True, "tensor": False})
    check("98.4", 1)
    exercises.predict("98.p1", guess="7.0")
    exercises.reveal("98.p1", 7.0)
    exercises.predict("98.p3", guess=8)
    exercises.reveal("98.p3", 20)
    exercises.predict("98.p4", guess=1)
    exercises.reveal("98.p5", 1.0)
    exercises.predict("98.p5", guess=1.0)
    row = exercises.progress().rows[-1]
    guesses = "4 of 6: 1 as measured, 1 within 10x, 1 not measured yet, 1 late"
    assert row == ("98", 1, 1, 1, 1, guesses)
    text = repr(exercises.progress()).splitlines()
    assert text[0].split("  ")[0] == "notebook"
    assert text[-1].startswith("98 ")
    assert guesses in exercises.progress()._repr_mimebundle_()["text/html"]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("br",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def all_displays():
    yield check("98.1", ...)
    yield check("98.1", repeats)
    yield check("98.1", right)
    yield hint("98.1")
    yield solution("98.1")
    yield exercises.predict("98.p1")
    yield exercises.predict("98.p1", guess="<b>")
    yield exercises.predict("98.p1", guess="7.0")
    yield exercises.reveal("98.p1", "<script>alert(1)</script>")
    yield exercises.progress()


def test_every_display_is_well_formed_names_its_state_first_and_uses_no_style_sheet():
    for shown in all_displays():
        bundle = shown._repr_mimebundle_()
        assert set(bundle) == {"text/plain", "text/html"}
        assert bundle["text/plain"] == repr(shown)
        tags = Tags(bundle["text/html"]).seen
        assert tags[0][1]["role"] == "status"
        assert tags[1][0] == "strong"
        assert not {"style", "script", "svg"} & {tag for tag, _ in tags}
        first_word = repr(shown).split()[0]
        assert first_word in bundle["text/html"] or isinstance(shown, type(exercises.progress()))


def test_what_a_reader_writes_is_escaped():
    def nasty(numbers):
        print("<img src=x onerror=alert(1)>")
        raise ValueError("<script>alert(1)</script>")

    page = check("98.1", nasty)._repr_mimebundle_()["text/html"]
    assert "<img" not in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_no_text_holds_a_time_a_path_or_a_kernel(home):
    for shown in all_displays():
        for text in shown._repr_mimebundle_().values():
            assert str(home) not in text
            assert _progress.KERNEL not in text


def test_records_tell_neither_who_nor_where():
    def telling(numbers):
        raise FileNotFoundError("/home/ada/course/weights.pt")

    check("98.1", telling)
    text = (progress_home() / "exercises" / "98.1.json").read_text()
    assert "ada" not in text
    assert record()["message"] == "FileNotFoundError"


def test_a_module_used_later_wins_and_may_lack_a_table():
    mine = Exercise(**{**vars(FIRST), "title": "Mine"})
    module = SimpleNamespace(EXERCISES={"98.1": mine})
    exercises.use(module)
    try:
        assert "98.1 Mine" in repr(check("98.1", ...))
        assert "98.p1" in repr(exercises.predict("98.p1"))
    finally:
        from helpers.exercises import _catalog

        _catalog._used.remove(module)


def test_plain_python_without_ipython_is_enough(tmp_path):
    program = (
        "import sys\n"
        "for name in ('IPython', 'ipywidgets'): sys.modules[name] = None\n"
        "sys.path.insert(0, 'tests')\n"
        "import example_exercises\n"
        "from helpers import exercises\n"
        "exercises.use(example_exercises)\n"
        "print(exercises.predict('98.p1')._repr_mimebundle_().keys())\n"
        "print(exercises.check('98.1', lambda x: exit()).sentence)\n"
        "print('input' in globals(), exit.__class__.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COURSE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "dict_keys(['text/plain', 'text/html'])",
        (
            "SystemExit: exit() was called. "
            "It would end the whole notebook: let the code return instead."
        ),
        "False Quitter",
    ]


def test_importing_the_engine_loads_neither_torch_nor_widgets():
    program = "import sys, helpers.exercises; print({'torch', 'ipywidgets'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ast.literal_eval(done.stdout.replace("set()", "[]")) == []
