"""Run a reader's answer so that nothing it does reaches the rest of the notebook."""

import inspect
import io
import os
import random
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout

from helpers.exercises._model import Wrong

KEPT_CHARACTERS = 2_000


class OutOfTime(BaseException):  # no Exception: `except Exception` must not swallow it
    """End an answer that has used up its time."""


def can_limit():
    """Tell whether this thread of this system can stop an answer: it needs an alarm clock."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


class _Alarm:
    """Raise OutOfTime in the work, and nowhere else, each time the clock rings."""

    def __init__(self, work):
        self.work, self.rings = work, 0

    def guarded(self):
        return self.work()

    def ring(self, signum, frame):
        inner = []
        while frame and frame.f_code is not _Alarm.guarded.__code__:
            inner.append(frame)
            frame = frame.f_back
        if frame is None:  # the answer has returned: nothing to stop
            return
        self.rings += 1
        if self.rings > 2:  # a bare `except:` ate it: now each line raises
            for each in inner:
                each.f_trace = self.every_line
            sys.settrace(self.every_line)
        raise OutOfTime

    def every_line(self, frame, event, arg):
        if event == "line" and frame.f_code is not _Alarm.ring.__code__:
            raise OutOfTime
        return self.every_line


def within(seconds, work, *, again=0.05):
    """Run ``work()`` and raise OutOfTime if it takes longer than ``seconds``.

    The alarm rings again every ``again`` seconds, because an answer may swallow it. Where there
    is no alarm (Windows, another thread) the work runs without a limit.
    """
    if not can_limit():
        return work()
    alarm = _Alarm(work)
    handler, trace, timer = signal.signal(signal.SIGALRM, alarm.ring), sys.gettrace(), (0.0, 0.0)
    try:
        timer = signal.setitimer(signal.ITIMER_REAL, seconds, again)
        result = alarm.guarded()
    except BaseException as error:
        if alarm.rings and not isinstance(error, KeyboardInterrupt):
            raise OutOfTime from None  # what an answer makes of the alarm is not its own error
        raise
    finally:
        sys.settrace(trace)  # first: signal.signal is Python and would be traced
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler or signal.SIG_DFL)
        if timer[0]:
            signal.setitimer(signal.ITIMER_REAL, *timer)
    if alarm.rings:
        raise OutOfTime
    return result


class Printed(io.TextIOBase):
    """Keep the first 2,000 characters that are written and forget the rest."""

    def __init__(self):
        self._parts, self._room, self.cut = [], KEPT_CHARACTERS, False

    def writable(self):
        """Say yes, as a text file that is open for writing does."""
        return True

    def write(self, text):
        """Take a text of any length in bounded memory."""
        if not isinstance(text, str):
            raise TypeError(f"write() needs text, got {type(text).__name__}")
        if self._room and text:
            self._parts.append(text[: self._room])
        self.cut = self.cut or len(text) > self._room
        self._room = max(0, self._room - len(text))
        return len(text)

    def kept(self):
        """Return what was kept."""
        return "".join(self._parts)


@contextmanager
def captured():
    """Collect stdout and stderr in a Printed and drop what is displayed."""
    printed = Printed()
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(printed))
        stack.enter_context(redirect_stderr(printed))
        stack.enter_context(_nothing_displayed())
        yield printed


@contextmanager
def _nothing_displayed():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        yield
        return
    from IPython.core.displaypub import CapturingDisplayPublisher

    class Dropping(CapturingDisplayPublisher):
        def publish(self, *args, **kwargs):
            pass

        def clear_output(self, wait=False):
            pass

    old, shell.display_pub = shell.display_pub, Dropping()
    try:
        yield
    finally:
        shell.display_pub = old


def _no_exit(*args):
    raise SystemExit("exit() was called")


def _no_input(*args):
    raise RuntimeError("input() has no answer during a check")


@contextmanager
def without_exit(namespaces):
    """Replace exit, quit and input in these namespaces: IPython's exit() would end the kernel."""
    traps = {"exit": _no_exit, "quit": _no_exit, "input": _no_input}
    missing = object()
    spaces = list({id(space): space for space in namespaces}.values())
    old = [(space, {name: space.get(name, missing) for name in traps}) for space in spaces]
    try:
        for space in spaces:
            space.update(traps)
        yield
    finally:
        for space, names in old:
            for name, value in names.items():
                if value is missing:
                    space.pop(name, None)
                else:
                    space[name] = value


@contextmanager
def kept_state(seed):
    """Seed all random generators, then put modes, generators and working folder back."""
    import numpy as np
    import torch

    back = [_restorer(torch, np), _random_restorer(torch, np)]
    random.seed(seed)
    np.random.seed(seed)  # an answer may use the global generator
    torch.manual_seed(seed)
    try:
        yield
    finally:
        for restore in back:
            restore()


def _restorer(torch, np):
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    device, threads = torch.get_default_device(), torch.get_num_threads()
    anomaly, nan = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    folder, errors = os.path.abspath("."), np.geterr()

    def restore():
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device.type == "cpu" else device)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        torch.autograd.set_detect_anomaly(anomaly, check_nan=nan)
        os.chdir(folder)
        np.seterr(**errors)

    return restore


def _random_restorer(torch, np):
    python, numpy_state = random.getstate(), np.random.get_state()
    cpu = torch.get_rng_state()
    accelerators = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def restore():
        random.setstate(python)
        np.random.set_state(numpy_state)
        torch.set_rng_state(cpu)
        if accelerators is not None:
            torch.cuda.set_rng_state_all(accelerators)

    return restore


def call(function, /, *args, may_change=(), **kwargs):
    """Call the reader's code and notice when it changes a tensor, array or container it got.

    Parameters
    ----------
    function : callable
        The reader's function.
    *args, **kwargs
        Its arguments.
    may_change : tuple of int or str
        Positions and names of arguments that the exercise wants changed.

    Raises
    ------
    Wrong
        If another argument has other values, dtype, shape or ``requires_grad`` afterwards; the
        sentence names the parameter as the reader's code does.

    Examples
    --------
    >>> call(sorted, [2, 1])
    [1, 2]
    >>> call(list.append, [2], 1)
    Traceback (most recent call last):
    ...
    helpers.exercises._model.Wrong: Your function changed its input: `self` (list). Callers ...
    """
    inputs = {**dict(enumerate(args)), **kwargs}
    before = {name: _copy(value) for name, value in inputs.items() if name not in may_change}
    result = function(*args, **kwargs)
    for name, old in before.items():
        if not _same(old, inputs[name]):
            kind = type(inputs[name]).__name__
            raise Wrong(
                f"Your function changed its input: {_name_of(function, name)} ({kind}). Callers "
                "keep using what they passed in: work on a copy, or use an operation that "
                "returns a new object."
            )
    return result


def _name_of(function, place):
    """Return a parameter as the reader's code calls it, or its place where it has no name."""
    if isinstance(place, str):
        return f"`{place}`"
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        parameters = ()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return f"`{names[place]}`" if place < len(names) else f"argument {place + 1}"


def _copy(value):
    """Return the type of an input and something to compare with it later."""
    import numpy as np
    import torch

    kept = value  # a model or another object stands for itself
    if isinstance(value, torch.Tensor):
        plain = value.layout is torch.strided and not value.is_meta and not value.is_quantized
        kept = (value.requires_grad, value.detach().clone()) if plain else None
    elif isinstance(value, np.ndarray):
        kept = value.copy()
    elif isinstance(value, list | tuple):
        kept = [_copy(item) for item in value]
    elif isinstance(value, dict):
        kept = {key: _copy(item) for key, item in value.items()}
    return type(value), kept


def _same(copy, now):
    import numpy as np
    import torch

    kind, old = copy
    if kind is not type(now):
        return False
    if isinstance(now, torch.Tensor):
        return old is None or _same_tensor(*old, now)
    if isinstance(now, np.ndarray):
        return _same_array(old, now)
    if isinstance(now, list | tuple):
        return len(old) == len(now) and all(map(_same, old, now))
    if isinstance(now, dict):
        return list(old) == list(now) and all(_same(old[key], now[key]) for key in now)
    return old is now or bool(old == now)


def _same_tensor(requires_grad, old, now):
    import torch

    if (requires_grad, old.dtype, old.shape) != (now.requires_grad, now.dtype, now.shape):
        return False
    now = now.detach()
    if not _storage_holds(now):
        return False
    both_nan = torch.isnan(old) & torch.isnan(now)
    return bool(((old == now) | both_nan).all())


def _storage_holds(tensor):
    """Tell whether all elements lie inside the storage: reading beyond it ends the process."""
    import torch

    if tensor.layout is not torch.strided or not tensor.numel():
        return True
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps)
    return (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def _same_array(old, now):
    import numpy as np

    if (old.dtype, old.shape) != (now.dtype, now.shape):
        return False
    if old.dtype.hasobject:
        return all(a is b or a == b for a, b in zip(old.flat, now.flat, strict=True))
    masks = np.array_equal(np.ma.getmaskarray(old), np.ma.getmaskarray(now))
    return masks and np.asarray(old).tobytes() == np.asarray(now).tobytes()
