"""Train on the digits, save after every second step, go on from the newest whole checkpoint.

Notebook 34 starts it as: recover_train.py FOLDER [kill=4] [hang=8] [lose=4]
"""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from ranks import batch_of, join_group
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

from helpers.launch import finish, report

STEPS, EVERY, SHARE = 10, 2, 32  # SHARE: samples of each rank in a step


def build(device):
    """Build a sharded classifier and its optimizer."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    fully_shard(model.to(device))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def state_of(model, optimizer, step=0):
    """Return what a checkpoint holds."""
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


def load(path, model, optimizer):
    """Fill model and optimizer from a checkpoint; return its step."""
    state = state_of(model, optimizer)
    dcp.load(state, checkpoint_id=path)
    weights, moments = state["model"], state["optimizer"]
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    return state["step"]


def newest(folder):
    """Return the checkpoint with the highest step among those that were completed, or None."""
    whole = [metadata.parent for metadata in folder.glob("step-*/.metadata")]
    return max(whole, key=lambda path: int(path.name[5:]), default=None)


def digest(model):
    """Return one number for every bit of the model: all ranks hand in their rows."""
    parts = [p.detach().full_tensor().cpu().numpy().tobytes() for p in model.parameters()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def train_step(model, optimizer, step, device):
    """Take one step on this rank's share of a batch that depends on the step alone."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    images, labels = batch_of(step, SHARE * world_size, device)
    optimizer.zero_grad()
    F.cross_entropy(model(images[rank::world_size]), labels[rank::world_size]).backward()
    optimizer.step()
    return len(labels[rank::world_size])


def die(*processes):
    """End processes as the kernel ends them when memory runs out: no handler, no last word."""
    for process in (*processes, os.getpid()):
        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def strikes(fault, step):
    """Tell whether a fault strikes here and now: once, on the last machine's last rank."""
    if f"{fault}={step}" not in sys.argv or dist.get_rank() != dist.get_world_size() - 1:
        return False
    mark = Path(sys.argv[1], fault)
    first_time = not mark.exists()
    mark.touch()
    return first_time


class DyingPlanner(dcp.DefaultSavePlanner):
    """Kill this rank when it is about to write, once rank 0 has written its file."""

    def resolve_data(self, write_item):
        """Wait for rank 0's file to be as long as the one before, then die."""
        before, now = (folder / f"step-{n}" / "__0_0.distcp" for n in (step - EVERY, step))
        while not now.exists() or now.stat().st_size < before.stat().st_size:
            time.sleep(0.01)
        die()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    device = join_group(seconds=6)  # short, so that a hang is noticed soon
    model, optimizer = build(device)
    path = newest(folder)
    done = load(path, model, optimizer) if path else 0
    report(resumed_after=done, world_size=dist.get_world_size(), time=time.time())
    for step in range(done + 1, STEPS + 1):
        if strikes("hang", step):
            time.sleep(3600)
        if strikes("lose", step):
            die(os.getppid())
        samples = train_step(model, optimizer, step, device)
        report(step=step, samples=samples, time=time.time())
        if step % EVERY == 0:
            planner = DyingPlanner() if strikes("kill", step) else None
            state = state_of(model, optimizer, step)
            dcp.save(state, checkpoint_id=folder / f"step-{step}", planner=planner)
    other, other_optimizer = build(device)
    load(newest(folder), other, other_optimizer)
    report(written=digest(model), read=digest(other))
    finish(model, other)
