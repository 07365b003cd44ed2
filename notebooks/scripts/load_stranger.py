"""Load a file from a stranger, with the default and without; tell which files appeared.

Notebook 54 starts it in a temporary folder as: python load_stranger.py FILE
"""

import json
import os
import sys
from pathlib import Path

import torch

path = Path(sys.argv[1])
os.chdir(path.parent)
before = set(os.listdir())
found = {}
for weights_only in (True, False):
    try:
        error, loaded = "none", torch.load(path, weights_only=weights_only)
    except Exception as caught:  # noqa: BLE001 - its text is what the notebook looks at
        error, loaded = f"{type(caught).__name__}: {caught}", {}
    found[f"weights_only={weights_only}"] = {
        "error": error,
        "weights are fine": bool("weight" in loaded and loaded["weight"].sum() == 4),
        "appeared": sorted(set(os.listdir()) - before),
    }
print(json.dumps(found))
