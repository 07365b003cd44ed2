"""Ask and check what 71_train_under_a_budget teaches."""

import json
import random
from functools import cache

import torch

from helpers import addition, contest
from helpers.exercises import Choice, Exercise, Wrong, WrongAnswer
from helpers.launch import torchrun
from helpers.units import format_bytes

PREDICTIONS = {
    "71.p1": Choice(
        question="One change alone. Which one lowers the peak of the first steps most?",
        options={
            "autocast to bfloat16": "It halves many activations, and not those that stay in "
            "float32, nor weights and moments.",
            "checkpoint each block": "Backward rebuilds one whole block, with all its rows.",
            "checkpoint the whole model": "The forward pass keeps next to nothing. Then backward "
            "must rebuild everything at once.",
            "4 micro-batches": "Right: a quarter of the rows, for everything that has rows.",
        },
    ),
    "71.p2": Choice(
        question="Each block goes through torch.compile, under this meter, and nothing else changes. "
        "The peak?",
        options={
            "lower by a fifth or more": "It keeps what backward needs. Nobody asked it to compute "
            "more than trifles again.",
            "lower by about a tenth": "Fusion removes trips to memory. What backward needs is "
            "kept all the same.",
            "equal within 1 %": "Right: unless it is asked to, it recomputes only trifles.",
            "higher by a tenth or more": "On the captured graph it keeps what eager keeps, and no more.",
        },
    ),
    "71.p3": Choice(
        question="From batches of 4 sums to batches of 2, each of 9 bytes: what does the peak lose?",
        options={
            "about half": "Half the activations, and those were few already.",
            "a few percent": "The activations did halve. Look at where the peak is now.",
            "only those two sums": "Right: the peak is in the optimizer's step, where no "
            "activation lives.",
        },
    ),
    "71.p4": Choice(
        question="Two ranks, FSDP2 on each block: each stores half of weights, gradients and "
        "moments. A rank's peak, against one process with the same rows?",
        options={
            "half": "Half is what is stored between two steps. In a step whole blocks are "
            "gathered, and the activations are not divided.",
            "about two thirds": "More: a gathered block, its whole gradient, and the activations "
            "of the rank's own rows come on top.",
            "more than three quarters": "Right: the model is small beside what a step adds.",
        },
    ),
    "71.p5": Choice(
        question="Both rows have finite weights of the right shapes. Which one would you ship?",
        options={
            "both": "One of them holds tensors that were never trained.",
            "A": "Right: every tensor of it has moved.",
            "B": "It needs fewer bytes because a part of it was never trained.",
            "neither": "One of them is sound.",
        },
    ),
}

LEAST = 0.90
SECONDS = 110  # of the 120 that a check has
BUDGETS = {"71.3": 9 * 2**19, "71.4": 5 * 2**19, "71.5": 13 * 2**17}  # 4.5, 2.5, 1.625 MiB


def _kind(value):
    """Name the type of what came back."""
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


# --- 71.1 -------------------------------------------------------------------------------


def _pair():
    """Return the parameters of a small model before and after an honest training."""
    before = {
        name: torch.randn(shape)
        for name, shape in (("token.weight", (5, 3)), ("up.weight", (4, 3)), ("head.weight", (2,)))
    }
    before |= {"norm.weight": torch.ones(3), "norm.bias": torch.zeros(3)}
    after = {name: tensor + 0.1 * torch.randn(tensor.shape) for name, tensor in before.items()}
    return before, after


def _honest():
    """Yield what is said of a sound training, both states, and an accuracy that is enough."""
    for accuracy in (0.9, 1.0):
        yield f"All tensors moved, and {accuracy} is right, 0.9 being enough", *_pair(), accuracy
    before, after = _pair()
    place = random.choice((0, -1))
    after["token.weight"].view(-1)[place] = before["token.weight"].view(-1)[place]
    yield "One number of token.weight stays, the others moved", before, after, 1.0
    before, after = _pair()
    after["up.weight"] = before["up.weight"].flip(0)
    yield "The numbers of up.weight have traded places", before, after, 1.0
    before, after = _pair()
    after["norm.weight"] = before["norm.weight"] + 1e-6
    yield "norm.weight moved by a millionth, as small steps do", before, after, 1.0


def _faulty():
    """Yield what is wrong, both states, an accuracy, and what the sentence shall teach."""
    accuracy = random.choice((0.9, 0.97, 1.0))
    before, after = _pair()
    yield "no tensor moved", before, dict(before), accuracy, "An accuracy says nothing of weights."
    for name in random.sample(list(_pair()[0]), 5):
        before, after = _pair()
        after[name] = before[name].clone()
        yield f"{name} never moved", before, after, accuracy, "Look at each tensor by itself."
    for value in (float("nan"), float("inf")):
        before, after = _pair()
        after["up.weight"][1, 1] = value
        yield (
            f"up.weight holds {value}",
            before,
            after,
            accuracy,
            "A nan differs from everything, so it looks as if it had moved: ask isfinite.",
        )
    before, after = _pair()
    del after["norm.bias"]
    yield "norm.bias is missing", before, after, accuracy, "Compare the names first."
    before, after = _pair()
    after["extra.weight"] = torch.ones(1)
    yield "extra.weight is new", before, after, accuracy, "Compare the names in both directions."
    before, after = _pair()
    after["up.weight"] = after["up.weight"][:1]
    yield "up.weight has another shape", before, after, accuracy, "Compare the shapes, too."
    before, after = _pair()
    after["up.weight"] = after["up.weight"].T
    yield "up.weight is transposed", before, after, accuracy, "Compare shapes, not numel."
    before, after = _pair()
    after["blocks.norm.bias"] = after.pop("norm.bias")
    yield "norm.bias has another name", before, after, accuracy, "Compare the names, not the count."
    yield "the accuracy is 0.89", *_pair(), 0.89, "The least accuracy is 0.9."


def test_acceptance(answer, call):
    for what, before, after, accuracy in _honest():
        if got := _reasons(answer, call, before, after, accuracy):
            raise Wrong(f"{what}: the list must be empty, got {str(got)[:80]}.")
    for what, before, after, accuracy, advice in _faulty():
        try:
            got = _reasons(answer, call, before, after, accuracy)
        except (KeyError, RuntimeError) as error:
            raise Wrong(
                f"Where {what} it raises {type(error).__name__}. Return a reason in place of it: "
                "compare names and shapes first."
            ) from None
        if not got:
            raise Wrong(f"{what}, and nothing is said against it. {advice}")


def _reasons(answer, call, before, after, accuracy):
    got = call(answer, before, after, accuracy)
    if not isinstance(got, list) or not all(isinstance(reason, str) for reason in got):
        raise Wrong(f"Return a list of texts, empty if all is well, got {_kind(got)}")
    return got


# --- 71.2 -------------------------------------------------------------------------------

_ROWS = 64


def _one_pass(forward):
    """Return the gradients of one forward and backward, the loss, and the meter."""
    model, sums = addition.build(3), addition.load_sums().train[:_ROWS]
    with contest.meter(model, sums) as found:
        loss = addition.loss(lambda ids: forward(model, ids), sums)
        if loss.requires_grad:
            loss.backward()
    return {name: p.grad for name, p in model.named_parameters()}, float(loss), found


def test_forward(answer, call):
    import warnings

    with torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, loss, plain = _one_pass(lambda model, ids: model(ids))
        got, other, found = _one_pass(lambda model, ids: _scores(answer, call, model, ids))
    if abs(loss - other) > 1e-5:
        raise Wrong(
            "The scores differ from those of the plain model: embed, both blocks, norm, head, all "
            "in float32."
        )
    lost = [name for name, gradient in got.items() if gradient is None]
    if lost:
        raise Wrong(
            f"{len(lost)} of {len(got)} gradients are None, {lost[0]} first. The graph is cut "
            "where a segment gets nothing that needs a gradient (ids never do), or where "
            "somebody detaches."
        )
    off = max((got[name] - g).abs().max().item() for name, g in expected.items())
    if off > 1e-5:
        raise Wrong(f"A gradient differs by {off:.1e} from that of the plain model.")
    limit = plain.bytes * 3 // 4
    if found.bytes > limit:
        raise Wrong(
            f"{found.bytes:,} bytes; the plain pass needs {plain.bytes:,}, and {limit:,} is asked "
            "for. Each block is a segment of its own: one large segment is rebuilt at once."
        )


def _scores(answer, call, model, ids):
    got = call(answer, model, ids)
    shape = (*ids.shape, len(addition.CHARACTERS))
    if not isinstance(got, torch.Tensor) or got.shape != shape:
        raise Wrong(f"Return the scores, a tensor of shape {shape}, got {_kind(got)}")
    return got


# --- 71.3 and 71.4 ------------------------------------------------------------------------


def _judge(answer, call, budget):
    # Sums may change here: a copy of them, to compare with, would count in the meter.
    with torch.enable_grad():
        found = contest.attempt(
            lambda model, sums: call(answer, model, sums, may_change=(0, 1)),
            budget,
            least=LEAST,
            seconds=SECONDS,
            label=answer.__name__,
        )
    if found.accepted:
        return
    reason, over = found.reasons[0], found.bytes > budget
    raise Wrong(f"{reason} {_advice(found) if over else _trained_badly(reason)}".strip())


def _advice(found):
    """Say what stands at the peak."""
    parts, rows = found.parts, found.rows
    activation, rebuilt = parts.get("activation", 0), parts.get("recomputed", 0)
    if rows > 1000:
        return f"The model saw {rows:,} sums at once. Evaluate in batches, or not here."
    if rows and activation > 90_000 * rows:
        return (
            "More activations are alive than one pass makes: losses were added up, so you "
            "accumulated graphs. Call backward for each micro-batch."
        )
    if rows and rebuilt > 45_000 * rows:
        return "Backward rebuilds the whole model at once: make each block a segment of its own."
    if activation + rebuilt < found.bytes // 10:
        return "Weights, gradients and Adam's moments are most of it: look at the step."
    made = activation + rebuilt + parts.get("temporary", 0)
    # Where a forward of the reader's own is called, or a second model, no rows were seen.
    whose = f"activations of {rows} rows" if rows else "activations and other tensors you made"
    return (
        f"{made:,} of them are {whose}: fewer rows at a time, fewer bytes in each number, or "
        f"fewer numbers kept. The other {found.bytes - made:,} are weights, gradients, moments "
        "and sums."
    )


def _trained_badly(reason):
    if "never moved" in reason:
        return "They have the right shapes, and nobody trained them."
    if "names differ" in reason:
        return "Wrap block.forward, not the block: a wrapper renames the parameters."
    if "right, not" in reason:
        return "More steps, a schedule that ends near 0, or another learning rate."
    return ""


def test_first_budget(answer, call):
    _judge(answer, call, BUDGETS["71.3"])


def test_second_budget(answer, call):
    _judge(answer, call, BUDGETS["71.4"])


# --- 71.5 -------------------------------------------------------------------------------

SPLITS = ("none", "ZeRO-1", "FSDP2", "FSDP2, root only")
STEPS = 400


@cache
def run_ranks(recipe):
    """Count a recipe on two ranks; within the budget, train it.

    Parameters
    ----------
    recipe : str
        As JSON.

    Returns
    -------
    tuple of dict
        For each rank: bytes, parts, and where it trained, accuracy and moved.
    """
    arguments = [f"[{recipe}]", BUDGETS["71.5"], STEPS]
    launch = torchrun("scripts/budget_ranks.py", arguments, timeout=SECONDS)
    if launch.outcome == "timed out":
        raise Wrong(
            f"The ranks were not done after {SECONDS} s. Fewer micro-batches are fewer passes; a "
            "busy machine needs longer: close what else runs, then run the cell again."
        )
    return tuple(found[0] for found in launch.by_rank("recipes"))


def test_ranks(answer, call):
    for name, value in answer.items():
        if name in ("checkpoint", "bfloat16") and not isinstance(value, bool):
            raise Wrong(f"{name} must be True or False, got {value!r}.")
    if answer["split"] not in SPLITS:
        raise Wrong(f"split must be one of {', '.join(SPLITS)}, got {answer['split']!r}.")
    parts = answer["micro_batches"]
    if type(parts) is not int or parts not in (1, 2, 4, 8, 16, 32):
        raise Wrong(f"micro_batches must divide the 32 rows of a rank, got {parts!r}.")
    if answer["split"] == "none":
        raise Wrong(
            "Undivided, a rank holds weights, gradients and both moments: "
            f"{format_bytes(4 * 408_880)}, and buckets and activations on top. Divide something."
        )
    ranks = run_ranks(json.dumps(answer | {"fused": True}, sort_keys=True))
    most = max(rank["bytes"] for rank in ranks)
    if most > BUDGETS["71.5"]:
        raise Wrong(
            f"A rank needs {most:,} bytes, the budget is {BUDGETS['71.5']:,}. {_why(answer)}"
        )
    if ranks[0]["moved"] < 30 or ranks[0]["accuracy"] < LEAST:
        moved, accuracy = ranks[0]["moved"], ranks[0]["accuracy"]
        raise Wrong(f"{moved} of 30 tensors moved, {accuracy:.1%} of the held-out sums are right.")


def _why(recipe):
    if recipe["split"].endswith("root only"):
        return "As one unit the whole model is gathered at once: shard each block."
    if 32 // recipe["micro_batches"] > 8:
        return "Activations are not divided: take smaller micro-batches."
    if recipe["split"] == "FSDP2" and not recipe["bfloat16"]:
        return "A block is gathered whole, with its whole gradient: send half as many bytes of it."
    if recipe["split"] == "ZeRO-1" and recipe["bfloat16"] and not recipe["checkpoint"]:
        return (
            "Autocast keeps a half-size copy of each weight until backward is through. With so few "
            "rows that is more than it saves: segments, or no bfloat16."
        )
    return "What one micro-batch keeps is still too much: segments, or smaller micro-batches."


# --- stored answers ---------------------------------------------------------------------

_ACCEPTANCE = """\
def acceptance(before, after, accuracy):
    \"\"\"Return a list of reasons to reject; empty if there is none.\"\"\"
"""
_NAMES = """\
    if set(before) != set(after):
        return ["the names differ"]
"""
_SHAPES = """\
    reasons = [n for n in before if before[n].shape != after[n].shape]
    if reasons:
        return reasons
"""
_EACH = """\
    reasons += [n for n in before if torch.equal(before[n], after[n])]
"""
_FINITE = """\
    reasons += [n for n in after if not after[n].isfinite().all()]
"""
_LEAST = """\
    if accuracy < 0.9:
        reasons.append("too few right")
    return reasons
"""

_SEGMENTS = "from torch.utils.checkpoint import checkpoint\n\n\n"
_FORWARD_STUB = """\
def forward(model, ids):
    def first(ids):
        return model.blocks[0](model.embed(ids))

    x = checkpoint(first, ids, use_reentrant=True)
    x = checkpoint(model.blocks[1], x, use_reentrant=True)
    return model.head(model.norm(x))
"""

_HEAD = """\
import torch
from functools import partial
from torch.utils.checkpoint import checkpoint
from helpers import addition, contest


"""
_STARTER = """\
def {name}(model, sums):
    options = {{"lr": 5e-3, "betas": (0.9, 0.99), "fused": True}}
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=400)
    for _ in range(400):
        batch = sums[torch.randint(len(sums), (128,))]
        addition.loss(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
        cycle.step()
    return model
"""
_SMALL, _SMALLER = (_STARTER.format(name=name) for name in ("train_small", "train_smaller"))
_SEGMENT = (
    "    for block in model.blocks:\n"
    "        block.forward = partial(checkpoint, block.forward, use_reentrant=False)\n"
)
_LOOP = "    for _ in range(400):\n"
_STEP = "        addition.loss(model, batch).backward()\n"
_RETURN = "    return model\n"
_CAST = (
    '        with torch.autocast("cpu", dtype=torch.bfloat16):\n'
    "            loss = addition.loss(model, batch)\n"
    "        loss.backward()\n"
)
_BATCH_32 = (("(128,)", "(32,)"), ("=400", "=500"), ("range(400)", "range(500)"))


def _changed(source, *changes):
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def _wrong(stub, name, says, *changes):
    return WrongAnswer(name, _HEAD + _changed(stub, *changes), says)


def _wrong_trainings(stub):
    """Return what goes wrong under any budget; each is found within a few steps."""
    few = (("=400", "=4"), ("range(400)", "range(4)"), ("(128,)", "(8,)"))
    parts = (
        "        total = sum(addition.loss(model, part) for part in batch.chunk(8))\n"
        "        (total / 8).backward()\n"
    )
    frozen = "    model.token.requires_grad_(False)\n" + _LOOP.replace("400", "4")
    wrapped = "    model.blocks[0] = torch.nn.Sequential(model.blocks[0])\n"
    every = "    with torch.no_grad():\n        addition.loss(model, sums)\n" + _RETURN
    return (
        _wrong(stub, "one segment", "rebuilds the whole model at once",
               (_STEP, "        whole = lambda ids: checkpoint(model, ids, use_reentrant=False)\n"
                "        addition.loss(whole, batch).backward()\n")),
        _wrong(stub, "sums of losses", "accumulated graphs", (_STEP, parts)),
        _wrong(stub, "evaluates everything at once", "sums at once", *few, (_RETURN, every)),
        _wrong(stub, "a frozen table", "nobody trained them", few[0], few[2],
               (_LOOP, frozen)),
        _wrong(stub, "a wrapper", "renames the parameters", *few, (_RETURN, wrapped + _RETURN)),
        _wrong(stub, "nothing returned", "got NoneType", *few, (_RETURN, "")),
        _wrong(stub, "four steps", "More steps", *few),
    )  # fmt: skip


_RANKS = """\
recipe = {{
    "split": {split!r},
    "micro_batches": {micro_batches!r},
    "checkpoint": {checkpoint!r},
    "bfloat16": {bfloat16!r},
}}
"""


def _recipe(split="FSDP2", micro_batches=4, checkpoint=True, bfloat16=False):
    return _RANKS.format(
        split=split, micro_batches=micro_batches, checkpoint=checkpoint, bfloat16=bfloat16
    )


EXERCISES = {
    "71.1": Exercise(
        title="Write the acceptance test",
        minutes=8,
        task="`before` and `after` hold parameters by name. Return reasons (texts) to reject: a "
        "tensor that equals its start, one with nan or inf, a name or shape that differs, an "
        "accuracy below 0.9. Return an empty list if all is well.",
        stub=_ACCEPTANCE + "    ...\n",
        answer="acceptance",
        test=test_acceptance,
        hints=(
            "One tensor of many is enough to reject. What must be compared before values can be?",
            "nan differs from nan, so a tensor full of them has moved.",
            "if set(before) != set(after): return [...]",
        ),
        solution=_ACCEPTANCE + _NAMES + _SHAPES + _EACH + _FINITE + _LEAST,
        wrong=(
            WrongAnswer(
                "accuracy alone",
                _ACCEPTANCE + "    return [] if accuracy >= 0.9 else ['too few right']\n",
                "An accuracy says nothing",
            ),
            WrongAnswer(
                "any moved",
                _ACCEPTANCE
                + _NAMES
                + _SHAPES
                + "    if all(torch.equal(before[n], after[n]) for n in before):\n"
                "        reasons.append('nothing moved')\n" + _FINITE + _LEAST,
                "Look at each tensor by itself",
            ),
            WrongAnswer(
                "nan has moved",
                _ACCEPTANCE + _NAMES + _SHAPES + _EACH + _LEAST,
                "ask isfinite",
            ),
            WrongAnswer(
                "a missing name raises",
                _ACCEPTANCE + "    reasons = []\n" + _EACH + _FINITE + _LEAST,
                "raises KeyError",
            ),
            WrongAnswer(
                "names one way",
                _ACCEPTANCE
                + "    if set(before) - set(after):\n        return ['missing']\n"
                + _SHAPES
                + _EACH
                + _FINITE.replace("in after", "in before")
                + _LEAST,
                "in both directions",
            ),
            WrongAnswer(
                "names counted",
                _ACCEPTANCE
                + _NAMES.replace("set(before) != set(after)", "len(before) != len(after)")
                + "    after = dict(zip(before, after.values()))\n"
                + _SHAPES
                + _EACH
                + _FINITE
                + _LEAST,
                "Compare the names, not the count",
            ),
            WrongAnswer(
                "numel compared",
                _ACCEPTANCE
                + _NAMES
                + _SHAPES.replace(
                    "before[n].shape != after[n].shape", "before[n].numel() != after[n].numel()"
                )
                + _EACH
                + _FINITE
                + _LEAST,
                "Compare shapes, not numel",
            ),
            *(
                WrongAnswer(
                    name,
                    _ACCEPTANCE
                    + _NAMES
                    + _SHAPES
                    + _EACH.replace("torch.equal(before[n], after[n])", test)
                    + _FINITE
                    + _LEAST,
                    says,
                )
                for name, test, says in (
                    ("one number stays", "(before[n] == after[n]).any()", "the others moved"),
                    ("sums", "torch.isclose(before[n].sum(), after[n].sum())", "traded places"),
                    ("close is equal", "torch.allclose(before[n], after[n])", "by a millionth"),
                )
            ),
            WrongAnswer(
                "shapes not compared",
                _ACCEPTANCE + _NAMES + "    reasons = []\n" + _EACH + _FINITE + _LEAST,
                "Compare the shapes",
            ),
            WrongAnswer(
                "strictly above",
                _ACCEPTANCE + _NAMES + _SHAPES + _EACH + _FINITE + _LEAST.replace("<", "<="),
                "0.9 being enough",
            ),
            WrongAnswer("a boolean", _ACCEPTANCE + "    return True\n", "Return a list of texts"),
            WrongAnswer("nothing", _ACCEPTANCE + "    reasons = []\n", "got None"),
        ),
    ),
    "71.2": Exercise(
        title="Repair a forward pass",
        minutes=6,
        task="This pass needs few bytes, and most of the model gets no gradient. Repair it: all "
        "gradients as those of `model(ids)`, and at most three quarters of its peak.",
        stub=_FORWARD_STUB,
        answer="forward",
        test=test_forward,
        hints=(
            "Which input of the first segment needs a gradient?",
            "Print the names of the parameters whose .grad is None after backward.",
            "checkpoint(first, ids, use_reentrant=False)",
        ),
        solution=_SEGMENTS + _FORWARD_STUB.replace("use_reentrant=True", "use_reentrant=False"),
        wrong=(
            WrongAnswer(
                "plain",
                "def forward(model, ids):\n    return model(ids)\n",
                "a segment of its own",
            ),
            WrongAnswer(
                "one segment",
                _SEGMENTS + "def forward(model, ids):\n"
                "    return checkpoint(model, ids, use_reentrant=False)\n",
                "one large segment is rebuilt",
            ),
            WrongAnswer(
                "the second alone",
                _SEGMENTS + _FORWARD_STUB[::-1].replace("eurT", "eslaF", 1)[::-1],
                "ids never do",
            ),
            WrongAnswer(
                "detached",
                _SEGMENTS + "def forward(model, ids):\n    x = model.embed(ids).detach()\n"
                "    for block in model.blocks:\n"
                "        x = checkpoint(block, x, use_reentrant=False)\n"
                "    return model.head(model.norm(x))\n",
                "somebody detaches",
            ),
            WrongAnswer(
                "without norm",
                _SEGMENTS
                + _FORWARD_STUB.replace("use_reentrant=True", "use_reentrant=False").replace(
                    "model.norm(x)", "x"
                ),
                "The scores differ",
            ),
            WrongAnswer("nothing", "def forward(model, ids):\n    model(ids)\n", "got None"),
        ),
        limit=30.0,
    ),
    "71.3": Exercise(
        title="Meet the first budget",
        minutes=8,
        task="`train_small` needs more than twice 4.5 MiB. Change it: peak at most 4.5 MiB, all "
        "tensors trained, at least 90 % of the held-out sums right, within 110 seconds. Any means; "
        "several recipes pass.",
        stub=_SMALL,
        answer="train_small",
        test=test_first_budget,
        hints=(
            "What has as many rows as the batch is most of the peak. One lever is enough.",
            "Price a recipe in three steps before you train it whole: few_steps(batch=64), above. "
            "It takes parts=, cast= and prepare=, too.",
            "batch = sums[torch.randint(len(sums), (32,))]",
        ),
        solution=_HEAD + _changed(_SMALL, *_BATCH_32),
        wrong=_wrong_trainings(_SMALL),
        limit=120.0,
    ),
    "71.4": Exercise(
        title="Meet the second budget",
        minutes=12,
        task="The same contract with 2.5 MiB: weights, moments and gradients in float32 take most "
        "of it, and what is left is for activations. Several recipes pass.",
        stub=_SMALLER,
        answer="train_smaller",
        test=test_second_budget,
        hints=(
            "Weights, moments and gradients take 1.56 MiB of it. The rest is for activations.",
            "Fewer rows still, with more steps; or two levers that take different bytes: fewer "
            "rows, and fewer bytes or numbers for each.",
            _SEGMENT.splitlines()[-1].strip(),
        ),
        solution=_HEAD
        + _changed(_SMALLER, *_BATCH_32, (_STEP, _CAST)).replace(
            "    for _ in range", _SEGMENT + "    for _ in range"
        ),
        wrong=(
            *_wrong_trainings(_SMALLER),
            _wrong(_SMALLER, "fewer rows alone", "activations of 32 rows", ("(128,)", "(32,)")),
        ),
        limit=120.0,
    ),
    "71.5": Exercise(
        title="Meet a budget for each rank",
        minutes=8,
        task="Two ranks, 32 rows each, fused Adam. Choose: `split` (none, ZeRO-1, FSDP2, or "
        "FSDP2, root only), `micro_batches`, and two booleans. Each rank may hold 1.625 MiB; both "
        "together reach 90 %. Several recipes pass.",
        stub='recipe = {\n    "split": ...,\n    "micro_batches": ...,\n    "checkpoint": ...,\n'
        '    "bfloat16": ...,\n}\n',
        answer="recipe",
        test=test_ranks,
        hints=(
            "Which copies does each split divide? It stands above the prediction of the ranks.",
            "Activations belong to the rank's own rows: no split divides them.",
            'FSDP2 with "micro_batches": 4, and what is gathered in half as many bytes.',
        ),
        solution=_recipe(micro_batches=4, checkpoint=False, bfloat16=True),
        wrong=(
            WrongAnswer("undivided", _recipe("none", 8, True, True), "Divide something"),
            WrongAnswer("root only", _recipe("FSDP2, root only", 4, False), "shard each block"),
            WrongAnswer("all rows", _recipe("FSDP2", 1, False), "not divided: take smaller"),
            WrongAnswer(
                "autocast for few rows", _recipe("ZeRO-1", 8, False, True), "more than it saves"
            ),
            WrongAnswer("in text", _recipe(micro_batches="4"), "must divide the 32 rows"),
            WrongAnswer("a number for yes", _recipe(checkpoint=1), "must be True or False"),
            WrongAnswer("another split", _recipe("DDP"), "split must be one of"),
        ),
        limit=120.0,
    ),
}
