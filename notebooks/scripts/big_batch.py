"""Compare training on several ranks with one process that sees the whole batch."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import batch_of, build, flat, gather, join_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from helpers.launch import finish, report

SIZE, STEPS = 64, 50
device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()


def train(model, take, *, steps=STEPS, forward=None):
    """Train with SGD on what `take` leaves of each batch; yield after each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(steps):
        images, labels = batch_of(step, SIZE, device)
        optimizer.zero_grad()
        F.cross_entropy((forward or model)(images[take]), labels[take]).backward()
        optimizer.step()
        yield


def apart(model):
    """Return the largest difference between the weights of two ranks."""
    ranks = gather(flat(model.parameters()))
    return max((ranks[0] - other).abs().max().item() for other in ranks)


def drift():
    """Train beside the reference; report both distances after each step."""
    one, many = build(0).to(device), DistributedDataParallel(build(0).to(device))
    whole, share = slice(None), slice(rank, None, world_size)
    for _ in zip(train(one, whole), train(many, share), strict=True):
        gap = (flat(one.parameters()) - flat(many.module.parameters())).abs().max()
        report(drift=gap, between_ranks=apart(many))
    return many


def gradient_error(take, *, norm=False, total=False):
    """Return the relative error of one gradient against that of the whole batch."""
    images, labels = batch_of(0, SIZE, device)
    one = build(0, norm=norm).to(device)
    many = DistributedDataParallel(build(0, norm=norm).to(device))
    F.cross_entropy(one(images), labels).backward()
    reduction = "sum" if total else "mean"
    loss = F.cross_entropy(many(images[take]), labels[take], reduction=reduction)
    (loss * world_size / SIZE if total else loss).backward()
    whole = flat(p.grad for p in one.parameters())
    error = (flat(p.grad for p in many.module.parameters()) - whole).norm() / whole.norm()
    finish_later.append(many)
    return error.item()


def silent(*, load_late=False, bypass=False):
    """Train with one silent fault; return first and last loss and the distance of the ranks."""
    model = DistributedDataParallel(build(0).to(device))
    if load_late and rank == 0:
        model.module.load_state_dict(build(7).state_dict())
    images, labels = batch_of(0, 1437, device)
    losses = [F.cross_entropy(model.module(images), labels).item()]
    share = slice(rank, None, world_size)
    for _ in train(model, share, forward=model.module if bypass else model):
        pass
    losses.append(F.cross_entropy(model.module(images), labels).item())
    finish_later.append(model)
    return {"losses": losses, "apart": apart(model)}


def ask_sync_batch_norm():
    """Return what SyncBatchNorm says to a tensor of this device; nothing where it works."""
    try:
        nn.SyncBatchNorm(3).to(device)(torch.randn(4, 3, device=device))
    except ValueError as error:
        return str(error)
    return ""


finish_later = [drift()]
equal = slice(rank, None, world_size)
uneven = slice(0, 48) if rank == 0 else slice(48, SIZE)
report(
    errors={
        "equal shards, mean": gradient_error(equal),
        "48 and 16, mean": gradient_error(uneven),
        "48 and 16, sum, weighted": gradient_error(uneven, total=True),
        "equal shards, BatchNorm": gradient_error(equal, norm=True),
    },
    sync_batch_norm=ask_sync_batch_norm(),
    silent={
        "nothing wrong": silent(),
        "rank 0 loads after wrapping": silent(load_late=True),
        "model.module(x) in the loop": silent(bypass=True),
    },
)
finish(*finish_later)
