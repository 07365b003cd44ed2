"""What notebook 43 says about activation checkpointing, held against torch directly."""

import copy
import math
import warnings
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import nbformat
import pytest
import torch
from torch import nn
from torch.utils import checkpoint as module
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from exercises import nb43
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source
from helpers.memory import track_memory
from helpers.saved import saved_bytes
from helpers.table import Table
from helpers.units import format_bytes


def gradients(loss, model):
    model.zero_grad(set_to_none=True)
    loss.backward()
    return [p.grad for p in model.parameters()]


def layers(count=4, size=16):
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(size, size) for _ in range(count)])


@pytest.mark.parametrize("explicit", [True, False])
def test_a_reentrant_segment_whose_input_wants_no_gradient_gives_none(explicit):
    model, x = layers(), torch.rand(3, 16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"use_reentrant": True} if explicit else {}
        h = checkpoint(model[:3], x, **options)
        found = gradients(model[3](h).sum(), model)
    texts = [str(warning.message) for warning in caught]
    assert [g is None for g in found] == [True] * 6 + [False] * 2
    assert any("Gradients will be None" in text for text in texts)
    assert any("should be passed explicitly" in text for text in texts) != explicit


def test_use_reentrant_false_gives_the_gradients_of_the_plain_run():
    model, x = layers(), torch.rand(3, 16)
    plain = gradients(model(x).sum(), model)
    found = gradients(checkpoint(model, x, use_reentrant=False).sum(), model)
    assert all(map(torch.equal, plain, found))


@pytest.mark.parametrize("inside", [1, 4, 16])
@pytest.mark.parametrize("segments", [1, 2, 4, 8, 16])
def test_the_peak_of_a_chain_is_borders_and_insides_and_two(inside, segments):
    expected = segments + 16 * inside // segments + 2
    assert nb43.sin_chain_peak(16, inside, segments) == expected


def test_the_lowest_peak_of_64_sin_is_at_the_root():
    peaks = {k: nb43.sin_chain_peak(64, 1, k) for k in (1, 2, 4, 8, 16, 32, 64)}
    assert min(peaks, key=peaks.get) == 8
    assert peaks[8] == 2 * math.isqrt(64) + 2


def test_best_segments_agrees_with_the_count():
    source = nb43.EXERCISES["43.2"].solution
    namespace = {}
    exec(source, namespace)  # noqa: S102 - our own solution
    for inside in (1, 2, 5, 9):
        peaks = {k: nb43.sin_chain_peak(12, inside, k, size=2_000) for k in (1, 2, 3, 4, 6, 12)}
        assert peaks[namespace["best_segments"](12, inside, 1)] == min(peaks.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Linear + ReLU", 0),
        ("Linear + GELU", 32_768),
        ("MLP of a transformer", 295_424),
        ("one sin", 0),
        ("attention", 132_096),
    ],
)
def test_what_lies_inside_a_segment_is_spared(name, expected):
    build, _ = nb43._MODULES[name]
    x = torch.rand(64, 128, requires_grad=True)
    assert nb43.spared(build(128), x, nn.Linear(128, 128)) == expected


def test_recomputation_stops_before_the_last_product():
    model = layers(4, 64)

    def forwards(early_stop):
        x = torch.rand(64, 64, requires_grad=True)
        with (
            module.set_checkpoint_early_stop(early_stop),
            FlopCounterMode(display=False) as counter,
        ):
            checkpoint(model, x, use_reentrant=False).sum().backward()
        return counter.get_total_flops() / (4 * 2 * 64**3)

    assert (forwards(True), forwards(False)) == (3.75, 4.0)


def test_batch_norm_in_a_segment_counts_twice_and_gradients_are_equal():
    block, x = nb43.CountingBlock(4).eval(), torch.randn(8, 4)
    block.norm.train()
    twin = copy.deepcopy(block)
    plain = gradients(block(x).sum(), block)
    found = gradients(checkpoint(twin, x, use_reentrant=False).sum(), twin)
    assert all(map(torch.equal, plain, found))
    assert int(block.norm.num_batches_tracked) == 1
    assert int(twin.norm.num_batches_tracked) == 2
    assert not torch.equal(block.norm.running_mean, twin.norm.running_mean)


def test_only_another_shape_is_noticed_between_the_two_passes():
    def backward(change):
        passes = iter((1, 2))
        x = torch.rand(4, requires_grad=True)
        checkpoint(partial(change, passes), x, use_reentrant=False).sum().backward()

    backward(lambda passes, x: torch.sin(x * next(passes)))
    with pytest.raises(module.CheckpointError, match="different metadata"):
        backward(lambda passes, x: torch.sin(x[: next(passes)]))


def test_keywords_need_the_new_form():
    x = torch.rand(2, requires_grad=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        checkpoint(torch.mul, x, other=2, use_reentrant=True)
    assert checkpoint(torch.mul, x, other=2, use_reentrant=False).requires_grad


def test_the_counting_block_counts_its_calls():
    block = nb43.CountingBlock(4)
    for _ in range(3):
        block(torch.rand(2, 4))
    assert block.calls == 3


@pytest.mark.parametrize("n", [16, 64, 256])
def test_nested_segments_need_the_logarithm(n):
    namespace = {}
    exec(nb43.EXERCISES["43.5"].solution, namespace)  # noqa: S102 - our own solution
    calls = [0]

    def f(h):
        calls[0] += 1
        return torch.sin(h)

    x = torch.rand(10_000, requires_grad=True)
    with track_memory(x) as peak:
        namespace["nested"](f, x, n).sum().backward()
    assert round(peak.total / 40_000) == math.log2(n) + 3
    assert calls[0] == n + n // 2 * math.log2(n)


def test_norm_outside_the_segment_is_another_right_answer():
    source = """
from torch.utils.checkpoint import checkpoint

def run(block, x):
    block.calls += 1
    h = block.norm(block.first(x))
    return checkpoint(lambda h: block.last(block.drop(torch.relu(h))), h, use_reentrant=False)
"""
    assert judge_source("43.4", source).status == "passed"


@pytest.mark.parametrize("id", ["43.1", "43.2", "43.4", "43.5"])
@pytest.mark.parametrize("value", ["None", "'text'", "[1]", "3.5", "{}"])
def test_any_other_type_gets_a_sentence(id, value):
    exercise = nb43.EXERCISES[id]
    verdict = judge_source(id, f"def {exercise.answer}(*args):\n    return {value}\n")
    assert verdict.status == "wrong"
    assert len(verdict.sentence) > 20


def test_nothing_is_spared_where_nothing_is_recorded():
    block, x = nb43.CountingBlock(4), torch.rand(8, 4)
    with torch.no_grad():
        assert saved_bytes(lambda: checkpoint(block, x, use_reentrant=False)) == 0
    assert block.calls == 1


@pytest.mark.parametrize("reached", [None, 3 * 2**20])
def test_with_cuda_the_step_runs_there_and_the_allocator_is_shown(reached):
    path = ROOT / "notebooks" / "43_trade_compute_for_memory.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    (source,) = [c.source for c in cells if c.cell_type == "code" and "peak.allocator" in c.source]
    allocator = reached and SimpleNamespace(max_memory_allocated=reached)
    asked, shown, steps = [], [], []

    def compare(calls, *, min_run_time, device):
        asked.append(device)
        return SimpleNamespace(
            names=list(calls), speedup=lambda *names: SimpleNamespace(best=1 / 1.3)
        )

    scope = {
        "device": "cuda:0",
        "make_transformer": lambda device: asked.append(device) or "model",
        "tokens": SimpleNamespace(to=lambda device: asked.append(device) or "tokens"),
        "divisors_of_16": [1, 2, 4, 8, 16],
        "run_step": lambda *args: steps.append(args),
        "track_memory": lambda *things: nullcontext(SimpleNamespace(allocator=allocator)),
        "timing": SimpleNamespace(compare=compare),
        "partial": partial,
        "format_bytes": format_bytes,
        "Table": Table,
        "display": lambda *things: shown.extend(things),
    }
    exec(source, scope)  # noqa: S102 - a cell of the notebook
    assert asked == ["cuda:0"] * 3
    assert steps == [("model", "tokens", 0), ("model", "tokens", 16)]
    segments = [f"{k} segments" for k in (1, 2, 4, 8, 16)]
    assert shown[0].names == ["plain", *segments]
    assert shown[1].rows == [["3.00 MiB" if reached else "not measured here"] * 2]
