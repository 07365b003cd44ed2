"""Count the operations that a piece of code makes torch carry out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


def list_operations(call: Callable[[], object]) -> tuple[str, ...]:
    """Return the names of the operations of a call that do work, on any device.

    A view does no work and is left out, as are marks for the profiler. What happens inside one
    operation is not seen.

    Parameters
    ----------
    call : callable
        Called once, without arguments.

    Returns
    -------
    tuple of str
        Names in torch's ATen library, in the order of the calls.

    See Also
    --------
    torch.utils._python_dispatch : https://docs.pytorch.org/docs/stable/notes/extending.html

    Examples
    --------
    >>> import torch
    >>> x = torch.ones(2, 2)
    >>> list_operations(lambda: x.T @ x + 1)
    ('mm', 'add')
    """
    with _Listing() as listing:
        call()
    return tuple(listing.names)


class _Listing(TorchDispatchMode):
    """Note each operation and let it pass."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "aten" and not func.is_view:
            self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))
