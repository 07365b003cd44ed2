"""The browser tests say in one sentence what they lack, and stay out of the other tests."""

import subprocess
import sys

import pytest

from tools import test_browser as command


def test_without_chromium_the_command_names_the_fix(monkeypatch, capsys):
    monkeypatch.setattr(command, "find_chromium", lambda: None)
    assert command.main([]) == 2
    said = capsys.readouterr().err.strip()
    assert "apt-get install chromium" in said
    assert len(said.splitlines()) == 1


def test_the_first_known_name_on_the_path_is_taken():
    found = {"chromium-browser": "/bin/b", "google-chrome": "/bin/c"}
    assert command.find_chromium({}, found.get) == "/bin/b"
    assert command.find_chromium({}, {}.get) is None


def test_a_chosen_program_wins_and_a_missing_one_is_not_replaced():
    found = {"chromium": "/bin/a", "mine": "/opt/mine"}
    assert command.find_chromium({"CHROMIUM": "mine"}, found.get) == "/opt/mine"
    assert command.find_chromium({"CHROMIUM": "gone"}, found.get) is None


@pytest.mark.parametrize("arguments", [[], ["-x", "-q"]])
def test_arguments_reach_pytest(monkeypatch, arguments):
    called = []
    monkeypatch.setattr(command, "find_chromium", lambda: "/bin/a")
    monkeypatch.setattr(command.subprocess, "call", lambda c, **kw: called.append((c, kw)) or 0)
    assert command.main(arguments) == 0
    assert called[0][0][3:] == ["tests/browser", *(arguments or ["-q"])]
    assert called[0][1]["env"]["OMP_NUM_THREADS"] == "1"


def collected(*arguments):
    options = ["--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        check=False, cwd=command.ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    return [line for line in run.stdout.splitlines() if line.startswith("tests/browser/")]


def test_only_a_run_that_names_them_collects_the_browser_tests():
    # "browser" in the name of another file is no wish for them
    assert collected("tests", "tests/test_browser_command.py") == []
    assert len(collected("tests/browser")) > 10


def test_pictures_of_failures_are_named_and_an_empty_folder_goes(tmp_path, capsys):
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    full.mkdir()
    (full / "a.png").write_bytes(b"")
    command.say_where(empty)
    assert not empty.exists()
    assert capsys.readouterr().err == ""
    command.say_where(full)
    assert str(full) in capsys.readouterr().err
