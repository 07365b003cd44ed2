"""The simulated device queues, waits and copies as its description says, in virtual time."""

import itertools
import random

import pytest

from helpers import simulated, timing
from helpers.simulated import SimulatedDevice

US, MS = 1e-6, 1e-3


def run(device, kernel, launches):
    for _ in range(launches):
        device.launch("kernel", kernel)
    return device.clock()


def test_the_host_pays_for_the_order_and_the_device_works_later():
    device = SimulatedDevice(launch_s=5 * US)
    assert run(device, 1 * MS, 10) == pytest.approx(50 * US)
    device.synchronize()
    assert device.clock() == pytest.approx(5 * US + 10 * MS)


@pytest.mark.parametrize(("launches", "shown"), [(100, 5), (1000, 5), (2000, 488), (20_000, 949)])
def test_a_full_queue_makes_the_host_wait(launches, shown):
    seconds = run(SimulatedDevice(), 1 * MS, launches)
    assert round(1e6 * seconds / launches) == shown


@pytest.mark.parametrize("kernel", [2 * US, 5 * US, 40 * US, 1 * MS])
def test_the_whole_run_takes_the_longer_of_order_and_kernel(kernel):
    device = SimulatedDevice()
    run(device, kernel, 300)
    device.synchronize()
    longer, shorter = max(kernel, 5 * US), min(kernel, 5 * US)
    assert device.clock() == pytest.approx(300 * longer + shorter)


def test_an_item_at_each_launch_costs_order_and_kernel_together():
    device = SimulatedDevice()
    for _ in range(100):
        device.launch("kernel", 40 * US)
        device.item()
    assert device.clock() == pytest.approx(100 * 45 * US)
    assert device.waits == 100


def test_the_first_launch_of_each_name_costs_more():
    device = SimulatedDevice(launch_s=0, first_call_s=1.0)
    costs = []
    for name in ("a", "a", "b"):
        before = device.clock()
        device.launch(name, 0)
        costs.append(device.clock() - before)
    assert costs == [1.0, 0.0, 1.0]


def step_time(*, pinned, non_blocking, copy_stream):
    """Return the milliseconds of 20 steps: 1 ms host, a copy of 24 MB, a kernel of 2 ms."""
    device = SimulatedDevice()
    for _ in range(20):
        device.host("load", 1 * MS)
        stream = "copy" if copy_stream else "compute"
        there = device.copy(
            "batch", 24_000_000, pinned=pinned, non_blocking=non_blocking, stream=stream
        )
        device.launch("train", 2 * MS, after=there)
    device.synchronize()
    return round(1e3 * device.clock())


def test_only_pinning_and_non_blocking_and_a_second_stream_together_overlap():
    cases = list(itertools.product((False, True), repeat=3))
    names = ("pinned", "non_blocking", "copy_stream")
    times = {case: step_time(**dict(zip(names, case, strict=True))) for case in cases}
    assert [times[case] for case in cases] == [121, 102, 121, 102, 81, 62, 81, 43]


def test_without_pinning_non_blocking_changes_nothing():
    for copy_stream in (False, True):
        one, other = (
            step_time(pinned=False, non_blocking=n, copy_stream=copy_stream) for n in (False, True)
        )
        assert one == other


def test_streams_never_overlap_themselves_and_the_clock_never_goes_back():
    draw = random.Random(0)
    device = SimulatedDevice(queue_depth=3, first_call_s=20 * US)
    last = 0.0
    for _ in range(300):
        stream = draw.choice(["compute", "copy"])
        draw.choice(
            [
                lambda s=stream: device.launch("k", draw.random() * MS, stream=s),
                lambda s=stream: device.copy("c", 10**6, pinned=True, non_blocking=True, stream=s),
                lambda: device.host("h", draw.random() * MS),
                device.item,
            ]
        )()
        assert device.clock() >= last
        last = device.clock()
    assert len(device.events) > 300
    for lane in ("host", "compute", "copy"):
        spans = [(e.start, e.end) for e in device.events if e.lane == lane]
        assert all(start <= end for start, end in spans)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans)), lane


def test_the_queue_holds_no_more_than_its_depth():
    device = SimulatedDevice(queue_depth=7)
    longest = 0
    for _ in range(50):
        device.launch("kernel", 1 * MS)
        longest = max(longest, device.queued)
    assert longest == 7
    device.synchronize()
    assert device.queued == 0


def test_events_are_kept_up_to_a_limit():
    device = SimulatedDevice()
    run(device, 1 * US, simulated.KEPT)
    assert len(device.events) == simulated.KEPT
    assert device.events[0] == ("kernel", "host", 0.0, 5e-6)


def test_timing_benchmark_times_it_rightly():
    device = SimulatedDevice()
    right = timing.benchmark(
        lambda: device.launch("kernel", 1 * MS), clock=device.clock, synchronize=device.synchronize
    )
    assert right.median == pytest.approx(1 * MS, rel=0.01)


def test_synchronize_takes_a_device_as_torchs_does_and_an_idle_one_costs_nothing():
    device = SimulatedDevice()
    device.synchronize("cuda")
    assert device.clock() == 0
    assert device.waits == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"queue_depth": 0}, r"^queue_depth must be at least 1, got 0; CUDA holds many$"),
        ({"launch_s": -1.0}, r"^launch_s must be zero or more seconds, got -1.0; 5e-6 is 5 µs$"),
        ({"first_call_s": float("nan")}, r"^first_call_s must be zero or more seconds, got nan"),
        ({"pageable_bytes_per_s": 0}, r"^pageable_bytes_per_s must be above zero, got 0; 6e9 is"),
        ({"pinned_bytes_per_s": -1}, r"^pinned_bytes_per_s must be above zero, got -1"),
    ],
)
def test_impossible_devices_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        SimulatedDevice(**arguments)


def test_a_negative_time_is_refused():
    device = SimulatedDevice()
    for call in (lambda: device.host("h", -1), lambda: device.launch("k", -1)):
        with pytest.raises(ValueError, match=r"^seconds must be zero or more seconds, got -1"):
            call()
