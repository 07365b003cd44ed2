"""What notebook 52 says about hooks, anomaly mode and silent shapes, held against torch."""

import math
import warnings
from contextlib import ExitStack
from functools import partial

import nbformat
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from exercises import nb52
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source

NOTEBOOK = ROOT / "notebooks" / "52_debug_a_model.ipynb"


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def run_under_anomaly_mode(fault):
    at = torch.zeros(1, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.set_detect_anomaly(True):
            torch.autograd.grad(fault(at), at)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    "fault", [lambda x: torch.where(x > 0, x.sqrt(), 0.0).sum(), lambda x: (x / x).sum()]
)
def test_anomaly_mode_raises_for_a_nan_that_a_backward_function_returns(fault):
    with pytest.raises(RuntimeError, match="returned nan values"):
        run_under_anomaly_mode(fault)


@pytest.mark.parametrize(
    "fault",
    [
        lambda x: x.sqrt().sum(),
        lambda x: ((x + 1e3).exp() - (x + 1e3).exp()).sum(),
        lambda x: F.cross_entropy(x.expand(2, 3), torch.tensor([-100, -100])),
        lambda x: (x + torch.zeros(1) / torch.zeros(1)).sum(),
    ],
)
def test_anomaly_mode_is_silent_where_loss_or_gradient_is_not_finite(fault):
    run_under_anomaly_mode(fault)
    at = torch.zeros(1, requires_grad=True)
    loss = fault(at)
    (gradient,) = torch.autograd.grad(loss, at)
    assert not (loss.isfinite().all() and gradient.isfinite().all())


def test_anomaly_mode_names_the_forward_line_of_an_in_place_error():
    def fault(x):
        y = x.exp()
        y += 1  # the line before is the one to be named
        return y.sum()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with (
            pytest.raises(RuntimeError, match="inplace operation"),
            torch.autograd.set_detect_anomaly(True),
        ):
            fault(torch.ones(2, requires_grad=True)).backward()
    assert any("y = x.exp()" in str(warning.message) for warning in caught)


def test_clipping_an_infinite_gradient_gives_nan_and_zeros_in_silence():
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([math.inf, 1.0])
    nn.utils.clip_grad_norm_([p], 1.0)
    assert p.grad[0].isnan()
    assert p.grad[1] == 0


def test_a_forward_hook_that_returns_a_detached_output_stops_the_layers_before_it():
    model = small()
    with model[1].register_forward_hook(lambda module, args, output: output.detach()):
        model(torch.randn(5, 8)).sum().backward()
    assert model[0].weight.grad is None
    assert model[2].weight.grad is not None


def test_calling_forward_skips_the_hooks_of_a_module():
    model, calls = small(), []
    with model.register_forward_hook(lambda *_: calls.append(1)):
        model.forward(torch.ones(2, 8))
        assert not calls
        model(torch.ones(2, 8))
    assert calls == [1]


def test_grad_output_is_the_gradient_of_the_output_not_of_the_weight():
    model, seen = small(), []
    x = torch.randn(32, 8, requires_grad=True)
    with model[0].register_full_backward_hook(lambda module, given, got: seen.append(got[0])):
        out = model[0](x)
        out.retain_grad()
        model[1:](out).pow(2).sum().backward()
    assert torch.equal(seen[0], out.grad)
    assert seen[0].shape != model[0].weight.shape


def test_batchnorm_in_training_mode_refuses_a_batch_of_one():
    with pytest.raises(ValueError, match="more than 1 value"):
        nn.BatchNorm1d(3)(torch.ones(1, 3))


def test_a_column_against_a_row_is_wrong_in_silence_in_a_loss_and_an_accuracy_of_ones_own():
    column = torch.tensor([[1.0], [0.0], [1.0], [1.0]])
    row = column.squeeze(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ((column - row) ** 2).mean() == 0.375
        assert (column == row).sum() / len(row) == 2.5


@pytest.mark.parametrize("id", list(nb52.EXERCISES))
@pytest.mark.parametrize("result", ["None", "[]", "'yes'", "torch.ones(2)", "3"])
def test_an_answer_of_another_kind_gets_a_sentence(id, result):
    name = nb52.EXERCISES[id].answer
    verdict = judge_source(id, f"def {name}(*_):\n    return {result}\n")
    assert verdict.status == "wrong"
    assert verdict.sentence
    assert "argument 1" not in verdict.sentence


def test_tasks_stand_in_the_notebook_as_they_stand_in_the_exercises():
    text = "\n".join(c.source for c in nbformat.read(NOTEBOOK, as_version=4).cells)
    for exercise in nb52.EXERCISES.values():
        assert exercise.task in text


def doctor():
    """Return the function of the notebook that examines a model."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    (source,) = [cell.source for cell in cells if "def examine" in cell.source]
    scope = {"torch": torch, "F": F, "ExitStack": ExitStack, "partial": partial}
    exec(source, scope)  # noqa: S102 - our own source
    return scope["examine"]


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.name = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.name(self.look(x, x, x)[0].mean(1))


def test_the_doctor_examines_attention_and_lists_a_weight_whose_module_is_not_called():
    rows = doctor()(Attending(), torch.randn(5, 3, 8), torch.arange(5) % 4)
    assert {row[0] for row in rows} == {"name", "look.out_proj"}
    assert all(row[-1] for row in rows)


def test_the_doctor_refuses_a_model_whose_gradients_it_would_erase():
    model, x, y = small(), torch.randn(5, 8), torch.arange(5) % 4
    F.cross_entropy(model(x), y).backward()
    with pytest.raises(AssertionError, match="between two steps"):
        doctor()(model, x, y)
    assert model[0].weight.grad is not None
