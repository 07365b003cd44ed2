"""Ask and check what 22_measure_a_speedup teaches."""

import math
import weakref

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer
from helpers.simulated import SimulatedDevice

PREDICTIONS = {
    "22.p1": Number(
        question="How many of the ten products were done when the clock was read first?",
        unit="products",
        among=10,
        notes=(
            (0, 1, "None: at that moment ten orders had been written, and that was timed."),
            (1, 4, "Fewer. Writing an order is so short that the first product has hardly begun."),
            (
                4,
                10,
                "The worker takes them one by one, and the loop does not wait for it: the "
                "orders were written long before the first product was through.",
            ),
            (
                10,
                11,
                "That is what the lines seem to say. But submit returns when the order is "
                "written; nothing in the loop asks for a result.",
            ),
        ),
    ),
    "22.p2": Choice(
        question="Which line of the step does the clock find slow?",
        options={
            "h1 = x @ W1": "It is half of the work, and its order is written in microseconds. "
            "Nobody has waited for it yet.",
            "h2 = h1 @ W2": "It is half of the work, and its order is written in microseconds. "
            "Nobody has waited for it yet.",
            "y = h2.relu()": "relu is little work on any device, and here it is an order too.",
            "loss = y.sum().item()": "Right: the first line that needs a value waits for all "
            "that was ordered before it, and gets the bill.",
        },
    ),
    "22.p3": Number(
        question="20,000 kernels of 1 ms each, 5 µs to order one, no synchronize: what time per "
        "launch does the clock show?",
        unit="s",
        notes=(
            (
                0,
                20e-6,
                "That holds for the first thousand launches. Then the queue is full, and an "
                "order can be written only when a kernel is done.",
            ),
            (20e-6, 800e-6, "More: for most of the loop the host waits for room in the queue."),
            (
                800e-6,
                1e-3,
                "Right: all but the orders that fit into the queue had to be worked off.",
            ),
            (
                1e-3,
                math.inf,
                "A little less than the kernel: the orders still in the queue were not done.",
            ),
        ),
    ),
    "22.p4": Number(
        question="Of 100 races of a call against itself, decided by one reading of the clock "
        "for each side: how many have a winner by more than 5 %?",
        unit="races",
        among=100,
        notes=(
            (0, 2, "The call is the same, the machine is not: it also does other things."),
            (2, 101, "Each of these winners would have been a headline. Repeating removes them."),
        ),
    ),
    "22.p5": Number(
        question="From 8 × 8 to 16 × 16 a matrix product has 8 times the FLOPs. How many times "
        "longer does it take?",
        unit="ratio",
        notes=(
            (
                0,
                2.5,
                "Right: at this size you pay for the call. The arithmetic is a small part of it.",
            ),
            (2.5, 6, "4 is the ratio of the bytes. Neither bytes nor FLOPs count at this size."),
            (
                6,
                math.inf,
                "Time follows the FLOPs once there are enough of them. Here the call itself "
                "costs more than the arithmetic.",
            ),
        ),
    ),
    "22.p6": Choice(
        question="Both lines copy the same 64 MiB. Why is one of them slow?",
        options={
            "the cache": "64 MiB and their copy fit into hardly any cache, and both lines read and "
            "write the same bytes.",
            "threads": "Both use as many threads: the same kernel does both copies.",
            "the dtype": "Both are float32, as the source is.",
            "new pages": "Right: clone asks for memory that nobody has used yet, and the "
            "operating system hands it out page by page, filled with zeros.",
        },
    ),
    "22.p7": Choice(
        question="A chip computes ten times faster, everything else stays. How much faster does "
        "this model train?",
        options={
            "ten times": "Then all of the step would have to be arithmetic.",
            "about twice": "Then about half of the step would have to be arithmetic.",
            "hardly at all": "Right: almost all of the step is the cost of the calls.",
        },
    ),
}


def _is_number(value):
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _same(value, truth):
    return math.isclose(float(value), truth, rel_tol=1e-6)


# --- 22.1 -------------------------------------------------------------------------------

_FIRST, _PENDING = 0.02, 0.3  # seconds: loading the kernel, and work queued by somebody else


_ON_YOUR_BILL = (
    "The work that was queued before you began is on your bill. Synchronize before you read the "
    "clock for the first time, too."
)


def _timed(answer, call, *, launch, kernel, repeats):
    """Return what the answer measures on a device that is busy and does not know the kernel."""
    device = SimulatedDevice(launch_s=launch, first_call_s=_FIRST)
    device.launch("somebody else's work", _PENDING)
    took = call(answer, device, lambda: device.launch("kernel", kernel), repeats)
    return device, took


def _sentences(launch, kernel, repeats):
    """Pair what a wrong timer measures with what to say about it."""
    longer, both = max(launch, kernel), launch + kernel
    right = (both + (repeats - 1) * longer) / repeats
    cold = _FIRST + launch
    return right, [
        (
            right * repeats,
            "That is the time of all repeats. Divide by their number: the time of one call is "
            "asked.",
        ),
        (
            launch,
            "The orders were timed, not the work. Wait with device.synchronize() before you "
            "read the clock at the end.",
        ),
        (
            both,
            "Each call waited for the one before it: an order plus a kernel. Synchronize once "
            "after the loop, and not in it.",
        ),
        ((_PENDING + repeats * kernel) / repeats, _ON_YOUR_BILL),
        ((_PENDING + (repeats + 1) * kernel - cold) / repeats, _ON_YOUR_BILL),
        (
            (cold + max((repeats - 1) * launch + kernel, repeats * kernel)) / repeats,
            "The first call, which loads the kernel, is in it. Make one call before the clock "
            "is read and wait for it.",
        ),
    ]


def test_time_call(answer, call):
    for launch, kernel, repeats in ((5e-6, 400e-6, 40), (50e-6, 10e-6, 100), (8e-6, 90e-6, 25)):
        device, took = _timed(answer, call, launch=launch, kernel=kernel, repeats=repeats)
        if not _is_number(took):
            raise Wrong(
                f"Expected seconds as a float, got {type(took).__name__}. Return the time of one "
                "call."
            )
        right, known = _sentences(launch, kernel, repeats)
        if _same(took, right):
            continue
        launched = sum(event.name == "kernel" for event in device.events if event.lane != "host")
        shown = f"A kernel of {1e6 * kernel:.0f} µs, {1e6 * launch:.0f} µs to order one: "
        shown += f"{1e6 * right:.1f} µs per call is right, you have {1e6 * took:.1f} µs. "
        for value, sentence in known:
            if _same(took, value):
                raise Wrong(shown + sentence)
        if launched not in (repeats, repeats + 1):
            raise Wrong(
                f"{shown}You made {launched} calls: one to warm up and {repeats} to time are "
                "needed."
            )
        if device.waits == 0:
            raise Wrong(f"{shown}Nobody waited for the device at all: call device.synchronize().")
        raise Wrong(
            f"{shown}The order is: warm up, synchronize, read device.clock(), all calls, "
            "synchronize, read device.clock() again."
        )


# --- 22.2 -------------------------------------------------------------------------------

_PEAK, _BANDWIDTH = 100e9, 40e9


def _rates():
    """Return (what, seconds, flops, nbytes, impossible, why) for results of a benchmark."""
    return [
        (
            "a product in 1 ms with 1e9 FLOPs and 12e6 bytes",
            (1e-3, 1e9, 12e6, True),
            "1e9 FLOPs need at least 10 ms at this peak.",
        ),
        (
            "the same product in 12 ms",
            (12e-3, 1e9, 12e6, False),
            "Both limits are kept: 10 ms for the FLOPs, 0.3 ms for the bytes.",
        ),
        (
            "an addition in 2 ms with 1e7 FLOPs and 120e6 bytes",
            (2e-3, 1e7, 120e6, True),
            "120e6 bytes need at least 3 ms at this bandwidth. One broken limit is enough.",
        ),
        (
            "the same addition in 3.05 ms",
            (3.05e-3, 1e7, 120e6, False),
            "The FLOPs need 0.1 ms and the bytes 3 ms, and they may overlap: the longer one "
            "counts, not the sum.",
        ),
        (
            "a product in 2 ms with 1e9 FLOPs and 400e6 bytes",
            (2e-3, 1e9, 400e6, True),
            "Both limits are broken: 10 ms for each are the least.",
        ),
        (
            "an empty call: 1 µs, no FLOPs, no bytes",
            (1e-6, 0, 0, False),
            "Nothing was claimed to be done, so no limit is broken.",
        ),
    ]


def test_impossible(answer, call):
    for what, (seconds, flops, nbytes, truth), why in _rates():
        result = call(answer, seconds, flops, nbytes, _PEAK, _BANDWIDTH)
        if not isinstance(result, (bool, np.bool_)):
            raise Wrong(f"Expected True or False for {what}, got {result!r}.")
        if bool(result) != truth:
            raise Wrong(
                f"Peak 100e9 FLOP/s, bandwidth 40e9 B/s, {what}: expected {truth}, got "
                f"{bool(result)}. {why}"
            )


# --- 22.3 -------------------------------------------------------------------------------


def _quartiles(times):
    return [float(q) for q in np.quantile(times, (0.25, 0.5, 0.75))]


def _runs():
    """Return two quiet series of times, one of them with an outlier, and a noisy one."""
    random = np.random.default_rng(np.random.randint(1 << 30))  # seeded by the engine
    quiet = 3e-3 * (1 + 0.02 * random.random(21))
    other = 1e-3 * (1 + 0.03 * random.random(21))
    other[7] = 80e-3  # somebody else had the processor for a moment
    noisy = 2e-3 * (1 + 0.8 * random.random(21))
    return quiet, other, noisy


def _three(result, name):
    if result is None:
        raise Wrong(
            f"{name}: both spreads are below 0.1, so there is something to report. You returned "
            "None: is a return missing, or does one outlier make your spread?"
        )
    try:
        values = [float(value) for value in result]
    except (TypeError, ValueError):
        raise Wrong(
            f"{name}: expected three numbers, (ratio, low, high), got {type(result).__name__}."
        ) from None
    if len(values) != 3:
        raise Wrong(
            f"{name}: expected three numbers, (ratio, low, high), got {len(values)} values."
        )
    return values


def _about_ratio(values, old, new):
    ratio, low, high = values
    o, n = _quartiles(old), _quartiles(new)
    right = o[1] / n[1]
    if _same(ratio, 1 / right):
        raise Wrong(
            f"Old takes 3 ms, new 1 ms: the speedup is {right:.2f}, you have {ratio:.2f}. It is "
            "old over new, so that above 1 means faster."
        )
    if _same(ratio, float(np.mean(old) / np.mean(new))):
        raise Wrong(
            f"The ratio of the medians is {right:.2f}, of the means {ratio:.2f}: one outlier of "
            "80 ms decided. Take medians."
        )
    if not _same(ratio, right):
        raise Wrong(f"The ratio of the medians is {right:.3f}, you have {ratio:.3f}.")
    if _same(low, o[0] / n[0]) and _same(high, o[2] / n[2]):
        raise Wrong(
            "You paired like with like: the quartile of old with the same quartile of new. The "
            "ratio is lowest for a short old and a long new: q25 of old over q75 of new."
        )
    if not (_same(low, o[0] / n[2]) and _same(high, o[2] / n[0])):
        raise Wrong(
            f"low and high are {o[0] / n[2]:.4f} and {o[2] / n[0]:.4f} here, you have {low:.4f} "
            f"and {high:.4f}: q25 of old over q75 of new, and q75 of old over q25 of new."
        )


def test_speedup(answer, call):
    quiet, other, noisy = _runs()
    first = call(answer, quiet, other)
    _about_ratio(_three(first, "Two quiet series, one outlier"), quiet, other)
    for name, old, new in (("old", noisy, other), ("new", quiet, noisy)):
        result = call(answer, old, new)
        if result is not None:
            low, median, high = _quartiles(noisy)
            raise Wrong(
                f"The IQR of {name} is {(high - low) / median:.2f} of its median, above 0.1: "
                f"return None. Either spread is enough to decline."
            )


# --- 22.4 -------------------------------------------------------------------------------


def _lines():
    """Return (what, a1, b1, a2, b2, size or None) for pairs of costs in seconds."""
    return [
        ("a list against torch", 0.2e-6, 22e-9, 1.0e-6, 0.2e-9, 0.8e-6 / 21.8e-9),
        ("torch against a list", 1.0e-6, 0.2e-9, 0.2e-6, 22e-9, 0.8e-6 / 21.8e-9),
        ("one that is slower everywhere", 1e-6, 1e-9, 2e-6, 3e-9, None),
        ("equal slopes", 1e-6, 2e-9, 3e-6, 2e-9, None),
        ("one method against itself", 1e-6, 2e-9, 1e-6, 2e-9, None),
        ("equal costs of a call", 1e-6, 1e-9, 1e-6, 3e-9, None),
    ]


_WHY = {
    "one that is slower everywhere": "These lines meet at a size below 0, and there is none.",
    "equal slopes": "Lines of one slope never meet.",
    "one method against itself": "Lines of one slope have no single size at which they meet.",
    "equal costs of a call": "They meet at 0 alone, and a size is above 0.",
}


def test_crossover(answer, call):
    for what, a1, b1, a2, b2, truth in _lines():
        try:
            n = call(answer, a1, b1, a2, b2)
        except ZeroDivisionError:
            raise Wrong(
                f"{what}: b1 and b2 are equal, and you divide by their difference. Lines of one "
                "slope never meet: return None."
            ) from None
        if truth is None:
            if n is not None:
                raise Wrong(f"{what}: expected None, got {n!r}. {_WHY[what]}")
            continue
        if not _is_number(n):
            missing = " Is a return missing?" if n is None else ""
            raise Wrong(f"{what}: expected a size, got {type(n).__name__}.{missing}")
        if _same(-n, truth):
            raise Wrong(
                f"{what}: expected {truth:.1f}, got {n:.1f}. The sign is swapped: "
                "a1 + b1·n = a2 + b2·n gives n = (a2 - a1) / (b1 - b2)."
            )
        if not _same(n, truth):
            raise Wrong(
                f"{what}: expected {truth:.1f}, got {n:.3g}. Put your n into both lines: the "
                "times must be equal. Both a and b count."
            )


# --- 22.5 -------------------------------------------------------------------------------

_WAITING = {
    "item", "__float__", "__int__", "__bool__", "__index__", "__format__", "__repr__", "tolist",
    "cpu", "to", "numpy", "__array__",
}  # fmt: skip


# Of a list of losses these make one tensor, and fetch each number alone on the way.
_FETCHING = {"tensor", "as_tensor", "asarray", "new_tensor"}


_SHOWN_AS = {
    "__float__": "float()",
    "__int__": "int()",
    "__format__": "an f-string",
    "__repr__": "print",
    "__bool__": "a condition such as if loss > 1",
}


class _CountWaits(TorchFunctionMode):
    """Count calls that need the value of a tensor on the host."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in _WAITING:
            self.names.append(name)
        if name in _FETCHING:
            lists = [value for value in (*args, *(kwargs or {}).values()) if _is_list(value)]
            inside = [leaf for leaf in tree_leaves(lists) if isinstance(leaf, torch.Tensor)]
            self.names += [name] * len(inside)
        return func(*args, **(kwargs or {}))


def _is_list(value):
    return isinstance(value, list | tuple)


class _Marker:
    """Live as long as the graph of one loss."""


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, value, alive):
        ctx.marker = _Marker()
        alive.append(weakref.ref(ctx.marker))
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None, None


def _trainer(values):
    """Return a training step, references to the graphs it made, and the most alive at once."""
    weight, alive = torch.ones((), requires_grad=True), []
    most = [0]

    def step(batch):
        loss = _Loss.apply(weight, values[batch], alive)
        loss.backward()
        most[0] = max(most[0], sum(reference() is not None for reference in alive))
        return loss

    return step, alive, most


def test_mean_loss(answer, call):
    for steps in (230, 100, 7):
        values = torch.rand(steps, dtype=torch.float64)
        step, alive, most = _trainer(values)
        # Batches are numbers here: the engine looks at tensors among the arguments, and waits.
        with _CountWaits() as counted:
            result = call(answer, step, list(range(steps)))
        if not isinstance(result, float):
            missing = " Is a return missing?" if result is None else ""
            raise Wrong(
                f"Expected the mean as a float, got {type(result).__name__}.{missing} One .item() "
                "at the end is allowed."
            )
        if len(alive) != steps:
            raise Wrong(f"There are {steps} batches, and step was called {len(alive)} times.")
        _about_waits(counted.names, steps)
        _about_mean(result, values, steps)
        if most[0] > 3:
            raise Wrong(
                f"{most[0]} graphs were alive at once: each loss you add keeps its graph. Add "
                "loss.detach() instead."
            )


def _about_waits(names, steps):
    allowed = max(1, steps // 50)
    if len(names) > allowed and names[0] in _FETCHING:
        raise Wrong(
            f"{names[0]}() of a list of {steps} losses fetches each of them alone, and waits "
            f"{len(names)} times; {allowed} waits are allowed. torch.stack joins them on the "
            "device."
        )
    if len(names) > allowed:
        shown = {"__float__": "float()", "__format__": "an f-string"}.get(
            names[0], f".{names[0]}()"
        )
        raise Wrong(
            f"{steps} steps waited for the device {len(names)} times, by {shown}; {allowed} waits "
            "are allowed. Add up on the device, and ask for the value at the end."
        )


def _about_mean(result, values, steps):
    if math.isclose(result, values.mean().item(), rel_tol=1e-5):
        return
    if math.isclose(result, values[-1].item(), rel_tol=1e-5):
        raise Wrong("That is the last loss. The mean of all steps is asked.")
    whole = steps // 50 * 50
    for mean in (values[:whole].sum() / steps, values[:whole].mean()):
        if whole and math.isclose(result, mean.item(), rel_tol=1e-5):
            raise Wrong(
                f"The last {steps - whole} of {steps} steps are missing: a window that is not "
                "full counts too."
            )
    raise Wrong(f"The mean of {steps} losses is {values.mean():.4f}, you have {result:.4f}.")


_TIME_STUB = '''def time_call(device, call, repeats):
    """Return the seconds of one call, warmed up."""
    ...
'''
_TIME_BODY = """def time_call(device, call, repeats):
    {warm}
    start = device.clock()
    for _ in range(repeats):
        call(){inside}
    {end}
    return (device.clock() - start){over}
"""


def _time_source(
    warm="call(); device.synchronize()", inside="", end="device.synchronize()", **other
):
    """Write out an answer to 22.1: the right one, with the named parts changed."""
    return _TIME_BODY.format(
        warm=warm, inside=inside, end=end, over=other.get("over", " / repeats")
    )


_POSSIBLE = "def impossible(seconds, flops, nbytes, peak, bandwidth):\n    return {}\n"
_SPEED = """def speedup(old, new):
    quarters = (0.25, 0.5, 0.75)
    (o1, o2, o3), (n1, n2, n3) = np.quantile(old, quarters), np.quantile(new, quarters)
    if {declines}:
        return None
    return {ratio}, {low}, {high}
"""


def _speed_source(
    declines="max((o3 - o1) / o2, (n3 - n1) / n2) > 0.1",
    ratio="o2 / n2",
    low="o1 / n3",
    high="o3 / n1",
):
    """Write out an answer to 22.3: the right one, with the named parts changed."""
    return _SPEED.format(declines=declines, ratio=ratio, low=low, high=high)


_CROSS = "def crossover(a1, b1, a2, b2):\n    {}\n"
_MEAN_STUB = """def mean_loss(step, batches):
    total = 0.0
    for batch in batches:
        total += step(batch).item()
    return total / len(batches)
"""

EXERCISES = {
    "22.1": Exercise(
        title="Time a call on an asynchronous device",
        minutes=6,
        task="Write `time_call`: warm up with one call, then return the seconds of one of "
        "`repeats` calls in a row. `device` has `clock()` and `synchronize()`; others may have "
        "queued work before you.",
        stub=_TIME_STUB,
        answer="time_call",
        test=test_time_call,
        hints=(
            "Between the two readings of the clock lies your work, all of it, and nobody else's.",
            "Which work is unfinished when the clock is read the first time, and which the "
            "second time?",
            "It begins with call(), then device.synchronize(), then start = device.clock().",
        ),
        solution=_time_source(),
        wrong=(
            WrongAnswer(
                "no synchronize",
                _time_source(warm="call()", end="pass"),
                "orders were timed, not the work",
            ),
            WrongAnswer(
                "synchronize at the start only",
                _time_source(end="pass"),
                "before you read the clock at the end",
            ),
            WrongAnswer(
                "synchronize at the end only",
                _time_source(warm="pass"),
                "queued before you began is on your bill",
            ),
            WrongAnswer(
                "synchronize in the loop",
                _time_source(inside="; device.synchronize()"),
                "Synchronize once after the loop",
            ),
            WrongAnswer(
                "no warm-up",
                _time_source(warm="device.synchronize()"),
                "The first call, which loads the kernel, is in it",
            ),
            WrongAnswer("sum", _time_source(over=""), "Divide by their number"),
            WrongAnswer(
                "warm-up, and no wait for it",
                _time_source(warm="call()"),
                "queued before you began is on your bill",
            ),
            WrongAnswer(
                "warm-up left in the queue",
                _time_source(warm="device.synchronize(); call()"),
                "The order is: warm up, synchronize",
            ),
            WrongAnswer(
                "never waits, other clock",
                "def time_call(device, call, repeats):\n"
                "    start = time.perf_counter()\n"
                "    for _ in range(repeats):\n        call()\n"
                "    return (time.perf_counter() - start) / repeats\n".replace(
                    "    start", "    import time\n\n    start", 1
                ),
                "Nobody waited for the device at all",
            ),
            WrongAnswer(
                "half of the repeats",
                _time_source().replace("range(repeats)", "range(repeats // 2)"),
                "one to warm up and",
            ),
            WrongAnswer(
                "no return",
                _time_source().replace("return ", "took = "),
                "Expected seconds as a float",
            ),
        ),
    ),
    "22.2": Exercise(
        title="Reject an impossible result",
        minutes=4,
        task="Write `impossible`: True if a result is too fast for a machine with `peak` FLOP/s "
        "and `bandwidth` bytes per second, False if not. Computing and moving may overlap.",
        stub="def impossible(seconds, flops, nbytes, peak, bandwidth):\n"
        '    """Tell whether no machine with these limits can be so fast."""\n    ...\n',
        answer="impossible",
        test=test_impossible,
        hints=(
            "Each limit alone gives a shortest time. Which of the two binds?",
            "An addition of large arrays has few FLOPs and many bytes; a matrix product has it "
            "the other way round.",
            "The shortest possible time is max(flops / peak, nbytes / bandwidth).",
        ),
        solution=_POSSIBLE.format("seconds < max(flops / peak, nbytes / bandwidth)"),
        wrong=(
            WrongAnswer(
                "FLOPs only",
                _POSSIBLE.format("seconds < flops / peak"),
                "One broken limit is enough",
            ),
            WrongAnswer(
                "bytes only",
                _POSSIBLE.format("seconds < nbytes / bandwidth"),
                "need at least 10 ms",
            ),
            WrongAnswer(
                "and for or",
                _POSSIBLE.format("seconds < flops / peak and seconds < nbytes / bandwidth"),
                "need at least 10 ms",
            ),
            WrongAnswer(
                "sum of both",
                _POSSIBLE.format("seconds < flops / peak + nbytes / bandwidth"),
                "the longer one counts, not the sum",
            ),
            WrongAnswer(
                "turned round",
                _POSSIBLE.format("seconds > max(flops / peak, nbytes / bandwidth)"),
                "expected True, got False",
            ),
            WrongAnswer(
                "an answer without work",
                _POSSIBLE.format("seconds <= max(flops / peak, nbytes / bandwidth, 1e-6)"),
                "no limit is broken",
            ),
            WrongAnswer(
                "the time",
                _POSSIBLE.format("max(flops / peak, nbytes / bandwidth)"),
                "Expected True or False",
            ),
            WrongAnswer(
                "2**30 for 10**9",
                _POSSIBLE.format(
                    "seconds < max(flops / peak, nbytes / (bandwidth * 2**30 / 10**9) * 1.1)"
                ),
                "the longer one counts",
            ),
        ),
    ),
    "22.3": Exercise(
        title="Report a speedup, or decline",
        minutes=7,
        task="`old` and `new` are arrays of times. Return `(ratio, low, high)`: the ratio of the "
        "medians, and its least and greatest value when both medians move within their quartiles, "
        "as np.quantile gives them. Return None if an IQR exceeds a tenth of its median.",
        stub='def speedup(old, new):\n    """Return (ratio, low, high), or None."""\n    ...\n',
        answer="speedup",
        test=test_speedup,
        hints=(
            "A ratio is smallest when its upper number is smallest and its lower one largest.",
            "One of 21 times is 80 ms. It must change neither the ratio nor the decision.",
            "np.quantile(old, (0.25, 0.5, 0.75)) gives all three numbers you need of old.",
        ),
        solution=_speed_source(),
        wrong=(
            WrongAnswer(
                "new over old",
                _speed_source(ratio="n2 / o2", low="n1 / o3", high="n3 / o1"),
                "old over new",
            ),
            WrongAnswer(
                "means",
                _speed_source(ratio="np.mean(old) / np.mean(new)"),
                "one outlier of 80 ms decided",
            ),
            WrongAnswer(
                "minima", _speed_source(ratio="min(old) / min(new)"), "The ratio of the medians is"
            ),
            WrongAnswer(
                "like with like",
                _speed_source(low="o1 / n1", high="o3 / n3"),
                "You paired like with like",
            ),
            WrongAnswer(
                "low and high swapped",
                _speed_source(low="o3 / n1", high="o1 / n3"),
                "low and high are",
            ),
            WrongAnswer(
                "never declines", _speed_source(declines="False"), "Either spread is enough"
            ),
            WrongAnswer(
                "looks at old only",
                _speed_source(declines="(o3 - o1) / o2 > 0.1"),
                "The IQR of new is",
            ),
            WrongAnswer(
                "declines only if both scatter",
                _speed_source(declines="min((o3 - o1) / o2, (n3 - n1) / n2) > 0.1"),
                "The IQR of old is",
            ),
            WrongAnswer(
                "standard deviation",
                _speed_source(declines="max(np.std(old) / o2, np.std(new) / n2) > 0.1"),
                "does one outlier make your spread",
            ),
            WrongAnswer(
                "ratio alone",
                "def speedup(old, new):\n    return np.median(old) / np.median(new)\n",
                "expected three numbers, (ratio, low, high), got float64",
            ),
            WrongAnswer(
                "a pair",
                "def speedup(old, new):\n    return np.median(old), np.median(new)\n",
                "got 2 values",
            ),
        ),
    ),
    "22.4": Exercise(
        title="Compute a crossover",
        minutes=4,
        task="Method 1 takes `a1 + b1·n` seconds for size n, method 2 `a2 + b2·n`. Return the size "
        "above 0 at which both take equally long, or None if there is no such single size.",
        stub="def crossover(a1, b1, a2, b2):\n"
        '    """Return the size at which two methods take equally long, or None."""\n    ...\n',
        answer="crossover",
        test=test_crossover,
        hints=(
            "Set the two times equal and solve for n. When has that no solution above 0?",
            "Try a1 = 1, b1 = 1, a2 = 2, b2 = 3: the second method is slower at every size.",
            "if b1 == b2: return None",
        ),
        solution=_CROSS.format(
            "if b1 == b2:\n        return None\n    n = (a2 - a1) / (b1 - b2)\n"
            "    return n if n > 0 else None"
        ),
        wrong=(
            WrongAnswer(
                "negative sizes",
                _CROSS.format("return None if b1 == b2 else (a2 - a1) / (b1 - b2)"),
                "meet at a size below 0",
            ),
            WrongAnswer(
                "divides by zero",
                _CROSS.format("n = (a2 - a1) / (b1 - b2)\n    return n if n > 0 else None"),
                "you divide by their difference",
            ),
            WrongAnswer(
                "sign swapped",
                _CROSS.format("return None if b1 == b2 else (a1 - a2) / (b1 - b2)"),
                "The sign is swapped",
            ),
            WrongAnswer(
                "without the costs of a call",
                _CROSS.format("return None if b1 == b2 else b1 / b2"),
                "Both a and b count",
            ),
            WrongAnswer(
                "zero is a size",
                _CROSS.format(
                    "if b1 == b2:\n        return None\n    n = (a2 - a1) / (b1 - b2)\n"
                    "    return n if n >= 0 else None"
                ),
                "They meet at 0 alone",
            ),
            WrongAnswer(
                "infinity",
                _CROSS.format(
                    "n = (a2 - a1) / (b1 - b2) if b1 != b2 else float('inf')\n"
                    "    return n if n > 0 else None"
                ),
                "Lines of one slope never meet",
            ),
            WrongAnswer(
                "no return", _CROSS.format("n = (a2 - a1) / (b1 - b2)"), "Is a return missing"
            ),
        ),
    ),
    "22.5": Exercise(
        title="Log the loss without waiting at each step",
        minutes=6,
        task="`step` trains on a batch and returns its loss, a tensor on the device. This loop waits "
        "at every step. Repair it: the same mean as a float, at most one wait in 50 steps, and no "
        "graph kept.",
        stub=_MEAN_STUB,
        answer="mean_loss",
        test=test_mean_loss,
        hints=(
            "A sum of tensors is a tensor. Nothing has to leave the device before the end.",
            "item(), float(), cpu(), tolist() and print all wait. Adding does not; it does "
            "keep the graph of what is added.",
            "Start with total = 0.0 and add step(batch).detach().",
        ),
        solution="def mean_loss(step, batches):\n"
        "    total = 0.0\n"
        "    for batch in batches:\n"
        "        total = total + step(batch).detach()\n"
        "    return total.item() / len(batches)\n",
        wrong=(
            WrongAnswer(
                "float for item",
                _MEAN_STUB.replace("step(batch).item()", "float(step(batch))"),
                "by float()",
            ),
            WrongAnswer(
                "to the CPU",
                _MEAN_STUB.replace(".item()", ".detach().cpu()").replace(
                    "total / len", "float(total) / len"
                ),
                "by .cpu()",
            ),
            WrongAnswer(
                "keeps the graphs",
                _MEAN_STUB.replace(
                    "total += step(batch).item()", "total = total + step(batch)"
                ).replace("total / len", "total.item() / len"),
                "each loss you add keeps its graph",
            ),
            WrongAnswer(
                "a list of losses",
                "def mean_loss(step, batches):\n"
                "    losses = [step(batch) for batch in batches]\n"
                "    return torch.stack(losses).mean().item()\n",
                "each loss you add keeps its graph",
            ),
            *(
                WrongAnswer(
                    f"{maker} of a list",
                    "def mean_loss(step, batches):\n"
                    "    losses = [step(batch).detach() for batch in batches]\n"
                    f"    return torch.{maker}(losses).mean().item()\n",
                    f"{maker}() of a list",
                )
                for maker in ("tensor", "as_tensor")
            ),
            WrongAnswer(
                "last loss",
                "def mean_loss(step, batches):\n"
                "    for batch in batches:\n        loss = step(batch).detach()\n"
                "    return loss.item()\n",
                "That is the last loss",
            ),
            WrongAnswer(
                "last window lost",
                "def mean_loss(step, batches):\n"
                "    total, window = 0.0, 0.0\n"
                "    for n, batch in enumerate(batches, 1):\n"
                "        window = window + step(batch).detach()\n"
                "        if n % 50 == 0:\n"
                "            total, window = total + window.item(), 0.0\n"
                "    return total / len(batches)\n",
                "a window that is not full counts too",
            ),
            WrongAnswer(
                "logs every fiftieth",
                "def mean_loss(step, batches):\n"
                "    kept = [0.0]\n"
                "    for n, batch in enumerate(batches):\n"
                "        loss = step(batch).detach()\n"
                "        if n % 50 == 0:\n            kept.append(loss)\n"
                "    return (sum(kept) / (len(kept) - 1)).item()\n",
                "The mean of 230 losses is",
            ),
            WrongAnswer(
                "returns a tensor",
                _MEAN_STUB.replace("step(batch).item()", "step(batch).detach()"),
                "Expected the mean as a float, got Tensor",
            ),
            WrongAnswer(
                "fewer steps",
                "def mean_loss(step, batches):\n"
                "    losses = [step(batch).detach() for batch in batches[::2]]\n"
                "    return torch.stack(losses).mean().item()\n",
                "step was called 115 times",
            ),
        ),
    ),
}
