"""The sums are right, divided without overlap, and the model that learns them is what it says."""

import pytest
import torch

from helpers import addition


def test_every_sum_of_two_numbers_below_100_is_there_once_and_right():
    sums = addition.load_sums()
    texts = [addition.decode(row) for row in torch.cat([sums.train, sums.held_out])]
    assert len(set(texts)) == 10_000
    for text in texts:
        left, total = text.split("=")
        a, b = left.split("+")
        assert int(a) + int(b) == int(total)
        assert (len(a), len(b), len(total)) == (2, 2, 3)


def test_held_out_sums_are_never_trained_on_and_the_seed_chooses_them():
    one, other = addition.load_sums(held_out=100), addition.load_sums(held_out=100, seed=1)
    assert (len(one.train), len(one.held_out)) == (9_900, 100)
    assert not torch.equal(one.held_out, other.held_out)
    train = {addition.decode(row) for row in one.train}
    assert not train & {addition.decode(row) for row in one.held_out}


@pytest.mark.parametrize("held_out", [0, -1, 10_000])
def test_an_empty_part_is_refused(held_out):
    with pytest.raises(ValueError, match=f"held_out must be between 1 and 9,999, got {held_out}"):
        addition.load_sums(held_out=held_out)


def test_another_character_is_refused():
    with pytest.raises(ValueError, match=r"text must consist of 0123456789\+=, got ' '"):
        addition.encode("1 + 1")


def test_the_parts_do_not_share_storage_with_one_another():
    sums = addition.load_sums()
    assert sums.train.untyped_storage().nbytes() == sums.train.nbytes == 72_000


def test_the_model_depends_on_its_seed_alone_and_leaves_the_generator():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = addition.build(3).state_dict()
    assert torch.equal(state, torch.get_rng_state())
    torch.rand(7)
    second = addition.build(3).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["head.weight"], addition.build(4).state_dict()["head.weight"])


def test_a_character_never_depends_on_later_ones():
    model, row = addition.build(), addition.encode("47+38=085")[None]
    other = row.clone()
    other[0, 6:] = addition.encode("199")
    assert torch.equal(model(row)[:, :6], model(other)[:, :6])
    assert not torch.equal(model(row)[:, 6:], model(other)[:, 6:])


def test_attention_agrees_with_torch_own():
    block, x = addition.build().blocks[0], torch.randn(4, 9, addition.WIDTH)
    shape = (4, 9, 3, addition.HEADS, addition.WIDTH // addition.HEADS)
    q, k, v = block.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = expected.transpose(1, 2).reshape(4, 9, addition.WIDTH)
    assert torch.allclose(block._attend(x), expected, atol=1e-5)


def test_the_loss_looks_at_the_three_digits_after_the_sign():
    rows = addition.load_sums().train[:8]

    class Knows(torch.nn.Module):
        def forward(self, ids):
            return 100.0 * torch.nn.functional.one_hot(rows[:, 1:].long(), 12)

    assert addition.loss(Knows(), rows) < 1e-6
    wrong = rows.clone()
    wrong[:, 8] = (wrong[:, 8] + 1) % 10
    assert addition.loss(Knows(), wrong) == pytest.approx(100 / 3)


def test_an_answer_with_one_wrong_digit_is_wrong():
    rows = addition.load_sums().held_out[:10]

    class Cheats(torch.nn.Module):
        def forward(self, ids):
            following = rows[: len(ids), 1:].clone()
            following[0, -1] = (following[0, -1] + 1) % 10
            return torch.nn.functional.one_hot(following.long(), 12)[:, : ids.shape[1]].float()

    assert addition.accuracy(Cheats(), rows, batch=10) == 0.9
