"""Measure what importing the helpers adds to importing torch."""

import statistics
import subprocess
import sys

from benchmarks import Finding

LIGHT = ("device", "timing", "memory", "units", "claims", "exercises", "sharing", "table")
PROGRAM = """if True:
    import time, torch
    start = time.perf_counter()
    import {modules}
    print(time.perf_counter() - start)
"""
RUNS = 7


def measure() -> list[Finding]:
    """Import the light modules in fresh processes, after torch."""
    program = PROGRAM.format(modules=", ".join(f"helpers.{name}" for name in LIGHT))
    seconds = [
        float(
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        )
        for _ in range(RUNS)
    ]
    return [Finding(f"helpers over torch, median of {RUNS} (s)", statistics.median(seconds), 0.15)]
