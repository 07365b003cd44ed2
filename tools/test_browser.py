"""Drive the course in a real JupyterLab and a real Chromium, as a reader would.

python3 course.py test-browser          all of it (more arguments go to pytest)
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.test import ROOT, reference_environment

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
MISSING = (
    "The browser tests need Chromium and found none; install it (Debian: apt-get install "
    "chromium), or set CHROMIUM to the path of a Chromium or Chrome."
)


def find_chromium(environ=os.environ, which=shutil.which):
    """Return the path of a Chromium or Chrome, or None.

    Parameters
    ----------
    environ : mapping
        ``CHROMIUM`` in it names the program and wins.
    which : callable
        Looks a name up on the PATH.
    """
    chosen = environ.get("CHROMIUM")
    if chosen:
        return which(chosen)
    found = (which(name) for name in (*NAMES, *PLACES))
    return next(filter(None, found), None)


def main(arguments):
    """Run the browser tests and return pytest's exit code, or 2 if there is no browser."""
    if find_chromium() is None:
        print(MISSING, file=sys.stderr)
        return 2
    named = any(argument.startswith("tests/") for argument in arguments)
    where = [] if named else ["tests/browser"]
    command = [sys.executable, "-m", "pytest", *where, *(arguments or ["-q"])]
    pictures = Path(tempfile.mkdtemp(prefix="measured-pytorch-screenshots-"))
    try:
        with tempfile.TemporaryDirectory(prefix="measured-pytorch-") as home:
            env = reference_environment(os.environ, home) | {"COURSE_SCREENSHOTS": str(pictures)}
            return subprocess.call(command, cwd=ROOT, env=env)
    except KeyboardInterrupt:
        return 130
    finally:
        say_where(pictures)


def say_where(pictures):
    """Name the folder of the pictures of failures, or remove it when there are none."""
    if any(pictures.iterdir()):
        print(f"Pictures of the pages that failed are in {pictures}", file=sys.stderr)
    else:
        pictures.rmdir()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
