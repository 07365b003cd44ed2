"""Each fault that the course must survive has a test, and the list of faults is complete."""

import ast
import csv
import json
import subprocess
import sys

import pytest

from helpers._paths import ROOT

with (ROOT / "tests" / "faults.csv").open(encoding="utf-8", newline="") as file:
    FAULTS = list(csv.DictReader(file))
PLACES = [
    "the machine lacks something",
    "the answer of an exercise",
    "the reader's session",
    "the progress on the disk",
    "a job of several processes",
    "a checkpoint",
    "the HTTP service of 63",
    "the helpers that measure",
]
FETCHES = {"urlretrieve", "hf_hub_download", "load_dataset", "load_state_dict_from_url", "wget"}
CODE = [*sorted((ROOT / "notebooks").glob("*.ipynb"))] + sorted(
    (ROOT / "notebooks" / "scripts").glob("*.py")
)


def sources(path):
    """Return the code of a script, or of a notebook without the cell that is Colab's alone."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [text]
    cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    return [cell for cell in cells if "google.colab" not in cell]


def reached(source):
    """Return the addresses beyond this machine, and the calls that download."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for word in node.value.split():
                address = word.partition("://")[2]
                if word.startswith(("http://", "https://")) and not address.startswith("127.0.0.1"):
                    found.append(word)
        name = getattr(node, "attr", getattr(node, "id", None))
        if name in FETCHES or (isinstance(node, ast.keyword) and node.arg == "download"):
            found.append(name or node.arg)
    return found


def test_every_place_where_the_course_can_fail_has_its_faults():
    assert list(dict.fromkeys(fault["where"] for fault in FAULTS)) == PLACES
    for fault in FAULTS:
        assert all(fault.values()), fault
    assert len({(fault["where"], fault["fault"]) for fault in FAULTS}) == len(FAULTS)


def test_each_fault_names_tests_that_exist():
    """pytest refuses an id that it cannot find, also among the tests left out by default."""
    ids = sorted({id for fault in FAULTS for id in fault["tests"].split()})
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider",
         "-m", "twice or not twice", *ids],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert all(id in run.stdout for id in ids)


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.stem)
def test_no_notebook_or_script_reaches_for_the_network(path):
    assert [found for source in sources(path) for found in reached(source)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("get('https://example.org/x')", ["https://example.org/x"]),
        ("get('http://127.0.0.1:8000/x')", []),
        ("MNIST(root, download=True)", ["download"]),
        ("torch.hub.load_state_dict_from_url(u)", ["load_state_dict_from_url"]),
    ],
)
def test_what_reaches_for_the_network_is_found(source, found):
    assert reached(source) == found
