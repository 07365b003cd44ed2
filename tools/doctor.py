"""Print what this machine lacks, each with its fix."""

import sys

from helpers import doctor


def main() -> int:
    """Print the report; return 1 when something needs a fix."""
    report = doctor.examine()
    print(report)
    return 1 if report.fixes else 0


if __name__ == "__main__":
    sys.exit(main())
