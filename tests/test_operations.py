"""Operations that do work are listed; views and marks are not."""

import pytest
import torch

from helpers.operations import list_operations


def test_views_do_no_work():
    x = torch.ones(2, 3)
    assert list_operations(lambda: x.view(6)[1:].unsqueeze(0).T) == ()


def test_forward_backward_and_step_are_seen():
    model = torch.nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.rand(5, 10), torch.rand(5, 1)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    names = list_operations(step)
    assert {"addmm", "mse_loss", "mse_loss_backward", "mm"} <= set(names)
    assert 6 <= len(names) <= 12


def test_an_error_passes_through_and_nothing_stays_switched_on():
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        list_operations(lambda: x @ x)
    assert list_operations(lambda: x + x) == ("add",)
