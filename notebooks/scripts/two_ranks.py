"""Build a model on each rank, each from its own seed, and wrap it."""

import os

import torch
import torch.distributed as dist
from ranks import build, flat, gather, join_group
from torch.nn.parallel import DistributedDataParallel

from helpers.launch import finish, report

device = join_group()
rank = dist.get_rank()
before = build(seed=rank).to(device)
starts = gather(flat(before.parameters()))

model = DistributedDataParallel(before)  # moves no sample and asks for no seed
wrapped = gather(flat(model.parameters()))

try:
    DistributedDataParallel(build(seed=0), device_ids=[rank])  # this model is on the CPU
    refusal = None
except ValueError as error:
    refusal = str(error).partition(",")[0]
report(
    environment={name: os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")},
    backend=dist.get_backend(),
    apart_before=(starts[0] - starts[1]).abs().max(),
    apart_after=(wrapped[0] - wrapped[1]).abs().max(),
    as_rank_0=torch.equal(wrapped[rank], starts[0]),
    as_average=torch.allclose(wrapped[rank], (starts[0] + starts[1]) / 2),
    refusal=refusal,
)
finish(model)
