"""Give the scripts of this folder a process group, data and a model."""

import datetime
import os

import torch
import torch.distributed as dist
from torch import nn

from helpers.data import load_digits


def join_group(seconds=60):
    """Join the process group of the launch; return this rank's device."""
    local_rank = int(os.environ["LOCAL_RANK"])  # counts anew on each machine, as its GPUs do
    has_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", local_rank) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(device)
    limit = datetime.timedelta(seconds=seconds)
    dist.init_process_group("nccl" if has_gpu else "gloo", timeout=limit)
    return device


def build(seed, *, width=32, norm=False):
    """Build a classifier of digits whose weights depend on the seed."""
    torch.manual_seed(seed)
    middle = [nn.BatchNorm1d(width)] if norm else []
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, width), *middle, nn.ReLU(), nn.Linear(width, 10)
    )


def batch_of(step, size, device):
    """Draw the batch of one step: the same one on every rank."""
    digits = load_digits().train
    drawn = torch.Generator().manual_seed(step)
    images, labels = digits[torch.randperm(len(digits), generator=drawn)[:size]]
    return images.to(device), labels.to(device)


def flat(tensors):
    """Join the values of many tensors in one vector."""
    return torch.cat([t.detach().flatten() for t in tensors])


def gather(tensor):
    """Bring a tensor of every rank to every rank."""
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return parts
