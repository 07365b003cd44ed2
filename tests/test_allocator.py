"""The allocator tells of scratch that no operation returns."""

import pytest
import torch
import torch.nn.functional as F

from helpers.allocator import allocator_peak
from helpers.memory import track_memory


def counted(call):
    with track_memory() as peak:
        call()
    return peak.total


def test_without_scratch_the_allocator_and_the_count_agree():
    x = torch.ones(64, 64)

    def call():
        return (x + 1).relu().exp()

    assert allocator_peak(call) == counted(call) == 2 * x.nbytes


def test_scratch_inside_a_kernel_is_seen():
    x = torch.ones(300, 300)
    assert allocator_peak(x.median) > counted(x.median)


def test_a_tensor_that_dies_inside_counts_at_the_peak():
    assert allocator_peak(lambda: torch.ones(1000).sum()) == 4004


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"got Tensor; pass lambda: model\(x\)"):
        allocator_peak(F.relu(torch.ones(1)))


def test_an_exception_restores_standard_error(capfd):
    with pytest.raises(ZeroDivisionError):
        allocator_peak(lambda: 1 / 0)
    import os

    os.write(2, b"heard")
    assert "heard" in capfd.readouterr().err
