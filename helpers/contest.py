"""Judge a way of training a model: bytes at the peak, arithmetic, accuracy, what has moved."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from unittest import mock

import torch
from torch import nn
from torch.optim import optimizer as optimizers

from helpers import _live_bytes, addition, plotting
from helpers._memory_peak import MemoryPeak, track_with
from helpers.plotting import Chart
from helpers.units import format_bytes


class _Counting(_live_bytes.LiveBytesMode):
    """Follow storages, in compiled code too, and add up the arithmetic of matrix products."""

    def __init__(self):
        super().__init__()
        from torch.utils.flop_counter import flop_registry

        self.flops, self.formulas, self.registry = 0, {}, flop_registry

    @classmethod
    def ignore_compile_internals(cls):
        """Let compiled code run compiled under this mode."""
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = super().__torch_dispatch__(func, types, args, kwargs)
        if func not in self.formulas:
            self.formulas[func] = self.registry.get(func._overloadpacket)
        if formula := self.formulas[func]:
            self.flops += formula(*args, **(kwargs or {}), out_val=out)
        return out


class Meter:
    """Read what a metered block has needed.

    Attributes
    ----------
    peak : helpers.memory.MemoryPeak
        The live bytes, with their categories at the peak.
    """

    def __init__(self, peak: MemoryPeak, mode: _Counting):
        """Read from a peak and from the mode that counts, while they run or after."""
        self.peak, self._mode = peak, mode

    @property
    def bytes(self) -> int:
        """The peak of live bytes."""
        return self.peak.total

    @property
    def flops(self) -> int:
        """The arithmetic of all matrix products so far; what is computed twice counts twice."""
        return self._mode.flops

    def __repr__(self) -> str:
        return f"{self.bytes:,} bytes at the peak, {self.flops:,} operations in products"


@contextmanager
def meter(*things: object) -> Iterator[Meter]:
    """Count live bytes and arithmetic of a block, in compiled code, too.

    `helpers.memory.track_memory` runs compiled functions uncompiled, since nothing sees the
    buffers of generated kernels. Here ``torch.compile`` uses the backend ``aot_eager``, whatever
    the caller asks for: it captures the graph, decides on it what forward keeps for backward, and
    runs operation by operation. So what is kept is seen, and no C++ compiler is needed. The
    backend that generates kernels takes operations apart first, and may keep something else.

    Parameters
    ----------
    *things : torch.nn.Module, torch.optim.Optimizer, torch.Tensor or nests of them
        What exists before the block and shall count from its start.

    Yields
    ------
    Meter

    Examples
    --------
    >>> model, sums = addition.build(), addition.load_sums().train
    >>> with meter(model, sums) as found:
    ...     addition.loss(model, sums[:64]).backward()
    >>> found.bytes, found.flops
    (5025384, 310640640)
    """
    mode = _Counting()
    _forget_compiled()  # what was captured under another share would be used again
    with ExitStack() as stack:
        stack.callback(_forget_compiled)
        stack.enter_context(mock.patch.object(torch, "compile", _seen(torch.compile)))
        yield Meter(stack.enter_context(track_with(mode, *things)), mode)


def _forget_compiled():
    if "torch._dynamo" in sys.modules:  # importing it takes seconds
        torch.compiler.reset()


def _seen(compile):
    def seen(model=None, **options):
        if model is None:  # used as a decorator with arguments
            return partial(seen, **options)
        kept = {k: v for k, v in options.items() if k in ("fullgraph", "dynamic")}
        return compile(model, **kept, backend="aot_eager")

    return seen


@contextmanager
def activation_budget(share: float) -> Iterator[None]:
    """Ask torch.compile to keep at most a share of the activations; it computes the rest again.

    Parameters
    ----------
    share : float
        From 0 (keep inputs only) to 1 (torch's default: recompute only where it costs nothing).

    Raises
    ------
    ValueError
        If it is outside.

    See Also
    --------
    Activation checkpointing techniques : https://pytorch.org/blog/activation-checkpointing-techniques/

    Examples
    --------
    >>> with activation_budget(0.5):
    ...     pass
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    from torch._functorch import config

    with config.patch(activation_memory_budget=share):
        yield


_made: list[tuple[str, Attempt]] = []  # every attempt of this process, for plot_attempts


class _OverTime(BaseException):
    """End a training that takes too long."""


class _OverBudget(BaseException):  # no Exception: `except Exception` must not swallow it
    """End a training whose peak is already over the budget."""


@dataclass(frozen=True)
class Attempt:
    """Say what one training needed and reached.

    Attributes
    ----------
    bytes : int
        Peak of live tensors: weights, the sums to train on, and all that the training made.
    flops : int
        Arithmetic of matrix products until it ended.
    accuracy : float or None
        On held-out sums, after loading what came back into a fresh model; None if there was
        no need to look.
    reasons : tuple of str
        Why it is rejected; empty if it is accepted.
    parts : mapping of str to int
        Bytes of each category at the peak.
    rows, steps : int
        Sums in the largest forward pass, and steps that the optimizer took.
    """

    bytes: int
    flops: int
    accuracy: float | None
    reasons: tuple[str, ...]
    parts: Mapping[str, int]
    rows: int
    steps: int

    @property
    def accepted(self) -> bool:
        """Whether no reason speaks against it."""
        return not self.reasons

    def __repr__(self) -> str:
        learned = "not judged" if self.accuracy is None else f"{self.accuracy:.1%} right"
        head = f"{format_bytes(self.bytes)} ({self.bytes:,} bytes), {learned}"
        return "\n".join([f"{'accepted' if self.accepted else 'rejected'}: {head}", *self.reasons])


def refuse(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> list[str]:
    """List what speaks against the claim that a training trained all parameters.

    Parameters
    ----------
    before, after : mapping of str to torch.Tensor
        Parameters by name: a copy from the start, and what came back.

    Returns
    -------
    list of str
        Empty if nothing does.

    Examples
    --------
    >>> refuse({"a": torch.zeros(2)}, {"a": torch.zeros(2)})
    ['1 of 1 tensors never moved: a.']
    """
    missing = [name for name in before if name not in after]
    if missing or len(after) != len(before):
        odd = [*missing, *(name for name in after if name not in before)]
        return [f"The names differ: {', '.join(odd[:3])}."]
    for name, tensor in after.items():
        if tensor.shape != before[name].shape:
            return [f"{name} has shape {tuple(tensor.shape)}, not {tuple(before[name].shape)}."]
        if not tensor.isfinite().all():
            return [f"{name} is not finite."]
    still = [name for name, tensor in after.items() if torch.equal(tensor, before[name])]
    if still:
        names = ", ".join(still[:3]) + (", ..." if len(still) > 3 else ".")
        return [f"{len(still)} of {len(before)} tensors never moved: {names}"]
    return []


def attempt(
    train: Callable[[nn.Module, torch.Tensor], nn.Module],
    budget: int,
    *,
    seed: int = 0,
    least: float = 0.9,
    early: bool = True,
    label: str | None = None,
    seconds: float = math.inf,
) -> Attempt:
    """Run a training under the meter and judge what it returns.

    Parameters
    ----------
    train : callable
        Takes an `addition.Adder` and the sums to train on (8,000, 9); returns the trained model.
    budget : int
        Bytes that the peak may reach.
    seed : int
        Of the model's start and of the global generator.
    least : float
        Share of held-out sums that must be right.
    early : bool
        Whether the training ends after the first step whose peak is over the budget.
    label : str, optional
        Name of its point in `plot_attempts`; that of the function if not given.
    seconds : float
        When the training ends, done or not.

    Returns
    -------
    Attempt

    Examples
    --------
    >>> print(attempt(lambda model, sums: model, 2**20))
    rejected: 470 KiB (480,880 bytes), not judged
    30 of 30 tensors never moved: token.weight, position.weight, blocks.0.norm1.weight, ...
    """
    sums, model = addition.load_sums(), addition.build(seed)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        watch = _Watch(model, budget if early else None, seconds)
        returned = watch.run(train, model, sums.train)
    found, accuracy = watch.found, None
    reasons = _over(found.bytes, budget) or watch.late()
    if not reasons:
        after, reasons = _returned(returned, before)
        reasons = reasons or refuse(before, after) or _elsewhere(found, sums.train)
    if not reasons or not early:
        accuracy = _accuracy(returned, sums.held_out)
        if accuracy < least:
            reasons = [*reasons, f"{accuracy:.1%} of the held-out sums are right, not {least:.0%}."]
    parts = {name: n for name, n in found.peak.by_category.items() if n}
    counts = watch.rows, watch.steps
    made = Attempt(found.bytes, found.flops, accuracy, tuple(reasons), parts, *counts)
    _made.append((getattr(train, "__name__", "train") if label is None else label, made))
    return made


def _over(found, budget):
    if found <= budget:
        return []
    return [f"{found:,} bytes are {found - budget:,} over the budget of {budget:,}."]


def _elsewhere(found, train):
    """Say where bytes escaped the meter: weights from outside, or a smaller set of sums."""
    if not found.flops:
        return ["No arithmetic was counted: all training belongs inside, in no other thread."]
    if not torch.equal(train, addition.load_sums().train):
        return ["The sums were changed, and they count in full: take copies of rows."]
    return []


def _returned(returned, before):
    if not isinstance(returned, nn.Module):
        return {}, [f"train must return the trained model, got {type(returned).__name__}."]
    after = {n.replace("_orig_mod.", ""): p.detach() for n, p in returned.named_parameters()}
    return after, []


def _accuracy(returned, held_out):
    fresh = addition.build(-1)
    state = {n.replace("_orig_mod.", ""): t for n, t in returned.state_dict().items()}
    fresh.load_state_dict(state)
    return addition.accuracy(fresh, held_out)


class _Watch:
    """Run a training under the meter; stop it once a step was over the budget."""

    def __init__(self, model, budget, seconds):
        self.model, self.budget, self.seconds = model, budget, seconds
        self.rows = self.steps = 0
        self.found, self.end = None, math.inf
        self.stopped = False

    def run(self, train, model, sums):
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.callback(model.register_forward_pre_hook(self._called).remove)
            hook = optimizers.register_optimizer_step_post_hook(self._stepped)
            stack.callback(hook.remove)
            self.found = stack.enter_context(meter(model, sums))
            self.end = time.monotonic() + self.seconds
            try:
                return train(model, sums)
            except (_OverBudget, _OverTime):
                return None

    def late(self):
        """List that the training was stopped, if it was."""
        if not self.stopped:
            return []
        took = f"Stopped after {self.seconds:g} s and {self.steps:,} steps"
        return [f"{took}: take fewer, or cheaper ones. A busy machine needs longer."]

    def _called(self, _, args):
        self.rows = max(self.rows, len(args[0]))
        self._look_at_the_clock()

    def _look_at_the_clock(self):
        if time.monotonic() > self.end:
            self.stopped = True
            raise _OverTime

    def _stepped(self, *_):
        self.steps += 1
        if self.budget is not None and self.found.bytes > self.budget:
            raise _OverBudget
        self._look_at_the_clock()


def plot_attempts(message: str, budgets: Mapping[str, int], *, caption: str = "") -> Chart:
    """Draw every attempt of this session: its peak over its arithmetic, with budgets dashed.

    Parameters
    ----------
    message : str
        The title, a sentence.
    budgets : mapping of str to int
        Bytes, by name.
    caption : str
        How it was counted.

    Returns
    -------
    Chart
        With one row per attempt: its peak, its arithmetic and what speaks against it.

    Raises
    ------
    ValueError
        If nothing was attempted yet.
    """
    if not _made:
        raise ValueError("nothing to draw: call attempt or check an exercise first")
    points = {}
    for name, made in _made:
        points[name, made.bytes, made.accepted] = made
    figure, axes = plotting.new_figure(message)
    colors = plotting.colors()
    _draw(axes, points)
    for name, size in budgets.items():
        axes.axhline(size / 2**20, color=colors["reference"], linestyle="--", linewidth=1)
        axes.annotate(name, (1, size / 2**20), xycoords=("axes fraction", "data"), ha="right",
                      xytext=(0, 3), textcoords="offset points", color=colors["reference"])  # fmt: skip
    plotting.write_caption(figure, caption)
    rows = tuple(
        (name, format_bytes(size), f"{made.flops / max(made.steps, 1) / 1e9:.2f}", _why(made))
        for (name, size, _), made in points.items()
    )
    return Chart(figure, message, ("attempt", "peak", "GFLOP in a step", "verdict"), rows)


def _draw(axes, points):
    colors = plotting.colors()
    places = {key: (made.flops / max(made.steps, 1) / 1e9, key[1] / 2**20)
              for key, made in points.items()}  # fmt: skip
    widest = 1.9 * max(x for x, _ in places.values()) or 1
    labels = plotting.spread([math.log2(y) for _, y in places.values()], 0.3)
    for key, label in zip(places, labels, strict=True):
        x, y = places[key]
        kind = "new" if points[key].accepted else "reference"
        axes.plot(x, y, plotting.MARKERS[kind], color=colors[kind], markersize=8)
        text = f"{key[0]}: {_why(points[key])}"
        axes.annotate(text, (x + 0.02 * widest, 2**label), va="center")
    axes.set(xlabel="arithmetic of a step (GFLOP)", ylabel="peak (MiB)", yscale="log")
    axes.set(xlim=(0, widest), ylim=(1.5, max(16, *(1.5 * y for _, y in places.values()))))
    axes.set_yticks([2, 4, 8, 16], ["2", "4", "8", "16"])
    axes.minorticks_off()


def _why(made):
    if made.accepted:
        return "accepted"
    reason = made.reasons[0]
    words = {"over the budget": "over budget", "never moved": "not all moved", "right": "wrong"}
    return next((short for long, short in words.items() if long in reason), "rejected")
