"""What notebook 31 says about ranks, held against torch and against real processes."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn
from torch.utils.data import DistributedSampler

from exercises import _rehearsal, nb31
from helpers import launch
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source

SCRIPTS = ROOT / "notebooks" / "scripts"
ANSWERS = {
    "31.1": "def rank_indices(n, world_size, rank, epoch, seed):\n    return {}\n",
    "31.2": "def local_loss(logits, targets, global_count, world_size):\n    return {}\n",
    "31.3": "def merge_evaluation(per_rank):\n    return {}\n",
    "31.4": "def first_disagreement(states):\n    return {}\n",
    "31.5": "def train(rank, model, start, data, epochs):\n    return {}\n",
}


@pytest.mark.parametrize("value", ["None", "'text'", "[1.5]", "{'a': 1}", "torch.ones(2)", "True"])
@pytest.mark.parametrize("id", ANSWERS)
def test_an_answer_of_another_type_gets_a_sentence(id, value):
    if (id, value) in (("31.4", "None"),):
        value = "0"
    verdict = judge_source(id, ANSWERS[id].format(value))
    assert verdict.status == "wrong", verdict
    assert len(verdict.sentence) > 20


def test_the_solution_of_31_1_deals_as_torch_does():
    namespace = {"torch": torch}
    exec(nb31.EXERCISES["31.1"].solution, namespace)  # noqa: S102 - our own solution
    for n, world_size, epoch in [(7, 2, 0), (360, 7, 3), (5, 5, 1)]:
        for rank in range(world_size):
            sampler = DistributedSampler(range(n), world_size, rank, seed=4)
            sampler.set_epoch(epoch)
            assert namespace["rank_indices"](n, world_size, rank, epoch, 4) == list(sampler)


REAL = """
import torch, torch.distributed as dist, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from exercises import nb31
from helpers.launch import finish, report
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
images, labels, start = torch.randn(21, 5), torch.randint(3, (21,)), nb31._small().state_dict()
reference = nb31._reference(start, images, labels)
torch.manual_seed(rank)
for name in ("solution", "stub"):
    exec(getattr(nb31.EXERCISES["31.5"], name))
    model, data = nb31._small(), nb31._Watched(images, labels)
    state = train(rank, model, {k: v.clone() for k, v in start.items()}, data, nb31._EPOCHS)
    ours = model.state_dict()
    report(**{name: max((ours[k] - reference[k]).abs().max().item() for k in ours)})
    report(**{name + "_seen": data.seen, name + "_keys": sorted(state or [])})
finish()
"""


def test_the_rehearsal_tells_what_real_ranks_do(tmp_path):
    script = tmp_path / "real.py"
    script.write_text(REAL)
    real = launch.torchrun(script)
    assert max(real.by_rank("solution")) < 1e-6
    assert min(real.by_rank("stub")) > 1e-3
    seen = real.by_rank("solution_seen")
    assert [len(one) for one in seen] == [33, 33]
    assert seen[0][:11] != seen[0][11:22]
    faulty = real.by_rank("stub_seen")
    assert faulty[0][:11] == faulty[0][11:22]
    assert real.by_rank("stub_keys")[0][0].startswith("module.")
    assert real.by_rank("solution_keys")[0] == sorted(nb31._small().state_dict())


def wrap(rank, model):
    wrapped = DistributedDataParallel(model)  # noqa: F821 - the rehearsal provides it
    wrapped(torch.ones(1, 2)).sum().backward()
    return model.weight.detach().clone(), model.weight.grad * (rank + 1)


def test_the_stand_ins_broadcast_and_average():
    models = [nn.Linear(2, 1), nn.Linear(2, 1)]
    first = models[0].weight.detach().clone()
    results = _rehearsal.run(wrap, (0, models[0]), (1, models[1]))
    assert all(torch.equal(weight, first) for weight, _ in results)
    assert torch.equal(results[0][1] * 2, results[1][1])


def fail(rank):
    if rank == 1:
        raise KeyError("mine")
    dist.barrier()  # noqa: F821 - the rehearsal provides it


def test_a_ranks_own_error_comes_before_the_wait_of_the_other():
    with pytest.raises(KeyError, match="mine"):
        _rehearsal.run(fail, (0,), (1,))


def spin(rank):
    while True:
        pass


def test_an_endless_loop_ends_and_its_threads_too(monkeypatch):
    monkeypatch.setattr(_rehearsal, "_LIMIT", 0.3)
    before = threading.active_count()
    with pytest.raises(TimeoutError, match="not done after"):
        _rehearsal.run(spin, (0,), (1,))
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(5)
    assert threading.active_count() <= before


def test_the_printed_command_runs_a_script_by_hand():
    words = launch.command(SCRIPTS / "print_ranks.py").removeprefix("PYTHONPATH=. ").split()
    env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, *words[1:]], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    lines = [line for line in ran.stdout.splitlines() if "reports" in line]
    assert sorted(line[:6] for line in lines) == ["rank 0", "rank 1"]
    assert '"WORLD_SIZE": 2' in lines[0]
