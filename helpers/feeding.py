"""Hold the datasets that worker processes import, choose how workers start, draw what they give.

A worker process that is not a copy of the notebook's process finds a class only if it can import
it. That is why these datasets stand in a module and not in a cell.
"""

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset

from helpers import plotting

VARIABLE = "COURSE_START_METHOD"
LOADS = ("rows", "waiting", "computing")


def choose_start_method(environ: Mapping[str, str] = os.environ) -> str:
    """Set how worker processes start: as COURSE_START_METHOD says, else as Python does.

    A fork server imports torch once; without that, each worker would.

    Parameters
    ----------
    environ : mapping of str to str
        Where the variable is looked up.

    Returns
    -------
    str
        "fork", "forkserver" or "spawn".

    Raises
    ------
    ValueError
        If this system has no such method.

    See Also
    --------
    multiprocessing, contexts and start methods :
        https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods

    Examples
    --------
    >>> choose_start_method({}) in multiprocessing.get_all_start_methods()
    True
    """
    known = multiprocessing.get_all_start_methods()
    wanted = environ.get(VARIABLE, "")
    if wanted and wanted not in known:
        raise ValueError(
            f"{VARIABLE} must be one of {', '.join(known)} on this system, got {wanted!r}; "
            "unset it for Python's own choice"
        )
    if wanted:
        multiprocessing.set_start_method(wanted, force=True)
    method = multiprocessing.get_start_method()
    if "forkserver" in known:
        multiprocessing.set_forkserver_preload(["torch", __name__])
    return method


class Loads(Dataset):
    """Load digits in one of three ways, and count what was loaded in all processes together.

    Parameters
    ----------
    digits : helpers.data.Digits
        Images and labels in memory.
    wait : float
        Seconds that one item of the load "waiting" sleeps, as if a disk or a network answered.
    rounds : int
        Rounds of a Python loop that one item of the load "computing" takes.

    Attributes
    ----------
    loaded : multiprocessing.Value
        Items loaded so far; `loaded.value = 0` starts anew.

    Raises
    ------
    ValueError
        If `wait` or `rounds` is below zero.

    Examples
    --------
    >>> from helpers.data import load_digits
    >>> loads = Loads(load_digits().train)
    >>> image, label = loads["rows", 0]
    >>> image.shape, loads.loaded.value
    (torch.Size([1, 8, 8]), 1)
    """

    def __init__(self, digits: Dataset, *, wait: float = 0.004, rounds: int = 20_000) -> None:
        """Keep the digits as they are."""
        for name, value in (("wait", wait), ("rounds", rounds)):
            if value < 0:
                raise ValueError(f"{name} must not be negative, got {value}; use 0 for none")
        self.digits, self.wait, self.rounds = digits, wait, rounds
        self.loaded = multiprocessing.Value("q", 0)

    def __len__(self) -> int:
        """Return the number of digits."""
        return len(self.digits)

    def __getitem__(self, key: tuple[str, int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the image and the label of `key`, a pair of a load and an index."""
        load, index = key
        if load not in LOADS:
            raise KeyError(f"the load must be one of {', '.join(LOADS)}, got {load!r}")
        if load == "waiting":
            time.sleep(self.wait)
        elif load == "computing":
            total = 0
            for number in range(self.rounds):
                total += number * number
        with self.loaded.get_lock():
            self.loaded.value += 1
        return self.digits[index]


def shift_at_random(image: torch.Tensor) -> torch.Tensor:
    """Move an image by up to one pixel down and to the right, drawn from torch's global generator.

    Parameters
    ----------
    image : torch.Tensor
        (..., height, width).

    Returns
    -------
    torch.Tensor
        A new tensor of the same shape; what leaves at one edge enters at the other.

    Examples
    --------
    >>> shift_at_random(torch.eye(3)).sum()
    tensor(3.)
    """
    down, right = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(image, (down, right), dims=(-2, -1))


class TransformedCache(Dataset):
    """Keep transformed images up to a limit and drop the oldest, as tutorials do.

    It has four faults on purpose: what was drawn once is drawn for good, the limit is tested
    before the insertion, a hit does not protect an entry, and each worker has a cache of its own.

    Parameters
    ----------
    images : torch.Tensor
        (n, ...).
    transform : callable
        Turns an image into another one.
    limit : int
        How many entries the cache is meant to have.

    Examples
    --------
    >>> cached = TransformedCache(torch.zeros(3, 8, 8), torch.clone, limit=2)
    >>> [hit for _, hit in (cached[0], cached[0])]
    [False, True]
    """

    def __init__(self, images: torch.Tensor, transform: Callable, limit: int = 1000) -> None:
        """Begin with an empty cache."""
        self.images, self.transform, self.limit = images, transform, limit
        self.cache: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, bool]:
        """Return a transformed image, and whether it came from the cache."""
        if index in self.cache:
            return self.cache[index], True
        image = self.transform(self.images[index])
        if len(self.cache) > self.limit:
            del self.cache[next(iter(self.cache))]
        self.cache[index] = image
        return image, False


class SharedCache(Dataset):
    """Keep raw images in memory that all workers share, and transform a copy of them each time.

    Nothing is thrown out: the memory for all images is taken at the start.

    Parameters
    ----------
    load : callable
        Returns the raw image of an index, a float32 tensor of shape `shape`.
    length : int
        The number of images.
    shape : tuple of int
        Shape of one image.
    transform : callable
        Turns an image into another one; it may change its argument.

    Examples
    --------
    >>> shared = SharedCache(torch.eye(8).expand(3, 8, 8).__getitem__, 3, (8, 8), torch.exp_)
    >>> [(image.sum().round().item(), hit) for image, hit in (shared[1], shared[1])]
    [(78.0, False), (78.0, True)]
    """

    def __init__(self, load: Callable, length: int, shape: tuple, transform: Callable) -> None:
        """Take the memory; load nothing yet."""
        self.load, self.transform = load, transform
        self.items = torch.zeros(length, *shape).share_memory_()
        self.filled = torch.zeros(length, dtype=torch.bool).share_memory_()
        self.lock = multiprocessing.Lock()

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, bool]:
        """Return a transformed image, and whether its raw form was there already."""
        with self.lock:
            hit = bool(self.filled[index])
        if not hit:
            raw = self.load(index)  # outside the lock: the other workers go on
            with self.lock:
                self.items[index] = raw
                self.filled[index] = True
        return self.transform(self.items[index].clone()), hit


class Draws(Dataset):
    """Draw one random number from each of five sources for every item.

    Parameters
    ----------
    seed : int
        Seeds the generator that is kept in the dataset, and the one that is made for each item.

    Examples
    --------
    >>> list(Draws(seed=0)[0, 0])[:2]
    ['random.random()', 'np.random.rand()']
    """

    def __init__(self, seed: int) -> None:
        """Make the generator that every worker will get a copy of."""
        self.seed, self.rng = seed, np.random.default_rng(seed)

    def __getitem__(self, key: tuple[int, int]) -> dict[str, float]:
        """Return the five numbers for `key`, a pair of an epoch and an index."""
        epoch, index = key
        return {
            "random.random()": random.random(),
            "np.random.rand()": np.random.rand(),
            "torch.rand(())": torch.rand(()).item(),
            "self.rng.random()": self.rng.random(),
            "default_rng([seed, epoch, index])": np.random.default_rng(
                [self.seed, epoch, index]
            ).random(),
        }


class Numbers(IterableDataset):
    """Yield 0 to n - 1, in every worker that asks.

    Parameters
    ----------
    n : int
        How many.

    Examples
    --------
    >>> list(Numbers(3))
    [0, 1, 2]
    """

    def __init__(self, n: int) -> None:
        """Keep the number."""
        self.n = n

    def __iter__(self) -> Any:
        """Return an iterator over all numbers: this one asks nobody which worker it is in."""
        return iter(range(self.n))


def plot_throughput(
    message: str,
    rates: Mapping[str, Mapping[int, float]],
    *,
    appetite: float,
    caption: str = "",
) -> plotting.Chart:
    """Draw how many items each load gives per second, against what the model takes.

    Parameters
    ----------
    message : str
        The title, a sentence.
    rates : mapping of str to mapping of int to float
        For each load (at most four) the items per second at each number of workers; all loads
        have the same numbers of workers.
    appetite : float
        Items per second that the model takes: a dashed line.
    caption : str
        How it was measured.

    Returns
    -------
    Chart
        With one row per load, one for the model, and one column per number of workers.

    Raises
    ------
    ValueError
        If there is nothing to draw, loads have different numbers of workers, or a rate is not
        above zero.
    """
    workers = _common_workers(rates, appetite)
    colors = plotting.colors()
    figure, axes = plotting.new_figure(message)
    places, ends, rows = range(len(workers)), [], []
    for kind, (name, points) in zip(("memory", "new", "baseline", "gradient"), rates.items(),
                                    strict=False):  # fmt: skip
        values = [points[w] for w in workers]
        axes.plot(places, values, "-", color=colors[kind], marker=plotting.MARKERS[kind],
                  markersize=6)  # fmt: skip
        ends.append((name, values[-1], colors[kind]))
        rows.append((name, *(f"{value:,.0f}" for value in values)))
    axes.axhline(appetite, color=colors["reference"], linestyle="--", zorder=0)
    ends.append(("the model", appetite, colors["reference"]))
    rows.append(("the model", *[f"{appetite:,.0f}"] * len(workers)))
    axes.set(yscale="log", xlabel="workers", ylabel="items per second")
    axes.set_xticks(places, [str(w) for w in workers])
    plotting.label_ends(axes, len(workers) - 1, ends)
    plotting.write_caption(figure, caption)
    return plotting.Chart(figure, message, ("items per second", *map(str, workers)), tuple(rows))


def _common_workers(rates: Mapping[str, Mapping[int, float]], appetite: float) -> list[int]:
    """Return the numbers of workers that all loads have, in order."""
    if not rates or not all(rates.values()):
        raise ValueError("rates must hold at least one rate for each load, got nothing to draw")
    (first, points), *rest = rates.items()
    for name, others in rest:
        if sorted(others) != sorted(points):
            raise ValueError(
                "all loads must have the same numbers of workers, got "
                f"{sorted(points)} for {first} and {sorted(others)} for {name}"
            )
    for name, values in (*rates.items(), ("the model", {0: appetite})):
        if min(values.values()) <= 0:
            raise ValueError(f"rates must be above zero, got {min(values.values())} for {name}")
    return sorted(points)
