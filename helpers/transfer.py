"""Time the ways from the host's memory to a device's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from helpers import timing


def time_copies(
    device: torch.device | str,
    *,
    shape: tuple[int, ...] = (1000, 1000),
    min_run_time: float = 0.2,
    pin: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.pin_memory,
) -> timing.Comparison:
    """Time copies of float32 to a device, from both kinds of memory, beside one addition there.

    Parameters
    ----------
    device : torch.device or str
        Where to; a CUDA device, since pinning needs one.
    shape : tuple of int
        Of the tensor.
    min_run_time : float
        Seconds for each call.
    pin : callable
        Returns a copy of a tensor in pinned memory.

    Returns
    -------
    timing.Comparison
        Of the calls "copy", "copy, pinned", "pin and copy" and "add".

    Raises
    ------
    RuntimeError
        If memory cannot be pinned here.

    See Also
    --------
    A guide on good usage of non_blocking and pin_memory :
        https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html

    Examples
    --------
    >>> time_copies("cpu", min_run_time=0.01, pin=torch.clone)["add"].median > 0
    True
    """
    pageable = torch.rand(shape)
    try:
        pinned = pin(pageable)
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"pinned memory needs CUDA, which this machine lacks ({type(error).__name__}); "
            'call time_copies only where device.type == "cuda"'
        ) from None
    there = pageable.to(device)
    calls = {
        "copy": partial(pageable.to, device),
        "copy, pinned": partial(pinned.to, device, non_blocking=True),
        "pin and copy": lambda: pin(pageable).to(device, non_blocking=True),
        "add": partial(torch.add, there, there),
    }
    return timing.compare(calls, min_run_time=min_run_time, device=device)
