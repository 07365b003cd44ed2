"""Ask the CPU's allocator what an operation needed, scratch inside its kernels included."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def allocator_peak(call: Callable[[], Any]) -> int:
    """Return the most bytes that the allocator had given out during a call, beyond its start.

    `helpers.memory.track_memory` sees tensors that operations return. A kernel may ask the
    allocator for more, use it and give it back before it returns: scratch.

    Parameters
    ----------
    call : callable
        Takes nothing; what it returns stays alive until the peak is read.

    Returns
    -------
    int
        Bytes of the CPU's allocator, as `torch.profiler` hears of them.

    Raises
    ------
    TypeError
        If `call` cannot be called.

    Examples
    --------
    >>> import torch
    >>> allocator_peak(lambda: torch.ones(1000))
    4000
    """
    if not callable(call):
        raise TypeError(
            f"call must be a function without arguments, got {type(call).__name__}; "
            "pass lambda: model(x)"
        )
    from torch.profiler import ProfilerActivity, profile

    with _quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = call()
    del kept
    events = profiler.profiler.kineto_results.events()
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    alive = peak = 0
    for _, change in sorted(changes, key=lambda pair: pair[0]):
        alive += change
        peak = max(peak, alive)
    return peak


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the profiler's lines, which hold a date and a process id, out of the notebook."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
