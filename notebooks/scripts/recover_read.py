"""Read a checkpoint on any number of ranks; then save another one while training goes on.

Notebook 34 starts it as: recover_read.py CHECKPOINT NEW_CHECKPOINT
"""

import sys

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import join_group
from recover_train import build, digest, load, state_of, train_step

from helpers.launch import finish, report

device = join_group()
model, optimizer = build(device)
step = load(sys.argv[1], model, optimizer)
rows = [len(p.to_local()) for p in model.parameters()]
report(step=step, digest=digest(model), rows=rows)

on_the_cpu = dist.new_group(backend="gloo")  # the bytes wait there, whatever the device
state = state_of(model, optimizer, step)
writing = dcp.async_save(state, checkpoint_id=sys.argv[2], process_group=on_the_cpu)
train_step(model, optimizer, step + 1, device)
report(later=digest(model))
writing.result()
finish(model)
