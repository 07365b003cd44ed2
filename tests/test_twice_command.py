"""The tests that run notebooks again and again are left out by default, and only they run here."""

import subprocess
import sys

import pytest

from tools import test_twice as command


def collected(*arguments):
    """Return the names of the tests that pytest would run on the reader states."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments, *command.STATES],
        check=False, cwd=command.test.ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    lines = [line.partition("::")[2] for line in run.stdout.splitlines()]
    return {name.partition("[")[0] for name in lines if name}


def test_by_default_each_notebook_is_executed_once_and_by_the_command_again():
    usual, again = collected(), collected("-m", "twice")
    assert usual
    assert again
    assert usual.isdisjoint(again)
    assert "test_every_solution_passes_and_the_progress_says_so" in usual
    assert "test_cells_run_twice_in_a_new_kernel_lose_nothing" in again


@pytest.mark.parametrize(
    ("numbers", "chosen"), [([], []), (["13"], ["-k", "13_"]), (["13", "42"], ["-k", "13_ or 42_"])]
)
def test_numbers_choose_notebooks(monkeypatch, numbers, chosen):
    told = []
    monkeypatch.setattr(command.test, "main", lambda arguments: told.append(arguments) or 0)
    assert command.main(numbers) == 0
    assert told[0][-len(command.STATES) :] == list(command.STATES)
    assert [each for each in told[0] if each == "-k" or "_ or" in each or each == "13_"] == chosen
