"""Write the repository's address, or the release, everywhere.

    python3 course.py stamp owner/name
    python3 course.py stamp --version 1.0.1

Both stand once in pyproject.toml. This command changes them there and in every file that
repeats them: badges, the first code cell of each notebook, README and CITATION.cff, and
helpers.__version__. A release is tagged v<version>, which is what the badges open.
"""

import re
import subprocess
import sys
from pathlib import Path

from helpers._paths import ROOT
from tools.colab_cell import project, slug

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
USAGE = "Usage: course.py stamp owner/name, or course.py stamp --version 1.0.1"


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
    return _rewrite(files(root), lambda path, content: address.sub(new.encode(), content))


def stamp_version(new: str, root: Path = ROOT) -> list[Path]:
    """Replace the release; return the files that changed.

    Only where a place states this course's own release: another package of the same version
    stays as it is.

    Raises
    ------
    ValueError
        If ``new`` is not of the form ``1.0.1``.
    """
    if not VERSION.fullmatch(new):
        raise ValueError(f"the version must be three numbers such as 1.0.1, got {new!r}")
    places = _version_places(project(root)["version"], slug(root))

    def replace(path, content):
        for name, pattern in places:
            if name in ("", path.relative_to(root).as_posix()):
                content = pattern.sub(new.encode(), content)
        return content

    return _rewrite(files(root), replace)


def _version_places(version, address):
    """Return (file or "" for any, pattern of the version in its place)."""
    old, home = re.escape(version.encode()), re.escape(address.encode())
    # In a notebook the quotes of a source are escaped, so a backslash stands before each.
    return [
        ("pyproject.toml", re.compile(rb'(?<=^version = ")' + old + rb'(?=")', re.MULTILINE)),
        ("helpers/__init__.py", re.compile(rb'(?<=^__version__ = ")' + old + rb'(?=")', re.MULTILINE)),
        ("CITATION.cff", re.compile(rb"(?<=^version: )" + old + rb"$", re.MULTILINE)),
        ("", re.compile(rb"(?<=" + home + rb"/blob/v)" + old + rb"(?=/)")),
        ("", re.compile(rb"(?<=tag, url = \\\"v)" + old + rb"(?=\\\")")),
    ]  # fmt: skip


def _rewrite(paths, replace):
    changed = []
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        written = replace(path, content)
        if written != content:
            path.write_bytes(written)
            changed.append(path)
    return changed


def main(argv: list[str] | None = None) -> int:
    """Stamp the address or the release and name the files; 2 when it is missing or malformed."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        *option, new = arguments
        if option not in ([], ["--version"]):
            raise ValueError(f"got {' '.join(arguments)}")
        changed = stamp_version(new) if option else stamp(new)
    except ValueError as error:
        print(f"{USAGE} ({error})", file=sys.stderr)
        return 2
    for path in changed:
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
