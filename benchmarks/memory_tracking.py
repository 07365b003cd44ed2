"""Measure what `track_memory` adds to a training step, beside torch's own MemTracker."""

import gc
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from benchmarks import Finding
from helpers.memory import track_memory

RUNS = 15
LARGE = """if True:
    import resource, sys
    from benchmarks.memory_tracking import large_step, {way}
    seconds = large_step({way})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(seconds, peak * (1 if sys.platform == "darwin" else 1024))
"""


def encoder():
    """Build a transformer of six layers with its optimizer and one batch."""
    kind = partial(nn.TransformerEncoderLayer, dropout=0.0, batch_first=True, norm_first=True)
    # Not nn.TransformerEncoder: it copies its layer, and a copied fake tensor has a mode of its own.
    layers = [kind(128, 4, 512) for _ in range(6)]
    model = nn.Sequential(nn.Embedding(1000, 128), *layers, nn.Linear(128, 1000))
    return model, torch.optim.Adam(model.parameters()), torch.randint(0, 1000, (8, 64))


def step(model, optimizer, ids):
    """Take one training step."""
    optimizer.zero_grad()
    F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()


def plain(model, optimizer, ids):
    """Take a step that nobody watches."""
    step(model, optimizer, ids)


def ours(model, optimizer, ids):
    """Take a step inside `track_memory`."""
    with track_memory(model, optimizer, ids):
        step(model, optimizer, ids)


def torchs(model, optimizer, ids):
    """Take a step inside torch's MemTracker."""
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker = MemTracker()
    tracker.track_external(model, optimizer, ids)
    with tracker:
        step(model, optimizer, ids)


def medians(*, fake: bool) -> dict[str, float]:
    """Take interleaved steps of each kind; return the median CPU seconds of each."""
    seconds = {way.__name__: [] for way in (plain, ours, torchs)}
    with FakeTensorMode() if fake else nullcontext():
        things = encoder()
        step(*things)
        for _ in range(RUNS):
            for way in (plain, ours, torchs):
                gc.collect()
                start = time.process_time()
                way(*things)
                seconds[way.__name__].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


class Block(nn.Module):
    """Compute one layer of a decoder with gated feed-forward, as 7B models have it."""

    def __init__(self, width=4096, heads=32, hidden=11008):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.project = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        """Return x, (batch, time, width), after attention and feed-forward."""
        batch, time_steps, width = x.shape
        y = self.norms[0](x)
        q, k, v = (
            linear(y).view(batch, time_steps, self.heads, -1).transpose(1, 2)
            for linear in self.project[:3]
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project[3](attended.transpose(1, 2).reshape(batch, time_steps, width))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def large_step(way) -> float:
    """Take one step of 6.7 billion parameters with fake tensors; return its seconds."""
    with FakeTensorMode():
        layers = [Block() for _ in range(32)]
        head = nn.Linear(4096, 32000, bias=False)
        model = nn.Sequential(nn.Embedding(32000, 4096), *layers, nn.RMSNorm(4096), head)
        optimizer = torch.optim.AdamW(model.parameters())
        ids = torch.randint(0, 32000, (1, 2048))
        start = time.perf_counter()
        way(model, optimizer, ids)
        return time.perf_counter() - start


def large(way: str) -> tuple[float, float]:
    """Take the large step in a fresh process; return its seconds and its peak RSS in bytes."""
    command = [sys.executable, "-c", LARGE.format(way=way)]
    run = subprocess.run(command, capture_output=True, check=True, text=True)
    seconds, peak = map(float, run.stdout.split())
    return seconds, peak


def measure() -> list[Finding]:
    """Compare the added time on real and on fake tensors, then size a large model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        real, fake = medians(fake=False), medians(fake=True)
    finally:
        torch.set_num_threads(threads)
    added = real["ours"] - real["plain"]
    slow = real["torchs"] - real["plain"]
    seconds, peak = large("ours")
    torchs_seconds, _ = large("torchs")
    return [
        Finding("added time / MemTracker's added time", added / slow, 1 / 8),
        Finding("added time / plain step", added / real["plain"], 0.4),
        Finding("fake tensors, this encoder: step / MemTracker's", fake["ours"] / fake["torchs"]),
        Finding(
            "fake tensors, 6.7 billion parameters: step / MemTracker's",
            seconds / torchs_seconds,
            1 / 8,
        ),
        Finding("fake tensors, 6.7 billion parameters: tracked step (s)", seconds, 2.0),
        Finding("fake tensors, 6.7 billion parameters: peak RSS (GiB)", peak / 2**30, 0.5),
    ]
