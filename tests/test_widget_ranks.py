"""The explorer "who holds what" counts what each rank of a split model holds."""

import base64
import re
import xml.etree.ElementTree as ET

import pytest
import torch
from color_math import contrast
from torch import nn

from helpers.plotting import PALETTES
from helpers.widgets import _panel
from helpers.widgets.ranks import METHODS, Held, RanksState, explore, hold, render

P = 1_061_416  # bytes of the parameters
STATES = [RanksState(m, n, o) for m in METHODS for n in (1, 3, 8, 64) for o in ("SGD", "Adam")]


def model():
    blocks = [(nn.Linear(64, 256), nn.Linear(256, 64)) for _ in range(8)]
    return nn.ModuleList([layer for pair in blocks for layer in pair] + [nn.Linear(64, 10)])


def test_every_rank_of_ddp_holds_everything():
    counters = 4 * len(list(model().parameters()))
    assert sum(p.nbytes for p in model().parameters()) == P
    assert hold("DDP", 3) == (Held(P, P, 2 * P + counters),) * 3
    assert hold("DDP", 2, "SGD") == (Held(P, P, 0),) * 2


@pytest.mark.parametrize("ranks", [2, 4, 7, 64])
def test_fsdp_deals_rows_as_chunk_does(ranks):
    found = hold("FSDP2", ranks)
    for rank in range(ranks):
        chunks = [p.detach().chunk(ranks) for p in model().parameters()]
        mine = sum(c[rank].nbytes for c in chunks if rank < len(c))
        assert found[rank].parameters == found[rank].gradients == mine


def test_zero_1_divides_the_optimizer_alone():
    found = hold("ZeRO-1", 4)
    assert {held.parameters for held in found} == {held.gradients for held in found} == {P}
    assert sum(held.optimizer for held in found) == 2 * P + 4 * 34


def test_zero_1_deals_tensors_as_pytorch_does():
    found = [held.optimizer for held in hold("ZeRO-1", 3)]
    sizes = [0.0] * 3
    bytes_of = [0] * 3
    for p in sorted(model().parameters(), key=torch.numel, reverse=True):
        rank = sizes.index(min(sizes))
        sizes[rank] += p.numel()
        bytes_of[rank] += 2 * p.nbytes + 4
    assert found == bytes_of


@pytest.mark.parametrize("method", ["FSDP2", "pipeline"])
@pytest.mark.parametrize("ranks", [1, 2, 5, 64])
def test_a_full_split_adds_up_to_one_model(method, ranks):
    assert sum(held.parameters for held in hold(method, ranks)) == P


def test_tensor_parallelism_keeps_head_and_output_bias_whole():
    first, last = hold("tensor", 4)[0], hold("tensor", 4)[-1]
    whole = 4 * (650 + 8 * 64)
    assert first.parameters == last.parameters == (P - whole) // 4 + whole


def test_the_moment_is_set_by_the_unit_and_not_by_the_ranks():
    assert {hold("FSDP2", n)[0].moment for n in (2, 8, 64)} == {2 * 4 * 33_088}
    assert hold("FSDP2, root only", 64)[0].moment == 2 * P
    assert hold("FSDP2", 1)[0].moment == 0


def test_the_heading_says_what_rank_0_holds():
    assert render(RanksState("FSDP2", 4)).heading == (
        "FSDP2 on 4 ranks, Adam: rank 0 holds 1.01 MiB, 25.0 % of one process, and 258 KiB more "
        "for a moment."
    )


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_state_is_drawn_within_its_picture(state):
    shown = render(state)
    tree = ET.fromstring(shown.svg("p-"))
    assert tree.find("{*}title").text == shown.heading
    for part in shown.parts:
        if isinstance(part, _panel.Bar):
            assert part.y >= 0
            assert part.x + part.width <= shown.size[0]
        if isinstance(part, _panel.Text):
            assert 0 < part.y < shown.size[1]
            assert part.x + 7 * len(part.text) <= shown.size[0] + 30


@pytest.mark.parametrize("theme", PALETTES)
def test_texts_can_be_read_in_both_themes(theme):
    colors = PALETTES[theme]
    for part in render(RanksState()).parts:
        if isinstance(part, _panel.Text):
            assert contrast(colors[part.ink], colors["paper"]) >= 4.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"method": "FSDP"}, "method must be one of DDP; "),
        ({"optimizer": "Lion"}, "optimizer must be one of SGD; Adam, got 'Lion'"),
        ({"ranks": 0}, "ranks must be from 1 to 64, got 0"),
        ({"ranks": 65}, "ranks must be from 1 to 64, got 65"),
    ],
)
def test_what_is_not_known_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explore(**arguments)


def test_every_control_changes_the_picture():
    panel = explore()
    method, ranks, optimizer, picture = panel.widget().children
    assert ranks.description == "Ranks"
    ranks.value = 8
    assert "FSDP2 on 8 ranks, Adam" in picture.value
    method.children[1].children[1].click()
    assert "ZeRO-1 on 8 ranks, Adam" in picture.value
    optimizer.children[1].children[0].click()
    assert "ZeRO-1 on 8 ranks, SGD" in picture.value
    assert [c.children[0].value for c in (method, optimizer)] == ["Method", "Optimizer"]
    assert panel.state == RanksState("ZeRO-1", 8, "SGD")


def test_behind_the_widget_stand_a_picture_a_table_and_text(monkeypatch):
    monkeypatch.setattr("helpers._display.in_notebook", lambda: True)
    bundle = explore()._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert bundle["text/plain"] == explore().text()
