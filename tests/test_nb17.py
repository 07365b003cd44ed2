"""What the checks of 17 say to answers of another kind, and that they agree with torch."""

import pytest

from exercises import nb17
from helpers.exercises._selftest import judge_source

OTHER = {"None": "None", "a list": "[1, 2]", "text": "'yes'", "a number": "3.0"}
HEADS = {
    "17.1": "def convolve(images, weight):",
    "17.2": "def random_shift(images, generator):",
    "17.3": "def fold(conv, bn):",
    "17.4": "def moved(model, use):\n    use(model)",
    "17.5": "def verdict(with_it, without, t):",
}


@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER)
@pytest.mark.parametrize("id", HEADS)
def test_a_result_of_another_kind_gets_a_sentence(id, other):
    verdict = judge_source(id, f"{HEADS[id]}\n    return {other}\n")
    assert verdict.status == "wrong"
    assert any(word in verdict.sentence for word in ("Return", "Answer", "moved are"))


MATRIX_PRODUCT = (
    "    rows, columns = weight.shape[2:]\n"
    "    around = (rows // 2, columns // 2)\n"
    "    windows = torch.nn.functional.unfold(images, (rows, columns), padding=around)\n"
    "    maps = weight.flatten(1) @ windows\n"
    "    return maps.view(len(images), len(weight), *images.shape[2:])\n"
)
LOOPS = (
    "    b, n, h, w = images.shape\n"
    "    m, _, r, c = weight.shape\n"
    "    out = torch.zeros(b, m, h, w)\n"
    "    for i in range(h):\n"
    "        for j in range(w):\n"
    "            for y in range(r):\n"
    "                for x in range(c):\n"
    "                    a, z = i + y - r // 2, j + x - c // 2\n"
    "                    if 0 <= a < h and 0 <= z < w:\n"
    "                        out[:, :, i, j] += (images[:, :, a, z] @ weight[:, :, y, x].T)"
    ".float()\n"
    "    return out\n"
)


@pytest.mark.parametrize("body", [MATRIX_PRODUCT, LOOPS])
def test_other_right_convolutions_pass(body):
    assert judge_source("17.1", f"def convolve(images, weight):\n{body}").status == "passed"


def test_a_shift_by_an_affine_grid_passes():
    source = (
        "def random_shift(images, generator):\n"
        "    dy, dx = torch.randint(-1, 2, (2, len(images)), generator=generator).float()\n"
        "    one, zero = torch.ones_like(dx), torch.zeros_like(dx)\n"
        "    height, width = images.shape[2:]\n"
        "    across = torch.stack([one, zero, -2 * dx / width], 1)\n"
        "    down = torch.stack([zero, one, -2 * dy / height], 1)\n"
        "    F = torch.nn.functional\n"
        "    theta = torch.stack([across, down], 1)\n"
        "    grid = F.affine_grid(theta, images.shape, align_corners=False)\n"
        "    return F.grid_sample(images, grid, align_corners=False)\n"
    )
    assert judge_source("17.2", source).status == "passed"


def test_folding_into_a_layer_made_anew_passes():
    source = (
        "def fold(conv, bn):\n"
        "    new = torch.nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size,\n"
        "                          conv.stride, conv.padding, conv.dilation, conv.groups,\n"
        "                          padding_mode=conv.padding_mode)\n"
        "    scale = bn.weight / torch.sqrt(bn.running_var + bn.eps)\n"
        "    bias = conv.bias if conv.bias is not None else torch.zeros_like(bn.bias)\n"
        "    new.weight = torch.nn.Parameter(conv.weight * scale[:, None, None, None])\n"
        "    new.bias = torch.nn.Parameter((bias - bn.running_mean) * scale + bn.bias)\n"
        "    return new\n"
    )
    assert judge_source("17.3", source).status == "passed"


def test_a_folded_layer_with_another_stride_is_told_what_to_keep():
    source = (
        "def fold(conv, bn):\n"
        "    new = torch.nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size)\n"
        "    return new\n"
    )
    assert "stride, padding, dilation and groups" in judge_source("17.3", source).sentence


def test_use_on_a_copy_is_not_use_on_the_model():
    source = (
        "import copy\n\n\ndef moved(model, use):\n    use(copy.deepcopy(model))\n    return []\n"
    )
    assert "with the model itself" in judge_source("17.4", source).sentence


@pytest.mark.parametrize("kind", ["list", "tuple", "set"])
def test_names_may_come_in_any_collection_and_order(kind):
    source = (
        "def moved(model, use):\n"
        "    after = {**dict(model.named_parameters()), **dict(model.named_buffers())}\n"
        "    before = {n: t.clone() for n, t in after.items()}\n"
        "    use(model)\n"
        f"    return {kind}(sorted(n for n in before if not torch.equal(before[n], after[n])))\n"
    )
    assert judge_source("17.4", source).status == "passed"


def test_each_mistake_of_17_5_differs_from_the_rule_on_some_comparison():
    cases = nb17._comparisons()
    right = [nb17._verdict(*case) for case in cases]
    assert set(right) == {"helped", "hurt", "cannot tell"}
    for mistake, why in nb17.MISTAKES:
        said = [nb17._tried(mistake, case) for case in cases]
        assert any(s not in (None, r) for s, r in zip(said, right, strict=True)), why


def test_an_answer_that_is_always_cannot_tell_meets_a_comparison():
    source = "def verdict(with_it, without, t):\n    return 'cannot tell'\n"
    sentence = judge_source("17.5", source).sentence
    assert "the answer is 'helped', got 'cannot tell'" in sentence
