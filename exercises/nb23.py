"""Ask and check what 23_feed_the_model teaches."""

import inspect
import itertools
import math
import random
from collections import Counter
from contextlib import contextmanager

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data._utils import worker as torch_worker

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer
from helpers.units import format_time

PREDICTIONS = {
    "23.p1": Number(
        question="1,437 digits in batches of 128. How many times longer does the DataLoader with "
        "shuffle=True take than slicing the tensors by a random permutation?",
        unit="ratio",
        notes=(
            (0, 2, "The loader asks for every digit alone, in Python, and then copies them "
             "together again."),
            (2, 10, "More: 1,437 calls in Python against 12."),
            (10, 200, "About that: one call for each item against one call for each batch."),
            (200, math.inf, "Less: cutting and copying the batches has a price too."),
        ),
    ),
    "23.p2": Choice(
        question="Which load suffers most when four workers replace none?",
        options={
            "rows in memory": "Right: sending a batch from process to process costs more than "
            "indexing it.",
            "items that wait": "Waiting needs no core. Four workers wait at the same time.",
            "items that compute": "Four processes share the cores there are, so they win little "
            "or nothing. They lose less than the rows do.",
            "none of them": "Every batch of a worker is handed over between processes. That costs "
            "most where the loading itself costs nothing.",
        },
    ),
    "23.p3": Choice(
        question="Loading a batch takes 20 ms, a step of the model 20 ms. With one worker, which "
        "number is nearest to the milliseconds per step?",
        options={
            "40": "That is the time without workers. A worker loads the next batch while the "
            "model computes.",
            "20": "Right: the two overlap, and the slower one sets the pace.",
            "10": "A worker does not make the step shorter: 20 ms is what the model needs.",
        },
    ),
    "23.p4": Choice(
        question="Two workers, prefetch_factor=2, batches of 5. You have taken one batch. How many "
        "items have been loaded?",
        options={
            "5": "Workers do not wait for you to ask.",
            "10": "One batch for each worker would be that. Each of them works ahead by two.",
            "20": "Those are the batches that were ordered at the start. Taking one ordered "
            "another.",
            "25": "Right: two times two batches ahead, and the one that you hold.",
        },
    ),
    "23.p5": Choice(
        question="The cache is allowed 90 of 100 images and drops the oldest. Every epoch asks for "
        "image 0 to 99 in order. From the second epoch on, how many of 100 requests does it answer?",
        options={
            "90": "90 images are in it all the time. They are the wrong ones.",
            "10": "The 10 that do not fit are enough to push out every one of the 90.",
            "45": "No half measures here: follow image 0 through an epoch.",
            "0": "Right: an image leaves shortly before it is asked for again.",
        },
    ),
    "23.p6": Number(
        question="A dataset keeps self.rng = np.random.default_rng(0) and draws one number for each "
        "of 16 items. Two workers, two epochs, 32 draws: how many different numbers?",
        unit="numbers",
        among=32,
        notes=(
            (0, 8, "Within one worker and one epoch the generator moves on: 8 items, 8 numbers."),
            (8, 9, "Right: every worker of every epoch begins with the same copy."),
            (9, 17, "You counted the copies of one epoch. The next epoch starts new workers, "
             "with new copies of the object in the parent, which never moved."),
            (17, 33, "torch seeds its own generator in a worker, and the global ones of NumPy and "
             "of random. An object in your dataset it does not know."),
        ),
    ),
}  # fmt: skip


def _workers(number):
    return "1 worker" if number == 1 else f"{number} workers"


# --- 23.1 -------------------------------------------------------------------------------

AHEAD = 2  # prefetch_factor


def simulate(load, step, workers, batches=240):
    """Return the seconds per step of a loader, by playing its events one after the other."""
    if workers == 0:
        return load + step
    free, ready, now = [0.0] * workers, {}, 0.0

    def order(batch):
        worker = batch % workers  # the loader hands out batches in turn
        free[worker] = max(free[worker], now) + load
        ready[batch] = free[worker]

    for batch in range(workers * AHEAD):
        order(batch)
    middle = 0.0
    for batch in range(batches):
        now = max(now, ready.pop(batch))
        order(batch + workers * AHEAD)
        now += step
        middle = now if batch == batches // 2 - 1 else middle
    return (now - middle) / (batches - batches // 2)


def _cases_of_steps():
    fixed = [(0.02, 0.02, 1), (0.04, 0.02, 0), (0.01, 0.03, 4), (0.06, 0.02, 2), (0.05, 0.0, 5)]
    drawn = [
        (random.uniform(0.001, 0.05), random.uniform(0.001, 0.05), random.randint(0, 8))
        for _ in range(20)
    ]
    return fixed + drawn


def _why_seconds(got, load, step, workers):
    """Say which misconception gives this number."""
    many = max(workers, 1)
    reasons = (
        (max(load, step), "Without workers one program does both, one after the other.")
        if workers == 0
        else (
            load + step,
            "Workers run ahead: while the model computes, the next batch is loaded.",
        ),
        (max(load, step) / many, "The step is not divided: there is one model."),
        (load / many, "A batch that is ready does not make the step of the model shorter."),
        (max(load, step), f"{workers} workers load {workers} batches at the same time."),
        (step + load / many, "Loading and the step overlap: do not add them."),
    )
    close = (why for value, why in reasons if math.isclose(got, value, rel_tol=0.02))
    return next(close, "The slower of the two sides sets the pace.")


def test_step_seconds(answer, call):
    for load, step, workers in _cases_of_steps():
        case = f"load {format_time(load)}, step {format_time(step)}, {_workers(workers)}"
        try:
            got = call(answer, load, step, workers)
        except ZeroDivisionError:
            raise Wrong(
                f"With {case} your function divides by zero. With 0 workers the program itself "
                "loads and then steps: a case of its own."
            ) from None
        if isinstance(got, bool) or not isinstance(got, int | float | np.number):
            raise Wrong(
                f"step_seconds must return a number of seconds, got {type(got).__name__}. "
                "Is a return missing?"
            )
        expected = simulate(load, step, workers)
        if not math.isclose(got, expected, rel_tol=0.02):
            raise Wrong(
                f"With {case}, a simulated loader takes {format_time(expected)} a step; yours says "
                f"{format_time(got)}. {_why_seconds(got, load, step, workers)}"
            )


def _seconds(body):
    return f"def step_seconds(load, step, workers):\n{body}"


# --- 23.2 -------------------------------------------------------------------------------


class _Counting(TorchDispatchMode):
    """Count the operations of torch."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def _operations(answer, call, images, labels, size):
    with _Counting() as counting:
        call(answer, images, labels, torch.randint(len(images), (size,)).tolist())
    return counting.count


def _fetched(answer, call, images, labels, indices):
    batch = call(answer, images, labels, list(indices))
    pair = isinstance(batch, tuple | list) and len(batch) == 2
    if not (pair and all(isinstance(part, torch.Tensor) for part in batch)):
        kind = f"{len(batch)} parts" if isinstance(batch, tuple | list) else type(batch).__name__
        raise Wrong(
            "fetch must return two tensors, the images of the batch and its labels; got "
            f"{kind}. Is a return missing, or a stack?"
        )
    return batch


def _why_batch(name, got, source, indices):
    """Say what is wrong with one tensor of a batch."""
    if len(got) != len(indices):
        return (
            f"{len(indices)} indices gave {len(got)} {name}. An index that is asked for twice "
            "comes twice."
        )
    if torch.equal(got, source[sorted(indices)]):
        return (
            f"The {name} came in sorted order. A batch keeps the order that the sampler drew: "
            f"{indices[:4]}, not {sorted(indices)[:4]}."
        )
    if torch.equal(got, source[: len(indices)]):
        return (
            f"The {name} are the first {len(indices)} of the storage, whatever was asked for: "
            "index them with the same indices as their partner."
        )
    return f"The {name} of the batch are not those of indices {indices[:4]}."


def test_fetch(answer, call):
    images, labels = torch.rand(300, 1, 4, 4), torch.randperm(300)
    drawn = torch.randperm(300)[:20].tolist()
    for indices in ([*drawn, drawn[3]], list(range(40, 48)), [7]):
        batch = _fetched(answer, call, images, labels, indices)
        for name, got, source in zip(("images", "labels"), batch, (images, labels), strict=True):
            expected = torch.stack([source[index] for index in indices])
            if (
                got.dtype != expected.dtype
                or got.shape != expected.shape
                or (got != expected).any()
            ):
                raise Wrong(_why_batch(name, got, source, indices))
            if got.untyped_storage().data_ptr() == source.untyped_storage().data_ptr():
                raise Wrong(
                    f"For indices {indices[:3]}... the {name} are a view: your batch changes with "
                    "the data, and the data with an in-place augmentation. Index with a list, "
                    "which copies."
                )
    few, many = (_operations(answer, call, images, labels, size) for size in (8, 64))
    if many > few + 8:
        raise Wrong(
            f"8 items took {few} operations of torch, 64 items {many}. One call for each tensor "
            "is enough: a tensor takes a whole list of indices."
        )


def _fetch(body):
    return f"def fetch(images, labels, indices):\n{body}"


# --- 23.3 -------------------------------------------------------------------------------

GENERATORS = {
    "torch's": torch.get_rng_state,
    "NumPy's": lambda: torch.from_numpy(np.random.get_state()[1].astype(np.int64)),
    "Python's": lambda: torch.tensor(random.getstate()[1]),
}
# Two keys that must not draw alike, as (seed, epoch, index), and what is wrong if they do.
DISTINCT = (
    ((1, 2, 3), (1, 4, 3), "Epoch 2 and epoch 4 change item 3 alike: the epoch is left out, and "
     "the model sees one augmentation for ever."),
    ((1, 2, 3), (1, 2, 5), "Items 3 and 5 of one epoch are changed alike: the index is left out."),
    ((1, 2, 3), (7, 2, 3), "Seeds 1 and 7 give the same draw: the seed is left out, so no second "
     "run can differ."),
    ((0, 0, 1), (0, 1, 0), "Epoch 0, item 1 and epoch 1, item 0 draw alike: a sum cannot tell them "
     "apart. np.random.default_rng takes a list of three numbers."),
    *(((0, 0, 10**k), (0, 1, 0), f"Epoch 0, item {10**k:,} and epoch 1, item 0 draw alike: large "
       "indices reach into the epoch. np.random.default_rng takes a list of three numbers.")
      for k in range(1, 7)),
)  # fmt: skip


@contextmanager
def _another_process(answer, salt):
    """Give the answer what another process has: other global states, another hash of texts."""
    random.seed(salt)
    np.random.seed(salt)
    torch.manual_seed(salt)
    space = getattr(inspect.unwrap(answer), "__globals__", {})
    own = "hash" in space
    if not own:
        space["hash"] = lambda value: hash(value) + (salt if isinstance(value, str) else 0)
    try:
        yield
    finally:
        if not own:
            space.pop("hash", None)


def _augmented(answer, call, image, key):
    seed, epoch, index = key
    result = call(answer, image, seed=seed, epoch=epoch, index=index)
    if not isinstance(result, torch.Tensor) or result.shape != image.shape:
        said = getattr(result, "shape", type(result).__name__)
        raise Wrong(
            f"augment must return an image of shape {tuple(image.shape)}, got {said}. Is a return "
            "missing?"
        )
    if result.dtype != image.dtype:
        raise Wrong(
            f"The image came as {image.dtype} and went as {result.dtype}. NumPy draws in float64 "
            "unless you say dtype=np.float32, and an addition takes the wider type."
        )
    return result.detach().clone()


def _global_states(answer, call, image):
    """Return, for each global generator, its states before and after a call, from two starts."""
    seen = {name: [] for name in GENERATORS}
    for salt in (11, 23):
        with _another_process(answer, salt):
            before = {name: state() for name, state in GENERATORS.items()}
            _augmented(answer, call, image, (1, 2, 3))
            for name, state in GENERATORS.items():
                seen[name].append((before[name], state()))
    return seen


def test_augment(answer, call):
    image = torch.rand(1, 8, 8)
    for name, ((before, after), (_, other)) in _global_states(answer, call, image).items():
        if torch.equal(before, after):
            continue
        if torch.equal(after, other):
            raise Wrong(
                f"Your code seeds {name} global generator: the next shuffle, and every other draw, "
                "is now yours too. Make a generator of your own in the call."
            )
        raise Wrong(
            f"Your code draws from {name} global generator, so an image depends on how many "
            "draws came before it: other workers, other images. Make a generator of your own."
        )
    keys = [(1, epoch, index) for epoch in range(2) for index in range(4)]
    with _another_process(answer, 5):
        here = {key: _augmented(answer, call, image, key) for key in keys}
    with _another_process(answer, 77):
        there = {key: _augmented(answer, call, image, key) for key in reversed(keys)}
    if any(not torch.equal(here[key], there[key]) for key in keys):
        raise Wrong(
            "The same seed, epoch and index gave two images when other calls came first, in "
            "another process. A generator that lives on, or hash() of a text, does that."
        )
    if torch.equal(here[keys[0]], image):
        raise Wrong("The image came back unchanged. Add the noise: 0.1 times a normal draw.")
    for one, two, why in DISTINCT:
        if torch.equal(_augmented(answer, call, image, one), _augmented(answer, call, image, two)):
            raise Wrong(why)
    _about_noise(answer, call)


def _about_noise(answer, call):
    """Compare what was added, over 0.1, with a standard normal draw; limits lie 6 sigma out."""
    images = [torch.rand(1, 64, 64) for _ in range(2)]
    results = [_augmented(answer, call, image, (1, 2, 3)) for image in images]
    draws = [(r.double() - i.double()) / 0.1 for r, i in zip(results, images, strict=True)]
    if torch.allclose(*results, atol=1e-4):
        raise Wrong(
            "Two images gave one result: only the noise is in it. Add the noise to the image."
        )
    if not torch.allclose(*draws, atol=1e-4):
        raise Wrong(
            "Under one key two images got different noise, so the noise depends on the image. Add "
            "the draw; multiplying or cutting changes it."
        )
    (pixels,) = draws[0]  # (64, 64)
    if min(pixels.std(0).min(), pixels.std(1).min()) < 0.05 * pixels.abs().max():
        raise Wrong(
            "Pixels in a row or a column all got one number. Draw one for each pixel: as many as "
            "the image's shape has."
        )
    mean, std = pixels.mean().item(), pixels.std().item()
    if abs(mean) > 0.1 * std:
        raise Wrong(
            f"The noise has mean {0.1 * mean:.3f}, so images get brighter or darker. A normal draw "
            "has mean 0."
        )
    if abs(std - 1) > 0.1:
        raise Wrong(
            f"The noise has a standard deviation of {0.1 * std:.3f}, expected 0.1: a standard "
            "normal draw has 1, and the factor 0.1 does the rest."
        )
    within = (pixels.abs() < 1).double().mean().item()
    if not 0.63 < within < 0.73 or pixels.abs().max() < 2:
        raise Wrong(
            f"{within:.0%} of the noise lies within one standard deviation, and the farthest pixel "
            f"at {pixels.abs().max():.1f}. Of a normal draw it is 68%, and some pixels lie beyond "
            "2: a uniform draw has edges."
        )


def _augment(body, extra=""):
    return f"def augment(image, *, seed, epoch, index{extra}):\n{body}"


_KEY = "[seed, epoch, index]"


def _noise(seed):
    return _augment(
        f"    rng = np.random.default_rng({seed})\n"
        "    noise = rng.standard_normal(tuple(image.shape), dtype=np.float32)\n"
        "    return image + 0.1 * torch.from_numpy(noise)\n"
    )


# --- 23.4 -------------------------------------------------------------------------------

ITEMS = 20


def _why_loads(loads, capacity):
    answered = ITEMS - loads
    if loads > ITEMS:
        return "Some item was loaded twice in a row: keep what load returned, and return it."
    if answered == capacity + 1:
        return "One more is kept than allowed: the limit is tested before the insertion."
    if answered > capacity:
        return "The cache grows past its limit: stop keeping when it is full."
    return (
        "What the next epoch asks for is not there: something was thrown out, or never kept. "
        "Once full, keep what is there."
    )


def _one_epoch(cache, call, items, asked):
    """Ask for every item once, spoil what comes back, and return how often `load` was called."""
    asked.clear()
    for index in random.sample(range(ITEMS), ITEMS):
        item = call(cache.get, index)
        if not isinstance(item, torch.Tensor):
            raise Wrong(
                f"get must return the item, got {type(item).__name__}. Is a return missing?"
            )
        if not torch.equal(item, items[index]):
            raise Wrong(
                f"Item {index} came back changed, because an in-place augmentation reached the "
                "kept tensor. Keep one tensor and hand out another: clone."
            )
        item.mul_(2)
    return len(asked)


def test_raw_cache(answer, call):
    items = torch.rand(ITEMS, 3) + 0.1
    for capacity in (10, 0, 15, 1, ITEMS + 5):
        asked = []

        def load(index, asked=asked):
            asked.append(index)
            return items[index].clone()

        cache = call(answer, load, capacity)
        for epoch in range(1, 5):
            loads = _one_epoch(cache, call, items, asked)
            expected = ITEMS - (min(capacity, ITEMS) if epoch > 1 else 0)
            if loads > expected or (epoch > 1 and loads < expected):
                raise Wrong(
                    f"{ITEMS} items, capacity {capacity}, shuffled: in epoch {epoch} load was "
                    f"called {loads} times, expected {expected}. {_why_loads(loads, capacity)}"
                )


_CACHE = """class RawCache:
    def __init__(self, load, capacity):
        self.load, self.capacity, self.kept = load, capacity, {}

    def get(self, index):
"""
_ORDERED = _CACHE.replace("{}", '__import__("collections").OrderedDict()')
_FULL = "if len(self.kept) < self.capacity:"


# --- 23.5 -------------------------------------------------------------------------------


@contextmanager
def _as_worker(id, workers):
    """Let get_worker_info answer as it does in one of `workers` processes; in none for 0."""
    before = torch_worker._worker_info
    seed = 1000 + id
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch_worker._worker_info = (
        torch_worker.WorkerInfo(id=id, num_workers=workers, seed=seed, dataset=None)
        if workers
        else None
    )
    try:
        yield
    finally:
        torch_worker._worker_info = before


def _part(answer, call, n, id, workers):
    """Return what one worker yields."""
    with _as_worker(id, workers):
        try:
            result = call(answer, n)
            # Text would be cut into letters; what cannot be read at all is its own one item.
            whole = isinstance(result, str | int) or not hasattr(result, "__iter__")
            items = [str(result)] if whole else list(itertools.islice(result, 10 * n + 10))
        except AttributeError:
            if workers:
                raise
            raise Wrong(
                "With 0 workers get_worker_info() returns None, which has no id: the program "
                "itself reads all of it."
            ) from None
    if not all(isinstance(item, int | np.integer | torch.Tensor) for item in items):
        kind = type(result if whole else items[0]).__name__
        raise Wrong(
            f"iterate must yield whole numbers one by one, got {kind}. Is a yield or a return "
            "missing?"
        )
    return [int(item) for item in items]


def _why_parts(parts, n, workers):
    counts = Counter(itertools.chain(*parts))
    missing = [number for number in range(n) if number not in counts]
    twice = [number for number, count in counts.items() if count > 1]
    said = f"{_workers(workers)}, {n} numbers: "
    if missing and twice:
        return (
            f"{said}{twice[0]} came twice and {missing[0]} never. Every worker must cut the same "
            "order: a shuffle of its own in each gives parts that overlap."
        )
    if twice:
        return f"{said}{twice[0]} came {counts[twice[0]]} times. Each worker takes a part only."
    if missing and missing[-1] == n - 1 and 0 not in missing:
        return f"{said}{missing[-1]} never came. A division without rest leaves the end out."
    if missing and not workers:
        return f"{said}{missing[0]} never came. Then the program itself reads all of it."
    if missing:
        return f"{said}{missing[0]} never came. The ids of the workers begin with 0."
    return f"{said}{sorted(counts - Counter(range(n)))} should not come at all."


def test_iterate(answer, call):
    for workers in (0, 1, 2, 3, 4):
        for n in (12, 7, 1, 0):
            parts = [_part(answer, call, n, id, workers) for id in range(max(workers, 1))]
            if Counter(itertools.chain(*parts)) != Counter(range(n)):
                raise Wrong(_why_parts(parts, n, workers))
            if workers > 1 and n == 12 and any(len(part) == n for part in parts):
                raise Wrong(
                    f"{workers} workers, {n} numbers: one worker yields all of them and the others "
                    "nothing. Each number comes once, but nobody helps."
                )


def _iterate(body):
    return f"def iterate(n):\n    info = torch.utils.data.get_worker_info()\n{body}"


EXERCISES = {
    "23.1": Exercise(
        title="Predict the step time",
        minutes=5,
        task="Write `step_seconds(load, step, workers)`: the seconds from one step to the next, "
        "once the loader is in full swing, if loading a batch takes `load` seconds and a step of "
        "the model `step`. Workers do not compete for cores. 0 workers is a case too.",
        stub=_seconds("    return ...\n"),
        answer="step_seconds",
        test=test_step_seconds,
        hints=(
            "Two sides work at the same time: the workers and the model. Which one waits?",
            "Load 60 ms, step 20 ms, 2 workers: two batches arrive every 60 ms. How long does "
            "the model wait for each?",
            "Begin with if workers == 0: return load + step",
        ),
        solution=_seconds(
            "    if workers == 0:\n        return load + step\n"
            "    return max(step, load / workers)\n"
        ),
        wrong=(
            WrongAnswer(
                "always the sum", _seconds("    return load + step\n"), "Workers run ahead"
            ),
            WrongAnswer(
                "divides by zero",
                _seconds("    return max(step, load / workers)\n"),
                "a case of its own",
            ),
            WrongAnswer(
                "overlap without workers",
                _seconds("    return max(step, load / max(workers, 1))\n"),
                "one after the other",
            ),
            WrongAnswer(
                "the step divided",
                _seconds(
                    "    if not workers:\n        return load + step\n"
                    "    return max(load, step) / workers\n"
                ),
                "The step is not divided",
            ),
            WrongAnswer(
                "the step forgotten",
                _seconds(
                    "    if not workers:\n        return load + step\n    return load / workers\n"
                ),
                "does not make the step",
            ),
            WrongAnswer(
                "no overlap",
                _seconds(
                    "    if not workers:\n        return load + step\n"
                    "    return step + load / workers\n"
                ),
                "Workers run ahead",
            ),
            WrongAnswer(
                "one worker only",
                _seconds(
                    "    if not workers:\n        return load + step\n    return max(load, step)\n"
                ),
                "batches at the same time",
            ),
            WrongAnswer(
                "no return",
                _seconds("    seconds = max(step, load)\n"),
                "must return a number of seconds",
            ),
        ),
    ),
    "23.2": Exercise(
        title="Fetch a batch in one call",
        minutes=4,
        task="`fetch` is what a dataset's `__getitems__` does. Rewrite it with one indexing call "
        "for each tensor. The batch has the order of `indices`, repeated ones too, and bytes of "
        "its own.",
        stub=_fetch(
            "    pairs = [(images[i], labels[i]) for i in indices]\n"
            "    return torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])\n"
        ),
        answer="fetch",
        test=test_fetch,
        hints=(
            "A tensor can be indexed with a list of integers, in any order, with repeats.",
            "images[[5, 2, 5]] has three rows. What is its first one?",
            "Begin with return images[indices],",
        ),
        solution=_fetch("    return images[indices], labels[indices]\n"),
        wrong=(
            WrongAnswer(
                "sorts",
                _fetch(
                    "    indices = sorted(indices)\n    return images[indices], labels[indices]\n"
                ),
                "in sorted order",
            ),
            WrongAnswer(
                "drops repeats",
                _fetch(
                    "    indices = list(dict.fromkeys(indices))\n"
                    "    return images[indices], labels[indices]\n"
                ),
                "comes twice",
            ),
            WrongAnswer(
                "labels in storage order",
                _fetch("    return images[indices], labels[: len(indices)]\n"),
                "the first 21 of the storage",
            ),
            WrongAnswer(
                "labels of other items",
                _fetch("    return images[indices], labels[[i - 1 for i in indices]]\n"),
                "are not those of indices",
            ),
            WrongAnswer(
                "a view of neighbors",
                _fetch(
                    "    first, last = indices[0], indices[-1]\n"
                    "    if indices == list(range(first, last + 1)):\n"
                    "        return images[first : last + 1], labels[first : last + 1]\n"
                    "    return images[indices], labels[indices]\n"
                ),
                "your batch changes with the data",
            ),
            WrongAnswer(
                "loops",
                _fetch("    return torch.stack([images[i] for i in indices]), labels[indices]\n"),
                "One call for each tensor",
            ),
            WrongAnswer(
                "copies in a loop",
                _fetch(
                    "    batch = torch.empty(len(indices), *images.shape[1:])\n"
                    "    for row, index in enumerate(indices):\n"
                    "        batch[row] = images[index]\n"
                    "    return batch, labels[indices]\n"
                ),
                "One call for each tensor",
            ),
            WrongAnswer(
                "a list of pairs",
                _fetch("    return [(images[i], labels[i]) for i in indices]\n"),
                "must return two tensors",
            ),
        ),
    ),
    "23.3": Exercise(
        title="Augment alike in every worker",
        minutes=6,
        task="`augment` adds noise: 0.1 times a normal draw. Repair it: seed, epoch and index, and "
        "nothing else, decide the draw. It is equal for any number of workers and new in every "
        "epoch; no global generator moves, and the image stays as it is.",
        stub=_augment("    return image + 0.1 * torch.randn_like(image)\n"),
        answer="augment",
        test=test_augment,
        hints=(
            "Make a generator inside the call, from the three numbers. It dies with the call.",
            "seed + epoch + index is 1 for epoch 0, item 1 and for epoch 1, item 0.",
            "Begin with rng = np.random.default_rng([seed, epoch, index])",
        ),
        solution=_noise(_KEY),
        wrong=(
            WrongAnswer("a sum", _noise("seed + epoch + index"), "a sum cannot tell them"),
            WrongAnswer("the epoch left out", _noise("[seed, index]"), "the epoch is left out"),
            WrongAnswer("the index left out", _noise("[seed, epoch]"), "the index is left out"),
            WrongAnswer("the seed left out", _noise("[epoch, index]"), "the seed is left out"),
            WrongAnswer(
                "thousands",
                _noise("10**6 * seed + 10**3 * epoch + index"),
                "reach into the epoch",
            ),
            WrongAnswer(
                "seeds torch",
                _augment(
                    "    torch.manual_seed(seed + 1000 * epoch + index)\n"
                    "    return image + 0.1 * torch.randn_like(image)\n"
                ),
                "the next shuffle",
            ),
            WrongAnswer(
                "NumPy's global generator",
                _augment(
                    "    noise = np.random.standard_normal(tuple(image.shape))\n"
                    "    return image + 0.1 * torch.from_numpy(noise).float()\n"
                ),
                "how many draws came before",
            ),
            WrongAnswer(
                "a generator that lives on",
                _augment(
                    "    noise = rng.standard_normal(tuple(image.shape), dtype=np.float32)\n"
                    "    return image + 0.1 * torch.from_numpy(noise)\n",
                    extra=", rng=np.random.default_rng(0)",
                ),
                "A generator that lives on",
            ),
            WrongAnswer(
                "hash of a text",
                _noise('abs(hash(f"{seed} {epoch} {index}"))'),
                "hash() of a text",
            ),
            WrongAnswer(
                "writes into the image",
                _augment(
                    "    rng = torch.Generator().manual_seed(seed + 7919 * epoch + 31 * index)\n"
                    "    return image.add_(0.1 * torch.randn(image.shape, generator=rng))\n"
                ),
                "changed its input",
            ),
            WrongAnswer(
                "no noise",
                _augment(
                    "    rng = np.random.default_rng([seed, epoch, index])\n"
                    "    return image.clone()\n"
                ),
                "came back unchanged",
            ),
            WrongAnswer(
                "ignores the image",
                _noise(_KEY).replace("image + 0.1", "0.1"),
                "only the noise is in it",
            ),
            WrongAnswer("no factor", _noise(_KEY).replace("0.1 * ", ""), "the factor 0.1 does"),
            WrongAnswer(
                "uniform noise",
                _noise(_KEY).replace("standard_normal", "random"),
                "A normal draw has mean 0",
            ),
            WrongAnswer(
                "uniform noise around 0",
                _noise(_KEY)
                .replace("standard_normal", "random")
                .replace("torch.from_numpy(noise)", "12**0.5 * (torch.from_numpy(noise) - 0.5)"),
                "a uniform draw has edges",
            ),
            WrongAnswer(
                "one number for all pixels",
                _noise(_KEY).replace("tuple(image.shape)", "(1,)"),
                "Draw one for each pixel",
            ),
            WrongAnswer(
                "one number for each column",
                _noise(_KEY).replace("tuple(image.shape)", "image.shape[-1]"),
                "Draw one for each pixel",
            ),
            WrongAnswer(
                "multiplies",
                _noise(_KEY).replace("image + 0.1 *", "image + 0.1 * image *"),
                "the noise depends on the image",
            ),
            WrongAnswer(
                "cuts at 0 and 1",
                _noise(_KEY).replace(
                    "image + 0.1 * torch.from_numpy(noise)",
                    "(image + 0.1 * torch.from_numpy(noise)).clamp(0, 1)",
                ),
                "the noise depends on the image",
            ),
            WrongAnswer(
                "float64",
                _noise(_KEY).replace(", dtype=np.float32", ""),
                "NumPy draws in float64",
            ),
            WrongAnswer(
                "no return",
                _augment("    rng = np.random.default_rng([seed, epoch, index])\n"),
                "must return an image",
            ),
        ),
    ),
    "23.4": Exercise(
        title="Build a cache that keeps its promise",
        minutes=6,
        task="Write `get`: the item that `load(index)` returns, loaded once while it is kept. At "
        "most `capacity` items are kept, and in every shuffled epoch after the first exactly that "
        "many requests are answered without loading. The caller may change what it gets.",
        stub=_CACHE + "        return ...\n",
        answer="RawCache",
        test=test_raw_cache,
        hints=(
            "Which of the three policies of this notebook reaches its capacity?",
            "With capacity 10, test the limit before you insert: how many are kept when the "
            "condition is len(self.kept) > self.capacity?",
            "Begin with if index in self.kept: return self.kept[index].clone()",
        ),
        solution=_CACHE + "        if index in self.kept:\n"
        "            return self.kept[index].clone()\n"
        "        item = self.load(index)\n"
        f"        {_FULL}\n"
        "            self.kept[index] = item.clone()\n"
        "        return item\n",
        wrong=(
            WrongAnswer(
                "one too many",
                _CACHE + "        if index in self.kept:\n"
                "            return self.kept[index].clone()\n"
                "        item = self.load(index)\n"
                "        if not len(self.kept) > self.capacity:\n"
                "            self.kept[index] = item.clone()\n"
                "        return item\n",
                "One more is kept",
            ),
            WrongAnswer(
                "no limit",
                _CACHE + "        if index not in self.kept:\n"
                "            self.kept[index] = self.load(index)\n"
                "        return self.kept[index].clone()\n",
                "grows past its limit",
            ),
            WrongAnswer(
                "oldest out",
                _CACHE + "        if index not in self.kept:\n"
                "            item = self.load(index)\n"
                "            if len(self.kept) >= self.capacity > 0:\n"
                "                del self.kept[next(iter(self.kept))]\n"
                "            self.kept[index] = item\n"
                "        return self.kept[index].clone()\n",
                "something was thrown out",
            ),
            WrongAnswer(
                "least recently used out",
                _ORDERED + "        item = self.kept.pop(index, None)\n"
                "        if item is None:\n"
                "            item = self.load(index)\n"
                "        self.kept[index] = item\n"
                "        if len(self.kept) > self.capacity:\n"
                "            self.kept.popitem(last=False)\n"
                "        return item.clone()\n",
                "something was thrown out",
            ),
            WrongAnswer(
                "loads twice",
                _CACHE + "        if index not in self.kept:\n"
                f"            {_FULL}\n"
                "                self.kept[index] = self.load(index)\n"
                "            return self.load(index)\n"
                "        return self.kept[index].clone()\n",
                "loaded twice",
            ),
            WrongAnswer(
                "keeps nothing",
                _CACHE + "        return self.load(index)\n",
                "or never kept",
            ),
            WrongAnswer(
                "hands out the kept tensor",
                _CACHE + "        if index in self.kept:\n"
                "            return self.kept[index]\n"
                "        item = self.load(index)\n"
                f"        {_FULL}\n"
                "            self.kept[index] = item.clone()\n"
                "        return item\n",
                "hand out another",
            ),
            WrongAnswer(
                "keeps what it hands out",
                _CACHE + "        if index in self.kept:\n"
                "            return self.kept[index].clone()\n"
                "        item = self.load(index)\n"
                f"        {_FULL}\n"
                "            self.kept[index] = item\n"
                "        return item\n",
                "hand out another",
            ),
            WrongAnswer(
                "no return",
                _CACHE + "        if index not in self.kept:\n"
                "            self.kept[index] = self.load(index)\n",
                "must return the item",
            ),
        ),
    ),
    "23.5": Exercise(
        title="Read an iterable dataset exactly once",
        minutes=5,
        task="`iterate(n)` is the `__iter__` of an IterableDataset. With workers every number comes "
        "once for each worker. Repair it with `torch.utils.data.get_worker_info()`: all workers "
        "together yield each of 0 to n - 1 once, for any n, and without workers too.",
        stub="def iterate(n):\n    yield from range(n)\n",
        answer="iterate",
        test=test_iterate,
        hints=(
            "info.id counts from 0 to info.num_workers - 1. Without workers info is None.",
            "7 numbers and 2 workers: 7 // 2 is 3, and twice 3 is 6.",
            "Begin with if info is None: and then let each worker take every "
            "num_workers-th number.",
        ),
        solution=_iterate(
            "    first, stride = (0, 1) if info is None else (info.id, info.num_workers)\n"
            "    yield from range(first, n, stride)\n"
        ),
        wrong=(
            WrongAnswer(
                "None unhandled",
                _iterate("    yield from range(info.id, n, info.num_workers)\n"),
                "returns None",
            ),
            WrongAnswer(
                "the rest lost",
                _iterate(
                    "    if info is None:\n        yield from range(n)\n        return\n"
                    "    size = n // info.num_workers\n"
                    "    yield from range(info.id * size, (info.id + 1) * size)\n"
                ),
                "leaves the end out",
            ),
            WrongAnswer(
                "ids from 1",
                _iterate(
                    "    if info is None:\n        yield from range(n)\n        return\n"
                    "    yield from range(info.id + 1, n, info.num_workers)\n"
                ),
                "begin with 0",
            ),
            WrongAnswer(
                "all from the first",
                _iterate("    if info is None or info.id == 0:\n        yield from range(n)\n"),
                "nobody helps",
            ),
            WrongAnswer(
                "a shuffle of its own",
                _iterate(
                    "    order = torch.randperm(n).tolist()\n"
                    "    yield from order if info is None else order[info.id :: info.num_workers]\n"
                ),
                "a shuffle of its own",
            ),
            WrongAnswer(
                "parts that overlap",
                _iterate(
                    "    first = 0 if info is None else info.id\n    yield from range(first, n)\n"
                ),
                "takes a part only",
            ),
            WrongAnswer(
                "rounded up past the end",
                _iterate(
                    "    if info is None:\n        yield from range(n)\n        return\n"
                    "    size = -(-n // info.num_workers)\n"
                    "    yield from range(info.id * size, (info.id + 1) * size)\n"
                ),
                "should not come at all",
            ),
            WrongAnswer(
                "nothing without workers",
                _iterate(
                    "    if info is not None:\n"
                    "        yield from range(info.id, n, info.num_workers)\n"
                ),
                "Then the program itself",
            ),
            WrongAnswer(
                "no yield",
                "def iterate(n):\n    numbers = range(n)\n",
                "one by one",
            ),
        ),
    ),
}
