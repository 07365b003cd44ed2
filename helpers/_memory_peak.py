"""Hold and show what `helpers.memory.track_memory` counted."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import ClassVar

import torch
from torch import nn

from helpers import _live_bytes
from helpers._live_bytes import CATEGORIES, PHASES


@dataclass(frozen=True)
class LiveBytes:
    """Hold the bytes of the tensors alive at one moment on one device.

    Attributes
    ----------
    device : torch.device
    by_category : dict of str to int
        Bytes of each category of `track_memory`, in its order; they sum to `total`.
    """

    device: torch.device
    by_category: dict[str, int]

    @property
    def total(self) -> int:
        """Return the sum over the categories, in bytes."""
        return sum(self.by_category.values())

    def __str__(self) -> str:
        rows = [("category", "bytes", "size", "share"), *_rows(self.by_category)]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            row[0].ljust(widths[0]) + "".join(f"  {row[i]:>{widths[i]}}" for i in range(1, 4))
            for row in rows
        ]
        return "\n".join([f"Live tensors on {self.device}", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html_table(f"Live tensors on {self.device}", self.by_category)


@dataclass(frozen=True)
class Timeline:
    """Hold the live bytes of one device after each operation that changed them.

    Columns of equal length, ready for ``plt.stackplot(t.operations, *t.by_category.values())``.
    A block of many operations keeps a bounded number of points; of neighbors the higher one stays,
    so the peak is always among them. Labels are those of the moment: a gradient is "temporary"
    until it is complete, and so are Adam's moments during the first step.

    Attributes
    ----------
    device : torch.device
    operations : tuple of int
        Number of operations that the block had run at each point.
    phases : tuple of str
        "backward", "step" (inside ``optimizer.step()``) or "forward" (everything else).
    total : tuple of int
        Live bytes.
    by_category : dict of str to tuple of int
        Live bytes of each category.
    """

    device: torch.device
    operations: tuple[int, ...]
    phases: tuple[str, ...]
    total: tuple[int, ...]
    by_category: dict[str, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.operations)

    def __str__(self) -> str:
        if not self.total:
            return f"Timeline of {self.device}: no points"
        at = self.total.index(max(self.total))
        return (
            f"Timeline of {self.device}: {len(self):,} points, {_size(self.total[at])} at "
            f"operation {self.operations[at]:,} ({self.phases[at]})"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class AllocatorPeak:
    """Hold what the accelerator's own allocator reached during the block.

    Attributes
    ----------
    device : torch.device
    max_memory_allocated : int
        Bytes with blocks rounded up (512 B on CUDA) and with workspaces of libraries; the most
        since the block began, what lived before it included.
    requested_bytes : int or None
        The same without the rounding; None where the allocator does not tell (other than CUDA).
    """

    device: torch.device
    max_memory_allocated: int
    requested_bytes: int | None


class MemoryPeak:
    """Tell the peak of live bytes; `track_memory` makes it, and it stays readable afterwards.

    Several devices are counted apart, each with its own peak in `peaks`. `total`, `by_category`,
    `timeline` and `live` speak of `device`, the one with the highest peak.
    """

    def __init__(self, mode: _live_bytes.LiveBytesMode, stack: ExitStack):
        self._mode = mode
        self._stack = stack
        self._open = True
        self._allocator = AllocatorWatch(fake=mode.fake is not None)

    @property
    def peaks(self) -> dict[torch.device, LiveBytes]:
        """Return the highest moment of each device."""
        ledgers = self._mode.book.ledgers.items()
        return {device: _live(device, ledger.peak_counts) for device, ledger in ledgers}

    @property
    def device(self) -> torch.device:
        """Return the busiest device, the CPU if nothing was counted."""
        ledgers = self._mode.book.ledgers
        return max(ledgers, key=lambda d: ledgers[d].peak_total, default=torch.device("cpu"))

    @property
    def total(self) -> int:
        """Return the peak of live bytes on `device`."""
        return sum(self.by_category.values())

    @property
    def by_category(self) -> dict[str, int]:
        """Return the bytes of each category at the peak; they sum to `total`."""
        return self._at_peak().by_category

    @property
    def timeline(self) -> Timeline:
        """Return the live bytes on `device` after each operation that changed them."""
        ledger = self._mode.book.ledgers.get(self.device)
        points = ledger.points if ledger else []
        operations, phases, total, counts = zip(*points, strict=True) if points else ((),) * 4
        columns = zip(*counts, strict=True) if points else ((),) * len(CATEGORIES)
        return Timeline(
            device=self.device,
            operations=operations,
            phases=tuple(PHASES[phase] for phase in phases),
            total=total,
            by_category=dict(zip(CATEGORIES, columns, strict=True)),
        )

    @property
    def allocator(self) -> AllocatorPeak | None:
        """Return the allocator's own peak on `device`; None on CPU and under fake tensors."""
        return self._allocator.peak(self.device)

    def live(self) -> LiveBytes:
        """Return the bytes alive on `device` now; after the block, those alive at its end."""
        book = self._mode.book
        with book.lock:
            book.bury()
            ledger = book.ledgers.get(self.device)
            return _live(self.device, ledger.counts if ledger else [0] * len(CATEGORIES))

    def watch(self, *things: object) -> None:
        """Register objects that were built inside the block, as `track_memory` does at entry.

        Parameters
        ----------
        *things : torch.nn.Module, torch.optim.Optimizer, torch.Tensor or nests of them

        Raises
        ------
        TypeError
            If something else is passed.
        RuntimeError
            If the block has ended.
        """
        if not self._open:
            raise RuntimeError(
                "watch works inside the with block of track_memory, which has ended; "
                "call it there or pass the object to track_memory"
            )
        for thing in list(_watchable(things)):
            self._register(thing)
        with self._mode.book.lock:
            self._mode.book.mark(self._mode.phase())

    def _register(self, thing: object) -> None:
        book = self._mode.book
        if isinstance(thing, nn.Module):
            for parameter in thing.parameters():
                self._register_parameter(parameter)
            for buffer in thing.buffers():
                book.label(buffer, _live_bytes.OTHER)
        elif isinstance(thing, torch.optim.Optimizer):
            self._mode.label_state(thing)
        elif isinstance(thing, nn.Parameter):
            self._register_parameter(thing)
        else:
            book.label(thing, _live_bytes.OTHER)

    def _register_parameter(self, parameter: nn.Parameter) -> None:
        self._mode.book.label(parameter, _live_bytes.PARAMETER)
        if parameter.is_leaf and parameter.grad is not None:
            self._mode.book.label(parameter.grad, _live_bytes.GRADIENT)
        if parameter.is_leaf and parameter.requires_grad:
            hook = parameter.register_post_accumulate_grad_hook(self._mode.after_gradient)
            self._stack.callback(hook.remove)

    def _close(self) -> None:
        self._open = False
        self._mode.close()
        self._allocator.close()

    def _at_peak(self) -> LiveBytes:
        ledger = self._mode.book.ledgers.get(self.device)
        return _live(self.device, ledger.peak_counts if ledger else [0] * len(CATEGORIES))

    def __str__(self) -> str:
        return str(self._at_peak()).replace("Live tensors", "Peak of live tensors", 1)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html_table(f"Peak of live tensors on {self.device}", self.by_category)


@contextmanager
def track_with(mode: _live_bytes.LiveBytesMode, *things: object) -> Iterator[MemoryPeak]:
    """Do what `helpers.memory.track_memory` does, with a mode that may count more than bytes."""
    with ExitStack() as stack:
        peak = MemoryPeak(mode, stack)
        stack.callback(peak._close)
        _install_hooks(mode, stack)
        peak.watch(*things)
        stack.enter_context(mode)
        yield peak


def _install_hooks(mode: _live_bytes.LiveBytesMode, stack: ExitStack) -> None:
    from torch.optim import optimizer

    before = optimizer.register_optimizer_step_pre_hook(mode.before_step)
    stack.callback(before.remove)
    after = optimizer.register_optimizer_step_post_hook(mode.after_step)
    stack.callback(after.remove)
    kind = torch.UntypedStorage
    original = kind.resize_
    if "resize_" in vars(kind):
        stack.callback(setattr, kind, "resize_", original)
    else:
        stack.callback(delattr, kind, "resize_")  # what it inherits shows again

    @wraps(original)
    def resize_(storage, size):
        result = original(storage, size)
        mode.resized(storage)
        return result

    kind.resize_ = resize_


_ADVICE = {
    "numpy.ndarray": "pass torch.from_numpy(array)",
    "generator": "pass the module itself, or list(...) of the generator",
}


def type_name(value: object) -> str:
    """Name the type of a value as the reader would import it."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _watchable(things: tuple, *, top: bool = True) -> Iterator[object]:
    for thing in things:
        if isinstance(thing, (nn.Module, torch.optim.Optimizer, torch.Tensor)):
            yield thing
        elif isinstance(thing, Mapping):
            yield from _watchable(tuple(thing.values()), top=False)
        elif isinstance(thing, (list, tuple, set, frozenset, deque)):
            yield from _watchable(tuple(thing), top=False)
        elif top or not isinstance(thing, (int, float, complex, str, bytes, type(None))):
            name = type_name(thing)
            raise TypeError(
                "track_memory takes modules, optimizers, tensors and lists, tuples or dicts of "
                f"them, got {name}; {_ADVICE.get(name, 'pass the tensors that it holds')}"
            )


class AllocatorWatch:
    """Read the peak statistics of the accelerator's allocator, also when blocks are nested."""

    open_watches: ClassVar[list["AllocatorWatch"]] = []

    def __init__(self, *, fake: bool):
        self.best: dict[int, tuple[int, int | None]] = {}
        self.accelerator = None
        if fake or not torch.accelerator.is_available():
            return
        for watch in self.open_watches:  # their peak so far would be lost by the reset
            watch.absorb()
        try:
            for index in range(torch.accelerator.device_count()):
                torch.accelerator.reset_peak_memory_stats(index)
        except RuntimeError:  # an accelerator whose allocator keeps no statistics
            return
        self.accelerator = torch.accelerator.current_accelerator().type
        self.open_watches.append(self)

    def absorb(self) -> None:
        for index in range(torch.accelerator.device_count()):
            allocated, requested = _allocator_peak(self.accelerator, index)
            before = self.best.get(index, (0, 0))
            if requested is not None:
                requested = max(requested, before[1])
            self.best[index] = max(allocated, before[0]), requested

    def peak(self, device: torch.device) -> AllocatorPeak | None:
        if self in self.open_watches:
            self.absorb()
        if device.type != self.accelerator or device.index not in self.best:
            return None
        return AllocatorPeak(device, *self.best[device.index])

    def close(self) -> None:
        if self in self.open_watches:
            self.absorb()
            self.open_watches.remove(self)


def _allocator_peak(accelerator: str, index: int) -> tuple[int, int | None]:
    allocated = torch.accelerator.max_memory_allocated(index)
    if accelerator != "cuda":
        return allocated, None
    return allocated, torch.cuda.memory_stats(index).get("requested_bytes.all.peak")


def _live(device: torch.device, counts: list[int]) -> LiveBytes:
    return LiveBytes(device, dict(zip(CATEGORIES, counts, strict=True)))


def _size(count: int) -> str:
    from helpers.units import format_bytes

    return format_bytes(count)


def _rows(by_category: dict[str, int]) -> list[tuple[str, str, str, str]]:
    total = sum(by_category.values())
    shown = {name: count for name, count in by_category.items() if count} | {"total": total}
    return [
        (name, f"{count:,}", _size(count), f"{count / (total or 1) * 100:.1f} %")
        for name, count in shown.items()
    ]


def _html_table(caption: str, by_category: dict[str, int]) -> str:
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("category", "bytes", "size", "share")
    )
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f"<td>{cell}</td>" for cell in row[1:])
        + "</tr>"
        for row in _rows(by_category)
    )
    return (
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
