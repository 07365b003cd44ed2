"""Importing the light helpers costs little beyond torch, and pulls in nothing heavy."""

import importlib.util
import json
import subprocess
import sys

from helpers._paths import ROOT

LIGHT = [
    f"helpers.{name}"
    for name in ("device", "timing", "memory", "units", "claims", "exercises", "data")
]
HEAVY = ["matplotlib.pyplot", "ipywidgets", "sklearn", "torch.utils.benchmark", "IPython"]
LIMIT_SECONDS = 0.15

PROGRAM = f"""
import json, sys, time
import torch
start = time.perf_counter()
import helpers
for module in {LIGHT}:
    __import__(module)
seconds = time.perf_counter() - start
print(json.dumps({{"seconds": seconds, "heavy": [n for n in {HEAVY} if n in sys.modules]}}))
"""


def import_in_fresh_process():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return json.loads(run.stdout)


def test_every_light_module_exists():
    assert [name for name in LIGHT if importlib.util.find_spec(name) is None] == []


def test_light_helpers_import_fast_and_pull_in_nothing_heavy():
    # Another program can only lengthen an import, so the shortest of five is the import's own.
    runs = [import_in_fresh_process()]
    while len(runs) < 5 and min(run["seconds"] for run in runs) > LIMIT_SECONDS:
        runs.append(import_in_fresh_process())
    assert [run["heavy"] for run in runs] == [[]] * len(runs)
    assert min(run["seconds"] for run in runs) <= LIMIT_SECONDS
