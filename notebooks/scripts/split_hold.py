"""Split one model in several ways; report what each rank holds, sends and computes."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import join_group
from split_model import Wire, batch, build, cut, error, gradients, shard, stored
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from helpers.launch import finish, report
from helpers.memory import track_memory

device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh(device.type, (world_size,))
whole = gradients(device)
share, everything = slice(rank, None, world_size), slice(None)
models = []


def ddp(model):
    """Wrap a model; gradients live in the bucket, so that nothing is held twice."""
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


def zero_1(model):
    """Wrap a model and divide the optimizer."""
    model = ddp(model)
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)


def then_adam(split, *mesh, **options):
    """Split first, and build the optimizer after."""

    def both(model):
        model = split(model, *mesh, **options)
        return model, torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)

    return both


# How to split and to build the optimizer, and this rank's part of the batch.
HALF = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
METHODS = {
    "one process": (then_adam(lambda model: model), everything),
    "DDP": (then_adam(ddp), share),
    "ZeRO-1": (zero_1, share),
    "FSDP2": (then_adam(shard, mesh), share),
    "FSDP2, root only": (then_adam(shard, mesh, blocks=False), share),
    "FSDP2, bfloat16": (then_adam(shard, mesh, mp_policy=HALF), share),
    "tensor": (then_adam(cut, mesh), everything),
}


def full(tensor):
    """Return the whole tensor: with shards a collective, so every rank calls it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def measure(make, take):
    """Take two steps; return what the rank holds, its peak, its traffic and its error."""
    model, optimizer = make(build(device))
    models.append(model)
    x, y = (t[take] for t in batch(device))
    F.cross_entropy(model(x).float(), y).backward()
    mine = {n.removeprefix("module."): full(p.grad) for n, p in model.named_parameters()}
    found = {"error": error(mine, whole), "numel": sum(p.numel() for p in model.parameters())}
    del mine
    optimizer.step()
    found |= stored(model, optimizer)
    optimizer.zero_grad()
    with track_memory(model, getattr(optimizer, "optim", optimizer)) as peak:
        F.cross_entropy(model(x).float(), y).backward()
        optimizer.step()
    optimizer.zero_grad()
    with Wire() as wire:
        F.cross_entropy(model(x).float(), y).backward()
        optimizer.step()
    return found | {"peak": dict(peak.by_category), "sent": wire.sent, "calls": wire.calls}


report(methods={name: measure(*how) for name, how in METHODS.items()})
finish(*models)
