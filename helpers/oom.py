"""Read what a CUDA allocator says when a tensor does not fit."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = r"(\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)"
_FIELDS = {
    "tried": rf"Tried to allocate {_SIZE}",
    "capacity": rf"total capacity of {_SIZE}|{_SIZE} total capacity",
    "free": rf"of which {_SIZE} is free|{_SIZE} free",
    "process": rf"this process has {_SIZE} memory in use",
    "allocated": rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated",
    "cached": rf"{_SIZE} is reserved by PyTorch but unallocated",
}
# The form of torch 2.11 to 2.13, with the sizes of a card of 16 GB. Written down, not raised here.
RECORDED = (
    "CUDA out of memory. Tried to allocate 1.53 GiB. GPU 0 has a total capacity of 14.56 GiB of "
    "which 1.02 GiB is free. Including non-PyTorch memory, this process has 13.54 GiB memory in "
    "use. Of the allocated memory 13.33 GiB is allocated by PyTorch, and 41.12 MiB is reserved "
    "by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)


@dataclass(frozen=True)
class OutOfMemory:
    """Hold the numbers of one message, in bytes.

    Attributes
    ----------
    tried : int
        What the operation asked for.
    capacity, free : int
        Of the card.
    process : int
        What this process holds on the card: tensors, cache, and the context of CUDA.
    allocated, cached : int
        In tensors; and reserved by torch's allocator, but in no tensor.
    """

    tried: int
    capacity: int
    free: int
    process: int
    allocated: int
    cached: int

    @property
    def others(self) -> int:
        """Return what other processes hold on the card."""
        return max(self.capacity - self.free - self.process, 0)


def read(message: str) -> OutOfMemory:
    """Read the message of a `torch.OutOfMemoryError`.

    Parameters
    ----------
    message : str
        Its text, in the form of torch 2 or of torch 1.

    Returns
    -------
    OutOfMemory

    Raises
    ------
    ValueError
        If a size is missing.

    Examples
    --------
    >>> found = read(RECORDED)
    >>> found.tried > found.free + found.cached, found.others
    (True, 0)
    """
    found = {name: _bytes(re.search(pattern, message)) for name, pattern in _FIELDS.items()}
    total = _bytes(re.search(rf"{_SIZE} reserved in total", message))
    if total is not None and found["allocated"] is not None:  # torch 1
        found["cached"] = max(total - found["allocated"], 0)
        found["process"] = total
    missing = [name for name, size in found.items() if size is None]
    if missing:
        raise ValueError(
            f"message must be the text of a CUDA out-of-memory error, found no {missing[0]}; "
            "pass str(error) of a torch.OutOfMemoryError"
        )
    return OutOfMemory(**found)


def _bytes(match: re.Match[str] | None) -> int | None:
    if match is None:
        return None
    number, unit = (group for group in match.groups() if group is not None)
    return round(float(number) * _UNITS[unit])


def provoke(device: torch.device) -> str:
    """Ask a CUDA device for more than it has and return its words, or the recorded ones.

    Parameters
    ----------
    device : torch.device

    Returns
    -------
    str
        On any other device `RECORDED`.

    Examples
    --------
    >>> provoke(torch.device("cpu")) == RECORDED
    True
    """
    if device.type != "cuda":
        return RECORDED
    capacity = torch.cuda.mem_get_info(device)[1]
    try:
        torch.empty(2 * capacity, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError as error:
        return str(error)
    raise RuntimeError("twice the card's capacity was given out; is its memory oversubscribed?")
