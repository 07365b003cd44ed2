"""What notebook 32 says about synchronization, held against torch and against arithmetic."""

import os

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from exercises import nb32
from helpers.exercises._selftest import judge_source


def solved(id):
    found = {}
    exec(nb32.EXERCISES[id].solution, found)  # noqa: S102 - our own solution
    return found[nb32.EXERCISES[id].answer]


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_the_ring_adds_up_and_sends_what_the_formula_says(n):
    piece_to_send = solved("32.2")
    tensors = np.random.default_rng(0).normal(size=(n, n, 5))  # (rank, piece, number)
    held, sent = tensors.copy(), np.zeros(n)
    for step in range(2 * (n - 1)):
        before = held.copy()
        for rank in range(n):
            piece, right = piece_to_send(rank, step, n), (rank + 1) % n
            kept = held[right, piece] if step < n - 1 else 0
            held[right, piece] = kept + before[rank, piece]
            sent[rank] += before[rank, piece].nbytes
    assert np.allclose(held, tensors.sum(0))
    assert np.allclose(sent, 2 * (n - 1) / n * tensors[0].nbytes)


def test_bytes_of_a_linear_layer_on_four_ranks():
    model = nn.Linear(9, 1)  # 10 numbers, 40 bytes
    assert solved("32.1")(model, 4, 1) == 60
    assert solved("32.1")(model, 4, 3) == 180
    assert solved("32.1")(model, 1, 3) == 0


@pytest.mark.parametrize("cap", [10_486, 104_858, 262_144, 1_048_576])
def test_the_plan_is_the_one_that_torch_computes(cap):
    sizes = [2**16, 1024, 2**18, 1024, 2**18, 1024, 2**18, 1024, 10_240, 40]
    backward = [torch.empty(size // 4) for size in reversed(sizes)]
    computed, _ = dist._compute_bucket_assignment_by_size(backward, [cap])
    last = len(sizes) - 1
    expected = [[last - place for place in bucket] for bucket in computed]
    assert solved("32.4")(sizes, cap) == expected


def test_a_check_leaves_no_group_and_no_setting_behind(monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    assert judge_source("32.3", nb32.EXERCISES["32.3"].solution).status == "passed"
    raising = "def accumulate(ddp, micro_batches, loss_fn):\n    raise KeyError(3)\n"
    assert judge_source("32.3", raising).status == "raised"
    assert not dist.is_initialized()
    assert "GLOO_SOCKET_IFNAME" not in os.environ


def test_a_check_gives_back_the_setting_that_it_found(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    judge_source("32.3", nb32.EXERCISES["32.3"].solution)
    assert os.environ["GLOO_SOCKET_IFNAME"] == "eth7"


OTHER = ("None", "[]", "'text'", "[1.5, None]", "torch.ones(2)", "{}", "True")


@pytest.mark.parametrize("value", OTHER)
@pytest.mark.parametrize("id", ["32.1", "32.2", "32.3", "32.4"])
def test_any_other_type_gets_a_sentence(id, value):
    name = nb32.EXERCISES[id].answer
    verdict = judge_source(id, f"def {name}(*arguments):\n    return {value}\n")
    assert verdict.status == "wrong"
    assert verdict.sentence


def test_a_number_in_a_tensor_is_a_number():
    answer = nb32.EXERCISES["32.1"].solution.replace(
        "return ", "return torch.tensor(1.0).double() * "
    )
    assert judge_source("32.1", answer).status == "passed"


def test_micro_batches_in_another_order_are_named():
    answer = nb32.EXERCISES["32.3"].solution.replace(
        "enumerate(micro_batches, 1)", "enumerate(micro_batches[::-1], 1)"
    )
    assert "in their order" in judge_source("32.3", answer).sentence
