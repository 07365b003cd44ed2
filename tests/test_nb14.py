"""What notebook 14 says about gradients, held against torch directly."""

import numpy as np
import pytest
import torch

from exercises import nb14
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


def test_only_a_write_through_data_is_silent():
    def gradient(write):
        w = leaf(1.0)
        loss = (w * w).sum()
        write(w)
        loss.backward()
        return w.grad.item()

    assert gradient(lambda w: w.data.mul_(10)) == 20
    assert gradient(lambda w: None) == 2
    with pytest.raises(RuntimeError, match="expected version 0"):
        gradient(lambda w: w.detach().mul_(10))


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
