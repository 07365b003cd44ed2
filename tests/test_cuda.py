"""What only a CUDA device can show; elsewhere skipped, as `course.py gpu-check` is not."""

import pytest
import torch

from helpers import memory, timing
from helpers.device import describe_machine, pick_autocast_dtype, pick_device, synchronize

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs-cuda")
MIB = 2**20


def test_the_device_is_the_card_and_the_machine_names_it():
    assert pick_device().type == "cuda"
    machine = describe_machine()
    assert machine.device == "cuda"
    assert machine.kind == torch.cuda.get_device_name()


def test_autocast_takes_bfloat16_from_capability_8_on():
    expected = torch.bfloat16 if torch.cuda.get_device_capability() >= (8, 0) else torch.float16
    assert pick_autocast_dtype() == expected
    x = torch.ones(8, 8, device="cuda")
    with torch.autocast("cuda", dtype=expected):
        assert (x @ x).dtype == expected


def test_synchronize_waits_for_the_work():
    x = torch.ones(4096, 4096, device="cuda")
    synchronize()
    done = torch.cuda.Event()
    for _ in range(50):
        x = x @ x * 1e-4
    done.record()
    assert not done.query(), "the work was over before it could be waited for"
    synchronize()
    assert done.query()


def test_a_timing_includes_the_work_and_not_the_launch_alone():
    small, large = (torch.ones(n, n, device="cuda") for n in (64, 4096))
    both = timing.compare(
        {"small": lambda: small @ small, "large": lambda: large @ large}, min_run_time=0.2
    )
    assert both["large"].median > 5 * both["small"].median


@pytest.mark.parametrize("foreach", [False, True])
def test_live_bytes_lie_below_what_the_allocator_reached(foreach):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=foreach)
    batch = torch.ones(256, 1024, device="cuda")
    with memory.track_memory(model, optimizer, batch) as peak:
        model(batch).sum().backward()
        optimizer.step()
    weights = sum(p.nbytes for p in model.parameters())
    assert peak.device.type == "cuda"
    assert peak.by_category["parameter"] == weights
    assert peak.by_category["optimizer state"] >= 2 * weights
    reached = peak.allocator
    assert peak.total <= reached.requested_bytes <= reached.max_memory_allocated
    assert reached.requested_bytes < 1.25 * peak.total + 64 * MIB  # libraries take workspaces


def test_a_copy_to_the_card_shares_nothing_and_comes_back_equal():
    here = torch.arange(10.0)
    there = here.to("cuda")
    assert not memory.shares_storage(here, there)
    assert torch.equal(there.cpu(), here)
    assert memory.tensor_bytes(there) == memory.tensor_bytes(here)
