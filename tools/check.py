"""Lint the code and the notebooks, check their format, then run the course's own lints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FORMAT_TESTS = "tests/test_notebooks_format.py"


def commands(root: Path) -> list[list[str]]:
    """Return what is run, in order."""
    found = [["ruff", "check"], ["ruff", "format", "--check"]]
    if Path(root, FORMAT_TESTS).exists():
        found.append(["pytest", "-q", FORMAT_TESTS])
    return [[sys.executable, "-m", *command] for command in found]


def main(arguments: list[str]) -> int:
    """Run all of them, also after a failure; return the first exit code that is not 0.

    With ``--mutate`` run the mutations instead, which take minutes.
    """
    if "--mutate" in arguments:
        from tools import mutate

        return mutate.main([each for each in arguments if each != "--mutate"])
    codes = [subprocess.call(command, cwd=ROOT) for command in commands(ROOT)]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
