"""Execute notebooks with every cell twice and with every guess: too long for every change."""

import sys

from tools import test

STATES = ("tests/test_reader_states_1.py", "tests/test_reader_states_2.py")


def pytest_arguments(numbers: list[str]) -> list[str]:
    """Return what pytest is told; without numbers it takes every notebook."""
    chosen = ["-k", " or ".join(f"{number}_" for number in numbers)] if numbers else []
    return ["-q", "-n", "2", "--dist", "loadfile", "-m", "twice", *chosen, *STATES]


def main(numbers: list[str]) -> int:
    """Run them and return pytest's exit code."""
    return test.main(pytest_arguments(numbers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
