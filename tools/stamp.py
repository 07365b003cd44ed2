"""Write the address of the repository everywhere: course.py stamp owner/name.

It stands once in pyproject.toml, under [project.urls]; this command changes it there and in
every file that repeats it: badges, bootstrap cells, README and CITATION.cff.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from helpers._paths import ROOT

HOST = "https://github.com/"
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


def slug(root: Path = ROOT) -> str:
    """Return the repository's ``owner/name``, as pyproject.toml states it."""
    project = tomllib.loads(Path(root, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"].removeprefix(HOST)


def files(root: Path = ROOT) -> list[Path]:
    """Return the files that git knows."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=root).decode()
    return [Path(root, name) for name in listed.split("\0") if name]


def stamp(new: str, root: Path = ROOT) -> list[Path]:
    """Replace the repository's address; return the files that changed.

    Raises
    ------
    ValueError
        If ``new`` is not of the form ``owner/name``.
    """
    if not SLUG.fullmatch(new):
        raise ValueError(f"the address must be owner/name, got {new!r}")
    address = re.compile(rb"(?<=/)" + re.escape(slug(root).encode()) + rb"(?![A-Za-z0-9._-])")
    changed = []
    for path in files(root):
        content = path.read_bytes() if path.is_file() else b""
        written = address.sub(new.encode(), content)
        if written != content:
            path.write_bytes(written)
            changed.append(path)
    return changed


def main(arguments: list[str]) -> int:
    """Stamp the address and name the files; 2 when it is missing or malformed."""
    try:
        (new,) = arguments
        changed = stamp(new)
    except ValueError as error:
        print(f"Usage: course.py stamp owner/name ({error})", file=sys.stderr)
        return 2
    for path in changed:
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
