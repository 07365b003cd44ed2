"""The cells of notebook 42 that depend on the device run with stand-ins, and its counts hold."""

import warnings
from types import SimpleNamespace
from unittest import mock

import nbformat
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from helpers import claims, gpu_setup, memory
from helpers._paths import ROOT
from helpers.device import pick_autocast_dtype
from helpers.table import Table

NB = nbformat.read(ROOT / "notebooks" / "42_train_in_mixed_precision.ipynb", as_version=4)


def cell(text):
    """Return the source of the only code cell that holds this text."""
    (found,) = [c.source for c in NB.cells if c.cell_type == "code" and text in c.source]
    return found


def run(text, **scope):
    exec(cell(text), scope)  # noqa: S102 - cells of the notebook
    return scope


def definition(text, end, **scope):
    exec(cell(text).partition(end)[0], scope)  # noqa: S102 - cells of the notebook
    return scope


class Times(dict):
    def speedup(self, baseline, new):
        return f"{new} against {baseline}"


class Timing:
    """Answer with one time for every call."""

    def __init__(self):
        self.devices = []

    def compare(self, calls, *, min_run_time, device):
        self.devices.append(device.type)
        return Times({name: SimpleNamespace(median=1.0) for name in calls})


@pytest.mark.parametrize(
    ("capability", "dtype"), [((7, 5), torch.float16), ((8, 0), torch.bfloat16)]
)
def test_with_cuda_the_step_is_timed_in_the_dtype_that_the_card_has(capability, dtype):
    asked, timing, device = [], Timing(), SimpleNamespace(type="cuda")

    def step_of(width, batch, t, where):
        assert where is device
        asked.append((width, t))

    with gpu_setup.stand_in_card(capability):
        scope = run(
            "half = pick_autocast_dtype(device)",
            torch=torch,
            pick_autocast_dtype=lambda _: pick_autocast_dtype("cuda"),
            step_of=step_of,
            timing=timing,
            device=device,
            Table=Table,
        )
    assert asked == [(w, t) for w in (32, 512) for t in (torch.float32, dtype)]
    assert timing.devices == ["cuda", "cuda"]
    assert [row[1] for row in scope["speedups"]] == [f"{dtype} against torch.float32"] * 2


def test_with_cuda_the_products_are_made_on_the_device():
    made, timing, device = [], Timing(), SimpleNamespace(type="cuda")

    def ones(*shape, dtype, device):
        made.append(device.type)
        return torch.ones(*shape, dtype=dtype)

    names = ("float32", "bfloat16", "float16", "equal", "full_like")
    stand_in = SimpleNamespace(ones=ones, **{name: getattr(torch, name) for name in names})
    scope = run("products = {}", torch=stand_in, timing=timing, device=device)
    assert made == ["cuda"] * 3
    assert list(scope["product_times"]) == ["torch.float32", "torch.bfloat16", "torch.float16"]


@pytest.mark.parametrize("kind", ["cpu", "cuda", "mps"])
def test_the_timed_step_asks_autocast_for_the_type_of_the_device(kind):
    asked = []

    def autocast(*args, **kwargs):
        asked.append((*args, kwargs["dtype"], kwargs["enabled"]))
        return torch.autograd.set_grad_enabled(True)

    device = SimpleNamespace(type=kind)
    stand_in = SimpleNamespace(
        autocast=autocast,
        float32=torch.float32,
        ones=lambda *shape, device: torch.ones(*shape),
        optim=torch.optim,
    )
    layers = SimpleNamespace(
        Linear=nn.Linear,
        Sequential=lambda *parts: SimpleNamespace(to=lambda _: nn.Sequential(*parts)),
    )
    scope = definition("def step_of", "\n\n\n#", torch=stand_in, nn=layers)
    for dtype in (torch.float32, torch.float16):
        scope["step_of"](4, 2, dtype, device)()
    assert asked == [(kind, torch.float32, False), (kind, torch.float16, True)]


def test_where_there_is_cuda_the_cell_without_it_says_the_same():
    shown = []
    with mock.patch("torch.cuda.is_available", return_value=True):
        scope = run(
            "no_cuda = mock.patch",
            torch=torch,
            nn=nn,
            mock=mock,
            warnings=warnings,
            claims=claims,
            display=shown.append,
        )
    assert all(outcome.met for outcome in shown)
    assert (scope["wide"], scope["enabled"], scope["future"]) == (True, False, 2)


@pytest.mark.parametrize(("width", "depth"), [(64, 2), (256, 6), (1024, 4)])
def test_bytes_are_equal_where_the_batch_equals_the_width(width, depth):
    scope = definition(
        "def kept_bytes",
        "\n\n\npredict",
        torch=torch,
        nn=nn,
        memory=memory,
        FakeTensorMode=FakeTensorMode,
    )
    count = scope["kept_bytes"]
    for batch, sign in ((width - 1, 1), (width, 0), (width + 1, -1)):
        more = count(batch, True, width, depth) - count(batch, False, width, depth)
        assert (more > 0) - (more < 0) == sign
