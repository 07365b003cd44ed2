"""Examine this machine: what the course finds, what is missing, and the fix of each.

Every probe is two functions. ``_find_*`` asks the machine and returns facts by name;
``_judge_*`` turns facts into a :class:`Row` and touches nothing, so a test can hand it any
machine. No row holds a path, a host name or a model.
"""

import contextlib
import importlib.util
import math
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from importlib import metadata
from pathlib import Path

from helpers import compiler
from helpers._paths import ROOT, progress_home

_GIB = 2**30
_PYTHONS = ((3, 11), (3, 14))
_FLOORS = {"torch": (2, 11), "numpy": (2, 0)}
_OPTIONAL = ("onnx", "onnxruntime", "fastapi", "tensorboard")


@dataclass(frozen=True)
class Row:
    """Hold what one check found.

    Parameters
    ----------
    name
        The check.
    status
        ``"ok"``; ``"note"``: the course goes on and says what differs; ``"fix"``: a notebook
        may stop or mislead until it is mended.
    message
        What was found.
    fix
        What to do, or empty.
    """

    name: str
    status: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        """Return the row as one or two lines of text."""
        line = f"{self.status:<5} {self.name}: {self.message}"
        return f"{line}\n      -> {self.fix}" if self.fix else line


@dataclass(frozen=True)
class Report:
    """Hold all rows and display them, as text or as a table."""

    rows: tuple[Row, ...]

    @property
    def fixes(self) -> tuple[Row, ...]:
        """Return the rows that need a fix."""
        return tuple(row for row in self.rows if row.status == "fix")

    @property
    def summary(self) -> str:
        """Say in one sentence whether the course can start."""
        if not self.fixes:
            return "This machine can run the course."
        return "To fix first: " + ", ".join(row.name for row in self.fixes) + "."

    def __str__(self) -> str:
        """Return the report as text."""
        return "\n".join([*map(str, self.rows), "", self.summary])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the report as a table, the status as a word."""
        cells = "".join(
            f"<tr><td><b>{escape(row.status)}</b></td>"
            f'<th scope="row" style="text-align:left">{escape(row.name)}</th>'
            f'<td style="text-align:left">{escape(row.message)}</td>'
            f'<td style="text-align:left">{escape(row.fix)}</td></tr>'
            for row in self.rows
        )
        head = "".join(f'<th scope="col">{text}</th>' for text in ("", "check", "found", "fix"))
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>"
            f"<p>{escape(self.summary)}</p>"
        )


def _release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2])


def _installed(name: str) -> str | None:
    """Return the version of a package without importing it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _read(path: str) -> str:
    """Return the content of a small system file, or nothing where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _find_versions() -> dict:
    return {
        "python": sys.version_info[:2],
        "torch": _installed("torch"),
        "numpy": _installed("numpy"),
    }


def _judge_versions(*, python: tuple[int, int], torch: str | None, numpy: str | None) -> Row:
    name, found = "Python, torch, NumPy", {"torch": torch, "numpy": numpy}
    message = f"Python {python[0]}.{python[1]}, torch {torch}, NumPy {numpy}"
    fix = "needs Python 3.11-3.14, torch 2.11 and NumPy 2.0; start with `python3 course.py lab`"
    fits = _PYTHONS[0] <= tuple(python) <= _PYTHONS[1] and all(
        version is not None and _release(version) >= _FLOORS[package]
        for package, version in found.items()
    )
    return Row(name, "ok", message) if fits else Row(name, "fix", message, fix)


def _find_kernel() -> dict:
    expected = os.environ.get("COURSE_VENV") or str(ROOT / ".venv")
    above = [folder for folder in (Path.cwd(), *Path.cwd().parents) if _is_checkout(folder)]
    return {
        "prefix": os.path.realpath(sys.prefix),
        "expected": os.path.realpath(os.path.expanduser(expected)),
        "expected_exists": Path(expected).expanduser().exists(),
        "same_checkout": not above or above[0].resolve() == ROOT,
    }


def _is_checkout(folder: Path) -> bool:
    return (folder / "course.py").exists() and (folder / "helpers").is_dir()


def _judge_kernel(*, prefix: str, expected: str, expected_exists: bool, same_checkout: bool) -> Row:
    name = "kernel"
    if not same_checkout:
        message = "the helpers come from another copy of the course"
        return Row(name, "fix", message, "run `python3 course.py lab` in this copy")
    if prefix == expected:
        return Row(name, "ok", "the course's own environment")
    if expected_exists:
        message = "this kernel is another environment than the course's"
        return Row(name, "fix", message, "Kernel -> Change kernel, or `python3 course.py lab`")
    return Row(name, "ok", "an environment of your own")


def _find_bridge() -> dict:
    try:
        import numpy as np
        import torch

        array = torch.from_numpy(np.ones(2)).numpy()
        return {"works": bool((array == 1).all())}
    except (ImportError, RuntimeError, TypeError, ValueError, AttributeError):
        return {"works": False}


def _judge_bridge(*, works: bool) -> Row:
    if works:
        return Row("NumPy bridge", "ok", "an array becomes a tensor and comes back")
    fix = "reinstall both together: delete the environment, then `python3 course.py lab`"
    return Row("NumPy bridge", "fix", "torch and NumPy do not match", fix)


def _find_cores() -> dict:
    import torch

    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cores = os.cpu_count() or 1
    return {
        "cores": cores,
        "quota": _read("/sys/fs/cgroup/cpu.max"),
        "threads": torch.get_num_threads(),
    }


def _judge_cores(*, cores: int, quota: str, threads: int) -> Row:
    limit, _, period = quota.partition(" ")
    if limit.isdigit() and period.isdigit() and int(period):
        cores = max(1, min(cores, math.ceil(int(limit) / int(period))))
    message = f"{_count(cores, 'core')}, {_count(threads, 'thread')}"
    if threads <= cores:
        return Row("cores and threads", "ok", message)
    fix = f"set OMP_NUM_THREADS={cores} before you start; more threads than cores wait in turn"
    return Row("cores and threads", "fix", message, fix)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _find_memory() -> dict:
    try:
        import psutil

        available = psutil.virtual_memory().available
    except ImportError:
        available = None
    return {
        "available": available,
        "limit": _read("/sys/fs/cgroup/memory.max"),
        "used": _read("/sys/fs/cgroup/memory.current"),
    }


def _judge_memory(*, available: int | None, limit: str, used: str) -> Row:
    rooms = [] if available is None else [available]
    if limit.isdigit() and used.isdigit():  # the file says "max" where nothing is limited
        rooms.append(max(0, int(limit) - int(used)))
    if not rooms:
        return Row("memory", "note", "not measured here: needs psutil")
    message = f"{min(rooms) / _GIB:.1f} GiB free"
    if min(rooms) >= 2 * _GIB:
        return Row("memory", "ok", message)
    return Row("memory", "fix", message, "close programs; 33, 41, 61 and 71 may stop below 2 GiB")


def _find_disk() -> dict:
    folder = progress_home().absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return {"free": shutil.disk_usage(folder).free}


def _judge_disk(*, free: int) -> Row:
    message = f"{free / _GIB:.1f} GiB free where progress is kept"
    if free >= _GIB:
        return Row("disk", "ok", message)
    return Row("disk", "fix", message, "free space, or set COURSE_HOME to a folder elsewhere")


def _find_progress() -> dict:
    """Write, rename and read back: asking for permission would satisfy the root user."""
    try:
        folder = progress_home()
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".doctor-", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(b"ok")
            file.flush()
            os.fsync(file.fileno())
        final = Path(name + ".renamed")
        os.replace(name, final)
        works = final.read_bytes() == b"ok"
        final.unlink()
    except OSError:
        works = False
    return {"works": works}


def _judge_progress(*, works: bool) -> Row:
    if works:
        return Row("progress", "ok", "can be saved")
    fix = "set COURSE_HOME to a folder that you can write, or keep the text of progress.export()"
    return Row("progress", "fix", "stays in memory and is lost with the kernel", fix)


def _find_shared_memory() -> dict:
    try:
        system = os.statvfs("/dev/shm")
    except (OSError, AttributeError):  # macOS and Windows have none and need none
        return {"size": None}
    return {"size": system.f_frsize * system.f_blocks}


def _judge_shared_memory(*, size: int | None) -> Row:
    name = "shared memory"
    if size is None:
        return Row(name, "ok", "this system needs no /dev/shm")
    if size >= _GIB:
        return Row(name, "ok", f"{size / _GIB:.1f} GiB")
    message = f"{size / 2**20:.0f} MiB; loaders use num_workers=0"
    return Row(name, "note", message, "in Docker, start with --shm-size=2g")


def _find_compiler() -> dict:
    import sysconfig

    name = compiler.command()
    found = shutil.which(name) is not None
    return {
        "found": found,
        "works": found and compiler.builds(name),
        "headers": Path(sysconfig.get_path("include"), "Python.h").exists(),
    }


def _judge_compiler(*, found: bool, works: bool, headers: bool) -> Row:
    fix = compiler.INSTALL
    if not found:
        return Row("compiler", "note", "none found; 61 and 62 skip what compiles", fix)
    if not works:
        message = "found, but it cannot build with OpenMP; 61 and 62 skip what compiles"
        return Row("compiler", "note", message, fix)
    if not headers:
        message = "works, but Python.h is missing; 61 and 62 skip what compiles"
        return Row("compiler", "note", message, "install python3-dev, or Python from python.org")
    return Row("compiler", "ok", "builds a library with OpenMP")


def _find_spaces() -> dict:
    return {"places": compiler.places()}


def _judge_spaces(*, places: dict[str, str]) -> Row:
    bad = compiler.with_spaces(places)
    if not bad:
        return Row("spaces in paths", "ok", "none where torch.compile builds")
    message = f"the path of the {' and of the '.join(bad)} has one; torch.compile fails there"
    fix = " and ".join(compiler.PLACES[name] for name in bad) + " to a folder without a space"
    return Row("spaces in paths", "note", message, fix)


def _find_start_method() -> dict:
    # Asking without allow_none would fix the method for the whole process.
    chosen = multiprocessing.get_start_method(allow_none=True)
    return {"method": chosen or multiprocessing.get_all_start_methods()[0]}


def _judge_start_method(*, method: str) -> Row:
    if method == "fork":
        return Row("start method", "ok", "fork")
    message = f"{method}: workers import their classes; the course's own can be imported"
    return Row("start method", "note", message)


def _within(seconds: float, call: Callable[[], object]) -> bool:
    """Tell whether a call returns in time without an error; a name server may never answer."""
    done = []

    def run() -> None:
        with contextlib.suppress(OSError):
            call()
            done.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(done)


def _bind_loopback() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))


def _find_processes() -> dict:
    import torch.distributed as dist

    return {
        "gloo": dist.is_available() and dist.is_gloo_available(),
        "loopback": _within(0.5, _bind_loopback),
        "own_name": _within(0.5, lambda: socket.gethostbyname(socket.gethostname())),
    }


def _judge_processes(*, gloo: bool, loopback: bool, own_name: bool) -> Row:
    name = "several processes"
    if not gloo:
        return Row(name, "note", "this torch has no gloo; 31 to 34 show stored results only")
    if not loopback:
        fix = "allow programs to listen on 127.0.0.1"
        return Row(name, "fix", "31 to 34 need the loopback address", fix)
    if not own_name:
        fix = "add this computer's name to the hosts file, or set GLOO_SOCKET_IFNAME=lo"
        return Row(name, "fix", "this computer's own name does not resolve; 31 to 34 need it", fix)
    return Row(name, "ok", "gloo over the loopback address")


def _find_gpu() -> dict:
    import torch

    found = torch.accelerator.current_accelerator(check_available=True)
    return {"kind": None if found is None else found.type}


def _judge_gpu(*, kind: str | None) -> Row:
    if kind is None:
        return Row("GPU", "note", "none found; fine: GPU cells say what they skip")
    return Row("GPU", "ok", f"{kind} is available")


def _has_nvidia_card() -> bool:
    """Ask the driver's own tool; a machine without a card may still have it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    try:
        answer = subprocess.run([tool, "-L"], capture_output=True, timeout=1.0, check=False)
    except subprocess.TimeoutExpired:
        return True  # many cards answer slowly, no card answers at once
    except OSError:
        return False
    return answer.returncode == 0 and b"GPU" in answer.stdout


def _find_build() -> dict:
    import torch

    built_for = torch.version.cuda or torch.version.hip
    if built_for is not None:
        return {"built_for": built_for, "card": None}
    return {"built_for": None, "card": _has_nvidia_card()}


def _judge_build(*, built_for: str | None, card: bool | None) -> Row:
    if built_for is not None:
        return Row("GPU build", "ok", f"this torch is built for a GPU ({built_for})")
    if not card:
        return Row("GPU build", "ok", "a CPU build, and no NVIDIA card")
    fix = "reinstall torch with the command that the selector on pytorch.org shows"
    return Row("GPU build", "fix", "an NVIDIA card is here, but this torch is a CPU build", fix)


def _find_driver() -> dict:
    import torch

    if torch.version.cuda is None:
        return {"needed": False, "available": False, "card": False, "warning": ""}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    # The warning comes once a process; a card without CUDA says the same when it is gone.
    text = " ".join(str(warning.message) for warning in caught)
    card = not available and _has_nvidia_card()
    return {"needed": True, "available": available, "card": card, "warning": text}


def _judge_driver(*, needed: bool, available: bool, card: bool, warning: str) -> Row:
    name, fix = "GPU driver", "update the NVIDIA driver, or install a build for an older CUDA"
    if not needed:
        return Row(name, "ok", "not needed by this build")
    if available:
        return Row(name, "ok", "recent enough for this build")
    if "too old" in warning:
        return Row(name, "fix", "too old for this build of torch", fix)
    if card:
        return Row(name, "fix", "a card is here, but this torch cannot use it", fix)
    return Row(name, "ok", "no NVIDIA card")


def _find_bfloat16() -> dict:
    import torch

    if not torch.cuda.is_available():
        return {"card": False, "supported": False}
    supported = torch.cuda.is_bf16_supported(including_emulation=False)
    return {"card": True, "supported": supported}


def _judge_bfloat16(*, card: bool, supported: bool) -> Row:
    if not card:
        return Row("bfloat16", "ok", "no CUDA card to ask")
    if supported:
        return Row("bfloat16", "ok", "the card computes in bfloat16")
    return Row("bfloat16", "note", "this card has none (a T4, for example); 42 uses float16")


def _find_widgets() -> dict:
    return {"version": _installed("ipywidgets"), "in_kernel": "ipykernel" in sys.modules}


def _judge_widgets(*, version: str | None, in_kernel: bool) -> Row:
    if version is None:
        message = "ipywidgets is missing; pictures and tables stand in"
        return Row("widgets", "note", message, "start with `python3 course.py lab`")
    if not in_kernel:
        return Row("widgets", "ok", f"ipywidgets {version}; they show in JupyterLab")
    return Row("widgets", "ok", f"ipywidgets {version}; where no slider shows, reload the page")


def _find_noise() -> dict:
    import torch

    matrix = torch.ones(256, 256)
    for _ in range(3):
        matrix @ matrix
    seconds = []
    for _ in range(50):
        start = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds}


def _judge_noise(*, seconds: list[float]) -> Row:
    low, median, high = statistics.quantiles(seconds, n=4)
    spread = (high - low) / median if median else math.inf
    message = f"the middle half of 50 products spreads over {spread:.0%} of their median"
    if spread <= 0.1:
        return Row("noise", "ok", message)
    return Row("noise", "note", message, "timings are noisy: close programs, plug in power")


def _find_optional() -> dict:
    return {"missing": [name for name in _OPTIONAL if importlib.util.find_spec(name) is None]}


def _judge_optional(*, missing: list[str]) -> Row:
    name = "optional packages"
    if not missing:
        return Row(name, "ok", "all found")
    message = f"without {', '.join(missing)}; 53 and 62 to 64 skip what needs them"
    return Row(name, "note", message, "they come with the deploy extra, once those notebooks do")


def _find_colab() -> dict:
    return {"loaded": "google.colab" in sys.modules}


def _judge_colab(*, loaded: bool) -> Row:
    if not loaded:
        return Row("Colab", "ok", "not on Colab")
    message = "progress lives in this virtual machine, which goes away"
    return Row("Colab", "note", message, "keep the text of progress.export()")


def _find_network() -> dict:
    return {}  # never asked: the course downloads nothing at run time


def _judge_network() -> Row:
    return Row("network", "ok", "not needed")


CHECKS: dict[str, tuple[Callable[[], dict], Callable[..., Row]]] = {
    "Python, torch, NumPy": (_find_versions, _judge_versions),
    "kernel": (_find_kernel, _judge_kernel),
    "NumPy bridge": (_find_bridge, _judge_bridge),
    "cores and threads": (_find_cores, _judge_cores),
    "memory": (_find_memory, _judge_memory),
    "disk": (_find_disk, _judge_disk),
    "progress": (_find_progress, _judge_progress),
    "shared memory": (_find_shared_memory, _judge_shared_memory),
    "compiler": (_find_compiler, _judge_compiler),
    "spaces in paths": (_find_spaces, _judge_spaces),
    "start method": (_find_start_method, _judge_start_method),
    "several processes": (_find_processes, _judge_processes),
    "GPU": (_find_gpu, _judge_gpu),
    "GPU build": (_find_build, _judge_build),
    "GPU driver": (_find_driver, _judge_driver),
    "bfloat16": (_find_bfloat16, _judge_bfloat16),
    "widgets": (_find_widgets, _judge_widgets),
    "noise": (_find_noise, _judge_noise),
    "optional packages": (_find_optional, _judge_optional),
    "Colab": (_find_colab, _judge_colab),
    "network": (_find_network, _judge_network),
}


def _examine_one(name: str, facts: Mapping[str, object] | None) -> Row:
    find, judge = CHECKS[name]
    if facts is not None:
        return judge(**facts)
    try:
        return judge(**find())
    except Exception as error:  # noqa: BLE001 - a check that fails must not hide the others
        return Row(name, "note", f"could not be examined ({type(error).__name__})")


def examine(*, facts: Mapping[str, Mapping[str, object]] | None = None) -> Report:
    """Examine this machine, in about two seconds once torch is imported.

    Parameters
    ----------
    facts
        For a check by name, facts to judge instead of those of this machine.

    Returns
    -------
    Report
        One :class:`Row` for each check, always the same checks in the same order.

    Raises
    ------
    ValueError
        When `facts` names an unknown check.

    Examples
    --------
    >>> report = examine(facts={"GPU": {"kind": None}})
    >>> print(report.rows[12])
    note  GPU: none found; fine: GPU cells say what they skip
    """
    facts = facts or {}
    unknown = sorted(set(facts) - set(CHECKS))
    if unknown:
        raise ValueError(f"expected names of checks, got {unknown}; use {', '.join(CHECKS)}")
    return Report(tuple(_examine_one(name, facts.get(name)) for name in CHECKS))
