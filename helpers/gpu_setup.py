"""Ask what a GPU set-up consists of, judge it, and stand in for a card that is not there."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from importlib import metadata
from types import SimpleNamespace
from unittest import mock

import torch

from helpers.table import Table

# Kernels in the wheels of torch 2.13.0 for Linux x86-64, from PYTORCH_RELEASES_CODE_CC in
# torch/cuda/__init__.py of that release; get_arch_list() of the cu130 wheel says the same.
WHEELS = {
    "cu126": ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
    "cu130": ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
}
# Compute capabilities by NVIDIA's list, https://developer.nvidia.com/cuda-gpus.
CARDS = {
    "GTX 1080": (6, 1),
    "V100": (7, 0),
    "T4": (7, 5),
    "A100": (8, 0),
    "RTX 4090": (8, 9),
    "H100": (9, 0),
    "RTX 5090": (12, 0),
}
# What a capability brings: the GPU compiler behind torch.compile refuses cards below 7.0
# (torch._inductor.exc.GPUTooOldForTriton); bfloat16 and TF32 came with 8.0.
NEEDS = {"torch.compile": (7, 0), "bfloat16": (8, 0), "TF32": (8, 0)}


@dataclass(frozen=True, repr=False)
class Setup:
    """Hold the facts that decide whether torch can use a card; show them as a table.

    Attributes
    ----------
    wheel_cuda : str or None
        The CUDA in the wheel; None in a build without CUDA.
    cudnn : int or None
        cuDNN's version number, from the wheel.
    packages : int
        NVIDIA's packages that the wheel requires.
    arch_list : tuple of str
        The architectures that the wheel holds kernels for.
    driver : str or None
        The driver's version by nvidia-smi; None where there is none.
    visible_devices : str or None
        The variable CUDA_VISIBLE_DEVICES; None where it is not set.
    device_count : int
        CUDA devices that torch sees.
    capability : tuple of int or None
        Of the first of them.
    """

    wheel_cuda: str | None
    cudnn: int | None
    packages: int
    arch_list: tuple[str, ...]
    driver: str | None
    visible_devices: str | None
    device_count: int
    capability: tuple[int, int] | None

    @property
    def table(self) -> Table:
        """Return one row per fact."""
        rows = [[f.name, self._text(f.name)] for f in fields(self)]
        return Table(["fact", "here"], rows)

    def _text(self, name: str) -> str:
        value = getattr(self, name)
        if name == "capability" and value:
            return "{}.{}".format(*value)
        if name == "arch_list":
            return " ".join(value) or "none"
        return {None: "none", "": '"" (hides all)'}.get(value, str(value))

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def find_setup() -> Setup:
    """Ask wheel, driver and card; nothing raises where one of them is missing.

    Returns
    -------
    Setup
        Displays itself.

    Examples
    --------
    >>> find_setup().device_count >= 0
    True
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    needs = metadata.requires("torch") or []
    return Setup(
        wheel_cuda=torch.version.cuda,
        cudnn=torch.backends.cudnn.version(),
        packages=sum(need.startswith("nvidia-") for need in needs),
        arch_list=tuple(torch.cuda.get_arch_list()),
        driver=_driver_version(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        device_count=count,
        capability=torch.cuda.get_device_capability(0) if count else None,
    )


def _driver_version() -> str | None:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"\d+(?:\.\d+)*", done.stdout)
    return found.group() if done.returncode == 0 and found else None


def cuda_of(version: str) -> str | None:
    """Read the CUDA in a wheel from the version that pip shows.

    Parameters
    ----------
    version : str
        Such as ``2.13.0+cu130``; the last digit is the minor.

    Returns
    -------
    str or None
        None for a build without CUDA, and for a version without a suffix, which does not say.

    Examples
    --------
    >>> cuda_of("2.13.0+cu130"), cuda_of("2.13.0+cpu")
    ('13.0', None)
    """
    found = re.search(r"\+cu(\d+)(\d)$", version)
    return f"{found[1]}.{found[2]}" if found else None


def runs_on(arch_list: Sequence[str], capability: tuple[int, int]) -> bool:
    """Tell whether a wheel holds code that a card can run.

    ``sm_XY`` is machine code: it runs on X.Z with Z at least Y. ``compute_XY`` is a text that the
    driver compiles: it runs on X.Y and everything newer. The rule is that of cards; the small
    boards of the Jetson series have exceptions.

    Parameters
    ----------
    arch_list : sequence of str
        As ``torch.cuda.get_arch_list()`` returns it.
    capability : tuple of int
        Major and minor, as ``torch.cuda.get_device_capability()`` returns it.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If an entry of `arch_list` cannot be read.

    See Also
    --------
    NVIDIA, CUDA C++ Programming Guide, sections "Binary Compatibility" and "PTX Compatibility".

    Examples
    --------
    >>> runs_on(["sm_86"], (8, 9)), runs_on(["sm_86"], (9, 0)), runs_on(["compute_86"], (9, 0))
    (True, False, True)
    """
    return any(_code_runs(arch, tuple(capability)) for arch in arch_list)


def _code_runs(arch: str, capability: tuple[int, int]) -> bool:
    found = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", arch)
    if found is None:
        raise ValueError(f"arch_list must hold names such as sm_86, got {arch!r}")
    code = (int(found[2]), int(found[3]))
    if found[4] == "a":  # for this one chip, whatever comes later
        return code == capability
    return code <= capability and (found[1] == "compute" or code[0] == capability[0])


@contextlib.contextmanager
def stand_in_card(
    capability: tuple[int, int], *, name: str = "stand-in", wheel: str = "cu130"
) -> Iterator[None]:
    """Let torch answer questions as if this card were there. It runs nothing.

    For testing code that decides by asking. A tensor cannot be put on the stand-in.

    Parameters
    ----------
    capability : tuple of int
        Major and minor.
    name : str
        What ``torch.cuda.get_device_name`` returns.
    wheel : str
        A key of `WHEELS`: its CUDA and its kernels.

    Raises
    ------
    ValueError
        If there is no such wheel.

    Examples
    --------
    >>> with stand_in_card((7, 5), name="T4"):
    ...     torch.cuda.get_device_capability(), torch.cuda.get_device_name()
    ((7, 5), 'T4')
    """
    if wheel not in WHEELS:
        raise ValueError(f"wheel must be one of {', '.join(WHEELS)}, got {wheel!r}")
    major, minor = capability
    properties = SimpleNamespace(major=major, minor=minor, name=name, multi_processor_count=1)
    answers = {
        torch.cuda: {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "get_device_capability": lambda *_: (major, minor),
            "get_device_properties": lambda *_: properties,
            "get_device_name": lambda *_: name,
            "get_arch_list": lambda: list(WHEELS[wheel]),
            "device": lambda *_: contextlib.nullcontext(),
        },
        torch.accelerator: {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_accelerator": lambda check_available=False: torch.device("cuda", 0),
        },
        torch.version: {"cuda": cuda_of(f"+{wheel}"), "hip": None},
    }
    with contextlib.ExitStack() as stack:
        for owner, values in answers.items():
            stack.enter_context(mock.patch.multiple(owner, **values))
        yield


def features_of(capability: tuple[int, int]) -> dict[str, bool]:
    """Say which features a compute capability brings.

    Parameters
    ----------
    capability : tuple of int
        Major and minor.

    Returns
    -------
    dict of str to bool
        For each key of `NEEDS`.

    Examples
    --------
    >>> features_of((7, 5))
    {'torch.compile': True, 'bfloat16': False, 'TF32': False}
    """
    return {name: tuple(capability) >= needed for name, needed in NEEDS.items()}
