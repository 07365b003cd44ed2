"""Run every notebook without a network and with a home that cannot be written."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks import Finding
from benchmarks.faults import count, pytest_run
from helpers._paths import ROOT

# Its own network holds nothing but the loopback address, which gloo and the servers need.
CUT = [
    "unshare", "--map-root-user", "--net", "--",
    "bash", "-c", 'ip link set lo up && exec "$@"', "offline",
]  # fmt: skip
REFUSED = "http://127.0.0.1:9"


def offline() -> tuple[list[str], str]:
    """Return the words that cut the network, and how well they do it."""
    if shutil.which("unshare"):
        tried = subprocess.run([*CUT, "true"], check=False, capture_output=True)
        if tried.returncode == 0:
            return CUT, "no network"
    return [], "a proxy that refuses"


def measure() -> list[Finding]:
    """Run each notebook by itself; a file in the place of the home stops every user, root too."""
    cut, how = offline()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "a file")
        home.touch()
        env = {"COURSE_HOME": str(home / "progress"), "no_proxy": "127.0.0.1"}
        env |= {name: REFUSED for name in ("http_proxy", "https_proxy")}
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            run = pytest_run([os.fspath(path)], env=env, before=cut)
            passed, total = count(run, folder)
            what = f"{path.stem}, {how}: cells that passed (of {total})"
            found.append(Finding(what, passed, max(total, 1), at_least=True))
    return found
