"""Ask and check what 32_tune_gradient_synchronization teaches.

No check starts a process. Ranks are arrays in a list; one check wraps a model in the real
DistributedDataParallel on a group of one rank, in which a hook plays the other one.
"""

import contextlib
import os
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "32.p1": Number(
        question="The same model, a batch of 1,024 samples in place of 16. How many bytes does a "
        "step now hand to the exchange?",
        unit="bytes",
        notes=(
            (0, 9_000, "Less than before? Every parameter has a gradient, whatever the batch."),
            (9_000, 10_500, "Right: one gradient per parameter, and no sample in it."),
            (10_500, 300_000, "A gradient is a sum over the samples: its size is that of the "
             "parameters."),
            (300_000, 1e12, "That is how samples or activations would grow. Only gradients travel: "
             "sums over the samples."),
        ),
    ),
    "32.p2": Number(
        question="Four ranks add up a tensor. How many times the tensor's size does each of them "
        "send?",
        unit="times its size",
        notes=(
            (0, 0.9, "Each number of the sum needs three numbers from elsewhere."),
            (0.9, 1.2, "That would bring every part to one place. The sum must come back, too."),
            (1.2, 1.8, "Right: three quarters for the sums, three quarters to spread them."),
            (1.8, 2.5, "Almost: nobody needs to send what it keeps."),
            (2.5, 3.5, "That is everything to everybody. Divide the tensor instead."),
            (3.5, 1e9, "More than everything to everybody."),
        ),
    ),
    "32.p3": Choice(
        question="Of 4 micro-batches the first three shall not be synchronized. Around what does "
        "no_sync() do that?",
        options={
            "backward, or both": "The name suggests it, for the exchange happens in backward. But "
            "when is it decided?",
            "both only": "One half is enough. Which one?",
            "forward, or both": "Right: the wrapper's forward pass decides.",
            "any of them": "One of them changes nothing, and says nothing.",
        },
    ),
    "32.p4": Choice(
        question="Five linear layers, buckets of 0.1 MiB. When does the first bucket leave?",
        options={
            "when all gradients are there": "That is what one large bucket does: then nothing "
            "overlaps.",
            "when the last layers' gradients are there": "Right: backward begins at the loss.",
            "when the first layers' gradients are there": "Backward begins at the loss: the first "
            "layers come last.",
        },
    ),
    "32.p5": Choice(
        question="A layer exists and no forward pass uses it. What happens in DDP?",
        options={
            "nothing: its gradient stays None": "So it is in one process. Here its bucket waits "
            "for a gradient.",
            "an error in step 1": "It is incomplete there already. Who looks, and when?",
            "an error in step 2": "Right: the next forward pass finds the last exchange open.",
            "a hang": "Both ranks wait for the same gradient, and backward ends without it.",
        },
    ),
    "32.p6": Choice(
        question="Rank 0 has 3 batches, rank 1 has 5. What does rank 1 do in its fourth step?",
        options={
            "it trains on alone": "Its gradients must be averaged, and the partner does not come.",
            "an error at once": "Nobody counts steps. A partner that is late looks like one that "
            "never comes.",
            "it waits, then an error": "Right, and by default it waits for half an hour.",
        },
    ),
    "32.p7": Choice(
        question="Rank 0 trains 3 steps, rank 1 trains 4. Then both add up a tensor of sevens. "
        "What does rank 0 get?",
        options={
            "14": "So it would be, if both were at the same collective.",
            "an error": "The sizes agree, and nothing else is compared.",
            "a hang": "Each rank calls something. To the library that is enough.",
            "another number": "Right: collectives pair by their order.",
        },
    ),
}  # fmt: skip


def _kind(value):
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


# --- 32.1 -------------------------------------------------------------------------------


class _Mixed(nn.Module):
    """Hold a frozen layer, a layer in bfloat16, a weight with two names, and buffers."""

    def __init__(self, width, words):
        super().__init__()
        self.frozen = nn.Linear(width, 3 * width).requires_grad_(False)
        self.norm = nn.BatchNorm1d(width)
        self.short = nn.Linear(width, width, dtype=torch.bfloat16)
        self.words = nn.Embedding(words, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight


def test_sent_bytes(answer, call):
    for world_size, rounds in ((5, 3), (6, 5), (4, 5)):
        width, words = (int(np.random.randint(*ends)) for ends in ((5, 12), (31, 60)))
        model = _Mixed(width, words)
        size = sum(p.nbytes for p in model.parameters() if p.requires_grad)
        got = _number_of_bytes(call(answer, model, world_size, rounds))
        want = 2 * (world_size - 1) / world_size * size * rounds
        # Whoever rounds each piece down to whole bytes is right, too.
        if abs(got - want) > 2 * world_size * rounds:
            _look_at_bytes(got, want, model, world_size, rounds)
    alone = _number_of_bytes(call(answer, nn.Linear(3, 2), 1, 4))
    if alone:
        raise Wrong(f"One rank has nobody to send to: 0 bytes, got {alone}.")


def _number_of_bytes(got):
    if isinstance(got, torch.Tensor | np.ndarray | np.generic) and got.ndim == 0:
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, int | float):
        raise Wrong(f"Return a number of bytes, got {_kind(got)}")
    return got


def _look_at_bytes(got, want, model, world_size, rounds):
    trained = [p for p in model.parameters() if p.requires_grad]
    size = sum(p.nbytes for p in trained)
    sizes = [
        (sum(p.nbytes for p in model.parameters()), "The frozen layer is counted. What requires no "
         "gradient has none to send."),
        (4 * sum(p.numel() for p in trained), "A gradient has the dtype of its parameter: the "
         "layer in bfloat16 takes 2 bytes a number."),
        (sum(p.numel() for p in trained), "That counts numbers. A number has nbytes / numel bytes."),
        (sum(t.nbytes for t in model.state_dict().values()), "state_dict holds buffers, frozen "
         "weights, and a shared weight under both of its names. Gradients belong to parameters."),
    ]  # fmt: skip
    for wrong_size, sentence in sizes:
        if abs(got - want / size * wrong_size) < 1:
            raise Wrong(sentence)
    _look_at_factor(got / size, world_size, rounds)
    raise Wrong(
        f"{size:,} bytes of gradients, {world_size} ranks, {rounds} synchronizations: each rank "
        f"sends {want:,.0f} bytes, got {got:,.0f}."
    )


def _look_at_factor(factor, n, rounds):
    named = [
        (2 * (n - 1) / n, f"That is one synchronization, and there are {rounds}."),
        ((n - 1) / n * rounds, "That is half of it: first sums are made on the way, then they are "
         "spread, and each half sends n - 1 pieces."),
        (2 * (n - 1) * rounds, "Each round sends one piece, and a piece is 1/n of the gradients."),
        ((n - 1) * rounds, "That sends everything to everybody. A ring sends a piece at a time."),
        (2 * (n - 1) * rounds / n * n, "That is what all ranks send together."),
        (rounds, "That is what the hook sees: the size of the gradients. A rank sends 2 (n - 1) / n "
         "times that much."),
        (2 * rounds, "Nearly: of its n pieces a rank sends n - 1, and that twice."),
    ]  # fmt: skip
    for candidate, sentence in named:
        if abs(factor / candidate - 1) < 1e-6:
            raise Wrong(sentence)


# --- 32.2 -------------------------------------------------------------------------------


def test_piece_to_send(answer, call):
    for world_size in (3, 2, 4, 5, int(np.random.randint(6, 9))):
        _run_ring(answer, call, world_size)


def _run_ring(answer, call, n):
    """Follow which ranks' numbers are in each piece of each rank."""
    held = [[_only(rank, n) for _ in range(n)] for rank in range(n)]
    for step in range(2 * (n - 1)):
        sent = [_piece(call(answer, rank, step, n), n) for rank in range(n)]
        parcels = [held[rank][piece].copy() for rank, piece in enumerate(sent)]
        for rank, (piece, parcel) in enumerate(zip(sent, parcels, strict=True)):
            right = (rank + 1) % n
            if step < n - 1:
                held[right][piece] += parcel
                _look_for_double(held[right][piece], right, piece, step, n)
            else:
                _look_for_partial(parcel, rank, piece, step, n)
                held[right][piece] = parcel
        if step == n - 2:
            _look_for_sums(held, n)
    for rank in range(n):
        for piece in range(n):
            if held[rank][piece].min() == 0:
                raise Wrong(
                    f"{n} ranks: at the end rank {rank} has no complete piece {piece}. In the "
                    "second half, too, each rank passes on what has just come."
                )


def _only(rank, n):
    return np.eye(n, dtype=int)[rank]


def _piece(got, n):
    if isinstance(got, bool) or not isinstance(got, int | np.integer):
        raise Wrong(f"Return the number of a piece, an int, got {_kind(got)}")
    if not 0 <= got < n:
        raise Wrong(f"{n} ranks divide a tensor into pieces 0 to {n - 1}, got {got}: take it % n.")
    return int(got)


def _look_for_double(counts, rank, piece, step, n):
    if counts.max() > 1:
        raise Wrong(
            f"{n} ranks: in round {step} rank {rank} adds rank {counts.argmax()}'s part of piece "
            f"{piece} a second time. A rank must not send the same piece again."
        )


def _look_for_sums(held, n):
    for piece in range(n):
        best = max(int((held[rank][piece] > 0).sum()) for rank in range(n))
        if best < n:
            raise Wrong(
                f"{n} ranks: after {n - 1} rounds nobody has the sum of piece {piece}, the best "
                f"has {best} of {n} parts. Send on the piece that has just come from the left: in "
                "round 1 that is the one before your own."
            )


def _look_for_partial(parcel, rank, piece, step, n):
    if parcel.min() == 0:
        raise Wrong(
            f"{n} ranks: in round {step} rank {rank} spreads piece {piece}, and only "
            f"{int((parcel > 0).sum())} of {n} parts are in it. The second half begins with the "
            "piece whose sum this rank has just completed."
        )


# --- 32.3 -------------------------------------------------------------------------------

_OTHER = 2.0  # what every element of the other rank's gradient is


@contextlib.contextmanager
def _one_rank():
    """Join a group of one rank: no port, no process."""
    names = {"GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0"}
    names = {} if os.name == "nt" else names
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _play_other_rank(log, bucket):
    """Write down an all-reduce; return its average with the other rank's gradient."""
    log.append(bucket.buffer().nbytes)
    done = torch.futures.Future()
    done.set_result((bucket.buffer() + _OTHER) / 2)
    return done


def _flat_gradient(model):
    parts = [p.grad for p in model.parameters()]
    if any(part is None for part in parts):
        raise Wrong("A parameter has no gradient: call backward() on the loss of each micro-batch.")
    return torch.cat([part.flatten() for part in parts])


def _own_gradient(weights, parts, factors):
    """Return the gradient of a weighted sum of the micro-batches' mean losses."""
    model = nn.Linear(5, 3)
    model.load_state_dict(weights)
    for (x, y), factor in zip(parts, factors, strict=True):
        (F.cross_entropy(model(x), y) * factor).backward()
    return _flat_gradient(model)


def test_accumulate(answer, call):
    for _ in range(2):
        k = int(np.random.randint(3, 6))
        parts = [(torch.randn(n, 5), torch.randint(3, (n,))) for n in [8] * (k - 1) + [3]]
        model = nn.Linear(5, 3)
        weights = {name: t.clone() for name, t in model.state_dict().items()}
        with _one_rank():
            log, batches = [], []
            ddp = DistributedDataParallel(model)
            ddp.register_comm_hook(log, _play_other_rank)
            model.register_forward_pre_hook(lambda _, x, seen=batches: seen.append(len(x[0])))
            try:
                call(answer, ddp, list(parts), F.cross_entropy)
            finally:
                vars(ddp).clear()
                del ddp
        _look_at_passes(log, batches, k)
        if any(not torch.equal(t, weights[name]) for name, t in model.state_dict().items()):
            raise Wrong("The weights have changed: leave the step to the caller.")
        _look_at_accumulated(_flat_gradient(model), weights, parts)


def _look_at_passes(log, batches, k):
    if batches != [8] * (k - 1) + [3]:
        raise Wrong(
            f"The model saw batches of {batches or 'nothing'}: it must see each of the {k} "
            "micro-batches once, alone, in their order. All in one would not fit."
        )
    if len(log) > 1:
        raise Wrong(
            f"{len(log)} all-reduces for {k} micro-batches. DDP decides in the forward pass: "
            "ddp(x) must stand inside no_sync(), too."
        )
    if not log:
        raise Wrong(
            "No all-reduce: each rank has its own gradient now, and the models part. The last "
            "micro-batch must be synchronized, through the wrapper."
        )


def _look_at_accumulated(got, weights, parts):
    k, sizes = len(parts), [len(y) for _, y in parts]
    shares = [n / sum(sizes) for n in sizes]
    want = (_own_gradient(weights, parts, shares) + _OTHER) / 2
    if torch.allclose(got, want, rtol=1e-4, atol=1e-5):
        return
    for factors, sentence in (
        ([1 / k] * k, f"Each micro-batch weighs 1/{k}, but the last one has {sizes[-1]} samples in "
         f"place of {sizes[0]}: weigh a mean by its samples."),
        ([1.0] * k, f"The {k} mean losses are added up: weigh each by its share of the samples."),
        ([float(n) for n in sizes], "The losses of the samples are added up: divide by the "
         "number of all samples."),
    ):  # fmt: skip
        if torch.allclose(got, (_own_gradient(weights, parts, factors) + _OTHER) / 2, rtol=1e-4):
            raise Wrong(sentence)
    for last in range(k - 1):
        early, late = shares[: last + 1], shares[last + 1 :]
        first = _own_gradient(weights, parts[: last + 1], early)
        rest = _own_gradient(weights, parts[last + 1 :], late)
        if torch.allclose(got, (first + _OTHER) / 2 + rest, rtol=1e-4):
            raise Wrong(
                f"Micro-batch {last + 1} of {k} is synchronized. What comes after it is averaged "
                "with nobody: synchronize the last one."
            )
    raise Wrong(
        f"One all-reduce, but the gradient is {(got - want).norm() / want.norm():.2g} of its length "
        "off. Each sample must weigh 1 over the number of all samples."
    )


# --- 32.4 -------------------------------------------------------------------------------


def test_plan_buckets(answer, call):
    for _ in range(6):
        sizes = [int(n) * 4 for n in np.random.randint(2, 30, np.random.randint(8, 12))]
        cap = int(np.random.randint(240, 400))
        _look_at_plan(call(answer, list(sizes), cap), sizes, cap)
    exact = [40, 60, 40, 60]
    _look_at_plan(call(answer, list(exact), 100), exact, 100)
    _look_at_plan(call(answer, [8, 8], 1000), [8, 8], 1000)


def _plan(sizes, closes, order):
    """Fill buckets in some order; ``closes`` looks at the total and the next size."""
    buckets, bucket = [], []
    for place, index in enumerate(order):
        bucket.append(index)
        after = sizes[order[place + 1]] if place + 1 < len(order) else 0
        if closes(sum(sizes[i] for i in bucket), after):
            buckets.append(bucket)
            bucket = []
    return buckets + [bucket] * bool(bucket)


def _look_at_plan(got, sizes, cap):
    if not isinstance(got, list | tuple) or not all(isinstance(b, list | tuple) for b in got):
        raise Wrong(f"Return a list of buckets, each a list of indices, got {_kind(got)}")
    got = [list(bucket) for bucket in got]
    if [] in got:
        raise Wrong("A bucket is empty: there is nothing to send in it.")
    backward = list(range(len(sizes)))[::-1]
    want = _plan(sizes, lambda total, _: total >= cap, backward)
    if got == want:
        return
    flat = [index for bucket in got for index in bucket]
    asked = f"Sizes {sizes}, cap {cap}: "
    if len(flat) > len(set(flat)):
        raise Wrong(f"{asked}a parameter stands in two buckets. A gradient is never split.")
    if len(flat) < len(sizes):
        missing = min(set(backward) - set(flat))
        raise Wrong(
            f"{asked}parameter {missing} is in no bucket. The last bucket leaves, too, full or not."
        )
    if flat == backward[::-1]:
        raise Wrong(f"{asked}backward reaches parameter {len(sizes) - 1} first: begin there.")
    if got == _plan(sizes, lambda total, after: total + after > cap, backward):
        raise Wrong(
            f"{asked}a bucket closes before it would overflow. DDP closes it when the sum has "
            "reached the cap, with the parameter that reaches it."
        )
    if got == _plan(sizes, lambda total, _: total > cap, backward):
        raise Wrong(f"{asked}a bucket that is exactly full stays open. Reached is enough.")
    raise Wrong(f"{asked}the plan is {want}, got {got}.")


# --- what is asked -----------------------------------------------------------------------

_RIGHT_BYTES = """\
def sent_bytes(model, world_size, synchronizations):
    size = sum(p.nbytes for p in model.parameters() if p.requires_grad)
    return 2 * (world_size - 1) / world_size * size * synchronizations
"""


def _bytes_with(old, new):
    assert old in _RIGHT_BYTES, old
    return _RIGHT_BYTES.replace(old, new)


_RIGHT_ACCUMULATE = """\
from contextlib import nullcontext

def accumulate(ddp, micro_batches, loss_fn):
    count = sum(len(y) for _, y in micro_batches)
    for n, (x, y) in enumerate(micro_batches, 1):
        last = n == len(micro_batches)
        with nullcontext() if last else ddp.no_sync():
            loss = loss_fn(ddp(x), y) * len(y) / count
            loss.backward()
"""


def _accumulate_with(old, new):
    assert old in _RIGHT_ACCUMULATE, old
    return _RIGHT_ACCUMULATE.replace(old, new)


_RIGHT_PLAN = """\
def plan_buckets(sizes, cap):
    buckets, bucket, total = [], [], 0
    for index in reversed(range(len(sizes))):
        bucket.append(index)
        total += sizes[index]
        if total >= cap:
            buckets.append(bucket)
            bucket, total = [], 0
    return buckets + [bucket] if bucket else buckets
"""


def _plan_with(old, new):
    assert old in _RIGHT_PLAN, old
    return _RIGHT_PLAN.replace(old, new)


EXERCISES = {
    "32.1": Exercise(
        title="Predict the bytes of an all-reduce",
        minutes=6,
        task="Return the bytes of gradients that each rank sends in one optimizer step. They are "
        "exchanged synchronizations times, each time by a ring all-reduce over world_size ranks. A "
        "gradient has the size and the dtype of its parameter.",
        stub="def sent_bytes(model, world_size, synchronizations):\n    return ...\n",
        answer="sent_bytes",
        test=test_sent_bytes,
        hints=(
            "Two factors: the size of all gradients, and what a ring sends for each byte of them.",
            "A frozen layer sends nothing, one in bfloat16 half as much as its twin in float32.",
            "size = sum(p.nbytes for p in model.parameters() if p.requires_grad)",
        ),
        solution=_RIGHT_BYTES,
        wrong=(
            WrongAnswer("counts frozen parameters", _bytes_with(" if p.requires_grad", ""),
                        "What requires no gradient has none"),
            WrongAnswer("4 bytes each", _bytes_with("p.nbytes", "4 * p.numel()"),
                        "the layer in bfloat16 takes 2 bytes"),
            WrongAnswer("counts numbers", _bytes_with("p.nbytes", "p.numel()"),
                        "That counts numbers"),
            WrongAnswer("the state dict", _bytes_with(
                "p.nbytes for p in model.parameters() if p.requires_grad",
                "t.nbytes for t in model.state_dict().values()"),
                "a shared weight under both of its names"),
            WrongAnswer("one synchronization", _bytes_with(" * synchronizations", ""),
                        "That is one synchronization"),
            WrongAnswer("one half of the ring", _bytes_with("2 * ", ""), "That is half of it"),
            WrongAnswer("whole buffers", _bytes_with(" / world_size", ""),
                        "a piece is 1/n of the gradients"),
            WrongAnswer("everybody to everybody", _bytes_with(
                "2 * (world_size - 1) / world_size", "(world_size - 1)"),
                "That sends everything to everybody"),
            WrongAnswer("the size alone", _bytes_with("2 * (world_size - 1) / world_size * ", ""),
                        "That is what the hook sees"),
            WrongAnswer("twice the size", _bytes_with(" * (world_size - 1) / world_size", ""),
                        "of its n pieces a rank sends n - 1"),
            WrongAnswer("alone, it still sends", _bytes_with(
                "(world_size - 1)", "max(world_size - 1, 1)"), "One rank has nobody to send to"),
            WrongAnswer("something else", _bytes_with("size * ", "size * 7 * "),
                        "each rank sends"),
            WrongAnswer("nothing comes back", _bytes_with("return ", ""),
                        "Return a number of bytes"),
        ),
    ),
    "32.2": Exercise(
        title="Build a ring all-reduce",
        minutes=10,
        task="n ranks stand in a ring; each holds a tensor in n pieces. In each of 2 (n - 1) rounds "
        "each sends one piece to its right neighbor. In the first n - 1 rounds that one adds it to "
        "its own, later it overwrites. Which piece does rank send in round, counted from 0?",
        stub="def piece_to_send(rank, round, world_size):\n    return ...\n",
        answer="piece_to_send",
        test=test_piece_to_send,
        hints=(
            "Whoever sends the piece that has just come lets its sum grow by one rank a round.",
            "With 3 ranks, rank 0 sends piece 0, then piece 2, which has just come from rank 2.",
            "In round 0 return rank; in each later round one less, and % world_size.",
        ),
        solution="def piece_to_send(rank, round, world_size):\n"
        "    return (rank - round) % world_size\n",
        wrong=(
            WrongAnswer("its own piece", "def piece_to_send(rank, round, world_size):\n"
                        "    return rank\n", "must not send the same piece again"),
            WrongAnswer("the other direction", "def piece_to_send(rank, round, world_size):\n"
                        "    return (rank + round) % world_size\n",
                        "Send on the piece that has just come"),
            WrongAnswer("the second half begins anew", """\
def piece_to_send(rank, round, world_size):
    return (rank - round % (world_size - 1)) % world_size
""", "whose sum this rank has just completed"),
            WrongAnswer("the second half repeats one piece", """\
def piece_to_send(rank, round, world_size):
    return (rank - min(round, world_size - 1)) % world_size
""", "passes on what has just come"),
            WrongAnswer("without the modulo", "def piece_to_send(rank, round, world_size):\n"
                        "    return rank - round\n", "take it % n"),
            WrongAnswer("divides", "def piece_to_send(rank, round, world_size):\n"
                        "    return (rank - round) % world_size / 1\n",
                        "Return the number of a piece"),
        ),
    ),
    "32.3": Exercise(
        title="Accumulate with one synchronization",
        minutes=8,
        task="micro_batches is a list of (x, y), the last one smaller; loss_fn returns a mean. "
        "Leave in .grad, averaged over the ranks, the gradient of the mean loss over all samples of "
        "the list, with one all-reduce. Take no step.",
        stub="""\
def accumulate(ddp, micro_batches, loss_fn):
    for x, y in micro_batches:
        loss = loss_fn(ddp(x), y) / len(micro_batches)
        with ddp.no_sync():
            loss.backward()
""",
        answer="accumulate",
        test=test_accumulate,
        limit=30.0,
        hints=(
            "Three faults: where no_sync stands, for which micro-batches, and the weight of each.",
            "nullcontext() is a context that does nothing, imported above: for the last micro-batch.",
            "count = sum(len(y) for _, y in micro_batches)",
        ),
        solution=_RIGHT_ACCUMULATE,
        wrong=(
            WrongAnswer("around backward only", _accumulate_with(
                "        with nullcontext() if last else ddp.no_sync():\n"
                "            loss = loss_fn(ddp(x), y) * len(y) / count\n",
                "        loss = loss_fn(ddp(x), y) * len(y) / count\n"
                "        with nullcontext() if last else ddp.no_sync():\n"),
                "DDP decides in the forward pass"),
            WrongAnswer("for all", _accumulate_with("nullcontext() if last else ", ""),
                        "No all-reduce"),
            WrongAnswer("the first in place of the last", _accumulate_with(
                "n == len(micro_batches)", "n == 1"), "synchronize the last one"),
            WrongAnswer("divides by k", _accumulate_with(
                "* len(y) / count", "/ len(micro_batches)"), "weigh a mean by its samples"),
            WrongAnswer("divides by nothing", _accumulate_with(" * len(y) / count", ""),
                        "weigh each by its share"),
            WrongAnswer("adds up the samples", _accumulate_with(" / count", ""),
                        "divide by the number of all samples"),
            WrongAnswer("one large batch", """\
def accumulate(ddp, micro_batches, loss_fn):
    x, y = (torch.cat(parts) for parts in zip(*micro_batches))
    loss_fn(ddp(x), y).backward()
""", "All in one would not fit"),
            WrongAnswer("around the wrapper", _accumulate_with("ddp(x)", "ddp.module(x)"),
                        "through the wrapper"),
            WrongAnswer("takes a step", _RIGHT_ACCUMULATE
                        + "    torch.optim.SGD(ddp.parameters(), lr=0.1).step()\n",
                        "leave the step to the caller"),
            WrongAnswer("clears the gradients", _RIGHT_ACCUMULATE + "    ddp.zero_grad()\n",
                        "A parameter has no gradient"),
            WrongAnswer("weighs by twice the share", _accumulate_with("* len(y)", "* 2 * len(y)"),
                        "of its length off"),
        ),
    ),
    "32.4": Exercise(
        title="Plan the buckets",
        minutes=8,
        task="sizes lists the bytes of the parameters in the order of the layers. Return the "
        "buckets in the order in which they leave, each a list of indices in the order in which "
        "gradients come. A bucket closes as soon as its sum reaches cap.",
        stub="def plan_buckets(sizes, cap):\n    return ...\n",
        answer="plan_buckets",
        test=test_plan_buckets,
        hints=(
            "Append, add up, and close: the parameter that reaches the cap is still in.",
            "[40, 60, 40, 60] with a cap of 100 gives [[3, 2], [1, 0]].",
            "for index in reversed(range(len(sizes))):",
        ),
        solution=_RIGHT_PLAN,
        wrong=(
            WrongAnswer("in forward order", _plan_with("reversed(range(len(sizes)))",
                        "range(len(sizes))"), "begin there"),
            WrongAnswer("closes before it overflows", """\
def plan_buckets(sizes, cap):
    buckets, bucket, total = [], [], 0
    for index in reversed(range(len(sizes))):
        if bucket and total + sizes[index] > cap:
            buckets.append(bucket)
            bucket, total = [], 0
        bucket.append(index)
        total += sizes[index]
    return buckets + [bucket]
""", "a bucket closes before it would overflow"),
            WrongAnswer("exactly full stays open", _plan_with(">= cap", "> cap"),
                        "Reached is enough"),
            WrongAnswer("loses the last bucket", _plan_with(
                "return buckets + [bucket] if bucket else buckets", "return buckets"),
                "The last bucket leaves, too"),
            WrongAnswer("an empty bucket at the end", _plan_with(
                "return buckets + [bucket] if bucket else buckets", "return buckets + [bucket]"),
                "A bucket is empty"),
            WrongAnswer("splits a gradient", _plan_with(
                "            bucket, total = [], 0\n",
                "            bucket, total = [index], total - cap\n"),
                "A gradient is never split"),
            WrongAnswer("one bucket each", """\
def plan_buckets(sizes, cap):
    return [[index] for index in reversed(range(len(sizes)))]
""", "the plan is"),
            WrongAnswer("one flat list", "def plan_buckets(sizes, cap):\n"
                        "    return list(reversed(range(len(sizes))))\n",
                        "each a list of indices"),
        ),
    ),
}  # fmt: skip
