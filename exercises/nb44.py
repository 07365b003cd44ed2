"""Ask and check what 44_accumulate_gradients teaches."""

import copy
import math
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from exercises._answers import edited
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer
from helpers.memory import track_memory

PREDICTIONS = {
    "44.p1": Number(
        question="How many times as long as the full batch's gradient is the accumulated one?",
        unit="times",
        notes=(
            (0, 0.9, "Nothing divides: backward() adds, and each loss is a mean of its own."),
            (
                0.9,
                1.1,
                "backward() adds, and each of the four losses is already a mean over its part. Four "
                "means add up to four times the mean.",
            ),
            (1.1, 3, "That is how noise adds up. These parts are added with their common part."),
            (3, 5, "Four means, added: right."),
            (5, float("inf"), "Samples do not count here: each loss has divided by its own."),
        ),
    ),
    "44.p2": Choice(
        question="The division by k = 4 is forgotten. Which optimizer still learns?",
        options={
            "neither": "A gradient four times as long still points the same way. Adam divides by "
            "the gradient's own size.",
            "both": "A constant is no detail for SGD: it multiplies the learning rate.",
            "Adam alone": "Right: Adam divides the factor out again, and SGD steps four times as "
            "far.",
            "SGD alone": "Adam adapts to the scale that it sees, and any scale will do. SGD steps "
            "four times as far.",
        },
    ),
    "44.p3": Number(
        question="After one epoch, how many samples had no part in any step?",
        unit="samples",
        notes=(
            (0, 1, "The loop ends before a step is due: the ninth micro-batch waits in .grad."),
            (1, 8, "Nine micro-batches, two steps of four: the ninth is left over."),
            (8, 38, "Only the ninth micro-batch is left over, and it is short."),
            (38, float("inf"), "There are two steps of four micro-batches each."),
        ),
    ),
    "44.p4": Number(
        question="How far is the accumulated gradient from the full batch's?",
        unit="%",
        notes=(
            (
                0,
                1,
                "Each mean is right. Their average is not: a token of a short text counts more.",
            ),
            (1, 20, "That is how little the loss moves. The gradient is not so lucky."),
            (20, 90, "More: a text of 2 tokens weighs as much as one of 32."),
            (90, 180, "That is the order: the error is as long as the gradient itself."),
            (180, float("inf"), "Not that far, though the error is as long as the gradient."),
        ),
    ),
    "44.p5": Choice(
        question="BatchNorm, four parts of 16, divided correctly. How far off is the gradient?",
        options={
            "not at all": "The weights are right. But each sample was normalized with the "
            "mean and the variance of its own part.",
            "about 1 %": "16 samples estimate 64 coarsely, and every layer adds to it.",
            "more than 10 %": "Right: each part has its own mean and variance, so the loss "
            "is another function.",
        },
    ),
    "44.p6": Number(
        question="From which batch on do two parts need fewer bytes than one?",
        unit="samples",
        notes=(
            (0, 17, "At 16 two parts need more: that was the question above."),
            (17, 90, "Close: activations must outweigh one set of gradients."),
            (90, 200, "You weighed the activations against one set of gradients."),
            (200, float("inf"), "Earlier: one set of gradients is all that they must outweigh."),
        ),
    ),
}

# A share may be a float32 tensor (4e-8 off), and clip_grad_norm_ adds 1e-6 to the norm that it
# divides by, who clips by hand does not (1e-5 off); each fault is above 1e-3.
TOLERANCE = 1e-4


def _kind(value):
    """Name the type of what came back."""
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


def _gradient(model):
    return torch.cat([p.grad.detach().flatten() for p in model.parameters()])


def _distance(one, other):
    return float((one - other).norm() / other.norm())


def _near(one, other):
    return _distance(one, other) < TOLERANCE


def _named(gradient, candidates, otherwise):
    """Return the sentence of the first candidate that equals the gradient."""
    for candidate, sentence in candidates:
        if candidate is not None and candidate.norm() > 0 and _near(gradient, candidate):
            return sentence
    return otherwise


def _off(gradient, full):
    return f"The gradient is {100 * _distance(gradient, full):.3g} % off."


# --- 44.1 -------------------------------------------------------------------------------


def _small_net():
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()


def _gradient_of(model, loss_of):
    """Return the gradient of one loss by autograd.grad, which leaves .grad alone."""
    found = torch.autograd.grad(loss_of(), list(model.parameters()))
    return torch.cat([g.flatten() for g in found])


class _OpenGraphs:
    """Count the outputs of a model that backward has not reached yet."""

    def __init__(self):
        self.now = self.most = 0

    def __call__(self, module, inputs, output):
        self.now += 1
        self.most = max(self.most, self.now)
        if output.requires_grad:
            output.register_hook(self._close)

    def _close(self, gradient):
        self.now -= 1


def test_accumulate(answer, call):
    sizes = [(12, 4), (10, 4), (6, 9), (5, 1), (int(np.random.randint(20, 40)), 7)]
    with torch.enable_grad():
        for samples, micro_batch in sizes:
            _look_at_accumulated(answer, call, samples, micro_batch)


def _look_at_accumulated(answer, call, samples, micro_batch):
    model, seen, open_graphs = _small_net(), [], _OpenGraphs()
    x, y = torch.randn(samples, 5).double(), torch.randint(3, (samples,))
    means = [
        _gradient_of(model, lambda a=a, b=b: F.cross_entropy(model(a), b))
        for a, b in zip(x.split(micro_batch), y.split(micro_batch), strict=True)
    ]
    full = _gradient_of(model, lambda: F.cross_entropy(model(x), y))
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    stale = _gradient(model)
    model.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    model.register_forward_hook(open_graphs)
    call(answer, model, F.cross_entropy, x, y, micro_batch)
    case = f"{samples} samples, micro_batch {micro_batch}"
    if not seen:
        raise Wrong(f"{case}: the model was not called. Run it on one micro-batch after another.")
    if max(seen) > micro_batch:
        raise Wrong(
            f"{case}: the model saw {max(seen)} samples at once. Split the batch: that is what "
            "spares memory."
        )
    if open_graphs.most > 1:
        raise Wrong(
            f"{case}: {open_graphs.most} graphs were alive at once, with all their activations. "
            "Call backward() on each part before the next one runs."
        )
    if any(p.grad is None for p in model.parameters()):
        raise Wrong(f"{case}: .grad is None. Leave the sum there: clear it before the loop only.")
    got = _gradient(model)
    if not _near(got, full):
        raise Wrong(f"{case}: {_why_accumulated(got, full, stale, means, samples, micro_batch)}")


def _why_accumulated(got, full, stale, means, samples, micro_batch):
    parts = [min(micro_batch, samples - i) for i in range(0, samples, micro_batch)]
    weighted = [n / samples * g for n, g in zip(parts, means, strict=True)]
    rest = samples % micro_batch
    whole = samples - rest
    dropped = sum(weighted[: len(weighted) - (rest > 0)])
    last = means[-1] * (got.norm() / means[-1].norm())
    drop = (
        f"{rest} samples are unused: the last micro-batch is short, and it counts."
        if rest
        else "A micro-batch is unused."
    )
    candidates = [
        (stale, "That is the gradient from before: call backward() on each micro-batch."),
        (full + stale, "The gradient from before is in the sum: backward() adds to what it finds."),
        (
            sum(means),
            f"{len(parts)} means were added: divide, or the gradient is {len(parts)} times too "
            "long.",
        ),
        (samples * full, f"That is the sum over samples: divide by all {samples}."),
        (
            sum(means) / len(means),
            f"{_off(got, full)} The short micro-batch counts as much as a full one: weight each "
            "mean with its samples, by all samples.",
        ),
        (dropped, drop),
        (dropped * samples / whole if whole else None, drop),
        (last, "Only the last micro-batch is left: clear before the loop, not inside it."),
    ]
    return _named(
        got,
        candidates,
        f"{_off(got, full)} Each micro-batch has the share: its samples / all samples.",
    )


# --- 44.2 -------------------------------------------------------------------------------


def _texts(lengths, longest):
    """Return ids and targets of texts, padded; targets hold -100 there."""
    ids = torch.randint(11, (len(lengths), longest))
    targets = torch.randint(11, (len(lengths), longest))
    for row, n in enumerate(lengths):
        ids[row, n:], targets[row, n:] = 0, -100
    return ids, targets


def _text_model():
    return nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11)).double()


def _token_gradient(model, parts, weigh):
    """Return gradient and value of a weighted sum of the parts' summed losses."""

    def loss():
        total = torch.zeros((), dtype=torch.float64)
        for ids, targets in parts:
            logits = model(ids)
            chosen = targets.clamp(min=0)[..., None]
            each = logits.logsumexp(-1) - logits.gather(-1, chosen)[..., 0]
            total = total + (each * (targets != -100)).sum() * weigh(targets)
        return total

    return _gradient_of(model, loss), loss().item()


def test_accumulate_tokens(answer, call):
    cases = [
        [[9, 9], [2, 1], [5, 9]],
        [[8], [1], [6], [2]],
        [[4, 7], [3, 3], [0, 0]],  # the last part is all padding
    ]
    with torch.enable_grad():
        for lengths in cases:
            _look_at_tokens(answer, call, [_texts(part, 9) for part in lengths])


def _look_at_tokens(answer, call, parts):
    model = _text_model()
    tokens = sum(int((targets != -100).sum()) for _, targets in parts)
    full, loss = _token_gradient(model, parts, lambda _: 1 / tokens)
    value = call(answer, model, parts)
    if any(p.grad is None for p in model.parameters()):
        raise Wrong("A .grad is None: call backward() for each part, and clear nothing after it.")
    got = _gradient(model)
    if not got.isfinite().all() or (isinstance(value, float) and math.isnan(value)):
        raise Wrong(
            "nan: a part holds only padding, and its mean is 0 / 0. Add sums over tokens, and "
            "divide by all tokens."
        )
    if not _near(got, full):
        raise Wrong(_why_tokens(got, full, model, parts))
    if isinstance(value, torch.Tensor):
        raise Wrong("Return the loss as a float, got a tensor: take .item() of it.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"Return the loss as a float, got {_kind(value)}")
    if not math.isclose(value, loss, rel_tol=1e-6):
        raise Wrong(
            f"The gradient is right. The loss per token is {loss:.4f}, got {value:.4f}: weight what "
            "you report as you weight what you differentiate."
        )


def _why_tokens(got, full, model, parts):
    def found(weigh):
        return _token_gradient(model, parts, weigh)[0]

    def count(targets):
        return max(1, int((targets != -100).sum()))

    padded = sum(targets.numel() for _, targets in parts)
    texts = sum(len(targets) for _, targets in parts)
    candidates = [
        (
            found(lambda t: 1 / count(t) / len(parts)),
            f"{_off(got, full)} That is a mean of means: a token of a short text counts more than "
            "one of a long text.",
        ),
        (found(lambda t: 1 / padded), "Padding was counted: divide by targets that are not -100."),
        (found(lambda t: 1 / texts), "Divide by tokens, not by texts."),
        (found(lambda t: 1.0), "That is the sum over tokens: divide by all of them."),
        (found(lambda t: 1 / count(t)), "The parts' means were added: nothing divides them."),
        (
            found(lambda t: 1 / count(parts[-1][1])),
            "Divided by the tokens of one part: count those of all parts first.",
        ),
    ]
    return _named(
        got, candidates, f"{_off(got, full)} Each token has the same share: 1 / all tokens."
    )


# --- 44.3 -------------------------------------------------------------------------------


class _Recorder(torch.optim.SGD):
    """Keep the gradient and the learning rate of each step."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)
        self.seen = []

    def step(self, closure=None):
        """Keep what is there, then step."""
        group = self.param_groups[0]
        grads = [None if p.grad is None else p.grad.clone() for p in group["params"]]
        self.seen.append((grads, group["lr"]))
        return super().step(closure)


def _epoch_data(sizes):
    return [(torch.randn(n, 5).double(), torch.randint(3, (n,))) for n in sizes]


def _clipped(gradient, limit):
    return gradient * min(1.0, limit / float(gradient.norm() + 1e-6))


def test_train_epoch(answer, call):
    cases = [([4] * 8, 4, 1e9), ([4] * 8, 4, 0.05), ([4] * 5 + [3], 4, 1e9), ([6, 6, 2], 2, 0.1)]
    with torch.enable_grad():
        for sizes, k, limit in cases:
            _look_at_epoch(answer, call, sizes, k, limit)


def _look_at_epoch(answer, call, sizes, k, limit):
    model, parts = _small_net(), _epoch_data(sizes)
    twin = copy.deepcopy(model)
    optimizer = _Recorder(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    batches = [parts[i : i + k] for i in range(0, len(parts), k)]
    case = f"{len(parts)} micro-batches of {sizes} samples, k = {k}"
    for stale in (False, True):  # the second epoch may find what the first one left
        optimizer.seen.clear()
        first = optimizer.param_groups[0]["lr"]
        call(answer, model, optimizer, scheduler, list(parts), k, limit)
        _look_at_steps(optimizer.seen, batches, case)
        for batch, (grads, rate) in zip(batches, optimizer.seen, strict=True):
            if stale and not _is_step(grads, batch, twin, limit):
                raise Wrong(
                    f"{case}: what the first epoch left in .grad has entered the second one. Clear "
                    "it after the last step too, or before the first part."
                )
            _look_at_one_step(grads, batch, twin, (k, limit), case)
            _reference_step(twin, batch, limit, rate)
        _look_at_rates([rate for _, rate in optimizer.seen], optimizer, first, case)


def _look_at_steps(seen, batches, case):
    if len(seen) > len(batches):
        raise Wrong(
            f"{case}: {len(seen)} steps for {len(batches)} batches. Step once when a batch is "
            "complete, not for each micro-batch."
        )
    if len(seen) < len(batches):
        raise Wrong(
            f"{case}: {len(seen)} steps for {len(batches)} batches. The last batch is short, and "
            "it needs its step too."
        )


def _full_gradient(model, batch):
    x, y = (torch.cat(column) for column in zip(*batch, strict=True))
    return _gradient_of(model, lambda: F.cross_entropy(model(x), y))


def _reference_step(model, batch, limit, rate):
    step = rate * _clipped(_full_gradient(model, batch), limit)
    vector = nn.utils.parameters_to_vector(model.parameters()).detach()
    with torch.no_grad():
        nn.utils.vector_to_parameters(vector - step, model.parameters())


def _look_at_one_step(grads, batch, twin, k_and_limit, case):
    k, limit = k_and_limit
    if any(g is None for g in grads) or not any(g.any() for g in grads):
        raise Wrong(f"{case}: the step saw no gradient. Clear .grad after the step, not before it.")
    got = torch.cat([g.flatten() for g in grads])
    full = _full_gradient(twin, batch)
    if not _near(got, _clipped(full, limit)):
        raise Wrong(f"{case}, clipped at {limit:g}: {_why_step(got, batch, twin, k, limit)}")


def _is_step(grads, batch, twin, limit):
    got = torch.cat([g.flatten() for g in grads])
    return _near(got, _clipped(_full_gradient(twin, batch), limit))


def _why_step(got, batch, twin, k, limit):
    full = _full_gradient(twin, batch)
    means = [_full_gradient(twin, [part]) for part in batch]
    samples = sum(len(y) for _, y in batch)
    shares = [len(y) / samples for _, y in batch]
    after = before = torch.zeros_like(full)
    for share, mean in zip(shares, means, strict=True):
        after = _clipped(after + share * mean, limit)
        before = _clipped(before, limit) + share * mean
    candidates = [
        (
            sum(means),
            f"{len(batch)} means were added, none divided: SGD steps {len(batch)} times as far.",
        ),
        (
            _clipped(sum(means) / len(means), limit),
            f"{_off(got, full)} The short micro-batch counts as much as a full one: weight by "
            "samples.",
        ),
        (
            _clipped(sum(means) / k, limit),
            f"{_off(got, full)} The last batch has fewer than k parts: divide by what it has.",
        ),
        (full, "The gradient was not clipped."),
        (after, "Clipping a part is not clipping the sum: clip once, before the step."),
        (before, "Clipped before the last backward: clip when the sum is complete."),
        (
            sum(s * _clipped(m, limit) for s, m in zip(shares, means, strict=True)),
            "Clipping a part is not clipping the sum: clip once, before the step.",
        ),
    ]
    return _named(
        got,
        candidates,
        f"{_off(got, _clipped(full, limit))} Each step needs its own batch alone, weighted by "
        "samples, and clipped once.",
    )


def _look_at_rates(rates, optimizer, first, case):
    got = [*rates, optimizer.param_groups[0]["lr"]]
    wanted = [first * 0.5**step for step in range(len(got))]
    if np.allclose(got, wanted):
        return
    if got[-1] > wanted[-1]:
        raise Wrong(
            f"{case}: the learning rate ends at {got[-1]:g}, expected {wanted[-1]:g}. Call "
            "scheduler.step() once for each step of the optimizer."
        )
    if np.isclose(got[-1], wanted[-1]):
        raise Wrong(
            f"{case}: the learning rates were {got}, expected {wanted}. The scheduler moves after "
            "the optimizer's step."
        )
    raise Wrong(
        f"{case}: the learning rate ends at {got[-1]:g}, expected {wanted[-1]:g}: it falls too "
        "fast. The scheduler counts steps of the optimizer, not micro-batches."
    )


# --- 44.4 -------------------------------------------------------------------------------

_WORDS = ("more", "fewer", "equal")
_CASES = {
    "batch 16, width 256, k = 2": (16, 256, 2, "momentum"),
    "batch 1024, width 64, k = 2": (1024, 64, 2, "momentum"),
    "batch 256, width 512, k = 2": (256, 512, 2, "momentum"),
    "batch 256, width 512, k = 8": (256, 512, 8, "momentum"),
    "batch 16, width 256, k = 2, Adam": (16, 256, 2, "Adam"),
}
_MAKE = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "Adam": lambda p: torch.optim.Adam(p, foreach=False),
}
_REASONS = {
    "batch 16, width 256, k = 2": "Activations are few here, and from the second part on the sum "
    "of the gradients lives through forward and backward.",
    "batch 1024, width 64, k = 2": "Activations outweigh the gradients by far, and half of them "
    "are gone.",
    "batch 256, width 512, k = 2": "A set of gradients grows with the square of the width, "
    "activations with the width: a wide net needs a larger batch before two parts pay.",
    "batch 256, width 512, k = 8": "Eight parts keep the same one set of gradients as two, and "
    "fewer activations.",
    "batch 16, width 256, k = 2, Adam": "With Adam and a small batch the peak is in the "
    "optimizer's step, where nothing of the parts is left.",
}


def training_peak(batch, width, k, *, optimizer="momentum", device="cpu"):
    """Count the peak of two training steps of the digits network, each in k equal parts.

    Parameters
    ----------
    batch, width : int
        Samples of one step, and units of each of the two hidden layers.
    k : int
        Parts of a batch; a divisor of `batch`.
    optimizer : {"momentum", "Adam"}
        Neither treats all parameters at once (foreach).
    device : str or torch.device
        Where it runs.

    Returns
    -------
    MemoryPeak
        Of both steps together.

    Examples
    --------
    >>> training_peak(16, 128, 1).total, training_peak(16, 128, 2).total
    (325888, 396032)
    """
    layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(device)
    chosen = _MAKE[optimizer](model.parameters())
    x, y = torch.rand(batch, 64, device=device), torch.zeros(batch, dtype=int, device=device)
    with track_memory(model, chosen, x, y) as peak:
        for _ in range(2):
            chosen.zero_grad()
            for images, labels in zip(x.split(batch // k), y.split(batch // k), strict=True):
                (F.cross_entropy(model(images), labels) / k).backward()
            chosen.step()
    return peak


def test_bytes_needed(answer, call):
    for name, value in answer.items():
        if value not in _WORDS:
            raise Wrong(f'{name!r} must be "more", "fewer" or "equal", got {value!r}.')
    with torch.enable_grad():
        for name, (batch, width, k, optimizer) in _CASES.items():
            one = training_peak(batch, width, 1, optimizer=optimizer).total
            parts = training_peak(batch, width, k, optimizer=optimizer).total
            word = "more" if parts > one else "fewer" if parts < one else "equal"
            if answer[name] != word:
                raise Wrong(
                    f"{name}: {parts:,} bytes, and {one:,} with k = 1, so {word}. {_REASONS[name]}"
                )


# --- the exercises ----------------------------------------------------------------------

_ACCUMULATE = '''def accumulate(model, loss_fn, inputs, targets, micro_batch):
    """Leave the full batch's gradient in .grad."""
    model.zero_grad()
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch)):
        (loss_fn(model(x), y) * len(x) / len(inputs)).backward()
'''

_IMPORT_F = "import torch.nn.functional as F\n\n\n"
_IMPORT_NN = "import torch.nn.functional as F\nfrom torch import nn\n\n\n"
_TOKENS = '''def accumulate_tokens(model, parts):
    """Leave the gradient of the mean loss per token; return that loss."""
    tokens = sum((targets != -100).sum().item() for _, targets in parts)
    total = 0.0
    for ids, targets in parts:
        logits = model(ids).flatten(0, 1)
        summed = F.cross_entropy(logits, targets.flatten(), reduction="sum")
        (summed / tokens).backward()
        total += summed.item() / tokens
    return total
'''

_EPOCH = '''def train_epoch(model, optimizer, scheduler, parts, k, limit):
    """Train on every sample once, k micro-batches a step."""
    for i in range(0, len(parts), k):
        batch = parts[i : i + k]
        samples = sum(len(y) for _, y in batch)
        for x, y in batch:
            (F.cross_entropy(model(x), y) * len(y) / samples).backward()
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
'''


def _bytes_dict(**changed):
    words = dict(zip(_CASES, ("more", "fewer", "more", "fewer", "equal"), strict=True))
    names = dict(zip(("narrow", "large", "wide", "eight", "adam"), _CASES, strict=True))
    words |= {names[key]: word for key, word in changed.items()}
    return "needs = {\n" + "".join(f"    {n!r}: {w!r},\n" for n, w in words.items()) + "}\n"


EXERCISES = {
    "44.1": Exercise(
        title="Accumulate the exact gradient",
        minutes=8,
        task="Leave the gradient of `loss_fn(model(inputs), targets)`, a mean over samples, in "
        "`.grad`, with at most `micro_batch` samples in the model at a time. Any sizes; `.grad` "
        "may hold something old.",
        stub="def accumulate(model, loss_fn, inputs, targets, micro_batch):\n"
        '    """Leave the full batch\'s gradient in .grad."""\n    ...\n',
        answer="accumulate",
        test=test_accumulate,
        hints=(
            "The mean over all is the sum of the parts' means, each with its share of the samples.",
            "10 samples in parts of 4: shares 4/10, 4/10 and 2/10. With 1/3 each, the last two "
            "samples weigh too much.",
            "Begin with model.zero_grad(), then zip inputs.split(micro_batch) with the targets'.",
        ),
        solution=_ACCUMULATE,
        wrong=(),
    ),
    "44.2": Exercise(
        title="Weight by tokens",
        minutes=8,
        task="Each part holds `ids` and `targets`, (texts, time), with -100 where a text is padded. "
        "Repair: the gradient of the mean loss per token over all parts in `.grad` (it is empty "
        "before), that loss returned.",
        stub="def accumulate_tokens(model, parts):\n"
        '    """Leave the gradient of the mean loss per token; return that loss."""\n'
        "    total = 0.0\n"
        "    for ids, targets in parts:\n"
        "        logits = model(ids).flatten(0, 1)\n"
        "        loss = F.cross_entropy(logits, targets.flatten()) / len(parts)\n"
        "        loss.backward()\n"
        "        total += loss.item()\n"
        "    return total\n",
        answer="accumulate_tokens",
        test=test_accumulate_tokens,
        hints=(
            "Every token has the same share, whichever part it came in.",
            "Parts of 8 and 1 tokens: the mean of their means gives the single token eight times "
            "the share of another. A part of padding alone has the mean 0 / 0.",
            "Count first: tokens = sum((targets != -100).sum().item() for _, targets in parts)",
        ),
        solution=_IMPORT_F + _TOKENS,
        wrong=(),
    ),
    "44.3": Exercise(
        title="Repair a loop with four faults",
        minutes=12,
        task="`parts` is a list of micro-batches, sizes may differ. Each `k` of them, and what "
        "remains, are one batch. Every step must equal the step on that whole batch, clipped at "
        "`limit`; the scheduler follows each step.",
        stub="def train_epoch(model, optimizer, scheduler, parts, k, limit):\n"
        '    """Train on every sample once, k micro-batches a step."""\n'
        "    for i, (x, y) in enumerate(parts, 1):\n"
        "        F.cross_entropy(model(x), y).backward()\n"
        "        nn.utils.clip_grad_norm_(model.parameters(), limit)\n"
        "        if i % k == 0:\n"
        "            optimizer.step()\n"
        "            optimizer.zero_grad()\n"
        "        scheduler.step()\n",
        answer="train_epoch",
        test=test_train_epoch,
        hints=(
            "For each line ask: does it belong to a micro-batch or to a batch?",
            "To the micro-batch belongs one line: forward and backward, with its share. 23 samples "
            "in parts of 4, k = 4: batches of 16 and 7.",
            "Begin with for i in range(0, len(parts), k): and batch = parts[i : i + k].",
        ),
        solution=_IMPORT_NN + _EPOCH,
        wrong=(),
    ),
    "44.4": Exercise(
        title="Say when parts need fewer bytes",
        minutes=5,
        task='The digits network, with momentum unless Adam is named. Write "more", "fewer" or '
        '"equal": its peak in `k` parts, compared with one part. The check counts.',
        stub="needs = {\n" + "".join(f'    "{name}": ...,\n' for name in _CASES) + "}\n",
        answer="needs",
        test=test_bytes_needed,
        hints=(
            "From the second part on, one set of gradients lives through forward and backward. "
            "Activations are divided by k.",
            "A set of gradients grows with the square of the width, activations with width times "
            "batch. And a peak can be in the optimizer's step (41).",
            "The first one: more.",
        ),
        solution=_bytes_dict(),
        wrong=(
            WrongAnswer("always fewer", _bytes_dict(narrow="fewer"), "Activations are few here"),
            WrongAnswer("never fewer", _bytes_dict(large="more"), "outweigh the gradients"),
            WrongAnswer("by the batch alone", _bytes_dict(wide="fewer"), "square of the width"),
            WrongAnswer("k does not matter", _bytes_dict(eight="more"), "fewer activations"),
            WrongAnswer("Adam forgotten", _bytes_dict(adam="more"), "in the optimizer's step"),
            WrongAnswer("numbers", _bytes_dict(adam=2), 'must be "more", "fewer" or "equal"'),
            WrongAnswer("a list", _bytes_dict(adam=["more"]), 'must be "more", "fewer" or "equal"'),
        ),
        limit=20.0,
    ),
}


def _edited(id, name, says, *changes):
    return edited(EXERCISES[id], name, says, *changes)


def _body(id, name, body, says):
    head = EXERCISES[id].stub.partition("\n")[0]
    return WrongAnswer(name, f"{head}\n{body}", says)


_SHARE = " * len(x) / len(inputs)"
_LOOP = "    for x, y in zip("
_CLIP = "        nn.utils.clip_grad_norm_(model.parameters(), limit)\n"
_CLIP_PART = "    " + _CLIP
_BACKWARD = "            (F.cross_entropy(model(x), y) * len(y) / samples).backward()\n"
_STEP, _CLEAR = "        optimizer.step()\n", "        optimizer.zero_grad()\n"
_SCHEDULE = "        scheduler.step()\n"
_SUM = "        (summed / tokens).backward()\n"

_WRONG = {
    "44.1": (
        _edited("44.1", "not divided", "3 means were added", (_SHARE, "")),
        _edited("44.1", "divided by parts", "as much as a full one",
                (_SHARE, " / -(-len(inputs) // micro_batch)")),
        _edited("44.1", "only full parts", "2 samples are unused", (_LOOP,
                "    whole = len(inputs) // micro_batch * micro_batch or len(inputs)\n"
                "    inputs, targets = inputs[:whole], targets[:whole]\n" + _LOOP)),
        _edited("44.1", "full parts, by all samples", "2 samples are unused",
                (_LOOP, "    total = len(inputs)\n"
                 "    whole = len(inputs) // micro_batch * micro_batch or len(inputs)\n"
                 "    inputs, targets = inputs[:whole], targets[:whole]\n" + _LOOP),
                ("/ len(inputs))", "/ total)")),
        _edited("44.1", "first part only", "Each micro-batch has the share",
                (".backward()\n", ".backward()\n        break\n")),
        _edited("44.1", "cleared inside", "Only the last micro-batch is left",
                ("    model.zero_grad()\n", ""), ("        (loss", "        model.zero_grad()\n        (loss")),
        _edited("44.1", "not cleared", "The gradient from before is in the sum",
                ("    model.zero_grad()\n", "")),
        _edited("44.1", "cleared at the end", ".grad is None",
                (".backward()\n", ".backward()\n    model.zero_grad()\n")),
        _edited("44.1", "sum over samples", "divide by all 12", (" / len(inputs)", "")),
        _edited("44.1", "share of the part", "Each micro-batch has the share",
                ("len(x) / len(inputs)", "len(x) / micro_batch / 2")),
        _body("44.1", "full batch", "    model.zero_grad()\n"
              "    loss_fn(model(inputs), targets).backward()\n", "at once"),
        _edited("44.1", "one backward at the end", "graphs were alive at once",
                ("    model.zero_grad()\n", "    model.zero_grad()\n    total = 0\n"),
                ("        (loss_fn", "        total = total + (loss_fn"),
                (".backward()\n", "\n    total.backward()\n")),
        _body("44.1", "no backward", "    return loss_fn(model(inputs[:1]), targets[:1])\n",
              "call backward() on each"),
        _body("44.1", "nothing", "    return None\n", "the model was not called"),
        _body("44.1", "a list", "    return [inputs]\n", "the model was not called"),
        _body("44.1", "a text", "    return 'done'\n", "the model was not called"),
    ),
    "44.2": (
        WrongAnswer("as it was, renamed", _IMPORT_F + EXERCISES["44.2"].stub.replace("loss", "mean"),
                    "mean of means"),
        _edited("44.2", "padding counted", "Padding was counted",
                ("(targets != -100).sum().item()", "targets.numel()")),
        _edited("44.2", "by texts", "Divide by tokens, not by texts",
                ("(targets != -100).sum().item()", "len(targets)")),
        _edited("44.2", "not divided", "divide by all of them", (_SUM, "        summed.backward()\n")),
        _edited("44.2", "means added", "nothing divides them", (_SUM,
                "        (summed / (targets != -100).sum().clamp(min=1)).backward()\n")),
        _edited("44.2", "tokens of the last part", "tokens of one part", ("    total = 0.0\n",
                "    tokens = (parts[-1][1] != -100).sum().item() or 1\n    total = 0.0\n")),
        _edited("44.2", "weighted means", "its mean is 0 / 0", (', reduction="sum"', ""),
                ("        (summed", "        summed = summed * (targets != -100).sum()\n        (summed")),
        _edited("44.2", "one third", "Each token has the same share", ("(summed / tokens)", "(summed / tokens / 3)")),
        _edited("44.2", "loss of the last part", "weight what you report", ("total +=", "total =")),
        _edited("44.2", "cleared", "clear nothing after it", (_SUM, _SUM + "        model.zero_grad()\n")),
        _edited("44.2", "a tensor", "got a tensor", ("return total", "return torch.tensor(total)")),
        _edited("44.2", "a list", "got list", ("return total", "return [total]")),
        _edited("44.2", "a text", "got str", ("return total", "return str(total)")),
        _edited("44.2", "returns None", "is a return missing?", ("    return total\n", "")),
        _body("44.2", "nothing", "    return 0.0\n", "call backward() for each part"),
    ),
    "44.3": (
        _edited("44.3", "not divided", "4 means were added", (" * len(y) / samples", "")),
        _edited("44.3", "divided twice", "needs its own batch alone",
                (" * len(y) / samples", " / k / 2")),
        _edited("44.3", "divided by k", "fewer than k parts", (" * len(y) / samples", " / k")),
        _edited("44.3", "divided by parts", "weight by samples",
                (" * len(y) / samples", " / len(batch)")),
        _edited("44.3", "clips each sum", "not clipping the sum", (_CLIP, ""),
                (_BACKWARD, _BACKWARD + _CLIP_PART)),
        _edited("44.3", "clips before the last backward", "clip when the sum is complete",
                (_CLIP, ""), (_BACKWARD, "            " + _CLIP.strip() + "\n" + _BACKWARD)),
        _edited("44.3", "not clipped", "was not clipped", (_CLIP, "")),
        _edited("44.3", "step for each part", "not for each micro-batch", (_STEP, ""),
                (_BACKWARD, _BACKWARD + "    " + _STEP)),
        _edited("44.3", "last batch dropped", "it needs its step too",
                ("len(parts), k)", "len(parts) // k * k, k)")),
        _edited("44.3", "cleared before the step", "the step saw no gradient",
                (_STEP + _CLEAR, _CLEAR + _STEP)),
        _edited("44.3", "never cleared", "needs its own batch alone", (_CLEAR, "")),
        _edited("44.3", "not cleared after the last", "has entered the second one", (_CLEAR, ""),
                ("        batch =", "        if i:\n    " + _CLEAR + "        batch =")),
        _edited("44.3", "scheduler for each part", "it falls too fast", (_SCHEDULE, ""),
                (_BACKWARD, _BACKWARD + "    " + _SCHEDULE)),
        _edited("44.3", "scheduler for each epoch", "once for each step",
                (_SCHEDULE, "    scheduler.step()\n")),
        _edited("44.3", "scheduler first", "after the optimizer's step", (_SCHEDULE, ""),
                (_STEP, _SCHEDULE + _STEP)),
        _body("44.3", "nothing", "    return None\n", "0 steps for 2 batches"),
        _body("44.3", "a list", "    return [1.0]\n", "0 steps for 2 batches"),
        _body("44.3", "a text", "    return 'done'\n", "0 steps for 2 batches"),
    ),
}  # fmt: skip

EXERCISES = {id: replace(ex, wrong=_WRONG.get(id, ex.wrong)) for id, ex in EXERCISES.items()}
