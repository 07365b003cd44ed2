"""Make an environment that sees the packages of the tests and takes its own beside them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


class SmallEnvironment:
    """A venv without pip of its own: it is made in a moment and can be installed into."""

    def __init__(self, folder):
        """Make it in `folder`."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
        self.python = Path(folder, *parts)
        program = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.site = Path(self.ask(program))
        here = Path(pytest.__file__).parents[1]
        # A plain line: the .pth files of that folder, an installed course among them, do not count.
        Path(self.site, "present.pth").write_text(f"{here}\n", encoding="utf-8")

    def ask(self, program, env=None, **options):
        """Run a program in it and return what it printed."""
        settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        ran = subprocess.run(
            [str(self.python), "-c", program],
            env=settings | (env or {}),
            capture_output=True,
            text=True,
            check=True,
            **options,
        )
        return ran.stdout.strip()
