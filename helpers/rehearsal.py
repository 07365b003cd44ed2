"""Rehearse a model for another device on a machine that has none."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_aten = torch.ops.aten
# These take tensors of two devices: they carry values across, or accept indices on the CPU.
_CROSSING = {
    _aten.copy_.default,
    _aten._to_copy.default,
    _aten.index.Tensor,
    _aten.index_put.default,
    _aten.index_put_.default,
    _aten._index_put_impl_.default,
}


class MixedDevicesError(RuntimeError):
    """Say that one operation was given tensors of two devices."""


class one_device(TorchDispatchMode):  # noqa: N801 - used as `with one_device():`
    """Raise as soon as one operation gets tensors of two devices.

    The meta device is the second device of every machine: it computes shapes, dtypes and devices
    and no numbers. Alone it is too polite a rehearsal, for some operations accept a CPU tensor
    beside a meta tensor. Under this mode a forward pass, a backward pass or a step on meta raises
    where a GPU would: at a tensor that stayed on the CPU.

    What a GPU accepts passes: a CPU tensor without dimensions beside others, copies between
    devices, indices on the CPU.

    Raises
    ------
    MixedDevicesError
        At the first operation with tensors of two devices; it names the operation, and shape
        and device of each tensor.

    See Also
    --------
    torch.utils._python_dispatch.TorchDispatchMode, meta device :
        https://docs.pytorch.org/docs/stable/meta.html

    Examples
    --------
    >>> layer = torch.nn.Linear(2, 2, device="meta")
    >>> with one_device():
    ...     layer(torch.ones(1, 2, device="meta")) * torch.arange(2)
    Traceback (most recent call last):
    ...
    helpers.rehearsal.MixedDevicesError: aten.mul.Tensor got float32 (1, 2) on meta and int64 ...
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Compare the devices of one operation's tensors, then run it."""
        found = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        found = [t for t in found if t.dim() or t.device.type != "cpu"]
        if len({t.device for t in found}) > 1 and func not in _CROSSING:
            tensors = " and ".join(dict.fromkeys(map(_name, found)))
            raise MixedDevicesError(
                f"{func} got {tensors}; create the one that stayed behind with device=x.device, or "
                "register it as a buffer"
            )
        return func(*args, **(kwargs or {}))


def _name(tensor: torch.Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype} {tuple(tensor.shape)} on {tensor.device}"
