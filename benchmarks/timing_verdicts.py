"""Measure how often `timing` names a difference: where there is none, and where there is one."""

import os
import subprocess
import sys
from functools import partial

import torch

from benchmarks import Finding
from helpers import timing

TRIALS = 100
LOADED_TRIALS = 10
SPIN = "while True: pass"
NUMBERS = torch.ones(100_000)


def sums(count: int) -> None:
    """Sum 100,000 numbers, `count` times: work that is proportional to `count`."""
    for _ in range(count):
        NUMBERS.sum()


def verdicts(count: int, *, trials: int) -> list[timing.Speedup]:
    """Compare ten sums with `count` sums, again and again."""
    calls = {"ten": partial(sums, 10), "other": partial(sums, count)}
    return [timing.compare(calls, threads=1).speedup("ten", "other") for _ in range(trials)]


def named(found) -> int:
    """Count the verdicts that name a winner."""
    return sum(s.refusal is None for s in found)


def under_load() -> list[timing.Speedup]:
    """Compare a call with itself while two processes for each core compete for it."""
    count = 2 * (os.cpu_count() or 1)
    spinners = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        return verdicts(10, trials=LOADED_TRIALS)
    finally:
        for process in spinners:
            process.kill()
            process.wait()


def measure() -> list[Finding]:
    """Count verdicts on equal calls, on a true factor of 1.3, and on equal calls under load."""
    equal = verdicts(10, trials=TRIALS)
    longer = verdicts(13, trials=TRIALS)
    right = [s for s in longer if s.refusal is None and s.ratio < 1]
    return [
        Finding(f"equal calls: winners named (of {TRIALS})", named(equal), 5),
        Finding(f"13 sums against 10: found (of {TRIALS})", len(right), 95, at_least=True),
        Finding(
            f"equal calls under load: winners named (of {LOADED_TRIALS})", named(under_load()), 0
        ),
    ]
