"""Train the adder on several ranks by a recipe; report the bytes of each rank and what was learned.

Arguments: a list of recipes as JSON; a budget: recipes within it are trained, after the count of
three steps; how many steps to train (0: count alone).
"""

import json
import math
import sys

import torch
import torch.distributed as dist
from ranks import join_group
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from helpers import addition
from helpers.launch import finish, report
from helpers.memory import track_memory

recipes = json.loads(sys.argv[1])
budget, steps = map(int, sys.argv[2:])
device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
sums = addition.load_sums()
train, held_out = sums.train.to(device), sums.held_out.to(device)
LEARNING_RATE, BATCH, COUNTED, SEED = 5e-3, 32, 3, 0  # BATCH: the rows of each rank


class Segment(nn.Module):
    """Run a block under checkpointing; the sharded unit stays outside."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        """Return what the block returns."""
        return checkpoint(self.block, x, use_reentrant=False)


def build(recipe):
    """Build the model as the recipe says, and its optimizer after it."""
    model = addition.build(SEED).to(device)
    if recipe["checkpoint"]:
        model.blocks = nn.ModuleList(map(Segment, model.blocks))
    if recipe["split"].startswith("FSDP2"):
        model = shard(model, recipe)
    else:
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    options = {"lr": LEARNING_RATE, "betas": (0.9, 0.99), "fused": recipe["fused"]}
    if recipe["split"] == "ZeRO-1":
        kind = torch.optim.AdamW
        return model, ZeroRedundancyOptimizer(model.parameters(), kind, **options)
    return model, torch.optim.AdamW(model.parameters(), **options)


def shard(model, recipe):
    """Shard each block, or all in one unit; in 16 bits what is gathered is half as large."""
    mesh, options = init_device_mesh(device.type, (world_size,)), {}
    if recipe["bfloat16"]:
        half = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
        options["mp_policy"] = MixedPrecisionPolicy(**half)
    if not recipe["split"].endswith("root only"):
        for block in model.blocks:
            fully_shard(block, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def take_step(model, optimizer, recipe, drawn):
    """Take one step on this rank's share of the batch."""
    part = train[torch.randint(len(train), (BATCH * world_size,), generator=drawn)]
    for piece in part[rank::world_size].chunk(recipe["micro_batches"]):
        cast = recipe["bfloat16"] and not recipe["split"].startswith("FSDP2")
        with torch.autocast(device.type, torch.bfloat16, enabled=cast):
            loss = addition.loss(model, piece)
        (loss / recipe["micro_batches"]).backward()
        del loss
    optimizer.step()
    optimizer.zero_grad()


def one_cycle(done):
    """Return the factor of the learning rate: up for three tenths of the steps, then down."""
    up = done < 0.3
    turned = math.cos(math.pi * (done / 0.3 if up else (done - 0.3) / 0.7))
    return (1 - turned if up else 1 + turned) / 2


def whole(tensor):
    """Return the whole tensor: with shards a collective, so every rank calls it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def moved(model):
    """Count the tensors of parameters that differ from their start."""
    start = addition.build(SEED).to(device).parameters()
    pairs = zip(start, model.parameters(), strict=True)
    return sum(not torch.equal(p, whole(q.detach())) for p, q in pairs)


def measure(recipe):
    """Count the first steps of a recipe; then train, if asked to, and judge."""
    drawn = torch.Generator().manual_seed(SEED)
    with track_memory(train) as peak:
        model, optimizer = build(recipe)
        models.append(model)
        peak.watch(model, getattr(optimizer, "optim", optimizer))
        for _ in range(COUNTED):
            take_step(model, optimizer, recipe, drawn)
    found = {"bytes": peak.total, "parts": dict(peak.by_category)}
    most = torch.tensor(peak.total, device=device)
    dist.all_reduce(most, dist.ReduceOp.MAX)  # all ranks train, or none
    if steps and most <= budget:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * one_cycle(step / steps)
            take_step(model, optimizer, recipe, drawn)
        found |= {"moved": moved(model), "accuracy": addition.accuracy(model, held_out)}
    return found


models = []
report(recipes=[measure(recipe) for recipe in recipes])
finish(*models)
