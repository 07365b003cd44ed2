"""Rehearse a training function of two ranks in two threads, with stand-ins for torch's own names.

Two processes take seconds to start, and a check should not. The stand-ins do what the real ones
do and no more: construction broadcasts rank 0's parameters, a forward pass through the wrapper
arms the exchange, backward averages gradients, a collective waits until all ranks call it.
"""

import sys
import threading
import time
import types

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

WORLD_SIZE = 2
_LIMIT = 8.0  # seconds for everything; a rank that is not done by then hangs
_PATIENCE = 6.0  # seconds that a rank waits for another one that has not ended


class HangError(RuntimeError):
    """Say that a rank waited for another one in vain."""


class _Group:
    """Let the ranks meet: each hands in a tensor and gets all of them."""

    def __init__(self):
        self._change = threading.Condition()
        self._round, self._waiting, self._handed_in, self._left = 0, {}, [], False

    def exchange(self, rank, what, tensor):
        """Return what all ranks hand in; raise HangError if one does not come."""
        with self._change:
            mine = self._round
            self._waiting[rank] = (what, tensor.detach().clone())
            if len(self._waiting) == WORLD_SIZE:
                self._handed_in = [self._waiting[n] for n in range(WORLD_SIZE)]
                self._waiting, self._round = {}, mine + 1
                self._change.notify_all()
            self._change.wait_for(lambda: self._round > mine or self._left, _PATIENCE)
            if self._round == mine or len({name for name, _ in self._handed_in}) > 1:
                raise HangError(what)
            return [part for _, part in self._handed_in]

    def leave(self):
        """Say that a rank has ended: nobody needs to wait for it."""
        with self._change:
            self._left = True
            self._change.notify_all()


class _Wrapper(nn.Module):
    """Stand in for DistributedDataParallel on one rank."""

    def __init__(self, group, rank, module):
        super().__init__()
        self.module = module
        self._armed = False
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(group.exchange(rank, "construction", parameter)[0])
        for parameter in module.parameters():
            parameter.register_post_accumulate_grad_hook(lambda p: self._average(group, rank, p))

    def forward(self, *inputs):
        self._armed = True
        return self.module(*inputs)

    def _average(self, group, rank, parameter):
        if self._armed:
            parts = group.exchange(rank, "backward", parameter.grad)
            parameter.grad = torch.stack(parts).mean(0)


class _Dist:
    """Stand in for torch.distributed on one rank."""

    def __init__(self, group, rank):
        self._group, self._rank = group, rank

    def all_reduce(self, tensor):
        parts = self._group.exchange(self._rank, "all_reduce", tensor)
        tensor.copy_(torch.stack(parts).sum(0))

    def barrier(self):
        self._group.exchange(self._rank, "barrier", torch.zeros(()))

    def get_rank(self):
        return self._rank

    def get_world_size(self):
        return WORLD_SIZE


def run(answer, *arguments_of_each):
    """Run `answer(*arguments)` once per rank; return what each returned, and raise what it raised.

    An error of a rank's own comes before a HangError.
    """
    torch.optim.SGD([torch.zeros(1)], lr=0.1)  # imports a good part of torch, once
    group, results, errors, over = _Group(), {}, {}, threading.Event()

    def run_rank(rank):
        sys.settrace(_stop_when(over, answer.__code__.co_filename))
        try:
            results[rank] = _with_stand_ins(answer, group, rank)(*arguments_of_each[rank])
        except BaseException as error:  # noqa: BLE001 - it is raised again where the reader looks
            errors[rank] = error
        finally:
            sys.settrace(None)
            group.leave()

    threads = [threading.Thread(target=run_rank, args=(n,), daemon=True) for n in range(WORLD_SIZE)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _LIMIT
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    over.set()
    group.leave()
    own = [error for error in errors.values() if not isinstance(error, HangError)]
    for error in [*own, *errors.values()]:
        raise error
    if len(results) < WORLD_SIZE:
        raise TimeoutError(f"train is not done after {_LIMIT:.0f} s")
    return [results[rank] for rank in range(WORLD_SIZE)]


def _stop_when(over, file):
    """Return a trace function that ends an endless loop of this file: a thread has no alarm."""

    def trace(frame, event, argument):
        if over.is_set():
            raise SystemExit
        return trace if frame.f_code.co_filename == file else None

    return trace


def _with_stand_ins(answer, group, rank):
    names = dict(answer.__globals__)
    names |= {
        "dist": _Dist(group, rank),
        "DistributedDataParallel": lambda module, **_: _Wrapper(group, rank, module),
        "DistributedSampler": lambda data, **options: DistributedSampler(
            data, **({"num_replicas": WORLD_SIZE, "rank": rank} | options)
        ),
        "DataLoader": DataLoader,
        "torch": torch,
        "F": nn.functional,
    }
    copy = types.FunctionType(
        answer.__code__, names, answer.__name__, answer.__defaults__, answer.__closure__
    )
    copy.__kwdefaults__ = answer.__kwdefaults__
    return copy
