"""Say whether torch.compile can build its code on this machine, and if not, why."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

_PROGRAM = '#include <omp.h>\nextern "C" int threads() { return omp_get_max_threads(); }\n'
INSTALL = (
    "install build-essential (Linux), Xcode command line tools (macOS) or Build Tools (Windows)"
)
PLACES = {
    "environment": "set COURSE_VENV",
    "cache": "set TORCHINDUCTOR_CACHE_DIR",
    "temporary files": "set TMPDIR (TEMP on Windows)",
}


def command() -> str:
    """Return the command that torch.compile calls to build C++.

    It takes ``CXX`` as the name of one program, also where that is empty: no options in it.

    Returns
    -------
    str
        ``CXX`` where it is set, else ``g++``, ``clang++`` (macOS) or ``cl`` (Windows).

    See Also
    --------
    torch._inductor.config.cpp.cxx :
        https://github.com/pytorch/pytorch/blob/main/torch/_inductor/config.py

    Examples
    --------
    >>> isinstance(command(), str)
    True
    """
    default = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    return os.environ.get("CXX", default)


def builds(compiler: str) -> bool:
    """Build a two-line library with OpenMP, as torch.compile does, and tell whether it worked.

    Parameters
    ----------
    compiler : str
        Name or path of one program.

    Returns
    -------
    bool
        False where it fails, is missing or takes longer than 5 s.

    Examples
    --------
    >>> builds("no-such-compiler")
    False
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(_PROGRAM)
        if Path(compiler).stem.lower() == "cl":
            call = [compiler, "/nologo", "/LD", "/openmp", source.name]
        else:
            flags = ["-shared", "-fPIC"]
            flags += ["-Xclang", "-fopenmp"] if sys.platform == "darwin" else ["-fopenmp"]
            call = [compiler, *flags, source.name, "-o", "probe.so"]
        try:
            done = subprocess.run(call, cwd=folder, capture_output=True, timeout=5, check=False)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


def places() -> dict[str, str]:
    """Return the folders whose paths stand in the compiler's command, by name.

    Returns
    -------
    dict of str to str
        The environment; the folder for temporary files, where a header is built whatever the
        cache is; and the cache of torch.compile, if it was moved out of that folder.

    Examples
    --------
    >>> {"environment", "temporary files"} <= set(places())
    True
    """
    temporary = tempfile.gettempdir()
    found = {"environment": sys.prefix, "temporary files": temporary}
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if cache and not Path(cache).is_relative_to(temporary):
        found["cache"] = cache
    return found


def with_spaces(paths: Mapping[str, str]) -> list[str]:
    """Return the names of the folders that torch.compile cannot use.

    The compiler gets its command as one text, cut at spaces.

    Parameters
    ----------
    paths : mapping of str to str
        As `places` returns them.

    Returns
    -------
    list of str
        Names, in the order of `paths`.

    Examples
    --------
    >>> with_spaces({"environment": "/home/me/.venv", "cache": "/tmp/my cache"})
    ['cache']
    """
    return [name for name, path in paths.items() if any(map(str.isspace, path))]


def refusal(device: str = "cpu") -> str | None:
    """Say in one sentence why torch.compile cannot build here, with the fix.

    The probe runs the compiler, in about half a second: that a program of the name exists does
    not mean that it can build.

    Parameters
    ----------
    device : str
        Type of the device that the compiled code shall run on.

    Returns
    -------
    str or None
        None where it can.

    Examples
    --------
    >>> reason = refusal()
    >>> reason is None or "not measured here: " in reason
    True
    """
    bad = with_spaces(places())
    if bad:
        fix = " and ".join(PLACES[name] for name in bad)
        where = " and of the ".join(bad)
        return (
            f"not measured here: the path of the {where} has a space; {fix} to a folder without one"
        )
    compiler = command()
    if not shutil.which(compiler):
        shown = repr(compiler) if "CXX" in os.environ else compiler
        return f"not measured here: needs a C++ compiler ({shown} is not found); {INSTALL}"
    if not builds(compiler):
        return f"not measured here: the C++ compiler cannot build with OpenMP; {INSTALL}"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "not measured here: Python.h is missing; install python3-dev"
    if device in ("cuda", "xpu") and importlib.util.find_spec("triton") is None:
        return f"not measured here: for {device}, torch.compile needs the package triton"
    return None
