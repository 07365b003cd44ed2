"""What notebook 14 says about gradients, held against torch directly."""

import numpy as np
import pytest
import torch

from exercises import nb14
from helpers.exercises._selftest import judge_source
from helpers.saved import saved_bytes


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize("op", [torch.exp, torch.sqrt, torch.tanh, torch.relu, torch.sigmoid])
def test_a_saved_result_may_not_be_changed(op):
    y = op(leaf(1.0, 4.0))
    y += 1
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.sum().backward()


def test_a_product_with_a_number_may_be_changed():
    x = leaf(1.0, 4.0)
    y = x * 2
    y += 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("op", [lambda x: x**2, lambda x: x * 3])
def test_a_second_backward_on_one_graph_raises_and_a_new_graph_adds(op):
    x = leaf(2.0)
    y = op(x)
    y.backward()
    first = x.grad.item()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    op(x).backward()
    assert x.grad.item() == 2 * first


@pytest.mark.parametrize(("power", "silent", "right"), [(2, 20, 2), (3, 201, 3)])
def test_only_a_write_through_data_is_silent(power, silent, right):
    def gradient(write):
        w = leaf(1.0)
        loss = (w * w if power == 2 else w * w * w).sum()
        write(w)
        loss.backward()
        return w.grad.item()

    assert gradient(lambda w: w.data.mul_(10)) == silent
    assert gradient(lambda w: None) == right
    with pytest.raises(RuntimeError, match="expected version 0"):
        gradient(lambda w: w.detach().mul_(10))


def test_the_gradient_after_data_is_that_of_neither_value():
    assert 201 not in {3 * 1**2, 3 * 10**2}
    assert "201" in nb14.PREDICTIONS["14.p5"].options


def test_weights_scaled_where_they_are_made_are_no_leaf_and_get_no_gradient():
    small = torch.randn(2, requires_grad=True) * 0.01
    small.sum().backward()
    assert not small.is_leaf
    with pytest.warns(UserWarning, match="not a leaf"):
        assert small.grad is None


def test_gradcheck_notices_a_cut_inside():
    at = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x * x, at)
    assert not torch.autograd.gradcheck(lambda x: x * x.detach(), at, raise_exception=False)


def test_anomaly_detection_names_the_root():
    x = leaf(4.0, 0.0)
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="SqrtBackward0"),
        pytest.raises(RuntimeError, match="SqrtBackward0"),
    ):
        torch.where(x > 0, x.sqrt(), 0.0).sum().backward()


@pytest.mark.parametrize(
    "healthy",
    [kind for kind in nb14._HEALTHY if kind != "trained"],
)
def test_each_unusual_layer_that_trains_has_the_gradient_it_stands_for(healthy):
    model = nb14._Patchwork(["trained", healthy])
    layer = model.layers[1]
    loss = model(torch.rand(5, 4)).pow(2).mean()
    for gradient in torch.autograd.grad(loss, list(layer.parameters())):
        assert gradient.any()
        if healthy == "partly closed":
            assert not gradient.all()
        if healthy == "opposed":
            assert gradient.sum().abs() < 1e-6 < gradient.abs().max()
        if healthy == "faint":
            assert 0 < gradient.abs().max() < 1e-6


@pytest.mark.parametrize(
    "root",
    [
        "torch.where(s > 0, torch.where(s > 0, s, 1.0).sqrt(), 0.0)",
        "torch.where(s == 0, 0.0, s + (s == 0)).where(s > 0, 1.0).sqrt().where(s > 0, 0.0)",
        "(s + 1e-30).sqrt()",
    ],
)
def test_other_right_ways_to_the_distance_pass(root):
    source = (
        "def pairwise_distance(points):\n"
        f"    s = ((points[:, None] - points[None]) ** 2).sum(-1)\n    return {root}\n"
    )
    assert judge_source("14.4", source).status == "passed"


def test_a_write_that_is_neither_data_nor_numpy_is_not_told_to_leave_out_data():
    assert ".data" not in nb14._why_unnoticed(None)
    assert ".data" not in nb14._why_unnoticed(lambda w: w.detach().numpy())
    assert "Write without .data" in nb14._why_unnoticed(lambda w: w.data)


def test_a_sum_of_losses_keeps_a_graph_for_each_and_a_sum_of_numbers_none():
    layer = torch.nn.Linear(8, 16)
    x = torch.rand(4, 8)

    def total(take):
        return sum(take(layer(x).relu().pow(2).mean()) for _ in range(10))

    assert saved_bytes(lambda: total(torch.clone)) >= 10 * 4 * 16 * 4
    assert saved_bytes(lambda: total(torch.Tensor.item)) == 0


def test_the_root_in_a_branch_not_chosen_gives_nan_and_one_that_sees_no_zero_does_not():
    x = leaf(4.0, 0.0)
    torch.where(x > 0, x.sqrt(), 0.0).sum().backward()
    assert x.grad[0] == 0.25
    assert torch.isnan(x.grad[1])
    x.grad = None
    torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.25, 0.0]


def test_an_answer_in_float32_is_not_called_wrong_for_its_rounding():
    namespace = {"np": np, "torch": torch}
    exec(nb14.EXERCISES["14.4"].solution, namespace)  # noqa: S102 - a stored answer
    points = torch.rand(6, 3)
    exact = torch.cdist(
        points.double(), points.double(), compute_mode="donot_use_mm_for_euclid_dist"
    )
    assert (namespace["pairwise_distance"](points) - exact).abs().max() < 1e-6
