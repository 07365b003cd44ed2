"""Size language models that need not fit: build, count and predict one training step.

The models are written as in the papers that they are named after, without dropout. Counting runs
on fake tensors, which have shapes and no data, so that a model of any size is counted in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from helpers.memory import MemoryPeak

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, foreach=False),
    "SGD, momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=False),
    "Adam": lambda p: torch.optim.Adam(p, foreach=False),
    "Adam, foreach": lambda p: torch.optim.Adam(p, foreach=True),
}


@dataclass(frozen=True)
class Shape:
    """Hold the sizes of a decoder-only transformer.

    Attributes
    ----------
    layers, width, heads, vocabulary : int
        As the papers name them; each head has width / heads channels.
    hidden : int
        Width inside the feed-forward part.
    positions : int
        Learned positions, as GPT-2 has them; 0 means rotary ones, RMSNorm and SwiGLU, as in Llama.
    key_heads : int
        Heads of keys and values; fewer than `heads` where several share them.
    tied : bool
        Whether the output layer is the embedding.
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    hidden: int
    positions: int = 0
    key_heads: int = 0
    tied: bool = False

    @property
    def parameters(self) -> int:
        """Return the number of parameters, counted in numbers, not in bytes.

        Examples
        --------
        >>> MODELS["GPT-2 124M"].parameters
        124439808
        """
        h, f, v = self.width, self.hidden, self.vocabulary
        ends = v * h * (1 if self.tied else 2) + self.positions * h
        if self.positions:
            block = 4 * h * h + 4 * h + 2 * h * f + f + h + 4 * h
            return self.layers * block + ends + 2 * h
        keys = h // self.heads * self.key_heads
        block = 2 * h * h + 2 * h * keys + 3 * h * f + 2 * h
        return self.layers * block + ends + h

    @property
    def tensors(self) -> int:
        """Return the number of parameter tensors: Adam keeps a counter of 4 bytes for each."""
        return (12 * self.layers + 4 if self.positions else 9 * self.layers + 2) + (not self.tied)


MODELS = {
    "GPT-2 124M": Shape(12, 768, 12, 50257, 3072, positions=1024, tied=True),
    "TinyLlama 1.1B": Shape(22, 2048, 32, 32000, 5632, key_heads=4),
    "GPT 1.4B": Shape(24, 2048, 16, 50304, 8192, positions=1024),
    "Llama-2-7B": Shape(32, 4096, 32, 32000, 11008, key_heads=32),
}


class GPTBlock(nn.Module):
    """Attend and transform as GPT-2 does: LayerNorm first, GELU, biases.

    Parameters
    ----------
    shape : Shape
    attention : callable
        Takes queries, keys and values of shape (batch, head, time, channel).
    """

    def __init__(self, shape: Shape, attention: Callable[..., torch.Tensor]):
        """Make layers of random weights."""
        super().__init__()
        h = shape.width
        self.heads, self.attention = shape.heads, attention
        self.norm_1, self.norm_2 = nn.LayerNorm(h), nn.LayerNorm(h)
        self.qkv, self.out = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.up, self.down = nn.Linear(h, shape.hidden), nn.Linear(shape.hidden, h)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the next residual stream, of the shape of x: (batch, time, width)."""
        x = x + self.out(self.mixed(self.norm_1(x)))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))

    def mixed(self, x: torch.Tensor) -> torch.Tensor:
        """Let the positions exchange what they know."""
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.attention(q, k, v).transpose(1, 2).flatten(2)


class LlamaBlock(nn.Module):
    """Attend and transform as Llama does: RMSNorm first, rotary positions, SwiGLU, no biases.

    Parameters
    ----------
    shape : Shape
    attention : callable
        Takes queries, keys and values of shape (batch, head, time, channel).
    """

    def __init__(self, shape: Shape, attention: Callable[..., torch.Tensor]):
        """Make layers of random weights."""
        super().__init__()
        h, keys = shape.width, shape.width // shape.heads * shape.key_heads
        self.channels, self.attention = shape.width // shape.heads, attention
        self.repeat = shape.heads // shape.key_heads
        self.norm_1, self.norm_2 = nn.RMSNorm(h), nn.RMSNorm(h)
        self.q, self.out = nn.Linear(h, h, bias=False), nn.Linear(h, h, bias=False)
        self.k, self.v = nn.Linear(h, keys, bias=False), nn.Linear(h, keys, bias=False)
        self.gate, self.up = (nn.Linear(h, shape.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.hidden, h, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Return the next residual stream, of the shape of x: (batch, time, width)."""
        x = x + self.out(self.mixed(self.norm_1(x), cos, sin))
        return x + self.fed(self.norm_2(x))

    def mixed(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Let the positions exchange what they know."""
        q, k, v = (
            layer(x).unflatten(2, (-1, self.channels)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if self.repeat > 1:
            k, v = (t.repeat_interleave(self.repeat, dim=1) for t in (k, v))
        return self.attention(q, k, v).transpose(1, 2).flatten(2)

    def fed(self, x: torch.Tensor) -> torch.Tensor:
        """Transform each position by itself."""
        return self.down(F.silu(self.gate(x)) * self.up(x))


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn pairs of channels by an angle that grows with the position."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def fused_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attend in one kernel, which stores no matrix of scores."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def explicit_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attend as the formula is written: scores, mask, softmax, product."""
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(dim=3) @ v


class LanguageModel(nn.Module):
    """Predict the next token.

    Parameters
    ----------
    shape : Shape
    attention : callable
        `fused_attention` or `explicit_attention`.
    """

    def __init__(
        self, shape: Shape, attention: Callable[..., torch.Tensor] = fused_attention
    ) -> None:
        """Make layers of random weights."""
        super().__init__()
        h = shape.width
        self.channels, self.rotary = h // shape.heads, not shape.positions
        self.embedding = nn.Embedding(shape.vocabulary, h)
        self.positions = None if self.rotary else nn.Embedding(shape.positions, h)
        block = LlamaBlock if self.rotary else GPTBlock
        self.layers = nn.ModuleList(block(shape, attention) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(h) if self.rotary else nn.LayerNorm(h)
        self.head = nn.Linear(h, shape.vocabulary, bias=False)
        if shape.tied:
            self.head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (batch, time, vocabulary) for ids of shape (batch, time)."""
        x = self.embedding(ids)
        places = torch.arange(ids.shape[1], device=ids.device)
        extra = ()
        if self.rotary:
            extra = self.angles(places)
        else:
            x = x + self.positions(places)
        for layer in self.layers:
            x = layer(x, *extra)
        return self.head(self.norm(x))

    def angles(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cosine and sine for each position and channel."""
        half = torch.arange(0, self.channels, 2, device=places.device) / self.channels
        angle = places[:, None] * 10_000.0**-half
        angle = torch.cat((angle, angle), dim=1)
        return angle.cos(), angle.sin()


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, ids: torch.Tensor) -> None:
    """Run one step in which no intermediate tensor has a name.

    Parameters
    ----------
    model : torch.nn.Module
        Makes logits of ids.
    optimizer : torch.optim.Optimizer
    ids : torch.Tensor
        Tokens of shape (batch, time); they are their own targets, since only bytes matter here.
    """
    optimizer.zero_grad()
    F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()


def count(
    shape: Shape,
    batch: int,
    *,
    length: int = 1024,
    optimizer: str = "Adam",
    attention: Callable[..., torch.Tensor] = fused_attention,
    step: Callable[..., None] = train_step,
) -> MemoryPeak:
    """Count the second training step of a model in float32, on fake tensors.

    Parameters
    ----------
    shape : Shape
    batch, length : int
        Sequences, and tokens in each.
    optimizer : str
        A key of `OPTIMIZERS`. "Adam, foreach" is what Adam does on CUDA unless told otherwise.
    attention : callable
        `fused_attention` or `explicit_attention`.
    step : callable
        Takes model, optimizer and ids.

    Returns
    -------
    helpers.memory.MemoryPeak

    Examples
    --------
    >>> small = Shape(2, 64, 4, 100, 256, positions=16)
    >>> count(small, 2, length=16).by_category["parameter"] == 4 * small.parameters
    True
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    from helpers.memory import track_memory

    if shape.positions:
        shape = replace(shape, positions=max(shape.positions, length))
    with FakeTensorMode():
        model = LanguageModel(shape, attention)
        chosen = OPTIMIZERS[optimizer](model.parameters())
        ids = torch.zeros(batch, length, dtype=torch.int64)
        step(model, chosen, ids)
        with track_memory(model, chosen, ids) as peak:
            step(model, chosen, ids)
    return peak


@dataclass(frozen=True)
class Forecast:
    """Hold the sum that stands for one training step in float32, in bytes.

    Attributes
    ----------
    moment : str
        Where the peak is expected.
    parameters, gradients, state, activations, temporaries, batch : int
        What is alive then.
    """

    moment: str
    parameters: int
    gradients: int
    state: int
    activations: int
    temporaries: int
    batch: int

    @property
    def total(self) -> int:
        """Return the sum."""
        return (
            self.parameters
            + self.gradients
            + self.state
            + self.activations
            + self.temporaries
            + self.batch
        )


def activation_bytes(shape: Shape, batch: int, length: int) -> int:
    """Return the bytes that the forward pass keeps, with fused attention, in float32.

    For each token and layer GPT-2 keeps 8 widths and twice the hidden width, the four numbers of
    its two norms and one number for each head; Llama keeps 10 and 4, and two numbers. Around the
    layers stand the last norm and the logarithms of the probabilities.

    Examples
    --------
    >>> small = Shape(2, 64, 4, 2000, 256, positions=16)
    >>> count(small, 64, length=16).by_category["activation"] == activation_bytes(small, 64, 16)
    True
    """
    n, h = batch * length, shape.width
    if shape.positions:
        layer, ends = 8 * h + 2 * shape.hidden + 4 + shape.heads, 2 * h + 2
        tables = 8 * length  # int64 positions
    else:
        layer, ends = 10 * h + 4 * shape.hidden + 2 + shape.heads, 3 * h + 1
        tables = 8 * length * (h // shape.heads)  # cosines and sines
    return 4 * n * (shape.layers * layer + ends + shape.vocabulary) + tables + 8


def forecast(shape: Shape, batch: int, *, length: int = 1024, optimizer: str = "Adam") -> Forecast:
    """Write down the peak of one training step: the largest of a few sums.

    Parameters
    ----------
    shape : Shape
    batch, length : int
        Sequences, and tokens in each.
    optimizer : str
        A key of `OPTIMIZERS`.

    Returns
    -------
    Forecast
        Within 2 % of `count` for the shapes that are in use; the tests draw such shapes.

    Examples
    --------
    >>> predicted = forecast(MODELS["GPT-2 124M"], 8)
    >>> predicted.moment, predicted.total
    ('early in backward', 11322343000)
    """
    if shape.positions:
        shape = replace(shape, positions=max(shape.positions, length))
    return max(_moments(shape, batch, length, optimizer), key=lambda moment: moment.total)


def _moments(shape: Shape, batch: int, length: int, optimizer: str) -> list[Forecast]:
    n, h, v = batch * length, shape.width, shape.vocabulary
    weights, ids = 4 * shape.parameters, 8 * n
    state = {"SGD": 0, "SGD, momentum": weights}.get(optimizer, 2 * weights + 4 * shape.tensors)
    kept = activation_bytes(shape, batch, length)
    head, layers = 4 * v * h, kept - 4 * n * v
    largest = 4 * max(v * h, shape.hidden * h, (3 if shape.positions else 1) * h * h)
    extra = {"Adam": 2 * largest, "Adam, foreach": weights}.get(optimizer, 0)
    block = 4 * n * (h + 2 * shape.hidden) + 4 * h * shape.hidden
    embedding = 2 * head * shape.tied + 4 * n * h

    def moment(name: str, gradients: int, activations: int, temporaries: int) -> Forecast:
        return Forecast(name, weights, gradients, state, activations, temporaries, ids)

    return [
        moment("early in backward", 0, kept, 8 * n * v),
        moment("early in backward", 0, layers, 4 * n * (v + h) + head),
        moment("early in backward", head, layers, block),
        moment("late in backward", weights - head, layers // shape.layers, block),
        moment("late in backward", weights, 0, embedding),
        moment("in the optimizer step", weights, 0, extra),
    ]
