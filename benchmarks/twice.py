"""Run every notebook with each cell twice and with every guess."""

import tempfile

from benchmarks import Finding
from benchmarks.faults import count, pytest_run
from helpers._paths import ROOT
from tools import test_twice


def measure() -> list[Finding]:
    """Run `course.py test-twice` for one notebook after another; count what passes."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            arguments = test_twice.pytest_arguments([path.stem[:2]])
            passed, total = count(pytest_run(arguments), folder)
            what = f"{path.stem}: tests that passed (of {total})"
            found.append(Finding(what, passed, max(total, 1), at_least=True))
    return found
