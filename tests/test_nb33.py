"""What notebook 33 and its explorer say about split models, held against PyTorch directly."""

import importlib
import sys

import pytest
import torch
import torch.distributed as dist

from exercises import nb33
from helpers._paths import ROOT
from helpers.widgets import ranks


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "notebooks" / "scripts"))
    before = set(sys.modules)
    yield importlib.import_module("split_model")
    for name in {"split_model", "ranks"} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def pretend_group():
    """Give rank 0 of a group of 64 whose collectives return at once."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=64)
    yield
    dist.destroy_process_group()


def test_on_64_ranks_rank_0_holds_what_the_explorer_says(scripts, pretend_group):
    mesh = dist.device_mesh.init_device_mesh("cpu", (64,))
    model = scripts.shard(scripts.build("cpu"), mesh)
    optimizer = torch.optim.Adam(model.parameters())
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    held = scripts.stored(model, optimizer)
    first = ranks.hold("FSDP2", 64)[0]
    assert held == {
        "parameters": first.parameters,
        "gradients": first.gradients,
        "optimizer": first.optimizer,
    }


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")  # 2.11 has no other name
def test_the_counter_knows_each_collective_and_what_a_ring_sends(scripts, pretend_group):
    whole = torch.zeros(64 * 8)
    with scripts.Wire() as wire:
        dist.all_reduce(whole)
        dist.broadcast(whole, 0)
        dist.all_gather_into_tensor(whole, torch.zeros(8))
        dist.reduce_scatter_tensor(torch.zeros(8), whole)
    assert wire.calls == {"all-reduce": 1, "broadcast": 1, "all-gather": 1, "reduce-scatter": 1}
    assert wire.sent == 5 * whole.nbytes * 63 // 64


def test_the_solution_is_the_order_that_pytorch_takes():
    found = {}
    exec(nb33.EXERCISES["33.3"].solution, found)  # noqa: S102 - our own solution
    seen = ["FFFFBFBFBFBFBBBB", "FFFBFBFBFBFBFBBB", "FFBFBFBFBFBFBFBB", "FBFBFBFBFBFBFBFB"]
    assert [found["one_f_one_b"](rank, 4, 8) for rank in range(4)] == seen


def test_the_reference_of_the_exercise_is_the_measured_count():
    rows = [256] * 8
    whole = 4 * sum(rows)
    assert nb33._held(rows, 4, "ZeRO-1", 2) == (whole, whole, whole // 2)
    assert nb33._held(rows, 4, "FSDP2", 2) == (whole // 4, whole // 4, whole // 2)
