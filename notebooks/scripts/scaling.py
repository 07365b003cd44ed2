"""Time steps of a small and a larger model on 1, 2 and 4 ranks, in rounds that take turns."""

import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import batch_of, join_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from helpers.launch import finish, report

ROUNDS, STEPS = 6, 2
device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
counts = [n for n in (1, 2, 4) if n <= world_size]
groups = {n: dist.new_group(list(range(n))) for n in counts}
images, labels = batch_of(0, 1024, device)
# Width of the network, samples of the batch, and whether the ranks divide that batch.
CASES = {
    "small": (32, 32, True),
    "large": (512, 1024, True),
    "large, 256 for each rank": (512, 256, False),
}


def network(width):
    """Build three linear layers."""
    first, middle = nn.Linear(64, width), nn.Linear(width, width)
    return nn.Sequential(
        nn.Flatten(), first, nn.ReLU(), middle, nn.ReLU(), nn.Linear(width, 10)
    ).to(device)


def prepare(width, batch, divide, n):
    """Return a function that makes one training step as one of n ranks."""
    model = network(width)
    if n > 1:
        model = DistributedDataParallel(model, process_group=groups[n])
    models.append(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mine = slice(rank, batch, n) if divide else slice(0, batch)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(images[mine]), labels[mine]).backward()
        optimizer.step()

    return step


def seconds_of(step, threads=1):
    """Time a few steps after one that warms up."""
    torch.set_num_threads(threads)
    step()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    spent = (time.perf_counter() - start) / STEPS
    torch.set_num_threads(1)
    return spent


models = []
steps = {(case, n): prepare(*sizes, n) for case, sizes in CASES.items() for n in counts if rank < n}
for _ in range(ROUNDS):
    for case in CASES:
        for n in counts:
            if rank < n:
                report(case=case, ranks=n, threads=1, seconds=seconds_of(steps[case, n]))
            dist.barrier()
        if rank == 0 and case == "large":
            spent = seconds_of(steps[case, 1], threads=2)
            report(case=case, ranks=1, threads=2, seconds=spent)
        dist.barrier()
finish(*models)
