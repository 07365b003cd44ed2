"""The repository's address and the release stand once, and one command changes each everywhere."""

import re
import shutil
import subprocess

import nbformat
import pytest

import helpers
from tools import colab_cell, stamp
from tools.stamp import ROOT

# What a reader clicks or copies: clones, badges and links, in text and in JSON.
ADDRESS = re.compile(r"(?:github\.com|research\.google\.com/github)/([\w.-]+/[\w.-]+)")
OURS = ("README.md", "CITATION.cff", "pyproject.toml")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Any way in which a file may name a release of this course
RELEASES = re.compile(
    r"/(?:blob|tree|raw|archive)/v(\d[\w.]*?)(?=/|\.zip)|--?b(?:ranch)? v(\d[\w.]*)"
)


def addresses(path):
    return ADDRESS.findall(path.read_text(encoding="utf-8"))


def test_every_place_that_a_visitor_follows_agrees_with_the_project():
    for name in OURS:
        assert addresses(ROOT / name), f"{name} must hold the address"
        assert set(addresses(ROOT / name)) == {stamp.slug()}, name


def test_every_place_that_states_the_release_agrees_with_the_project():
    release = colab_cell.project()["version"]
    assert stamp.VERSION.fullmatch(release)
    assert helpers.__version__ == release
    assert f"\nversion: {release}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {a or b for a, b in RELEASES.findall(readme)} <= {release}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_notebook_opens_and_fetches_the_same_release_at_that_address(path):
    text = path.read_text(encoding="utf-8")
    found = [each for each in addresses(path) if each == stamp.slug()]
    assert len(found) >= 2
    owner, name = stamp.slug().split("/")
    near = {a for a in addresses(path) if a != stamp.slug() and {owner, name} & set(a.split("/"))}
    assert near == set(), "another address of this course"
    release = f"v{colab_cell.project()['version']}"
    assert f"github/{stamp.slug()}/blob/{release}/notebooks/{path.name}" in text
    assert f'tag, url = \\"{release}\\", \\"https://github.com/{stamp.slug()}\\"' in text


@pytest.fixture
def checkout(tmp_path):
    """Return a small repository that repeats its address and its release in several ways."""
    old = stamp.slug()
    for name in ("pyproject.toml", "CITATION.cff", "helpers/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "README.md").write_text(f"clone https://github.com/{old} && cd x\n")
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell(colab_cell.badge("99_a"), id="1"),
            nbformat.v4.new_code_cell(colab_cell.cell(), id="2"),
        ]
    )
    nbformat.write(notebook, tmp_path / "a.ipynb")
    release = colab_cell.project()["version"]
    (tmp_path / "constraints.txt").write_text(f"other=={release}\nversion: {release}\n")
    (tmp_path / "fork.md").write_text(f"https://github.com/{old}-fork/blob/v{release}/x\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\x00")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def contents(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in stamp.files(root)}


def names(paths):
    return sorted(path.name for path in paths)


def test_stamping_changes_every_place_and_back_again_restores_each_byte(checkout):
    before = contents(checkout)
    old = stamp.slug(checkout)
    changed = stamp.stamp("someone/else.1", checkout)
    assert names(changed) == ["CITATION.cff", "README.md", "a.ipynb", "pyproject.toml"]
    assert stamp.slug(checkout) == "someone/else.1"
    assert addresses(checkout / "README.md") == ["someone/else.1"]
    assert set(addresses(checkout / "a.ipynb")) == {"someone/else.1"}
    assert contents(checkout)["fork.md"] == before["fork.md"]
    stamp.stamp(old, checkout)
    assert contents(checkout) == before


def test_stamping_a_release_changes_every_place_and_back_again_restores_each_byte(checkout):
    before = contents(checkout)
    old = colab_cell.project(checkout)["version"]
    changed = stamp.stamp_version("2.0.0rc1", checkout)
    assert names(changed) == ["CITATION.cff", "__init__.py", "a.ipynb", "pyproject.toml"]
    assert colab_cell.project(checkout)["version"] == "2.0.0rc1"
    first, code = nbformat.read(checkout / "a.ipynb", as_version=4).cells
    assert first.source == colab_cell.badge("99_a", checkout)
    assert code.source == colab_cell.cell(checkout)
    assert "2.0.0rc1" in first.source
    assert "2.0.0rc1" in code.source
    same = {"fork.md", "constraints.txt", "README.md", "picture.png"}
    assert {name: contents(checkout)[name] for name in same} == {n: before[n] for n in same}
    stamp.stamp_version(old, checkout)
    assert contents(checkout) == before


def test_what_is_laid_out_new_follows_the_stamp(checkout):
    stamp.stamp("someone/else.1", checkout)
    stamp.stamp_version("2.0.0", checkout)
    assert "/github/someone/else.1/blob/v2.0.0/notebooks/99_a.ipynb)" in colab_cell.badge(
        "99_a", checkout
    )
    assert 'tag, url = "v2.0.0", "https://github.com/someone/else.1"' in colab_cell.cell(checkout)


@pytest.mark.parametrize("wrong", ["", "owner", "https://github.com/a/b", "a b/c", "-a/b", "a/b/c"])
def test_an_address_of_another_form_is_refused_and_changes_nothing(checkout, wrong):
    before = contents(checkout)
    with pytest.raises(ValueError, match="must be owner/name, got"):
        stamp.stamp(wrong, checkout)
    assert contents(checkout) == before


@pytest.mark.parametrize("wrong", ["", "1", "1.0", "v1.0.0", "1.0.0-beta", "1.0.0 "])
def test_a_release_of_another_form_is_refused_and_changes_nothing(checkout, wrong):
    before = contents(checkout)
    with pytest.raises(ValueError, match="must be three numbers such as 1.0.1, got"):
        stamp.stamp_version(wrong, checkout)
    assert contents(checkout) == before


@pytest.mark.parametrize(
    "arguments", [[], ["a/b", "c/d"], ["no slash"], ["--version"], ["--version", "1"]]
)
def test_the_command_says_how_it_is_used(arguments, capsys):
    assert stamp.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("Usage: course.py stamp owner/name, or course.py stamp --version 1.0.1")
