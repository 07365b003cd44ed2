"""Follow every storage that operations return, from its birth to its death.

`helpers.memory.track_memory` is the public door. A storage is the block of bytes behind one or
more tensors; torch keeps one Python object per storage alive exactly as long as its bytes, so a
weak reference to that object tells when they are freed.
"""

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from functools import partial

import torch
from torch.utils._python_dispatch import TorchDispatchMode

CATEGORIES = (
    "parameter",
    "gradient",
    "optimizer state",
    "activation",
    "recomputed",
    "temporary",
    "other",
)
PARAMETER, GRADIENT, OPTIMIZER_STATE, ACTIVATION, RECOMPUTED, TEMPORARY, OTHER = range(7)
PHASES = ("forward", "backward", "step")
FORWARD, BACKWARD, STEP = range(3)
MAX_POINTS = 2**14
_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def _private_functions():
    """Return torch's functions for "which backward pass runs" and "which fake mode is on"."""
    try:
        graph_task = torch._C._current_graph_task_id
        fake_mode = partial(torch._C._get_dispatch_mode, torch._C._TorchDispatchModeKey.FAKE)
    except AttributeError as missing:
        raise RuntimeError(
            f"track_memory needs torch 2.11 to 2.13, got {torch.__version__} without "
            f"{missing.name}; install a tested version from constraints.txt"
        ) from missing
    return graph_task, fake_mode


def _is_wrapper(kind: type) -> bool:
    # A fake tensor carries its own sizes and is counted as the tensor that it stands for.
    if kind is torch.Tensor:
        return False
    return hasattr(kind, "__tensor_flatten__") and kind.__name__ != "FakeTensor"


def parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the tensors that hold the bytes: wrappers and sparse layouts are opened."""
    if _is_wrapper(type(tensor)):
        inner = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        inner = [part for part in inner if isinstance(part, torch.Tensor)]
    elif tensor.layout in _PARTS:
        inner = [getattr(tensor.detach(), name)() for name in _PARTS[tensor.layout]]
    else:
        yield tensor
        return
    for part in inner:
        yield from parts(part)


def storages(tensor: torch.Tensor) -> list[tuple[torch.device, torch.UntypedStorage]]:
    """List device and storage of each part; an opaque layout (mkldnn) shows no storage."""
    if tensor.layout is torch.strided and not _is_wrapper(type(tensor)):
        try:
            return [(tensor.device, tensor.untyped_storage())]
        except (NotImplementedError, RuntimeError, ValueError):  # a wrapper that cannot be opened
            return []
    inner = list(parts(tensor))
    if len(inner) == 1 and inner[0] is tensor:
        return []
    return [pair for part in inner for pair in storages(part)]


def size_of(device: torch.device, storage: torch.UntypedStorage) -> int:
    """Return the bytes that a storage holds; one on the meta device holds none."""
    return 0 if device.type == "meta" else storage.nbytes()


def tensors_in(nest: object) -> list[torch.Tensor]:
    """List the tensors at any depth of tuples, lists, sets and dictionaries."""
    found, todo = [], [nest]
    while todo:
        value = todo.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list, set, frozenset, deque)):
            todo.extend(value)
        elif isinstance(value, dict):
            todo.extend(value.values())
    return found


class Record(weakref.ref):
    """Remember one storage: where its bytes are booked and when it was first seen."""

    __slots__ = ("birth", "category", "key", "ledger", "size")

    def __new__(cls, storage, on_death, *_):
        """Make the weak reference; `on_death` receives the record when the storage is freed."""
        return super().__new__(cls, storage, on_death)

    def __init__(self, storage, on_death, ledger, size, category, birth):
        super().__init__(storage, on_death)
        self.key = storage._cdata
        self.ledger = ledger
        self.size = size
        self.category = category
        self.birth = birth


class Ledger:
    """Sum the live bytes of one device by category and keep the highest sum."""

    __slots__ = (
        "counts",
        "device",
        "peak_births",
        "peak_counts",
        "peak_total",
        "points",
        "stale",
        "total",
    )

    def __init__(self, device: torch.device):
        self.device = device
        self.counts = [0] * len(CATEGORIES)
        self.total = 0
        self.peak_counts = list(self.counts)
        self.peak_total = 0
        self.peak_births = 0
        self.points = []  # (operation, phase, total, counts)
        self.stale = True

    def add(self, category: int, size: int) -> None:
        """Book `size` bytes, negative ones for a death."""
        self.counts[category] += size
        self.total += size
        self.stale = True

    def relabel(self, record: Record, category: int) -> None:
        """Move a record to another category, in the stored peak too if it lived then."""
        self.counts[record.category] -= record.size
        self.counts[category] += record.size
        if record.birth <= self.peak_births:
            size = min(record.size, self.peak_counts[record.category])
            self.peak_counts[record.category] -= size
            self.peak_counts[category] += size
        record.category = category
        self.stale = True

    def mark(self, operation: int, phase: int, births: int) -> None:
        """Add a point to the timeline and keep the peak."""
        if self.total > self.peak_total:
            self.peak_total, self.peak_births = self.total, births
            self.peak_counts = list(self.counts)
        self.points.append((operation, phase, self.total, tuple(self.counts)))
        self.stale = False
        if len(self.points) >= MAX_POINTS:  # bounded: of two neighbors the higher one stays
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            self.points = [max(pair, key=lambda point: point[2]) for pair in pairs]


class Book:
    """Keep one record per live storage and one ledger per device."""

    def __init__(self):
        self.live: dict[int, Record] = {}
        self.ledgers: dict[torch.device, Ledger] = {}
        # Weak references report here from any thread and from the garbage collector. Nothing
        # else happens there; `bury` takes the dead off before an address is looked up, so a
        # new storage at the address of a dead one is never taken for it.
        self.dead: deque[Record] = deque()
        self.births = 0
        self.operations = 0
        self.lock = threading.RLock()  # the backward pass uses one thread per accelerator

    def bury(self) -> None:
        """Remove the storages that died since the last call."""
        while self.dead:
            record = self.dead.popleft()
            del self.live[record.key]
            record.ledger.add(record.category, -record.size)

    def open(self, device, storage, category: int) -> None:
        """Book a storage that is seen for the first time."""
        ledger = self.ledgers.get(device)
        if ledger is None:
            ledger = self.ledgers[device] = Ledger(device)
        size = size_of(device, storage)
        self.births += 1
        record = Record(storage, self.dead.append, ledger, size, category, self.births)
        self.live[record.key] = record
        ledger.add(category, size)

    def resize(self, record: Record, storage) -> None:
        """Bring the size of a known storage up to date."""
        size = size_of(record.ledger.device, storage)
        if record.size != size:
            record.ledger.add(record.category, size - record.size)
            record.size = size

    def label(self, tensor: torch.Tensor, category: int) -> None:
        """Book a tensor by what it is; "other" never replaces a label, nothing "parameter"."""
        pairs = storages(tensor)
        with self.lock:
            self.bury()
            for device, storage in pairs:
                record = self.live.get(storage._cdata)
                if record is None:
                    self.open(device, storage, category)
                    continue
                self.resize(record, storage)
                if category != OTHER and record.category not in (category, PARAMETER):
                    record.ledger.relabel(record, category)

    def mark(self, phase: int) -> None:
        """Let every ledger that changed take a point and keep its peak."""
        for ledger in self.ledgers.values():
            if ledger.stale:
                ledger.mark(self.operations, phase, self.births)


class LiveBytesMode(TorchDispatchMode):
    """Look at the result of every operation of this thread."""

    def __init__(self):
        super().__init__()
        self.graph_task, self.fake_mode = _private_functions()
        self.book = Book()
        self.fake = self.fake_mode()  # None, or the one that was on at entry
        self.thread = threading.get_ident()
        self.steps = 0  # optimizer steps under way

    def phase(self) -> int:
        """Tell forward, backward and optimizer step apart."""
        if self.graph_task() != -1:
            return BACKWARD
        # An exception inside step() skips its post hook; with gradients on, believe no step.
        return STEP if self.steps and not torch.is_grad_enabled() else FORWARD

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run the operation and book the storages that it returned."""
        if types and any(_is_wrapper(kind) for kind in types):
            return NotImplemented  # the wrapper opens itself; its inner operations come here
        out = func(*args, **(kwargs or {}))
        if self.fake_mode() is self.fake:  # else: shapes tried out in a fake mode opened inside
            self.follow(out, args, kwargs)
        return out

    def follow(self, out: object, *arguments: object) -> None:
        """Book what an operation returned."""
        if isinstance(out, torch.Tensor):
            pairs = storages(out)
        else:
            pairs = [pair for tensor in tensors_in(out) for pair in storages(tensor)]
        book = self.book
        book.operations += 1
        if not pairs:
            return
        with book.lock:
            book.bury()
            phase = self.phase()
            for device, storage in pairs:
                record = book.live.get(storage._cdata)
                if record is None:
                    book.open(device, storage, self.category(phase, storage, arguments))
                else:
                    book.resize(record, storage)
            book.mark(phase)

    def category(self, phase: int, storage, arguments: tuple) -> int:
        """Say what a storage is by where it appeared first."""
        key = storage._cdata
        for tensor in tensors_in(arguments):
            for _, argument in storages(tensor):
                if argument._cdata == key:
                    return OTHER  # it was there before: the operation returned a view of it
        if phase == BACKWARD:
            return RECOMPUTED if torch.is_grad_enabled() else TEMPORARY
        return TEMPORARY if phase == STEP else ACTIVATION

    def before_step(self, *_) -> None:
        """Note that an optimizer of this thread starts its step."""
        self.steps += threading.get_ident() == self.thread

    def after_step(self, optimizer, *_) -> None:
        """Label what the optimizer keeps from this step on."""
        if threading.get_ident() == self.thread:
            self.steps = max(self.steps - 1, 0)
            self.label_state(optimizer)

    def after_gradient(self, parameter: torch.Tensor) -> None:
        """Label a gradient; another hook may have cleared it already."""
        # Gradients of CPU parameters arrive in the thread that called backward.
        foreign = parameter.device.type == "cpu" and threading.get_ident() != self.thread
        if parameter.grad is not None and not foreign:
            self.book.label(parameter.grad, GRADIENT)

    def label_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Label the tensors at any depth of the optimizer's state."""
        for tensor in tensors_in(list(optimizer.state.values())):
            self.book.label(tensor, OPTIMIZER_STATE)

    def resized(self, storage: torch.UntypedStorage) -> None:
        """Update a storage that `resize_` changed without an operation (FSDP does that)."""
        book = self.book
        with book.lock:
            book.bury()
            record = book.live.get(storage._cdata)
            if record is not None:
                book.resize(record, storage)
                book.mark(self.phase())

    def close(self) -> None:
        """Forget every storage, keep the sums."""
        with self.book.lock:
            self.book.bury()
            self.book.mark(self.phase())
            self.book.live.clear()
