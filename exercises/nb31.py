"""Ask and check what 31_train_on_many_gpus teaches.

No check starts a process: ranks are lists, tensors in a list, or two threads.
"""

import copy
import math
import types

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from exercises import _rehearsal
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "31.p1": Choice(
        question="Rank r builds its model from seed r and wraps it. How many different models "
        "are there now?",
        options={
            "two, each its own": "In training gradients travel. The constructor is another matter.",
            "one, their average": "Weights are averaged nowhere, neither here nor later.",
            "one, rank 0's": "Right: construction sends rank 0's parameters and buffers to all.",
            "an error": "Nothing compares the seeds, and nothing needs to.",
        },
    ),
    "31.p2": Choice(
        question="50 steps of SGD, two ranks with 32 samples each against one process with all "
        "64. How far apart are the weights?",
        options={
            "not at all": "The mathematics says so. Float addition depends on the order, though.",
            "less than 1e-6": "Right: rounding, and nothing else.",
            "about 1 %": "An average of gradients is no approximation here: equal shares, so the "
            "mean of means is the mean.",
            "twice as far from the start": "That would be a sum. The gradients are averaged.",
        },
    ),
    "31.p3": Number(
        question="7 samples, 2 ranks, a DistributedSampler on each. How many samples are "
        "evaluated in all?",
        unit="samples",
        notes=(
            (0, 6.5, "Nothing is dropped, unless you ask for drop_last."),
            (6.5, 7.5, "Both ranks must take equally many steps. What does the shorter one do?"),
            (7.5, 8.5, "Right: the list is padded from its own beginning."),
            (8.5, 1e9, "Each rank takes its own part, with as little padding as will do."),
        ),
    ),
    "31.p4": Choice(
        question="The large network on 2 processes of one thread each: how does it compare with "
        "one process of one thread, and with one process of two?",
        options={
            "faster than both": "Here each process keeps its own core busy, and two threads have "
            "to meet after each operation.",
            "faster than one thread only": "The two cores explain all of it. Whoever says "
            "speedup must say of which baseline.",
            "faster than two threads only": "The threads of one process waited for each other, and "
            "the ranks gained nothing on one thread: this machine is busy.",
            "slower than both": "The gradients' way, or another program, costs more than the "
            "second core gives.",
        },
    ),
    "31.p5": Choice(
        question="Rank 1 raises a ValueError at step 3. What does rank 0 do?",
        options={
            "it finishes alone": "It needs rank 1 in each step: the next all-reduce has no partner.",
            "it prints the same error": "An exception stays in its process.",
            "it prints a network error": "Right: all it knows is that the line went dead.",
            "it waits for ever": "It would, if rank 1 were alive and did something else. A process "
            "that ends closes its connections.",
        },
    ),
    "31.p6": Choice(
        question="Rank 0 loads a checkpoint after wrapping; rank 1 does not. 50 steps follow. What "
        "do you see?",
        options={
            "an error": "Nothing compares the weights. The exchange knows gradients only.",
            "the loss does not fall": "The averaged gradient is good enough for both models.",
            "the ranks grow together": "Both take the same steps. Their distance stays.",
            "the loss falls": "Right, and that is the trouble.",
        },
    ),
}


def _kind(value):
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


# --- 31.1 -------------------------------------------------------------------------------


def _index_list(got, n):
    if isinstance(got, torch.Tensor | np.ndarray):
        got = got.tolist()
    if not isinstance(got, list | tuple | range):
        raise Wrong(f"Return a list of indices, got {_kind(got)}")
    for index in got:
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            raise Wrong(f"An index is a whole number, got {index!r} in the list.")
        if not 0 <= index < n:
            raise Wrong(f"{index} is no index of {n} samples: they go from 0 to {n - 1}.")
    return [int(index) for index in got]


def test_rank_indices(answer, call):
    for even in (False, True, False, False):
        world_size = int(np.random.randint(2, 6))
        rest = 0 if even else np.random.randint(1, world_size)
        n = int(world_size * np.random.randint(5, 9) + rest)
        seed = int(np.random.randint(100))
        _look_at_epoch(
            [_index_list(call(answer, n, world_size, r, 0, seed), n) for r in range(world_size)], n
        )
        orders = [
            _index_list(call(answer, n, world_size, 0, epoch, s), n)
            for epoch, s in ((0, seed), (0, seed), (1, seed), (0, seed + 1))
        ]
        if orders[0] != orders[1]:
            raise Wrong(
                "The same call gave two orders: another rank could not know this one. Draw from a "
                "generator with a seed."
            )
        if orders[0] == orders[2]:
            raise Wrong("Epoch 1 repeats epoch 0: let the order depend on the epoch.")
        if orders[0] == orders[3]:
            raise Wrong(f"Seeds {seed} and {seed + 1} give one order: let it depend on the seed.")


def _look_at_epoch(ranks, n):
    lengths = [len(indices) for indices in ranks]
    if len(set(lengths)) > 1:
        longest, shortest = lengths.index(max(lengths)), lengths.index(min(lengths))
        raise Wrong(
            f"Rank {longest} has {max(lengths)} samples, rank {shortest} has {min(lengths)}: the "
            "longer one waits for ever. Wrap around before you divide."
        )
    visits = np.bincount(np.concatenate(ranks).astype(int), minlength=n)
    missing = np.flatnonzero(visits == 0)
    if len(missing) and sum(lengths) < n:
        raise Wrong(
            f"Sample {missing[0]} is never trained on, for the tail of the list is cut off. Wrap "
            "around: repeat samples from the beginning."
        )
    if len(missing):
        raise Wrong(
            f"Sample {visits.argmax()} is seen {visits.max()} times and {missing[0]} never: every "
            "rank must shuffle the same way, and take its own part of that."
        )
    if sum(lengths) >= n + len(ranks):
        raise Wrong(
            f"{sum(lengths)} visits of {n} samples on {len(ranks)} ranks: fewer than "
            f"{len(ranks)} repeats make the parts equal."
        )


# --- 31.2 -------------------------------------------------------------------------------


def _shards(sizes):
    x = [torch.randn(size, 5, dtype=torch.float64) for size in sizes]
    y = [torch.randint(3, (size,)) for size in sizes]
    return x, y


def _averaged(loss_of, weight, x, y):
    """Return the gradient that ranks agree on: the average of each rank's own."""
    gradients = []
    for images, labels in zip(x, y, strict=True):
        own = weight.clone().requires_grad_()
        loss = loss_of(images @ own, labels)
        gradients.append(torch.autograd.grad(loss, own)[0])
    return torch.stack(gradients).mean(0)


def _asked(answer, call, count, world_size):
    def loss_of(logits, targets):
        loss = call(answer, logits, targets, count, world_size)
        if not isinstance(loss, torch.Tensor):
            raise Wrong(f"Return the loss as a tensor, got {_kind(loss)}")
        if loss.dim():
            raise Wrong(
                f"The loss must be one number, got shape {tuple(loss.shape)}: add the samples up."
            )
        if not loss.requires_grad:
            raise Wrong("No gradient flows from your loss: compute it from logits, in torch.")
        if not len(targets) and not loss.isfinite():
            raise Wrong(
                "A rank without a sample gives nan: a mean of nothing is 0 / 0, and the sum of "
                "all losses is lost. Start from the sum, which is 0."
            )
        return loss

    return loss_of


def test_local_loss(answer, call):
    for empty in (False, False, True):
        world_size = int(np.random.randint(2, 5))
        sizes = np.random.choice(np.arange(2, 12), world_size, replace=False).tolist()
        sizes[-1] = 0 if empty else sizes[-1]
        x, y = _shards(sizes)
        weight = torch.randn(5, 3, dtype=torch.float64)
        loss_of = _asked(answer, call, sum(sizes), world_size)
        got = _averaged(loss_of, weight, x, y)
        want = _averaged(F.cross_entropy, weight, [torch.cat(x)], [torch.cat(y)])
        _look_at_gradient(got, want, weight, x, y)


def _look_at_gradient(got, want, weight, x, y):
    world_size, sizes = len(x), [len(labels) for labels in y]
    if torch.allclose(got, want, rtol=1e-6, atol=1e-12):
        return
    total = want * sum(sizes) / world_size  # what sums of losses average to
    named = [
        (_averaged(F.cross_entropy, weight, x, y), "That is the mean of each rank's own samples, "
         f"right only for equal shards. With shards of {sizes} a sample of the small ones counts "
         "more."),
        (want / world_size, f"{world_size} times too small: DDP averages over the ranks, too. Put "
         "back the factor world_size."),
        (total, "That is the sum over samples: it grows with the batch. Divide by the samples of "
         "all ranks."),
        (total * world_size, "That is the sum over samples, and the average over ranks undone: "
         "divide by the samples of all ranks."),
        (want * world_size, f"{world_size} times too large: DDP divides by world_size once, so put "
         "that factor back once."),
    ]  # fmt: skip
    for candidate, sentence in named:
        if torch.allclose(got, candidate, rtol=1e-6):
            raise Wrong(sentence)
    raise Wrong(
        f"With shards of {sizes} the averaged gradient is {(got - want).norm() / want.norm():.2g} "
        "of its length off. Each sample of all ranks must weigh 1 / global_count after the average."
    )


# --- 31.3 -------------------------------------------------------------------------------


def test_merge_evaluation(answer, call):
    for _ in range(4):
        world_size = int(np.random.randint(2, 6))
        rounds = int(np.random.randint(4, 8))
        n = world_size * (rounds - 1) + int(np.random.randint(1, world_size))
        order = np.random.permutation(n).tolist()
        order += order[: world_size * rounds - n]
        right = np.random.rand(n) < 0.7
        right[order[0]] = True  # a repeated sample that is counted twice shows in both numbers
        per_rank = [
            [(i, bool(right[i])) for i in order[rank::world_size]] for rank in range(world_size)
        ]
        _look_at_counts(
            call(answer, copy.deepcopy(per_rank)), (int(right.sum()), n), per_rank, rounds
        )


def _look_at_counts(got, want, per_rank, rounds):
    if isinstance(got, float):
        raise Wrong(
            "Return two counts, got one float. An accuracy per rank cannot be merged: how many "
            "samples stand behind it is lost."
        )
    if not isinstance(got, tuple | list) or len(got) != 2:
        raise Wrong(f"Return (correct, total), got {_kind(got)}")
    correct, total = (int(v) if isinstance(v, bool | np.integer) else v for v in got)
    if isinstance(correct, float) or isinstance(total, float):
        raise Wrong(f"Counts are whole numbers, got {correct!r} and {total!r}.")
    if not isinstance(correct, int) or not isinstance(total, int):
        raise Wrong(f"Return two whole numbers, got {correct!r} and {total!r}.")
    n, padded = want[1], len(per_rank) * rounds
    if total == padded:
        raise Wrong(
            f"{total} answers for {n} samples: the sampler repeats some so that all ranks take "
            "equally many. Count each index once."
        )
    if total == len(per_rank) * (rounds - 1):
        raise Wrong(
            f"{total} of {n} samples are left: the last round holds real ones beside the "
            "repeated ones. Look at the index, not at the place."
        )
    if total < n:
        raise Wrong(
            f"{total} of {n} samples are left. Two answers are one only if their index is the "
            "same, whatever their rank and place."
        )
    if total > n:
        raise Wrong(f"{total} answers for {n} samples. Count each index once.")
    if correct != want[0]:
        raise Wrong(
            f"{total} samples are right, but {correct} correct answers are not: a repeated sample "
            f"counts once there, too. It should be {want[0]}."
        )


# --- 31.4 -------------------------------------------------------------------------------


def _state():
    values = {
        "0.weight": torch.randn(4, 3),
        "0.bias": torch.randn(4),
        "1.running_mean": torch.randn(4),
        "1.num_batches_tracked": torch.tensor(int(np.random.randint(1, 9))),
        "2.weight": torch.randn(2, 4),
    }
    values["0.bias"][:2] = torch.tensor([0.5, -0.5])
    values["2.weight"][0, 1] = math.nan
    return values


def _copies(world_size):
    first = _state()
    return [{name: t.clone() for name, t in first.items()} for _ in range(world_size)]


def _ulp(t):
    t.view(-1)[0] = torch.nextafter(t.view(-1)[0], torch.tensor(math.inf))


def _spoil(t):
    t.view(-1)[1] = math.nan


def _swap(t):
    t.view(-1)[:2] = torch.tensor([-0.5, 0.5])


def test_first_disagreement(answer, call):
    for _ in range(2):
        world_size = int(np.random.randint(3, 6))
        states = _copies(world_size)
        _look_at_name(call(answer, states), None, "", states)
        for name, rank, change, why in _CHANGES:
            states = _copies(world_size)
            change(states[rank][name])
            _look_at_name(call(answer, states), name, why, states)
        states = _copies(world_size)
        _ulp(states[1]["2.weight"])
        _ulp(states[-1]["0.bias"])
        got = call(answer, states)
        if got != "0.bias":
            raise Wrong(
                f"Two tensors differ: 0.bias on the last rank and 2.weight on rank 1. The first "
                f"name is 0.bias, got {got!r}: go through names outside and ranks inside."
            )


_CHANGES = (
    ("0.weight", 1, _ulp, "Rank 1 differs in the last bit of one weight, and a tolerance does not "
     "see it. 1e-8 apart today is 0.2 apart later: the ranks must be equal to the bit."),
    ("0.bias", 1, _swap, "Rank 1 has two values in the other order: the sums agree, the "
     "models do not. Compare value by value."),
    ("1.running_mean", 1, _ulp, "A buffer differs, running_mean, and a buffer belongs to the model "
     "as a weight does. Look at every entry of the state."),
    ("1.num_batches_tracked", 1, lambda t: t.add_(1), "A whole number differs, the counter "
     "num_batches_tracked. Look at every entry, floats or not."),
    ("2.weight", -1, _ulp, "Only the last rank differs. Compare every rank with rank 0."),
    ("0.weight", 1, _spoil, "Rank 1 has nan where rank 0 has a number. Two nan agree, one alone "
     "does not: ask that both are nan."),
    ("0.weight", 0, _spoil, "Rank 0 has nan where the others have numbers. Two nan agree, one alone "
     "does not: ask that both are nan."),
)  # fmt: skip


def _look_at_name(got, want, why, states):
    if got is not None and not isinstance(got, str):
        raise Wrong(f"Return a name or None, got {type(got).__name__}.")
    if want is None and got == "2.weight":
        raise Wrong(
            "All ranks hold nan in the same place of 2.weight, and that is agreement. nan == nan "
            "is False, so torch.equal says no: ask isnan for those."
        )
    if want is None and got is not None:
        raise Wrong(f"All ranks are equal, got {got!r}. Return None then.")
    if got == want:
        return
    if got == "2.weight":
        raise Wrong("2.weight has nan on all ranks in one place: that is agreement.")
    if got is not None:
        raise Wrong(f"The tensor that differs is {want}, got {got!r}.")
    raise Wrong(f"{want}: {why}")


# --- 31.5 -------------------------------------------------------------------------------

_EPOCHS = 3


class _Watched(torch.utils.data.Dataset):
    """Hand out samples and write down which."""

    def __init__(self, images, labels):
        self.images, self.labels, self.seen = images, labels, []

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        self.seen.append(int(index))
        return self.images[index], self.labels[index]


def _small():
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))


def _reference(start, images, labels, scale=1.0, first=0):
    """Train one model on what the ranks should see, by hand."""
    model = _small()
    model.load_state_dict(start)
    n = len(labels)
    for epoch in range(first, first + _EPOCHS):
        order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch)).tolist()
        order += order[: -n % 2]
        parts = [torch.tensor(order[rank::2]).split(4) for rank in range(2)]
        for ours in zip(*parts, strict=True):
            losses = [F.cross_entropy(model(images[i]), labels[i]) for i in ours]
            model.zero_grad()
            (sum(losses) / 2 * scale).backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
    return model.state_dict()


def test_train(answer, call):
    if not isinstance(answer, types.FunctionType):
        raise Wrong(f"train must be a function, got {_kind(answer)}")
    images, labels = torch.randn(21, 5), torch.randint(3, (21,))
    models, start = [_small(), _small()], _small().state_dict()
    before = copy.deepcopy(models[0].state_dict())
    data = [_Watched(images, labels) for _ in range(2)]
    # Each rank has its own objects: they share nothing, as processes do.
    ranks = [
        (rank, models[rank], {k: v.clone() for k, v in start.items()}, data[rank], _EPOCHS)
        for rank in range(2)
    ]
    try:
        returned = call(_rehearsal.run, answer, *ranks)
    except _rehearsal.HangError as hang:
        raise Wrong(
            f"One rank waits in {hang}, and the other one never comes: what all ranks must call "
            "stands under an if, or the ranks take different numbers of steps."
        ) from None
    except TimeoutError as late:
        raise Wrong(f"{late}: a loop does not end, or a rank does far too much.") from None
    _look_at_state(returned[0], start)
    _look_at_visits(data)
    _look_at_ranks(models, before, start)
    _look_at_weights(returned[0], start, images, labels)


def _look_at_state(state, start):
    if not isinstance(state, dict):
        raise Wrong(f"Rank 0 must return the state dict, got {_kind(state)}")
    if any(str(name).startswith("module.") for name in state):
        raise Wrong(
            "The names begin with module., and no model without the wrapper will load them. Save "
            "what is inside the wrapper."
        )
    if set(state) != set(start):
        raise Wrong(f"The state must have the names of the model, got {', '.join(map(str, state))}")


def _look_at_visits(data):
    share = 11  # 21 samples, padded to 22
    for rank, one in enumerate(data):
        if len(one.seen) != share * _EPOCHS:
            raise Wrong(
                f"Rank {rank} read {len(one.seen)} samples in {_EPOCHS} epochs; its share is "
                f"{share} in each. The sampler divides the data, and epochs counts the rounds."
            )
    first, second = data[0].seen[:share], data[0].seen[share : 2 * share]
    if first == second:
        raise Wrong(
            "Epoch 1 sees the samples in the order of epoch 0: the sampler's order changes only "
            "when set_epoch tells it."
        )
    if set(data[0].seen[:share]) | set(data[1].seen[:share]) != set(range(21)):
        raise Wrong(
            "In epoch 0 the two ranks leave samples out: both samplers must shuffle with one seed."
        )


def _look_at_ranks(models, before, start):
    ours, theirs = (model.state_dict() for model in models)
    if all(torch.equal(ours[name], theirs[name]) for name in ours):
        return
    constant = all(
        torch.allclose(ours[n] - theirs[n], start[n] - before[n], atol=1e-5) for n in ours
    )
    if constant:
        raise Wrong(
            "After training the ranks are as far apart as at the start: rank 0 loaded its weights "
            "when the others had already got the old ones. Load first, then wrap."
        )
    raise Wrong(
        "The ranks hold different models: each follows its own gradient. Only a forward pass "
        "through the wrapper arms the exchange; call the wrapper, not what is in it."
    )


def _look_at_weights(state, start, images, labels):
    def same(other):
        return all(torch.allclose(state[name], other[name], atol=1e-6) for name in other)

    if same(_reference(start, images, labels)):
        return
    if same(_reference(start, images, labels, scale=0.5)):
        raise Wrong(
            "Each step is half as long as that of one process: the exchange has averaged already. "
            "Divide nothing by hand."
        )
    if same(_reference(start, images, labels, scale=2.0)):
        raise Wrong("Each step is twice as long as that of one process: leave the loss a mean.")
    if same(_reference(start, images, labels, first=1)):
        raise Wrong("Your epochs count from 1: the sampler shuffles by number, so begin with 0.")
    raise Wrong(
        "The ranks agree, but not with one process that sees both shares: start from the given "
        "weights, keep SGD with 0.1, batches of 4, and one step for each batch."
    )


# --- the list ---------------------------------------------------------------------------

_RIGHT_TRAIN = """\
def train(rank, model, start, data, epochs):
    model.load_state_dict(start)
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, 4, sampler=sampler):
            optimizer.zero_grad()
            F.cross_entropy(ddp(x), y).backward()
            optimizer.step()
    return model.state_dict() if rank == 0 else None
"""


def _train_with(old, new):
    assert old in _RIGHT_TRAIN
    return _RIGHT_TRAIN.replace(old, new)


EXERCISES = {
    "31.1": Exercise(
        title="Give each rank its samples",
        minutes=8,
        task="Return the list of sample indices that one rank sees in one epoch. All ranks get "
        "equally many, together they see every sample, and as few as possible twice. The order "
        "depends on seed and epoch.",
        stub="def rank_indices(n, world_size, rank, epoch, seed):\n    return ...\n",
        answer="rank_indices",
        test=test_rank_indices,
        hints=(
            "Ranks do not talk. They can only agree if each computes the same whole list.",
            "7 samples, 2 ranks, order 3 1 6 0 2 5 4: append the 3 again, then rank 0 takes "
            "3 6 2 4 and rank 1 takes 1 0 5 3.",
            "generator = torch.Generator().manual_seed(seed + epoch)",
        ),
        solution="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist()
    order += order[: -n % world_size]
    return order[rank::world_size]
""",
        wrong=(
            WrongAnswer(
                name="each rank shuffles by itself",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(1000 * seed + 10 * epoch + rank)
    order = torch.randperm(n, generator=generator).tolist()
    order += order[: -n % world_size]
    return order[rank::world_size]
""",
                says="every rank must shuffle the same way",
            ),
            WrongAnswer(
                name="no padding",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(seed + epoch)
    return torch.randperm(n, generator=generator).tolist()[rank::world_size]
""",
                says="the longer one waits for ever",
            ),
            WrongAnswer(
                name="drops the tail",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(seed + epoch)
    share = n // world_size
    order = torch.randperm(n, generator=generator).tolist()
    return order[rank * share : (rank + 1) * share]
""",
                says="is never trained on",
            ),
            WrongAnswer(
                name="ignores the epoch",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator).tolist()
    order += order[: -n % world_size]
    return order[rank::world_size]
""",
                says="Epoch 1 repeats epoch 0",
            ),
            WrongAnswer(
                name="ignores the seed",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(epoch)
    order = torch.randperm(n, generator=generator).tolist()
    order += order[: -n % world_size]
    return order[rank::world_size]
""",
                says="let it depend on the seed",
            ),
            WrongAnswer(
                name="another order in each call",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    whole = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=whole).tolist()
    order += order[: -n % world_size]
    mine = order[rank::world_size]
    return [mine[i] for i in torch.randperm(len(mine))]
""",
                says="The same call gave two orders",
            ),
            WrongAnswer(
                name="one round too many",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist()
    order += order[: -n % world_size + world_size]
    return order[rank::world_size]
""",
                says="repeats make the parts equal",
            ),
            WrongAnswer(
                name="a round more where nothing is left over",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(seed + epoch)
    order = torch.randperm(n, generator=generator).tolist()
    order += order[: world_size - n % world_size]
    return order[rank::world_size]
""",
                says="repeats make the parts equal",
            ),
            WrongAnswer(
                name="counts from one",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    generator = torch.Generator().manual_seed(seed + epoch)
    order = (1 + torch.randperm(n, generator=generator)).tolist()
    order += order[: -n % world_size]
    return order[rank::world_size]
""",
                says="is no index of",
            ),
            WrongAnswer(
                name="a sampler instead of a list",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    return iter(range(rank, n, world_size))
""",
                says="Return a list of indices",
            ),
            WrongAnswer(
                name="positions as floats",
                source="""\
def rank_indices(n, world_size, rank, epoch, seed):
    return torch.linspace(0, n - 1, n // world_size)
""",
                says="An index is a whole number",
            ),
        ),
    ),
    "31.2": Exercise(
        title="Write a loss for unequal shards",
        minutes=6,
        task="A rank has some of the batch's samples, perhaps none. Return its cross-entropy loss "
        "such that the gradient, after DDP's average over world_size ranks, is that of the mean "
        "over all global_count samples.",
        stub="def local_loss(logits, targets, global_count, world_size):\n"
        "    return torch.nn.functional.cross_entropy(logits, targets)\n",
        answer="local_loss",
        test=test_local_loss,
        hints=(
            "After the average each sample, on whichever rank, must weigh 1 / global_count.",
            "Shards of 3 and 1: the lone sample weighs 1/2 with the mean of means, and 1/4 in one "
            "batch.",
            'total = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")',
        ),
        solution="""\
def local_loss(logits, targets, global_count, world_size):
    total = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    return total * world_size / global_count
""",
        wrong=(
            WrongAnswer(
                name="mean of its own samples",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum") / len(targets)
""",
                says="right only for equal shards",
            ),
            WrongAnswer(
                name="forgets that DDP averages",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum") / global_count
""",
                says="times too small",
            ),
            WrongAnswer(
                name="sum",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
""",
                says="it grows with the batch",
            ),
            WrongAnswer(
                name="sum times the ranks",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum") * world_size
""",
                says="the average over ranks undone",
            ),
            WrongAnswer(
                name="the factor twice",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    total = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    return total * world_size**2 / global_count
""",
                says="times too large",
            ),
            WrongAnswer(
                name="mean, weighted afterwards",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    mean = torch.nn.functional.cross_entropy(logits, targets)
    return mean * len(targets) * world_size / global_count
""",
                says="A rank without a sample gives nan",
            ),
            WrongAnswer(
                name="weighs by its count twice",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    total = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    return total * len(targets) * world_size / global_count
""",
                says="Each sample of all ranks must weigh",
            ),
            WrongAnswer(
                name="one loss per sample",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="none")
""",
                says="The loss must be one number",
            ),
            WrongAnswer(
                name="a number without a graph",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum").detach()
""",
                says="No gradient flows",
            ),
            WrongAnswer(
                name="a Python number",
                source="""\
def local_loss(logits, targets, global_count, world_size):
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum").item()
""",
                says="Return the loss as a tensor",
            ),
        ),
    ),
    "31.3": Exercise(
        title="Evaluate every sample once",
        minutes=6,
        task="Each rank evaluated the samples that its DistributedSampler gave it. per_rank holds "
        "one list per rank of pairs (index, correct). Return (correct, total) for the data, each "
        "sample counted once.",
        stub="def merge_evaluation(per_rank):\n    correct, total = ...\n    return correct, total\n",
        answer="merge_evaluation",
        test=test_merge_evaluation,
        hints=(
            "What makes two answers one sample? Not the rank, and not the place in the list.",
            "[(0, True), (2, True)] and [(1, False), (0, True)] are 3 samples, 2 of them correct.",
            "seen = {}  # index to correct",
        ),
        solution="""\
def merge_evaluation(per_rank):
    seen = {index: correct for pairs in per_rank for index, correct in pairs}
    return sum(seen.values()), len(seen)
""",
        wrong=(
            WrongAnswer(
                name="mean of accuracies",
                source="""\
def merge_evaluation(per_rank):
    return sum(sum(c for _, c in pairs) / len(pairs) for pairs in per_rank) / len(per_rank)
""",
                says="An accuracy per rank cannot be merged",
            ),
            WrongAnswer(
                name="counts the padding",
                source="""\
def merge_evaluation(per_rank):
    pairs = [pair for rank in per_rank for pair in rank]
    return sum(correct for _, correct in pairs), len(pairs)
""",
                says="the sampler repeats some",
            ),
            WrongAnswer(
                name="drops the last round",
                source="""\
def merge_evaluation(per_rank):
    pairs = [pair for rank in per_rank for pair in rank[:-1]]
    return sum(correct for _, correct in pairs), len(pairs)
""",
                says="the last round holds real ones",
            ),
            WrongAnswer(
                name="by place",
                source="""\
def merge_evaluation(per_rank):
    seen = {place: pair[1] for rank in per_rank for place, pair in enumerate(rank)}
    return sum(seen.values()), len(seen)
""",
                says="Two answers are one only if their index is the same",
            ),
            WrongAnswer(
                name="correct with padding",
                source="""\
def merge_evaluation(per_rank):
    pairs = [pair for rank in per_rank for pair in rank]
    return sum(correct for _, correct in pairs), len({index for index, _ in pairs})
""",
                says="a repeated sample counts once there, too",
            ),
            WrongAnswer(
                name="with the rank in the key",
                source="""\
def merge_evaluation(per_rank):
    seen = {}
    for rank, pairs in enumerate(per_rank):
        for index, correct in pairs:
            seen[index if rank else (rank, index)] = correct
    seen[-1] = False
    return sum(seen.values()), len(seen) + len(per_rank) * 9
""",
                says="Count each index once.",
            ),
            WrongAnswer(
                name="an accuracy and a total",
                source="""\
def merge_evaluation(per_rank):
    seen = {index: correct for pairs in per_rank for index, correct in pairs}
    return sum(seen.values()) / len(seen), len(seen)
""",
                says="Counts are whole numbers",
            ),
            WrongAnswer(
                name="the samples themselves",
                source="""\
def merge_evaluation(per_rank):
    seen = {index: correct for pairs in per_rank for index, correct in pairs}
    return sum(seen.values()), list(seen)
""",
                says="Return two whole numbers",
            ),
            WrongAnswer(
                name="nothing comes back",
                source="def merge_evaluation(per_rank):\n    sum(len(rank) for rank in per_rank)\n",
                says="Return (correct, total)",
            ),
        ),
    ),
    "31.4": Exercise(
        title="Prove that all ranks hold one model",
        minutes=8,
        task="states holds the gathered state dict of each rank. Return the first name, in the "
        "order of the names, under which some rank differs from rank 0 in any value; None if "
        "all agree. Two nan in the same place agree.",
        stub="def first_disagreement(states):\n    return ...\n",
        answer="first_disagreement",
        test=test_first_disagreement,
        hints=(
            "Ranks that apply equal gradients to equal weights are equal to the bit: no tolerance.",
            "[0.5, -0.5] and [-0.5, 0.5] have one sum.",
            "for name, first in states[0].items():",
        ),
        solution="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            other = state[name]
            same = (first == other) | (first.isnan() & other.isnan())
            if not same.all():
                return name
    return None
""",
        wrong=(
            WrongAnswer(
                name="compares sums",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            one, other = first.double().nansum(), state[name].double().nansum()
            if one != other:
                return name
""",
                says="the sums agree, the models do not",
            ),
            WrongAnswer(
                name="within a tolerance",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            if not torch.allclose(first, state[name], equal_nan=True):
                return name
""",
                says="equal to the bit",
            ),
            WrongAnswer(
                name="weights only",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            same = (first == state[name]) | (first.isnan() & state[name].isnan())
            if name.endswith(("weight", "bias")) and not same.all():
                return name
""",
                says="A buffer differs",
            ),
            WrongAnswer(
                name="floats only",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            same = (first == state[name]) | (first.isnan() & state[name].isnan())
            if first.is_floating_point() and not same.all():
                return name
""",
                says="A whole number differs",
            ),
            WrongAnswer(
                name="ranks 0 and 1 only",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        other = states[1][name]
        if not ((first == other) | (first.isnan() & other.isnan())).all():
            return name
""",
                says="Only the last rank differs",
            ),
            WrongAnswer(
                name="nan is no agreement",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        if not all(torch.equal(first, state[name]) for state in states):
            return name
""",
                says="torch.equal says no",
            ),
            WrongAnswer(
                name="one nan is enough",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            other = state[name]
            if ((first != other) & ~(first.isnan() | other.isnan())).any():
                return name
""",
                says="Rank 1 has nan where rank 0 has a number",
            ),
            WrongAnswer(
                name="asks only rank 0 for nan",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            if not ((first == state[name]) | first.isnan()).all():
                return name
""",
                says="Rank 0 has nan where the others have numbers",
            ),
            WrongAnswer(
                name="ranks outside, names inside",
                source="""\
def first_disagreement(states):
    for state in states[1:]:
        for name, first in states[0].items():
            same = (first == state[name]) | (first.isnan() & state[name].isnan())
            if not same.all():
                return name
""",
                says="names outside and ranks inside",
            ),
            WrongAnswer(
                name="the last one that differs",
                source="""\
def first_disagreement(states):
    found = None
    for name, first in states[0].items():
        if any(not torch.equal(first.nan_to_num(), s[name].nan_to_num()) for s in states):
            found = "0.weight"
    return found
""",
                says="The tensor that differs is",
            ),
            WrongAnswer(
                name="a word for agreement",
                source="""\
def first_disagreement(states):
    for name, first in states[0].items():
        for state in states[1:]:
            same = (first == state[name]) | (first.isnan() & state[name].isnan())
            if not same.all():
                return name
    return "none"
""",
                says="Return None then",
            ),
            WrongAnswer(
                name="nan differs once something else does",
                source="""\
def first_disagreement(states):
    found = [
        name
        for name, first in states[0].items()
        if not all(torch.equal(first, state[name]) for state in states)
    ]
    return found[-1] if len(found) > 1 else None
""",
                says="2.weight has nan on all ranks",
            ),
            WrongAnswer(
                name="yes or no",
                source="def first_disagreement(states):\n    return states[0] == states[1:]\n",
                says="Return a name or None",
            ),
        ),
    ),
    "31.5": Exercise(
        title="Repair a script with five faults",
        minutes=10,
        task="Five faults, and no error message. Each rank calls train with a model of its own. "
        "Afterwards all hold one model, trained as one process would on both shares, and rank 0 "
        "returns weights that a plain model loads. Keep SGD, 0.1 and batches of 4. Epochs count from 0.",
        stub="""\
def train(rank, model, start, data, epochs):
    ddp = DistributedDataParallel(model)
    if rank == 0:
        model.load_state_dict(start)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    loader = DataLoader(data, 4, sampler=DistributedSampler(data))
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            (F.cross_entropy(model(x), y) / 2).backward()
            optimizer.step()
    return ddp.state_dict() if rank == 0 else None
""",
        answer="train",
        test=test_train,
        limit=30.0,
        hints=(
            "Read it from top to bottom: when do the ranks get equal, what keeps them equal, what "
            "is averaged, which order do samples come in, what is saved?",
            "The check names one fault at a time. Repair that one and check again.",
            "model.load_state_dict(start)  # before the wrapper is built",
        ),
        solution=_RIGHT_TRAIN,
        wrong=(
            WrongAnswer(
                name="loads after wrapping",
                source=_train_with(
                    "    model.load_state_dict(start)\n    ddp = DistributedDataParallel(model)\n",
                    "    ddp = DistributedDataParallel(model)\n"
                    "    if rank == 0:\n        model.load_state_dict(start)\n",
                ),
                says="Load first, then wrap",
            ),
            WrongAnswer(
                name="without set_epoch",
                source=_train_with("        sampler.set_epoch(epoch)\n", ""),
                says="when set_epoch tells it",
            ),
            WrongAnswer(
                name="epochs from 1",
                source=_train_with("set_epoch(epoch)", "set_epoch(epoch + 1)"),
                says="epochs count from 1",
            ),
            WrongAnswer(
                name="around the wrapper",
                source=_train_with("ddp(x)", "model(x)"),
                says="call the wrapper, not what is in it",
            ),
            WrongAnswer(
                name="divides by hand",
                source=_train_with(
                    "F.cross_entropy(ddp(x), y).backward()",
                    "(F.cross_entropy(ddp(x), y) / 2).backward()",
                ),
                says="Divide nothing by hand",
            ),
            WrongAnswer(
                name="saves the wrapper",
                source=_train_with("return model.state_dict()", "return ddp.state_dict()"),
                says="what is inside the wrapper",
            ),
            WrongAnswer(
                name="a collective on one rank",
                source=_train_with(
                    "    return model",
                    "    if rank == 0:\n        dist.barrier()\n    return model",
                ),
                says="the other one never comes",
            ),
            WrongAnswer(
                name="no sampler",
                source=_train_with("sampler=sampler)", "shuffle=True)"),
                says="its share is 11 in each",
            ),
            WrongAnswer(
                name="a seed for each rank",
                source=_train_with(
                    "DistributedSampler(data)", "DistributedSampler(data, seed=rank)"
                ),
                says="both samplers must shuffle with one seed",
            ),
            WrongAnswer(
                name="multiplies by hand",
                source=_train_with(
                    "F.cross_entropy(ddp(x), y).backward()",
                    "(F.cross_entropy(ddp(x), y) * 2).backward()",
                ),
                says="twice as long",
            ),
            WrongAnswer(
                name="never loads",
                source=_train_with("    model.load_state_dict(start)\n", ""),
                says="start from the given weights",
            ),
            WrongAnswer(
                name="other names",
                source=_train_with("return model.state_dict()", "return {'model': model}"),
                says="The state must have the names of the model",
            ),
            WrongAnswer(
                name="returns nothing",
                source=_train_with("return model.state_dict() if rank == 0 else None", "return"),
                says="Rank 0 must return the state dict",
            ),
            WrongAnswer(
                name="an endless loop",
                source=_train_with("    for epoch", "    while True:\n        pass\n    for epoch"),
                says="a loop does not end",
            ),
            WrongAnswer(
                name="a model instead of a function",
                source="train = torch.nn.Linear(2, 2)\n",
                says="train must be a function",
            ),
        ),
    ),
}
