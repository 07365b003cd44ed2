"""Measure how long each notebook takes under nbval, kernel start and comparison included."""

import os
import subprocess
import sys
import time

from benchmarks import Finding
from helpers._paths import ROOT

SLOW = {"31", "32", "33", "34", "61", "62", "63", "71"}  # they start other processes or compile


def measure() -> list[Finding]:
    """Run each notebook by itself, in the environment of the tests."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    found = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
        subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
        limit = 75 if path.stem[:2] in SLOW else 30
        found.append(Finding(f"{path.stem} (s)", time.perf_counter() - start, limit))
    return found
