"""Say what a machine needs when a class shares it.

    python3 course.py shared-server --users 20
    python3 course.py shared-server --users 20 --kernels 5 --notebook 43

Starts a few kernels at once, runs one notebook in each, and measures memory, threads and the
time to the first cell; starts two of everything that listens on a port; then computes what
the given number of users needs. Nothing is left running.
"""

import argparse
import math
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import psutil

from helpers import doctor
from helpers._paths import ROOT
from helpers.units import format_bytes, format_time
from tools import shared_kernels, shared_ports, workbook

GIB = 2**30
SYSTEM = GIB  # bytes for everything else that runs
BATCHES = 64 * 2**20  # bytes in /dev/shm for the loaders of one user
LARGEST = 8  # kernels that this program starts at most


@dataclass(frozen=True)
class Machine:
    """Hold what the machine has: cores, bytes of memory, of /dev/shm and of disks."""

    cores: int
    memory: int
    shared_memory: int | None
    disk: int
    environment: int
    copies: int


def read_machine():
    """Ask this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    notebooks = sum(len(copy.content) for copy in workbook.course_files(ROOT / "notebooks"))
    return Machine(
        cores=cores or 1,
        memory=psutil.virtual_memory().available,
        shared_memory=doctor.CHECKS["shared memory"][0]()["size"],
        disk=shutil.disk_usage(Path.home()).free,
        environment=size_of(sysconfig.get_path("purelib")),
        copies=notebooks,
    )


def size_of(folder):
    """Return the bytes of the files of a folder; a link counts as nothing."""
    total = 0
    for path, _, names in os.walk(folder):
        files = (os.path.join(path, name) for name in names)
        total += sum(os.lstat(file).st_size for file in files if not os.path.islink(file))
    return total


@dataclass(frozen=True)
class Measured:
    """Hold what ran at once: kernels, a JupyterLab's bytes, faults of pairs on ports."""

    kernels: list[shared_kernels.Use]
    server: int | None
    ports: dict[str, str]

    @property
    def peak(self):
        """Return the bytes of one user: the largest kernel and a JupyterLab."""
        return max(use.peak for use in self.kernels) + (self.server or 0)


def advise(users, measured, machine):
    """Return the rows of the table: what was measured, and what so many users need.

    Parameters
    ----------
    users : int
        Who work at the same time.
    measured : Measured
        What a few kernels took, a JupyterLab, and pairs of programs.
    machine : Machine
        What there is.

    Returns
    -------
    list of helpers.doctor.Row
    """
    return [
        _kernels(measured.kernels),
        _ports(measured.ports),
        _memory(users, measured, machine),
        _cores(users, machine),
        _disk(users, machine),
        _shared_memory(users, machine),
    ]


def _kernels(uses):
    slowest = max(use.start for use in uses)
    failed = next((use.failed for use in uses if use.failed), "")
    message = (
        f"{len(uses)} at once; the slowest had its setup cell after {format_time(slowest)}; "
        f"{max(use.threads for use in uses)} threads in one at most"
    )
    if failed:
        return doctor.Row("kernels", "fix", message, f"a cell failed: {failed}")
    return doctor.Row("kernels", "ok", message)


def _ports(ports):
    wrong = {name: fault for name, fault in ports.items() if fault}
    if not wrong:
        return doctor.Row("ports", "ok", f"two at once of {', '.join(ports)}: both came up")
    message = "; ".join(f"{name}: {fault}" for name, fault in wrong.items())
    return doctor.Row("ports", "fix", message, "allow programs to listen on 127.0.0.1")


def memory_needed(users, measured):
    """Return the bytes that so many users need, if all are at their peak at the same time."""
    once = sum(use.shared for use in measured.kernels)  # what kernels share is in memory once
    return users * measured.peak + once + SYSTEM


def _memory(users, measured, machine):
    need = memory_needed(users, measured)
    own, peak = (max(getattr(use, name) for use in measured.kernels) for name in ("own", "peak"))
    server = "" if measured.server is None else f", {format_bytes(measured.server)} per JupyterLab"
    message = (
        f"{format_bytes(own)} per kernel after setup, {format_bytes(peak)} at its peak{server}; "
        f"{users} users need {_gib(need)}, {_gib(machine.memory)} are available"
    )
    if measured.server is None:
        return doctor.Row("memory", "fix", message, "JupyterLab did not start; run the doctor")
    if need <= machine.memory:
        return doctor.Row("memory", "ok", message)
    fits = max(0, (machine.memory - memory_needed(0, measured)) // measured.peak)
    fix = f"{fits} users fit here; let neighbors share a kernel, or use more machines"
    return doctor.Row("memory", "fix", message, fix)


def _gib(size):
    return f"{math.ceil(10 * size / GIB) / 10:.1f} GiB"


def _cores(users, machine):
    threads = max(1, machine.cores // users)
    message = f"{users} users on {machine.cores} cores: set OMP_NUM_THREADS={threads} for each"
    if users <= machine.cores:
        return doctor.Row("cores", "ok", message)
    fix = (
        f"up to {math.ceil(users / machine.cores)} users wait for one core; timings will spread: "
        "run timed beats in turns, or show those of one quiet machine"
    )
    return doctor.Row("cores", "note", message, fix)


def _disk(users, machine):
    own = 3 * machine.copies  # the copies, saved with outputs
    once, each = machine.environment + users * own, users * (machine.environment + own)
    message = (
        f"the environment takes {_gib(machine.environment)}; shared by {users} users "
        f"{_gib(once)} with their copies, one for each {_gib(each)}"
    )
    if once <= machine.disk:
        return doctor.Row("disk", "ok", message)
    return doctor.Row("disk", "fix", message, f"free some: {_gib(machine.disk)} are left")


def _shared_memory(users, machine):
    need = max(GIB, users * BATCHES)
    if machine.shared_memory is None:
        return doctor.Row("shared memory", "ok", "this system needs no /dev/shm")
    message = f"/dev/shm has {_gib(machine.shared_memory)}; {users} users want {_gib(need)}"
    if machine.shared_memory >= need:
        return doctor.Row("shared memory", "ok", message)
    fix = "in Docker, start with a larger --shm-size; loaders use num_workers=0 until then"
    return doctor.Row("shared memory", "note", message, fix)


def main(argv=None):
    """Measure, print the table; return 1 when something needs a fix."""
    parser = argparse.ArgumentParser(prog="course.py shared-server", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=3, help=f"1 to {LARGEST}")
    parser.add_argument("--notebook", default="43", help="how the notebook to run starts")
    options = parser.parse_args(argv)
    if options.users < 1 or not 1 <= options.kernels <= LARGEST:
        parser.error(f"expected at least 1 user and 1 to {LARGEST} kernels; use --kernels 3")
    path = shared_kernels.notebook(options.notebook)
    print(f"Running {path.stem} in {options.kernels} kernels at once …", flush=True)
    measured = Measured(
        kernels=shared_kernels.measure(path, kernels=options.kernels),
        server=shared_kernels.server_memory(),
        ports=shared_ports.examine(),
    )
    rows = advise(options.users, measured, read_machine())
    print("\n".join(map(str, rows)))
    return 1 if any(row.status == "fix" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
