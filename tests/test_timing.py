"""Timing is right on scripted clocks, and declines where it cannot tell."""

import dataclasses
import gc
import itertools
import math
import pickle
import random
import re
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.benchmark import Measurement, Timer
from torch.utils.benchmark.utils.common import TaskSpec

from helpers import timing
from helpers.device import Machine


class FakeClock:
    """Counts virtual seconds; calls made by `work` move it by scripted durations."""

    def __init__(self):
        self.now = 0.0
        self.calls = 0

    def __call__(self):
        return self.now

    def work(self, *durations):
        """Return a callable that takes these seconds in turn, over and over."""
        script = itertools.cycle(durations)

        def call():
            self.calls += 1
            self.now += next(script)

        return call


class FakeDevice:
    """Takes orders at once and works them off only when someone waits for it."""

    def __init__(self, launch, kernel):
        self.now, self.queued = 0.0, 0.0
        self.launch, self.kernel = launch, kernel

    def clock(self):
        return self.now

    def call(self):
        self.now += self.launch
        self.queued += self.kernel

    def synchronize(self, device=None):
        self.now += self.queued
        self.queued = 0.0


@pytest.fixture
def clock():
    return FakeClock()


def measurement(times, name="new", number=1, metadata=None):
    return Measurement(number, list(times), TaskSpec(name, "pass", num_threads=1), metadata)


def steady(seconds, name="new", n=20, spread=0.01):
    """Make a measurement whose times lie evenly within `spread` around `seconds`."""
    return measurement(seconds * np.linspace(1 - spread, 1 + spread, n), name)


# benchmark


@pytest.mark.parametrize("seconds", [40e-9, 3e-6, 2e-3, 0.05, 7.0])
def test_benchmark_reports_the_time_of_one_call(clock, seconds):
    result = timing.benchmark(clock.work(seconds), clock=clock)
    assert isinstance(result, Measurement)
    assert result.median == pytest.approx(seconds, rel=1e-6)
    assert result.iqr == pytest.approx(0, abs=seconds * 1e-6)


def test_benchmark_keeps_every_block_so_that_the_spread_is_real(clock):
    result = timing.benchmark(clock.work(0.01, 0.02, 0.03), clock=clock, min_run_time=1)
    assert len(result.raw_times) >= 30
    assert result.median == pytest.approx(0.02)
    assert result.iqr == pytest.approx(0.02)


def test_torchs_timeit_keeps_one_time_and_shows_no_spread():
    result = Timer("x + x", globals={"x": torch.ones(1)}).timeit(10)
    assert len(result.raw_times) == 1
    assert result.iqr == 0


def test_benchmark_takes_about_the_asked_time(clock):
    result = timing.benchmark(clock.work(1e-3), clock=clock, min_run_time=2.0)
    assert sum(result.raw_times) == pytest.approx(2.0, rel=0.05)
    assert result.number_per_run > 1


def test_benchmark_times_a_slow_call_five_times_and_warms_up_once(clock):
    result = timing.benchmark(clock.work(3.0), clock=clock)
    assert len(result.raw_times) == 5
    assert clock.calls == 7  # to warm up, to estimate, and five that count


def test_benchmark_leaves_the_first_call_out(clock):
    first = iter([5.0])

    def call():
        clock.now += next(first, 0.1)

    assert max(timing.benchmark(call, clock=clock).times) == pytest.approx(0.1)


def test_one_interruption_during_the_estimate_does_not_change_the_blocks():
    def blocks(interruption):
        clock = FakeClock()
        pauses = iter([0.0, interruption])

        def call():
            clock.now += 1e-4 + next(pauses, 0.0)

        return timing.benchmark(call, clock=clock).number_per_run

    assert blocks(0.02) == blocks(0.0)


def test_benchmark_counts_work_that_was_only_queued():
    device = FakeDevice(launch=5e-6, kernel=1e-3)
    right = timing.benchmark(device.call, clock=device.clock, synchronize=device.synchronize)
    assert right.median == pytest.approx(1.005e-3)
    device = FakeDevice(launch=5e-6, kernel=1e-3)
    wrong = timing.benchmark(device.call, clock=device.clock, synchronize=lambda: None)
    assert wrong.median == pytest.approx(5e-6)


def test_benchmark_does_not_bill_a_call_for_work_queued_before_it():
    device = FakeDevice(launch=5e-6, kernel=1e-3)
    for _ in range(1000):
        device.call()
    result = timing.benchmark(device.call, clock=device.clock, synchronize=device.synchronize)
    assert max(result.times) == pytest.approx(1.005e-3)


@pytest.mark.parametrize("wanted", [None, "cuda", "cuda:1"])
def test_benchmark_waits_for_the_accelerator_by_itself(monkeypatch, wanted):
    device = FakeDevice(launch=5e-6, kernel=1e-3)
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda")
    )
    monkeypatch.setattr(torch.accelerator, "synchronize", device.synchronize)
    result = timing.benchmark(device.call, clock=device.clock, device=wanted)
    assert result.median == pytest.approx(1.005e-3)


def test_benchmark_names_the_call_without_an_address():
    class Model(torch.nn.Module):
        def forward(self):
            return 1

    assert timing.benchmark(Model(), min_run_time=0.001).stmt == "Model"
    assert timing.benchmark(partial(sum, [1]), min_run_time=0.001).stmt == "sum"


def test_benchmark_of_a_real_call_grows_with_its_work():
    small, large = torch.ones(10), torch.ones(1_000_000)
    fast = timing.benchmark(lambda: small + small, min_run_time=0.02)
    slow = timing.benchmark(lambda: large + large, min_run_time=0.02)
    assert slow.median > 5 * fast.median


def test_a_measurement_survives_pickling(clock):
    result = timing.benchmark(clock.work(0.01), clock=clock)
    assert pickle.loads(pickle.dumps(result)).median == result.median


# calls that take no time, and clocks that do not show it


def test_an_empty_call_gets_a_small_positive_time():
    result = timing.benchmark(lambda: None, min_run_time=0.02)
    assert 0 < result.median < 1e-4
    assert result.number_per_run > 10


def test_a_clock_that_stands_still_is_an_error_after_bounded_work():
    calls = []
    with pytest.raises(RuntimeError) as error:
        timing.benchmark(lambda: calls.append(1), clock=lambda: 1.0, min_run_time=0.01)
    assert str(error.value) == (
        "the clock showed no time for 1,000,000 calls; pass a clock that counts seconds"
    )
    assert len(calls) < 4_000_000


def test_a_clock_that_stops_during_the_blocks_is_an_error(clock):
    def call():
        clock.calls += 1
        clock.now += 0.01 if clock.calls < 10 else 0.0

    with pytest.raises(RuntimeError, match="showed no time for most blocks of .* calls of call"):
        timing.benchmark(call, clock=clock)


# bad arguments


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1.0, "min_run_time must be positive, got -1.0 s; use 0.2 for a quick look"),
        (0, "min_run_time must be positive, got 0.0 s; use 0.2 for a quick look"),
        (math.nan, "min_run_time must be positive, got nan s; use 0.2 for a quick look"),
        (math.inf, "min_run_time must be finite, got inf s; use 0.2 for a quick look"),
    ],
)
def test_min_run_time_must_be_a_positive_time(value, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        timing.benchmark(len, min_run_time=value)


@pytest.mark.parametrize(("value", "kind"), [("1", "str"), (None, "NoneType"), (True, "bool")])
def test_min_run_time_must_be_a_number(value, kind):
    text = f"min_run_time must be a number of seconds, got {kind}; use 0.2 for a quick look"
    with pytest.raises(TypeError, match=re.escape(text)):
        timing.benchmark(len, min_run_time=value)


def test_threads_must_be_a_whole_number_from_one():
    with pytest.raises(ValueError, match="threads must be at least 1, got 0; use 1 for a single"):
        timing.benchmark(len, threads=0)
    with pytest.raises(TypeError, match="threads must be an int, got float; leave it out to keep"):
        timing.benchmark(len, threads=2.0)


def test_what_is_timed_must_be_callable():
    with pytest.raises(TypeError, match=re.escape("got Tensor; wrap the work: lambda: a @ b")):
        timing.benchmark(torch.ones(2))
    with pytest.raises(TypeError, match=re.escape("calls['a'] must be callable, got int")):
        timing.compare({"a": 1})


def test_compare_wants_a_dict_of_named_calls():
    with pytest.raises(TypeError, match="calls must be a dict, got list"):
        timing.compare([len])
    with pytest.raises(ValueError, match="calls must hold a call, got none"):
        timing.compare({})
    with pytest.raises(TypeError, match="names of calls must be str, got 1; quote it"):
        timing.compare({1: len})


# state


@pytest.fixture
def two_threads():
    former = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(former)


def test_threads_default_to_torchs_number_and_not_to_one(two_threads, clock):
    assert timing.benchmark(clock.work(0.1), clock=clock).num_threads == 2
    assert Timer("pass").timeit(2).num_threads == 1  # what torch would have done


def test_threads_are_set_for_the_call_and_restored(two_threads, clock):
    seen = set()
    work = clock.work(0.1)

    def call():
        seen.add(torch.get_num_threads())
        work()

    assert timing.benchmark(call, threads=3, clock=clock).num_threads == 3
    assert seen == {3}
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("fails_at", [1, 2, 30])
def test_an_exception_passes_unchanged_and_leaves_no_trace(two_threads, clock, fails_at):
    work, error = clock.work(0.01), ZeroDivisionError("mine")

    def call():
        work()
        torch.set_grad_enabled(False)
        if clock.calls == fails_at:
            raise error

    with pytest.raises(ZeroDivisionError) as caught:
        timing.compare({"a": call}, threads=1, clock=clock, min_run_time=1)
    assert caught.value is error
    assert clock.calls == fails_at
    assert torch.get_num_threads() == 2
    assert torch.is_grad_enabled()
    assert gc.isenabled()


def test_an_interrupt_leaves_no_trace(two_threads):
    def call():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timing.benchmark(call, threads=1)
    assert torch.get_num_threads() == 2


def test_a_call_runs_in_the_readers_grad_mode(clock):
    seen, work = set(), clock.work(0.1)

    def call():
        seen.add(torch.is_grad_enabled())
        work()

    with torch.no_grad():
        timing.benchmark(call, clock=clock)
        assert not torch.is_grad_enabled()
    assert seen == {False}


def test_random_numbers_of_the_reader_are_not_touched(clock):
    def states():
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

    before = states()
    comparison = timing.compare({"a": clock.work(0.1), "b": clock.work(0.2)}, clock=clock)
    comparison.speedup("b", "a")
    assert states() == before


# compare


def test_compare_times_each_call(clock):
    c = timing.compare({"a": clock.work(1e-3), "b": clock.work(4e-3)}, clock=clock)
    assert c["a"].median == pytest.approx(1e-3)
    assert c["b"].median == pytest.approx(4e-3)
    assert list(c) == ["a", "b"]
    assert len(c) == 2
    assert len(c["a"].raw_times) == len(c["b"].raw_times)


def test_compare_takes_about_the_asked_time_for_each_call(clock):
    c = timing.compare({"a": clock.work(1e-6), "b": clock.work(0.05)}, clock=clock, min_run_time=1)
    assert sum(c["a"].raw_times) == pytest.approx(1, rel=0.1)
    assert sum(c["b"].raw_times) == pytest.approx(1, rel=0.1)


def test_compare_lets_drift_hit_all_calls_alike(clock):
    # The machine slows down fivefold while it is measured; a stays 1.3 times as slow as b.
    def call(seconds):
        clock.now += seconds * (1 + clock.now)

    calls = {"a": partial(call, 0.013), "b": partial(call, 0.010)}
    c = timing.compare(calls, clock=clock, min_run_time=1)
    assert c["a"].times[-1] > 3 * c["a"].times[0]
    assert c["a"].median / c["b"].median == pytest.approx(1.3, rel=0.1)
    s = c.speedup("a", "b")
    assert s.low < 1.3 < s.high
    assert s.high - s.low < 0.4
    clock.now = 0.0
    alone = [timing.benchmark(calls[name], clock=clock, min_run_time=1) for name in "ab"]
    assert alone[0].median < alone[1].median  # one after the other, drift decides


def test_compare_changes_the_order_between_rounds(clock):
    order = []

    def call(name):
        order.append(name)
        clock.now += 0.1

    timing.compare({n: partial(call, n) for n in "ab"}, clock=clock, min_run_time=4)
    rounds = ["".join(order[i : i + 2]) for i in range(len(order) - 60, len(order), 2)]
    assert set(rounds) == {"ab", "ba"}


def test_compare_warms_a_fast_call_again_before_each_block(clock):
    last = []

    def call(name):
        cold = last != [name]
        last[:] = [name]
        clock.now += 0.006 if cold else 0.005

    c = timing.compare({n: partial(call, n) for n in "ab"}, clock=clock)
    assert max(c["a"].times + c["b"].times) == pytest.approx(0.005)


def test_comparison_gives_the_best_time_of_each(clock):
    c = timing.compare({"a": clock.work(0.02, 0.03), "b": clock.work(0.01)}, clock=clock)
    assert c.best == pytest.approx({"a": 0.02, "b": 0.01})


def test_comparison_names_the_calls_when_one_is_missing(clock):
    c = timing.compare({"a": clock.work(0.02), "b": clock.work(0.01)}, clock=clock)
    with pytest.raises(KeyError, match="no call is named 'c'; there are 'a', 'b'"):
        c["c"]
    with pytest.raises(KeyError, match="no call is named 'c'"):
        c.speedup("a", "c")


def test_comparison_is_frozen(clock):
    c = timing.compare({"a": clock.work(0.02)}, clock=clock)
    with pytest.raises(dataclasses.FrozenInstanceError):
        c.measurements = {}


MACHINE = Machine("CPU", "cpu", 2, 1, "2.13.0", "2.4.6")


def test_comparison_shows_itself_as_a_table_with_the_machine():
    c = timing.Comparison({"list": steady(195e-6), "torch <1>": steady(1.6e-6)}, MACHINE)
    assert repr(c).splitlines() == [
        "            median      IQR     best   n  threads",
        "list        195 µs  1.95 µs   193 µs  20        1",
        "torch <1>  1.60 µs  16.0 ns  1.58 µs  20        1",
        "Machine: CPU · 2 cores · 1 thread · torch 2.13.0 · NumPy 2.4.6",
    ]
    assert str(c) == repr(c)


def test_comparison_shows_itself_as_html_with_names_escaped():
    html = timing.Comparison({"torch <1>": steady(1.6e-6)}, MACHINE)._repr_html_()
    assert "torch &lt;1&gt;" in html
    assert "<1>" not in html
    for text in ("median", "IQR", "best", "threads", "1.60 µs", "16.0 ns", str(MACHINE)):
        assert f">{text}<" in html
    assert html.count("<tr>") == html.count("</tr>") == 2


def test_comparison_states_the_threads_that_were_used(clock):
    c = timing.compare({"a": clock.work(0.02)}, clock=clock, threads=2)
    assert c.machine.threads == 2
    assert "2 threads" in str(c)


# speedup


def test_speedup_is_baseline_time_over_new_time_with_an_interval():
    s = timing.speedup(steady(3.4e-3, "old"), steady(1e-3, "new"))
    assert s.ratio == pytest.approx(3.4)
    assert s.low < 3.4 < s.high
    assert s.high - s.low < 0.1
    assert s.best == pytest.approx(3.4)
    assert s.refusal is None
    assert str(s) == "new is 3.4x faster than old (3.4–3.4, 95 % interval)"
    assert repr(s) == str(s)
    assert s._repr_html_() == f"<span>{s}</span>"


def test_speedup_below_one_is_told_as_slower():
    s = timing.speedup(steady(1e-3, "old"), steady(16e-3, "new", spread=0.08))
    assert s.ratio == pytest.approx(1 / 16)
    assert re.fullmatch(r"new is 16x slower than old \(\d+–\d+, 95 % interval\)", str(s))
    low, high = map(float, re.search(r"\((\d+)–(\d+)", str(s)).groups())
    assert low <= 16 <= high


def test_speedup_escapes_names_in_html():
    s = timing.speedup(steady(3e-3, "<old>"), steady(1e-3, "<new>"))
    assert "&lt;new&gt; is 3.0x faster than &lt;old&gt;" in s._repr_html_()


def test_speedup_is_the_same_every_time():
    generator = np.random.default_rng(7)
    a, b = (measurement(generator.normal(t, t / 30, 40)) for t in (2.0, 1.0))
    assert timing.speedup(a, b) == timing.speedup(a, b)


def test_speedup_refuses_a_wide_spread():
    noisy = measurement(np.linspace(1.0, 2.0, 21), "old")
    s = timing.speedup(noisy, steady(0.1, "new"))
    assert s.refusal == str(s)
    assert s.refusal == (
        "spread too wide: the middle half of old spans 33 % of its median, more than 10 %;"
        " close other programs or raise min_run_time."
        " Still, the slowest run of new beats the fastest of old"
    )
    assert s.ratio == pytest.approx(15)
    overlapping = timing.speedup(noisy, steady(1.2, "new")).refusal
    assert overlapping.endswith("raise min_run_time")
    assert "old" in timing.speedup(steady(0.1, "new"), noisy).refusal


def test_speedup_refuses_when_the_interval_contains_one():
    a = measurement(np.linspace(0.95, 1.05, 20), "old")
    b = measurement(np.linspace(0.951, 1.051, 20), "new")
    assert re.fullmatch(
        r"no difference shown: the 95 % interval, 0\.9\d\d to 1\.0\d\d, contains 1",
        timing.speedup(a, b).refusal,
    )


@pytest.mark.parametrize("ratio", [1.01, 1 / 1.01])
def test_speedup_refuses_a_difference_that_two_timings_of_one_call_show(ratio):
    s = timing.speedup(steady(ratio, "old", spread=1e-4), steady(1.0, spread=1e-4))
    assert re.fullmatch(
        r"no difference shown: the 95 % interval, [\d.]+ to [\d.]+, comes within 2 % of 1,"
        r" as two timings of one call do",
        s.refusal,
    )
    assert timing.speedup(steady(ratio**5, spread=1e-4), steady(1.0, spread=1e-4)).refusal is None


def test_speedup_refuses_single_runs():
    once = Timer("x + x", globals={"x": torch.ones(1)}).timeit(10)
    assert timing.speedup(once, steady(1.0)).refusal == (
        "too few runs: x + x has 1, a spread needs 5; measure with timing.compare"
    )


def test_speedup_weighs_rounds_as_pairs_only_within_one_comparison():
    # Both drift by 9 % over the rounds, so that pairs agree and single times do not.
    drift = np.linspace(1, 1.09, 40)
    old, new = 1.05 * drift, drift
    pairs = [measurement(t, metadata={"rounds": "x"}) for t in (old, new)]
    mixed = [measurement(t, metadata={"rounds": mark}) for t, mark in ((old, "x"), (new, "y"))]
    paired, single = timing.speedup(*pairs), timing.speedup(*mixed)
    assert paired.high - paired.low < 1e-9
    assert paired.refusal is None
    assert single.high - single.low > 0.01


def test_speedup_takes_measurements_of_different_lengths():
    s = timing.speedup(steady(2.0, n=7), steady(1.0, n=200))
    assert s.low < 2 < s.high


def test_speedup_wants_measurements_with_times():
    with pytest.raises(TypeError, match="baseline must be a Measurement, got float; measure with"):
        timing.speedup(1.0, steady(1.0))
    with pytest.raises(TypeError, match="new must be a Measurement, got str"):
        timing.speedup(steady(1.0), "1")
    for times in ([], [0.0] * 9):
        with pytest.raises(ValueError, match="new must hold times above zero"):
            timing.speedup(steady(1.0), measurement(times))


@pytest.mark.parametrize("seed", range(5))
def test_speedup_finds_a_true_difference_and_no_other(seed):
    generator = np.random.default_rng(seed)

    def noisy(seconds):
        return measurement(seconds * np.exp(generator.normal(0, 0.04, 40)))

    assert timing.speedup(noisy(1.0), noisy(1.0)).refusal is not None
    s = timing.speedup(noisy(1.3), noisy(1.0))
    assert s.refusal is None
    assert s.low < 1.3 < s.high
