"""Turn seconds, bytes, rates and ratios into short text.

Values stay in SI units inside the helpers and become text here, at the edge. Sizes use
binary units (1 MiB = 2**20 bytes) and rates decimal ones (1 GB/s = 10**9 bytes per second),
as memory and link vendors do. `None` stands for what this machine cannot measure.
"""

import math
from itertools import pairwise

NOT_MEASURED = "not measured here"

_TIME_UNITS = (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0))
_BYTE_UNITS = tuple((name, 1024.0**i) for i, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB")))
_RATE_UNITS = tuple(
    (name, 1000.0**i) for i, name in enumerate(("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))
)


def format_time(seconds):
    """Write a duration with three significant digits and a unit that suits its size.

    Parameters
    ----------
    seconds : float, int, NumPy or torch scalar, or None
        Duration in seconds. Negative values (differences) keep their sign.

    Returns
    -------
    str
        Text from nanoseconds to hours; "not measured here" for None.

    Raises
    ------
    TypeError
        If `seconds` is not one real number.

    Examples
    --------
    >>> format_time(3.2e-7)
    '320 ns'
    >>> format_time(0.9999e-3)  # rounds up into the next unit
    '1.00 ms'
    >>> format_time(None)
    'not measured here'
    """
    return _format(seconds, "seconds", _TIME_UNITS)


def format_bytes(n):
    """Write a size in bytes with binary units (KiB, MiB, GiB, TiB).

    Parameters
    ----------
    n : int, float, NumPy or torch scalar, or None
        Size in bytes. Whole numbers below 1 KiB are written exactly.

    Returns
    -------
    str
        Text with at least three significant digits; "not measured here" for None.

    Raises
    ------
    TypeError
        If `n` is not one real number.

    Examples
    --------
    >>> format_bytes(512)
    '512 B'
    >>> format_bytes(4_000_000)
    '3.81 MiB'
    """
    value = _to_float(n, "n")
    if value is not None and abs(value) < 1024 and value == int(value):
        return f"{int(value)} B"
    return _format(value, "n", _BYTE_UNITS)


def format_rate(bytes_per_second):
    """Write a transfer rate with decimal units (kB/s, MB/s, GB/s, TB/s).

    Parameters
    ----------
    bytes_per_second : float, int, NumPy or torch scalar, or None
        Rate in bytes per second.

    Returns
    -------
    str
        Text with three significant digits; "not measured here" for None.

    Raises
    ------
    TypeError
        If `bytes_per_second` is not one real number.

    Examples
    --------
    >>> format_rate(3.9e10)
    '39.0 GB/s'
    """
    return _format(bytes_per_second, "bytes_per_second", _RATE_UNITS)


def format_ratio(x):
    """Write a ratio with an x behind it, and one digit more between 1 and 2.

    Parameters
    ----------
    x : float, int, NumPy or torch scalar, or None
        Ratio without unit.

    Returns
    -------
    str
        Text such as "3.7x"; "not measured here" for None.

    Raises
    ------
    TypeError
        If `x` is not one real number.

    Examples
    --------
    >>> format_ratio(3.7), format_ratio(1.02), format_ratio(4673)
    ('3.7x', '1.02x', '4,670x')
    """
    value = _to_float(x, "x")
    if value is None:
        return NOT_MEASURED
    if not math.isfinite(value):
        return _not_finite(value)
    return f"{_ratio_digits(value)}x"


def _ratio_digits(value):
    """Return the digits of a finite ratio: two that count, three from 1 to 2 and from 100."""
    if value == 0:
        return "0"
    if 0.995 <= abs(value) < 1.995:
        return f"{value:.2f}"
    return _digits(value, 3 if abs(value) >= 100 else 2)


def _format(value, name, units):
    """Write `value` in the largest of `units` in which it does not round to below 1."""
    value = _to_float(value, name)
    if value is None:
        return NOT_MEASURED
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return f"0 {'s' if units is _TIME_UNITS else units[0][0]}"
    for (unit, scale), (_, larger) in pairwise(units):
        if abs(value) < larger:
            text = _digits(value / scale)
            if abs(float(text.replace(",", ""))) * scale < larger:
                return f"{text} {unit}"
            # 999.9 µs has not reached a millisecond, but its text has: it is written "1.00 ms".
            value = math.copysign(larger, value)
    unit, scale = units[-1]
    return f"{_digits(value / scale)} {unit}"


def _digits(value, significant=3):
    """Round to `significant` digits; whole digits before the point of 1000 to 1023 all stay."""
    rounded = float(f"{value:.{significant - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if exponent >= 6 or exponent < -3:
        return f"{value:.{significant - 1}e}"
    if 1000 <= abs(value) < 1024:
        return f"{value:.0f}"
    return f"{rounded:,.{max(0, significant - 1 - exponent)}f}"


def _to_float(value, name):
    """Return `value` as a float, or None for None; a TypeError says what was expected."""
    if value is None:
        return None
    try:
        number = value.item() if hasattr(value, "item") else value
    except (RuntimeError, ValueError):
        number = value  # an array or a tensor of several numbers: refused below
    if isinstance(number, bool | str | bytes | bytearray):
        raise TypeError(f"{name} must be one number, got {number!r}; pass a float or an int")
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError):
        kind = type(value).__name__
        raise TypeError(f"{name} must be one number, got {kind}; pass a float or an int") from None


def _not_finite(value):
    """Write infinities and NaN without a unit, for none of them is a size."""
    if math.isnan(value):
        return "not a number"
    return "infinite" if value > 0 else "-infinite"
