"""Add to a Colab runtime what the course needs and the runtime lacks; change nothing in it.

The first cell of each notebook runs it as a program, in the folder that it fetched::

    python -m helpers.colab v1.0.0

It uses the standard library alone, because it runs before anything is installed.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from helpers._paths import ROOT

# What the course asks for elsewhere and Colab does without.
NOT_NEEDED = {"jupyterlab": "Colab is the front end"}
EXTRAS = ("deploy",)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MINIMUM = re.compile(r">=\s*([0-9][0-9.]*)")
# A version that pip can compare; a package of the system may carry another kind.
_VERSION = re.compile(
    r"([0-9]+!)?[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?"
    r"(\+[a-z0-9]+([._-][a-z0-9]+)*)?",
    re.IGNORECASE,
)
_PIP = ("install", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "2")


def needed() -> dict[str, str]:
    """Return the requirement of each package that the course needs here, by its name."""
    project = _project()
    lines = list(project["dependencies"])
    for extra in EXTRAS:
        lines += project["optional-dependencies"][extra]
    named = {_plain(_NAME.match(line)[0]): line for line in lines}
    return {name: line for name, line in named.items() if name not in NOT_NEEDED}


def installed() -> dict[str, str]:
    """Return the version of each package that this Python finds, by its name.

    Examples
    --------
    >>> "pip" in installed() or "torch" in installed()
    True
    """
    found = {}
    for package in metadata.distributions():
        name = package.metadata["Name"] if package.metadata else None
        if name:  # a broken install has none; the first on the path is the one that is imported
            found.setdefault(_plain(name), package.version)
    return found


def freeze(versions: dict[str, str]) -> str:
    """Return the constraints under which pip can change none of these packages.

    Parameters
    ----------
    versions : dict of str to str
        Version by name, as `installed` returns it. A version that pip cannot read is left
        out, because pip would refuse the whole file.

    Examples
    --------
    >>> print(freeze({"torch": "2.11.0+cu128", "python-apt": "2.4.0ubuntu4"}))
    torch==2.11.0+cu128
    """
    return "\n".join(
        f"{name}=={version}"
        for name, version in sorted(versions.items())
        if _VERSION.fullmatch(version or "")
    )


def add(requirements: Iterable[str], versions: dict[str, str]) -> str:
    """Install what is asked for while every present package stays; return pip's last word.

    Parameters
    ----------
    requirements : iterable of str
        What pip is asked for.
    versions : dict of str to str
        What is present, as `installed` returns it.

    Returns
    -------
    str
        Empty if pip succeeded, else the last line that it wrote.
    """
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder, "constraints.txt")
        constraints.write_text(freeze(versions), encoding="utf-8")
        command = [sys.executable, "-m", "pip", *_PIP, "-c", str(constraints), *requirements]
        # In that folder, so that no module of the course stands in for one of pip's.
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")] or lines or ["no message"]
    return errors[0].removeprefix("ERROR: ").strip() if ran.returncode else ""


def prepare(tag: str) -> list[str]:
    """Add what is missing; return what to tell the reader, nothing when all was there.

    Parameters
    ----------
    tag : str
        The release that the notebook belongs to, such as ``v1.0.0``.

    Returns
    -------
    list of str
        One sentence for what was added, and one for each thing that the reader must know.
    """
    before = installed()
    said = [*_other_release(tag), *_too_old(before)]
    missing = {name: line for name, line in needed().items() if name not in before}
    if not missing:
        return said
    reason = add(missing.values(), before)
    if reason and len(missing) > 1:  # one that does not fit must not keep the others away
        for line in missing.values():
            reason = add([line], before | installed()) or reason
    return said + _report(before, installed(), missing, reason)


def _report(before, after, missing, reason):
    added = [f"{name} {after[name]}" for name in missing if name in after]
    absent = [name for name in missing if name not in after]
    changed = [f"{name} {old} became {after.get(name, 'nothing')}"
               for name, old in before.items() if after.get(name) != old]  # fmt: skip
    said = []
    if added:
        kept = "" if changed else "; nothing that was here changed"
        said.append(f"Added {', '.join(added)}{kept}.")
    if absent:
        said.append(
            f"Could not add {', '.join(absent)} ({reason.rstrip('.')}); cells that import this "
            "stop there. Check the network and run this cell again."
        )
    if changed:
        said.append(f"Changed: {', '.join(changed)}. Restart the session before you go on.")
    return said


def _other_release(tag):
    here = f"v{_project()['version']}"
    if tag == here:
        return []
    said = (
        f"The folder {ROOT.name} holds release {here} and this notebook belongs to {tag}: run "
        f"!rm -rf {ROOT.name}, restart the session, and run this cell again."
    )
    return [said]


def _too_old(present):
    for name, line in needed().items():
        minimum = _MINIMUM.search(line)
        if name in present and minimum and _release(present[name]) < _release(minimum[1]):
            yield (
                f"This runtime has {name} {present[name]} and the course needs {minimum[1]} or "
                "later: choose the latest version under Runtime > Change runtime type."
            )


def _project():
    return tomllib.loads(Path(ROOT, "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _release(version: str) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", version.partition("+")[0])
    return tuple(int(number) for number in [*numbers, "0", "0"][:3])


def main(arguments: list[str]) -> int:
    """Prepare the runtime for the release that is named, and say what was added."""
    for sentence in prepare(*arguments):
        print(sentence)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
