"""Give the scripts that split a model the model, its batch, and a count of what ranks exchange."""

from collections import Counter

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import batch_of
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils._python_dispatch import TorchDispatchMode


class Block(nn.Module):
    """Add two linear layers and what lies between them to the input."""

    def __init__(self, width=64):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


class Classifier(nn.Module):
    """Classify digits by eight blocks and a head."""

    def __init__(self, blocks=8, width=64):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.blocks(x))


def build(device, seed=0):
    """Build the classifier: the same weights on every rank."""
    torch.manual_seed(seed)
    return Classifier().to(device)


def shard(model, mesh, *, blocks=True, **options):
    """Shard the model over all ranks, each block as a unit of its own or all in one."""
    if blocks:
        for block in model.blocks:
            fully_shard(block, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def cut(model, mesh):
    """Cut the first layer of each block by columns and the second by rows."""
    plan = {"blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


def batch(device, size=32):
    """Return a batch of flat digits: the same one on every rank."""
    images, labels = batch_of(0, size, device)
    return images.flatten(1), labels


def gradients(device):
    """Return by name the gradients of the undivided model on the whole batch."""
    model, (x, y) = build(device), batch(device)
    F.cross_entropy(model(x), y).backward()
    return {name: p.grad for name, p in model.named_parameters()}


def error(mine, whole):
    """Return the largest error of any gradient, relative to that of the undivided model."""
    return max(((g - whole[n]).norm() / whole[n].norm()).item() for n, g in mine.items())


def local(tensor):
    """Return what this rank holds of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def size(tensors):
    """Return the bytes that this rank holds of some tensors."""
    return sum(local(t).nbytes for t in tensors if isinstance(t, torch.Tensor))


def stored(model, optimizer):
    """Return the bytes of each category between two steps."""
    inner = getattr(optimizer, "optim", optimizer)  # ZeRO-1: the optimizer of this rank's part
    return {
        "parameters": size(model.parameters()),
        "gradients": size(p.grad for p in model.parameters()),
        "optimizer": size(t for state in inner.state.values() for t in state.values()),
    }


# A ring sends each byte of the whole tensor (n - 1) / n times per rank; an all-reduce twice.
TURNS = {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2, "broadcast": 1}


class Wire(TorchDispatchMode):
    """Count the collectives that run under it, and what a rank sends in a ring."""

    def __init__(self):
        super().__init__()
        self.calls, self.sent = Counter(), 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        namespace, _, name = func._schema.name.partition("::")
        if namespace in ("c10d", "_c10d_functional"):
            self._count(name.lstrip("_"), (args, result))
        return result

    def _count(self, name, touched):
        spelled = name.replace("_", "")
        for kind, turns in TURNS.items():
            if spelled.startswith(kind.replace("-", "")):
                n = dist.get_world_size()
                whole = max(t.nbytes for t in tensors_in(touched))  # the side that is no shard
                self.calls[kind] += 1
                self.sent += turns * (n - 1) * whole // n


def tensors_in(nest):
    """Find the tensors in nested lists and tuples."""
    if isinstance(nest, torch.Tensor):
        return [nest]
    return [t for part in nest for t in tensors_in(part)] if isinstance(nest, list | tuple) else []
