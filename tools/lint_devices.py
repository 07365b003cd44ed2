"""Run the lint for device-agnostic code over files, by default over the whole course."""

import argparse
import sys
from pathlib import Path

from helpers._paths import ROOT
from helpers.device_lint import lint_file

# What is a fault elsewhere and stands here on purpose: file to rules.
ON_PURPOSE = {
    # teaches what a module does not see
    "15_train_a_first_model.ipynb": {"hidden layers", "left behind"},
    # teaches what an optimizer does not get
    "51_steer_the_optimizer.ipynb": {"hidden layers"},
    # NCCL, the backend of several GPUs, is CUDA's; elsewhere the ranks stay on the CPU
    "ranks.py": {"one vendor"},
    # compares a count with the allocator of CUDA, on a machine that has one
    "gpu_check.py": {"named device", "raises without it"},
    # stands in for a card
    "gpu_setup.py": {"named device"},
    # what notebook 21 lets the lint find
    "faulty_models.py": {
        "born on the CPU",
        "left behind",
        "hidden layers",
        "no leaf",
        "number without it",
    },
}


def course_files():
    """Return the course's own sources: helpers, tools, exercises, notebooks and benchmarks."""
    folders = ("helpers", "tools", "exercises", "notebooks", "benchmarks")
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
    kept = (
        p for p in found if p.suffix in (".py", ".ipynb") and ".ipynb_checkpoints" not in p.parts
    )
    return [ROOT / "course.py", *kept]


def findings_in(path):
    """Return the findings in one file, without those that stand there on purpose."""
    allowed = ON_PURPOSE.get(path.name, ())
    return [finding for finding in lint_file(path) if finding.rule not in allowed]


def main(argv=None):
    """Print each finding with its file; return 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m tools.lint_devices")
    parser.add_argument("paths", nargs="*", type=Path, help="files; the whole course by default")
    options = parser.parse_args(argv)
    count = 0
    for path in options.paths or course_files():
        for finding in findings_in(path):
            count += 1
            print(f"{path.name}: {finding}")
    print(f"{count} findings" if count else "no line works on one kind of device only")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
