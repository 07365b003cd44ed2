"""What notebook 51 shows follows from formulas and from PyTorch's own rules, and could be wrong."""

import math
import warnings

import nbformat
import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, lr_scheduler

from exercises import nb51
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source

NB = nbformat.read(ROOT / "notebooks" / "51_steer_the_optimizer.ipynb", as_version=4)
SCOPE = {
    "math": math,
    "torch": torch,
    "nn": nn,
    "SGD": SGD,
    "Adam": Adam,
    "lr_scheduler": lr_scheduler,
}


def function(name):
    """Return a function that a cell of the notebook defines."""
    (source,) = [c.source for c in NB.cells if c.cell_type == "code" and f"def {name}(" in c.source]
    start = source.index(f"def {name}(")
    lines = source[start:].splitlines()
    body = [lines[0]]
    for line in lines[1:]:
        if line and not line.startswith(" "):
            break
        body.append(line)
    scope = dict(SCOPE)
    exec("\n".join(body), scope)  # noqa: S102 - a cell of the notebook
    return scope[name]


def adam_by_hand(gradients):
    """Compute Adam's steps at rate 1 from the update rule of the paper."""
    m = v = 0.0
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        yield m / (1 - 0.9**t) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)


def test_the_steps_after_a_spike_are_those_of_the_paper():
    gradients = [1000.0 if step == 100 else 1.0 for step in range(600)]
    assert function("step_lengths")(Adam, steps=600) == pytest.approx(list(adam_by_hand(gradients)))


@pytest.mark.parametrize(("spike", "shorter"), [(1.0, False), (100.0, True), (1000.0, True)])
def test_without_a_spike_nothing_slows_down(spike, shorter):
    lengths = function("step_lengths")(Adam, spike=spike, steps=400)
    assert (min(lengths) < 0.5) is shorter
    clipped = function("step_lengths")(Adam, spike=spike, max_norm=1.0, steps=400)
    assert min(clipped) > 0.99


def test_steps_below_half_are_counted_from_the_spike():
    count = function("steps_below_half")
    assert count([1.0] * 101) == 0
    assert count([1.0] * 101 + [0.4] * 7 + [0.9]) == 8
    assert count([0.1] * 101 + [0.9]) == 0


def test_without_unscale_the_step_nearly_vanishes():
    wrong, right = function("scaled_step")(False), function("scaled_step")(True)
    assert wrong[0] / right[0] == pytest.approx(2.0**16)
    assert right[1] / wrong[1] > 1e4


def test_a_skipped_step_leaves_the_rate_where_it_is_only_with_the_guard():
    rates_used = function("rates_used")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rates_used("optimizer first", 3e38) == ([], 0.125)
        assert rates_used("optimizer first", 3e38, guard=True) == ([], 1.0)
        assert rates_used("optimizer first", guard=True) == ([1.0, 0.5, 0.25], 0.125)
        assert rates_used("scheduler first")[0] == [0.5, 0.25, 0.125]


def test_warm_up_then_cosine_meets_the_closed_formula():
    rates = function("rates_of")(function("warm_up_then_cosine"), 8)
    warm = [0.1 * (step + 1) / 5 for step in range(4)]
    decay = [0.05 * (1 + math.cos(math.pi * step / 4)) for step in range(5)]
    assert rates == pytest.approx(warm + decay, abs=1e-12)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3])
def test_the_floor_of_a_constant_rate_is_rate_over_two_minus_rate(rate):
    found = function("floor_of")(function("errors")(lambda step: rate))
    assert found == pytest.approx(rate / (2 - rate), rel=0.05)


def test_one_over_step_makes_a_mean_of_all_gradients():
    run = function("errors")(lambda step: 1 / (step + 1))
    assert run[-1] == pytest.approx(1 / len(run), rel=0.05)


def test_gradients_may_be_cleared_at_the_start_of_a_step_or_at_its_end():
    source, clear = nb51.EXERCISES["51.2"].solution, "    optimizer.zero_grad()\n"
    assert source.count(clear) == 1
    backward = "    scaler.scale(loss).backward()\n"
    first = source.replace(clear, "").replace(backward, clear + backward)
    for way in (source, first):
        verdict = judge_source("51.2", way)
        assert verdict.status == "passed", verdict.sentence
