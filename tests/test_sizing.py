"""The sum of one training step agrees with the count, for models that no machine here can hold."""

import random

import pytest
from torch import nn

from helpers import sizing
from helpers.sizing import MODELS, OPTIMIZERS, LanguageModel, Shape, count, forecast

FIXED = [
    (name, batch, optimizer)
    for name, batches in {
        "GPT-2 124M": (1, 8),
        "TinyLlama 1.1B": (1, 4),
        "GPT 1.4B": (4,),
        "Llama-2-7B": (1,),
    }.items()
    for batch in batches
    for optimizer in ("Adam", "Adam, foreach")
]


def drawn(number):
    """Draw a shape, a batch, a length and an optimizer."""
    rng = random.Random(number)
    heads = rng.choice([4, 8, 16])
    width, llama = heads * rng.choice([32, 64, 128]), rng.random() < 0.5
    shape = Shape(
        layers=rng.choice([2, 6, 12, 24]),
        width=width,
        heads=heads,
        vocabulary=rng.choice([8_000, 32_000, 50_257]),
        hidden=rng.choice([2, 3, 4]) * width,
        positions=0 if llama else 1024,
        key_heads=rng.choice([heads, heads // 4]) if llama else 0,
        tied=rng.random() < 0.5,
    )
    return shape, rng.choice([1, 2, 4, 8]), rng.choice([128, 1024, 2048]), rng.choice([*OPTIMIZERS])


@pytest.mark.parametrize(("name", "batch", "optimizer"), FIXED)
def test_the_sum_agrees_with_the_count_for_known_models(name, batch, optimizer):
    counted = count(MODELS[name], batch, optimizer=optimizer).total
    assert forecast(MODELS[name], batch, optimizer=optimizer).total == pytest.approx(
        counted, rel=0.02
    )


@pytest.mark.parametrize("number", range(20))
def test_the_sum_agrees_with_the_count_for_drawn_models(number):
    shape, batch, length, optimizer = drawn(number)
    counted = count(shape, batch, length=length, optimizer=optimizer).total
    predicted = forecast(shape, batch, length=length, optimizer=optimizer).total
    assert predicted == pytest.approx(counted, rel=0.02)


def test_the_drawn_models_have_their_peak_in_more_than_one_place():
    moments = {
        forecast(shape, batch, length=length, optimizer=optimizer).moment
        for shape, batch, length, optimizer in map(drawn, range(20))
    }
    assert moments >= {"early in backward", "in the optimizer step"}


def test_twelve_configurations_are_fixed():
    assert len(FIXED) == 12


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_their_tensors_are_counted_right(name):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        parameters = list(LanguageModel(MODELS[name]).parameters())
    assert MODELS[name].parameters == sum(p.numel() for p in parameters)
    assert MODELS[name].tensors == len(parameters)


@pytest.mark.parametrize("rotary", [False, True])
def test_both_kinds_of_attention_give_the_same_logits(rotary):
    import torch

    torch.manual_seed(0)
    shape = Shape(2, 32, 4, 50, 64, positions=0 if rotary else 16, key_heads=2 * rotary)
    fused, explicit = LanguageModel(shape), LanguageModel(shape, sizing.explicit_attention)
    explicit.load_state_dict(fused.state_dict())
    ids = torch.randint(50, (2, 16))
    torch.testing.assert_close(fused(ids), explicit(ids))
    later = ids.clone()
    later[:, 9:] = 0
    torch.testing.assert_close(fused(later)[:, :9], fused(ids)[:, :9])


def test_rotation_keeps_lengths_and_leaves_the_first_position():
    import torch

    model = LanguageModel(Shape(1, 32, 4, 50, 64, key_heads=4))
    cos, sin = model.angles(torch.arange(5))
    x = torch.randn(5, 8)
    turned = sizing.rotated(x, cos, sin)
    torch.testing.assert_close(turned.norm(dim=1), x.norm(dim=1))
    torch.testing.assert_close(turned[0], x[0])


def test_a_step_trains_every_parameter():
    import torch

    torch.manual_seed(0)
    model = LanguageModel(Shape(2, 32, 4, 50, 64, positions=16))
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = OPTIMIZERS["Adam"](model.parameters())
    sizing.train_step(model, optimizer, torch.randint(50, (2, 16)))
    assert all((p != b).any() for p, b in zip(model.parameters(), before, strict=True))


def test_tied_models_share_embedding_and_head():
    tied = LanguageModel(Shape(1, 32, 4, 50, 64, positions=16, tied=True))
    assert tied.head.weight is tied.embedding.weight
    assert isinstance(tied.norm, nn.LayerNorm)
