"""Ask and check what 41_account_for_memory teaches."""

import functools
import itertools
import random
from dataclasses import replace

import torch
import torch.nn.functional as F

from exercises._answers import edited, returning
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "41.p1": Number(
        question="How many times the bytes of its parameters are alive at the peak of one step?",
        unit="times",
        notes=(
            (0, 2, "You counted the parameters, and perhaps their gradients."),
            (2, 3.5, "The gradients came, the optimizer's memory did not: Adam keeps two numbers."),
            (3.5, 6, "Parameters, gradients and two moments make 4. The batch is not counted yet."),
            (6, 40, "You counted the batch: what the layers keep of it is the larger part."),
            (40, float("inf"), "It is less: of each layer's outputs only one tensor is kept."),
        ),
    ),
    "41.p2": Choice(
        question="Where in the step is the peak?",
        options={
            "forward": "At its end all activations are there. Backward adds to them before it "
            "takes the first one away.",
            "early in backward": "Right: all activations are still there, and the first "
            "temporaries come on top.",
            "late in backward": "By then most activations are gone, and what came instead, the "
            "gradients, is small here.",
            "in the optimizer step": "All gradients are there, and no activation. With a large "
            "batch that is less.",
        },
    ),
    "41.p3": Choice(
        question="Three steps of a fresh network, one after another. Which peak is highest?",
        options={
            "the first": "Warming up fills caches of libraries. Those are no tensors, and no "
            "tensor lives longer for it.",
            "all are equal": "The work is the same. What is alive around it is not: after one "
            "step something is there that was not there before.",
            "second and third, equally": "Right: Adam's moments are born in the first step, and "
            "stay.",
            "the third": "Only a leak grows from step to step.",
        },
    ),
    "41.p4": Number(
        question="How many bytes does each iteration of the training loop with losses.append(loss) "
        "leave alive?",
        unit="bytes",
        notes=(
            (0, 1, "The list holds a tensor, so something stays."),
            (1, 9, "You saw it coming: one number."),
            (9, 10_000, "It is less: only the loss itself, one number."),
            (
                10_000,
                float("inf"),
                "The loss holds its graph, but backward has freed what the graph had saved.",
            ),
        ),
    ),
    "41.p5": Choice(
        question="A function fills 256 MiB and returns. By how much is RSS larger than before?",
        options={
            "0 MiB": "Right: the tensor is gone, and so large a block goes back to the system.",
            "256 MiB": "The tensor died inside the function. A difference of two moments is no "
            "peak.",
            "512 MiB": "Filling in place makes no second tensor, and the first one is gone.",
        },
    ),
    "41.p6": Number(
        question="Llama-2-7B, float32, Adam, one sequence of 2,048 tokens. What is the peak?",
        unit="GiB",
        notes=(
            (0, 35, "That holds the parameters alone: 6.7 billion of 4 bytes."),
            (35, 85, "A part is missing: gradients are one more copy, Adam's moments are two."),
            (85, 115, "Four copies of 6.7 billion numbers. The activations are small beside them."),
            (115, 140, "That is what it is with foreach=True, which Adam chooses on CUDA."),
            (140, float("inf"), "It is less: one sequence keeps few activations."),
        ),
    ),
}


def _kind(value):
    """Name the type of what came back."""
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


def _whole(value, what):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Wrong(f"Return {what} as an int, got {_kind(value)}")
    if value != int(value):
        raise Wrong(f"Return {what} as an int: {value:,} is no whole number.")
    return int(value)


# --- 41.1 -------------------------------------------------------------------------------


def _counted_peak(sizes, batch):
    from helpers.memory import track_memory

    layers = []
    for one, other in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(one, other), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    x, y = torch.randn(batch, sizes[0]), torch.randint(sizes[-1], (batch,))
    for _ in range(2):
        with track_memory(model, optimizer, x, y) as peak:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return peak.total


def test_peak_bytes(answer, call):
    with torch.enable_grad():
        for hidden in (3, 1, 2):
            width = random.randint(16, 48)
            sizes = [random.randint(4, 32), *[width] * hidden, random.randint(2, 8)]
            batch = random.randint(4 * width, 6 * width)
            counted = _counted_peak(sizes, batch)
            got = _whole(call(answer, list(sizes), batch), "the bytes")
            if got != counted:
                raise Wrong(
                    f"sizes {sizes} at batch {batch}: counted {counted:,} bytes, got {got:,}. "
                    f"{_why_peak(sizes, batch, got, counted)}"
                )


def _why_peak(sizes, batch, got, counted):
    pairs = list(itertools.pairwise(sizes))
    parameters = 4 * sum(i * o + o for i, o in pairs)
    last = 4 * (sizes[-2] * sizes[-1] + sizes[-1])
    kept = 4 * batch * sum(sizes[1:-1])
    pair = 8 * batch * sizes[1]
    misses = {
        parameters - last: "At this peak only the last layer's gradient exists: the others come "
        "when the activations go.",
        -last: "Backward has left the last layer: its gradient is there.",
        -pair: "Temporaries are missing: backward holds the gradient of ReLU's output and of its "
        "input at once.",
        -pair // 2: "One temporary is missing: the gradient of ReLU's output lives while that of "
        "its input is made.",
        kept: "Activations are counted twice, before and after ReLU. The output of Linear dies: "
        "ReLU saves its own result.",
        -kept: "What the hidden layers keep for backward is missing.",
        -8 * len(pairs): "You are off by 4 bytes for each parameter tensor: Adam counts the steps "
        "of each.",
        -2 * parameters - 8 * len(pairs): "Adam's state is missing: two moments and a counter.",
        -parameters - 8 * len(pairs): "Adam keeps two moments, not one, and a counter of 4 bytes "
        "for each parameter tensor.",
        -8: "Two numbers of 4 bytes are missing: the loss, and the sum of weights that it saved.",
        -batch * (4 * sizes[0] + 8): "The batch is missing: it is alive throughout the step.",
        -4 * batch: "Targets are int64: 8 bytes each.",
    }
    if abs(4 * got - counted) < 8:
        return "float32 has 4 bytes: these are elements."
    return misses.get(
        got - counted,
        "Add up what is alive when backward is at the last ReLU: parameters, Adam's state, batch, "
        "activations, two temporaries, one layer's gradient.",
    )


# --- 41.2 -------------------------------------------------------------------------------


def test_evaluate(answer, call):
    from helpers.memory import track_memory

    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    rows = (16, 16, 16, 16, 16, 3)
    data = [(torch.randn(n, 8), torch.randint(3, (n,))) for n in rows]
    live = []

    class Stream:
        def __init__(self, peak):
            self.peak, self.asked = peak, 0

        def __iter__(self):
            self.asked += 1
            if self.asked > 1:
                raise Wrong("You went through batches twice: it is read once, from a stream.")
            for pair in data:
                yield pair
                live.append(self.peak.live().total)

    with torch.enable_grad(), track_memory(model, data) as peak:
        got = call(answer, model, Stream(peak))
    if isinstance(got, torch.Tensor):
        raise Wrong("Return a float, got a tensor: it may hold a graph. Take .item() of it.")
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        raise Wrong(f"Return the mean loss as a float, got {_kind(got)}")
    if len(live) < len(rows):
        raise Wrong(f"Use every batch: {len(live)} of {len(rows)} were asked for.")
    grown = (live[4] - live[1]) / 3
    if grown > 0:
        raise Wrong(
            f"{grown:,.0f} bytes stay for each batch. A sum or list of losses still points at "
            "their graphs, and no backward comes to free them. Add numbers, not tensors."
        )
    per_batch = [_reference(model, x, y) for x, y in data]
    losses = [loss for batch in per_batch for loss in batch]
    mean = sum(losses) / len(losses)
    if abs(got - mean) > 1e-4 * (1 + mean):
        raise Wrong(f"The mean loss is {mean:.5f}, got {got:.5f}. {_why_mean(got, per_batch)}")


def _reference(model, x, y):
    with torch.no_grad():
        out = x.double()
        for layer in model:
            out = (
                out @ layer.weight.double().T + layer.bias.double()
                if isinstance(layer, torch.nn.Linear)
                else out.clamp(min=0)
            )
        return (out.logsumexp(1) - out.gather(1, y[:, None])[:, 0]).tolist()


def _why_mean(got, per_batch):
    means = [sum(batch) / len(batch) for batch in per_batch]
    total = sum(map(sum, per_batch))
    if abs(got - sum(means) / len(means)) < 1e-4:
        return (
            "That is the mean of the batch means: the short last batch counts as much as a full "
            "one. Weight each mean with its samples."
        )
    if abs(got - total) < 1e-3:
        return "That is the sum: divide by the number of samples."
    if abs(got - sum(means)) < 1e-3:
        return "That is the sum of the batch means: weight them, and divide by the samples."
    return "Add loss times samples, batch by batch, and divide by all samples at the end."


# --- 41.3 -------------------------------------------------------------------------------


class _Counter:
    """Count calls, and the bytes of a batch as the largest of straight lines."""

    def __init__(self, lines, most=8):
        self.lines, self.most, self.calls = lines, most, 0

    def total(self, batch):
        return max(base + slope * batch for base, slope in self.lines)

    def __call__(self, batch):
        self.calls += 1
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise Wrong(f"count takes a batch of at least 1 as an int, got {batch!r}.")
        return self.total(batch)


# The network of the notebook: its optimizer step, and its backward pass, at batch b.
_NETWORK = ((6_916_280, 264), (3_633_344, 8_456))


def _best(counter, budget):
    low, high = 0, 1
    while counter.total(high) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if counter.total(middle) <= budget else (low, middle)
    return low


def test_largest_batch(answer, call):
    cases = [(_NETWORK, 32 * 2**20, "the network here, 32 MiB")]
    for _ in range(20):
        lines = [(random.randint(3_000, 9_000), random.randint(1, 9))]
        for _ in range(2):
            base, slope = lines[-1]
            lines.append((random.randint(base // 3, base), slope + random.randint(5, 90)))
        cases.append((lines, random.randint(15_000, 200_000), f"lines {lines}"))
    cases.append((((5_000, 10),), 4_000, "a budget below one sample"))
    cases.append((((5_000, 10),), 5_010, "a budget of exactly one sample"))
    for lines, budget, name in cases:
        counter = _Counter(lines)
        got = _whole(call(answer, counter, budget), "the batch")
        best = _best(counter, budget)
        if got != best:
            raise Wrong(
                f"{name}: the largest batch within {budget:,} bytes is {best:,}, got {got:,}. "
                f"{_why_batch(counter, budget, got, best)}"
            )
        if counter.calls > counter.most:
            raise Wrong(
                f"Right, but with {counter.calls} counts: each takes seconds for a large model. "
                f"Use at most {counter.most}: lines tell where to look."
            )


def _why_batch(counter, budget, got, best):
    if best == 0:
        return "Nothing fits: return 0."
    if got == best + 1:
        return "One sample too many: round down."
    if got == budget // counter.total(1):
        return "Proportional to one count: a constant part, the parameters, does not scale."
    if got > best:
        return (
            f"At {got:,} the count is {counter.total(got):,}. Two small counts lie on a flat "
            "line: the peak was in another part of the step. Step down from there."
        )
    return "That fits, and more would fit too."


# --- 41.4 -------------------------------------------------------------------------------

_CAUSES = ("one tensor", "fragmentation", "other process", "too much alive")
_GIB = 2**30


def _message(cause):
    """Return numbers of which only one cause can be read, in bytes."""
    from helpers.oom import OutOfMemory

    def some(low, high):
        return int(random.uniform(low, high) * _GIB)

    capacity, context = 16 * _GIB, _GIB // 2
    tried, free, cached, others = some(2, 3), some(0.1, 0.8), some(0.05, 0.4), some(0, 0.5)
    if cause == "one tensor":  # neither what others hold nor what lies idle would be enough
        tried, cached, others = capacity + some(1, 9), some(0.1, 5), some(0, 8)
    elif cause == "fragmentation":
        cached = some(4, 6)
    elif cause == "other process":
        others = some(4, 8)
    allocated = capacity - free - cached - others - context
    return OutOfMemory(tried, capacity, free, capacity - free - others, allocated, cached)


def test_diagnose(answer, call):
    for cause in _CAUSES * 4:
        message = _message(cause)
        got = call(answer, message)
        if not isinstance(got, str):
            raise Wrong(f"Return one of four texts, got {_kind(got)}")
        if got not in _CAUSES:
            raise Wrong(f"Return one of {', '.join(_CAUSES)}; got {got[:40]!r}.")
        if got != cause:
            raise Wrong(_why_cause(message, cause, got))


def _why_cause(m, cause, got):
    tried, cached = m.tried / _GIB, m.cached / _GIB
    if cause == "one tensor":
        return (
            f"{tried:.1f} GiB were asked for at once, on a card of {m.capacity / _GIB:.0f} GiB: "
            "one tensor is larger than the card, whatever else is freed."
        )
    if cause == "fragmentation":
        return (
            f"{cached:.1f} GiB are reserved and in no tensor, and {tried:.1f} GiB were asked "
            "for: there is enough, in pieces. That is fragmentation."
        )
    if cause == "other process":
        return (
            f"Capacity less free less this process leaves {m.others / _GIB:.1f} GiB: another "
            "process holds them, and they would be enough."
        )
    if got == "fragmentation":
        return (
            f"Only {cached:.2f} GiB are reserved and in no tensor: giving them back does not "
            "make room. Too much is alive."
        )
    return (
        f"Others hold {m.others / _GIB:.2f} GiB, too little to make room, and the tensor would fit "
        "on the card: too much is alive."
    )


# --- 41.5 -------------------------------------------------------------------------------


def test_peak_of_layers(answer, call):
    for layers, batch in ((7, 4), (12, 3)):
        asked = []

        def count(number, *, batch=batch, asked=asked):
            asked.append(number)
            if number not in (1, 2, 3):
                raise Wrong(
                    f"count({number}) builds {number} layers: for a large model that takes "
                    "memory or minutes. Ask for 2 and 3."
                )
            return _layers_peak(number, batch)

        got = _whole(call(answer, count, layers), "the bytes")
        truth = _layers_peak(layers, batch)
        if got != truth:
            two, three = (_layers_peak(n, batch) for n in (2, 3))
            raise Wrong(
                f"{layers} layers: counted {truth:,} bytes, got {got:,}. "
                f"{_why_layers(got - truth, two, three, asked)}"
            )


@functools.cache
def _layers_peak(layers, batch):
    from helpers import sizing

    shape = sizing.Shape(layers, 32, 4, 500, 128, positions=16)
    with torch.enable_grad():
        return sizing.count(shape, batch, length=16).total


def _why_layers(error, two, three, asked):
    if len(set(asked)) < 2:
        return (
            "One count cannot tell layers from ends: embedding and logits do not repeat. Take the "
            "difference of two counts."
        )
    if abs(error) == three - two:
        return "You are off by one layer: count(2) already holds two."
    return (
        "Each layer adds count(3) - count(2); start from count(2) and add the layers that are "
        "missing."
    )


EXERCISES = {
    "41.1": Exercise(
        title="Write down the peak of a network",
        minutes=12,
        task="`sizes` are the widths of a network as above, inputs first, classes last; the hidden "
        "ones are equal. Return the peak in bytes of a step with Adam, from the second step on. "
        "The batch is at least four times the hidden width, so backward is the peak. The check "
        "counts to the byte.",
        stub="def peak_bytes(sizes, batch):\n"
        '    """Return the peak of one step, in bytes."""\n'
        "    ...\n",
        answer="peak_bytes",
        test=test_peak_bytes,
        hints=(
            "At the last ReLU everything that forward kept is still alive.",
            "sizes [64, 512, 512, 10] at batch 2,048 give 20,951,232. Two of its parts are 8 bytes "
            "for the loss, and 4 for each parameter tensor.",
            "Start with pairs = list(zip(sizes, sizes[1:])) and parameters = 4 * sum(i * o + o for i, o in pairs); Adam keeps 2 * "
            "parameters + 4 * 2 * len(pairs).",
        ),
        solution="def peak_bytes(sizes, batch):\n"
        "    pairs = list(zip(sizes, sizes[1:], strict=False))\n"
        "    parameters = 4 * sum(i * o + o for i, o in pairs)\n"
        "    adam = 2 * parameters + 4 * 2 * len(pairs)\n"
        "    data = batch * (4 * sizes[0] + 8)\n"
        "    kept = 4 * batch * sum(sizes[1:-1]) + 8\n"
        "    temporaries = 2 * 4 * batch * sizes[-2]\n"
        "    last = 4 * (sizes[-2] * sizes[-1] + sizes[-1])\n"
        "    return parameters + adam + data + kept + temporaries + last\n",
        wrong=(),
    ),
    "41.2": Exercise(
        title="Find a tensor that lives too long",
        minutes=5,
        task="`evaluate` shall return the mean loss per sample as a float. Its live bytes grow "
        "with every batch, and the last batch, which is shorter, counts too much. Repair it.",
        stub="def evaluate(model, batches):\n"
        "    total, count = 0.0, 0\n"
        "    for x, y in batches:\n"
        "        total = total + torch.nn.functional.cross_entropy(model(x), y)\n"
        "        count += 1\n"
        "    return total / count\n",
        answer="evaluate",
        test=test_evaluate,
        hints=(
            "After each batch as many bytes must be alive as before it.",
            "`del loss` does not help: the sum still points at the graph. A Python number points "
            "at nothing.",
            "Start the body with total += torch.nn.functional.cross_entropy(model(x), y).item() * len(y).",
        ),
        solution="@torch.no_grad()\n"
        "def evaluate(model, batches):\n"
        "    total, count = 0.0, 0\n"
        "    for x, y in batches:\n"
        "        total += torch.nn.functional.cross_entropy(model(x), y).item() * len(y)\n"
        "        count += len(y)\n"
        "    return total / count\n",
        wrong=(),
    ),
    "41.3": Exercise(
        title="Find the largest batch for a budget",
        minutes=12,
        task="`count(batch)` returns the peak in bytes: the largest of a few straight lines in the "
        "batch, each steeper than the one before. Return the largest batch within `budget`, or 0. "
        "You have 8 counts.",
        stub="def largest_batch(count, budget):\n"
        '    """Return the largest batch that fits, or 0."""\n'
        "    ...\n",
        answer="largest_batch",
        test=test_largest_batch,
        hints=(
            "A line through two points of such a curve lies below the curve everywhere beyond "
            "them: following it you overshoot, never undershoot.",
            "For the network here and 32 MiB the line through batches 1 and 2 leads far beyond "
            "100,000. The slope there is another one.",
            "From a batch b that is too large step down by the excess over the budget, divided by "
            "count(b) - count(b - 1), rounded up; repeat.",
        ),
        solution="def largest_batch(count, budget):\n"
        "    first = count(1)\n"
        "    if first > budget:\n"
        "        return 0\n"
        "    slope = max(count(2) - first, 1)\n"
        "    batch = 1 + (budget - first) // slope\n"
        "    while batch > 1 and (peak := count(batch)) > budget:\n"
        "        slope = peak - count(batch - 1)\n"
        "        batch -= -((budget - peak) // slope)\n"
        "    return batch\n",
        wrong=(),
    ),
    "41.4": Exercise(
        title="Read an out-of-memory message",
        minutes=8,
        task="`m` holds the numbers of a message, as `oom.read` returns them. Name what stands in "
        'the way: "one tensor" (larger than the card), "fragmentation" (enough is reserved and '
        'unused), "other process" (what others hold would be enough), else "too much alive".',
        stub="def diagnose(m):\n"
        "    # bytes: m.tried, m.capacity, m.free, m.process, m.allocated, m.cached, m.others\n"
        "    ...\n",
        answer="diagnose",
        test=test_diagnose,
        hints=(
            "Ask in the order of the task: each remedy helps only if it makes room for m.tried.",
            "2 GiB asked for, 0.5 free, 5 cached: fragmentation. With 0.1 cached it is not.",
            'Start with if m.tried > m.capacity: return "one tensor".',
        ),
        solution="def diagnose(m):\n"
        "    if m.tried > m.capacity:\n"
        '        return "one tensor"\n'
        "    if m.free + m.cached >= m.tried:\n"
        '        return "fragmentation"\n'
        "    if m.free + m.others >= m.tried:\n"
        '        return "other process"\n'
        '    return "too much alive"\n',
        wrong=(),
    ),
    "41.5": Exercise(
        title="Size a model that you cannot allocate",
        minutes=6,
        task="`count(n)` returns the peak in bytes of a transformer with `n` equal layers. Return "
        "the peak with `layers` layers, equal to the byte, from the counts of 2 and 3 layers.",
        stub="def peak_of_layers(count, layers):\n"
        '    """Return the peak with this many layers, in bytes."""\n'
        "    ...\n",
        answer="peak_of_layers",
        test=test_peak_of_layers,
        hints=(
            "Embedding and logits are there once, whatever the number of layers.",
            "Twice the layers are less than twice the bytes.",
            "Start with two, three = count(2), count(3); their difference is one layer.",
        ),
        solution="def peak_of_layers(count, layers):\n"
        "    two, three = count(2), count(3)\n"
        "    return two + (layers - 2) * (three - two)\n",
        wrong=(),
    ),
}


def _edited(id, name, old, new, says):
    return edited(EXERCISES[id], name, says, (old, new))


def _returning(id, what, says):
    return returning(EXERCISES[id], what, says)


_WRONG = {
    "41.1": (
        _edited("41.1", "all gradients", "temporaries + last", "temporaries + parameters",
                "only the last layer's gradient"),
        _edited("41.1", "no gradient", "temporaries + last", "temporaries", "has left the last"),
        _edited("41.1", "no temporaries", " + temporaries", "", "gradient of ReLU's output and"),
        _edited("41.1", "one temporary", "2 * 4 * batch", "4 * batch", "One temporary is missing"),
        _edited("41.1", "before and after ReLU", "kept = 4", "kept = 8", "counted twice"),
        _edited("41.1", "no activations", "sum(sizes[1:-1])", "0", "keep for backward is missing"),
        _edited("41.1", "no counters", " + 4 * 2 * len(pairs)", "", "off by 4 bytes"),
        _edited("41.1", "no Adam", " + adam", "", "Adam's state is missing"),
        _edited("41.1", "one moment", "2 * parameters + 4 * 2 * len(pairs)", "parameters",
                "two moments, not one"),
        _edited("41.1", "no loss", " + 8\n", "\n", "the sum of weights"),
        _edited("41.1", "no batch", " + data", "", "The batch is missing"),
        _edited("41.1", "int32 targets", "sizes[0] + 8", "sizes[0] + 4", "Targets are int64"),
        WrongAnswer("elements", EXERCISES["41.1"].solution.replace(
            "return parameters + adam + data + kept + temporaries + last",
            "return (parameters + adam + data + kept + temporaries + last) // 4"),
            "these are elements"),
        WrongAnswer("16 bytes a parameter", "def peak_bytes(sizes, batch):\n"
                    "    return 16 * sum(i * o + o for i, o in zip(sizes, sizes[1:])) + 1\n",
                    "Add up what is alive"),
        WrongAnswer("a fraction", "def peak_bytes(sizes, batch):\n    return 0.5\n",
                    "is no whole number"),
        _returning("41.1", "None", "is a return missing?"),
        _returning("41.1", "[1]", "got list"),
        _returning("41.1", "'1 MiB'", "got str"),
    ),
    "41.2": (
        WrongAnswer("deleted", "def evaluate(model, batches):\n    total, n = 0.0, 0\n"
                    "    for x, y in batches:\n        loss = torch.nn.functional.cross_entropy(model(x), y)\n"
                    "        total = total + loss * len(y)\n        n += len(y)\n        del loss\n"
                    "    return (total / n).item()\n", "still points at their graphs"),
        WrongAnswer("a list", "def evaluate(model, batches):\n    losses = []\n"
                    "    for x, y in batches:\n"
                    "        losses.append(torch.nn.functional.cross_entropy(model(x), y, reduction='none'))\n"
                    "    return torch.cat(losses).mean().item()\n", "still points at their graphs"),
        WrongAnswer("item at the end", "def evaluate(model, batches):\n    total, n = 0.0, 0\n"
                    "    for x, y in batches:\n"
                    "        total = total + torch.nn.functional.cross_entropy(model(x), y, reduction='sum')\n"
                    "        n += len(y)\n    return total.item() / n\n", "Add numbers"),
        WrongAnswer("mean of means", "def evaluate(model, batches):\n"
                    "    losses = [torch.nn.functional.cross_entropy(model(x), y).item() for x, y in batches]\n"
                    "    return sum(losses) / len(losses)\n", "as much as a full"),
        WrongAnswer("a tensor", "def evaluate(model, batches):\n    total, n = 0.0, 0\n"
                    "    for x, y in batches:\n"
                    "        total = total + torch.nn.functional.cross_entropy(model(x), y).detach() * len(y)\n"
                    "        n += len(y)\n    return total / n\n", "Return a float, got a tensor"),
        _edited("41.2", "not divided", "total / count", "total", "That is the sum: divide"),
        WrongAnswer("sum of means", "def evaluate(model, batches):\n"
                    "    return sum(torch.nn.functional.cross_entropy(model(x), y).item() for x, y in batches)\n",
                    "sum of the batch means"),
        WrongAnswer("first batch", "def evaluate(model, batches):\n"
                    "    x, y = next(iter(batches))\n"
                    "    return torch.nn.functional.cross_entropy(model(x), y).item()\n", "Use every batch"),
        WrongAnswer("counted first", "def evaluate(model, batches):\n"
                    "    n, total = sum(len(y) for _, y in batches), 0.0\n"
                    "    for x, y in batches:\n"
                    "        total += torch.nn.functional.cross_entropy(model(x), y).item() * len(y)\n"
                    "    return total / n\n", "twice"),
        _edited("41.2", "scaled twice", "total / count", "total / count / 2", "batch by batch"),
        _returning("41.2", "None", "is a return missing?"),
        _returning("41.2", "[1.0]", "got list"),
        _returning("41.2", "'low'", "got str"),
    ),
    "41.3": (
        WrongAnswer("two small counts", "def largest_batch(count, budget):\n"
                    "    slope = (count(32) - count(1)) / 31\n"
                    "    return int((budget - count(1)) // slope) + 1\n", "lie on a flat line"),
        WrongAnswer("proportional", "def largest_batch(count, budget):\n"
                    "    return budget // count(1)\n", "a constant part"),
        _edited("41.3", "rounded up", "return batch\n", "return batch + 1\n", "round down"),
        _edited("41.3", "1 for nothing", "return 0", "return 1", "Nothing fits: return 0"),
        WrongAnswer("bisection", "def largest_batch(count, budget):\n    low, high = 0, 2**18\n"
                    "    while high - low > 1:\n        middle = (low + high) // 2\n"
                    "        low, high = (middle, high) if count(middle) <= budget else "
                    "(low, middle)\n    return low\n", "each takes seconds"),
        WrongAnswer("powers of two", "def largest_batch(count, budget):\n    batch = 1\n"
                    "    while count(2 * batch) <= budget:\n        batch *= 2\n"
                    "    return batch\n", "more would fit too"),
        WrongAnswer("a fraction of a sample", "def largest_batch(count, budget):\n"
                    "    return count(0.5)\n", "takes a batch of at least 1"),
        WrongAnswer("not rounded", "def largest_batch(count, budget):\n"
                    "    return budget / count(1)\n", "is no whole number"),
        _returning("41.3", "None", "is a return missing?"),
        _returning("41.3", "[3538]", "got list"),
        _returning("41.3", "'3538'", "got str"),
    ),
    "41.4": (
        WrongAnswer("always empty_cache", 'def diagnose(m):\n    if m.tried > m.capacity:\n'
                    '        return "one tensor"\n'
                    '    return "fragmentation"\n', "another process holds them"),
        _edited("41.4", "always a smaller batch", "m.tried > m.capacity", "False",
                "larger than the card"),
        _edited("41.4", "ignores reserved", "m.free + m.cached >= m.tried", "False", "in pieces"),
        _edited("41.4", "ignores others", "m.free + m.others >= m.tried", "False",
                "another process holds them"),
        _edited("41.4", "blames others", "m.free + m.others >= m.tried", "True",
                "too little to make room"),
        _edited("41.4", "anybody else", "m.free + m.others >= m.tried", "m.others > 0",
                "too little to make room"),
        _edited("41.4", "any cache is fragmentation", "m.free + m.cached >= m.tried",
                "m.others < m.tried", "does not make room"),
        _edited("41.4", "another word", '"too much alive"', '"leak"', "Return one of one tensor"),
        _returning("41.4", "None", "is a return missing?"),
        _returning("41.4", "['one tensor']", "got list"),
        _returning("41.4", "m.tried", "got int"),
    ),
    "41.5": (
        WrongAnswer("proportional", "def peak_of_layers(count, layers):\n"
                    "    return count(3) * layers // 3\n", "embedding and logits do not repeat"),
        WrongAnswer("one layer more", "def peak_of_layers(count, layers):\n"
                    "    two, three = count(2), count(3)\n"
                    "    return two + (layers - 1) * (three - two)\n", "off by one layer"),
        WrongAnswer("one layer less", "def peak_of_layers(count, layers):\n"
                    "    two, three = count(2), count(3)\n"
                    "    return three + (layers - 4) * (three - two)\n", "off by one layer"),
        WrongAnswer("ends forgotten", "def peak_of_layers(count, layers):\n"
                    "    return layers * (count(3) - count(2))\n", "start from count(2)"),
        WrongAnswer("all layers", "def peak_of_layers(count, layers):\n"
                    "    return count(layers)\n", "Ask for 2 and 3"),
        WrongAnswer("half a byte", "def peak_of_layers(count, layers):\n    return 0.5\n",
                    "is no whole number"),
        _returning("41.5", "None", "is a return missing?"),
        _returning("41.5", "[1]", "got list"),
        _returning("41.5", "'1'", "got str"),
    ),
}  # fmt: skip

EXERCISES = {id: replace(exercise, wrong=_WRONG[id]) for id, exercise in EXERCISES.items()}
