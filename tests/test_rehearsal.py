"""one_device raises where a GPU would, and lets pass what a GPU accepts."""

import pytest
import torch
from torch import nn

from helpers.rehearsal import MixedDevicesError, one_device

MIXED = {
    "product": lambda x: x @ torch.ones(3, 3),
    "lookup": lambda x: nn.functional.embedding(torch.tensor([0, 1]), x),
    "sum": lambda x: x + torch.ones(3),
    "concatenation": lambda x: torch.cat([x, torch.ones(1, 3)]),
    "linear": lambda x: nn.functional.linear(x, torch.ones(2, 3)),
    "in place": lambda x: x.mul_(torch.ones(3)),
    "keyword": lambda x: torch.clamp(x, min=torch.ones(3)),
}
ACCEPTED = {
    "number": lambda x: x * torch.tensor(0.5),
    "indices on the CPU": lambda x: x[torch.tensor([0, 1])],
    "write by indices on the CPU": lambda x: x.index_put_((torch.tensor([0]),), x[0]),
    "copy": lambda x: x.copy_(torch.ones(3, 3)),
    "move": lambda x: torch.ones(3).to("meta"),
    "new": lambda x: x + torch.ones(3, device=x.device),
}


@pytest.mark.parametrize("call", MIXED.values(), ids=MIXED)
def test_an_operation_on_two_devices_raises(call):
    with one_device(), pytest.raises(MixedDevicesError, match="on meta"):
        call(torch.ones(3, 3, device="meta"))


@pytest.mark.parametrize("call", ACCEPTED.values(), ids=ACCEPTED)
def test_what_a_gpu_accepts_passes(call):
    with one_device():
        call(torch.ones(3, 3, device="meta"))


def test_the_error_names_operation_shapes_and_devices_and_the_repair():
    with one_device(), pytest.raises(MixedDevicesError) as caught:
        torch.ones(2, 3, device="meta") @ torch.ones(3, 3)
    assert str(caught.value) == (
        "aten.mm.default got float32 (2, 3) on meta and float32 (3, 3) on cpu; create the one "
        "that stayed behind with device=x.device, or register it as a buffer"
    )


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_a_sound_model_trains_under_it(device, optimizer):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.Sequential(nn.Linear(8, 16), layer, nn.Flatten(), nn.Linear(64, 2)).to(device)
    step = optimizer(model.parameters(), 0.1)
    with one_device():
        loss = nn.functional.cross_entropy(
            model(torch.zeros(3, 4, 8, device=device)),
            torch.zeros(3, dtype=torch.long, device=device),
        )
        loss.backward()
        step.step()


def test_a_convolutional_model_trains_under_it():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).to(
        "meta"
    )
    with one_device():
        model(torch.zeros(2, 1, 8, 8, device="meta")).sum().backward()


def test_meta_alone_accepts_a_product_with_the_cpu():
    # The reason for one_device; when torch refuses this, notebook 21 has to say so.
    assert (torch.ones(3, 3, device="meta") @ torch.ones(3, 3)).is_meta
    assert nn.Embedding(4, 2, device="meta")(torch.tensor([1])).is_meta
