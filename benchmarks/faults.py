"""Count the tests that pass for each kind of fault that the course must survive."""

import csv
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from benchmarks import Finding
from helpers._paths import ROOT
from tools import test_browser, test_twice

IN_BROWSER = "tests/browser/"
AGAIN = "tests/test_reader_states_1.py::test_cells_run_twice"


def faults() -> list[dict[str, str]]:
    """Return the rows of the list of faults."""
    with (ROOT / "tests" / "faults.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def count(run, folder) -> tuple[int, int]:
    """Return how many tests passed and how many there were, as pytest itself reports it."""
    report = Path(folder, "report.xml")
    report.unlink(missing_ok=True)
    run(report)
    suites = ET.parse(report).getroot().iter("testsuite") if report.exists() else []
    total = passed = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        passed += int(suite.get("tests", 0))
        passed -= sum(int(suite.get(name, 0)) for name in ("failures", "errors", "skipped"))
    return passed, total


def pytest_run(ids, *, env=None, before=()):
    """Return a run of these tests that writes pytest's report; `before` stands before it."""
    command = [*before, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ids]
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"} | (env or {})
    return lambda report: subprocess.run(
        [*command, f"--junitxml={report}"], cwd=ROOT, env=env, check=False, capture_output=True
    )


def _where(place, folder) -> tuple[int, int]:
    """Run the tests of one place where the course can fail."""
    ids = {id for row in faults() if row["where"] == place for id in row["tests"].split()}
    plain = sorted(id for id in ids if not id.startswith((IN_BROWSER, AGAIN)))
    found = [count(pytest_run(plain), folder)]
    # One reader goes through a file of browser tests from top to bottom: no test stands alone.
    browser = sorted({id.partition("::")[0] for id in ids if id.startswith(IN_BROWSER)})
    if browser:
        found.append(
            count(lambda report: test_browser.main([*browser, f"--junitxml={report}"]), folder)
        )
    if any(id.startswith(AGAIN) for id in ids):
        arguments = test_twice.pytest_arguments(["13"])
        found.append(count(pytest_run(arguments), folder))
    return sum(passed for passed, _ in found), sum(total for _, total in found)


def measure() -> list[Finding]:
    """Run the tests that tests/faults.csv names for each place where the course can fail."""
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        for place in dict.fromkeys(row["where"] for row in faults()):
            number = sum(row["where"] == place for row in faults())
            passed, total = _where(place, folder)
            what = f"{place}: {number} faults, tests passed (of {total})"
            findings.append(Finding(what, passed, max(total, 1), at_least=True))
    return findings
