"""The address of the repository stands once, and one command changes it everywhere."""

import re
import shutil
import subprocess

import pytest

from tools import stamp
from tools.stamp import ROOT

# What a reader clicks or copies: clones, badges and links, in text and in JSON.
ADDRESS = re.compile(r"(?:github\.com|research\.google\.com/github)/([\w.-]+/[\w.-]+)")
OURS = ("README.md", "CITATION.cff", "pyproject.toml")


def addresses(path):
    return ADDRESS.findall(path.read_text(encoding="utf-8"))


def test_every_place_that_a_visitor_follows_agrees_with_the_project():
    for name in OURS:
        assert addresses(ROOT / name), f"{name} must hold the address"
        assert set(addresses(ROOT / name)) == {stamp.slug()}, name


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_every_notebook_has_its_badge_and_its_bootstrap_at_that_address(path):
    found = [each for each in addresses(path) if each == stamp.slug()]
    assert len(found) >= 2
    owner, name = stamp.slug().split("/")
    near = {a for a in addresses(path) if a != stamp.slug() and {owner, name} & set(a.split("/"))}
    assert near == set(), "another address of this course"
    assert f"github/{stamp.slug()}/blob/main/notebooks/{path.name}" in path.read_text("utf-8")


@pytest.fixture
def checkout(tmp_path):
    """Return a small repository that repeats its address in several ways."""
    old = stamp.slug()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "README.md").write_text(f"clone https://github.com/{old} && cd x\n")
    (tmp_path / "a.ipynb").write_text(f'"https://colab.research.google.com/github/{old}/blob/x"\n')
    (tmp_path / "fork.md").write_text(f"https://github.com/{old}-fork is another\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\x00")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_stamping_changes_every_place_and_back_again_restores_each_byte(checkout):
    before = {path.name: path.read_bytes() for path in stamp.files(checkout)}
    old = stamp.slug(checkout)
    changed = stamp.stamp("someone/else.1", checkout)
    assert sorted(path.name for path in changed) == ["README.md", "a.ipynb", "pyproject.toml"]
    assert stamp.slug(checkout) == "someone/else.1"
    assert addresses(checkout / "README.md") == ["someone/else.1"]
    assert (checkout / "fork.md").read_bytes() == before["fork.md"]
    stamp.stamp(old, checkout)
    assert {path.name: path.read_bytes() for path in stamp.files(checkout)} == before


@pytest.mark.parametrize("wrong", ["", "owner", "https://github.com/a/b", "a b/c", "-a/b", "a/b/c"])
def test_an_address_of_another_form_is_refused_and_changes_nothing(checkout, wrong):
    before = {path.name: path.read_bytes() for path in stamp.files(checkout)}
    with pytest.raises(ValueError, match="must be owner/name, got"):
        stamp.stamp(wrong, checkout)
    assert {path.name: path.read_bytes() for path in stamp.files(checkout)} == before


@pytest.mark.parametrize("arguments", [[], ["a/b", "c/d"], ["no slash"]])
def test_the_command_says_how_it_is_used(arguments, capsys):
    assert stamp.main(arguments) == 2
    assert capsys.readouterr().err.startswith("Usage: course.py stamp owner/name")
