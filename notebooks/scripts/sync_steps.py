"""Count what DistributedDataParallel exchanges: by batch, by no_sync, by bucket, by option."""

from contextlib import nullcontext
from itertools import pairwise

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import batch_of, build, flat, gather, join_group
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from helpers.launch import finish, report

device = join_group()
rank, world_size = dist.get_rank(), dist.get_world_size()
models = []


def log_and_reduce(log, bucket):
    """Write down the size of a bucket, then do what DDP does without a hook."""
    log.append(bucket.buffer().nbytes)
    return default_hooks.allreduce_hook(None, bucket)


def wrap(model, **options):
    """Wrap a model; return it with the list in which its buckets are written down."""
    ddp, log = DistributedDataParallel(model.to(device), **options), []
    ddp.register_comm_hook(log, log_and_reduce)
    models.append(ddp)
    return ddp, log


def share_of(size):
    """Return this rank's part of a batch."""
    images, labels = batch_of(0, size, device)
    return images[rank::world_size], labels[rank::world_size]


def bytes_by_batch():
    """Return for three sizes of batch what one step hands to the exchange."""
    ddp, log = wrap(build(0))
    found = {}
    for size in (16, 128, 1024):
        images, labels = share_of(size)
        log.clear()
        F.cross_entropy(ddp(images), labels).backward()
        found[size] = sum(log)
    return found


def accumulate(*quiet, forget_last=False, **options):
    """Accumulate 4 micro-batches; no_sync holds for the quiet passes of all but the last."""
    ddp, log = wrap(build(0), **options)
    parts = zip(*(tensor.split(8) for tensor in share_of(64)), strict=True)
    for n, (images, labels) in enumerate(parts):
        passes = quiet if n < 3 or forget_last else ()
        with ddp.no_sync() if "forward" in passes else nullcontext():
            loss = F.cross_entropy(ddp(images), labels) / 4
        with ddp.no_sync() if "backward" in passes else nullcontext():
            loss.backward()
    return {"sent": log, "error": error_of(ddp)}


def error_of(ddp):
    """Return the relative error of the gradient against that of the whole batch."""
    one = build(0).to(device)
    images, labels = batch_of(0, 64, device)
    F.cross_entropy(one(images), labels).backward()
    got, whole = (flat(p.grad for p in model.parameters()) for model in (ddp, one))
    return max(((other - whole).norm() / whole.norm()).item() for other in gather(got))


def deep():
    """Build five linear layers: ten tensors of parameters."""
    torch.manual_seed(0)
    sizes = [64, 256, 256, 256, 256, 10]
    layers = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers[:-1])


def order_of_events(cap):
    """Return for each of 3 steps the gradients and buckets in the order in which they come."""
    ddp, events = wrap(deep(), bucket_cap_mb=cap)
    for name, parameter in ddp.module.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: events.append(name))
    images, labels = share_of(64)
    steps = []
    for _ in range(3):
        events.clear()
        F.cross_entropy(ddp(images), labels).backward()
        steps.append(list(events))
    return steps


def with_option(**options):
    """Return the all-reduces of steps 1 to 3, and the storages of gradients and buckets."""
    ddp, _ = wrap(deep(), **options)
    images, labels = share_of(64)
    steps = []
    for _ in range(3):
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as trace:
            F.cross_entropy(ddp(images), labels).backward()
        shapes = [e.input_shapes for e in trace.events() if e.name.endswith(":all_reduce")]
        steps.append([4 * n for ((n,), *_) in shapes])  # of numbers of 4 bytes
    storages = {p.grad.untyped_storage().data_ptr() for p in ddp.parameters()}
    return {"steps": steps, "storages": len(storages)}


BOTH = {"find_unused_parameters": True, "gradient_as_bucket_view": True}
report(by_batch=bytes_by_batch())
report(
    no_sync={
        "nowhere": accumulate(),
        "backward": accumulate("backward"),
        "forward": accumulate("forward"),
        "both": accumulate("forward", "backward"),
        "both, also in the last": accumulate("forward", "backward", forget_last=True),
    },
    flags=accumulate(**BOTH),
)
report(events={cap: order_of_events(cap) for cap in (0.01, 0.1, 0.25, 1, 25)})
report(
    options={
        "none": with_option(),
        **{name: with_option(**{name: True}) for name in [*BOTH, "static_graph"]},
    }
)
finish(*models)
