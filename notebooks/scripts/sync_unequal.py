"""Give two ranks different work: other layers, more batches, another order of collectives."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import batch_of, build, flat, gather, join_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from helpers.launch import finish, report

device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
models = []


class Branched(nn.Module):
    """A classifier with a layer that not every forward pass uses."""

    def __init__(self):
        """Make three layers."""
        super().__init__()
        torch.manual_seed(0)
        self.trunk, self.head, self.spare = nn.Linear(64, 32), nn.Linear(32, 10), nn.Linear(32, 10)

    def forward(self, images, spare=False):
        """Use the spare layer if asked to."""
        hidden = self.trunk(images.flatten(1)).relu()
        return self.head(hidden) + self.spare(hidden) if spare else self.head(hidden)


def wrap(model, **options):
    """Wrap a model and keep it until the end."""
    models.append(DistributedDataParallel(model.to(device), **options))
    return models[-1]


def steps_that_pass(**options):
    """Never use the spare layer; return how many of 3 steps pass, and what stops them."""
    ddp = wrap(Branched(), **options)
    images, labels = batch_of(0, 32, device)
    for step in range(3):
        try:
            F.cross_entropy(ddp(images), labels).backward()
        except RuntimeError as error:
            return {"passed": step, "error": str(error)}
    return {"passed": 3, "error": None}


def used_on_rank_0_only():
    """Return the spare layer's gradient as a multiple of the true one."""
    ddp = wrap(Branched(), find_unused_parameters=True)
    images, labels = batch_of(0, 32, device)
    F.cross_entropy(ddp(images, spare=rank == 0), labels).backward()
    one = Branched().to(device)
    F.cross_entropy(one(images, spare=True), labels).backward()
    return (ddp.module.spare.weight.grad.norm() / one.spare.weight.grad.norm()).item()


def join(steps, divide):
    """Train 3 or 5 steps; return each gradient as a multiple of this rank's own."""
    ddp = wrap(build(0))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    multiples = []
    with ddp.join(divide_by_initial_world_size=divide):
        for step in range(steps):
            images, labels = batch_of(step, 32, device)  # the same on all ranks
            optimizer.zero_grad()
            loss = F.cross_entropy(ddp(images), labels)
            own = flat(torch.autograd.grad(loss, list(ddp.parameters()), retain_graph=True))
            loss.backward()
            multiples.append((flat(p.grad for p in ddp.parameters()).norm() / own.norm()).item())
            optimizer.step()
    ranks = gather(flat(ddp.parameters()))
    return {"multiples": multiples, "equal": all(torch.equal(ranks[0], r) for r in ranks)}


def add_up_after(steps):
    """Train 3 or 4 steps, then add up 650 sevens, and a tensor of ones to check the sum."""
    ddp = wrap(nn.Linear(64, 10))  # 650 parameters in one bucket
    for step in range(steps):
        images, labels = batch_of(step, 32, device)
        F.cross_entropy(ddp(images.flatten(1)), labels).backward()
    statistic, ones = torch.full((650,), 7.0, device=device), torch.ones(650, device=device)
    dist.all_reduce(statistic)
    dist.all_reduce(ones)
    if steps == 3:
        dist.all_reduce(torch.zeros(650, device=device))  # what rank 1 still waits for
    return {"sum": statistic[0].item(), "ones": ones[0].item()}


report(
    unused={
        "no option": steps_that_pass(),
        "find_unused_parameters": steps_that_pass(find_unused_parameters=True),
        "static_graph": steps_that_pass(static_graph=True),
    },
    lopsided=used_on_rank_0_only(),
)
uneven = 3 + 2 * rank
report(
    join={str(divide): join(uneven, divide) for divide in (True, False)},
    equal_steps=add_up_after(4),
    added_up=add_up_after(3 + rank),
)
finish(*models)
