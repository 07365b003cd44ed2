"""Say where code runs: pick the accelerator or the CPU, wait for it, name the machine."""

import math
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

import torch


@dataclass(frozen=True, repr=False)
class Machine:
    """Describe the machine in the words that belong beside every measurement.

    It names no host, CPU model, user, path or date, so that a notebook can be shared.

    Parameters
    ----------
    kind : str
        "CPU", or the accelerator's name, such as "NVIDIA T4".
    device : str
        Device type: "cpu", "cuda", "mps" or "xpu".
    cores : int
        Cores that this process may use.
    threads : int
        Threads that torch uses inside one operation.
    torch, numpy : str
        Versions, without a build suffix such as "+cpu".
    """

    kind: str
    device: str
    cores: int
    threads: int
    torch: str
    numpy: str

    def __str__(self):
        """Return the one line that is printed under a table or a figure."""
        return (
            f"Machine: {self.kind} · {_count(self.cores, 'core')}"
            f" · {_count(self.threads, 'thread')} · torch {self.torch} · NumPy {self.numpy}"
        )

    __repr__ = __str__

    def _repr_html_(self):
        return f"<span>{escape(str(self))}</span>"


def pick_device():
    """Return the accelerator if one can be used, else the CPU.

    Returns
    -------
    torch.device
        "cuda", "mps", "xpu" or "cpu", without an index.

    See Also
    --------
    torch.accelerator.current_accelerator : https://docs.pytorch.org/docs/stable/accelerator.html

    Examples
    --------
    >>> torch.ones(2, device=pick_device()).sum().item()
    2.0
    """
    # Without check_available the answer is what torch was built for, GPU present or not.
    found = torch.accelerator.current_accelerator(check_available=True)
    return found if found is not None else torch.device("cpu")


def synchronize(device=None):
    """Wait until the device has finished the work that was queued on it.

    On a CPU there is no queue and nothing happens. The same holds for a device that this
    machine lacks: nothing can be pending there, so no error is raised.

    Parameters
    ----------
    device : torch.device or str, optional
        Which device to wait for; by default the one `pick_device` returns.

    Raises
    ------
    RuntimeError
        If `device` names no device type that torch knows.

    See Also
    --------
    CUDA semantics, asynchronous execution : https://docs.pytorch.org/docs/stable/notes/cuda.html

    Examples
    --------
    >>> synchronize("cpu")
    """
    here = pick_device()
    wanted = here if device is None else torch.device(device)
    if here.type == "cpu" or wanted.type != here.type:
        return
    torch.accelerator.synchronize(wanted)


def describe_machine():
    """Describe this machine: kind of device, usable cores, threads and versions.

    Returns
    -------
    Machine
        A frozen record that displays itself as one line.

    Examples
    --------
    >>> describe_machine().cores >= 1
    True
    """
    import numpy

    device = pick_device()
    return Machine(
        kind=_device_name(device),
        device=device.type,
        cores=_usable_cores(),
        threads=torch.get_num_threads(),
        torch=torch.__version__.partition("+")[0],
        numpy=numpy.__version__.partition("+")[0],
    )


def pick_autocast_dtype(device=None):
    """Return the 16-bit dtype that the hardware of `device` computes in.

    GPUs before compute capability 8.0 (a T4 has 7.5) only emulate bfloat16, slowly, and still
    answer True to `is_bf16_supported()`; here emulation does not count.

    Parameters
    ----------
    device : torch.device or str, optional
        By default the one `pick_device` returns.

    Returns
    -------
    torch.dtype
        `torch.bfloat16` on CPUs and on GPUs that have it; `torch.float16` on older CUDA
        GPUs, on Apple's GPUs, and for a CUDA device that this machine lacks.

    See Also
    --------
    torch.amp : https://docs.pytorch.org/docs/stable/amp.html

    Examples
    --------
    >>> pick_autocast_dtype("cpu")
    torch.bfloat16
    """
    device = pick_device() if device is None else torch.device(device)
    if device.type == "mps" or (device.type == "cuda" and not _cuda_has_bfloat16(device)):
        return torch.float16
    return torch.bfloat16


def _cuda_has_bfloat16(device):
    if not torch.cuda.is_available():
        return False
    # The question is asked of the current device, which need not be the wanted one.
    with torch.cuda.device(device):
        return torch.cuda.is_bf16_supported(including_emulation=False)


def _device_name(device):
    """Return the product name of an accelerator, or its type where torch knows no name."""
    if device.type == "cpu":
        return "CPU"
    if device.type == "mps":
        return "Apple GPU"
    backend = getattr(torch, device.type, None)
    try:
        return backend.get_device_name(device)
    except (AttributeError, RuntimeError, AssertionError):
        return device.type.upper()


def _usable_cores():
    """Count the cores this process may use: affinity mask, then the container's quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    quota = _cgroup_quota()
    # A quota of 1.5 cores throttles two busy threads, so it counts as one core.
    return cores if quota is None else max(1, min(cores, math.floor(quota)))


def _cgroup_quota(root="/sys/fs/cgroup", membership="/proc/self/cgroup"):
    """Return the smallest CPU quota, in cores, of this process's control groups, or None."""
    quotas = []
    for folder in _cgroup_folders(Path(root), Path(membership)):
        version_2 = _read(folder / "cpu.max").split()
        version_1 = [
            _read(folder / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        ]
        for limit in (version_2, version_1):
            # "max" and -1 stand for no quota.
            if len(limit) == 2 and all(part.isdecimal() for part in limit) and int(limit[1]):
                quotas.append(int(limit[0]) / int(limit[1]))
    return min(quotas, default=None)


def _cgroup_folders(root, membership):
    """Yield this process's control-group folders and all those above them."""
    yield from (root, root / "cpu", root / "cpu,cpuacct")
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        base = root / controllers if controllers else root
        folder = base / path.strip("/")
        while folder != base and base in folder.parents:
            yield folder
            folder = folder.parent


def _read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def _count(n, noun):
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
