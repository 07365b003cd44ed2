"""The first cell brings a bare Colab runtime to the course and changes nothing that it has."""

import ast
import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest
from sample_notebooks import notebook
from small_environment import SmallEnvironment

from helpers import colab
from helpers._paths import ROOT
from tools import colab_cell
from tools.notebooks import canonical

PACKAGED = ("helpers/__init__.py", "helpers/_paths.py", "helpers/colab.py")
SHELL = """
import json, sys, types
source, on_colab = json.load(sys.stdin)
if on_colab:
    sys.modules["google.colab"] = types.ModuleType("google.colab")
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor", history_load_length=0)
shell.enable_html_pager = False
before = list(sys.path)
result = shell.run_cell(source)
error = str(result.error_in_exec or result.error_before_exec or "")
new = [path for path in sys.path if path not in before]
print("\\x1e" + json.dumps([error, new, "helpers" in sys.modules]))
"""


# Small packages and a place to install into -------------------------------------------------


def wheel(folder, name, version, requires=()):
    """Write an installable wheel of one empty module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    path = Path(folder, f"{name}-{version}-py3-none-any.whl")
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in (files | {f"{info}/RECORD": record}).items():
            archive.writestr(file, text)
    return path


class Runtime(SmallEnvironment):
    """An environment in which tiny_present 1.0 is present, and a folder in place of the index."""

    def __init__(self, folder):
        super().__init__(folder / "runtime")
        with zipfile.ZipFile(wheel(folder, "tiny_present", "1.0")) as archive:
            archive.extractall(self.site)
        self.index = folder / "index"
        self.index.mkdir()
        wheel(self.index, "tiny_present", "2.0")
        wheel(self.index, "tiny_new", "1.5", ["tiny-present"])
        wheel(self.index, "tiny_greedy", "1.0", ["tiny-present>=2"])
        self.content = folder / "content"  # where a notebook runs
        self.content.mkdir()

    def run(self, source, on_colab=True, cwd=None, **settings):
        """Run a cell; return what it printed, its error, and what joined sys.path."""
        pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index), "IPYTHONDIR": str(self.site)}
        said = self.ask(
            SHELL,
            cwd=cwd or self.content,
            input=json.dumps([source, on_colab]),
            env=pip | settings,
        )
        printed, _, rest = said.rpartition("\x1e")
        error, paths, _ = json.loads(rest)
        return printed.strip(), error, paths

    def versions(self):
        """Return what is installed in it, as seen by the program that the cell runs."""
        program = "import json; from helpers import colab; print(json.dumps(colab.installed()))"
        return json.loads(self.ask(program, env={"PYTHONPATH": str(ROOT)}))


@pytest.fixture
def runtime(tmp_path):
    return Runtime(tmp_path)


def git(folder, *words):
    user = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *user, *words], cwd=folder, check=True, capture_output=True)


def make_course(folder, deploy='"tiny-new>=1"', base='"tiny-present>=1"'):
    """Lay a course of the size that this test needs, with its address in a folder."""
    for name in PACKAGED:
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_bytes((ROOT / name).read_bytes())
    Path(folder, "pyproject.toml").write_text(
        f'[project]\nname = "course"\nversion = "1.0.0"\ndependencies = [{base}, "jupyterlab>=99"]\n'
        f"[project.optional-dependencies]\ndeploy = [{deploy}]\n"
        f'test = ["tiny-greedy"]\n[project.urls]\nRepository = "{folder.as_uri()}.git"\n'
    )
    return folder


@pytest.fixture
def course(tmp_path):
    """Return a course whose address serves the release, and a later commit on main."""
    folder = make_course(tmp_path / "origin")
    publish(folder)
    return folder


def publish(folder):
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "release")
    git(folder, "tag", "v1.0.0")
    Path(folder, "helpers", "later.py").write_text("")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "later")
    git(folder, "clone", "-q", "--bare", ".", f"{folder}.git")


# On Colab -----------------------------------------------------------------------------------


def test_it_fetches_the_release_adds_what_is_missing_and_leaves_the_rest(runtime, course):
    before = runtime.versions()
    printed, error, paths = runtime.run(colab_cell.cell(course))
    assert (printed, error) == ("Added tiny-new 1.5; nothing that was here changed.", "")
    assert paths == [str(runtime.content / "course")]
    assert not Path(runtime.content, "course/helpers/later.py").exists()  # the tag, not main
    after = runtime.versions()
    assert after["tiny-present"] == "1.0"  # the index offers 2.0
    assert after == before | {"tiny-new": "1.5"}  # no jupyterlab, nothing of test


def test_a_second_run_says_nothing_and_needs_no_network(runtime, course):
    cell = colab_cell.cell(course)
    runtime.run(cell)
    Path(f"{course}.git").rename(f"{course}.gone")
    before = runtime.versions()
    no_network = {"PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:9"}
    printed, error, paths = runtime.run(f"{cell}\n{cell}", **no_network)
    assert (printed, error) == ("", "")
    assert paths == [str(runtime.content / "course")]
    assert runtime.versions() == before


def test_a_fetch_that_was_killed_is_begun_again(runtime, course):
    Path(runtime.content, ".course/.git").mkdir(parents=True)
    Path(runtime.content, ".course/helpers").mkdir()
    _, error, paths = runtime.run(colab_cell.cell(course))
    assert error == ""
    assert paths == [str(runtime.content / "course")]
    assert not Path(runtime.content, ".course").exists()


def test_a_failed_fetch_ends_in_one_sentence_and_leaves_no_folder(runtime, course):
    Path(f"{course}.git").rename(f"{course}.gone")
    printed, error, paths = runtime.run(colab_cell.cell(course))
    assert error == "The course is missing: go online, or open this in its folder"
    assert printed.startswith("fatal:")  # git's own reason
    assert "cd:" not in printed
    assert paths == []
    assert not Path(runtime.content, "course").exists()


def test_a_package_that_does_not_fit_is_named_and_keeps_no_other_away(runtime, tmp_path):
    course = make_course(tmp_path / "origin", deploy='"tiny-greedy", "tiny-new"')
    publish(course)
    printed, error, _ = runtime.run(colab_cell.cell(course))
    added, absent = printed.splitlines()
    assert added == "Added tiny-new 1.5; nothing that was here changed."
    assert absent.startswith("Could not add tiny-greedy (Cannot install tiny-greedy")
    assert absent.endswith(
        "); cells that import this stop there. Check the network and run this cell again."
    )
    assert error == ""
    assert runtime.versions()["tiny-present"] == "1.0"


def test_without_an_index_the_reader_is_told_what_is_absent(runtime, course):
    printed, error, _ = runtime.run(colab_cell.cell(course), PIP_FIND_LINKS="")
    assert printed.startswith("Could not add tiny-new (")
    assert len(printed.splitlines()) == 1
    assert error == ""


def test_an_older_fetched_release_and_an_old_runtime_are_named(runtime):
    base = '"tiny-present>=1.0.1"'
    course = make_course(runtime.content / "course", deploy="", base=base)
    newer = colab_cell.cell(course).replace("v1.0.0", "v1.0.1")
    other, old = runtime.run(newer)[0].splitlines()
    assert other == (
        "The folder course holds release v1.0.0 and this notebook belongs to v1.0.1: run "
        "!rm -rf course, restart the session, and run this cell again."
    )
    assert old == (
        "This runtime has tiny-present 1.0 and the course needs 1.0.1 or later: choose the "
        "latest version under Runtime > Change runtime type."
    )


# Elsewhere ----------------------------------------------------------------------------------


def test_where_the_course_is_installed_nothing_happens(runtime, course):
    before = runtime.versions()
    assert runtime.run(colab_cell.cell(course), on_colab=False, PYTHONPATH=str(ROOT)) == (
        "",
        "",
        [],
    )
    assert runtime.versions() == before
    assert list(runtime.content.iterdir()) == []


@pytest.mark.parametrize("place", ["", "workbook", "workbook/mine"])
def test_an_own_environment_finds_the_folder_above_the_notebook(runtime, course, place):
    where = course / place
    where.mkdir(parents=True, exist_ok=True)
    before = runtime.versions()
    found = runtime.run(colab_cell.cell(course), on_colab=False, cwd=where)
    assert found == ("", "", [] if place == "" else [str(course)])  # "" is on the path already
    assert runtime.versions() == before


def test_outside_any_course_one_sentence_says_so(runtime, course):
    printed, error, paths = runtime.run(colab_cell.cell(course), on_colab=False)
    assert error == "The course is missing: go online, or open this in its folder"
    assert error in printed
    assert paths == []


# Its parts ----------------------------------------------------------------------------------


def test_the_cell_is_short():
    lines = colab_cell.cell().splitlines()
    assert len(lines) <= 12
    assert lines[0].startswith("# @title ")


def test_the_helper_needs_nothing_but_python_itself():
    imported = set()
    for name in PACKAGED:
        for node in ast.parse((ROOT / name).read_text(encoding="utf-8")).body:  # at its top
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.partition(".")[0])
    assert imported - {"helpers"} <= sys.stdlib_module_names


def test_what_is_needed_there_is_the_base_and_what_deployment_takes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base, extras = project["dependencies"], project["optional-dependencies"]
    wanted = {*base, *extras["deploy"]}
    assert set(colab.needed().values()) == {w for w in wanted if not w.startswith("jupyterlab")}
    assert "onnxruntime" in colab.needed()
    assert "pytest" not in colab.needed()
    assert all(colab.NOT_NEEDED.values()), "each with its reason"


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({}, ""),
        ({"b": "2.0.0rc1", "a": "1!1.0.post1"}, "a==1!1.0.post1\nb==2.0.0rc1"),
        ({"torch": "2.11.0+cu128", "x": "1.dev0+ubuntu4.1"}, "torch==2.11.0+cu128\nx==1.dev0+ubuntu4.1"),
        ({"distro-info": "1.1ubuntu0.2", "none": None, "old": "2004d-x"}, ""),
    ],
)  # fmt: skip
def test_a_freeze_holds_every_version_that_pip_can_read(versions, expected):
    assert colab.freeze(versions) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ("30 min · CPU, GPU optional · after 11", colab_cell.GPU),
        ("30 min · CPU, GPUs optional · after 11", colab_cell.GPU),
        ("30 min · CPU · after 11", {}),
        ("A GPU is optional in 21.", {}),
    ],
)
def test_a_notebook_asks_for_a_gpu_where_its_facts_name_one(facts, expected):
    first = f"# Count\n\n{facts}\n"
    assert colab_cell.metadata(first) == expected
    tidy = canonical(notebook(first)).metadata
    assert {key: tidy[key] for key in ("accelerator", "colab") if key in tidy} == expected


def test_renewing_writes_the_badge_and_the_cell_and_leaves_the_rest():
    badge = "[![Open In Colab](a.svg)](https://old)"
    old = nbformat.v4.new_code_cell("if 'google.colab' in sys.modules: ...", id="kept")
    old.execution_count = 7
    nb = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(f"# A\n\n{badge}\n\nmore"), old]
    )
    colab_cell.renew(nb, "99_a")
    assert nb.cells[0].source == f"# A\n\n{colab_cell.badge('99_a')}\n\nmore"
    assert nb.cells[1].source == colab_cell.cell()
    assert (nb.cells[1].metadata, nb.cells[1].id) == (colab_cell.FOLD, "kept")
    assert nb.cells[1].execution_count == 7
