"""Own what makes a notebook start on Colab: its badge, its first code cell, its metadata.

Whoever lays out a notebook, checks one or writes one to disk asks here, so that all agree
with the address and the version in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from helpers._paths import ROOT

HOST = "https://github.com/"
MARK = "google.colab"
FOLD = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # JupyterLab and Colab
GPU = {"accelerator": "GPU", "colab": {"gpuType": "T4", "provenance": []}}
# "CPU, GPU optional" and "CPU, GPUs optional" in the line of facts of the first cell
WANTS_GPU = re.compile(r"^\d+ min · CPU, GPUs? optional · ", re.MULTILINE)
BADGE_LINE = re.compile(r"^\[!\[Open In Colab\].*$", re.MULTILINE)

# One shell line makes the folder appear only when it is whole: a clone that was killed leaves
# .course behind, which the next try removes. Packages are added by a process of their own,
# because nothing of the course is on this kernel's path yet.
CELL = """\
# @title On Colab, fetch the course; elsewhere find its folder
import sys
from importlib.util import find_spec
from pathlib import Path

if "google.colab" in sys.modules:
    tag, url = "v{version}", "{url}"
    !test -d course || (rm -rf .course; {clone} -b {{tag}} {{url}} .course && mv .course course)
    !test -d course && cd course && {{sys.executable}} -m helpers.colab {{tag}}
near = [p for p in Path("course/_").absolute().parents if (p / "helpers/colab.py").exists()]
assert near or find_spec("helpers"), "{missing}"
sys.path += [str(p) for p in near[:1] if not find_spec("helpers")]"""
CLONE = "git -c advice.detachedHead=0 clone -q --depth 1"
MISSING = "The course is missing: go online, or open this in its folder"


def project(root=ROOT):
    """Return the table [project] of pyproject.toml."""
    return tomllib.loads(Path(root, "pyproject.toml").read_text(encoding="utf-8"))["project"]


def slug(root=ROOT):
    """Return the repository's ``owner/name``, as pyproject.toml states it."""
    return project(root)["urls"]["Repository"].removeprefix(HOST)


def cell(root=ROOT):
    """Return the source of the first code cell, the same in every notebook."""
    values = {"version": project(root)["version"], "url": project(root)["urls"]["Repository"]}
    return CELL.format(**values, clone=CLONE, missing=MISSING)


def badge(stem, root=ROOT):
    """Return the Markdown that opens a notebook on Colab, at the tag that its cell fetches."""
    version = project(root)["version"]
    return (
        "[![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"(https://colab.research.google.com/github/{slug(root)}/blob/v{version}/"
        f"notebooks/{stem}.ipynb)"
    )


def metadata(first_cell):
    """Return what the notebook asks Colab for: a T4 where the facts name a GPU, else nothing."""
    return GPU if WANTS_GPU.search(first_cell) else {}


def renew(nb, stem, root=ROOT):
    """Bring a notebook's badge and first code cell up to date, in place."""
    first = nb.cells[0]
    first.source = BADGE_LINE.sub(lambda _: badge(stem, root), first.source)
    for each in nb.cells:
        if each.cell_type == "code" and MARK in each.source:
            each.source, each.metadata = cell(root), type(each.metadata)(FOLD)
            return
