"""Ask and check what 43_trade_compute_for_memory teaches."""

import copy
import warnings

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer
from helpers.memory import track_memory
from helpers.saved import saved_bytes

PREDICTIONS = {
    "43.p1": Choice(
        question="Layers 1 and 2 of three are checkpointed as the tutorial does it, and the loss "
        "falls for 30 epochs. Which tensors still hold their initial bits?",
        options={
            "none": "The loss fell, and one layer alone can do that: it reads random features.",
            "the last layer": "The last layer is not checkpointed, and its gradient arrives first.",
            "layers 1 and 2": "Right: weights and biases, four tensors of six. Not one bit moved.",
            "all": "Something lowered the loss. Look at the layer outside the checkpoints.",
        },
    ),
    "43.p2": Choice(
        question="Both hidden layers are now checkpointed correctly, each Linear + ReLU by itself. "
        "How much lower is the peak of live bytes in forward and backward?",
        options={
            "two thirds": "You counted every result. Linear does not keep its own, and ReLU keeps "
            "one that the next layer needs anyway.",
            "half": "You counted the result of each Linear. Nobody keeps it: ReLU keeps its own "
            "result, and the next layer needs that one.",
            "not a byte": "Right: what ReLU keeps is the next layer's input, which stays.",
            "it is higher": "A segment keeps its input, and that one was kept before, too.",
        },
    ),
    "43.p3": Number(
        question="A chain of 64 sin. Into how many equal segments do you cut it for the lowest "
        "peak?",
        unit="segments",
        notes=(
            (0, 1.5, "The one segment is computed again whole: 64 insides at once."),
            (1.5, 6, "Long segments: what one holds inside outweighs the borders."),
            (6, 11, "Right: as many borders as insides."),
            (11, 48, "Short segments: the borders outweigh what one holds inside."),
            (48, 1e9, "Every border is kept, and there are 64 of them."),
        ),
    ),
    "43.p4": Choice(
        question="16 blocks of r sin each. Which number of segments has the lowest peak for "
        "r = 1, 4 and 16?",
        options={
            "4, 4, 4": "4 is the root of 16. That was right where one block holds as much inside "
            "as at its border: r = 1.",
            "4, 8, 16": "Right: the larger the inside, the more borders are worth their bytes.",
            "4, 2, 1": "The other way round: a large inside asks for short segments.",
            "16, 16, 16": "A border for every block costs 16 tensors. For r = 1 that is more than "
            "it spares.",
        },
    ),
    "43.p5": Number(
        question="A transformer of 16 layers, one segment for each layer. How much more arithmetic "
        "is one training step?",
        unit="%",
        notes=(
            (0, 10, "Every segment runs forward a second time: that is most of a forward pass."),
            (10, 20, "Close: what is left out is only the last product of each segment."),
            (20, 27, "Right: less than a whole forward pass, and the reason comes next."),
            (27, 45, "One whole extra forward pass is a third: the upper limit. Some is left out."),
            (45, 1e6, "Forward is a third of a step, and only forward is repeated."),
        ),
    ),
    "43.p6": Choice(
        question="A block with BatchNorm is checkpointed with use_reentrant=False. What differs "
        "from the plain run after one backward?",
        options={
            "nothing": "The gradients are equal. They are not all that a forward pass leaves.",
            "the gradients": "They are bit for bit the same: both forward passes saw one batch.",
            "the buffers": "Right: two forward passes are two updates of the running statistics.",
        },
    ),
}


def _kind(value):
    return "None" if value is None else type(value).__name__


# --- 43.1 -------------------------------------------------------------------------------

_KINDS = ("plain", "reentrant", "detached", "frozen", "closed", "checkpointed", "in training")


class _Branches(nn.Module):
    """Add up layers, some of which no gradient reaches, each for its own reason."""

    def __init__(self, kinds):
        super().__init__()
        self.kinds = kinds
        self.layers = nn.ModuleList(nn.Linear(4, 3) for _ in kinds)
        self.norm = nn.BatchNorm1d(3)
        for layer, kind in zip(self.layers, kinds, strict=True):
            layer.requires_grad_(kind != "frozen")
            if kind == "closed":
                nn.init.constant_(layer.bias, -100.0)

    def forward(self, x):
        total = x.new_zeros(len(x), 3)
        for layer, kind in zip(self.layers, self.kinds, strict=True):
            if kind in ("reentrant", "checkpointed") or (kind == "in training" and self.training):
                h = checkpoint(layer, x, use_reentrant=kind != "checkpointed")
            else:
                h = layer(x)
            total = total + (
                h.relu() if kind == "closed" else h.detach() if kind == "detached" else h
            )
        return self.norm(total)


def _branches():
    kinds = [*_KINDS, *np.random.choice(_KINDS, 2)]
    np.random.shuffle(kinds)
    return _Branches([str(kind) for kind in kinds])


def _loss(output):
    return (output - 1).pow(3).mean()


def test_without_gradient(answer, call):
    for _ in range(3):
        model = _branches()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        x = torch.rand(6, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = _run_without_gradient(answer, call, model, x)
        _look_at_listed(got, model)
        for name, value in model.state_dict().items():
            if not torch.equal(value, before[name]):
                raise Wrong(
                    f"{name} of the model has changed. Weight decay and momentum move weights that "
                    "get no gradient, and BatchNorm counts each forward pass: look at a copy, or "
                    "put everything back."
                )
        left = [name for name, p in model.named_parameters() if p.grad is not None]
        if left:
            raise Wrong(
                f"{left[0]}.grad is left behind: the next backward would add to it. Run on a "
                "copy of the model, or set .grad back to None."
            )


def _run_without_gradient(answer, call, model, x):
    try:
        got = call(answer, model, _loss, x)
    except RuntimeError as error:
        if "does not require grad" in str(error) or "not have been used" in str(error):
            raise Wrong(
                "torch.autograd.grad stops at frozen and unreached parameters, the ones you look "
                "for. Call .backward() and read .grad."
            ) from None
        raise
    except (AttributeError, TypeError) as error:
        if "NoneType" not in str(error):
            raise
        raise Wrong(
            "Some .grad is None, and None has no values to look at. That it is None is the finding."
        ) from None
    if not isinstance(got, list | tuple | set):
        raise Wrong(f"Return a list of names, got {_kind(got)}.")
    known = dict(model.named_parameters())
    for name in got:
        if not isinstance(name, str) or name not in known:
            raise Wrong(f"{name!r} is no name in model.named_parameters(): return names only.")
    return set(got)


def _look_at_listed(got, model):
    named = [
        (name, model.kinds[int(name.split(".")[1])] if name.startswith("layers") else "plain")
        for name, _ in model.named_parameters()
    ]
    cut = ("reentrant", "detached", "frozen", "in training")
    for name, kind in named:
        if name in got and kind == "closed":
            raise Wrong(
                f"{name} has a gradient, all zeros. None is not zero: a closed ReLU has zeros, and "
                "the next batch may open it."
            )
        if name in got and kind not in cut:
            raise Wrong(f"{name} does get a gradient. List those whose .grad stays None.")
    missing = [(name, kind) for name, kind in named if kind in cut and name not in got]
    if not missing:
        return
    if all(kind == "frozen" for _, kind in missing):
        raise Wrong(
            f"{missing[0][0]} is frozen and gets no gradient: report what you find. Whether it was "
            "a decision, the reader of the list knows."
        )
    if all(kind == "in training" for _, kind in missing):
        raise Wrong(
            f"{missing[0][0]} gets no gradient when the model trains, and your run found one. Many "
            "models checkpoint in train() only: run in the mode in which the model came."
        )
    name = next(name for name, kind in missing if kind != "frozen")
    raise Wrong(
        f"{name} gets no gradient and is not in your list. Its requires_grad says True, and the "
        "warning comes without a name: after .backward(), look whether .grad is None."
    )


# --- 43.2 -------------------------------------------------------------------------------


def _divisors(blocks):
    return [k for k in range(1, blocks + 1) if blocks % k == 0]


def _nearest(blocks, root):
    return min(_divisors(blocks), key=lambda k: abs(k - root))


def _bytes_at(k, blocks, inside, border):
    return k * border + blocks / k * inside


def sin_chain_peak(blocks, inside, segments, *, size=10_000):
    """Count the peak of a checkpointed chain of sin, in tensors of `size` numbers.

    Parameters
    ----------
    blocks : int
        Blocks in the chain.
    inside : int
        Calls of sin in one block.
    segments : int
        Equal segments; a divisor of `blocks`.
    size : int
        Numbers in one tensor.

    Returns
    -------
    int
        Bytes at the peak of forward and backward by the bytes of one tensor, rounded.

    Examples
    --------
    >>> sin_chain_peak(64, 1, 8)
    18
    """

    def segment(h):
        for _ in range(blocks // segments * inside):
            h = torch.sin(h)
        return h

    x = torch.rand(size, requires_grad=True)
    with track_memory(x) as peak:
        h = x
        for _ in range(segments):
            h = checkpoint(segment, h, use_reentrant=False)
        h.sum().backward()
    return round(peak.total / (4 * size))


def test_best_segments(answer, call):
    cases = [(64, 1, 1), (16, 16, 1), (48, 3, 1), (12, 1, 1), (36, 1, 4), (1, 5, 2)]
    for _ in range(12):
        blocks = int(np.random.choice([12, 16, 24, 30, 36, 64, 96]))
        cases.append((blocks, int(np.random.randint(1, 40)), int(np.random.randint(1, 10))))
    for blocks, inside, border in cases:
        k = call(answer, blocks, inside, border)
        _look_at_segments(k, blocks, inside, border)


def _look_at_segments(k, blocks, inside, border):
    case = f"For blocks={blocks}, inside={inside}, border={border}"
    if isinstance(k, bool) or not isinstance(k, int | float | np.integer | np.floating):
        raise Wrong(f"{case}: return a number of segments, an int, got {_kind(k)}.")
    if k in _divisors(blocks) and not isinstance(k, int | np.integer):
        raise Wrong(f"{case}: return the number as an int, got {k!r}.")
    if not isinstance(k, int | np.integer) or k < 1 or blocks % k:
        raise Wrong(
            f"{case}: {k} segments of equal length do not exist. Compare the divisors of "
            f"{blocks}: {_divisors(blocks)}."
        )
    best = min(_divisors(blocks), key=lambda n: _bytes_at(n, blocks, inside, border))
    mine, lowest = (_bytes_at(n, blocks, inside, border) for n in (k, best))
    if mine <= lowest * (1 + 1e-9):
        return
    why = "Compute k * border + blocks / k * inside for every divisor k, and take the lowest."
    if k == 1:
        why = (
            "One segment keeps the least at the end of the forward pass, and its backward pass "
            "needs everything at once."
        )
    elif k == blocks:
        why = "That keeps a border for every block: too many where a block holds little inside."
    elif k == _nearest(blocks, (blocks * inside / border) ** 0.5):
        why = (
            "The divisor that is nearest to √(blocks · inside / border) need not be the best one: "
            "compare the sums of all."
        )
    elif k == _nearest(blocks, blocks**0.5):
        why = "The root of the number of blocks is right only where inside equals border."
    raise Wrong(f"{case}: {k} segments need {mine:g}, {best} need {lowest:g}. {why}")


# --- 43.3 -------------------------------------------------------------------------------


class _Sin(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class _Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x):
        time, size = x.shape
        qkv = self.qkv(x).view(time, 3, self.heads, size // self.heads)
        q, k, v = qkv.permute(1, 2, 0, 3).unsqueeze(1)  # each (1, heads, time, head_dim)
        h = F.scaled_dot_product_attention(q, k, v)
        return self.out(h[0].transpose(0, 1).reshape(time, size))


_MODULES = {
    "Linear + ReLU": (
        lambda d: nn.Sequential(nn.Linear(d, d), nn.ReLU()),
        "ReLU keeps its own result, and the next layer needs that one anyway.",
    ),
    "Linear + GELU": (
        lambda d: nn.Sequential(nn.Linear(d, d), nn.GELU()),
        "GELU keeps what goes into it, and nobody else needs that.",
    ),
    "MLP of a transformer": (
        lambda d: nn.Sequential(
            nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)
        ),
        "Two tensors four times as wide lie inside, and one more between LayerNorm and Linear.",
    ),
    "one sin": (lambda d: _Sin(), "sin keeps its input, and that is the border."),
    "attention": (
        lambda d: _Attention(d, 4),
        "Queries, keys, values and the result of attention lie inside.",
    ),
}


def spared(module, x, after):
    """Count the bytes kept for backward that checkpointing one module spares.

    Parameters
    ----------
    module : torch.nn.Module
        What becomes a segment.
    x : torch.Tensor
        Its input, which stays alive in either case.
    after : torch.nn.Module
        The layer that reads its result.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> width = nn.Linear(8, 8)
    >>> spared(nn.Sequential(width, nn.ReLU()), torch.ones(4, 8, requires_grad=True), width)
    0
    """
    without = [x, *module.parameters(), *after.parameters()]
    plain = saved_bytes(lambda: after(module(x)), without=without)
    kept = saved_bytes(lambda: after(checkpoint(module, x, use_reentrant=False)), without=without)
    return plain - kept


def test_spares(answer, call):
    for name, value in answer.items():
        if not isinstance(value, bool):
            raise Wrong(f"{name!r} must be True or False, got {value!r}.")
    width = 128
    x = torch.rand(64, width, requires_grad=True)
    for name, (build, why) in _MODULES.items():
        count = spared(build(width), x, nn.Linear(width, width))
        if answer[name] != (count > 0):
            raise Wrong(
                f"{name}: as one segment, 64 rows of width {width}, it spares {count:,} bytes. {why}"
            )


# --- 43.4 -------------------------------------------------------------------------------


class CountingBlock(nn.Module):
    """Run Linear, BatchNorm, ReLU, dropout and Linear, and count the calls in Python.

    Parameters
    ----------
    size : int
        Width of input and output.

    Examples
    --------
    >>> block = CountingBlock(4)
    >>> block(torch.ones(3, 4)).shape, block.calls
    (torch.Size([3, 4]), 1)
    """

    def __init__(self, size):
        super().__init__()
        self.first, self.norm = nn.Linear(size, 2 * size), nn.BatchNorm1d(2 * size)
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(2 * size, size)
        self.calls = 0

    def forward(self, x):
        """Compute the block on x, (batch, size), and count the call."""
        self.calls += 1
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))


def test_run(answer, call):
    for size in (4, 6):
        block = CountingBlock(size)
        x = torch.randn(8, size)
        seed = int(np.random.randint(1_000_000))
        plain, mine = copy.deepcopy(block), copy.deepcopy(block)
        try:
            _look_at_passes(answer, call, (mine, plain), x, seed)
        except Wrong as fault:
            raise _cause(fault, answer, call, block, x, seed) from None
        _look_at_saving(answer, call, block, x)


def _look_at_passes(answer, call, blocks, x, seed):
    mine, plain = blocks
    for _ in range(2):
        torch.manual_seed(seed)
        expected = plain(x)
        expected.pow(2).sum().backward()
        torch.manual_seed(seed)
        got = call(answer, mine, x)
        _look_at_output(got, expected)
        torch.rand(3)  # the generator moves on between the two passes
        _backward(got)
        _look_at_block(mine, plain)


def _cause(fault, answer, call, block, x, seed):
    """Return the fault, or what it comes from: an exception that skips lines after a yield."""
    blocks = copy.deepcopy(block), copy.deepcopy(block)
    with set_checkpoint_early_stop(False):
        try:
            _look_at_passes(answer, call, blocks, x, seed)
        except Wrong:
            return fault
    return Wrong(
        "What you put back is right, and it never runs: recomputation ends early, by an exception "
        "inside your context, so no line after a bare yield is reached. Write try: yield, and put "
        "everything back in finally:."
    )


def _look_at_output(got, expected):
    if not isinstance(got, torch.Tensor) or got.shape != expected.shape:
        raise Wrong(f"run must return the block's result, a tensor, got {_kind(got)}.")
    if not got.requires_grad:
        raise Wrong("x wants no gradient, so a reentrant segment has none: use_reentrant=False.")
    if not torch.equal(got, expected):
        raise Wrong(
            "The result itself differs from block(x) with the same seed. In eval() BatchNorm takes "
            "other statistics and dropout does nothing: that is another function."
        )


def _backward(got):
    try:
        got.pow(2).sum().backward()
    except RuntimeError as error:
        if "Recomputed values" in str(error) or "number of tensors" in str(error):
            raise Wrong(
                "The second forward pass saves other tensors than the first: CheckpointError. Let "
                "both run the same operations."
            ) from None
        raise


def _look_at_block(mine, plain):
    for (name, p), q in zip(mine.named_parameters(), plain.parameters(), strict=True):
        if p.grad is None:
            raise Wrong(f"{name} gets no gradient: pass use_reentrant=False.")
        if not torch.equal(p.grad, q.grad):
            raise Wrong(
                f"The gradient of {name} differs. Dropout drew other units in the second forward "
                "pass: preserve_rng_state restores the generator, and True is its default."
            )
    for (name, b), c in zip(mine.named_buffers(), plain.buffers(), strict=True):
        if torch.allclose(b, c, rtol=1e-6):
            continue
        if "num_batches" in name:
            raise Wrong(
                f"{name} is {int(b)}, and {int(c)} batches came. It counts forward passes; a "
                "corrected momentum repairs the statistics and not this count."
            )
        raise Wrong(
            f"{name} differs by {float((b - c).abs().max()):.3f}, gradients are equal: the second "
            "forward pass updated the running statistics again."
        )
    if mine.calls != plain.calls:
        raise Wrong(
            f"block.calls is {mine.calls}, and the plain run counts {plain.calls}: Python state "
            "is yours to put back after the second forward pass."
        )


def _look_at_saving(answer, call, block, x):
    def kept(forward):
        twin = copy.deepcopy(block)
        return saved_bytes(lambda: forward(twin), without=[*twin.parameters(), *twin.buffers(), x])

    if kept(lambda twin: call(answer, twin, x)) >= kept(lambda twin: twin(x)):
        raise Wrong(
            "Everything is equal, and so are the bytes kept for backward: nothing is checkpointed."
        )


# --- 43.5 -------------------------------------------------------------------------------


def test_nested(answer, call):
    for n in (1, 2, 7, 16, 64):
        if n == 16:  # reentrant segments have another peak: name the cause first
            _look_at_weight(answer, call)
        calls = [0]

        def f(h, calls=calls):
            calls[0] += 1
            return torch.sin(h)

        x = torch.rand(10_000, requires_grad=True)
        expected = x.detach().clone().requires_grad_()
        h = expected
        for _ in range(n):
            h = torch.sin(h)
        h.sum().backward()
        with track_memory(x) as peak:
            _run_nested(answer, call, f, x, n, h)
        if x.grad is None or not torch.equal(x.grad, expected.grad):
            raise Wrong(f"n = {n}: the gradient of x is not that of the plain chain.")
        if n in (16, 64):
            _look_at_price(n, round(peak.total / 40_000), calls[0])


def _run_nested(answer, call, f, x, n, expected):
    try:
        # x is a leaf and cannot change unnoticed; a copy of it would count at the peak.
        result = call(answer, f, x, n, may_change=(1,))
    except RecursionError:
        raise Wrong(
            f"n = {n}: the recursion never ends. A chain of one call needs no cut: return f(x)."
        ) from None
    if not isinstance(result, torch.Tensor):
        raise Wrong(f"nested must return the result of the chain, a tensor, got {_kind(result)}.")
    if not torch.equal(result, expected):
        raise Wrong(
            f"n = {n}: the result is not f applied {n} times. Do both parts together have n calls, "
            "also when n is odd?"
        )
    if not result.requires_grad:
        raise Wrong("The result has no graph: no backward pass is possible.")
    total = result.sum()
    del result  # one tensor less at the peak
    total.backward()


def _look_at_price(n, units, calls):
    levels = n.bit_length() - 1
    allowed, cost = levels + 3, n + n // 2 * levels
    if units > allowed:
        if units >= n:
            why = "That is the plain chain: nothing was dropped."
        elif units <= 3 * n**0.5:
            why = "That is still the root of n: cut inside the segments again, by recursion."
        else:
            why = (
                "Checkpoint the first half. What runs last is used first in backward, and must not "
                "hold up the first half."
            )
        raise Wrong(f"n = {n}: the peak is {units} tensors, log2(n) + 3 is {allowed}. {why}")
    if calls > cost:
        raise Wrong(
            f"n = {n}: the peak is right, with {calls} calls of f in place of {cost}. The second "
            "half is used at once: what is used at once need not be dropped."
        )


def _look_at_weight(answer, call):
    w = torch.rand(5, requires_grad=True)
    x = torch.rand(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = call(answer, lambda h: torch.sin(h * w), x, 8)
    reached = result.requires_grad
    if reached:
        result.sum().backward()
    h, twin = x, w.detach().clone().requires_grad_()
    for _ in range(8):
        h = torch.sin(h * twin)
    h.sum().backward()
    if not reached or w.grad is None or not torch.allclose(w.grad, twin.grad, rtol=1e-5):
        raise Wrong(
            "A weight inside f gets no gradient, or a part of it, when x wants none: reentrant "
            "segments start at their input. Pass use_reentrant=False."
        )


_CHECKPOINT = "from torch.utils.checkpoint import checkpoint\n\n\n"
_CONTEXTS = "from contextlib import contextmanager, nullcontext\n\n"
_LISTED = (
    "import copy\n\n\n"
    "def without_gradient(model, loss_fn, x):\n"
    "    twin = copy.deepcopy(model)\n"
    "    loss_fn(twin(x)).backward()\n"
)
_BEST = "def best_segments(blocks, inside, border):\n"
_DIVIDE = "    divisors = [k for k in range(1, blocks + 1) if blocks % k == 0]\n"
_IMPORTS = "import copy\n" + _CONTEXTS + _CHECKPOINT
_TRACES = (
    "        old, calls = [buffer.clone() for buffer in block.buffers()], block.calls\n"
    "        try:\n"
    "            yield\n"
    "        finally:\n"
    "            for buffer, value in zip(block.buffers(), old, strict=True):\n"
    "                buffer.copy_(value)\n"
    "            block.calls = calls\n"
)
_RUN = "def run(block, x):\n    @contextmanager\n    def unseen():\n"
_CALL = (
    "\n    return checkpoint(\n"
    "        block, x, use_reentrant=False, context_fn=lambda: (nullcontext(), unseen())\n"
    "    )\n"
)


def _wrong(name, source, says):
    """Return a wrong answer that stands alone, with the imports of the notebook."""
    return WrongAnswer(name, _IMPORTS + source, says)


_BASE = _CHECKPOINT + "def nested(f, x, n):\n    if n == 1:\n        return f(x)\n"
_HALF = "    h = checkpoint(nested, f, x, n // 2, use_reentrant=False)\n"


def _saves(**changed):
    """Write out an answer to 43.3: the right one, with values changed."""
    right = dict(zip(_MODULES, (False, True, True, False, True), strict=True))
    names = dict(zip(("relu", "gelu", "mlp", "sin", "attention"), _MODULES, strict=True))
    right |= {names[key]: value for key, value in changed.items()}
    return "saves = {\n" + "".join(f'    "{k}": {v},\n' for k, v in right.items()) + "}\n"


EXERCISES = {
    "43.1": Exercise(
        title="Prove that a checkpointed model trains",
        minutes=6,
        task="Run one backward pass of `loss_fn(model(x))` and return the names of all parameters "
        "whose `.grad` stays `None`, frozen ones included. Leave the model as it was: weights, "
        "buffers, and no `.grad` behind.",
        stub="def without_gradient(model, loss_fn, x):\n"
        '    """Return the names of the parameters that get no gradient."""\n    ...\n',
        answer="without_gradient",
        test=test_without_gradient,
        hints=(
            "A parameter that no gradient reaches keeps .grad = None. Zeros are a gradient.",
            "BatchNorm updates its buffers in every forward pass, so looking at the model itself "
            "changes it.",
            "Begin with twin = copy.deepcopy(model).",
        ),
        solution=_LISTED
        + "    return [name for name, p in twin.named_parameters() if p.grad is None]\n",
        wrong=(
            _wrong(
                "zeros too",
                _LISTED + "    return [n for n, p in twin.named_parameters()\n"
                "            if p.grad is None or not p.grad.any()]\n",
                "None is not zero",
            ),
            _wrong(
                "zeros of None",
                _LISTED + "    return [n for n, p in "
                "twin.named_parameters() if not p.grad.any()]\n",
                "None has no values",
            ),
            _wrong(
                "requires_grad",
                _LISTED + "    return [n for n, p in "
                "twin.named_parameters() if not p.requires_grad]\n",
                "requires_grad says True",
            ),
            _wrong(
                "frozen left out",
                _LISTED + "    return [n for n, p in "
                "twin.named_parameters() if p.requires_grad and p.grad is None]\n",
                "report what you find",
            ),
            _wrong(
                "in eval",
                _LISTED.replace("    loss_fn", "    twin.eval()\n    loss_fn")
                + "    return [n for n, p in twin.named_parameters() if p.grad is None]\n",
                "in train() only",
            ),
            _wrong(
                "weights compared",
                "def without_gradient(model, loss_fn, x):\n"
                "    before = [p.detach().clone() for p in model.parameters()]\n"
                "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                "    loss_fn(model(x)).backward()\n    optimizer.step()\n"
                "    grads = [p.grad for p in model.parameters()]\n"
                "    optimizer.zero_grad()\n"
                "    return [n for (n, _), g in zip(model.named_parameters(), grads)\n"
                "            if g is None]\n",
                "has changed",
            ),
            _wrong(
                "left behind",
                "def without_gradient(model, loss_fn, x):\n"
                "    state = copy.deepcopy(model.state_dict())\n"
                "    loss_fn(model(x)).backward()\n"
                "    model.load_state_dict(state)\n"
                "    return [n for n, p in model.named_parameters() if p.grad is None]\n",
                "left behind",
            ),
            _wrong(
                "autograd.grad",
                "def without_gradient(model, loss_fn, x):\n"
                "    named = [(n, p) for n, p in model.named_parameters() "
                "if p.requires_grad]\n"
                "    grads = torch.autograd.grad(loss_fn(model(x)), [p for _, p in named],\n"
                "                                allow_unused=True)\n"
                "    return [n for (n, _), g in zip(named, grads) if g is None]\n",
                "report what you find",
            ),
            _wrong(
                "autograd.grad of frozen ones",
                "def without_gradient(model, loss_fn, x):\n"
                "    frozen = [p for p in model.parameters() if not p.requires_grad]\n"
                "    return torch.autograd.grad(x.sum(), frozen)\n",
                "stops at frozen",
            ),
            _wrong(
                "all names",
                _LISTED + "    return [n for n, p in twin.named_parameters()\n"
                "            if p.grad is None or 'norm' in n]\n",
                "does get a gradient",
            ),
            _wrong(
                "parameters",
                _LISTED + "    return [p for p in twin.parameters()\n"
                "            if p.grad is None]\n",
                "names only",
            ),
            _wrong("nothing", _LISTED, "Return a list of names"),
        ),
    ),
    "43.2": Exercise(
        title="Compute the best number of segments",
        minutes=6,
        task="`blocks` equal blocks hold `inside` bytes each while their backward runs, and a "
        "segment keeps `border` bytes. Return the number of segments, among the divisors of "
        "`blocks`, with the lowest sum of both.",
        stub="def best_segments(blocks, inside, border):\n"
        '    """Return the divisor of blocks with the lowest peak."""\n    ...\n',
        answer="best_segments",
        test=test_best_segments,
        hints=(
            "k segments keep k borders. One of them at a time is computed again, with blocks / k "
            "blocks inside.",
            "16 blocks, inside 16, border 1: 4 segments need 4 + 64, 16 need 16 + 16.",
            _DIVIDE.strip(),
        ),
        solution=_BEST
        + _DIVIDE
        + "    return min(divisors, key=lambda k: k * border + blocks / k * inside)\n",
        wrong=(
            WrongAnswer(
                "root of blocks",
                _BEST + _DIVIDE + "    return min(divisors, key=lambda k: abs(k - blocks**0.5))\n",
                "only where inside equals border",
            ),
            WrongAnswer(
                "nearest to the root",
                _BEST + _DIVIDE + "    root = (blocks * inside / border) ** 0.5\n"
                "    return min(divisors, key=lambda k: abs(k - root))\n",
                "need not be the best one",
            ),
            WrongAnswer("every block", _BEST + "    return blocks\n", "a border for every block"),
            WrongAnswer("one segment", _BEST + "    return 1\n", "needs everything at once"),
            WrongAnswer(
                "not rounded",
                _BEST + "    return (blocks * inside / border) ** 0.5\n",
                "as an int",
            ),
            WrongAnswer(
                "no divisor",
                _BEST + "    return min(blocks, round((blocks * inside / border) ** 0.5))\n",
                "Compare the divisors",
            ),
            WrongAnswer(
                "inside forgotten to shrink",
                _BEST + _DIVIDE + "    return min(divisors[1:] or [1], key=lambda k: k * inside)\n",
                "for every divisor k",
            ),
            WrongAnswer("all divisors", _BEST + _DIVIDE + "    return divisors\n", "got list"),
        ),
    ),
    "43.3": Exercise(
        title="Decide when checkpointing spares nothing",
        minutes=4,
        task="Each of five modules becomes one segment, and a Linear reads its result. Write "
        "`True` where that spares bytes kept for backward, else `False`. The check counts with "
        "64 rows of width 128.",
        stub="saves = {\n" + "".join(f'    "{name}": ...,\n' for name in _MODULES) + "}\n",
        answer="saves",
        test=test_spares,
        hints=(
            "A segment keeps its input, and the next layer keeps its result. What is spared lies "
            "between the two.",
            "ReLU and sin: one keeps its result, the other its input.",
            "False for the first.",
        ),
        solution=_saves(),
        wrong=(
            WrongAnswer("ReLU", _saves(relu=True), "ReLU keeps its own result"),
            WrongAnswer("GELU", _saves(gelu=False), "GELU keeps what goes into it"),
            WrongAnswer("MLP", _saves(mlp=False), "four times as wide"),
            WrongAnswer("sin", _saves(sin=True), "that is the border"),
            WrongAnswer("attention", _saves(attention=False), "Queries, keys, values"),
            WrongAnswer("words", _saves(sin="'no'"), "must be True or False"),
        ),
    ),
    "43.4": Exercise(
        title="Make recomputation repeat the forward",
        minutes=8,
        task="`block` holds BatchNorm `block.norm`, dropout and a counter `block.calls`. Repair "
        "`run`: checkpointed, and after backward the result, gradients, buffers and counter "
        "equal those of `block(x)` with the same seed.",
        stub="def run(block, x):\n    @contextmanager\n    def unseen():\n"
        '        """Surround the second forward pass."""\n        yield\n\n'
        '    options = {"use_reentrant": False, "preserve_rng_state": False}\n'
        "    return checkpoint(block, x, context_fn=lambda: (nullcontext(), unseen()), "
        "**options)\n",
        answer="run",
        test=test_run,
        hints=(
            "The second forward pass must draw the same dropout, and leave no trace in what it "
            "writes: buffers and counter.",
            "After backward block.norm.num_batches_tracked is 2. What stands before yield in unseen "
            "runs before the second pass, what stands in finally after it, also if it stops early.",
            "In unseen, first: old = [buffer.clone() for buffer in block.buffers()]",
        ),
        solution=_CONTEXTS + _CHECKPOINT + _RUN + _TRACES + _CALL,
        wrong=(
            _wrong(
                "generator not restored",
                _RUN
                + _TRACES
                + _CALL.replace("context_fn", "preserve_rng_state=False, context_fn"),
                "Dropout drew other units",
            ),
            _wrong(
                "default", _RUN + "        yield\n" + _CALL, "updated the running statistics again"
            ),
            _wrong(
                "put back without finally",
                _RUN + "        old = [buffer.clone() for buffer in block.buffers()]\n"
                "        calls = block.calls\n        yield\n"
                "        for buffer, value in zip(block.buffers(), old, strict=True):\n"
                "            buffer.copy_(value)\n"
                "        block.calls = calls\n" + _CALL,
                "everything back in finally",
            ),
            _wrong(
                "eval",
                "def run(block, x):\n    block.eval()\n"
                "    return checkpoint(block, x, use_reentrant=False)\n",
                "another function",
            ),
            _wrong(
                "counter",
                _RUN + _TRACES.replace("            block.calls = calls\n", "") + _CALL,
                "block.calls is 2",
            ),
            _wrong(
                "momentum",
                "def run(block, x):\n"
                "    block.norm.momentum = 1 - (1 - 0.1) ** 0.5\n"
                "    return checkpoint(block, x, use_reentrant=False)\n",
                "num_batches_tracked is 2",
            ),
            _wrong(
                "first layer reentrant",
                "def run(block, x):\n    block.calls += 1\n"
                "    h = checkpoint(block.first, x, use_reentrant=True)\n"
                "    return block.last(block.drop(torch.relu(block.norm(h))))\n",
                "first.weight gets no gradient",
            ),
            _wrong(
                "other operations",
                _RUN + "        block.eval()\n        try:\n            yield\n        finally:\n"
                "            block.train()\n" + _CALL,
                "saves other tensors than the first",
            ),
            _wrong(
                "reentrant",
                "def run(block, x):\n    return checkpoint(block, x, use_reentrant=True)\n",
                "use_reentrant=False",
            ),
            _wrong("plain", "def run(block, x):\n    return block(x)\n", "nothing is checkpointed"),
            _wrong("nothing", "def run(block, x):\n    block(x)\n", "got None"),
        ),
        limit=20.0,
    ),
    "43.5": Exercise(
        title="Push memory to the logarithm",
        minutes=10,
        task="Challenge. Apply `f` to `x` `n` times by recursion, so that the peak grows with "
        "log2(n): for a power of 2, log2(n) + 3 tensors, in at most n + n/2 · log2(n) calls. Any "
        "n from 1 on must work.",
        stub="def nested(f, x, n):\n"
        '    """Return f applied n times, checkpointed by halves."""\n    ...\n',
        answer="nested",
        test=test_nested,
        hints=(
            "A segment may hold segments. While the second half runs, only its start must stay.",
            "n = 4: checkpoint the first 2 calls; the other 2 are a chain of their own. Backward "
            "uses them at once.",
            "After the case n == 1: " + _HALF.strip(),
        ),
        solution=_BASE + _HALF + "    return nested(f, h, n - n // 2)\n",
        wrong=(
            _wrong(
                "both halves",
                _BASE
                + _HALF
                + "    return checkpoint(nested, f, h, n - n // 2, use_reentrant=False)\n",
                "need not be dropped",
            ),
            _wrong(
                "a loop of segments",
                "def nested(f, x, n):\n    size = max(1, int(n**0.5))\n"
                "    def segment(h, m):\n        for _ in range(m):\n            h = f(h)\n"
                "        return h\n    while n > 0:\n        m = min(size, n)\n"
                "        x = checkpoint(segment, x, m, use_reentrant=False)\n        n -= m\n"
                "    return x\n",
                "still the root of n",
            ),
            _wrong(
                "no end",
                "def nested(f, x, n):\n"
                + "    h = nested(f, x, n // 2)\n"
                + "    return nested(f, h, n - n // 2)\n",
                "never ends",
            ),
            _wrong(
                "reentrant",
                _BASE + _HALF.replace("False", "True") + "    return nested(f, h, n - n // 2)\n",
                "use_reentrant=False",
            ),
            _wrong(
                "plain",
                "def nested(f, x, n):\n    for _ in range(n):\n        x = f(x)\n    return x\n",
                "nothing was dropped",
            ),
            _wrong(
                "second half",
                _BASE + "    h = nested(f, x, n // 2)\n"
                "    return checkpoint(nested, f, h, n - n // 2, use_reentrant=False)\n",
                "Checkpoint the first half",
            ),
            _wrong(
                "odd numbers",
                _BASE + _HALF + "    return nested(f, h, n // 2)\n",
                "also when n is odd",
            ),
            _wrong(
                "no graph",
                "def nested(f, x, n):\n    with torch.no_grad():\n"
                "        for _ in range(n):\n            x = f(x)\n    return x\n",
                "has no graph",
            ),
            _wrong(
                "cut at x",
                _BASE + "    h = checkpoint(nested, f, x.detach(), n // 2, "
                "use_reentrant=False)\n    return nested(f, h + 0 * x, n - n // 2)\n",
                "not that of the plain chain",
            ),
            _wrong("nothing", "def nested(f, x, n):\n    f(x)\n", "got None"),
        ),
        limit=20.0,
    ),
}
