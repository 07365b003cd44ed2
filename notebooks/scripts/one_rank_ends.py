"""Let one rank leave the common path: it raises, leaves early, or calls a collective alone."""

import os
import sys

import torch
import torch.distributed as dist
from ranks import join_group

from helpers.launch import finish, report

device = join_group(seconds=3)  # short while one develops; the default is 30 minutes
rank, what = dist.get_rank(), sys.argv[1]
for step in range(5):
    if rank == 1 and step == 3:
        if what == "raise":
            raise ValueError("sample 17 is broken")
        if what == "leave":
            os._exit(0)  # gone at once, with the code of success
    if what == "alone" and step == 3 and rank == 1:
        continue  # the other rank calls all_reduce all the same
    dist.all_reduce(torch.ones(1, device=device))
    report(step=step)
finish()
