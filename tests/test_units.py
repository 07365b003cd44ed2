"""Numbers become text the same way for every reader, also at the edges."""

import math
from decimal import Decimal

import numpy as np
import pytest
import torch

from helpers import units

FORMATTERS = [units.format_time, units.format_bytes, units.format_rate, units.format_ratio]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.2e-7, "320 ns"),
        (1e-9, "1.00 ns"),
        (3.2e-10, "0.320 ns"),
        (1e-15, "1.00e-06 ns"),
        (12.34e-6, "12.3 µs"),
        (0.1, "100 ms"),
        (1, "1.00 s"),
        (59.9, "59.9 s"),
        (90, "1.50 min"),
        (5400, "1.50 h"),
        (3600 * 1234, "1,230 h"),
        (1e20, "2.78e+16 h"),
        (1.797e308, "4.99e+304 h"),
        (0, "0 s"),
        (-3.2e-7, "-320 ns"),
    ],
)
def test_time_has_three_significant_digits_and_a_fitting_unit(seconds, text):
    assert units.format_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (999.4e-9, "999 ns"),
        (999.6e-9, "1.00 µs"),
        (999.9e-6, "1.00 ms"),
        (0.99951, "1.00 s"),
        (59.94, "59.9 s"),
        (59.96, "1.00 min"),
        (59.96 * 60, "1.00 h"),
        (-999.9e-6, "-1.00 ms"),
    ],
)
def test_time_that_rounds_over_a_unit_edge_takes_the_larger_unit(seconds, text):
    assert units.format_time(seconds) == text


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (512, "512 B"),
        (1000, "1000 B"),
        (1023, "1023 B"),
        (1023.7, "1.00 KiB"),
        (0.5, "0.500 B"),
        (1024, "1.00 KiB"),
        (4_000_000, "3.81 MiB"),
        (1012 * 2**10, "1012 KiB"),
        (2**20 - 1, "1.00 MiB"),
        (28 * 2**30, "28.0 GiB"),
        (2**40, "1.00 TiB"),
        (5000 * 2**40, "5,000 TiB"),
        (10**30, "9.09e+17 TiB"),
        (1e-320, "1.00e-320 B"),
        (-4_000_000, "-3.81 MiB"),
        (-512, "-512 B"),
    ],
)
def test_bytes_use_binary_units_and_are_exact_below_one_kib(n, text):
    assert units.format_bytes(n) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (3.9e10, "39.0 GB/s"),
        (1e9, "1.00 GB/s"),
        (2**30, "1.07 GB/s"),
        (999.9e6, "1.00 GB/s"),
        (120e6, "120 MB/s"),
        (1500, "1.50 kB/s"),
        (4.8e12, "4.80 TB/s"),
        (0, "0 B/s"),
    ],
)
def test_rates_use_decimal_units(rate, text):
    assert units.format_rate(rate) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (3.7, "3.7x"),
        (3.72, "3.7x"),
        (1, "1.00x"),
        (1.02, "1.02x"),
        (1.3, "1.30x"),
        (1.996, "2.0x"),
        (0.996, "1.00x"),
        (0.92, "0.92x"),
        (0.039, "0.039x"),
        (9.96, "10x"),
        (16.4, "16x"),
        (99.6, "100x"),
        (4673, "4,670x"),
        (74_057_000, "7.41e+07x"),
        (0, "0x"),
        (-3.7, "-3.7x"),
    ],
)
def test_ratios_show_two_digits_and_three_where_they_matter(ratio, text):
    assert units.format_ratio(ratio) == text


@pytest.mark.parametrize("format_value", FORMATTERS)
def test_none_is_not_measured_and_never_zero(format_value):
    assert format_value(None) == "not measured here"


@pytest.mark.parametrize("format_value", FORMATTERS)
def test_values_that_are_not_finite_are_named_without_a_unit(format_value):
    assert format_value(math.nan) == "not a number"
    assert format_value(math.inf) == "infinite"
    assert format_value(-math.inf) == "-infinite"
    assert format_value(10**400) == "infinite"
    assert format_value(-(10**400)) == "-infinite"


@pytest.mark.parametrize("format_value", FORMATTERS)
@pytest.mark.parametrize(
    "make",
    [
        np.float32,
        np.float64,
        np.int64,
        np.array,
        torch.tensor,
        lambda v: torch.tensor([float(v)], requires_grad=True),
        Decimal,
    ],
)
def test_scalars_of_other_libraries_read_like_plain_numbers(format_value, make):
    assert format_value(make(4)) == format_value(4)


@pytest.mark.parametrize("format_value", FORMATTERS)
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1.0", "'1.0'"),
        (True, "True"),
        (np.True_, "True"),
        (1j, "complex"),
        ([1.0], "list"),
        (torch.ones(2), "Tensor"),
        (np.ones(2), "ndarray"),
        (torch.ones(1, device="meta"), "Tensor"),
    ],
)
def test_what_is_not_one_number_is_refused_with_what_came(format_value, value, shown):
    with pytest.raises(TypeError) as error:
        format_value(value)
    assert f"must be one number, got {shown}; pass a float or an int" in str(error.value)


@pytest.mark.parametrize("exponent", range(-12, 15))
def test_text_agrees_with_the_value_at_every_size(exponent):
    scales = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
    for mantissa in np.linspace(1, 9.999, 37):
        seconds = mantissa * 10.0**exponent
        number, unit = units.format_time(seconds).split()
        assert float(number.replace(",", "")) * scales[unit] == pytest.approx(seconds, rel=5.1e-3)
