"""Count the bytes of tensors: what they show, what they keep alive, and the peak of a block.

All counts are exact integers in bytes, on any device and under fake tensors, which have sizes but
no data. What a kernel uses inside for itself (scratch) is no tensor and is not counted.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from helpers import _live_bytes
from helpers._memory_peak import (
    AllocatorPeak,
    LiveBytes,
    MemoryPeak,
    Timeline,
    track_with,
    type_name,
)

__all__ = [
    "AllocatorPeak",
    "LiveBytes",
    "MemoryPeak",
    "Timeline",
    "shares_storage",
    "storage_bytes",
    "tensor_bytes",
    "track_memory",
]


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of the elements that a tensor shows: numel × itemsize.

    Parameters
    ----------
    tensor : torch.Tensor
        Of any shape, dtype and layout. Of a sparse, jagged or other wrapper tensor the parts are
        added up (indices and values, say); of a distributed tensor the local part counts.

    Returns
    -------
    int
        Bytes. 0 for an empty tensor and for one on the meta device. An expanded tensor shows
        more bytes than it keeps alive, a slice fewer: compare with `storage_bytes`.

    Raises
    ------
    TypeError
        If `tensor` is not a tensor.

    Examples
    --------
    >>> tensor_bytes(torch.ones(1).expand(1_000_000))
    4000000
    >>> tensor_bytes(torch.ones(1_000_000)[:1])
    4
    """
    _require_tensor("tensor", tensor, "for an array use array.nbytes")
    return sum(
        part.numel() * part.element_size()
        for part in _live_bytes.parts(tensor)
        if part.device.type != "meta"
    )


def storage_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of the storages that a tensor keeps alive.

    A storage is the block of bytes behind a tensor; a view keeps all of it. Neither `.grad` nor
    what the autograd graph saved is included.

    Parameters
    ----------
    tensor : torch.Tensor
        Of any shape, dtype and layout. The storages of all parts of a sparse, jagged or other
        wrapper tensor are added up, each once.

    Returns
    -------
    int
        Bytes. 0 for an empty tensor that owns its storage, on the meta device, after
        ``storage.resize_(0)``, and for an opaque layout (mkldnn), which shows no storage.

    Raises
    ------
    TypeError
        If `tensor` is not a tensor.

    Examples
    --------
    >>> storage_bytes(torch.ones(1).expand(1_000_000))
    4
    >>> storage_bytes(torch.ones(1_000_000)[:1])
    4000000
    """
    _require_tensor("tensor", tensor, "for an array use array.nbytes")
    pairs = {storage._cdata: (device, storage) for device, storage in _live_bytes.storages(tensor)}
    return sum(_live_bytes.size_of(*pair) for pair in pairs.values())


def shares_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Tell whether two tensors have at least one byte of storage in common.

    What counts is the storage, not the elements: two slices that do not overlap share the storage
    of their base, and each keeps all of it alive. Tensors that were made from one array by two
    calls of ``torch.from_numpy`` have two storage objects over the same bytes; they share.

    Parameters
    ----------
    a, b : torch.Tensor
        Of any shape, dtype, layout and device. Of a sparse, jagged or other wrapper tensor every
        part is looked at.

    Returns
    -------
    bool
        False if either storage has 0 bytes, even for an empty tensor and itself; ``x[:0]`` shares
        with a non-empty ``x``. Meta and fake tensors have no addresses: they share if one is a
        view of the other.

    Raises
    ------
    TypeError
        If one of them is not a tensor.

    Examples
    --------
    >>> x = torch.zeros(6)
    >>> shares_storage(x[:3], x[3:]), shares_storage(x, x.clone())
    (True, False)
    """
    advice = "for an array use np.shares_memory(tensor.detach().numpy(), array)"
    _require_tensor("a", a, advice)
    _require_tensor("b", b, advice)
    others = _live_bytes.storages(b)
    return any(_overlap(mine, other) for mine in _live_bytes.storages(a) for other in others)


def _require_tensor(name: str, value: object, advice: str) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type_name(value)}; {advice}")


def _overlap(mine, other) -> bool:
    (device, storage), (other_device, other_storage) = mine, other
    if device != other_device or not storage.nbytes() or not other_storage.nbytes():
        return False
    if storage._cdata == other_storage._cdata:
        return True
    if "meta" in (storage.device.type, other_storage.device.type):
        return False
    start, other_start = storage.data_ptr(), other_storage.data_ptr()
    return start < other_start + other_storage.nbytes() and other_start < start + storage.nbytes()


@contextmanager
def track_memory(*things: object) -> Iterator[MemoryPeak]:
    """Count the live bytes of tensors while the block runs, and keep their peak.

    A *live byte* belongs to a storage that was registered, or returned by an operation of this
    thread in the block, and that has not been freed. Shared storages count once, an expanded
    tensor counts its storage. Each storage has one category:

    ===============  ===============================================================
    parameter        storages of ``module.parameters()``
    gradient         ``p.grad`` of a registered parameter, once it is complete
    optimizer state  tensors at any depth of ``optimizer.state``, at entry or from
                     the end of ``step()`` on
    activation       allocated outside backward and outside ``step()``
    recomputed       allocated in backward while gradients are enabled: the second
                     forward of checkpointing, or ``create_graph=True``
    temporary        every other allocation in backward or in ``step()``
    other            buffers, registered tensors, and what existed before and was
                     first seen because an operation returned a view of it
    ===============  ===============================================================

    The first label stays, except that a complete gradient and an optimizer's state are relabeled,
    at the peak too if they lived then: the moments that Adam creates in its first step are
    optimizer state, not temporary.

    Parameters
    ----------
    *things : torch.nn.Module, torch.optim.Optimizer, torch.Tensor or nests of them
        What exists before the block and shall count from its start. Pass the model, its optimizer
        and the batch. A nest is a list, tuple, set or mapping at any depth; numbers and text in it
        are passed over.

    Yields
    ------
    MemoryPeak
        Readable inside the block and after it.

    Raises
    ------
    TypeError
        If something else is passed.
    RuntimeError
        If this version of torch lacks a function that the count needs.

    Notes
    -----
    Not seen: other threads, scratch inside a kernel (on CPU, attention, LSTM and some convolutions
    use it), opaque layouts (mkldnn), and tensors that no operation made (``torch.from_numpy``)
    until they are registered or viewed. A function compiled by ``torch.compile`` runs uncompiled
    inside the block. Time grows by a few microseconds per operation, so measure seconds outside.
    Hooks and modes are removed when the block ends, also by an exception. On an accelerator the
    peak statistics of its allocator are reset at entry.

    Totals equal those of ``torch.distributed._tools.mem_tracker.MemTracker`` wherever that tool
    runs; it refuses gradient accumulation and sparse gradients.

    Examples
    --------
    >>> model = torch.nn.Linear(1000, 10)
    >>> with track_memory(model) as peak:
    ...     loss = model(torch.ones(8, 1000)).sum()
    >>> peak.total, peak.by_category["parameter"], peak.by_category["activation"]
    (72364, 40040, 32324)
    """
    with track_with(_live_bytes.LiveBytesMode(), *things) as peak:
        yield peak
