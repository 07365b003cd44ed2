"""course.py test-colab makes an environment with Colab's versions and runs notebooks in it."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from sample_notebooks import code, notebook, write
from small_environment import SmallEnvironment

from helpers import colab
from tools import test_colab as command
from tools.test_colab import CannotTestError, Result

NOT_FOUND = (
    "ERROR: Could not find a version that satisfies the requirement psutil==5.9.5 (from "
    "versions: none)\nERROR: No matching distribution found for psutil==5.9.5\n"
)
CONFLICT = (
    "ERROR: Cannot install a and b because these package versions have conflicting dependencies.\n"
    "The conflict is caused by:\n    b 1.0 depends on tornado>=7\n"
    "    The user requested tornado==6.5.7\n"
    "ERROR: ResolutionImpossible: for help visit the documentation\n"
)


class Pip:
    """Stand in for subprocess.run: give the answers in turn and keep what was asked."""

    def __init__(self, *errors):
        self.errors, self.asked = list(errors), []

    def __call__(self, command, **options):
        self.asked.append(command)
        error = self.errors.pop(0) if "pip" in command and self.errors else ""
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        return SimpleNamespace(returncode=bool(error), stderr=error, stdout="")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))


# Colab's versions -----------------------------------------------------------------------------


def test_the_pins_say_where_they_are_from_and_fit_what_the_course_asks_for():
    text = command.PINS.read_text(encoding="utf-8")
    assert "googlecolab/backend-info" in text
    assert "2026-08-19" in text
    pins = command.read_pins()
    for name, line in colab.needed().items():
        if name in pins:
            minimum = line.partition(">=")[2]
            assert colab._release(pins[name]) >= colab._release(minimum), name
    assert set(colab.needed()) - set(pins) == {"onnx", "onnxscript", "onnxruntime"}


def test_another_torch_takes_the_place_of_colabs_and_leaves_out_its_triton():
    pins, other = command.read_pins(), command.read_pins("2.13.0")
    assert pins["torch"] == "2.11.0"
    assert "triton" in pins
    assert other == {**{n: v for n, v in pins.items() if n != "triton"}, "torch": "2.13.0"}
    assert command.read_pins("2.11.0") == pins


# The environment ------------------------------------------------------------------------------


def test_it_holds_what_colab_has_and_not_what_the_first_cell_adds():
    pip = Pip()
    assert command.install("python", command.read_pins(), pip) == {}
    (asked,) = pip.asked
    pins = {word for word in asked if "==" in word}
    assert {"torch==2.11.0", "numpy==2.1.3", "ipykernel==6.17.1", "ml-dtypes==0.5.4"} <= pins
    names = {word.partition("==")[0] for word in asked}
    assert not {"onnx", "onnxruntime", "onnxscript", "jupyterlab", "pytest"} & names


@pytest.mark.parametrize(("error", "name"), [(NOT_FOUND, "psutil"), (CONFLICT, "tornado")])
def test_a_pin_that_cannot_be_had_is_left_out_and_named(error, name):
    pip = Pip(error)
    different = command.install("python", command.read_pins(), pip)
    assert list(different) == [name]
    assert different[name].startswith(f"{command.read_pins()[name]}: ")
    first, second = ([word for word in asked if "==" in word] for asked in pip.asked)
    assert len(first) == len(command.read_pins())
    assert set(first) - set(second) == {f"{name}=={command.read_pins()[name]}"}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (NOT_FOUND.replace("psutil==5.9.5", "torch==2.11.0"), "No matching distribution found for"),
        (
            "WARNING: Retrying\nERROR: no route",
            "pip cannot install Colab's versions here: no route",
        ),
        ("", "no message"),
    ],
)
def test_without_torch_or_a_name_there_is_nothing_to_test(error, sentence):
    if not error:
        assert command.last_line(error) == sentence
        return
    with pytest.raises(CannotTestError, match=sentence):
        command.install("python", command.read_pins(), Pip(error))


def test_a_finished_environment_is_shared_and_says_again_what_differs(capsys):
    pins = command.read_pins()
    first = command.make_environment(pins, "python3", Pip(NOT_FOUND))
    assert "this takes minutes" in capsys.readouterr().out
    again = Pip()
    assert command.make_environment(pins, "python3", again) == first
    assert again.asked == []
    assert list(first[1]) == ["psutil"]
    assert first[0].is_relative_to(sys.prefix)
    for other in (command.read_pins("2.13.0"), pins | {"numpy": "2.0.2"}):
        assert command.environment_folder(other, "python3") != first[0].parents[1]
    assert command.environment_folder(pins, "python4") != first[0].parents[1]


def test_an_interrupted_one_is_made_again():
    folder = command.environment_folder(command.read_pins(), "python3")
    (folder / "half").mkdir(parents=True)
    pip = Pip()
    command.make_environment(command.read_pins(), "python3", pip)
    assert pip.asked[0][1:3] == ["-m", "venv"]
    assert not (folder / "half").exists()


def test_colabs_python_is_taken_where_it_starts():
    assert command.find_python(lambda name: None) == sys.executable
    older = sys.version_info[:2] != (3, 13)
    assert command.find_python(lambda name: sys.executable) == sys.executable
    assert not older or command.find_python(lambda name: "false") == sys.executable


# Running notebooks ----------------------------------------------------------------------------


def test_the_course_is_laid_without_what_git_ignores(tmp_path):
    root = tmp_path / "origin"
    (root / "helpers").mkdir(parents=True)
    for name in ("helpers/a.py", "new.py", "secret.txt"):
        (root / name).write_text(name)
    (root / ".gitignore").write_text("secret.txt\n")
    for words in (["init", "-q"], ["add", "helpers"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    command.lay_content(tmp_path / "content", root)
    laid = [p for p in (tmp_path / "content/course").rglob("*") if p.is_file()]
    assert sorted(p.name for p in laid) == [".gitignore", "a.py", "new.py"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    environment = SmallEnvironment(tmp_path_factory.mktemp("colab") / "venv")
    command.lay_stand_in(environment.python)
    return environment


def run(small, tmp_path, *cells, **options):
    path = write(tmp_path / "12_count.ipynb", notebook(*cells))
    content = tmp_path / "content"
    content.mkdir()
    return command.execute(path, small.python, content, **options)


def test_cells_run_as_on_colab_in_that_environment_and_folder(small, tmp_path):
    result = run(
        small,
        tmp_path,
        code("import os, sys\nassert 'google.colab' in sys.modules"),
        code(f"assert sys.prefix == {str(small.python.parents[1])!r}, sys.prefix"),
        code(f"assert os.getcwd() == {str(tmp_path / 'content')!r}, os.getcwd()"),
        code("assert not {'PYTHONPATH', 'OMP_NUM_THREADS'} & set(os.environ)"),
        code("assert os.environ['COURSE_HOME'] and not os.listdir(os.environ['COURSE_HOME'])"),
        "And it may raise:",
        code("1 / 0", tags=["raises-exception"]),
    )
    assert (result.name, result.cells, result.error) == ("12_count", 6, "")
    assert str(result).endswith("every cell ran")
    assert small.ask("import sys; print('google.colab' in sys.modules)") == "False"


def test_a_failing_assertion_is_named_with_its_cell(small, tmp_path):
    result = run(small, tmp_path, code("x = 1"), "Text.", code("assert x == 2, 'one is not two'"))
    assert result.error == "cell 3: AssertionError: one is not two"
    assert result.error in str(result)


def test_a_cell_that_takes_too_long_is_named(small, tmp_path):
    slow = "import time\ntime.sleep(60)"
    result = run(small, tmp_path, code("x = 1"), code(slow), timeout=2)
    assert result.error == "cell 2 took more than 2 s"


def test_a_kernel_that_dies_fails_its_notebook_only(small, tmp_path):
    result = run(small, tmp_path, code("import os\nos._exit(1)"))
    assert "DeadKernelError" in result.error


def test_an_interrupt_ends_the_whole_run_and_the_kernel(small, tmp_path):
    source = (
        f"import os, pathlib, signal, time\npathlib.Path({str(tmp_path / 'pid')!r})"
        ".write_text(str(os.getpid()))\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)"
    )
    with pytest.raises(KeyboardInterrupt):
        run(small, tmp_path, code(source))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


# The command ----------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch, tmp_path):
    for name in ("12_a", "13_b"):
        nbformat.write(nbformat.v4.new_notebook(), tmp_path / f"{name}.ipynb")
    paths = sorted(tmp_path.glob("*.ipynb"))
    monkeypatch.setattr(command.notebooks, "find", lambda names: paths)
    for name in ("lay_content", "lay_stand_in"):
        monkeypatch.setattr(command, name, lambda folder: None)
    monkeypatch.setattr(command, "describe", lambda python: f"{python} with torch")


def make(pins, python):
    return Path("made"), {"psutil": "5.9.5: none here"}


def test_it_prints_a_table_and_succeeds_when_all_ran(quick, capsys):
    code = command.main([], lambda path, *rest: Result(path.stem, 3, 1.6), make)
    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines == [
        "Not as on Colab: psutil 5.9.5: none here",
        "made with torch",
        command.HEADING,
        f"{'12_a':<36}{3:>6}{2:>9}  every cell ran",
        f"{'13_b':<36}{3:>6}{2:>9}  every cell ran",
        "all 2 ran",
    ]


def test_it_fails_when_one_failed_and_runs_the_others(quick, capsys):
    def one(path, *rest):
        return Result(path.stem, 3, 1.0, "cell 3: ValueError: no" * (path.stem == "12_a"))

    assert command.main([], one, make) == 1
    said = capsys.readouterr().out
    assert "  cell 3: ValueError: no\n13_b" in said
    assert said.endswith("1 of 2 failed: 12_a\n")


def test_without_an_environment_nothing_is_tested_and_it_says_why(quick, capsys):
    def fails(pins, python):
        raise CannotTestError("pip cannot install Colab's versions here: no route")

    assert command.main([], None, fails) == 2
    said = capsys.readouterr().err
    assert said == "Nothing was tested. pip cannot install Colab's versions here: no route\n"


def test_an_interrupt_is_said_and_ends_with_its_code(quick, capsys):
    def one(path, *rest):
        raise KeyboardInterrupt

    assert command.main([], one, make) == 130
    assert capsys.readouterr().err == "Interrupted.\n"
    assert command.main([], None, lambda *_: one(None)) == 130


def test_a_python_that_is_not_there_is_a_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command.notebooks, "find", lambda names: [])
    assert command.main(["--python", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("Nothing was tested. [Errno 2]")


def test_the_torch_and_the_python_can_be_chosen(quick, capsys):
    asked = []

    def keep(pins, python):
        asked.append(pins["torch"])
        return make(pins, python)

    def fine(path, python, content):
        return Result(path.stem, 1, 1.0)

    assert command.main(["--torch", "2.13.0"], fine, keep) == 0
    assert asked == ["2.13.0"]
    assert command.main(["--python", "mine"], fine, keep) == 0
    assert asked == ["2.13.0"]
    assert "mine with torch" in capsys.readouterr().out
