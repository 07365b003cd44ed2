"""The bytes that a graph keeps alive, counted by what the derivatives need."""

import pytest
import torch
from torch import nn

from helpers.saved import saved_bytes


@pytest.fixture
def layers():
    return nn.Linear(64, 512), nn.Linear(512, 10)


def test_two_layers_keep_the_input_and_the_hidden_values(layers):
    first, second = layers
    x = torch.rand(128, 64)
    parameters = [*first.parameters(), *second.parameters()]
    count = saved_bytes(lambda: second(first(x).relu()), without=parameters)
    assert count == 128 * 64 * 4 + 128 * 512 * 4


def test_what_a_freed_part_of_the_graph_saved_is_not_counted(layers):
    first, second = layers
    x = torch.rand(128, 64)
    parameters = [*first.parameters(), *second.parameters()]
    count = saved_bytes(lambda: second(first(x).relu().detach()), without=parameters)
    assert count == 128 * 512 * 4


def test_a_tensor_saved_twice_counts_once():
    x = torch.rand(100, requires_grad=True)
    assert saved_bytes(lambda: x * x) == 400
    assert saved_bytes(lambda: (x.sin(), x.cos())) == 400
    assert saved_bytes(lambda: (x[:50].sin(), x[50:].cos())) == 400


def test_what_is_replaced_by_a_number_is_gone():
    x = torch.rand(100, requires_grad=True)
    assert saved_bytes(lambda: sum((2 * x).exp().sum().item() for _ in range(9))) == 0
    assert saved_bytes(lambda: sum((2 * x).exp().sum() for _ in range(9))) >= 9 * 400


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_nothing_is_kept_where_nothing_is_recorded(mode):
    x = torch.rand(100, requires_grad=True)
    with mode():
        assert saved_bytes(lambda: x.exp()) == 0


def test_empty_and_meta_tensors_are_no_trouble():
    assert saved_bytes(lambda: torch.ones(0, requires_grad=True).exp()) == 0
    meta = torch.ones(10, device="meta", requires_grad=True)
    assert saved_bytes(lambda: meta.exp()) >= 0
    assert saved_bytes(lambda: None) == 0


def test_an_error_in_the_forward_pass_comes_through_and_leaves_no_hook():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ZeroDivisionError):
        saved_bytes(lambda: x.exp() / (1 // 0))
    y = x.exp().sum()
    y.backward()
    assert x.grad is not None


def test_backward_inside_is_refused():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="backward must not run in what saved_bytes counts"):
        saved_bytes(lambda: x.exp().sum().backward())


def test_a_tensor_instead_of_a_function_is_refused():
    with pytest.raises(TypeError, match=r"got Tensor; pass lambda: model\(x\)"):
        saved_bytes(torch.ones(2))
