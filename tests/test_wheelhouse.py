"""A folder of wheels holds what pyproject.toml asks for, with sums and a text."""

import os

import pytest
from test_course import write_tiny_wheel

from helpers._paths import ROOT
from tools import wheelhouse

PROJECT = """
[build-system]
requires = ["setuptools>=77"]
[project]
name = "x"
dependencies = ["tiny"]
[project.optional-dependencies]
deploy = ["onnx>=1"]
test = ["pytest"]
"""


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "a course"
    root.mkdir()
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "constraints.txt").write_text("tiny==1\n")
    return root


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A folder that pip finds the tiny wheel in, and nothing else anywhere."""
    offered = tmp_path / "offered"
    offered.mkdir()
    write_tiny_wheel(offered)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", offered.as_uri())
    return offered


def test_what_is_collected_builds_the_course_and_runs_its_notebooks(checkout):
    assert wheelhouse.requirements(checkout) == ["setuptools>=77", "tiny", "onnx>=1"]
    assert wheelhouse.requirements(checkout, tests=True)[-1] == "pytest"


def test_the_course_s_own_list_is_read():
    names = wheelhouse.requirements(ROOT)
    assert any(name.startswith("torch") for name in names)
    assert any(name.startswith("setuptools") for name in names), "pip builds the course itself"


def test_pip_works_under_the_course_s_constraints(checkout, tmp_path):
    command = wheelhouse.command(tmp_path, checkout)
    assert command[command.index("-c") + 1] == str(checkout / "constraints.txt")


def test_a_folder_is_filled_summed_described_and_found_whole(
    tmp_path, checkout, offered, monkeypatch, capfd
):
    monkeypatch.setattr(wheelhouse, "ROOT", checkout)
    monkeypatch.setattr(wheelhouse, "requirements", lambda root, *, tests: ["tiny"])
    folder = tmp_path / "the wheels"
    assert wheelhouse.main([str(folder)]) == 0
    assert "\n1 wheel for the notebooks, " in capfd.readouterr().out
    sums = (folder / wheelhouse.SUMS).read_text().split()
    assert sums == [
        wheelhouse.digest(offered / "tiny-1-py3-none-any.whl"),
        "tiny-1-py3-none-any.whl",
    ]
    assert "COURSE_WHEELS=" in (folder / "README.txt").read_text()
    assert wheelhouse.main([str(folder), "--check"]) == 0


def test_what_pip_cannot_collect_is_said_and_nothing_is_summed(
    tmp_path, checkout, offered, monkeypatch, capfd
):
    monkeypatch.setattr(wheelhouse, "ROOT", checkout)
    monkeypatch.setattr(wheelhouse, "requirements", lambda root, *, tests: ["absent"])
    assert wheelhouse.main([str(tmp_path / "wheels")]) == 1
    assert capfd.readouterr().err.endswith(
        "pip could not collect the wheels; mend what it names, then run this again.\n"
    )
    assert not (tmp_path / "wheels" / wheelhouse.SUMS).exists()


def test_a_wheel_that_is_damaged_missing_or_foreign_is_named(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / f"{name}-1-py3-none-any.whl").write_text(name)
    wheelhouse.describe(tmp_path)
    (tmp_path / "a-1-py3-none-any.whl").write_text("damaged")
    (tmp_path / "b-1-py3-none-any.whl").rename(tmp_path / "c-1-py3-none-any.whl")
    assert wheelhouse.main([str(tmp_path), "--check"]) == 1
    assert [line.partition(";")[0] for line in capsys.readouterr().out.splitlines()] == [
        "b-1-py3-none-any.whl is missing",
        "a-1-py3-none-any.whl differs from its sum",
        "c-1-py3-none-any.whl has no sum",
    ]


def test_sums_that_were_cut_off_are_named(tmp_path, capsys):
    (tmp_path / wheelhouse.SUMS).write_text("0badcafe")
    assert wheelhouse.main([str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out.startswith("SHA256SUMS is damaged; copy the folder again")


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert wheelhouse.main([str(tmp_path / "file")]) == 1
    assert "cannot be made: File exists" in capsys.readouterr().err


def test_a_folder_without_sums_is_no_folder_of_wheels(tmp_path, capsys):
    assert wheelhouse.main([str(tmp_path), "--check"]) == 1
    assert "holds no SHA256SUMS" in capsys.readouterr().err
