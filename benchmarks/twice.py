"""Run every notebook with each cell twice and with every guess."""

import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

from benchmarks import Finding
from benchmarks.faults import pytest_run
from helpers._paths import ROOT
from tools import test_twice


def by_notebook(report: Path) -> dict[str, list[bool]]:
    """Read pytest's report and return for each notebook what its tests did: True if passed."""
    done = defaultdict(list)
    for case in ET.parse(report).getroot().iter("testcase"):
        _, _, name = case.get("name", "").partition("[")
        failed = any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
        done[name.rstrip("]")].append(not failed)
    return done


def measure() -> list[Finding]:
    """Run `course.py test-twice` once for all notebooks; count what passes for each."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        pytest_run(test_twice.pytest_arguments([]))(report)
        done = by_notebook(report) if report.exists() else {}
    found = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        passed = done.get(path.stem, [])
        what = f"{path.stem}: tests that passed (of {len(passed)})"
        found.append(Finding(what, sum(passed), max(len(passed), 1), at_least=True))
    return found
