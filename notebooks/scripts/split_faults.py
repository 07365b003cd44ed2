"""Split a model in ways that go wrong without an error, and count what a cut costs."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import join_group
from split_model import Block, Wire, batch, build, cut, gradients, shard
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from helpers.launch import finish, report

device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh(device.type, (world_size,))
models = []


def collectives(first, second):
    """Return the collectives of one forward pass through a block cut in two."""
    torch.manual_seed(0)
    block, (x, _) = Block().to(device), batch(device)
    right = block(x)
    models.append(parallelize_module(block, mesh, {"up": first, "down": second}))
    with torch.no_grad(), Wire() as wire:
        y = block(x)
    return {"calls": wire.calls, "right": torch.allclose(y, right, atol=1e-5)}


def train(split, optimizer_first):
    """Train 20 steps; return both losses, and how many tensors are still the optimizer's."""
    model = build(device)
    models.append(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    split(model, mesh)
    if not optimizer_first:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    x, y = batch(device)
    losses = []
    for _ in range(21):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        model.zero_grad()  # what the optimizer does not know
    shared = sum(id(p) in trained for p in model.parameters())
    return {"losses": [losses[0], losses[-1]], "shared": shared, "of": len(trained)}


def norms():
    """Return the length of the gradient: by shards, by PyTorch and of the undivided model."""
    model, (x, y) = shard(build(device), mesh), batch(device)
    models.append(model)
    F.cross_entropy(model(x), y).backward()
    grads = [p.grad for p in model.parameters()]
    mine = torch.stack([g.to_local().norm() for g in grads]).norm()
    whole = torch.stack([g.norm() for g in gradients(device).values()]).norm()
    length = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    length = length.full_tensor() if isinstance(length, DTensor) else length  # all ranks call it
    return {"own shards": mine, "clip_grad_norm_": length, "undivided model": whole}


together = ColwiseParallel(output_layouts=Replicate())
report(
    cuts={
        "columns, then rows": collectives(ColwiseParallel(), RowwiseParallel()),
        "columns, then columns": collectives(together, together),
        "rows, then columns": collectives(RowwiseParallel(input_layouts=Replicate()), together),
    },
    ghosts={
        "FSDP2, optimizer first": train(shard, True),
        "FSDP2, optimizer last": train(shard, False),
        "tensor, optimizer first": train(cut, True),
        "tensor, optimizer last": train(cut, False),
    },
    norms=norms(),
)
finish(*models)
