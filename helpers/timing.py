"""Measure how long a call takes, and say by how much one call beats another, or decline.

A block of calls is timed between two readings of a clock; before each reading the device is
synchronized, so that work which was only queued is counted as well. Results are
`torch.utils.benchmark.Measurement` objects that keep every block (`raw_times`).
"""

import gc
import math
import random
import time
import timeit
import uuid
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from html import escape

import torch

from helpers.device import Machine, describe_machine, pick_device
from helpers.device import synchronize as wait_for
from helpers.units import format_ratio, format_time

MIN_BLOCKS = 5  # fewer have no middle half to speak of
MAX_SPREAD = 0.1  # IQR over median, the limit at which torch's Measurement warns
RESOLUTION = 0.02  # two timings of one call differ by up to this on a quiet machine
_BLOCK_SECONDS = 5e-3  # longer than a scheduler's time slice, so a busy machine shows as spread
_MAX_BLOCKS = 500
_MAX_IDLE_CALLS = 10**6
_WARM_BELOW = 0.01  # seconds: a longer call refills the caches in a small part of its time
_INTERRUPTION = 0.1  # seconds: an operating system seldom keeps a program waiting longer
_RESAMPLES = 1000


def benchmark(
    call, *, min_run_time=0.2, threads=None, device=None, clock=time.perf_counter, synchronize=None
):
    """Time a call: warm up, run blocks of calls, keep the time of every block.

    Parameters
    ----------
    call : callable
        Called without arguments; what it returns is dropped.
    min_run_time : float
        Seconds that the timed blocks take together, about. A slow call is timed at least
        five times, however long that takes.
    threads : int, optional
        Threads that torch may use inside one operation; by default as many as it uses now.
        The former number is restored, also when `call` raises.
    device : torch.device or str, optional
        What to wait for before the clock is read; by default what `pick_device` returns.
    clock : callable, optional
        Returns seconds.
    synchronize : callable, optional
        Waits until all queued work is done, in place of waiting for `device`.

    Returns
    -------
    torch.utils.benchmark.Measurement
        Times of one call in seconds: `.median`, `.iqr`, `.times`, `.num_threads`. They include
        about 30 ns for calling a Python function.

    Raises
    ------
    TypeError, ValueError
        If an argument is not what is said above.
    RuntimeError
        If the clock stands still. Whatever `call` raises passes through unchanged.

    See Also
    --------
    torch.utils.benchmark : https://docs.pytorch.org/docs/stable/benchmark_utils.html

    Examples
    --------
    >>> measurement = benchmark(lambda: sum(range(100)), min_run_time=0.01)
    >>> 1e-8 < measurement.median < 1e-3
    True
    """
    _check_call(call, "call")
    read = _make_reader(device, clock, synchronize)
    (measurement,) = _measure({_name_of(call): call}, min_run_time, threads, read).values()
    return measurement


def compare(
    calls, *, min_run_time=0.2, threads=None, device=None, clock=time.perf_counter, synchronize=None
):
    """Time several calls in alternation, so that a machine that drifts treats all alike.

    Parameters
    ----------
    calls : dict of str to callable
        What to time, under the names that the table shows.
    min_run_time, threads, device, clock, synchronize
        As for `benchmark`; `min_run_time` is meant for each call.

    Returns
    -------
    Comparison
        Displays itself as a table; `comparison[name]` is a `Measurement`, and
        `comparison.speedup(baseline, new)` weighs two of them.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As for `benchmark`, and if `calls` is no dict or is empty.

    Examples
    --------
    >>> comparison = compare(
    ...     {"ten": lambda: sum(range(10)), "million": lambda: sum(range(10**6))}, min_run_time=0.01
    ... )
    >>> comparison["ten"].median < comparison["million"].median
    True
    """
    _check_calls(calls)
    read = _make_reader(device, clock, synchronize)
    measured = _measure(calls, min_run_time, threads, read)
    used = next(iter(measured.values())).num_threads
    return Comparison(measurements=measured, machine=replace(describe_machine(), threads=used))


def speedup(baseline, new):
    """Compare two measurements: the ratio of their medians with a 95 % interval, or a refusal.

    The interval is a bootstrap over the blocks: of two measurements from one `compare`, blocks
    of the same round are drawn together. The draws have their own generator, with a fixed seed.

    Parameters
    ----------
    baseline, new : torch.utils.benchmark.Measurement
        From `benchmark`, `compare` or torch's `Timer`.

    Returns
    -------
    Speedup
        Baseline time over new time: above 1, `new` is faster.

    Raises
    ------
    TypeError
        If an argument is no `Measurement`.
    ValueError
        If a measurement holds no time above zero.

    See Also
    --------
    Efron (1979), "Bootstrap methods: another look at the jackknife", Annals of Statistics 7.

    Examples
    --------
    >>> comparison = compare(
    ...     {"ten": lambda: sum(range(10)), "million": lambda: sum(range(10**6))}, min_run_time=0.01
    ... )
    >>> speedup(comparison["million"], comparison["ten"]).best > 10
    True
    """
    for role, measurement in (("baseline", baseline), ("new", new)):
        _check_measurement(measurement, role)
    low, high = _interval(baseline, new)
    return Speedup(
        ratio=baseline.median / new.median,
        low=low,
        high=high,
        best=min(baseline.times) / min(new.times),
        refusal=_refusal((baseline, new), low, high),
        baseline=baseline.stmt,
        new=new.stmt,
    )


@dataclass(frozen=True, repr=False)
class Comparison(Mapping):
    """Hold one measurement for each call; display them as a table.

    Parameters
    ----------
    measurements : dict of str to torch.utils.benchmark.Measurement
        In the order of the calls. All have the same number of blocks, taken in rounds.
    machine : Machine
        Where they were measured, with the threads that were used.
    """

    measurements: dict
    machine: Machine

    def __getitem__(self, name):
        """Return the `Measurement` of the call `name`."""
        if name not in self.measurements:
            known = ", ".join(repr(known) for known in self.measurements)
            raise KeyError(f"no call is named {name!r}; there are {known}")
        return self.measurements[name]

    def __iter__(self):
        """Iterate over the names."""
        return iter(self.measurements)

    def __len__(self):
        """Return the number of calls."""
        return len(self.measurements)

    @property
    def best(self):
        """Return the shortest time of each call, in seconds, as a dict."""
        return {name: min(measurement.times) for name, measurement in self.measurements.items()}

    def speedup(self, baseline, new):
        """Weigh the call named `new` against the one named `baseline`; see `speedup`."""
        return speedup(self[baseline], self[new])

    def _rows(self):
        yield ("", "median", "IQR", "best", "n", "threads")
        for name, m in self.measurements.items():
            times = (format_time(t) for t in (m.median, m.iqr, min(m.times)))
            yield (name, *times, str(len(m.raw_times)), str(m.num_threads))

    def __str__(self):
        """Return the table as text, with the machine below."""
        rows = list(self._rows())
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        )
        return "\n".join([*lines, str(self.machine)])

    __repr__ = __str__

    def _repr_html_(self):
        head, *body = self._rows()
        cells = "".join(f'<th style="text-align:right">{escape(text)}</th>' for text in head[1:])
        rows = [f"<tr><td></td>{cells}</tr>"]
        for name, *values in body:
            cells = "".join(f'<td style="text-align:right">{escape(text)}</td>' for text in values)
            rows.append(f'<tr><th style="text-align:left">{escape(name)}</th>{cells}</tr>')
        return f"<table>{''.join(rows)}</table><small>{escape(str(self.machine))}</small>"


@dataclass(frozen=True, repr=False)
class Speedup:
    """Say how much faster a call is than its baseline, or why that cannot be said.

    Parameters
    ----------
    ratio : float
        Median time of the baseline over that of the new call.
    low, high : float
        Ends of the 95 % interval of `ratio`.
    best : float
        The same ratio from the shortest times, which a busy machine disturbs least.
    refusal : str or None
        Why no winner is named; None if one is.
    baseline, new : str
        Names of the two calls.
    """

    ratio: float
    low: float
    high: float
    best: float
    refusal: str | None
    baseline: str
    new: str

    def __str__(self):
        """Return the finding in one sentence."""
        if self.refusal is not None:
            return self.refusal
        ends = (self.low, self.ratio, self.high)
        word = "faster"
        if self.ratio < 1:
            ends, word = tuple(1 / end for end in reversed(ends)), "slower"
        low, ratio, high = map(format_ratio, ends)
        span = f"({low[:-1]}–{high[:-1]}, 95 % interval)"
        return f"{self.new} is {ratio} {word} than {self.baseline} {span}"

    __repr__ = __str__

    def _repr_html_(self):
        return f"<span>{escape(str(self))}</span>"


def _measure(calls, min_run_time, threads, read):
    """Time `calls` in rounds; return a dict of name to Measurement, all of one length."""
    _check_min_run_time(min_run_time)
    with _torch_state(threads) as used:
        seconds = {name: _estimate(call, min_run_time, read) for name, call in calls.items()}
        slowest = max(_BLOCK_SECONDS, min_run_time / _MAX_BLOCKS, *seconds.values())
        rounds = max(MIN_BLOCKS, math.ceil(min_run_time / slowest))
        numbers = {name: max(1, round(min_run_time / rounds / s)) for name, s in seconds.items()}
        times = _run_rounds(calls, numbers, seconds, rounds, read)
    return _as_measurements(times, numbers, used)


def _run_rounds(calls, numbers, seconds, rounds, read):
    """Time one block of each call in each round, in an order that is drawn anew."""
    blocks = {name: timeit.Timer(call, timer=read) for name, call in calls.items()}
    times = {name: [] for name in calls}
    order, draw = list(calls), random.Random(0)
    for _ in range(rounds):
        draw.shuffle(order)
        for name in order:
            # The call before this one has filled the caches with its own data.
            if len(order) > 1 and seconds[name] < _WARM_BELOW:
                calls[name]()
            times[name].append(blocks[name].timeit(numbers[name]))
    return times


def _as_measurements(times, numbers, threads):
    from torch.utils.benchmark import Measurement
    from torch.utils.benchmark.utils.common import TaskSpec

    # Blocks of one round belong together; `speedup` knows by this mark.
    metadata = {"rounds": uuid.uuid4().hex}
    measured = {}
    for name, raw_times in times.items():
        if sorted(raw_times)[len(raw_times) // 2] <= 0:
            raise RuntimeError(
                f"the clock showed no time for most blocks of {numbers[name]:,} calls of {name};"
                " pass a clock with a finer resolution"
            )
        spec = TaskSpec(stmt=name, setup="pass", num_threads=threads)
        measured[name] = Measurement(numbers[name], raw_times, spec, metadata)
    return measured


def _estimate(call, min_run_time, read):
    """Return about how many seconds a call takes once warm; blocks grow tenfold until it shows."""
    call()
    timer = timeit.Timer(call, timer=read)
    enough = min(_BLOCK_SECONDS, min_run_time / MIN_BLOCKS)
    number, began = 1, time.monotonic()
    while (elapsed := _shortest_block(timer, number)) < enough:
        idle = number >= _MAX_IDLE_CALLS or time.monotonic() - began > 1 + min_run_time
        if elapsed <= 0 and idle:
            raise RuntimeError(
                f"the clock showed no time for {number:,} calls; pass a clock that counts seconds"
            )
        number *= 10
    return elapsed / number


def _shortest_block(timer, number):
    """Return the shortest of three blocks, so that one interruption is not taken for the call."""
    elapsed = timer.timeit(number)
    if elapsed > _INTERRUPTION:
        return elapsed
    return min(elapsed, timer.timeit(number), timer.timeit(number))


def _make_reader(device, clock, synchronize):
    """Return a function that waits for the device and only then reads the clock."""
    if synchronize is None:
        wanted = pick_device() if device is None else torch.device(device)
        if wanted.type == "cpu":
            return clock
        synchronize = partial(wait_for, wanted)

    def read():
        synchronize()
        return clock()

    return read


@contextmanager
def _torch_state(threads):
    """Set the number of threads; put it, the grad mode and the collector back at the end."""
    _check_threads(threads)
    former = torch.get_num_threads(), torch.is_grad_enabled(), gc.isenabled()
    try:
        if threads is not None and threads != former[0]:
            torch.set_num_threads(threads)
        yield torch.get_num_threads()
    finally:
        if torch.get_num_threads() != former[0]:
            torch.set_num_threads(former[0])
        torch.set_grad_enabled(former[1])
        (gc.enable if former[2] else gc.disable)()


def _interval(baseline, new):
    """Return the ends of the 95 % bootstrap interval of the ratio of medians."""
    import numpy as np

    generator = np.random.default_rng(0)
    old_times, new_times = np.array(baseline.times), np.array(new.times)
    paired = _paired(baseline, new)
    ratios = []
    for _ in range(_RESAMPLES):
        drawn = generator.integers(len(old_times), size=len(old_times))
        other = drawn if paired else generator.integers(len(new_times), size=len(new_times))
        ratios.append(np.median(old_times[drawn]) / np.median(new_times[other]))
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)


def _paired(baseline, new):
    """Say whether two measurements come from the same rounds."""
    marks = [(m.metadata or {}).get("rounds") for m in (baseline, new)]
    return marks[0] is not None and marks[0] == marks[1]


def _refusal(measurements, low, high):
    """Return why no winner may be named, or None."""
    for m in measurements:
        if len(m.raw_times) < MIN_BLOCKS:
            return (
                f"too few runs: {m.stmt} has {len(m.raw_times)}, a spread needs {MIN_BLOCKS};"
                " measure with timing.compare"
            )
    widest = max(measurements, key=lambda m: m.iqr / m.median)
    if widest.iqr / widest.median > MAX_SPREAD:
        return (
            f"spread too wide: the middle half of {widest.stmt} spans"
            f" {100 * widest.iqr / widest.median:.0f} % of its median,"
            f" more than {100 * MAX_SPREAD:.0f} %;"
            " close other programs or raise min_run_time" + _order_in_words(*measurements)
        )
    span = f"no difference shown: the 95 % interval, {low:.3f} to {high:.3f},"
    if low <= 1 <= high:
        return f"{span} contains 1"
    if low < 1 + RESOLUTION and high > 1 / (1 + RESOLUTION):
        return f"{span} comes within {100 * RESOLUTION:.0f} % of 1, as two timings of one call do"
    return None


def _order_in_words(baseline, new):
    """Say which call was shorter in all of its blocks, if one was: an order needs no ratio."""
    faster, slower = sorted((baseline, new), key=lambda m: max(m.times))
    if not max(faster.times) < min(slower.times):
        return ""
    return f". Still, the slowest run of {faster.stmt} beats the fastest of {slower.stmt}"


def _name_of(call):
    """Return a name without an address: of the function, or of the class."""
    while isinstance(call, partial):
        call = call.func
    return getattr(call, "__name__", type(call).__name__)


def _check_call(call, name):
    if not callable(call):
        kind = type(call).__name__
        raise TypeError(f"{name} must be callable, got {kind}; wrap the work: lambda: a @ b")


def _check_calls(calls):
    if not isinstance(calls, Mapping):
        kind = type(calls).__name__
        raise TypeError(f'calls must be a dict, got {kind}; write {{"name": lambda: a @ b}}')
    if not calls:
        raise ValueError('calls must hold a call, got none; write {"name": lambda: a @ b}')
    for name, call in calls.items():
        if not isinstance(name, str):
            raise TypeError(f"names of calls must be str, got {name!r}; quote it")
        _check_call(call, f"calls[{name!r}]")


def _check_min_run_time(min_run_time):
    advice = "use 0.2 for a quick look"
    if isinstance(min_run_time, bool) or not isinstance(min_run_time, int | float):
        kind = type(min_run_time).__name__
        raise TypeError(f"min_run_time must be a number of seconds, got {kind}; {advice}")
    if not min_run_time > 0:
        raise ValueError(f"min_run_time must be positive, got {float(min_run_time)} s; {advice}")
    if min_run_time == math.inf:
        raise ValueError(f"min_run_time must be finite, got inf s; {advice}")


def _check_threads(threads):
    if threads is None:
        return
    if isinstance(threads, bool) or not isinstance(threads, int):
        kind = type(threads).__name__
        raise TypeError(f"threads must be an int, got {kind}; leave it out to keep torch's number")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}; use 1 for a single thread")


def _check_measurement(measurement, role):
    from torch.utils.benchmark import Measurement

    if not isinstance(measurement, Measurement):
        kind = type(measurement).__name__
        raise TypeError(f"{role} must be a Measurement, got {kind}; measure with timing.benchmark")
    if not measurement.raw_times or min(measurement.raw_times) <= 0:
        raise ValueError(f"{role} must hold times above zero; measure with timing.benchmark")
