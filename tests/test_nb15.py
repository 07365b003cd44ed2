"""The right values behind the faults that notebook 15 shows."""

import copy
import math
import re

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import random_split

from exercises.nb15 import EXERCISES
from helpers.exercises._selftest import judge_source


def small(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def train(model, steps=3, generator=None):
    """Take a few steps on fixed data in an order that the generator draws."""
    data = torch.linspace(-1, 1, 48).reshape(12, 4)
    labels = torch.arange(12) % 3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        for batch in torch.randperm(12, generator=generator).split(5):
            optimizer.zero_grad()
            functional.cross_entropy(model(data[batch]), labels[batch]).backward()
            optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize(
    ("keep", "follows"),
    [(dict, True), (dict.copy, True), (copy.copy, True), (copy.deepcopy, False)],
    ids=["dict()", ".copy()", "copy.copy", "copy.deepcopy"],
)
def test_only_a_deep_copy_of_a_state_dict_stays(keep, follows):
    model = small()
    kept = keep(model.state_dict())
    train(model)
    now = model.state_dict()
    assert all(torch.equal(kept[key], now[key]) == follows for key in now)


def test_a_restored_deep_copy_brings_back_parameters_and_buffers_to_the_bit():
    model = small()
    train(model)
    kept = copy.deepcopy(model.state_dict())
    train(model)
    model.load_state_dict(kept)
    assert all(torch.equal(kept[key], value) for key, value in model.state_dict().items())
    train(model)
    assert not torch.equal(kept["0.weight"], model[0].weight), "loading copies into the model"


def test_one_seed_gives_one_result_to_the_bit():
    assert torch.equal(train(small(3)), train(small(3)))
    assert not torch.equal(train(small(3)), train(small(4)))


def test_a_random_number_in_between_changes_the_shuffle_unless_it_has_its_own_generator():
    def trained(draws, own):
        model = small()
        torch.rand(draws)
        return train(model, generator=torch.Generator().manual_seed(0) if own else None)

    assert not torch.equal(trained(0, own=False), trained(1, own=False))
    assert torch.equal(trained(0, own=True), trained(1, own=True))


def test_random_split_repeats_itself_only_with_a_generator():
    def split(**more):
        return list(random_split(range(100), [50, 50], **more)[0].indices)

    assert split() != split()
    first, second = (split(generator=torch.Generator().manual_seed(0)) for _ in range(2))
    assert first == second


def test_a_running_total_of_numbers_holds_no_graph_and_is_weighted():
    losses, sizes = torch.tensor([1.0, 1.0, 1.0, 9.0], requires_grad=True), (64, 64, 64, 4)
    total = sum(loss.item() * size for loss, size in zip(losses, sizes, strict=True))
    assert type(total) is float
    assert total / sum(sizes) == pytest.approx(228 / 196)
    assert losses.mean().item() == 3.0
    assert sum(losses).grad_fn is not None


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_the_ends_of_cross_entropy_with_and_without_a_softmax_too_many(classes):
    labels, certain = torch.arange(classes), 50 * torch.eye(classes)
    loss = functional.cross_entropy
    assert loss(0 * certain, labels).item() == pytest.approx(math.log(classes), abs=1e-5)
    assert loss(certain, labels).item() == pytest.approx(0, abs=1e-5)
    floor = math.log(1 + (classes - 1) / math.e)
    assert loss(certain.softmax(1), labels).item() == pytest.approx(floor, abs=1e-5)
    assert loss(certain.log_softmax(1), labels).item() == pytest.approx(0, abs=1e-5)


def test_a_column_against_a_row_is_no_error_and_no_loss():
    column = torch.tensor([[0.0], [1.0], [2.0]])
    assert ((column - column.squeeze(1)) ** 2).mean().item() == pytest.approx(4 / 3)
    assert ((column - column) ** 2).mean().item() == 0


ONE_EPOCH = """
def one_epoch(model, optimizer, images, labels, batch_size, generator):
    from torch.utils.data import DataLoader, TensorDataset

    model.train()
    losses = []
    pairs = TensorDataset(images, labels)
    for x, y in DataLoader(pairs, batch_size, shuffle=True, generator=generator):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach() * len(y))
    return sum(losses) / len(labels)
"""


ONE_BATCH = """
def evaluate(model, batches):
    images, labels = map(torch.cat, zip(*batches))
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.no_grad():
        logits = model(images)
    for module, mode in modes.items():
        module.training = mode
    loss = torch.nn.functional.cross_entropy(logits, labels).item()
    return loss, (logits.argmax(1) == labels).float().mean().item()
"""

A_COPY = """
import copy

def evaluate(model, batches):
    model = copy.deepcopy(model).eval()  # so the model's own modes stay
    total = correct = count = 0
    with torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += torch.nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            correct += (logits.argmax(1) == labels).sum().item()
            count += len(labels)
    return total / count, correct / count
"""


@pytest.mark.parametrize(
    ("id", "source"),
    [
        ("15.1", ONE_EPOCH),
        ("15.4", ONE_BATCH),
        ("15.4", A_COPY),
        (
            "15.4",
            EXERCISES["15.4"].solution.replace("module.training = mode", "module.train(mode)"),
        ),
        ("15.5", re.sub(r": ([\d.]+)", r": torch.tensor(\1)", EXERCISES["15.5"].solution)),
    ],
    ids=[
        "a DataLoader and a late zero_grad",
        "one batch of all examples",
        "a copy of the model",
        "train() module by module",
        "tensors",
    ],
)
def test_another_right_way_passes(id, source):
    assert source != EXERCISES[id].solution
    verdict = judge_source(id, source)
    assert verdict.status == "passed", verdict.sentence
