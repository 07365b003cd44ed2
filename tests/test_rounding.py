"""round_to_bits keeps range, sign and specials, and rounds as an independent oracle does."""

import numpy as np
import pytest
import torch

from helpers.rounding import STORED_BITS, round_to_bits


@pytest.mark.parametrize("bits", [1, 7, 10, 22, 23])
def test_it_agrees_with_frexp_in_float64(bits):
    random = np.random.default_rng(bits)
    x = (random.standard_normal(5000) * 10.0 ** random.uniform(-30, 30, 5000)).astype(np.float32)
    fraction, exponent = np.frexp(x.astype(np.float64))
    truth = np.ldexp(np.rint(np.ldexp(fraction, bits + 1)), exponent - bits - 1)
    assert np.array_equal(
        round_to_bits(torch.from_numpy(x), bits).numpy(), truth.astype(np.float32)
    )


def test_seven_bits_are_bfloat16():
    x = torch.randn(1000)
    assert torch.equal(round_to_bits(x, STORED_BITS["bfloat16"]), x.bfloat16().float())


def test_ties_go_to_even_and_specials_pass():
    x = torch.tensor([2049.0, 2051.0, -2049.0, 0.0, float("inf"), float("-inf"), float("nan")])
    rounded = round_to_bits(x, 10).tolist()
    assert rounded[:6] == [2048.0, 2052.0, -2048.0, 0.0, float("inf"), float("-inf")]
    assert np.isnan(rounded[6])


@pytest.mark.parametrize("bits", [10, 23])
def test_the_result_is_new_and_the_input_stays(bits):
    x = torch.randn(3, 2)
    before = x.clone()
    round_to_bits(x, bits).zero_()
    assert torch.equal(x, before)
    assert round_to_bits(torch.empty(0, 2), bits).shape == (0, 2)


def test_other_dtypes_and_bits_are_refused():
    with pytest.raises(ValueError, match=r"x must be float32, got torch.float64; convert it first"):
        round_to_bits(torch.ones(1).double(), 10)
    with pytest.raises(ValueError, match="bits must be from 1 to 23, got 0; TF32 stores 10"):
        round_to_bits(torch.ones(1), 0)
