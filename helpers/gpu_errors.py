"""Explain the errors of GPU set-up: what the text means, and what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers.table import Table


@dataclass(frozen=True)
class Entry:
    """Hold one error that readers meet.

    Attributes
    ----------
    name : str
        Short and unique.
    pattern : str
        A regular expression that finds the text; named groups are facts in it.
    cause, fix : str
        What the text means, and what to do.
    sample : str
        The text, as it was raised or recorded.
    source : str
        "torch" where a machine without a GPU can raise it, else where the text was recorded.
    """

    name: str
    pattern: str
    cause: str
    fix: str
    sample: str
    source: str = "torch"


@dataclass(frozen=True, repr=False)
class Explanation:
    """Hold what an error means: entry and the facts that were read from its text."""

    entry: Entry
    facts: Mapping[str, str]

    def _rows(self) -> list[tuple[str, str]]:
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        rows = [("error", self.entry.name), ("cause", self.entry.cause), ("fix", self.entry.fix)]
        return rows + ([("it says", facts)] if facts else [])

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        return Table(["", ""], self._rows())._repr_html_()


_PROGRAM = """
import json, sys, torch
from torch.utils import data
said = {}
for line in json.loads(sys.argv[1]):
    try:
        said[line] = ["", str(eval(line))]
    except Exception as error:
        said[line] = [type(error).__name__, str(error)]
print(json.dumps(said))
"""
_ISSUES = "https://github.com/"
TABLE = (
    Entry(
        "CPU wheel",
        r"Torch not compiled with CUDA enabled|PyTorch (?:was compiled|is not linked)"
        r" with(?:out)? (?:support for )?[Cc][Uu][Dd][Aa]|requires CUDA support",
        "This torch was built without CUDA, whatever card is in the machine.",
        "Use pick_device(); for a card, reinstall with the command that pytorch.org composes.",
        "AssertionError: Torch not compiled with CUDA enabled",
    ),
    Entry(
        "build without this device",
        r"Could not run '[^']*' with arguments from the '(?P<device>MPS|XPU|HIP)\w*' backend"
        r"|not compiled with (?P<kind>XPU) enabled",
        "This torch was built without that device.",
        "Use pick_device(): it asks what is there.",
        "NotImplementedError: Could not run 'aten::empty.memory_format' with arguments from the "
        "'MPS' backend.",
    ),
    Entry(
        "no accelerator",
        r"Cannot access accelerator device when none is available",
        "torch.accelerator, .to(0) or pin_memory() was called, and there is no accelerator.",
        "Ask is_available() first.",
        "RuntimeError: Cannot access accelerator device when none is available.",
    ),
    Entry(
        "unguarded torch.cuda",
        r"has no attribute '_cuda_\w+'|^(?:KeyError: )?'allocated_bytes\.all\.current'"
        r"|Tried to instantiate dummy base class|invalid argument to reset_peak_memory_stats",
        "A function of torch.cuda was called on a build or a machine without CUDA.",
        "Ask is_available() first.",
        "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
    ),
    Entry(
        "no driver",
        r"Found no NVIDIA driver on your system|No CUDA GPUs are available"
        r"|driver version is insufficient|no CUDA-capable device is detected",
        "torch was built with CUDA and finds no driver, or no card that it may see.",
        "Compare with nvidia-smi, then look at CUDA_VISIBLE_DEVICES; in a container, pass the GPU "
        "through.",
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA "
        "GPU and installed a driver from http://www.nvidia.com/Download/index.aspx",
        "c10/cuda/CUDAFunctions.cpp in the PyTorch repository",
    ),
    Entry(
        "old driver",
        r"NVIDIA driver on your system is too old \(found version (?P<driver_serves>\d+)\)",
        "The driver cannot serve the CUDA that is in the wheel.",
        "Update the driver, or install a wheel for an older CUDA.",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please "
        "update your GPU driver by downloading and installing a new version",
        f"{_ISSUES}lllyasviel/Fooocus/issues/1313",
    ),
    Entry(
        "no kernels",
        r"no kernel image is available for execution"
        r"|with CUDA capability (?P<card>sm_\d+) is not compatible",
        "The wheel holds no code for this card: too old for it, or too new.",
        "Install another wheel of the same release; compare torch.cuda.get_arch_list().",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        f"{_ISSUES}pytorch/pytorch/issues/81883",
    ),
    Entry(
        "two devices",
        r"Expected all tensors to be on the same device[^,]*(?:, but found at least two devices, "
        r"(?P<found>\S+ and [\w:]+))?|is not on the expected device (?P<expected>\w+)"
        r"|found two different devices (?P<different>\S+, \S+)",
        "One tensor stayed behind, mostly one that was made without device= or is no buffer.",
        "Create it with device=x.device, or register it as a buffer.",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!",
    ),
    Entry(
        "to NumPy",
        r"can't convert (?P<device>\S+) device type tensor to numpy",
        "NumPy reads the CPU's memory only.",
        "Call .cpu() first.",
        "TypeError: can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the "
        "tensor to host memory first.",
    ),
    Entry(
        "unknown device name",
        r"at start of device string: (?P<name>\S+)",
        "torch knows no device of this name; CUDA's is cuda, also on AMD's cards.",
        "Use pick_device().",
        "RuntimeError: Expected one of cpu, cuda, ipu, xpu device type at start of device string: "
        "gpu",
    ),
    Entry(
        "file from a GPU",
        r"Attempting to deserialize object on an? (?P<device>\w+) device",
        "The file says that its tensors lay on a GPU, and there is none here.",
        'Load with map_location="cpu", or with map_location=device.',
        "RuntimeError: Attempting to deserialize object on a CUDA device but "
        "torch.cuda.is_available() is False.",
    ),
    Entry(
        "float64 on MPS",
        r"MPS framework doesn't support float64",
        "Apple's GPUs have no float64, and NumPy's default is float64.",
        "Convert to float32 before you move.",
        "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't "
        "support float64. Please use float32 instead.",
        f"{_ISSUES}pytorch/pytorch/issues/122602",
    ),
    Entry(
        "forked process",
        r"Cannot re-initialize (?P<device>CUDA|XPU|MTIA) in forked subprocess",
        "A process that had used the GPU was copied by fork, and the copy cannot use it.",
        "Let workers return CPU tensors, or start them with spawn; see 23.",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with "
        "multiprocessing, you must use the 'spawn' start method",
        "torch/cuda/__init__.py in the PyTorch repository",
    ),
    Entry(
        "device-side assert",
        r"device-side assert triggered",
        "An index was out of range. The GPU reports it late, so the traceback may point elsewhere.",
        "Run the same batch on the CPU: there the error names the index. Then restart the process.",
        "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be "
        "asynchronously reported at some other API call, so the stacktrace below might be "
        "incorrect.",
        f"{_ISSUES}karpathy/nanoGPT/issues/470",
    ),
    Entry(
        "index on the CPU",
        r"Target (?P<target>-?\d+) is out of bounds|index out of range in self"
        r"|index (?P<index>-?\d+) is out of bounds",
        "A label or an index is as large as the table it points into, or larger.",
        "Compare its largest value with the number of classes or rows.",
        "IndexError: Target 10 is out of bounds.",
    ),
    Entry(
        "out of memory",
        r"CUDA out of memory\. Tried to allocate (?P<asked>[\d.]+ [KMG]iB)"
        r"(?:.*?total capac\w+ of (?P<total>[\d.]+ [KMG]iB) of which (?P<free>[\d.]+ (?:[KMG]iB|bytes)"
        r") is free)?(?:.*?allocated memory (?P<allocated>[\d.]+ [KMG]iB))?",
        "The card's memory is full; the rest of the text says with what.",
        "Reduce the batch, or read 41 for what takes the memory and 43 to 45 for what to do.",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.29 GiB. GPU 0 has a total "
        "capacity of 10.74 GiB of which 3.69 GiB is free. Including non-PyTorch memory, this "
        "process has 6.68 GiB memory in use. Of the allocated memory 6.10 GiB is allocated by "
        "PyTorch, and 396.58 MiB is reserved by PyTorch but unallocated.",
        f"{_ISSUES}lllyasviel/FramePack/issues/369",
    ),
)


def explain(error: BaseException | str) -> Explanation:
    """Find the cause and the fix of an error's text, and the facts that the text holds.

    Parameters
    ----------
    error : exception or str
        The exception, or the text that somebody reported.

    Returns
    -------
    Explanation
        Displays itself. Facts keep the words of the text, except a driver's version, which
        NVIDIA writes as 1000 times the major plus 10 times the minor.

    Raises
    ------
    LookupError
        If the table has no such error.

    Examples
    --------
    >>> explain("The NVIDIA driver on your system is too old (found version 11040).").facts
    {'driver_serves': 'CUDA 11.4'}
    """
    text = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
    for entry in TABLE:
        match = re.search(entry.pattern, text, re.DOTALL)
        if match:
            facts = {name: value for name, value in match.groupdict().items() if value}
            if "driver_serves" in facts:
                major, rest = divmod(int(facts["driver_serves"]), 1000)
                facts["driver_serves"] = f"CUDA {major}.{rest // 10}"
            return Explanation(entry, facts)
    raise LookupError(
        f"the table has no error like {text[:60]!r}; read the last line of its traceback, and look "
        "for that line among the issues of PyTorch"
    )


def without_gpu(lines: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Run expressions in a new process that sees no CUDA device.

    CUDA_VISIBLE_DEVICES is set to the empty text there; an Apple GPU cannot be hidden. Warnings
    are dropped.

    Parameters
    ----------
    lines : sequence of str
        Expressions; ``torch`` and ``data``, its loaders, are imported.

    Returns
    -------
    dict of str to (str, str)
        For each line the type of its error, or the empty text, and what it said or returned.

    Raises
    ------
    subprocess.CalledProcessError
        If a line ends the process.

    Examples
    --------
    >>> without_gpu(["torch.cuda.max_memory_allocated()", "1 / 0"])
    {'torch.cuda.max_memory_allocated()': ('', '0'), '1 / 0': ('ZeroDivisionError', 'division ...
    """
    env = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, json.dumps(list(lines))]
    done = subprocess.run(command, env=env, capture_output=True, check=True, text=True)
    return {line: (kind, text) for line, (kind, text) in json.loads(done.stdout).items()}


def table() -> Table:
    """Return all errors with cause and fix.

    Returns
    -------
    Table
        One row per error, the text shortened.

    Examples
    --------
    >>> table().columns
    ['you see', 'cause', 'fix']
    """
    rows = [[_short(entry.sample), entry.cause, entry.fix] for entry in TABLE]
    return Table(["you see", "cause", "fix"], rows)


def _short(sample: str) -> str:
    text = " ".join(sample.partition(": ")[2].split())
    return text if len(text) <= 72 else f"{text[:69]}..."
