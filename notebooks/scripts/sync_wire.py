"""Let the operating system count what each rank sends in one all-reduce, on 2, 3 and 4 ranks."""

import os
import socket
import struct
import sys
import time
from functools import partial

import torch
import torch.distributed as dist
from ranks import join_group

from helpers.launch import finish, report

TCP_INFO, ACKNOWLEDGED = 11, 120  # Linux: the record of a connection, and a field's place in it


def bytes_sent():
    """Return what the connections of this process have sent, headers of TCP not counted."""
    total = 0
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            connection = socket.socket(fileno=number)
        except OSError:
            continue  # a file or a pipe
        try:
            info = connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256)
            total += struct.unpack_from("Q", info, ACKNOWLEDGED)[0]
        except (OSError, struct.error):
            pass  # not TCP, or no connection
        finally:
            connection.detach()  # it stays gloo's own
    return total


def sent_by(call):
    """Return the bytes that this rank sends while one function runs."""
    before = bytes_sent()
    call()
    time.sleep(0.1)  # until the other end has acknowledged the last of them
    return bytes_sent() - before


device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
gradients = torch.ones(2**20, device=device)  # 4 MiB
countable = sys.platform == "linux" and device.type == "cpu"  # NCCL goes other ways
for n in range(2, world_size + 1):
    group = dist.new_group(list(range(n)))
    if rank < n:
        dist.all_reduce(gradients, group=group)  # opens the connections
        dist.barrier(group)
        time.sleep(0.1)
        add_up = partial(dist.all_reduce, gradients, group=group)
        sent = sent_by(add_up) if countable else 0
        report(ranks=n, size=gradients.nbytes, sent=sent or None)  # 0: nothing counts here
    dist.barrier()
finish()
