"""Conversions are described by what they do."""

import warnings

import numpy as np
import pytest
import torch

from helpers import sharing


@pytest.mark.parametrize(
    ("convert", "shares"),
    [(torch.from_numpy, True), (torch.as_tensor, True), (torch.tensor, False), (np.copy, False)],
)
def test_a_write_and_an_address_agree(convert, shares):
    assert sharing.writes_through(convert, np.zeros((2, 3))) == shares
    assert sharing.fate(convert, np.zeros((2, 3))) == ("shares" if shares else "copies")


def test_a_tensor_as_source_and_zero_dimensions():
    assert sharing.writes_through(torch.Tensor.numpy, torch.zeros(()))
    assert sharing.fate(torch.Tensor.numpy, torch.zeros(())) == "shares"
    assert not sharing.writes_through(np.array, torch.zeros(3))


def test_fate_leaves_the_source_as_it_was():
    array = np.arange(3.0)
    sharing.fate(torch.from_numpy, array)
    assert array.tolist() == [0.0, 1.0, 2.0]


def test_an_empty_result_neither_shares_nor_copies():
    assert sharing.fate(torch.from_numpy, np.zeros((0, 3))) == "empty"


def test_a_refusal_is_shown_in_one_line():
    text = sharing.fate(torch.from_numpy, np.arange(3.0)[::-1])
    assert text.startswith("ValueError: At least one stride")
    assert text.endswith("...")
    assert len(text) <= 100
    assert "\n" not in text


def test_the_read_only_warning_does_not_reach_the_reader():
    array = np.arange(3.0)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sharing.fate(torch.from_numpy, array) == "shares"


def test_outcome_names_type_dtype_and_warning():
    assert sharing.outcome(torch.add, torch.ones(2), 1) == "Tensor float32"
    assert sharing.outcome(np.add, np.ones(2), 1) == "ndarray float64"
    assert sharing.outcome(lambda: np.matrix([[1.0]]) * 2) == (
        "matrix float64, PendingDeprecationWarning"
    )
    uint16 = torch.ones(2, dtype=torch.uint16)
    assert sharing.outcome(torch.add, uint16, 1).startswith("NotImplementedError")


def test_an_interrupt_is_not_swallowed():
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sharing.fate(stop, np.zeros(1))
