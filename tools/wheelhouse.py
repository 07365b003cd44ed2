"""Collect the wheels of the course in a folder, for computers without a network.

    python3 course.py wheelhouse FOLDER          what the notebooks need
    python3 course.py wheelhouse FOLDER --all    also what the tests need
    python3 course.py wheelhouse FOLDER --check  compare the files with their sums

The wheels fit computers with the same system, kind of processor and Python version. There,
`COURSE_WHEELS=FOLDER python3 course.py lab` installs from the folder alone.
"""

import argparse
import hashlib
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

from helpers._paths import ROOT
from helpers.units import format_bytes
from tools import caller

SUMS = "SHA256SUMS"
README = """\
Wheels of the course Measured PyTorch
=====================================

For {system} on {machine} with Python {python}. Another system, another kind of processor or
another version of Python needs a folder of its own.

On a computer without a network:

1. Copy this folder and the folder of the course to it.
2. In the folder of the course: COURSE_WHEELS=/path/to/this/folder python3 course.py lab
   (in Windows' PowerShell: $env:COURSE_WHEELS = "D:\\wheels"; py course.py lab)

The first start compares each file with its sum in {sums} and installs with pip, which is
told to use no package index. Later starts do not need this folder.

{contents}
"""


def requirements(root=ROOT, *, tests=False):
    """Return what pip must find to install the course, as pyproject.toml states it."""
    data = tomllib.loads(Path(root, "pyproject.toml").read_text(encoding="utf-8"))
    project = data["project"]
    extras = ("deploy", "test") if tests else ("deploy",)
    optional = project.get("optional-dependencies", {})
    chosen = [name for extra in extras for name in optional.get(extra, ())]
    return [*data["build-system"]["requires"], *project.get("dependencies", ()), *chosen]


def command(folder, root=ROOT, *, tests=False):
    """Return the command that fills the folder; a package without a wheel gets one built."""
    return [
        sys.executable, "-m", "pip", "wheel", "--wheel-dir", str(folder),
        "-c", str(Path(root, "constraints.txt")), *requirements(root, tests=tests),
    ]  # fmt: skip


def digest(path):
    """Return the SHA-256 sum of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def wheels(folder):
    """Return the wheels of a folder."""
    return sorted(Path(folder).glob("*.whl"))


def describe(folder, *, tests=False):
    """Write the sums and a short text for whoever finds the folder."""
    found = wheels(folder)
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in found)
    (folder / SUMS).write_text(sums, encoding="utf-8", newline="\n")
    whom = "notebooks and tests" if tests else "notebooks"
    size = format_bytes(sum(path.stat().st_size for path in found))
    text = README.format(
        system=platform.system(), machine=platform.machine(), sums=SUMS,
        python=".".join(platform.python_version_tuple()[:2]),
        contents=f"{len(found)} wheel{'s' * (len(found) != 1)} for the {whom}, {size}.",
    )  # fmt: skip
    (folder / "README.txt").write_text(text, encoding="utf-8")


def faults(folder):
    """Name the wheels that are missing or differ from their sums, and those without one."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    sums = {name: value for value, _, name in (line.partition("  ") for line in lines)}
    if not all(name and len(value) == 64 for name, value in sums.items()):
        return [f"{SUMS} is damaged"]
    found = {path.name: path for path in wheels(folder)}
    missing = [f"{name} is missing" for name in sums if name not in found]
    other = [f"{name} differs from its sum" for name, value in sums.items()
             if name in found and digest(found[name]) != value]  # fmt: skip
    return missing + other + [f"{name} has no sum" for name in found if name not in sums]


def main(argv=None):
    """Fill a folder, or check one; return 1 when that fails."""
    parser = argparse.ArgumentParser(prog="course.py wheelhouse", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="also what the tests need")
    parser.add_argument("--check", action="store_true", help="download nothing")
    options = parser.parse_args(argv)
    folder = caller.path(options.folder)
    if options.check:
        return _check(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"{folder} cannot be made: {error.strerror}.", file=sys.stderr)
        return 1
    if subprocess.call(command(folder, ROOT, tests=options.all), cwd=ROOT):
        print("pip could not collect the wheels; mend what it names, then run this again.",
              file=sys.stderr)  # fmt: skip
        return 1
    describe(folder, tests=options.all)
    print((folder / "README.txt").read_text(encoding="utf-8").splitlines()[-1])
    return 0


def _check(folder):
    if not (folder / SUMS).is_file():
        print(f"{folder} holds no {SUMS}; run this command without --check.", file=sys.stderr)
        return 1
    found = faults(folder)
    for line in found:
        print(f"{line}; copy the folder again, or run this command without --check.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
