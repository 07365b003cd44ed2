"""Ask and check what 45_combine_the_savings teaches."""

import random
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from helpers import sizing
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer
from helpers.memory import track_memory

PREDICTIONS = {
    "45.p1": Number(
        question="All four are on: how many MiB does the step need?",
        unit="MiB",
        notes=(
            (0, 4, "Savings do not add up: two of them want the same activations."),
            (
                4,
                15,
                "The floor is higher: weights and momentum are alive throughout, and no "
                "technique here touches the weights.",
            ),
            (15, 23, "Close: you saw that something stays whatever is switched on."),
            (23, 43, "It is less: checkpointing alone leaves about 25 MiB."),
            (43, 1e9, "Each of the four lowers the peak of the plain step."),
        ),
    ),
    "45.p2": Choice(
        question="Which of the 16 has the lowest peak?",
        options={
            "all four": "One of them adds bytes once others are on.",
            "all but autocast": "Right: what autocast would halve is already gone, and its copies "
            "of the weights come on top.",
            "all but micro-batches": "Close to it. With checkpointing, micro-batches save less "
            "than before, and still something, unless autocast is on.",
            "all but checkpointing": "Micro-batches leave a quarter of the activations. "
            "Checkpointing takes most of those, too.",
        },
    ),
    "45.p3": Choice(
        question="All four are on. Which one argument lowers the peak below the arm without "
        "autocast?",
        options={
            "dtype=torch.float16": "It has 16 bits as well: the copies are as large.",
            "cache_enabled=False": "Right: each copy dies after its use and is made again when "
            "asked for.",
            "set_to_none=False": "That keeps the gradients through the first forward pass, filled "
            "with zeros. It can only add.",
            "none of them": "One of them asks autocast not to keep what it can make again.",
        },
    ),
    "45.p4": Number(
        question="Whatever is on: how many times the bytes of the weights does a step with Adam "
        "hold at once?",
        unit="times",
        notes=(
            (0, 1.5, "The weights alone. Adam needs gradients and moments beside them."),
            (1.5, 2.5, "Weights and gradients. Adam keeps two numbers more for each weight."),
            (2.5, 3.5, "Something is missing: weights, gradients, and two moments, not one."),
            (3.5, 4.5, "Right: weights, gradients and two moments."),
            (4.5, 1e9, "It is less: activations can be made as small as you like."),
        ),
    ),
    "45.p5": Choice(
        question="Which of the four adds arithmetic to a step?",
        options={
            "autocast": "It adds conversions, and no product or sum.",
            "checkpointing": "Right: the inside of each segment is computed twice.",
            "micro-batches": "Four parts have as many rows as the whole: the same products, in "
            "smaller pieces.",
            "the optimizer": "SGD does less than Adam, and both are small beside the products.",
        },
    ),
    "45.p6": Choice(
        question="23 MiB, and not one product more than the plain step. Is it possible?",
        options={
            "no": "Only checkpointing costs arithmetic. Look at what the other three reach.",
            "yes, with Adam": "Adam's four copies alone are 20 MiB. Without checkpointing too many "
            "activations come on top.",
            "yes, but not with Adam": "Right: giving up one moment makes room for activations.",
        },
    ),
}


def _kind(value):
    """Name the type of what came back."""
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


class Arm(NamedTuple):
    """Say which techniques a step uses."""

    optimizer: str = "Adam"
    autocast: bool = False
    checkpoint: bool = False
    micro_batches: int = 1


class Segment(nn.Module):
    """Run a block under checkpointing.

    Parameters
    ----------
    block : torch.nn.Module
        Takes and returns one tensor.
    """

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        """Return what the block returns, and keep only x."""
        return checkpoint(self.block, x, use_reentrant=False)


SMALL = sizing.Shape(6, 128, 4, 500, 512, positions=64)


def build(arm, shape=SMALL, batch=8):
    """Build model, optimizer and ids for an arm, with random numbers from torch's generator.

    Parameters
    ----------
    arm : Arm
    shape : helpers.sizing.Shape
        One that has learned positions; their number is the length of a sequence.
    batch : int
        Sequences.

    Returns
    -------
    (torch.nn.Module, torch.optim.Optimizer, torch.Tensor)
        The ids have shape (batch, positions).
    """
    model = sizing.LanguageModel(shape)
    if arm.checkpoint:
        model.layers = nn.ModuleList(Segment(layer) for layer in model.layers)
    optimizer = sizing.OPTIMIZERS[arm.optimizer](model.parameters())
    return model, optimizer, torch.randint(shape.vocabulary, (batch, shape.positions))


def run_step(model, optimizer, ids, arm, *, cached=True):
    """Take one training step as an arm says; the loss has no name that outlives backward.

    Parameters
    ----------
    model, optimizer, ids
        As `build` returns them.
    arm : Arm
    cached : bool
        Whether autocast keeps its copies of the weights until its block ends.
    """
    optimizer.zero_grad()
    for part in ids.split(len(ids) // arm.micro_batches):
        with torch.autocast(
            "cpu", dtype=torch.bfloat16, enabled=arm.autocast, cache_enabled=cached
        ):
            loss = F.cross_entropy(model(part).flatten(0, 1), part.flatten())
        (loss / arm.micro_batches).backward()
    optimizer.step()


def count(arm, shape=SMALL, batch=8, *, cached=True):
    """Count the second step of a fresh model.

    Parameters
    ----------
    arm : Arm
    shape : helpers.sizing.Shape
    batch : int
        Sequences, a multiple of the arm's micro-batches.
    cached : bool
        As for `run_step`.

    Returns
    -------
    helpers.memory.MemoryPeak

    Examples
    --------
    >>> count(Arm("SGD, momentum", True, True, 4)).total
    19551244
    """
    model, optimizer, ids = build(arm, shape, batch)
    run_step(model, optimizer, ids, arm, cached=cached)
    with track_memory(model, optimizer, ids) as peak:
        run_step(model, optimizer, ids, arm, cached=cached)
    return peak


# --- 45.1 -------------------------------------------------------------------------------

LARGER = sizing.Shape(4, 192, 6, 1000, 768, positions=128)
BUDGET = 44 * 2**20
_BATCH = 16
_SETTINGS = ("autocast", "checkpoint", "micro_batches")


def count_settings(autocast, checkpoint, micro_batches):
    """Count the second step of the model of 45.1 with Adam, on fake tensors.

    Parameters
    ----------
    autocast, checkpoint : bool
    micro_batches : int
        A divisor of 16.

    Returns
    -------
    helpers.memory.MemoryPeak
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return count(Arm("Adam", autocast, checkpoint, micro_batches), LARGER, _BATCH)


def test_settings(answer, call):
    for name, value in answer.items():
        if name != "micro_batches" and not isinstance(value, bool):
            raise Wrong(f"{name} must be True or False, got {value!r}.")
    parts = answer["micro_batches"]
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1 or _BATCH % parts:
        raise Wrong(
            f"micro_batches must divide the batch of {_BATCH} into equal parts, got {parts!r}."
        )
    peak = count_settings(**answer)
    if peak.total > BUDGET:
        raise Wrong(
            f"{peak.total / 2**20:.1f} MiB, over by {(peak.total - BUDGET) / 2**20:.1f}. "
            f"{_why_too_large(peak, **answer)}"
        )


def _why_too_large(peak, autocast, checkpoint, micro_batches):
    phase = peak.timeline.phases[peak.timeline.total.index(peak.total)]
    if phase == "forward":
        return (
            "The peak is at the end of forward, where autocast's copies of all weights are alive: "
            "more parts, or no copies."
        )
    if checkpoint and micro_batches == 1:
        return "One block at a time is computed again, with the whole batch: take fewer rows."
    if micro_batches == 1:
        return "All activations of the whole batch are alive when backward begins."
    if checkpoint:
        return "One block and the logits, of one part: make the parts smaller."
    return "Activations of one part are alive when backward begins: smaller parts, or segments."


# --- 45.2 -------------------------------------------------------------------------------


def _draw_menu(rng):
    rows = [
        {
            "name": name,
            "bytes": rng.randint(10, 18),
            "flops": rng.choice((100, 100, 121)),
            "changes": rng.randint(0, 2),
        }
        for name in "abcdefgh"
    ]
    rng.shuffle(rows)
    return rows


def _order(row):
    return row["flops"], row["changes"], row["bytes"]


def _menus():
    rng = random.Random(random.random())
    rows = ("first", 9, 121, 0), ("second", 10, 100, 2), ("third", 10, 100, 1)
    fixed = [dict(zip(("name", "bytes", "flops", "changes"), row, strict=True)) for row in rows]
    yield fixed, 12
    yield fixed, 9
    yield fixed, 10
    yield fixed, 8
    yield [], 8
    for _ in range(40):
        yield _draw_menu(rng), rng.randint(10, 18)


def test_cheapest(answer, call):
    for menu, budget in _menus():
        fitting = [row for row in menu if row["bytes"] <= budget]
        try:
            got = call(answer, [dict(row) for row in menu], budget)
        except (ValueError, IndexError):
            if fitting:
                raise
            raise Wrong(
                f"Nothing fits into {budget} bytes, and there is no first of nothing: return None."
            ) from None
        _look_at_choice(got, menu, budget, fitting)


def _look_at_choice(got, menu, budget, fitting):
    rows = {row["name"]: row for row in menu}
    if not fitting:
        if got is not None:
            raise Wrong(f"Nothing fits into {budget} bytes: return None, got {got!r}.")
        return
    best = min(fitting, key=_order)
    if got is None:
        raise Wrong(f"{best} fits into {budget} bytes, got None. A budget met exactly is met.")
    if not isinstance(got, str) or got not in rows:
        raise Wrong(f"Return the name of a row as a text, got {_kind(got)}")
    row = rows[got]
    if row["bytes"] > budget:
        raise Wrong(f"{row} does not fit into {budget} bytes.")
    if _order(row) == _order(best):
        return
    why = "fewer bytes, which is the last thing asked for"
    if row["flops"] > best["flops"]:
        why = "less arithmetic. Bytes below the budget buy nothing"
    elif row["changes"] > best["changes"]:
        why = "as much arithmetic and fewer changed results"
    raise Wrong(f"budget {budget}: {row} fits, and {best} does so with {why}.")


# --- 45.3 -------------------------------------------------------------------------------


class _Watch:
    """Note what a step does: the rows of its parts, and steps of the optimizer."""

    def __init__(self, model, optimizer):
        self.rows, self.steps = [], 0
        self.handles = [
            model.register_forward_pre_hook(lambda _, args: self.rows.append(len(args[0]))),
            optimizer.register_step_post_hook(self._stepped),
        ]

    def _stepped(self, *_):
        self.steps += 1

    def close(self):
        for handle in self.handles:
            handle.remove()


def _look_at_dtype(dtype):
    """Refuse at once: products in float16 take minutes on many CPUs."""
    if dtype != torch.bfloat16:
        raise Wrong(
            f"A Linear returned {dtype}: autocast to bfloat16 was given up, at least for one pass."
        )


def _trained(step, steps=3):
    """Take steps from one seed; return the model, the last step's peak and what was seen."""
    arm = Arm("Adam", True, True, 4)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model, optimizer, ids = build(arm)
    model.layers[0].block.up.register_forward_hook(lambda _, args, out: _look_at_dtype(out.dtype))
    for _ in range(steps - 1):
        step(model, optimizer, ids)
    watch = _Watch(model, optimizer)
    with track_memory(model, optimizer, ids) as peak:
        step(model, optimizer, ids)
    watch.close()
    return model, peak, watch


def test_lean_step(answer, call):
    with torch.enable_grad():
        model, peak, watch = _trained(lambda *given: call(answer, *given))
        arm = Arm("Adam", True, True, 4)
        expected, _, _ = _trained(lambda *given: run_step(*given, arm, cached=False))
        without = count(arm._replace(autocast=False)).total
    if watch.steps != 1:
        raise Wrong(f"The optimizer steps {watch.steps} times in one call. Once, after all parts.")
    if watch.rows != [2, 2, 2, 2]:
        raise Wrong(
            f"The model got parts of {watch.rows} rows. Keep the four micro-batches of two rows."
        )
    kinds = {p.dtype for p in model.parameters()}
    if kinds != {torch.float32}:
        raise Wrong(
            f"The weights are {kinds.pop()} now: steps smaller than their last bit are lost (42). "
            "Keep them in float32."
        )
    pairs = zip(model.parameters(), expected.parameters(), strict=True)
    off = max((p - q).abs().max().item() for p, q in pairs)
    if off > 1e-6:
        raise Wrong(
            f"After three steps a weight differs by {off:.1e} from training with the same four "
            "parts. Keep the division by 4, and one zero_grad before all parts."
        )
    if peak.total >= without:
        raise Wrong(
            f"{peak.total:,} bytes; without autocast the step needs {without:,}. Copies of the "
            "weights in bfloat16 are alive as long as the autocast block is open. They are live "
            "tensors, no cache of the allocator. Tell autocast not to keep them."
        )


# --- 45.4 -------------------------------------------------------------------------------


def _net():
    layers = [nn.Linear(64, 64) for _ in range(5)]
    layers[2].weight.requires_grad_(False)
    return nn.Sequential(*layers)


def _adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01, foreach=False)


def _start(net):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        for p in net.parameters():
            nn.init.normal_(p, std=0.1)
    return torch.linspace(-1, 1, 4 * 64).view(4, 64)


def _loop():
    """Train for three steps as usual; return the weights after each and the last peak."""
    net = _net()
    x = _start(net)
    optimizer, history = _adam(net.parameters()), []
    for _ in range(3):
        optimizer.zero_grad()
        with track_memory(net, optimizer, x) as peak:
            net(x).square().sum().backward()
            optimizer.step()
        history.append([p.detach().clone() for p in net.parameters()])
    return history, peak.total


def test_step_in_backward(answer, call):
    with torch.enable_grad():
        history, plain_peak = _loop()
        net, made = _net(), []
        x = _start(net)

        def make(parameters):
            made.append(_adam(parameters))
            return made[-1]

        remove = _install(answer, call, net, make)
        for number, expected in enumerate(history, 1):
            with track_memory(net, made, x) as peak:
                _backward(net, x)
            _look_at_weights(net, expected, number)
        if peak.total >= plain_peak:
            raise Wrong(
                f"{peak.total:,} bytes at the peak, the usual loop needs {plain_peak:,}. One "
                "optimizer for each parameter, stepped in its hook, has no need of all gradients."
            )
        _look_at_removed(call, remove, net, x)


def _install(answer, call, net, make):
    try:
        remove = call(answer, net, make)
    except RuntimeError as error:
        if "require" not in str(error):
            raise
        raise Wrong(
            "A frozen parameter has no gradient and takes no hook: pass over it where "
            "requires_grad is False."
        ) from None
    if not callable(remove):
        raise Wrong(
            f"Return a function without arguments that removes the hooks, got {_kind(remove)}"
        )
    return remove


def _backward(net, x):
    try:
        net(x).square().sum().backward()
    except (RuntimeError, TypeError) as error:
        if "hook" not in str(error):
            raise
        raise Wrong(
            f"Backward says: {str(error)[:90]}. A hook must return None; a lambda returns what it "
            "computes."
        ) from None


def _look_at_weights(net, expected, number):
    still = _start_of(number)
    for (name, p), q in zip(net.named_parameters(), expected, strict=True):
        if number == 1 and p.requires_grad and torch.equal(p, still[name]):
            raise Wrong(
                f"{name} has not moved. Its hook must step its own optimizer, after .grad is "
                "there: register_post_accumulate_grad_hook. A function defined in a loop sees the "
                "loop's last value; bind its own as a default argument."
            )
        if p.requires_grad and p.grad is not None:
            raise Wrong(
                f"{name}.grad is still there after backward: all gradients are alive together "
                "again. Drop it in a hook that runs after .grad is complete "
                "(register_post_accumulate_grad_hook); one of register_hook runs before."
            )
        if torch.equal(p, q):
            continue
        raise Wrong(
            f"After backward {number}, {name} differs from the usual loop: each parameter must "
            "step exactly once, with an optimizer of its own that lives on."
        )


def _start_of(number):
    if number > 1:
        return {}
    twin = _net()
    _start(twin)
    return dict(twin.named_parameters())


def _look_at_removed(call, remove, net, x):
    call(remove)
    before = [p.detach().clone() for p in net.parameters()]
    _backward(net, x)
    if not all(map(torch.equal, before, net.parameters())):
        raise Wrong(
            "Removed, and backward still steps: keep every handle, and call .remove() on each."
        )
    if all(p.grad is None for p in net.parameters()):
        raise Wrong("Removed, and gradients still vanish: remove every hook.")


# --- 45.5 -------------------------------------------------------------------------------


def attention_parts(batch, length, width, heads, key_heads):
    """Return the bytes of the weights and of the scores of attention, from real layers.

    Parameters
    ----------
    batch, length, width, heads, key_heads : int
        As in `helpers.sizing.Shape`.

    Returns
    -------
    (int, int)

    Examples
    --------
    >>> attention_parts(1, 2, 8, 4, 2)
    (768, 64)
    """
    with torch.device("meta"):
        block = sizing.LlamaBlock(
            sizing.Shape(1, width, heads, 8, 8, key_heads=key_heads), sizing.fused_attention
        )
        queries = torch.empty(batch, heads, length, width // heads)
        scores = queries @ queries.transpose(2, 3)
    layers = (block.q, block.k, block.v, block.out)
    return sum(layer.weight.nbytes for layer in layers), scores.nbytes


def test_attention_bytes(answer, call):
    cases = [(1, 16, 4096, 64, 64), (2, 16, 768, 12, 12), (1, 32, 2048, 32, 4)]
    for _ in range(12):
        key_heads, group = random.choice((1, 2, 3, 4)), random.choice((1, 2, 4))
        heads = key_heads * group
        width = heads * random.choice((8, 16, 24))
        cases.append((random.randint(1, 3), random.randint(4, 20), width, heads, key_heads))
    for case in cases:
        got = call(answer, *case)
        names = ("batch", "length", "width", "heads", "key_heads")
        said = ", ".join(f"{name}={n}" for name, n in zip(names, case, strict=True))
        if isinstance(got, bool) or not isinstance(got, int | float):
            raise Wrong(f"Return the bytes as a number, got {_kind(got)}")
        weights, scores = attention_parts(*case)
        if got != weights + scores:
            raise Wrong(
                f"{said}: counted {weights:,} for the weights and {scores:,} for the scores, "
                f"{weights + scores:,} bytes; got {got:,}. {_why_attention(case, got)}"
            )


def _why_attention(case, got):
    batch, length, width, heads, key_heads = case
    weights, scores = attention_parts(*case)
    head_dim = width // heads
    if 4 * got == weights + scores:
        return "float32 has 4 bytes: these are numbers."
    if got - weights == 4 * batch * head_dim * length**2:
        return "Scores are one matrix for each head, not for each channel of a head."
    if got - weights == 4 * batch * key_heads * length**2:
        return (
            "Scores are one matrix for each head of queries: those that share keys have their own."
        )
    if got - weights == 4 * batch * length**2:
        return "Each head has a matrix of scores of its own."
    if got - scores == 16 * width * width:
        return "Keys and values have key_heads heads, and need no weights for the others."
    if got - scores == 4 * (2 * width + 2 * key_heads) * width:
        return "A head of keys has width / heads channels: key_heads counts heads, not channels."
    return "Compare the two parts one by one with the shapes of the layers in sizing.LlamaBlock."


# --- stored answers ---------------------------------------------------------------------


def _settings(autocast=True, checkpoint=True, micro_batches=8):
    values = {"autocast": autocast, "checkpoint": checkpoint, "micro_batches": micro_batches}
    lines = [f'    "{name}": {value},\n' for name, value in values.items()]
    return "settings = {\n" + "".join(lines) + "}\n"


_CHEAPEST = 'def cheapest(menu, budget):\n    """Return a name, or None if nothing fits."""\n'
_FITTING = '    fitting = [row for row in menu if row["bytes"] <= budget]\n'
_NONE = "    if not fitting:\n        return None\n"
_KEY = 'key=lambda row: (row["flops"], row["changes"], row["bytes"])'


def _cheapest(body):
    return _CHEAPEST + body


_IMPORTS = "import torch\nfrom torch.nn import functional as F\n\n\n"


def _wrong_step(name, source, says):
    """Return a wrong answer that stands alone, with the imports of the notebook."""
    return WrongAnswer(name, _IMPORTS + source, says)


def _lean(loop, *, autocast='torch.autocast("cpu", dtype=torch.bfloat16)'):
    return (
        "def lean_step(model, optimizer, ids):\n    optimizer.zero_grad()\n"
        f"    for part in ids.chunk(4):\n        with {autocast}:\n"
        "            loss = F.cross_entropy(model(part).flatten(0, 1), part.flatten())\n" + loop
    )


_DIVIDED = "        (loss / 4).backward()\n"
_STEP = "    optimizer.step()\n"
_UNCACHED = 'torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)'

_HEAD = (
    "def step_in_backward(model, make_optimizer):\n"
    '    """Step weights while backward runs; return a function that stops it."""\n'
)


def _hooked(*, body, lines="        optimizer = make_optimizer([p])\n", end=None, frozen=True):
    keep = "        if not p.requires_grad:\n            continue\n" if frozen else ""
    end = end or "    return lambda: [handle.remove() for handle in handles]\n"
    return (
        _HEAD + "    handles = []\n    for p in model.parameters():\n" + keep + lines + body + end
    )


_HOOK = (
    "\n        def hook(p, optimizer=optimizer):\n            optimizer.step()\n"
    "            optimizer.zero_grad()\n\n"
)
_ADD = "        handles.append(p.register_post_accumulate_grad_hook(hook))\n"

_TRAINED = "    trained = [p for p in model.parameters() if p.requires_grad]\n"
_ALL = (
    "    handles = [p.register_post_accumulate_grad_hook(hook) for p in trained]\n"
    "    return lambda: [handle.remove() for handle in handles]\n"
)

_ATTENTION = (
    "def attention_bytes(batch, length, width, heads, key_heads):\n"
    '    """Return the bytes of weights and scores of attention in float32."""\n'
    "    head_dim = width // heads\n"
)


def _attention(keys, scores, unit=4):
    return _ATTENTION + (
        f"    weights = 2 * width * width + 2 * width * {keys} * head_dim\n"
        f"    scores = batch * {scores} * length**2\n"
        f"    return {unit} * (weights + scores)\n"
    )


EXERCISES = {
    "45.1": Exercise(
        title="Fit a model into a budget",
        minutes=5,
        task="A model of 4 layers, width 192, learns from 16 sequences of 128 tokens with Adam: "
        "148 MiB. Choose settings that need at most 44 MiB. `micro_batches` divides 16. Several "
        "answers are right.",
        stub="settings = {\n" + "".join(f'    "{name}": ...,\n' for name in _SETTINGS) + "}\n",
        answer="settings",
        test=test_settings,
        hints=(
            "The floor with Adam is four times the weights: 33.4 MiB. The rest is what one part "
            "keeps, or recomputes, and autocast's copies.",
            "Everything on, with 4 parts, is 44.1 MiB: its peak is at the end of forward.",
            "More parts, or without autocast.",
        ),
        solution=_settings(autocast=False, micro_batches=4),
        wrong=(
            WrongAnswer("plain", _settings(False, False, 1), "of the whole batch are alive"),
            WrongAnswer("all on", _settings(micro_batches=4), "autocast's copies of all weights"),
            WrongAnswer(
                "checkpointing alone", _settings(False, True, 1), "with the whole batch: take fewer"
            ),
            WrongAnswer("two parts", _settings(False, True, 2), "One block and the logits"),
            WrongAnswer("parts alone", _settings(False, False, 8), "smaller parts, or segments"),
            WrongAnswer("three parts", _settings(micro_batches=3), "must divide the batch"),
            WrongAnswer("parts as text", _settings(micro_batches="'8'"), "must divide the batch"),
            WrongAnswer("a number for yes", _settings(autocast=1), "must be True or False"),
        ),
        limit=40.0,
    ),
    "45.2": Exercise(
        title="Choose the cheapest that fits",
        minutes=6,
        task="`menu` is a list of dicts with name, bytes, flops and changes (how many results "
        "change). Of those within `budget` bytes return the name with the fewest flops, among "
        "equals with the fewest changes, then the fewest bytes; None if nothing fits.",
        stub=_CHEAPEST + "    ...\n",
        answer="cheapest",
        test=test_cheapest,
        hints=(
            "Bytes decide only whether a row fits. A budget is no goal: what stays below it is no "
            "gain.",
            "Budget 12: of (9 bytes, 121 flops) and (10 bytes, 100 flops) the second is right.",
            _FITTING.strip(),
        ),
        solution=_cheapest(_FITTING + _NONE + f'    return min(fitting, {_KEY})["name"]\n'),
        wrong=(
            WrongAnswer(
                "fewest bytes",
                _cheapest(
                    _FITTING
                    + _NONE
                    + '    return min(fitting, key=lambda row: row["bytes"])["name"]\n'
                ),
                "less arithmetic",
            ),
            WrongAnswer(
                "first fit",
                _cheapest(_FITTING + _NONE + '    return fitting[0]["name"]\n'),
                "less arithmetic",
            ),
            WrongAnswer(
                "arithmetic alone",
                _cheapest(
                    _FITTING
                    + _NONE
                    + '    return min(fitting, key=lambda row: row["flops"])["name"]\n'
                ),
                "fewer changed results",
            ),
            WrongAnswer(
                "most bytes last",
                _cheapest(
                    _FITTING
                    + _NONE
                    + "    return min(fitting, "
                    + _KEY.replace('row["bytes"]', '-row["bytes"]')
                    + ')["name"]\n'
                ),
                "the last thing asked for",
            ),
            WrongAnswer(
                "strictly below",
                _cheapest(
                    _FITTING.replace("<=", "<")
                    + _NONE
                    + f'    return min(fitting, {_KEY})["name"]\n'
                ),
                "met exactly is met",
            ),
            WrongAnswer(
                "budget ignored",
                _cheapest(f'    return min(menu, {_KEY})["name"] if menu else None\n'),
                "does not fit into",
            ),
            WrongAnswer(
                "always something",
                _cheapest(
                    _FITTING.replace("fitting =", "fitting =").rstrip("\n")
                    + f'\n    return min(fitting or menu, {_KEY})["name"] if menu else None\n'
                ),
                "Nothing fits into",
            ),
            WrongAnswer(
                "min of nothing",
                _cheapest(_FITTING + f'    return min(fitting, {_KEY})["name"]\n'),
                "no first of nothing",
            ),
            WrongAnswer(
                "the row",
                _cheapest(_FITTING + _NONE + f"    return min(fitting, {_KEY})\n"),
                "Return the name of a row",
            ),
            WrongAnswer(
                "sorted in place",
                _cheapest(
                    f"    menu.sort({_KEY})\n"
                    + _FITTING
                    + _NONE
                    + '    return fitting[0]["name"]\n'
                ),
                "Your function changed its input",
            ),
        ),
    ),
    "45.3": Exercise(
        title="Let autocast earn its place",
        minutes=6,
        task="The blocks of `model` are checkpointed. With autocast and four parts the step needs "
        "more bytes than without autocast. Repair it: autocast, the parts, and the weights after "
        "each step stay as they are.",
        stub=_lean(_DIVIDED + _STEP),
        answer="lean_step",
        test=test_lean_step,
        hints=(
            "What is alive at the end of forward, and who holds it?",
            "Without autocast 23,192,384 bytes, with it 24,855,872. The copies of the weights are "
            "2 bytes each.",
            "Look at the arguments of torch.autocast.",
        ),
        solution=_IMPORTS + _lean(_DIVIDED + _STEP, autocast=_UNCACHED),
        wrong=(
            _wrong_step(
                "autocast off",
                _lean(_DIVIDED + _STEP, autocast='torch.autocast("cpu", enabled=False)'),
                "torch.float32: autocast to bfloat16 was given up",
            ),
            _wrong_step(
                "float16",
                _lean(_DIVIDED + _STEP, autocast=_UNCACHED.replace("bfloat16", "float16")),
                "torch.float16: autocast to bfloat16 was given up",
            ),
            _wrong_step(
                "one part",
                _lean(_DIVIDED + _STEP, autocast=_UNCACHED).replace("chunk(4)", "chunk(1)"),
                "Keep the four micro-batches",
            ),
            _wrong_step(
                "empty_cache",
                _lean(_DIVIDED + "        torch.cuda.empty_cache()\n" + _STEP),
                "no cache of the allocator",
            ),
            _wrong_step(
                "del loss",
                _lean(_DIVIDED + "        del loss\n" + _STEP),
                "as long as the autocast block is open",
            ),
            _wrong_step(
                "weights in bfloat16",
                _lean(_DIVIDED + _STEP).replace(
                    "    optimizer.zero_grad()", "    model.bfloat16()\n    optimizer.zero_grad()"
                ),
                "The weights are torch.bfloat16",
            ),
            _wrong_step(
                "not divided",
                _lean("        loss.backward()\n" + _STEP, autocast=_UNCACHED),
                "Keep the division",
            ),
            _wrong_step(
                "a step for each part",
                _lean(_DIVIDED + "        optimizer.step()\n", autocast=_UNCACHED),
                "steps 4 times",
            ),
            _wrong_step("no step", _lean(_DIVIDED, autocast=_UNCACHED), "steps 0 times"),
        ),
        limit=40.0,
    ),
    "45.4": Exercise(
        title="Step while backward runs",
        minutes=10,
        task="No gradient need wait for the others. Give each trained parameter its own "
        "`make_optimizer([p])`, step it in a hook as soon as `.grad` is complete, and drop the "
        "gradient. Return a function that removes all hooks.",
        stub=_HEAD + "    ...\n",
        answer="step_in_backward",
        test=test_step_in_backward,
        hints=(
            "register_post_accumulate_grad_hook of a parameter calls a function with the parameter "
            "when its .grad is complete.",
            "A function made in a loop looks up its names when it is called, after the loop: all "
            "hooks would step the last optimizer.",
            "def hook(p, optimizer=make_optimizer([p])):",
        ),
        solution=_hooked(body=_HOOK + _ADD),
        wrong=(
            WrongAnswer(
                "too early",
                _hooked(
                    body=_HOOK
                    + _ADD.replace(
                        "register_post_accumulate_grad_hook(hook)",
                        "register_hook(lambda g, h=hook: h(g))",
                    )
                ),
                "has not moved",
            ),
            WrongAnswer(
                "the last optimizer",
                _hooked(
                    body=_HOOK.replace(", optimizer=optimizer", "").replace(
                        "optimizer.zero_grad()", "p.grad = None"
                    )
                    + _ADD
                ),
                "has not moved",
            ),
            WrongAnswer(
                "a lambda's tuple",
                _hooked(
                    body="        handles.append(p.register_post_accumulate_grad_hook(\n"
                    "            lambda p, o=optimizer: (o.step(), o.zero_grad())))\n"
                ),
                "must return None",
            ),
            WrongAnswer(
                "waits for all",
                _HEAD + _TRAINED + "    optimizer, seen = make_optimizer(trained), []\n\n"
                "    def hook(p):\n        seen.append(p)\n"
                "        if len(seen) == len(trained):\n            optimizer.step()\n"
                "            optimizer.zero_grad()\n            seen.clear()\n\n" + _ALL,
                "has no need of all gradients",
            ),
            WrongAnswer(
                "drops on",
                _HEAD + _TRAINED + "    on, optimizer = [True], make_optimizer(trained)\n\n"
                "    def hook(p):\n        if on:\n            optimizer.step()\n"
                "        p.grad = None\n\n"
                + _ALL[: _ALL.index("    return")]
                + "    return on.clear\n",
                "gradients still vanish",
            ),
            WrongAnswer(
                "gradient kept",
                _hooked(body=_HOOK.replace("            optimizer.zero_grad()\n", "") + _ADD),
                "is still there after backward",
            ),
            WrongAnswer(
                "a new optimizer each time",
                _hooked(
                    lines="",
                    body="\n        def hook(p):\n"
                    "            make_optimizer([p]).step()\n            p.grad = None\n\n" + _ADD,
                ),
                "that lives on",
            ),
            WrongAnswer("frozen too", _hooked(body=_HOOK + _ADD, frozen=False), "takes no hook"),
            WrongAnswer(
                "nothing removed",
                _hooked(body=_HOOK + _ADD, end="    return lambda: handles.clear()\n"),
                "backward still steps",
            ),
            WrongAnswer(
                "handles",
                _hooked(body=_HOOK + _ADD, end="    return handles\n"),
                "Return a function without arguments",
            ),
        ),
        limit=40.0,
    ),
    "45.5": Exercise(
        title="Find the wrong head count",
        minutes=6,
        task="This calculator was tested on one model, width 4,096 with 64 heads and 64 heads of "
        "keys, and was right. For Llama models it is off. Repair it. (`key_heads` heads of keys "
        "and values are shared by `heads` heads of queries.)",
        stub=_attention("heads", "head_dim"),
        answer="attention_bytes",
        test=test_attention_bytes,
        hints=(
            "Queries and output have heads × head_dim = width channels. Which of the two parts of "
            "the sum know how many heads there are?",
            "4,096 / 64 = 64: there, heads, key_heads and head_dim are the same number. Take a "
            "model in which they differ, such as width 768 with 12 heads.",
            "scores = batch * heads * length**2, and one more.",
        ),
        solution=_attention("key_heads", "heads"),
        wrong=(
            WrongAnswer("keys alone", _attention("key_heads", "head_dim"), "not for each channel"),
            WrongAnswer("scores alone", _attention("heads", "heads"), "need no weights for the"),
            WrongAnswer("scores by key", _attention("key_heads", "key_heads"), "have their own"),
            WrongAnswer("one matrix", _attention("key_heads", "1"), "of its own"),
            WrongAnswer(
                "heads for channels",
                _attention("key_heads", "heads").replace("key_heads * head_dim", "key_heads"),
                "counts heads, not channels",
            ),
            WrongAnswer("numbers", _attention("key_heads", "heads", unit=1), "float32 has 4"),
            WrongAnswer(
                "both wrong",
                _attention("key_heads", "heads * head_dim"),
                "Compare the two parts one by one",
            ),
            WrongAnswer("nothing", _ATTENTION + "    weights = 0\n", "got None"),
        ),
    ),
}
