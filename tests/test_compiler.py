"""Why torch.compile cannot build, and that notebook 61 runs to its end where it cannot."""

import os
import subprocess
import sys
import tempfile

import nbformat
import pytest

from helpers import compiler
from helpers._paths import ROOT


@pytest.fixture
def plain(monkeypatch):
    """A machine on which everything is in order, whatever this one is."""
    monkeypatch.setattr(compiler, "places", lambda: {"environment": "/a", "cache": "/b"})
    monkeypatch.setattr(compiler.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(compiler, "builds", lambda name: True)
    monkeypatch.setattr(compiler.sysconfig, "get_path", lambda name: str(HEADERS))
    return monkeypatch


HEADERS = ""


@pytest.fixture(autouse=True)
def headers(tmp_path):
    global HEADERS
    (tmp_path / "Python.h").write_text("")
    HEADERS = tmp_path


def test_nothing_is_refused_where_everything_is_there(plain):
    assert compiler.refusal() is None


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("environment", "COURSE_VENV"),
        ("cache", "TORCHINDUCTOR_CACHE_DIR"),
        ("temporary files", "TMPDIR"),
    ],
)
def test_a_space_is_named_with_the_variable_that_moves_the_folder(plain, name, variable):
    plain.setattr(compiler, "places", lambda: {"other": "/a", name: "/b c"})
    said = compiler.refusal()
    assert said.startswith(f"not measured here: the path of the {name} has a space; set {variable}")
    assert "to a folder without one" in said


def test_the_places_are_read_from_the_environment(monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/my env")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/cache")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp x")
    assert compiler.with_spaces(compiler.places()) == ["environment", "temporary files"]
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/tmp x/cache")
    assert "cache" not in compiler.places()  # moving the temporary files moves it too


@pytest.mark.parametrize("cxx", ["", "no-such-compiler", "g++ -O2"])
def test_cxx_is_one_program_and_is_named_when_it_is_missing(monkeypatch, cxx):
    monkeypatch.setattr(compiler, "places", dict)
    monkeypatch.setenv("CXX", cxx)
    said = compiler.refusal()
    assert said.startswith(f"not measured here: needs a C++ compiler ({cxx!r} is not found)")
    assert "build-essential" in said


def test_without_a_compiler_on_the_path_the_default_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "places", dict)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f"({compiler.command()} is not found)" in compiler.refusal()


@pytest.mark.parametrize(
    ("platform", "name"), [("linux", "g++"), ("darwin", "clang++"), ("win32", "cl")]
)
def test_each_system_has_the_default_that_torch_has(monkeypatch, platform, name):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert compiler.command() == name


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands in for the compiler")
def test_a_compiler_that_fails_is_not_believed(monkeypatch, tmp_path):
    fake = tmp_path / "cxx"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(compiler, "places", dict)
    monkeypatch.setenv("CXX", str(fake))
    assert "cannot build with OpenMP" in compiler.refusal()


def test_missing_headers_are_named(plain, tmp_path):
    (tmp_path / "Python.h").unlink()
    assert compiler.refusal() == ("not measured here: Python.h is missing; install python3-dev")


def test_a_gpu_needs_triton_and_the_cpu_does_not(plain):
    plain.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    assert compiler.refusal("cuda").endswith("needs the package triton")
    assert compiler.refusal("cpu") is None


NOTEBOOK = ROOT / "notebooks" / "61_compile_a_model.ipynb"


def program():
    """Return the notebook's code as one program, which needs no kernel."""
    cells = [c for c in nbformat.read(NOTEBOOK, as_version=4).cells if c.cell_type == "code"]
    assert len(cells) > 20
    return "\n\n".join(cell.source for cell in cells if "google.colab" not in cell.source)


@pytest.mark.parametrize(
    ("name", "said"),
    [("CXX", "needs a C++ compiler ('' is not found)"), ("TMPDIR", "temporary files has a space")],
)
def test_notebook_61_runs_to_its_end_and_says_what_it_does_not_measure(tmp_path, name, said):
    folder = tmp_path / "with a space"
    folder.mkdir()
    env = {**os.environ, "COURSE_HOME": str(tmp_path), name: "" if name == "CXX" else str(folder)}
    ran = subprocess.run(
        [sys.executable, "-c", program()], env=env, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    if compiler.with_spaces({"environment": sys.prefix}) and name == "CXX":
        said = "the path of the environment has a space"  # which is named first
    assert said in ran.stdout
    assert "A2-41" in ran.stdout
    assert "Unsupported: Data-dependent branching" in ran.stdout
    assert "InvalidCxxCompiler" in ran.stdout
    assert ran.stdout.count("not measured here") >= 8
    assert list(folder.iterdir()) == []
