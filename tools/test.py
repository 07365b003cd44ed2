"""Run the tests as the reference platform does: one thread, no reader's progress or settings."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def reference_environment(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """Return the environment that stored outputs were made in."""
    return {
        **environ,
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "80",
        "COURSE_HOME": str(Path(home, "progress")),
        "IPYTHONDIR": str(Path(home, "ipython")),  # a reader's startup files change outputs
    }


def pytest_command(arguments: list[str], cores: int | None) -> list[str]:
    """Return the command; without arguments it runs everything, in two workers if it can."""
    spread = ["-n", "2", "--dist", "loadfile"] if not arguments and (cores or 1) > 1 else []
    return [sys.executable, "-m", "pytest", *spread, *arguments]


def main(arguments: list[str]) -> int:
    """Run pytest and return its exit code."""
    with tempfile.TemporaryDirectory(prefix="measured-pytorch-") as home:
        command = pytest_command(arguments, os.cpu_count())
        try:
            return subprocess.call(command, cwd=ROOT, env=reference_environment(os.environ, home))
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
