"""Round float32 numbers to formats with fewer stored bits, as matrix units do."""

from __future__ import annotations

import torch

STORED_BITS = {"float32": 23, "TF32": 10, "bfloat16": 7}
_EXPONENT = 0x7F800000


def round_to_bits(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Round float32 numbers to `bits` stored bits of fraction, ties to even; keep the range.

    10 bits are TF32's, 7 are bfloat16's. TF32 is no dtype: tensors stay float32, and the matrix
    unit of the GPU rounds its operands. Whether the hardware rounds ties to even is not
    documented; numbers that are no ties do not depend on it.

    Parameters
    ----------
    x : torch.Tensor
        float32, any shape. Infinity and NaN pass unchanged.
    bits : int
        From 1 to 23; 23 changes nothing.

    Returns
    -------
    torch.Tensor
        float32, new, of the shape of `x`.

    Raises
    ------
    ValueError
        If `x` is not float32 or `bits` is out of range.

    See Also
    --------
    Numerical accuracy : https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html

    Examples
    --------
    >>> round_to_bits(torch.tensor([1.0, 4097.0]), 10).tolist()
    [1.0, 4096.0]
    """
    if x.dtype != torch.float32:
        raise ValueError(f"x must be float32, got {x.dtype}; convert it first")
    if not 1 <= bits <= 23:
        raise ValueError(f"bits must be from 1 to 23, got {bits}; TF32 stores 10")
    drop = 23 - bits
    if drop == 0:
        return x.clone()
    pattern = x.detach().view(torch.int32)
    # Half a step, minus one where the last kept bit is 0: ties go to even.
    half = (1 << (drop - 1)) - 1 + ((pattern >> drop) & 1)
    rounded = (pattern + half) >> drop << drop
    special = (pattern & _EXPONENT) == _EXPONENT
    return torch.where(special, pattern, rounded).view(torch.float32)
