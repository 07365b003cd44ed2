"""Copies to a device are timed in all the ways, with a stand-in where there is no GPU."""

import pytest
import torch

from helpers import transfer


def test_each_way_is_timed_and_pinning_is_part_of_one_of_them():
    pinned = []

    def pin(tensor):
        pinned.append(tensor)
        return tensor.clone()

    found = transfer.time_copies("cpu", shape=(50, 50), min_run_time=0.01, pin=pin)
    assert list(found) == ["copy", "copy, pinned", "pin and copy", "add"]
    assert all(m.median > 0 for m in found.values())
    assert len(pinned) > 5  # once before, and at every "pin and copy"


def test_the_tensor_goes_to_the_device_that_was_asked_for():
    found = transfer.time_copies("meta", shape=(50, 50), min_run_time=0.01, pin=torch.clone)
    assert found["add"].median > 0


def test_without_pinned_memory_the_error_says_where_to_call_it():
    def pin(tensor):
        raise RuntimeError("Cannot access accelerator device when none is available.")

    with pytest.raises(RuntimeError, match=r'^pinned memory needs CUDA.*device.type == "cuda"$'):
        transfer.time_copies("cpu", pin=pin)
