import ast
import errno
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

import course
from helpers._paths import ROOT
from tools import check
from tools import test as test_command

Usage = namedtuple("Usage", "total used free")
FITTING = course.Python(sys.executable, sys.version_info[:2])
MISSING = "ERROR: Could not find a version\nERROR: No matching distribution for x\nnote: a hint\n"
OFFLINE = "WARNING: Retrying (Retry(total=0)) after 'NewConnectionError(...)'\n" + MISSING
CONFLICT = (
    "ERROR: Cannot install a because of b.\n\nERROR: ResolutionImpossible: for help visit x\n"
)
posix_only = pytest.mark.skipif(os.name == "nt", reason="shell scripts stand in for programs")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The place of an environment that does not exist yet, in a path with a space."""
    folder = tmp_path / "with a space" / "env"
    monkeypatch.setenv("COURSE_VENV", str(folder))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    return folder


class Steps:
    """Stand in for venv, pip and the command; remember what was asked."""

    def __init__(self):
        self.done, self.pip_fails_with, self.killed = [], None, False

    def run_locked(self, command, lock, **options):
        kind = "pip" if "pip" in command else "venv"
        self.done.append(kind)
        if self.killed:
            raise KeyboardInterrupt
        if kind == "venv":
            make_environment(Path(command[-1]))
        else:
            self.pip = command, options
        text = (self.pip_fails_with or "") if kind == "pip" else ""
        code = f"import sys; sys.stderr.write({text!r}); sys.exit({int(bool(text))})"
        return subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )


def make_environment(folder):
    """Lay a link where an environment has its interpreter."""
    inside = Path(course.python_inside(str(folder)))
    inside.parent.mkdir(parents=True, exist_ok=True)
    if not inside.exists():
        inside.symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text("")


@pytest.fixture
def steps(monkeypatch, folder):
    steps = Steps()
    monkeypatch.setattr(course, "run_locked", steps.run_locked)
    monkeypatch.setattr(course, "find_python", lambda: FITTING)
    monkeypatch.setattr(course.shutil, "disk_usage", lambda _: Usage(0, 0, 100 * 10**9))

    def hand_over(python, command, arguments):
        steps.done.append("command")
        steps.command = python, command, arguments
        return 7

    monkeypatch.setattr(course, "hand_over", hand_over)
    return steps


def sentence(capsys):
    """Return what a failure printed, and see that it is one sentence."""
    error = capsys.readouterr().err
    assert error.endswith(".\n")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


# The way that works


@posix_only
def test_the_first_start_makes_the_environment_then_hands_over(steps, folder, capsys):
    assert course.main(["lab", "--no-browser"]) == 7
    assert steps.done == ["venv", "pip", "command"]
    assert steps.command == (course.python_inside(str(folder)), "lab", ["--no-browser"])
    command, options = steps.pip
    assert command[1:8] == ["-m", "pip", "install", "-c", "constraints.txt", "-e", ".[deploy]"]
    assert options["cwd"] == str(ROOT)


@posix_only
def test_the_second_start_runs_neither_venv_nor_pip(steps, capsys):
    course.main(["lab"])
    capsys.readouterr()
    assert course.main(["lab"]) == 7
    assert steps.done == ["venv", "pip", "command", "command"]
    assert capsys.readouterr().out == ""


@posix_only
def test_a_command_that_needs_more_installs_more_and_the_other_keeps_working(steps, capsys):
    course.main(["lab"])
    course.main(["test"])
    assert ".[deploy,test]" in steps.pip[0]
    course.main(["lab"])
    course.main(["check"])
    assert steps.done.count("pip") == 2
    assert steps.done.count("venv") == 1


@posix_only
@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_new_list_of_packages_is_installed_into_the_same_environment(
    steps, tmp_path, monkeypatch, capsys, name
):
    root = tmp_path / "checkout"
    root.mkdir()
    for file in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, root)
    monkeypatch.setattr(course, "ROOT", str(root))
    course.main(["test"])
    with (root / name).open("a") as file:
        file.write("# newer\n")
    course.main(["lab"])
    assert steps.done == ["venv", "pip", "command", "pip", "command"]
    assert ".[deploy,test]" in steps.pip[0], "what another command needs is kept"


@posix_only
def test_a_checkout_that_moved_is_installed_again(steps, tmp_path, monkeypatch, capsys):
    course.main(["lab"])
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, moved)
    monkeypatch.setattr(course, "ROOT", str(moved))
    course.main(["lab"])
    assert steps.done.count("pip") == 2


@posix_only
def test_the_reader_s_pip_settings_reach_pip(steps, monkeypatch, capsys):
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///wheels/cpu")
    monkeypatch.setenv("PIP_USER", "1")
    course.main(["lab"])
    settings = steps.pip[1]["env"]
    assert settings["PIP_EXTRA_INDEX_URL"] == "file:///wheels/cpu"
    assert settings["PIP_USER"] == "0", "a user install is impossible in an environment"


def test_every_command_is_a_module_of_tools():
    for command in course.COMMANDS:
        name = course.MODULES.get(command, command.replace("-", "_"))
        assert (ROOT / "tools" / f"{name}.py").exists(), command
        assert importlib.util.find_spec(f"tools.{name}")


def test_make_knows_every_command():
    text = (ROOT / "Makefile").read_text()
    assert set(course.COMMANDS) <= set(text.split())


def test_help_lists_the_commands_and_is_no_failure(capsys):
    assert course.main(["help"]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in course.COMMANDS)


def test_no_command_at_all_lists_them_too(capsys):
    assert course.main([]) == 2
    assert "lab" in capsys.readouterr().out


@posix_only
def test_the_command_s_exit_code_comes_back(tmp_path):
    tools = tmp_path / "a b" / "tools"
    tools.mkdir(parents=True)
    (tools / "__init__.py").touch()
    (tools / "two_words.py").write_text("import sys; print(sys.argv[1:]); sys.exit(3)")
    code = (
        f"import course; course.ROOT = {str(tools.parent)!r}; "
        "course.hand_over(course.sys.executable, 'two-words', ['x y'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "['x y']\n")


# Interrupted and simultaneous starts


@posix_only
def test_an_interrupted_install_is_redone_from_the_start(steps, folder, capsys):
    course.main(["lab"])
    (Path(folder) / course.STAMP).unlink()  # as a killed install leaves it
    rest = Path(folder) / "lib" / "half.py"
    rest.parent.mkdir()
    rest.write_text("half a module")
    assert course.main(["lab"]) == 7
    assert steps.done == ["venv", "pip", "command"] * 2
    assert not rest.exists()


@posix_only
def test_ctrl_c_is_one_sentence_and_leaves_no_stamp(steps, folder, capsys):
    steps.killed = True
    assert course.main(["lab"]) == 130
    assert "Interrupted; run the same command again" in sentence(capsys)
    assert not (folder / course.STAMP).exists()
    steps.killed = False
    assert course.main(["lab"]) == 7


@posix_only
@pytest.mark.parametrize("errors", [OFFLINE, MISSING, CONFLICT])
def test_an_install_that_changed_nothing_leaves_the_installed_course_working(
    steps, folder, capsys, errors
):
    course.main(["lab"])
    before = (folder / course.STAMP).read_text()
    steps.pip_fails_with = errors
    assert course.main(["test"]) == 1
    assert (folder / course.STAMP).read_text() == before
    assert course.main(["lab"]) == 7
    assert (steps.done.count("venv"), steps.done.count("pip")) == (1, 2)


@posix_only
@pytest.mark.parametrize("errors", ["Killed\n", "ERROR: [Errno 28] No space left on device\n"])
def test_an_install_that_may_have_changed_something_is_redone(steps, folder, capsys, errors):
    course.main(["lab"])
    steps.pip_fails_with = errors
    assert course.main(["test"]) == 1
    assert not (folder / course.STAMP).exists()
    steps.pip_fails_with = None
    assert course.main(["lab"]) == 7
    assert steps.done.count("venv") == 2


@posix_only
def test_a_stamp_that_is_damaged_counts_as_none(steps, folder, capsys):
    course.main(["lab"])
    for text in ("", "[]", "{", '{"key": 1}'):
        (folder / course.STAMP).write_text(text)
        assert course.main(["lab"]) == 7
    assert steps.done.count("pip") == 5


@posix_only
def test_an_environment_whose_python_went_away_is_made_again(steps, folder, capsys):
    course.main(["lab"])
    inside = Path(course.python_inside(str(folder)))
    inside.unlink()
    inside.symlink_to("/nonexistent/python3.11")
    assert course.main(["lab"]) == 7
    assert steps.done.count("venv") == 2


@posix_only
def test_two_starts_at_once_install_once(tmp_path):
    code = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(ROOT)!r})
import course
from tests import test_course
def run_locked(command, lock, **options):
    print("pip" if "pip" in command else "venv", flush=True)
    if "venv" in command: test_course.make_environment(test_course.Path(command[-1]))
    time.sleep(0.5)
    return subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
course.run_locked = run_locked
course.find_python = lambda: test_course.FITTING
course.require_space = lambda folder: None
course.hand_over = lambda *_: print("command", flush=True) or 0
sys.exit(course.main(["lab"]))
"""
    environ = dict(os.environ, COURSE_VENV=str(tmp_path / "env"))
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    words = " ".join(start.communicate(timeout=60)[0] for start in starts).split()
    assert [start.returncode for start in starts] == [0, 0]
    assert [words.count(word) for word in ("venv", "pip", "command")] == [1, 1, 2]


@posix_only
def test_pip_holds_the_lock_after_its_start_was_killed(tmp_path):
    folder = tmp_path / "env"
    folder.mkdir()
    with course.locked(str(folder)) as lock:
        orphan = course.run_locked([sys.executable, "-c", "input()"], lock, stdin=subprocess.PIPE)
    with (folder / course.LOCK).open("a+") as file:
        assert course.try_lock(file) is False
        orphan.communicate(b"\n")
        assert course.try_lock(file) is True


@posix_only
def test_a_folder_without_locks_is_used_without_one(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with course.locked(str(tmp_path)):
        pass
    assert (tmp_path / course.LOCK).exists()


# Which Python


def python(version, **facts):
    return course.Python("/fake/python", version, **facts)


def choose(monkeypatch, running, *others):
    """Run find_python where the running interpreter and the others are as given."""
    answers = iter([running, *others])
    monkeypatch.setattr(course, "other_commands", lambda: [[str(n)] for n in range(len(others))])
    monkeypatch.setattr(course, "probe", lambda _: next(answers))
    monkeypatch.setattr(course.sys, "version_info", (*running.version, 0, "final", 0))
    return course.find_python()


def test_the_running_python_is_taken_when_it_fits(monkeypatch):
    running = python((3, 12))
    assert choose(monkeypatch, running) is running


@pytest.mark.parametrize("version", [(3, 6), (3, 10), (3, 15)])
def test_another_python_is_taken_when_the_running_one_does_not_fit(monkeypatch, version):
    broken_shim, other = None, python((3, 13))
    assert choose(monkeypatch, python(version), broken_shim, python((3, 15)), other) is other


def test_a_python_that_can_make_environments_goes_before_one_that_cannot(monkeypatch):
    other = python((3, 13))
    assert choose(monkeypatch, python((3, 12), can_make_venv=False), other) is other


@pytest.mark.parametrize(
    ("running", "says"),
    [
        (python((3, 10)), "Python 3.10 is too old for the course, which needs 3.11 to 3.14"),
        (python((3, 15)), "Python 3.15 is newer than PyTorch supports, which is 3.11 to 3.14"),
        (python((3, 13), is_64_bit=False), "This Python 3.13 is a 32-bit one"),
    ],
)
def test_without_a_fitting_python_the_sentence_says_which_to_install(monkeypatch, running, says):
    with pytest.raises(course.SetupError) as error:
        choose(monkeypatch, running)
    assert str(error.value).startswith(says)
    assert "install" in str(error.value)
    assert "python.org" in str(error.value)


def test_a_python_without_venv_names_the_package_to_install(monkeypatch):
    with pytest.raises(course.SetupError, match=r"`sudo apt install python3\.12-venv`"):
        choose(monkeypatch, python((3, 12), can_make_venv=False))


def test_the_running_python_is_probed_as_it_is():
    found = course.probe([sys.executable])
    assert found.fits
    assert found.version == sys.version_info[:2]


@pytest.mark.parametrize("command", [["/nonexistent/python"], [sys.executable, "-c", "0", "-c"]])
def test_what_is_no_python_is_passed_over(command):
    assert course.probe(command) is None


@posix_only
def test_others_are_looked_for_on_the_path_the_newest_tested_first(monkeypatch, tmp_path):
    for version in ("3.11", "3.13", "3.15"):
        fake = tmp_path / f"python{version}"
        fake.write_text("#!/bin/sh\nexit 127\n")
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    names = [os.path.basename(command[0]) for command in course.other_commands()]
    assert names == ["python3.13", "python3.11"]


def test_on_windows_the_launcher_is_asked(monkeypatch):
    monkeypatch.setattr(course.os, "name", "nt")
    assert course.other_commands()[0] == ["py", "-3.13"]


def test_the_file_parses_on_python_3_6():
    ast.parse((ROOT / "course.py").read_text(), feature_version=(3, 6))


@posix_only
@pytest.mark.parametrize("name", ["python3.6", "python3.8", "python3.10"])
def test_an_old_python_gets_a_sentence(name, tmp_path):
    """Run a real old Python where there is one, with no other on the path."""
    old = course.probe([name])
    if old is None:
        old = FITTING  # none here: the running one pretends
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import course; "
        f"sys.version_info = {(*map(int, name[6:].split('.')), 0, 'final', 0)}; "
        "course.Python.fits = False; sys.exit(course.main(['lab']))"
    )
    environ = dict(os.environ, PATH=str(bin_folder), COURSE_VENV=str(tmp_path / "env"))
    done = subprocess.run(
        [old.path, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"Python {name[6:]} is too old for the course")
    assert done.stderr.count("\n") == 1


# Everything else that can go wrong


def test_an_unknown_command_lists_the_known_ones(capsys):
    assert course.main(["lob"]) == 1
    assert sentence(capsys) == (
        f"There is no command 'lob'; the commands are {', '.join(course.COMMANDS)}.\n"
    )


@posix_only
def test_an_intel_mac_is_told_where_the_course_runs(steps, monkeypatch, capsys):
    monkeypatch.setattr(course.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(course, "find_python", lambda: python((3, 13), machine="x86_64"))
    assert course.main(["lab"]) == 1
    assert "PyTorch has no wheels for Intel Macs; use Google Colab" in sentence(capsys)
    assert steps.done == []


@posix_only
@pytest.mark.parametrize(
    ("system", "index", "free", "enough"),
    [
        ("Linux", "", 5.9e9, False),
        ("Linux", "", 6.1e9, True),
        ("Linux", "https://wheels.example/whl/cpu", 2.1e9, True),
        ("Darwin", "", 1.9e9, False),
        ("Windows", "", 2.1e9, True),
    ],
)
def test_a_full_disk_is_seen_before_the_download(
    steps, monkeypatch, capsys, system, index, free, enough
):
    monkeypatch.setattr(course.platform, "system", lambda: system)
    monkeypatch.setattr(course.shutil, "disk_usage", lambda _: Usage(0, 0, int(free)))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index)
    assert course.main(["lab"]) == (7 if enough else 1)
    if not enough:
        assert "GB free; free some space, set COURSE_VENV" in sentence(capsys)
        assert steps.done == []


@posix_only
def test_an_installed_course_starts_on_a_full_disk(steps, monkeypatch, capsys):
    course.main(["lab"])
    monkeypatch.setattr(course.shutil, "disk_usage", lambda _: Usage(0, 0, 0))
    assert course.main(["lab"]) == 7


@posix_only
@pytest.mark.parametrize(
    ("errors", "says"),
    [
        (OFFLINE, "pip could not reach the package index (No matching distribution for x); check"),
        (MISSING, "pip could not install the course (No matching distribution for x); mend that"),
        (CONFLICT, "pip could not install the course (Cannot install a because of b); mend that"),
        ("ERROR: [Errno 28] No space left on device\n", "The disk filled up during the install"),
        ("/env/bin/python: No module named pip\n", "The environment has no pip; delete it"),
        ("Killed\n", "pip could not install the course (Killed)"),
    ],
)
def test_a_failed_install_is_one_sentence_and_is_tried_again(steps, capsys, errors, says):
    steps.pip_fails_with = errors
    assert course.main(["lab"]) == 1
    error = sentence(capsys)
    assert error.startswith(says)
    assert error.endswith("run the same command again.\n")
    steps.pip_fails_with = None
    assert course.main(["lab"]) == 7


@posix_only
def test_a_real_pip_without_a_network_is_one_sentence(tmp_path):
    """The real venv and the real pip, against an index that refuses the connection."""
    environ = {
        name: value for name, value in os.environ.items() if not name.upper().startswith("PIP_")
    }
    environ.update(
        COURSE_VENV=str(tmp_path / "an env"),
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_RETRIES="1",
    )
    code = (
        "import course, sys; course.require_space = lambda _: None; sys.exit(course.main(['lab']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("pip could not reach the package index (")
    assert done.stderr.count("\n") == 1


@posix_only
def test_a_failed_venv_names_the_package(steps, monkeypatch, capsys):
    def fail(command, lock, **_):
        code = "import sys; print('Error: Command ensurepip returned 1.'); sys.exit(1)"
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)

    monkeypatch.setattr(course, "run_locked", fail)
    assert course.main(["lab"]) == 1
    error = sentence(capsys)
    assert "could not make the environment (Error: Command ensurepip returned 1)" in error
    assert "-venv`" in error


@posix_only
def test_a_folder_that_cannot_be_written_is_named(steps, tmp_path, monkeypatch, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("COURSE_VENV", str(blocked / "env"))
    assert course.main(["lab"]) == 1
    assert "cannot be written (" in sentence(capsys)


@posix_only
def test_a_folder_with_other_files_is_never_touched(steps, folder, capsys):
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")
    assert course.main(["lab"]) == 1
    assert "holds files that are no environment of the course" in sentence(capsys)
    assert os.listdir(folder) == ["thesis.txt"]


@posix_only
def test_an_environment_of_the_reader_is_used_but_never_cleared(steps, folder, capsys):
    make_environment(folder)
    mine = folder / "mine.txt"
    mine.write_text("mine")
    assert course.main(["lab"]) == 7
    (folder / course.STAMP).unlink()
    assert course.main(["lab"]) == 7
    assert steps.done == ["pip", "command"] * 2
    assert mine.exists()


@posix_only
def test_an_environment_of_the_reader_without_python_is_refused(steps, folder, capsys):
    folder.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("")
    assert course.main(["lab"]) == 1
    assert "was not made by the course" in sentence(capsys)


@posix_only
def test_any_other_refusal_of_the_system_is_one_sentence(steps, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(course, "create", refuse)
    assert course.main(["lab"]) == 1
    assert "The system refused a step ([Errno 5] Input/output error)" in sentence(capsys)


# Wheels from a folder


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder with one wheel and its sum, as COURSE_WHEELS names it."""
    wheels = tmp_path / "the wheels"
    wheels.mkdir()
    content = b"a wheel"
    (wheels / "tiny-1-py3-none-any.whl").write_bytes(content)
    sum_of_it = hashlib.sha256(content).hexdigest()
    (wheels / course.WHEEL_SUMS).write_text(f"{sum_of_it}  tiny-1-py3-none-any.whl\n")
    monkeypatch.setenv("COURSE_WHEELS", str(wheels))
    return wheels


@posix_only
def test_with_a_folder_of_wheels_pip_asks_no_index(steps, wheels, monkeypatch, capsys):
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://wheels.example")
    monkeypatch.setenv("PIP_FIND_LINKS", "https://wheels.example")
    assert course.main(["lab"]) == 7
    command, options = steps.pip
    assert command[command.index("--no-index") :][:3] == ["--no-index", "--find-links", str(wheels)]
    pip = {name for name in options["env"] if name.startswith("PIP_")}
    assert pip == {"PIP_CONFIG_FILE", "PIP_DISABLE_PIP_VERSION_CHECK"}
    assert options["env"]["PIP_CONFIG_FILE"] == os.devnull


@posix_only
def test_an_installed_course_needs_its_wheels_no_more(steps, wheels, capsys):
    course.main(["lab"])
    shutil.rmtree(wheels)
    assert course.main(["lab"]) == 7
    assert steps.done.count("pip") == 1


@posix_only
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / course.WHEEL_SUMS).unlink(), "has no SHA256SUMS; make it with"),
        (lambda folder: shutil.rmtree(folder), "has no SHA256SUMS; make it with"),
        (lambda folder: (folder / course.WHEEL_SUMS).write_text("0badcafe"), "is damaged"),
        (lambda folder: (folder / "tiny-1-py3-none-any.whl").unlink(), "whl is missing in"),
        (lambda folder: (folder / "tiny-1-py3-none-any.whl").write_bytes(b"a whel"), "is damaged"),
    ],
)
def test_a_folder_of_wheels_that_is_not_whole_is_named(steps, wheels, capsys, spoil, says):
    spoil(wheels)
    assert course.main(["lab"]) == 1
    error = sentence(capsys)
    assert says in error
    assert str(wheels) in error
    assert "pip" not in steps.done


@posix_only
@pytest.mark.parametrize(("errors", "missing"), [(MISSING, True), (CONFLICT, True), ("Killed", 0)])
def test_a_wheel_for_another_computer_is_one_sentence(steps, wheels, capsys, errors, missing):
    steps.pip_fails_with = errors
    assert course.main(["lab"]) == 1
    error = sentence(capsys)
    assert error.startswith("A wheel for this computer is missing in") == bool(missing)
    assert not missing or "same system and the same version of Python" in error
    assert course.main(["test"]) == 1
    assert ("wheelhouse FOLDER --all`" in sentence(capsys)) == bool(missing)


@posix_only
def test_the_space_that_is_needed_follows_from_the_wheels(wheels):
    small = course.space_needed()
    assert small == 5 * sum(path.stat().st_size for path in wheels.iterdir())
    with (wheels / "huge-1-py3-none-any.whl").open("wb") as file:
        file.truncate(5 * 10**9)
    assert course.space_needed() == 6 * 10**9


BACKEND = """
import zipfile
def get_requires_for_build_editable(config_settings=None): return []
def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(wheel_directory + "/fake-1-py3-none-any.whl", "w") as file:
        file.writestr("fake-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: fake\\n"
                      "Version: 1\\nRequires-Dist: tiny\\n")
        file.writestr("fake-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        file.writestr("fake-1.dist-info/RECORD", "")
    return "fake-1-py3-none-any.whl"
"""


def write_tiny_wheel(folder):
    """Write a wheel of one module, as pip installs it."""
    path = folder / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny.py", "value = 42\n")
        file.writestr(
            "tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n"
        )
        file.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr("tiny-1.dist-info/RECORD", "")
    return path


@pytest.fixture
def fake_course(tmp_path):
    """A course that needs one tiny package, and whose command prints what that holds."""
    root = tmp_path / "a course"
    (root / "tools").mkdir(parents=True)
    (root / "tools" / "__init__.py").touch()
    (root / "tools" / "lab.py").write_text("import tiny; print(tiny.value)")
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        "[project]\nname = 'fake'\nversion = '1'\ndependencies = ['tiny']\n"
    )
    (root / "constraints.txt").touch()
    shutil.copy(ROOT / "course.py", root)
    return root


@posix_only
def test_a_real_pip_installs_from_the_wheels_and_asks_nobody(tmp_path, wheels, fake_course):
    """The real venv and the real pip; every index that a setting names refuses the connection."""
    wheel = write_tiny_wheel(wheels)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (wheels / course.WHEEL_SUMS).write_text(f"{digest}  {wheel.name}\n")
    environ = dict(
        os.environ,
        COURSE_VENV=str(tmp_path / "an env"),
        COURSE_WHEELS=str(wheels),
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_FIND_LINKS="http://127.0.0.1:9/links",
        PIP_RETRIES="0",
    )
    command = [sys.executable, "course.py", "lab"]
    done = subprocess.run(
        command, cwd=fake_course, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "42"), done.stderr
    assert "127.0.0.1" not in done.stderr


# The commands that hand over to other programs


def test_the_tests_run_in_the_reference_environment(tmp_path):
    environ = test_command.reference_environment(
        {"OMP_NUM_THREADS": "8", "COURSE_HOME": "/mine", "PATH": "x"}, str(tmp_path)
    )
    assert (environ["OMP_NUM_THREADS"], environ["COLUMNS"], environ["PATH"]) == ("1", "80", "x")
    assert environ["COURSE_HOME"].startswith(str(tmp_path))
    assert not os.path.exists(environ["COURSE_HOME"]), "progress starts empty"


@pytest.mark.parametrize(
    ("arguments", "cores", "tail"),
    [
        ([], 8, ["-n", "2", "--dist", "loadfile"]),
        ([], 1, []),
        ([], None, []),
        (["tests/test_course.py", "-q"], 8, ["tests/test_course.py", "-q"]),
    ],
)
def test_everything_runs_in_two_workers_and_a_part_runs_as_asked(arguments, cores, tail):
    command = test_command.pytest_command(arguments, cores)
    assert command == [sys.executable, "-m", "pytest", *tail]


def test_check_runs_the_course_s_lints_where_they_are(tmp_path):
    names = [command[2:] for command in check.commands(tmp_path)]
    assert names == [["ruff", "check"], ["ruff", "format", "--check"]]
    (tmp_path / "tests").mkdir()
    (tmp_path / check.FORMAT_TESTS).touch()
    assert check.commands(tmp_path)[2][2:] == ["pytest", "-q", check.FORMAT_TESTS]


def test_check_runs_every_lint_and_reports_the_first_failure(monkeypatch):
    monkeypatch.setattr(check, "commands", lambda _: ["a", "b", "c"])
    codes = {"a": 0, "b": 2, "c": 1}
    ran = []

    def call(command, cwd):
        ran.append(command)
        return codes[command]

    monkeypatch.setattr(check.subprocess, "call", call)
    assert check.main([]) == 2
    assert ran == ["a", "b", "c"]
