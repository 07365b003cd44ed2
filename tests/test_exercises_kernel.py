"""In a real kernel: whatever an answer does, one result is shown and the kernel goes on."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from helpers import _display
from tools.kernel import environment

TESTS = Path(__file__).parent
SETUP = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
import example_exercises, numpy as np, torch
from helpers import exercises
from helpers.exercises import check, hint, predict, progress, reveal, solution
exercises.use(example_exercises)
"""
STATE = """
import os, random, signal
(signal.getsignal(signal.SIGALRM), sys.gettrace(), repr(exit), repr(quit), 'input' in globals(),
 torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads(), os.getcwd(),
 random.getstate()[1][:3], type(get_ipython().display_pub).__name__, sys.stdout.__class__.__name__)
"""


class Session:
    """Hold one kernel and run cells in it."""

    def __init__(self, folder, course_home=None):
        self.manager = KernelManager(kernel_name="python3")
        with environment(folder, course_home) as self.home:
            self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        assert self.run(SETUP).error is None

    def run(self, code, *, store_history=False):
        """Run a cell and return its stdout, the data of its result and its error."""
        seen = SimpleNamespace(stream="", data={}, error=None, outputs=0)

        def take(message):
            content = message["content"]
            seen.stream += content.get("text", "")
            if message["msg_type"] in ("execute_result", "display_data"):
                seen.data, seen.outputs = content["data"], seen.outputs + 1
            if message["msg_type"] == "error":
                seen.error = f"{content['ename']}: {content['evalue']}"

        self.client.execute_interactive(
            code, timeout=60, output_hook=take, allow_stdin=False, store_history=store_history
        )
        return seen

    def text(self, code):
        """Run a cell and return the one text it shows."""
        seen = self.run(code)
        assert (seen.error, seen.stream, seen.outputs) == (None, "", 1)
        return seen.data["text/plain"]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    session = Session(tmp_path_factory.mktemp("kernel"))
    yield session
    session.close()


def records(session):
    folder = session.home / "exercises"
    return {path.stem: json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))}


def answer(body, id="98.1", name="double"):
    return f'{body}\n\ncheck("{id}", {name})'


def double(*lines):
    return answer("\n".join(["def double(numbers):", *(f"    {line}" for line in lines)]))


def test_an_untouched_course_shows_everything_and_writes_nothing(kernel):
    for id, exercise in kernel_exercises().items():
        text = kernel.text(answer(exercise.stub, id, exercise.answer))
        assert text.startswith(f"Not attempted: {id}")
    assert kernel.text('predict("98.p1")').startswith("98.p1 What is tensor[0] now?")
    assert kernel.text('reveal("98.p1", 7.0)').startswith("This machine measured 7.0.\nNo guess")
    assert kernel.text("progress()") == "Nothing recorded yet."
    assert list(kernel.home.iterdir()) == []


def kernel_exercises():
    import example_exercises

    return example_exercises.EXERCISES


ANSWERS = {
    "right": (double("return [2 * n for n in numbers]"), "Passed"),
    "class": (
        answer("class Box:\n def __init__(self, c):\n  self.twice = lambda: 2 * c", "98.2", "Box"),
        "Passed",
    ),
    "class that raises": (
        answer(
            "class Box:\n def __init__(self, c):\n  pass\n def twice(self):\n  return self.c",
            "98.2",
            "Box",
        ),
        "AttributeError: 'Box' object has no attribute 'c' (in line 5 of your cell)",
    ),
    "dictionary": (
        answer('shares = {"from_numpy": True, "tensor": True}', "98.3", "shares"),
        "torch.tensor always copies.",
    ),
    "unfinished": (double("a = 2", "b = ...", "return a"), "is still on line 3 of your cell"),
    "lambda": (answer("double = lambda numbers: [2 * n for n in numbers]"), "Passed"),
    "timed cell": ("%%time\n" + double("return numbers"), "Not yet"),
    "wrong": (double("return numbers * 2"), "Twice 0 is 0."),
    "wrong type": (double("return 3"), "Twice 0 is 0."),
    "none": (double("pass"), "Twice 0 is 0."),
    "raises": (double("return 1 / 0"), "ZeroDivisionError: division by zero (in line 2 of your"),
    "recursion": (double("return double(numbers)"), "RecursionError: maximum recursion depth"),
    "memory": (double("return bytearray(10**18)"), "MemoryError (in line 2"),
    "input": (double("return input()"), "input() has no answer during a check"),
    "exit": (double("exit()"), "It would end the whole notebook"),
    "quit": (double("quit()"), "It would end the whole notebook"),
    "sys.exit": (double("sys.exit(3)"), "SystemExit: 3. It would end the whole notebook"),
    "generator exit": (double("raise GeneratorExit"), "GeneratorExit (in line 2"),
    "mutation": (
        double("r = [2 * n for n in numbers]", "numbers.append(1)", "return r"),
        "Your function changed its input: `numbers` (list).",
    ),
    "flood": (
        double("for _ in range(300): print('x' * 10**6)", "return 0"),
        "Printed during the check:",
    ),
    "flood of displays": (
        double(
            "from IPython.display import clear_output, display",
            "for _ in range(300): display(1); clear_output()",
            "return [2 * n for n in numbers]",
        ),
        "Passed",
    ),
    "stderr": (double("sys.stderr.write('x')", "return [2 * n for n in numbers]"), "Passed"),
    "modes": (
        double(
            "torch.set_grad_enabled(False); torch.set_default_dtype(torch.float64)",
            "torch.set_num_threads(2); torch.manual_seed(1); os.chdir('/')",
            "return [2 * n for n in numbers]",
        ),
        "Passed",
    ),
    "trace": (double("sys.settrace(None)", "return [2 * n for n in numbers]"), "Passed"),
}
ENDLESS = {
    "loop": double("while True: pass"),
    "printing loop": double("while True: print('x' * 1000)"),
    "sleep": double("import time", "time.sleep(30)"),
    "event": double("import threading", "threading.Event().wait(30)"),
    "generator": double("return list(iter(int, 1))[:1] if 0 else sum(1 for _ in iter(int, 1))"),
    "tensor loop": double("x = torch.ones(9)", "while True: x = x.sin()"),
    "except Exception": double(
        "while True:", "  try: sys.stdout.write(1 / 0)", "  except Exception: pass"
    ),
    "bare except": double("while True:", "  try: torch.ones(9)", "  except: pass"),
    "finally": double("try:", "  while True: pass", "finally:", "  while True: pass"),
    "swallowed": double("try:", "  while True: pass", "except: return [2 * n for n in numbers]"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_gets_one_result_and_the_kernel_goes_on(kernel, name):
    code, said = ANSWERS[name]
    before = kernel.text(STATE)
    seen = kernel.run(code)
    assert seen.error is None
    assert seen.outputs == 1
    assert said in seen.data["text/plain"]
    assert len(seen.data["text/plain"]) < 4_000
    assert kernel.text(STATE) == before


@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_that_does_not_end_is_stopped(kernel, name):
    before, started = kernel.text(STATE), time.monotonic()
    assert "Your code was still running after 1 s." in kernel.text(ENDLESS[name])
    assert time.monotonic() - started < 8
    assert kernel.text(STATE) == before


def test_a_check_shows_the_same_twice_and_counts_one_more(kernel):
    code = double("return numbers * 2")
    first = kernel.run(code).data
    before = sum(records(kernel)["98.1"]["checks"].values())
    again = kernel.run(code).data
    assert sum(records(kernel)["98.1"]["checks"].values()) == before + 1
    for kind in ("text/plain", "text/html"):
        assert first[kind] == again[kind]


def test_hints_and_a_guess_by_click_are_recorded_and_shown_in_place(kernel):
    kernel.run("result = check('98.2', lambda c: None); box = result.widget()")
    kernel.run("row, area = box.children[1].children\nrow.children[0].click()")
    assert "a" in kernel.text("area.value")
    assert kernel.text("row.children[0].description, row.children[1].description") == (
        "('Hint 2 of 3', 'Solution')"
    )
    kernel.run("row.children[1].click()")
    assert "One solution of 98.2" in kernel.text("area.value")
    assert records(kernel)["98.2"]["solution"] is False  # passed above
    kernel.run("box = predict('98.p3').widget()\nfield, store = box.children[1].children")
    kernel.run("field.value = 'many'; store.click()")
    assert "must be a number" in kernel.text("box.children[2].value")
    kernel.run("field.value = '8'; store.click()")
    assert "Your guess: 8 conversions" in kernel.text("box.children[2].value")
    assert kernel.text("field.disabled, store.disabled") == "(True, True)"
    assert records(kernel)["98.p3"]["guess"]["late"] is False


def test_a_click_on_an_option_after_the_measurement_is_late(kernel):
    kernel.run("box = predict('98.p1').widget(); reveal('98.p1', 7.0)")
    assert kernel.text("[b.description for b in box.children[1].children]") == (
        "['0.0', '7.0', 'an error']"
    )
    kernel.run("box.children[1].children[1].click()")
    assert "Late: the measurement was there before" in kernel.text("box.children[2].value")


def test_displays_carry_a_widget_view_beside_text_and_html(kernel):
    kinds = {"text/plain", "text/html", _display.VIEW}
    assert set(kernel.run("check('98.1', ...)").data) == kinds
    assert set(kernel.run("predict('98.p2')").data) == kinds
    assert set(kernel.run(double("return [2 * n for n in numbers]")).data) == kinds - {
        _display.VIEW
    }


def test_without_ipywidgets_text_and_html_are_the_same(kernel):
    with_widgets = kernel.run("check('98.1', ...)").data
    kernel.run("kept = sys.modules['ipywidgets']; sys.modules['ipywidgets'] = None")
    without = kernel.run("check('98.1', ...)").data
    kernel.run("sys.modules['ipywidgets'] = kept")
    assert without == {kind: with_widgets[kind] for kind in ("text/plain", "text/html")}
    assert 'hint("98.1")' in without["text/plain"]


def test_an_answer_that_ends_the_process_leaves_its_record(tmp_path):
    session = Session(tmp_path)
    try:
        session.client.execute(double("import os", "os._exit(1)"))
        deadline = time.monotonic() + 30
        while session.manager.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        stored = records(session)["98.1"]
    finally:
        session.close()
    assert (stored["latest"], stored["message"]) == ("raised", "ended")
    again = Session(tmp_path, session.home)
    try:
        assert again.text(double("return [2 * n for n in numbers]")).startswith("Passed")
        assert sorted(records(again)["98.1"]["checks"].values()) == [1, 1]
    finally:
        again.close()


def test_run_all_meets_no_error_untouched_predicted_and_solved(tmp_path):
    first = kernel_exercises()["98.1"]
    cells = {
        "untouched": ["predict('98.p1')", "reveal('98.p1', 7.0)", answer(first.stub)],
        "predicted": ["predict('98.p1', guess='0.0')", "reveal('98.p1', 7.0)"],
        "solved": [answer(first.solution), "progress()"],
    }
    for state, sources in cells.items():
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in (SETUP, *sources)]
        )
        (tmp_path / state).mkdir()
        with environment(tmp_path / state) as home:
            NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
        assert (list(home.iterdir()) == []) is (state == "untouched")
