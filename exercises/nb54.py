"""Ask and check what 54_save_and_resume teaches."""

import copy
import os
import pickle
import random
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "54.p1": Number(
        question="A table holds 10,000 rows of 100 numbers. You save one row: 100 float32, 400 "
        "bytes. How large is the file?",
        unit="bytes",
        notes=(
            (0, 1000, "A row is a window: it names a storage, a place and a shape."),
            (1000, 100_000, "Right about the wrapping. What it wraps is the row's storage."),
            (100_000, 3e6, "More than the row, and less than what the row keeps alive."),
            (3e6, 5e6, "Right: the storage of the whole table, 10,000 · 100 · 4 bytes."),
            (5e6, 1e12, "The table has 4,000,000 bytes, and nothing is stored twice."),
        ),
    ),
    "54.p2": Number(
        question="How many of the seven parts can be left out, one at a time, so that the resumed "
        "model still gives the same outputs to the bit?",
        unit="parts",
        among=7,
        notes=(
            (0, 1, "Right: each of them reaches the outputs, two of them without any gradient."),
            (1, 3, "Look at the buffers and at the scaler: both change what a step computes."),
            (3, 8, "Model and optimizer are what tutorials save. The rest steers them."),
        ),
    ),
    "54.p3": Choice(
        question="One run only trains. The other also looks: once per epoch it reads validation "
        "batches, unshuffled, with eval() and no_grad(). The net has no dropout. Weights at the "
        "end?",
        options={
            "equal to the bit": "Nothing random in the net, no gradient, no shuffle: and yet "
            "somebody drew a number.",
            "different": "Right: each `iter()` of a DataLoader draws a seed from the global "
            "generator, also without a shuffle.",
            "an error": "Looking is allowed. It only has a side effect.",
        },
    ),
    "54.p4": Number(
        question="In 300 copies of a checkpoint one bit is flipped, each at another place. How "
        "many of them does torch.load read without an error?",
        unit="files",
        among=300,
        notes=(
            (0, 50, "No checksum is compared on the way in: a flipped bit is another number."),
            (50, 240, "Only the structure can be broken, and nearly all bytes are numbers."),
            (240, 301, "Right: an error comes only when the structure is hit."),
        ),
    ),
    "54.p5": Choice(
        question="The file names a function to call. When is that function called?",
        options={
            "never: a .pt file holds tensors": "A pickle is a program that builds objects, and "
            "calling functions is how it builds them.",
            "on any load": "The default reads with a list of allowed names, and the function is "
            "not on it.",
            "on a load with weights_only=False": "Right: that switch turns the list off.",
            "when the object is used": "Nobody has to use anything: building the object is the "
            "call.",
        },
    ),
}


def _kind(value):
    return "None" if value is None else type(value).__name__


def _equal(a, b):
    """Compare two nested structures of tensors and plain values to the bit."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        both = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return both and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return a is b or a == b


# --- 54.1 -------------------------------------------------------------------------------


def _new_run(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    model = nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    return SimpleNamespace(
        model=model,
        optimizer=optimizer,
        scheduler=lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7),
        shuffle=torch.Generator().manual_seed(seed),
        epoch=0,
    )


def _train(run, rows, last):
    """Train to an epoch: shuffle from `shuffle`, dropout from torch, flips from `random`."""
    run.model.train()
    while run.epoch < last:
        for batch in torch.randperm(len(rows), generator=run.shuffle).split(8):
            x = -rows[batch] if random.random() < 0.5 else rows[batch]
            run.optimizer.zero_grad()
            (run.model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
            run.optimizer.step()
        run.scheduler.step()
        run.epoch += 1


def _state_of(run):
    """Copy all that makes a run, by the words in which the check speaks of it."""
    return copy.deepcopy(
        {
            "parameters": dict(run.model.named_parameters()),
            "buffers": dict(run.model.named_buffers()),
            "optimizer": run.optimizer.state_dict()["state"],
            "rate": [group["lr"] for group in run.optimizer.param_groups],
            "scheduler": run.scheduler.state_dict(),
            "shuffle": run.shuffle.get_state(),
            "torch": torch.get_rng_state(),
            "python": random.getstate(),
            "epoch": run.epoch,
        }
    )


_MISSING = {
    "parameters": "The parameters differ from those at the stop.",
    "buffers": "The buffers differ: BatchNorm keeps running statistics, and they are no "
    "parameters. model.state_dict() holds both.",
    "optimizer": "Adam's moments differ: the first step after the stop goes another way. Keep "
    "optimizer.state_dict().",
    "rate": "The learning rate differs from the one at the stop.",
    "scheduler": "The scheduler counts from another epoch: the next rate will be another one. "
    "Keep scheduler.state_dict().",
    "shuffle": "The next epoch is read in another order: keep run.shuffle.get_state().",
    "torch": "Dropout draws other units: keep torch.get_rng_state(), and set it last.",
    "python": "The flips come out differently: the run also draws from Python's random. Keep "
    "random.getstate().",
    "epoch": "run.epoch differs: the loop would train too few or too many epochs.",
}


def test_resume(answer, call):
    rows = torch.randn(20, 6)
    stop, last, seed = int(np.random.randint(1, 4)), 5, int(np.random.randint(1000))
    true = _new_run(seed)
    _train(true, rows, stop)
    at_stop = _state_of(true)
    state = call(answer().take, true)
    if not isinstance(state, dict):
        raise Wrong(f"take must return a dict, got {_kind(state)}.")
    if not _equal(_state_of(true), at_stop):
        raise Wrong("take has changed the run: reading a state must not draw or write anything.")
    loaded = _through_a_file(state)
    _train(true, rows, last)
    late = _through_a_file(state)
    _look_whether_it_moved(loaded, late)
    run = _new_run(seed + 1)
    objects = (run.model, run.optimizer, run.scheduler, run.shuffle)
    call(answer().put_back, run, loaded, may_change=(1,))
    if any(a is not b for a, b in zip(objects, _objects(run), strict=True)):
        raise Wrong(
            "put_back has replaced an object of the run. The optimizer holds the old parameters: "
            "load into the objects that are there."
        )
    _look_at_parts(_state_of(run), at_stop)
    _train(run, rows, last)
    _look_at_parts(_state_of(run), _state_of(true), skip=("torch", "python"))


def _objects(run):
    return run.model, run.optimizer, run.scheduler, run.shuffle


def _through_a_file(state):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        torch.save(state, path)
        try:
            return torch.load(path)
        except pickle.UnpicklingError:
            raise Wrong(
                "torch.load refuses the file with its defaults. Keep tensors and plain Python in "
                "the dict: state dicts, not whole objects; float(x), not NumPy's scalars or arrays."
            ) from None


def _look_whether_it_moved(early, late):
    moved = [key for key in early if not _equal(early[key], late[key])]
    if moved:
        raise Wrong(
            f"state[{moved[0]!r}] moved on while training went on: state_dict() holds the live "
            "tensors. Take a deep copy."
        )


def _look_at_parts(found, expected, skip=()):
    for name, sentence in _MISSING.items():
        if name not in skip and not _equal(found[name], expected[name]):
            raise Wrong(sentence)


# --- 54.2 -------------------------------------------------------------------------------


class _Stop:
    """Interrupt whoever pickles it, in the middle of a save."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        raise self.error


class _Watch:
    """See what is synced and what replaces what; may fail in place of replacing."""

    def __init__(self, path, old):
        self.path, self.old = Path(path), old
        self.synced, self.moves, self.fails = {}, [], None
        self._fsync, self._replace = os.fsync, os.replace

    def fsync(self, fd):
        number = fd if isinstance(fd, int) else fd.fileno()
        self._fsync(number)
        found = os.fstat(number)
        self.synced[found.st_ino] = found.st_size

    def rename(self, source, target, **options):
        raise Wrong(
            "os.rename raises on Windows where the target exists. os.replace does the same "
            "on every system."
        )

    def replace(self, source, target, **options):
        source = Path(source)
        self._look_at_folder(source)
        self._look_at_old()
        found = os.stat(source)
        size = self.synced.get(found.st_ino)
        if size != found.st_size:
            raise Wrong(
                "The temporary file was not flushed and synced before os.replace: after a power "
                "cut the new name may stand for an empty file. Call file.flush() and "
                "os.fsync(file.fileno()) first."
            )
        self.moves.append(source.name)
        if self.fails is not None:
            raise self.fails
        self._replace(source, target)

    def _look_at_folder(self, source):
        if source.resolve().parent != self.path.resolve().parent:
            raise Wrong(
                "The temporary file lies in another folder. Between two file systems os.replace "
                "fails with `Invalid cross-device link`: write beside the target."
            )

    def _look_at_old(self):
        if self.old is None:
            return
        if not self.path.exists():
            raise Wrong("The old file is deleted before the new one has its name: replace it.")
        if self.path.read_bytes() != self.old:
            raise Wrong("The old file is overwritten while the new one is being written.")


def _save(answer, call, thing, watch):
    with (
        mock.patch("os.fsync", watch.fsync),
        mock.patch("os.replace", watch.replace),
        mock.patch("os.rename", watch.rename),
    ):
        call(answer, thing, watch.path)


def test_save_atomically(answer, call):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run 1", "last.pt")
        path.parent.mkdir()
        first, second = (_checkpoint(n) for n in (1, 2))
        names = []
        for old, thing in ((None, first), (first, second)):
            watch = _Watch(path, None if old is None else path.read_bytes())
            _save(answer, call, thing, watch)
            _look_at_saved(path, thing, watch)
            names += watch.moves
        if names[0] == names[1] and str(os.getpid()) not in names[0]:
            raise Wrong(
                f"Both saves wrote into {names[0]}: two processes would write into one file. Give "
                "each save a name of its own, such as one with uuid.uuid4()."
            )
        for error in (OSError("the disk is full"), KeyboardInterrupt()):
            broken = {"weight": torch.randn(50), "then": _Stop(error)}
            _interrupt(answer, call, broken, _Watch(path, path.read_bytes()), error)
        watch = _Watch(path, path.read_bytes())
        watch.fails = PermissionError("another program has the file open")
        _interrupt(answer, call, first, watch, watch.fails)


def _checkpoint(epoch):
    return {"epoch": epoch, "weight": torch.randn(int(np.random.randint(100, 2000)))}


def _look_at_saved(path, thing, watch):
    if not path.exists():
        raise Wrong("Nothing lies at the path after the save.")
    try:
        found = torch.load(path)
    except Exception as error:  # noqa: BLE001 - whatever the reader's file makes torch raise
        raise Wrong(f"torch.load cannot read the file: {type(error).__name__}.") from None
    if not _equal(found, thing):
        raise Wrong("The file at the path does not hold what was to be saved.")
    if not watch.moves:
        raise Wrong(
            "The file is written under its own name, so a crash in the middle leaves half of it. "
            "Write a temporary file beside it, then call os.replace."
        )
    _look_for_strays(path, "A save")


def _look_for_strays(path, what):
    strays = [other.name for other in path.parent.iterdir() if other != path]
    if strays:
        raise Wrong(
            f"{what} leaves {len(strays)} temporary file behind. Remove it in `finally`, or in "
            "`except BaseException`: KeyboardInterrupt is no Exception."
        )


def _interrupt(answer, call, thing, watch, error):
    name = type(error).__name__
    try:
        _save(answer, call, thing, watch)
    except (OSError, KeyboardInterrupt) as caught:
        if caught is not error and caught.__cause__ is not error:
            raise
    else:
        raise Wrong(
            f"{name} came in the middle, and the call returned as if it had saved. Clean up, "
            "then let the exception go on."
        )
    watch._look_at_old()
    _look_for_strays(watch.path, f"{name} in the middle of a save")


# --- 54.3 -------------------------------------------------------------------------------


class _Payload:
    """Make a folder when a pickle is loaded: harmless, and visible."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


class _Wrapped(nn.Module):
    """Have names that begin with a prefix which wrappers use, too."""

    def __init__(self):
        super().__init__()
        self.module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


def _plain():
    return _Wrapped().module


def _bad_states():
    """Return what must be refused, by a name that completes the sentence."""
    good = _plain().state_dict()
    first, *rest = good
    return {
        "of other shapes in the last layer": {**good, "2.weight": torch.randn(2, 5)},
        "that lacks a key": {key: good[key] for key in rest},
        "with one key too many": {**good, "3.weight": torch.randn(2)},
        "with a prefix on one key alone": {
            f"module.{key}" if key == first else key: value for key, value in good.items()
        },
        "with a text in place of a tensor": {**good, "2.bias": "zeros"},
        "that holds a list": list(good.values()),
        "of another model": nn.Conv2d(1, 2, 3).state_dict(),
    }


def _bad_bytes(good):
    """Return damaged copies of a file, by a name that completes the sentence."""
    flipped = bytearray(good)
    weight = _bytes_of_a_weight(good)
    flipped[weight] ^= 1 << int(np.random.randint(8))
    return {
        "that is cut short": good[: len(good) // 2],
        "that is empty": b"",
        "that is a web page": b"<!DOCTYPE html><html><body>404</body></html>",
        "with one flipped bit": bytes(flipped),
    }


def _bytes_of_a_weight(good):
    """Return the place of a byte of the first tensor, which holds a number that we know."""
    return good.index(np.float32(1234.5).tobytes())


def test_load_or_refuse(answer, call):
    with tempfile.TemporaryDirectory() as folder:
        path, marker = Path(folder, "from elsewhere.pt"), Path(folder, "marker")
        for prefix in ("", "_orig_mod.", "module."):
            _load_good(answer, call, path, _plain, prefix)
        for prefix in ("", "_orig_mod.", "module."):
            _load_good(answer, call, path, _Wrapped, prefix)
        for prefix in ("module._orig_mod.", "_orig_mod.module."):
            _load_good(answer, call, path, _plain, prefix)
        for case, state in _bad_states().items():
            torch.save(state, path)
            _load_bad(answer, call, path, case)
        known = _plain()
        nn.init.constant_(known[0].weight, 1234.5)
        torch.save(known.state_dict(), path)
        for case, content in _bad_bytes(path.read_bytes()).items():
            path.write_bytes(content)
            _load_bad(answer, call, path, case)
        torch.save({**_plain().state_dict(), "note": _Payload(marker)}, path)
        _load_bad(answer, call, path, "with a call in it", marker)
        path.unlink()
        _load_bad(answer, call, path, "that does not exist")


def _load_good(answer, call, path, build, prefix):
    model, other = build(), build()
    torch.save({prefix + key: value for key, value in other.state_dict().items()}, path)
    kind = f"whose names all begin with {prefix}" if prefix else "of the same model"
    if build is _Wrapped:
        kind = "for a model with a part that is itself called module"
        kind += f", and names with {prefix} before," * bool(prefix)
    try:
        call(answer, model, path)
    except (ValueError, RuntimeError, KeyError) as error:
        raise Wrong(
            f"A file {kind} is good, and your function raised {type(error).__name__}. Strip a "
            "prefix only where all names carry it beyond the model's own."
        ) from None
    if not _equal(dict(model.state_dict()), dict(other.state_dict())):
        raise Wrong(
            f"A file {kind} was read without an error, and the model is not what the file holds. "
            "strict=False loads nothing where no name fits, and says so only in its result."
        )


def _load_bad(answer, call, path, case, marker=None):
    model = _plain()
    before = copy.deepcopy(model.state_dict())
    caught = None
    try:
        call(answer, model, path)
    except Exception as error:  # each kind gets its own sentence below
        if isinstance(error, Wrong):
            raise
        caught = error
    if marker is not None and marker.exists():
        raise Wrong(
            "The marker exists: loading ran the call inside the file. Leave weights_only=True."
        )
    changed = not _equal(dict(model.state_dict()), dict(before))
    if changed and caught is None:
        raise Wrong(
            f"A file {case} was loaded, and the model is changed. {_WHY.get(case, '')}".rstrip()
        )
    if changed:
        raise Wrong(
            f"A file {case} is refused, and yet the model is changed: load_state_dict had copied "
            "other tensors before it raised. Compare all names and shapes first."
        )
    _look_at_refusal(caught, path, case)


_WHY = {
    "with a prefix on one key alone": "Strip a prefix only where all names carry it.",
    "with one flipped bit": "torch.load compares no checksum. zipfile.ZipFile(path).testzip() "
    "names the first damaged part.",
}


def _look_at_refusal(caught, path, case):
    if caught is None:
        raise Wrong(
            f"A file {case} raised nothing, and nothing was loaded. Whoever calls goes on with "
            "random weights: raise ValueError. " + _WHY.get(case, "")
        )
    if not isinstance(caught, ValueError):
        raise Wrong(
            f"A file {case} lets {type(caught).__name__} through. Catch it and raise ValueError "
            "from it: callers should have to know one error."
        )
    if path.name not in str(caught):
        raise Wrong(
            f"The error for a file {case} does not name the file. Among twenty checkpoints that "
            "is what one looks for: put the path into the text."
        )
    if "weights_only" in str(caught):
        raise Wrong(
            f"The error for a file {case} passes on torch's advice to set weights_only=False. "
            "Who follows it runs the file: write a text of your own."
        )


# --- 54.4 -------------------------------------------------------------------------------


def _make_optimizer():
    return torch.optim.Adam([nn.Parameter(torch.ones(2))], lr=1.0)


_SCHEDULERS = {
    "LambdaLR": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch),
    "StepLR": lambda optimizer: lr_scheduler.StepLR(optimizer, 2, gamma=0.1),
    "ReduceLROnPlateau": lambda optimizer: lr_scheduler.ReduceLROnPlateau(optimizer, patience=1),
    "OneCycleLR": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 2.0, total_steps=30),
}


def _epochs(optimizer, scheduler, count):
    """Return the rates of so many epochs, from the current one on."""
    rates = []
    for _ in range(count):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.param_groups[0]["params"][0].grad = torch.ones(2)
        optimizer.step()
        plateau = isinstance(scheduler, lr_scheduler.ReduceLROnPlateau)
        scheduler.step(*([1.0] if plateau else []))
    return rates


def test_schedule(answer, call):
    for name, make_scheduler in _SCHEDULERS.items():
        stop = int(np.random.randint(3, 7))
        optimizer = _make_optimizer()
        scheduler = make_scheduler(optimizer)
        _epochs(optimizer, scheduler, stop)
        state = copy.deepcopy(
            {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
        )
        true = _epochs(optimizer, scheduler, 5)
        got = _call_resume(answer, call, name, make_scheduler, state)
        _look_at_rates(name, stop, true, got)


def _call_resume(answer, call, name, make_scheduler, state):
    try:
        got = call(answer, _make_optimizer, make_scheduler, state)
    except TypeError as error:
        if "metrics" not in str(error):
            raise
        raise Wrong(
            "ReduceLROnPlateau cannot be stepped to its place: it would need the losses of all "
            "epochs again. Load the scheduler's state."
        ) from None
    if not (isinstance(got, list | tuple) and len(got) == 2):
        raise Wrong(f"Return optimizer and scheduler, got {_kind(got)}.")
    optimizer, scheduler = got
    if not isinstance(optimizer, torch.optim.Optimizer) or not hasattr(scheduler, "step"):
        raise Wrong(f"Return optimizer and scheduler, got {_kind(optimizer)}, {_kind(scheduler)}.")
    if scheduler.optimizer is not optimizer:
        raise Wrong("The scheduler steers another optimizer than the one you return.")
    moments = optimizer.state_dict()["state"]
    if not _equal(moments, state["optimizer"]["state"]):
        raise Wrong("Adam's moments are not those of the state: load the optimizer's, too.")
    return _epochs(optimizer, scheduler, 5)


def _look_at_rates(name, stop, true, got):
    wrong = [n for n, (a, b) in enumerate(zip(true, got, strict=True)) if abs(a - b) > 1e-9]
    if not wrong:
        return
    n = wrong[0]
    why = "its count was lost: load the scheduler's state as well"
    if n == 0:
        why = (
            "making a scheduler writes its first rate into the optimizer. Make both, then load both"
        )
    raise Wrong(
        f"{name}, stopped after epoch {stop}: rate number {n + 1} from there on is {got[n]:.3g}, "
        f"not {true[n]:.3g}: {why}."
    )


# --- the stored answers -----------------------------------------------------------------

_IMPORTS = (
    "import copy\nimport os\nimport random\nimport tempfile\nimport uuid\nimport zipfile\n\n\n"
)

_PARTS = (
    ("model", "run.model.state_dict()", "run.model.load_state_dict({})"),
    ("optimizer", "run.optimizer.state_dict()", "run.optimizer.load_state_dict({})"),
    ("scheduler", "run.scheduler.state_dict()", "run.scheduler.load_state_dict({})"),
    ("shuffle", "run.shuffle.get_state()", "run.shuffle.set_state({})"),
    ("epoch", "run.epoch", "run.epoch = {}"),
    ("random", "random.getstate()", "random.setstate({})"),
    ("torch", "torch.get_rng_state()", "torch.set_rng_state({})"),
)


def _resume(*, without=(), deep=True, **changed):
    """Write out an answer to 54.1: the right one, with parts changed or left out."""
    parts = [
        (name, *changed.get(name, (keep, back)))
        for name, keep, back in _PARTS
        if name not in without
    ]
    held = "".join(f'            "{name}": {keep},\n' for name, keep, _ in parts)
    state = f"{{\n{held}        }}"
    state = f"copy.deepcopy({state})" if deep else state
    values = [f'state["{name}"]' for name, _, _ in parts]
    backs = [back.format(value) for value, (_, _, back) in zip(values, parts, strict=True)]
    lines = "".join(f"        {line}\n" for line in backs)
    return (
        f"{_IMPORTS}class Checkpoint:\n    def take(self, run):\n        return {state}\n\n"
        f"    def put_back(self, run, state):\n{lines}"
    )


_SAVE = _IMPORTS + "def save_atomically(thing, path):\n"
_OWN = '    temp = path.with_name(f".{path.name}.{uuid.uuid4().hex}")\n'
_WRITE = (
    '        with open(temp, "wb") as file:\n'
    "            torch.save(thing, file)\n"
    "            file.flush()\n            os.fsync(file.fileno())\n"
)
_REPLACE = "        os.replace(temp, path)\n"
_FINALLY = "    finally:\n        temp.unlink(missing_ok=True)\n"

_LOAD = _IMPORTS + "def load_or_refuse(model, path):\n"
_READ = (
    "    try:\n        with zipfile.ZipFile(path) as file:\n            damaged = file.testzip()\n"
    "        state = torch.load(path, map_location='cpu')\n"
    "    except Exception as error:\n"
    '        raise ValueError(f"{path} cannot be read as weights") from error\n'
)
_DAMAGED = '    if damaged:\n        raise ValueError(f"{path} is damaged in {damaged}")\n'
_OWN_NAMES = "    own = model.state_dict()\n"
_PREFIX = (
    '    for prefix in ("module.", "_orig_mod.", "module."):\n'
    "        if set(state) != set(own) and all(str(n).startswith(prefix) for n in state):\n"
    "            state = {n.removeprefix(prefix): value for n, value in state.items()}\n"
)
_ONE_PREFIX = (
    '    for prefix in ("_orig_mod.", "module."):\n'
    "        if set(state) == {prefix + name for name in own}:\n"
    "            state = {name: state[prefix + name] for name in own}\n"
)
_DICT = '    if not isinstance(state, dict):\n        raise ValueError(f"{path} holds no dict")\n'
_SHAPES = (
    '    shapes = {name: getattr(value, "shape", None) for name, value in state.items()}\n'
    "    if shapes != {name: value.shape for name, value in own.items()}:\n"
    '        raise ValueError(f"{path} fits another model")\n'
)
_INTO = "    model.load_state_dict(state)\n"
_RIGHT_LOAD = _READ + _DAMAGED + _DICT + _OWN_NAMES + _PREFIX + _SHAPES + _INTO

_SCHEDULE = "def resume(make_optimizer, make_scheduler, state):\n    optimizer = make_optimizer()\n"
_NEW = "    scheduler = make_scheduler(optimizer)\n"
_LOAD_OPTIMIZER = '    optimizer.load_state_dict(state["optimizer"])\n'
_LOAD_SCHEDULER = '    scheduler.load_state_dict(state["scheduler"])\n'
_BOTH = "    return optimizer, scheduler\n"

EXERCISES = {
    "54.1": Exercise(
        title="Resume to the bit",
        minutes=9,
        task="`run` has model (with dropout and BatchNorm), optimizer, scheduler, epoch, and "
        "`shuffle`, a torch.Generator; the loop also draws from Python's `random`. `take` returns "
        "a dict that later training leaves alone, and that torch.save and torch.load pass on. "
        "`put_back` brings a fresh run to that point.",
        stub="class Checkpoint:\n    def take(self, run):\n"
        '        """Return all that the next step depends on."""\n'
        '        return {"model": run.model.state_dict()}\n\n'
        "    def put_back(self, run, state):\n"
        '        run.model.load_state_dict(state["model"])\n',
        answer="Checkpoint",
        test=test_resume,
        hints=(
            "The next step depends on whatever the loop reads: four objects, a number, and two "
            "generators that belong to nobody.",
            "Adam's moments are tensors that the next step writes into. The dict must not hold "
            "those, but copies.",
            "In take, first: return copy.deepcopy({",
        ),
        solution=_resume(),
        wrong=(
            WrongAnswer("no random state", _resume(without=("torch",)), "Dropout draws other"),
            WrongAnswer("live tensors", _resume(deep=False), "moved on while training"),
            WrongAnswer(
                "shallow copy",
                _resume(deep=False)
                .replace("return {", "return dict({")
                .replace("        }\n", "        })\n", 1),
                "moved on while training",
            ),
            WrongAnswer("no shuffle", _resume(without=("shuffle",)), "in another order"),
            WrongAnswer("no flips", _resume(without=("random",)), "Python's random"),
            WrongAnswer("no epoch", _resume(without=("epoch",)), "run.epoch differs"),
            WrongAnswer(
                "next epoch",
                _resume(epoch=("run.epoch", "run.epoch = {} + 1")),
                "run.epoch differs",
            ),
            WrongAnswer("no optimizer", _resume(without=("optimizer",)), "Adam's moments differ"),
            WrongAnswer("no scheduler", _resume(without=("scheduler",)), "scheduler counts from"),
            WrongAnswer(
                "parameters only",
                _resume(
                    model=(
                        "dict(run.model.named_parameters())",
                        "run.model.load_state_dict({}, strict=False)",
                    )
                ),
                "The buffers differ",
            ),
            WrongAnswer("whole model", _resume(model=("run.model", "run.model = {}")), "refuses"),
            WrongAnswer(
                "NumPy's scalars",
                _resume(epoch=("__import__('numpy').float64(run.epoch)", "run.epoch = {}")),
                "refuses the file",
            ),
            WrongAnswer(
                "new optimizer",
                _resume(
                    optimizer=(
                        "run.optimizer.state_dict()",
                        "run.optimizer = torch.optim.Adam(run.model.parameters())",
                    )
                ),
                "replaced an object",
            ),
            WrongAnswer(
                "draws while it looks",
                _resume(
                    shuffle=(
                        "(torch.rand(1), run.shuffle.get_state())[1]",
                        "run.shuffle.set_state({})",
                    )
                ),
                "take has changed the run",
            ),
            WrongAnswer(
                "nothing returned",
                "class Checkpoint:\n    def take(self, run):\n        self.run = run\n\n"
                "    def put_back(self, run, state):\n        pass\n",
                "got None",
            ),
            WrongAnswer(
                "nothing put back",
                _resume().partition("    def put_back")[0]
                + "    def put_back(self, run, state):\n        pass\n",
                "The parameters differ",
            ),
            WrongAnswer(
                "rate kept from the new run",
                _resume(
                    optimizer=(
                        "run.optimizer.state_dict()",
                        "run.optimizer.load_state_dict({}); "
                        'run.optimizer.param_groups[0]["lr"] = 0.05',
                    )
                ),
                "learning rate differs",
            ),
        ),
    ),
    "54.2": Exercise(
        title="Save so that no crash costs the last checkpoint",
        minutes=7,
        task="Save `thing` with torch.save at `path`, a pathlib.Path. Whatever happens on the way, "
        "an exception or a power cut, `path` holds the old file or the new one, whole. After an "
        "exception no temporary file is left, and the exception goes on. Two processes may save "
        "at once.",
        stub="def save_atomically(thing, path):\n"
        '    """Save a thing at a path, all of it or nothing."""\n    ...\n',
        answer="save_atomically",
        test=test_save_atomically,
        hints=(
            "A new file gets the name only when all its bytes are on the disk.",
            "Ctrl+C raises KeyboardInterrupt, which `except Exception` does not see. And a "
            "temporary file in /tmp may lie on another disk.",
            'temp = path.with_name(f".{path.name}.{uuid.uuid4().hex}")',
        ),
        solution=_SAVE + _OWN + "    try:\n" + _WRITE + _REPLACE + _FINALLY,
        wrong=(
            WrongAnswer(
                "plain save", _SAVE + "    torch.save(thing, path)\n", "under its own name"
            ),
            WrongAnswer(
                "deletes first",
                _SAVE
                + _OWN
                + "    try:\n"
                + _WRITE
                + "        path.unlink(missing_ok=True)\n"
                + _REPLACE
                + _FINALLY,
                "is deleted before",
            ),
            WrongAnswer(
                "keeps the old one under its name, overwritten",
                _SAVE
                + _OWN
                + "    try:\n"
                + _WRITE
                + "        path.write_bytes(temp.read_bytes())\n"
                + _REPLACE
                + _FINALLY,
                "is overwritten while",
            ),
            WrongAnswer(
                "temporary file elsewhere",
                _SAVE + "    from pathlib import Path\n"
                "    temp = Path(tempfile.mkdtemp()) / 'new'\n    try:\n"
                + _WRITE
                + _REPLACE
                + _FINALLY
                + "        temp.parent.rmdir()\n",
                "in another folder",
            ),
            WrongAnswer(
                "fixed name",
                _SAVE
                + '    temp = path.with_suffix(".tmp")\n    try:\n'
                + _WRITE
                + _REPLACE
                + _FINALLY,
                "a name of its own",
            ),
            WrongAnswer(
                "not synced",
                _SAVE + _OWN + "    try:\n        torch.save(thing, temp)\n" + _REPLACE + _FINALLY,
                "not flushed and synced",
            ),
            WrongAnswer(
                "except Exception",
                _SAVE
                + _OWN
                + "    try:\n"
                + _WRITE
                + _REPLACE
                + "    except Exception:\n        temp.unlink(missing_ok=True)\n        raise\n",
                "KeyboardInterrupt is no Exception",
            ),
            WrongAnswer(
                "swallowed",
                _SAVE
                + _OWN
                + "    try:\n"
                + _WRITE
                + _REPLACE
                + "    except OSError:\n        temp.unlink(missing_ok=True)\n",
                "as if it had saved",
            ),
            WrongAnswer(
                "os.rename",
                _SAVE + _OWN + "    try:\n" + _WRITE + "        os.rename(temp, path)\n" + _FINALLY,
                "os.rename raises on Windows",
            ),
            WrongAnswer(
                "never renamed", _SAVE + _OWN + "    try:\n" + _WRITE + _FINALLY, "Nothing lies"
            ),
            WrongAnswer(
                "something else saved",
                _SAVE
                + _OWN
                + "    try:\n"
                + _WRITE.replace("(thing, file)", "(thing['weight'], file)")
                + _REPLACE
                + _FINALLY,
                "does not hold what",
            ),
            WrongAnswer(
                "text",
                _SAVE + "    path.write_text(str(thing))\n",
                "torch.load cannot read",
            ),
        ),
    ),
    "54.3": Exercise(
        title="Load all of a file or nothing",
        minutes=9,
        task="Load the state dict at `path` into `model`. The prefixes `_orig_mod.` and `module.`, "
        "one or both, are stripped where all names carry them beyond the model's own. Whatever is "
        "wrong with the file, raise ValueError with the path in its text and leave each tensor "
        "as it was; run nothing from the file, pass on no advice of torch.",
        stub="def load_or_refuse(model, path):\n"
        '    """Load a file from elsewhere into the model, or raise ValueError."""\n    ...\n',
        answer="load_or_refuse",
        test=test_load_or_refuse,
        hints=(
            "Look first, copy last: nothing may touch the model before names and shapes fit.",
            "A file with one flipped bit loads without an error. It is a zip archive with "
            "checksums, and zipfile can compare them.",
            "with zipfile.ZipFile(path) as file: damaged = file.testzip()",
        ),
        solution=_LOAD + _RIGHT_LOAD,
        wrong=(
            WrongAnswer(
                "plain load",
                _LOAD + "    model.load_state_dict(torch.load(path))\n",
                "Strip a prefix only where",
            ),
            WrongAnswer(
                "strict=False",
                _LOAD + "    model.load_state_dict(torch.load(path), strict=False)\n",
                "strict=False loads nothing",
            ),
            WrongAnswer(
                "half loaded",
                _LOAD
                + _READ
                + _DAMAGED
                + _DICT
                + _OWN_NAMES
                + _PREFIX
                + "    try:\n        model.load_state_dict(state)\n"
                "    except RuntimeError as error:\n"
                '        raise ValueError(f"{path} fits another model") from error\n',
                "had copied other tensors before",
            ),
            WrongAnswer(
                "weights_only=False",
                _LOAD + _RIGHT_LOAD.replace("'cpu'", "'cpu', weights_only=False"),
                "The marker exists",
            ),
            WrongAnswer("no checksum", _LOAD + _RIGHT_LOAD.replace(_DAMAGED, ""), "no checksum"),
            WrongAnswer(
                "no path",
                _LOAD + _RIGHT_LOAD.replace("{path} fits", "it fits"),
                "does not name the file",
            ),
            WrongAnswer(
                "torch's own advice",
                _LOAD + _RIGHT_LOAD.replace("cannot be read as weights", "cannot be read: {error}"),
                "passes on torch's advice",
            ),
            WrongAnswer(
                "prefix cut from every name",
                _LOAD
                + _RIGHT_LOAD.replace(
                    _PREFIX,
                    '    state = {name.removeprefix("_orig_mod.").removeprefix("module."): value\n'
                    "             for name, value in state.items()}\n",
                ),
                "itself called module",
            ),
            WrongAnswer(
                "one prefix only",
                _LOAD + _RIGHT_LOAD.replace(_PREFIX, _ONE_PREFIX),
                "begin with module._orig_mod.",
            ),
            WrongAnswer(
                "the own names ruled out",
                _LOAD
                + _RIGHT_LOAD.replace(
                    "if set(state) != set(own) and all(str(n).startswith(prefix) for n in state)",
                    "if all(str(n).startswith(prefix) for n in state) and not all(\n"
                    "            n.startswith(prefix) for n in own\n        )",
                ),
                "beyond the model's own",
            ),
            WrongAnswer(
                "prefix cut where it stands",
                _LOAD
                + _RIGHT_LOAD.replace(
                    _PREFIX,
                    _PREFIX + "    if set(own) != set(state):\n"
                    '        state = {name.removeprefix("module."): value\n'
                    "                 for name, value in state.items()}\n",
                ),
                "with a prefix on one key alone",
            ),
            WrongAnswer(
                "other errors pass",
                _LOAD + _RIGHT_LOAD.replace("except Exception", "except RuntimeError"),
                "through. Catch it",
            ),
            WrongAnswer(
                "silent",
                _LOAD
                + _RIGHT_LOAD.replace('raise ValueError(f"{path} fits another model")', "return"),
                "goes on with random weights",
            ),
        ),
        limit=20.0,
    ),
    "54.4": Exercise(
        title="Bring a schedule back",
        minutes=4,
        task="`resume` shall return optimizer and scheduler as they were when `state` was taken, "
        "so that all rates from here on are those of the uninterrupted run, for any scheduler. "
        "Repair it.",
        stub=_SCHEDULE + _LOAD_OPTIMIZER + _NEW + _BOTH,
        answer="resume",
        test=test_schedule,
        hints=(
            "Making a scheduler is not harmless: look at the optimizer's rate before and after.",
            "LambdaLR with 0.5**epoch, stopped after epoch 3: the next rate is 0.125. The stub "
            "begins with 1.0 again.",
            "scheduler = make_scheduler(optimizer), before anything is loaded",
        ),
        solution=_SCHEDULE + _NEW + _LOAD_OPTIMIZER + _LOAD_SCHEDULER + _BOTH,
        wrong=(
            WrongAnswer(
                "scheduler made after loading",
                _SCHEDULE + _LOAD_OPTIMIZER + _NEW + _LOAD_SCHEDULER + _BOTH,
                "writes its first rate",
            ),
            WrongAnswer(
                "optimizer only", _SCHEDULE + _NEW + _LOAD_OPTIMIZER + _BOTH, "its count was lost"
            ),
            WrongAnswer(
                "scheduler only", _SCHEDULE + _NEW + _LOAD_SCHEDULER + _BOTH, "Adam's moments"
            ),
            WrongAnswer(
                "stepped to its place",
                _SCHEDULE + _NEW + '    for _ in range(state["scheduler"]["last_epoch"]):\n'
                "        scheduler.step()\n" + _LOAD_OPTIMIZER + _BOTH,
                "cannot be stepped",
            ),
            WrongAnswer(
                "rate set by hand",
                _SCHEDULE + _LOAD_OPTIMIZER + _NEW + '    optimizer.param_groups[0]["lr"] = '
                'state["optimizer"]["param_groups"][0]["lr"]\n' + _BOTH,
                "its count was lost",
            ),
            WrongAnswer(
                "another optimizer",
                _SCHEDULE
                + "    scheduler = make_scheduler(make_optimizer())\n"
                + _LOAD_OPTIMIZER
                + _LOAD_SCHEDULER
                + _BOTH,
                "steers another optimizer",
            ),
            WrongAnswer(
                "optimizer alone returned",
                _SCHEDULE + _NEW + _LOAD_OPTIMIZER + _LOAD_SCHEDULER + "    return optimizer\n",
                "Return optimizer and scheduler",
            ),
            WrongAnswer(
                "states returned",
                _SCHEDULE + '    return state["optimizer"], state["scheduler"]\n',
                "got dict, dict",
            ),
        ),
    ),
}
