"""Divide a model by layers over the ranks, and send a batch through in pieces."""

import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import join_group
from split_model import batch, build, error, gradients, stored
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from helpers.launch import finish, report

FORWARD, BACKWARD = 0.02, 0.04  # seconds of work for an eighth of the batch
device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
whole = gradients(device)
x, y = batch(device)


class Work(torch.autograd.Function):
    """Stand in for a device that computes: sleep, and write down which pass it was."""

    @staticmethod
    def forward(ctx, x, log, share):
        ctx.log, ctx.share = log, share
        log.append("F")
        time.sleep(FORWARD * share)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.log.append("B")
        time.sleep(BACKWARD * ctx.share)
        return gradient, None, None


class Stage(nn.Module):
    """Hold this rank's share of the blocks; the last rank holds the head, too."""

    def __init__(self, model, micro_batches):
        super().__init__()
        blocks = len(model.blocks) // world_size
        mine = range(rank * blocks, (rank + 1) * blocks)
        self.blocks = nn.ModuleDict({str(n): model.blocks[n] for n in mine})
        if rank == world_size - 1:
            self.head = model.head
        self.log, self.share = [], 8 / micro_batches

    def forward(self, x):
        x = Work.apply(x.requires_grad_(), self.log, self.share)
        for block in self.blocks.values():
            x = block(x)
        return self.head(x) if hasattr(self, "head") else x


def run(kind, micro_batches):
    """Take one step; return its order, its time and the error of its gradients."""
    model, losses = Stage(build(device), micro_batches), []

    def loss(output, target):
        losses.append(F.cross_entropy(output, target))
        return losses[-1]

    shapes = dict(zip(("input_args", "output_args"), ends(len(x) // micro_batches), strict=True))
    stage = PipelineStage(model, rank, world_size, device, **shapes)
    schedule = kind(stage, micro_batches, loss_fn=loss)
    dist.barrier()
    start = time.perf_counter()
    schedule.step(*([x] if rank == 0 else []), target=y)
    dist.barrier()
    seconds = time.perf_counter() - start
    mine = {name: p.grad for name, p in model.named_parameters()}
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    work = (FORWARD + BACKWARD) * 8
    found = {"seconds": seconds, "busy": work / seconds, "error": error(mine, whole)}
    found |= stored(model, optimizer)
    return found | {"order": "".join(model.log), "losses": len(losses)}


def ends(size):
    """Return tensors like those that this stage takes and hands on; no values are read."""
    taken = torch.empty(size, x.shape[1], device=device, requires_grad=rank > 0)
    handed_on = 10 if rank == world_size - 1 else x.shape[1]
    return taken, torch.empty(size, handed_on, device=device, requires_grad=True)


run(ScheduleGPipe, 8)  # opens the connections
report(gpipe={n: run(ScheduleGPipe, n) for n in (1, 2, 4, 8)}, one_f_one_b=run(Schedule1F1B, 8))
finish()
