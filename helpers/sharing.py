"""Find out by running it what a conversion does: share, copy, or refuse."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_WIDTH = 100  # characters of an error's text: enough to tell the errors apart


def writes_through(convert: Callable[[Any], Any], source: Any) -> bool:
    """Write 77 into the source of a conversion and tell whether the result shows it.

    The blunt test: it believes no documentation and no address.

    Parameters
    ----------
    convert : callable
        Takes `source`, returns an array or a tensor.
    source : numpy.ndarray or torch.Tensor
        Writable, with at least one element; its first element is 77 afterwards.

    Returns
    -------
    bool
        True if source and result share their first element.

    Examples
    --------
    >>> writes_through(torch.from_numpy, np.zeros(2)), writes_through(torch.tensor, np.zeros(2))
    (True, False)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # np.array(tensor) warns under NumPy 2.4 and copies
        result = convert(source)
    first = (0,) * source.ndim
    source[first] = 77
    return bool(result[first] == 77)


def fate(convert: Callable[[Any], Any], source: Any) -> str:
    """Say what becomes of a source in a conversion, without changing it.

    Parameters
    ----------
    convert : callable
        Takes `source`, returns an array or a tensor.
    source : object
        An array, a tensor, or anything that may be refused.

    Returns
    -------
    str
        ``"shares"`` if the result begins at the address of the source, ``"copies"`` if it
        begins elsewhere, ``"empty"`` if it has no bytes, or the type and text of the error.

    Examples
    --------
    >>> fate(torch.from_numpy, np.zeros(2)), fate(torch.tensor, np.zeros(2))
    ('shares', 'copies')
    >>> fate(torch.from_numpy, np.array(["a"]))[:36]
    "TypeError: can't convert np.ndarray "
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a read-only array warns once per process
        try:
            result = convert(source)
        except Exception as error:  # noqa: BLE001 - a refusal is a result here
            return _text(error)
    if 0 in result.shape:
        return "empty"
    return "shares" if _address(result) == _address(source) else "copies"


def outcome(call: Callable[..., Any], *arguments: Any) -> str:
    """Say what a call returns: type and dtype, with the warnings it gave, or its error.

    Parameters
    ----------
    call : callable
        What to try.
    *arguments
        What to call it with.

    Returns
    -------
    str
        Such as ``"Tensor float32"``, ``"Tensor float64, DeprecationWarning"`` or
        ``"TypeError: ..."``.

    Examples
    --------
    >>> outcome(torch.add, torch.ones(2), 1)
    'Tensor float32'
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*arguments)
        except Exception as error:  # noqa: BLE001 - a refusal is a result here
            return _text(error)
    dtype = str(result.dtype).removeprefix("torch.")
    return ", ".join([f"{type(result).__name__} {dtype}", *(w.category.__name__ for w in caught)])


def _text(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3].rstrip() + "..."


def _address(thing: Any) -> int:
    if isinstance(thing, torch.Tensor):
        return thing.data_ptr()
    return np.asarray(thing).__array_interface__["data"][0]
