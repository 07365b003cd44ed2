"""Measure, in the browser, how long a widget takes from a key press to its redrawn picture."""

import json
import os
import tempfile
from pathlib import Path

from benchmarks import Finding
from tools import test_browser


def measure() -> list[Finding]:
    """Drive each explorer and a stock slider with a text beside it, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "redraw.json"
        os.environ["COURSE_REDRAW"] = str(target)
        try:
            code = test_browser.main(["-q", "tests/browser/test_redraw.py"])
        finally:
            del os.environ["COURSE_REDRAW"]
        found = json.loads(target.read_text(encoding="utf-8")) if code == 0 else {}
    stock = found.pop("stock slider", None)
    names = ["broadcasting", "strides"]
    return [
        Finding("stock slider with a text, key press to redraw (ms)", stock),
        *(Finding(f"{name}, key press to redraw (ms)", found.get(name)) for name in names),
        *(
            Finding(f"{name} / stock slider (ratio)", stock and found[name] / stock, 3)
            for name in names
        ),
    ]
