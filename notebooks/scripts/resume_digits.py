# ruff: noqa: D103
"""Train a network on the digits, stop at any step, go on from a file in a new process.

Notebook 54 starts it as: python resume_digits.py FILE STEPS THREADS
"""

import copy
import hashlib
import sys
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from helpers import data

digits = data.load_digits().train
BATCH, STEPS = 64, 60


@dataclass
class Run:
    """Hold all that a step reads or writes, but for torch's global generator."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    scaler: torch.amp.GradScaler
    shuffle: torch.Generator
    order: torch.Tensor  # of the images in this epoch
    place: int = 0  # in that order


def build(seed):
    torch.manual_seed(seed)
    layers = [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2)]
    model = nn.Sequential(nn.Flatten(), *layers, nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    scaler = torch.amp.GradScaler("cpu", growth_interval=8)
    shuffle = torch.Generator().manual_seed(seed)
    return Run(model, optimizer, scheduler, scaler, shuffle, torch.arange(0))


def step(run):
    if run.place >= len(run.order):
        run.order, run.place = torch.randperm(len(digits), generator=run.shuffle), 0
    batch = run.order[run.place : run.place + BATCH]
    run.model.train()
    run.optimizer.zero_grad()
    with torch.autocast("cpu", torch.float16):
        loss = F.cross_entropy(run.model(digits.images[batch]), digits.labels[batch])
    run.scaler.scale(loss).backward()
    run.scaler.step(run.optimizer)
    run.scaler.update()
    run.scheduler.step()
    run.place += BATCH


def snapshot(run):
    """Copy the seven parts of a run's state."""
    place = {"shuffle": run.shuffle.get_state(), "order": run.order, "place": run.place}
    parts = {
        "parameters": dict(run.model.named_parameters()),
        "buffers": dict(run.model.named_buffers()),
        "optimizer": run.optimizer.state_dict(),
        "scheduler": run.scheduler.state_dict(),
        "scaler": run.scaler.state_dict(),
        "place in the data": place,
        "random state": torch.get_rng_state(),
    }
    return copy.deepcopy(parts)


def restore(run, parts):
    """Put the parts that are there into a run that was built anew."""
    parts = copy.deepcopy(parts)
    weights = {**parts.get("parameters", {}), **parts.get("buffers", {})}
    run.model.load_state_dict({**run.model.state_dict(), **weights})
    for name in ("optimizer", "scheduler", "scaler"):
        if name in parts:
            getattr(run, name).load_state_dict(parts[name])
    if "place in the data" in parts:
        place = parts["place in the data"]
        run.shuffle.set_state(place["shuffle"])
        run.order, run.place = place["order"], place["place"]
    if "random state" in parts:
        torch.set_rng_state(parts["random state"])  # last: whoever draws comes before


def digest(run):
    """Return a checksum of every bit of the model."""
    values = run.model.state_dict().values()
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in values)).hexdigest()


if __name__ == "__main__":
    path, steps, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    run = build(seed=999)
    restore(run, torch.load(path))
    for _ in range(int(steps)):
        step(run)
    print(digest(run))
