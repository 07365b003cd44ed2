"""Count the bytes that a forward pass keeps alive for its backward pass."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch

from helpers import _live_bytes


class _Entry:
    """Stand in the graph for one saved tensor, and keep its storages alive."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.storages = _storages(tensor)


def _storages(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    return [part.untyped_storage() for part in _live_bytes.parts(tensor)]


def saved_bytes(forward: Callable[[], Any], *, without: Iterable[torch.Tensor] = ()) -> int:
    """Run a forward pass and count the bytes that its graph keeps alive for backward.

    The count is of what the result of `forward` still needs when it returns: what a freed part of
    the graph had saved is not in it. Each storage counts once, however many nodes saved it.

    Parameters
    ----------
    forward : callable
        Takes nothing; returns the tensor, or whatever else holds the graph. Backward cannot be
        called on it: its saved tensors are replaced by counters.
    without : iterable of torch.Tensor
        Tensors whose storages are not counted, such as ``model.parameters()``.

    Returns
    -------
    int
        Bytes. 0 where nothing is recorded.

    Raises
    ------
    TypeError
        If `forward` cannot be called.

    See Also
    --------
    torch.autograd.graph.saved_tensors_hooks :
        https://docs.pytorch.org/docs/stable/autograd.html

    Examples
    --------
    >>> x = torch.ones(1000, requires_grad=True)
    >>> saved_bytes(lambda: torch.sigmoid(x)), saved_bytes(lambda: 1 / (1 + torch.exp(-x)))
    (4000, 8000)
    """
    if not callable(forward):
        raise TypeError(
            f"forward must be a function without arguments, got {type(forward).__name__}; "
            "pass lambda: model(x)"
        )
    alive: weakref.WeakSet[_Entry] = weakref.WeakSet()  # an entry leaves with its node

    def pack(tensor: torch.Tensor) -> _Entry:
        entry = _Entry(tensor)
        alive.add(entry)
        return entry

    with torch.autograd.graph.saved_tensors_hooks(pack, _refuse):
        result = forward()
    # The address of the storage itself: that of its bytes is 0 for every empty one.
    counted = {s._cdata: s.nbytes() for entry in alive for s in entry.storages}
    for tensor in without:
        for storage in _storages(tensor):
            counted.pop(storage._cdata, None)
    del result
    return sum(counted.values())


def _refuse(_: _Entry) -> torch.Tensor:
    raise RuntimeError(
        "backward must not run in what saved_bytes counts: it holds counters in place of the saved "
        "tensors; run backward on a forward pass of your own"
    )
