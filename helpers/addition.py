"""Teach a small transformer to add two numbers, character by character."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

CHARACTERS = "0123456789+="
LENGTH = 9  # of "47+38=085"
ASKED = 6  # characters before the answer
WIDTH, HEADS, DEPTH = 64, 4, 2


def encode(text: str) -> torch.Tensor:
    """Turn a sum such as ``47+38=085`` into the numbers of its characters.

    Parameters
    ----------
    text : str
        Of digits, ``+`` and ``=``.

    Returns
    -------
    torch.Tensor
        Shape (len(text),), dtype uint8: one byte for each character.

    Raises
    ------
    ValueError
        If the text has another character.

    Examples
    --------
    >>> encode("7+3=").tolist()
    [7, 10, 3, 11]
    """
    for character in text:
        if character not in CHARACTERS:
            raise ValueError(f"text must consist of {CHARACTERS}, got {character!r}")
    return torch.tensor([CHARACTERS.index(character) for character in text], dtype=torch.uint8)


def decode(ids: torch.Tensor) -> str:
    """Turn numbers of characters back into text.

    Parameters
    ----------
    ids : torch.Tensor
        Shape (length,), of integers below 12.

    Returns
    -------
    str

    Examples
    --------
    >>> decode(encode("47+38=085"))
    '47+38=085'
    """
    return "".join(CHARACTERS[i] for i in ids.tolist())


@dataclass(frozen=True)
class Sums:
    """Hold all sums of two numbers below 100, divided for training and for judging.

    Attributes
    ----------
    train, held_out : torch.Tensor
        Shape (sums, 9), dtype uint8: the characters of ``47+38=085`` by number.
    """

    train: torch.Tensor
    held_out: torch.Tensor

    def __repr__(self) -> str:
        return (
            f"{len(self.train):,} sums to train on, such as {decode(self.train[0])}, "
            f"and {len(self.held_out):,} held out"
        )


def load_sums(*, held_out: int = 2000, seed: int = 0) -> Sums:
    """Make the 10,000 sums from 00+00=000 to 99+99=198 and hold some of them out.

    Parameters
    ----------
    held_out : int
        How many are never trained on.
    seed : int
        Which ones.

    Returns
    -------
    Sums

    Raises
    ------
    ValueError
        If a part would be empty.

    Examples
    --------
    >>> load_sums()
    8,000 sums to train on, such as 07+68=075, and 2,000 held out
    """
    if not 0 < held_out < 10_000:
        raise ValueError(f"held_out must be between 1 and 9,999, got {held_out}")
    numbers = torch.arange(100)
    a, b = (grid.flatten() for grid in torch.meshgrid(numbers, numbers, indexing="ij"))
    digits = [a // 10, a % 10, b // 10, b % 10]
    total = a + b
    digits += [total // 100, total // 10 % 10, total % 10]
    plus, equals = torch.full_like(a, 10), torch.full_like(a, 11)
    rows = torch.stack([*digits[:2], plus, *digits[2:4], equals, *digits[4:]], 1)
    order = torch.randperm(10_000, generator=torch.Generator().manual_seed(seed))
    rows = rows.to(torch.uint8)[order]
    return Sums(rows[held_out:].clone(), rows[:held_out].clone())


class Block(nn.Module):
    """Mix positions by attention, then channels by two linear layers; both add to their input."""

    def __init__(self):
        """Make the layers with random weights."""
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        """Return a tensor of the shape of x, (sums, characters, width)."""
        x = x + self.out(self._attend(self.norm1(x)))
        return x + self.down(F.relu(self.up(self.norm2(x))))

    def _attend(self, x):
        rows, length, _ = x.shape
        parts = self.qkv(x).view(rows, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # each (sums, heads, characters, width of a head)
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)).masked_fill(later, -1e4)
        return (scores.softmax(3) @ v).transpose(1, 2).reshape(rows, length, WIDTH)


class Adder(nn.Module):
    """Predict the next character of a sum: a transformer of two blocks, written out.

    Attention is spelled out, so that each tensor it makes is seen by whoever counts.

    Examples
    --------
    >>> model = build()
    >>> model(load_sums().train[:5]).shape
    torch.Size([5, 9, 12])
    >>> sum(p.nbytes for p in model.parameters())
    408880
    """

    def __init__(self):
        """Make the layers with random weights."""
        super().__init__()
        self.token = nn.Embedding(len(CHARACTERS), WIDTH)
        self.position = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(CHARACTERS))
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.3)  # N(0, 1) takes twice the steps

    def forward(self, ids):
        """Return scores of shape (sums, characters, 12) for uint8 ids of shape (sums, characters)."""
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def embed(self, ids):
        """Return what the first block gets."""
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.token(ids.int()) + self.position(places)


def build(seed: int = 0) -> Adder:
    """Return an untrained Adder whose weights depend on the seed alone.

    Parameters
    ----------
    seed : int
        The global generator is left as it was.

    Returns
    -------
    Adder

    Examples
    --------
    >>> bool((build(1).head.weight == build(1).head.weight).all())
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Adder()


def loss(model: nn.Module, sums: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the three digits after ``=``.

    Parameters
    ----------
    model : torch.nn.Module
        Takes ids of shape (sums, characters), returns scores of shape (sums, characters, 12).
    sums : torch.Tensor
        Shape (sums, 9), dtype uint8.

    Returns
    -------
    torch.Tensor
        A number with a graph.

    Examples
    --------
    >>> loss(build(), load_sums().train[:64]).ndim
    0
    """
    scores = model(sums[:, :-1])[:, ASKED - 1 :]
    return F.cross_entropy(scores.flatten(0, 1).float(), sums[:, ASKED:].flatten().long())


@torch.no_grad()
def accuracy(model: nn.Module, sums: torch.Tensor, *, batch: int = 250) -> float:
    """Return the share of sums whose three digits the model writes, one after another, all right.

    Parameters
    ----------
    model : torch.nn.Module
        As for `loss`.
    sums : torch.Tensor
        Shape (sums, 9), dtype uint8.
    batch : int
        How many are asked at once.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy(build(), load_sums().held_out) < 0.05
    True
    """
    right = 0
    for part in sums.split(batch):
        ids = part[:, :ASKED]
        while ids.shape[1] < LENGTH:
            best = model(ids)[:, -1:].argmax(2)
            ids = torch.cat([ids, best.to(torch.uint8)], 1)
        right += int((ids == part).all(1).sum())
    return right / len(sums)
