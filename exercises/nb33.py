"""Ask and check what 33_split_a_model teaches.

No check starts a process: ranks are parts of tensors, or letters in a text.
"""

import numpy as np
import torch
from torch import nn

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "33.p1": Choice(
        question="Four devices hold a quarter of the layers each; the whole batch goes through "
        "them. How fast is a step, against one device that holds all layers?",
        options={
            "4 times as fast": "That would be so if all four worked at once. Look at what stage 1 "
            "needs before it can begin.",
            "2 times as fast": "Forward and backward do not overlap either: the gradient starts "
            "where the activations end.",
            "no faster": "Right: one works, three wait.",
        },
    ),
    "33.p2": Choice(
        question="1F1B against GPipe, with 4 stages and 8 micro-batches each: what does its order "
        "change?",
        options={
            "the time": "Both have to fill and drain the pipeline once, and that is all the idle "
            "time there is.",
            "the memory": "Right: an early backward frees what a forward has kept.",
            "the time and the memory": "Memory it is. The idle time is that of filling and "
            "draining, and no order of these passes avoids it.",
            "neither": "Count the forwards whose backward has not come yet.",
        },
    ),
    "33.p3": Number(
        question="ZeRO-1 on 4 ranks, with Adam. How many bytes of parameters, gradients and "
        "optimizer state does a rank hold between two steps, as a multiple of the parameters'?",
        unit="ratio",
        notes=(
            (0, 1.2, "A quarter of everything is FSDP2. ZeRO-1 divides one category of three."),
            (1.2, 2.2, "Parameters and gradients stay whole: that alone is two."),
            (2.2, 2.8, "Right: parameters and gradients whole, a quarter of two moments."),
            (2.8, 3.5, "Adam has two moments, and each rank holds a quarter of them."),
            (3.5, 1e9, "That is DDP, where every rank holds all of it."),
        ),
    ),
    "33.p4": Choice(
        question="Each of 4 ranks stores a quarter of everything, by one call of fully_shard on "
        "the whole model. What is the peak of a step, against one process?",
        options={
            "a quarter": "That is what is stored. To compute, a layer needs whole weights.",
            "about half": "It would be, if few layers were whole at a time.",
            "more than two thirds": "Right: all layers are whole at once.",
        },
    ),
    "33.p5": Number(
        question="FSDP2 with each block as a unit: the bytes a rank sends in a step, divided by "
        "those of DDP?",
        unit="ratio",
        notes=(
            (0, 0.9, "Each rank stores less, and so has to ask for more."),
            (0.9, 1.2, "An all-reduce is a reduce-scatter and an all-gather. FSDP2 gathers in "
             "forward and again in backward."),
            (1.2, 1.8, "Right: two all-gathers and a reduce-scatter, against two turns."),
            (1.8, 1e9, "An all-reduce costs two turns of the ring itself, and this costs three."),
        ),
    ),
    "33.p6": Choice(
        question="Adam is built first, then the model is cut for tensor parallelism. 20 steps "
        "follow on one batch. What do you see?",
        options={
            "an error": "The optimizer has parameters, and they exist. Nobody asks whether the "
            "model still uses them.",
            "the loss stays where it was": "It would with FSDP2, which replaces every parameter.",
            "the loss falls": "Right, and that is the trouble.",
        },
    ),
}  # fmt: skip


def _kind(value):
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


# --- 33.1 -------------------------------------------------------------------------------


def _held(rows, world_size, method, moments):
    """Count the bytes of rank 0 from real tensors that are divided like those of the method."""
    tensors = [torch.zeros(n) for n in rows]
    parts = [t.chunk(world_size)[0] for t in tensors]
    whole = sum(t.nbytes for t in tensors)
    part = sum(t.nbytes for t in parts)
    stays, states = {
        "DDP": (whole, whole),
        "ZeRO-1": (whole, part),
        "FSDP2": (part, part),
    }[method]
    return stays, stays, moments * states


def test_bytes_per_rank(answer, call):
    for _ in range(3):
        world_size = int(np.random.randint(2, 9))
        rows = [int(n) * world_size for n in np.random.randint(3, 30, 4)]
        whole = 4 * sum(rows)
        for method in ("DDP", "ZeRO-1", "FSDP2"):
            for moments in (2, 1, 0):
                got = call(answer, whole, world_size, method, moments)
                want = _held(rows, world_size, method, moments)
                _look_at_bytes(got, want, f"{method}, {world_size} ranks, {moments} moments: ")
            got = call(answer, whole, world_size, method)
            if tuple(got) != _held(rows, world_size, method, 2):
                raise Wrong("Without moments= count Adam's two: keep the default.")


def _look_at_bytes(got, want, case):
    if not isinstance(got, tuple | list) or len(got) != 3:
        raise Wrong(f"Return (parameters, gradients, optimizer) in bytes, got {_kind(got)}")
    if not all(isinstance(part, int | float | np.number) for part in got):
        raise Wrong(f"Return three numbers of bytes, got {got!r}.")
    for name, mine, right in zip(("parameters", "gradients", "optimizer"), got, want, strict=True):
        if mine != right:
            raise Wrong(f"{case}{name} are {right:,} bytes, got {mine:,}. {_WHY[name]}")


_WHY = {
    "parameters": "DDP and ZeRO-1 keep all parameters on every rank. What is gathered for a "
    "moment is not stored.",
    "gradients": "Gradients are divided where the parameters are, and nowhere else.",
    "optimizer": "The optimizer holds one tensor like the parameters for each moment; all methods "
    "but DDP divide them.",
}


# --- 33.2 -------------------------------------------------------------------------------


def test_partial_results(answer, call):
    for _ in range(3):
        n, share = (int(v) for v in np.random.randint(2, 5, 2))
        sizes = {"rows": 3, "in": 2 * n, "hidden": n * (share + 1), "out": 3 * n}
        x, w1, b1, w2, b2 = _layers(sizes)
        parts = call(answer, x, w1, b1, w2, b2, n)
        if not isinstance(parts, list | tuple) or len(parts) != n:
            raise Wrong(f"Return a list with one tensor for each of {n} ranks, got {_kind(parts)}")
        shape = (sizes["rows"], sizes["out"])
        for part in parts:
            if not isinstance(part, torch.Tensor) or tuple(part.shape) != shape:
                raise Wrong(
                    f"Each part must be a tensor of the shape of the output, {shape}, got "
                    f"{tuple(part.shape) if isinstance(part, torch.Tensor) else _kind(part)} "
                    "Partial results are added, not joined."
                )
        _look_at_sum(sum(parts).double(), (x, w1, b1, w2, b2), n)
        _look_at_shares(parts, w1, w2, n)


def _layers(sizes):
    """Draw an input and two layers; the weights remember which part reads them."""
    shapes = [("rows", "in"), ("in", "hidden"), ("hidden",), ("hidden", "out"), ("out",)]
    x, *rest = [torch.randn([sizes[k] for k in s], dtype=torch.float64) for s in shapes]
    return x, *(t.requires_grad_() for t in rest)


def _look_at_sum(got, layers, n):
    x, w1, b1, w2, b2 = layers
    want = (x @ w1 + b1).clamp(min=0) @ w2 + b2
    if torch.allclose(got, want):
        return
    if torch.allclose(got, want + (n - 1) * b2):
        raise Wrong(
            f"The sum is off by {n - 1} · b2: every rank added it. Add b2 on one rank only."
        )
    if torch.allclose(got, want - b2):
        raise Wrong("The sum lacks b2: add it on one rank.")
    if torch.allclose(got, (x @ w1 + b1) @ w2 + b2):
        raise Wrong("The sum lacks the relu between the layers: apply it to each part of hidden.")
    raise Wrong(
        "The parts do not add up to the output. relu(a) + relu(b) is not relu(a + b): a rank needs "
        "whole columns of hidden before relu, with their part of b1. Cut w1 by columns, w2 by rows."
    )


def _look_at_shares(parts, w1, w2, n):
    for name, weight in (("w1", w1), ("w2", w2)):
        for rank, part in enumerate(parts):
            count = _read(part, weight, 0 if name == "w1" else 1)
            if count > len(w2) // n:
                raise Wrong(
                    f"Rank {rank} reads {count} of {len(w2)} hidden units of {name}: with {n} "
                    f"ranks each should hold {len(w2) // n}. Cut first, then compute."
                )


def _read(part, weight, dim):
    """Count the hidden units whose weights a part depends on."""
    loss = part.double().square().sum()
    if not loss.requires_grad:
        return 0
    (gradient,) = torch.autograd.grad(loss, weight, retain_graph=True, allow_unused=True)
    return 0 if gradient is None else int((gradient != 0).any(dim=dim).sum())


# --- 33.3 -------------------------------------------------------------------------------


def _reference_order(rank, stages, micro_batches):
    """Do a backward as soon as as many forwards are open as there are stages from here on."""
    order, forwards, backwards = "", 0, 0
    while backwards < micro_batches:
        room = forwards - backwards < stages - rank
        order += "F" if room and forwards < micro_batches else "B"
        forwards, backwards = order.count("F"), order.count("B")
    return order


def test_one_f_one_b(answer, call):
    stages = int(np.random.randint(3, 6))
    more = int(np.random.randint(stages + 1, 11))
    for micro_batches in (more, 2, stages, 1):
        for rank in range(stages):
            got = call(answer, rank, stages, micro_batches)
            case = f"Stage {rank} of {stages}, {micro_batches} micro-batches: "
            _look_at_order(got, rank, stages, micro_batches, case)


def _look_at_order(got, rank, stages, micro_batches, case):
    if not isinstance(got, str) or set(got) - set("FB"):
        raise Wrong(f"Return a text of F and B, got {got if isinstance(got, str) else _kind(got)}")
    if got.count("F") != micro_batches:
        raise Wrong(f"{case}{got.count('F')} forwards in {got!r}. There is one for each.")
    if got.count("B") != micro_batches:
        raise Wrong(
            f"{case}{got.count('B')} backwards in {got!r}. Drain the pipeline at the end: each "
            "forward has its backward."
        )
    open_after = np.cumsum([1 if letter == "F" else -1 for letter in got])
    if open_after.min() < 0:
        raise Wrong(f"{case}{got!r} has a B before its F.")
    if open_after.max() > stages - rank:
        raise Wrong(
            f"{case}{got!r} keeps {open_after.max()} micro-batches alive. {stages - rank} are "
            "enough: by then the first gradient can be back. The later the stage, the fewer."
        )
    if got != _reference_order(rank, stages, micro_batches):
        raise Wrong(
            f"{case}{got!r} waits for a gradient that is still on its way. Open "
            f"{min(stages - rank, micro_batches)} forwards first, then alternate, B before F."
        )


# --- 33.4 -------------------------------------------------------------------------------


def _network():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 2))


def _swap(model, name):
    """Put an equal parameter in the place of one, as a wrapper does."""
    layer, _, attribute = name.rpartition(".")
    old = getattr(model.get_submodule(layer), attribute)
    setattr(model.get_submodule(layer), attribute, nn.Parameter(old.detach().clone()))


def _cases():
    """Yield a model, its optimizer, the names that it trains no more, and what is special."""
    for swapped in ((), ("0.weight", "2.bias"), ("0.weight", "0.bias", "2.weight", "3.weight")):
        model = _network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for name in swapped:
            _swap(model, name)
        yield model, optimizer, list(swapped), "an optimizer built before parameters are replaced"
    model = _network()
    model[0].requires_grad_(False)
    trainable = [p for p in model.parameters() if p.requires_grad]
    yield model, torch.optim.SGD(trainable, lr=0.1), [], "a frozen layer"
    model = _network()
    groups = [{"params": model[0].parameters()}, {"params": model[2:].parameters(), "lr": 1.0}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    _swap(model, "3.bias")
    yield model, optimizer, ["3.bias"], "two parameter groups"
    model = _network()
    model[2].weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    yield model, optimizer, [], "tied weights"


def test_ghosts(answer, call):
    for model, optimizer, want, case in _cases():
        got = call(answer, model, optimizer)
        if not isinstance(got, list | tuple | set) or not all(isinstance(n, str) for n in got):
            raise Wrong(f"Return a list of names of parameters, got {_kind(got)}")
        names = [name for name, _ in model.named_parameters()]
        extra = sorted(set(got) - set(want))
        if extra and extra[0] not in names:
            raise Wrong(f"{extra[0]!r} is no name of a parameter: take named_parameters().")
        if extra and case == "a frozen layer":
            raise Wrong(
                f"{extra[0]} is frozen on purpose: requires_grad is False. Nobody has to update it."
            )
        if extra:
            raise Wrong(f"With {case}, {extra[0]} is updated by a group. Look in every group.")
        missing = [name for name in want if name not in got]
        if missing:
            raise Wrong(
                f"With {case}, {missing[0]} is missing: the optimizer holds an equal tensor, but "
                "not this one. Compare who they are, not their shape, number or values."
            )


EXERCISES = {
    "33.1": Exercise(
        title="Count what a rank holds",
        minutes=5,
        task="Return the bytes that one rank holds between two steps, as (parameters, gradients, "
        "optimizer). The method is DDP, ZeRO-1 or FSDP2; every tensor divides evenly. The "
        "optimizer keeps moments tensors like the parameters.",
        stub="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    return ...
""",
        answer="bytes_per_rank",
        test=test_bytes_per_rank,
        hints=(
            "Three categories, and each is either whole on every rank or divided by world_size.",
            "ZeRO-1 on 4 ranks with Adam: 1 + 1 + 2 / 4 times the parameters.",
            'part = parameter_bytes // world_size if method == "FSDP2" else parameter_bytes',
        ),
        solution="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    shard = parameter_bytes // world_size
    held = shard if method == "FSDP2" else parameter_bytes
    state = parameter_bytes if method == "DDP" else shard
    return held, held, moments * state
""",
        wrong=(
            WrongAnswer(
                name="divides everything in ZeRO-1",
                source="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    held = parameter_bytes if method == "DDP" else parameter_bytes // world_size
    return held, held, moments * held
""",
                says="DDP and ZeRO-1 keep all parameters",
            ),
            WrongAnswer(
                name="divides gradients in ZeRO-1",
                source="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    shard = parameter_bytes // world_size
    held = shard if method == "FSDP2" else parameter_bytes
    state = parameter_bytes if method == "DDP" else shard
    return held, state, moments * state
""",
                says="Gradients are divided where the parameters are",
            ),
            WrongAnswer(
                name="one moment",
                source="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    shard = parameter_bytes // world_size
    held = shard if method == "FSDP2" else parameter_bytes
    return held, held, parameter_bytes if method == "DDP" else shard
""",
                says="one tensor like the parameters for each moment",
            ),
            WrongAnswer(
                name="counts what is gathered",
                source="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    shard = parameter_bytes // world_size
    state = parameter_bytes if method == "DDP" else shard
    return parameter_bytes, shard if method == "FSDP2" else parameter_bytes, moments * state
""",
                says="gathered for a moment is not stored",
            ),
            WrongAnswer(
                name="a total",
                source="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    return (2 + moments) * parameter_bytes
""",
                says="Return (parameters, gradients, optimizer)",
            ),
            WrongAnswer(
                name="texts",
                source="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=2):
    return "P", "P", "2 P"
""",
                says="three numbers of bytes",
            ),
            WrongAnswer(
                name="another default",
                source="""\
def bytes_per_rank(parameter_bytes, world_size, method, moments=1):
    shard = parameter_bytes // world_size
    held = shard if method == "FSDP2" else parameter_bytes
    state = parameter_bytes if method == "DDP" else shard
    return held, held, moments * state
""",
                says="keep the default",
            ),
        ),
    ),
    "33.2": Exercise(
        title="Cut two layers so that one sum is enough",
        minutes=8,
        task="The output is relu(x @ w1 + b1) @ w2 + b2. Return what each of n ranks computes from "
        "its own n-th of the hidden units: a list of n tensors that add up to the output. hidden "
        "divides by n.",
        stub="""\
def partial_results(x, w1, b1, w2, b2, n):
    return ...
""",
        answer="partial_results",
        test=test_partial_results,
        hints=(
            "Each rank needs some hidden units whole: all of the input, a part of the columns.",
            "With two hidden units on two ranks, h @ w2 is h[:, :1] @ w2[:1] + h[:, 1:] @ w2[1:].",
            "for a, b, c in zip(w1.chunk(n, dim=1), b1.chunk(n), w2.chunk(n), strict=True):",
        ),
        solution="""\
def partial_results(x, w1, b1, w2, b2, n):
    cut = zip(w1.chunk(n, dim=1), b1.chunk(n), w2.chunk(n), strict=True)
    parts = [(x @ a + b).clamp(min=0) @ c for a, b, c in cut]
    return [parts[0] + b2, *parts[1:]]
""",
        wrong=(
            WrongAnswer(
                name="b2 on every rank",
                source="""\
def partial_results(x, w1, b1, w2, b2, n):
    cut = zip(w1.chunk(n, dim=1), b1.chunk(n), w2.chunk(n), strict=True)
    return [(x @ a + b).clamp(min=0) @ c + b2 for a, b, c in cut]
""",
                says="Add b2 on one rank only",
            ),
            WrongAnswer(
                name="b2 on no rank",
                source="""\
def partial_results(x, w1, b1, w2, b2, n):
    cut = zip(w1.chunk(n, dim=1), b1.chunk(n), w2.chunk(n), strict=True)
    return [(x @ a + b).clamp(min=0) @ c for a, b, c in cut]
""",
                says="The sum lacks b2",
            ),
            WrongAnswer(
                name="cuts the rows of w1",
                source="""\
def partial_results(x, w1, b1, w2, b2, n):
    cut = zip(x.chunk(n, dim=1), w1.chunk(n), strict=True)
    parts = [(part @ a + b1 / n).clamp(min=0) @ w2 for part, a in cut]
    return [parts[0] + b2, *parts[1:]]
""",
                says="relu(a) + relu(b) is not relu(a + b)",
            ),
            WrongAnswer(
                name="no relu",
                source="""\
def partial_results(x, w1, b1, w2, b2, n):
    cut = zip(w1.chunk(n, dim=1), b1.chunk(n), w2.chunk(n), strict=True)
    parts = [(x @ a + b) @ c for a, b, c in cut]
    return [parts[0] + b2, *parts[1:]]
""",
                says="lacks the relu",
            ),
            WrongAnswer(
                name="cuts the columns of both",
                source="""\
def partial_results(x, w1, b1, w2, b2, n):
    hidden = (x @ w1 + b1).clamp(min=0)
    return [hidden @ c + b for c, b in zip(w2.chunk(n, dim=1), b2.chunk(n), strict=True)]
""",
                says="added, not joined",
            ),
            WrongAnswer(
                name="everything on rank 0",
                source="""\
def partial_results(x, w1, b1, w2, b2, n):
    whole = (x @ w1 + b1).clamp(min=0) @ w2 + b2
    return [whole, *[torch.zeros_like(whole)] * (n - 1)]
""",
                says="Cut first, then compute",
            ),
            WrongAnswer(
                name="the sum",
                source="""\
def partial_results(x, w1, b1, w2, b2, n):
    return (x @ w1 + b1).clamp(min=0) @ w2 + b2
""",
                says="one tensor for each of",
            ),
        ),
    ),
    "33.3": Exercise(
        title="Write the order of 1F1B",
        minutes=8,
        task="Return the passes of one stage as a text of F and B. It keeps at most stages - rank "
        "micro-batches alive, takes as many forwards first as that allows, and then a backward "
        "whenever it can. There may be fewer micro-batches than stages.",
        stub="""\
def one_f_one_b(rank, stages, micro_batches):
    return ...
""",
        answer="one_f_one_b",
        test=test_one_f_one_b,
        hints=(
            "Three phases: forwards only, pairs of one backward and one forward, backwards only.",
            "Stage 0 of 2 with 4 micro-batches: two forwards, then B F, B F, then two backwards.",
            "first = min(stages - rank, micro_batches)",
        ),
        solution="""\
def one_f_one_b(rank, stages, micro_batches):
    first = min(stages - rank, micro_batches)
    return "F" * first + "BF" * (micro_batches - first) + "B" * first
""",
        wrong=(
            WrongAnswer(
                name="GPipe",
                source="""\
def one_f_one_b(rank, stages, micro_batches):
    return "F" * micro_batches + "B" * micro_batches
""",
                says="enough: by then the first gradient",
            ),
            WrongAnswer(
                name="every rank opens as many",
                source="""\
def one_f_one_b(rank, stages, micro_batches):
    first = min(stages, micro_batches)
    return "F" * first + "BF" * (micro_batches - first) + "B" * first
""",
                says="The later the stage, the fewer",
            ),
            WrongAnswer(
                name="fewer micro-batches than stages",
                source="""\
def one_f_one_b(rank, stages, micro_batches):
    first = stages - rank
    return "F" * first + "BF" * (micro_batches - first) + "B" * first
""",
                says="There is one for each",
            ),
            WrongAnswer(
                name="does not drain",
                source="""\
def one_f_one_b(rank, stages, micro_batches):
    first = min(stages - rank, micro_batches)
    return "F" * first + "BF" * (micro_batches - first)
""",
                says="Drain the pipeline",
            ),
            WrongAnswer(
                name="one by one",
                source="""\
def one_f_one_b(rank, stages, micro_batches):
    return "FB" * micro_batches
""",
                says="still on its way",
            ),
            WrongAnswer(
                name="backward first",
                source="""\
def one_f_one_b(rank, stages, micro_batches):
    return "BF" * micro_batches
""",
                says="a B before its F",
            ),
            WrongAnswer(
                name="a list",
                source="""\
def one_f_one_b(rank, stages, micro_batches):
    return ["F", "B"] * micro_batches
""",
                says="a text of F and B, got list",
            ),
        ),
    ),
    "33.4": Exercise(
        title="Find what no optimizer trains",
        minutes=6,
        task="Return the names of the model's parameters that ask for a gradient and that no group "
        "of the optimizer updates.",
        stub="""\
def ghosts(model, optimizer):
    return ...
""",
        answer="ghosts",
        test=test_ghosts,
        hints=(
            "Two tensors with equal values may be two tensors. What tells one object from another?",
            "A parameter in the second group is trained; a frozen one is not meant to be.",
            'trained = {id(p) for group in optimizer.param_groups for p in group["params"]}',
        ),
        solution="""\
def ghosts(model, optimizer):
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [
        name
        for name, p in model.named_parameters()
        if p.requires_grad and id(p) not in trained
    ]
""",
        wrong=(
            WrongAnswer(
                name="compares shapes",
                source="""\
def ghosts(model, optimizer):
    shapes = {p.shape for group in optimizer.param_groups for p in group["params"]}
    return [n for n, p in model.named_parameters() if p.requires_grad and p.shape not in shapes]
""",
                says="is missing: the optimizer holds an equal tensor",
            ),
            WrongAnswer(
                name="compares values",
                source="""\
def ghosts(model, optimizer):
    held = [p for group in optimizer.param_groups for p in group["params"]]
    return [
        name
        for name, p in model.named_parameters()
        if p.requires_grad and not any(p.shape == q.shape and (p == q).all() for q in held)
    ]
""",
                says="Compare who they are",
            ),
            WrongAnswer(
                name="flags frozen ones",
                source="""\
def ghosts(model, optimizer):
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [name for name, p in model.named_parameters() if id(p) not in trained]
""",
                says="frozen on purpose",
            ),
            WrongAnswer(
                name="first group only",
                source="""\
def ghosts(model, optimizer):
    trained = {id(p) for p in optimizer.param_groups[0]["params"]}
    return [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in trained]
""",
                says="Look in every group",
            ),
            WrongAnswer(
                name="a count",
                source="""\
def ghosts(model, optimizer):
    held = sum(len(group["params"]) for group in optimizer.param_groups)
    return len(list(model.parameters())) - held
""",
                says="a list of names",
            ),
            WrongAnswer(
                name="names of layers",
                source="""\
def ghosts(model, optimizer):
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [
        name.partition(".")[0]
        for name, p in model.named_parameters()
        if p.requires_grad and id(p) not in trained
    ]
""",
                says="is no name of a parameter",
            ),
        ),
    ),
}
