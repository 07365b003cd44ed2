"""Start several kernels at once, as a class does, and measure what they take."""

import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from helpers import _child
from tools import kernel as settings
from tools import lab, notebooks

_EVERY = 0.25  # seconds between two looks at the memory


@dataclass(frozen=True)
class Use:
    """Hold what one kernel took.

    Attributes
    ----------
    start : float
        Seconds from the start of the kernel to the end of its setup cell.
    own, shared : int
        Bytes after the setup cell that only this kernel has, and its part of those that it
        shares with others: libraries on disk are in memory once.
    peak : int
        The most bytes of its own, with its child processes, while the notebook ran.
    threads : int
        Threads of the process after the notebook.
    failed : str
        What a cell raised, "" if none did.
    """

    start: float
    own: int
    shared: int
    peak: int
    threads: int
    failed: str = ""


def cells_of(path):
    """Return the code of a notebook: up to its setup cell, and after it."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
    setup = next(n for n, source in enumerate(code, 1) if "describe_machine()" in source)
    return code[:setup], code[setup:]


def memory_of(process):
    """Return the bytes that only this process has and its part of shared ones.

    Where the system does not tell (macOS and Windows know no parts), nothing counts as shared.
    """
    with suppress(psutil.Error):
        full = process.memory_full_info()
        own = getattr(full, "uss", full.rss)
        return own, max(0, getattr(full, "pss", own) - own)
    return 0, 0


def family(pid):
    """Return a process with its children; empty when it is gone."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def measure(path, *, kernels, wait=300):
    """Run a notebook in several kernels at once and measure each.

    Parameters
    ----------
    path : path-like
        The notebook.
    kernels : int
        How many.
    wait : float
        Seconds that one cell may take.

    Returns
    -------
    list of Use
        One for each kernel.
    """
    setup, rest = cells_of(path)
    together = threading.Barrier(kernels, timeout=wait * len(setup))
    with _scratch(), ThreadPoolExecutor(kernels) as pool:
        settings.prepare_fonts()
        started = [
            pool.submit(_one, Path(path).parent, setup, rest, together, wait)
            for _ in range(kernels)
        ]
        return [future.result() for future in started]


@contextmanager
def _scratch():
    """Yield a folder in which kernels and servers keep what they write."""
    scratch = TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True)
    with scratch as folder, settings.environment(folder):
        yield Path(folder)


def server_memory(*, wait=120):
    """Start a JupyterLab as each user has one, and return its bytes; None when it never answers."""
    with _scratch() as folder:
        port, is_root = lab.free_port(), hasattr(os, "geteuid") and os.geteuid() == 0
        command = lab.lab_command(folder, ["--no-browser"], port=port, is_root=is_root)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **quiet)
        try:
            address = f"http://127.0.0.1:{port}/api"
            up = _until(lambda: _child.get(address, timeout=5), process, wait)
            return memory_of(psutil.Process(process.pid))[0] if up else None
        finally:
            process.terminate()
            _wait_or_kill(process)


def _until(call, process, wait):
    """Tell whether a call succeeds while a process lives, within some seconds."""
    deadline = time.monotonic() + wait
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError):
            call()
            return True
        time.sleep(0.2)
    return False


def _wait_or_kill(process):
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def _one(where, setup, rest, together, wait):
    from jupyter_client.manager import start_new_kernel

    began = time.monotonic()
    manager, client = start_new_kernel(
        kernel_name="python3", cwd=str(where), startup_timeout=120, stderr=subprocess.DEVNULL
    )
    try:
        failed = _run(client, setup, wait)
        start, pid = time.monotonic() - began, manager.provisioner.pid
        together.wait()  # measured while all of them hold their libraries
        own, shared = memory_of(psutil.Process(pid))
        together.wait()
        with _Peak(pid) as peak:
            failed = failed or _run(client, rest, wait)
        return Use(start, own, shared, max(own, peak.bytes), _threads(pid), failed)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _threads(pid):
    with suppress(psutil.Error):
        return psutil.Process(pid).num_threads()
    return 0


def _run(client, sources, wait):
    """Run cells one after the other; return the first error, "" if there is none."""
    for source in sources:
        reply = client.execute_interactive(
            source, timeout=wait, allow_stdin=False, output_hook=lambda message: None
        )["content"]
        if reply["status"] == "error":
            return f"{reply['ename']}: {reply['evalue']}"
    return ""


class _Peak:
    """Look at a process and its children again and again; keep the most bytes of their own."""

    def __init__(self, pid):
        self.pid, self.bytes, self._stop = pid, 0, threading.Event()

    def _look(self):
        while not self._stop.wait(_EVERY):
            now = sum(memory_of(process)[0] for process in family(self.pid))
            self.bytes = max(self.bytes, now)

    def __enter__(self):
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def notebook(name):
    """Return the one notebook whose name starts so."""
    return notebooks.find([name])[0]
