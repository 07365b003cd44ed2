"""Train the digits network, export it to ONNX without chatter, and open what came out."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from helpers import data

if TYPE_CHECKING:
    import onnxruntime

INSTALL = (
    "is missing; `python3 course.py lab` installs it, on Colab run"
    " %pip install onnx onnxscript onnxruntime"
)


def digits_network(*, width: int = 128, seed: int = 0) -> nn.Module:
    """Build the untrained network 64-width-10, with BatchNorm, from a seed of its own.

    Parameters
    ----------
    width : int
        Units of the hidden layer.
    seed : int
        Of the first weights. torch's global generator is left as it was.

    Returns
    -------
    torch.nn.Sequential
        Takes images, float32, (n, 1, 8, 8), from 0 to 1; returns logits, (n, 10).

    Examples
    --------
    >>> digits_network(width=32)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 10)]
        return nn.Sequential(nn.Flatten(), *layers)


def train_digits(*, width: int = 128, epochs: int = 8, seed: int = 0) -> nn.Module:
    """Train the network of `digits_network` on the 1,437 training images, about a second.

    Parameters
    ----------
    width : int
        Units of the hidden layer.
    epochs : int
        Passes over the images, in batches of 64.
    seed : int
        Of weights and order.

    Returns
    -------
    torch.nn.Sequential
        In evaluation mode, on the CPU; right on about 97 of 100 images of
        ``data.load_digits().test``.

    Examples
    --------
    >>> train_digits(width=16, epochs=1).training
    False
    """
    model, train = digits_network(width=width, seed=seed), data.load_digits().train
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    order = torch.Generator().manual_seed(seed)
    with torch.enable_grad():
        for _ in range(epochs):
            for batch in torch.randperm(len(train), generator=order).split(64):
                logits = model(train.images[batch])
                optimizer.zero_grad()
                nn.functional.cross_entropy(logits, train.labels[batch]).backward()
                optimizer.step()
    return model.eval().requires_grad_(False)


@contextlib.contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Silence exporters, which print, log and warn; collect what was warned.

    Yields
    ------
    list of warnings.WarningMessage
        Filled while the block runs.

    Examples
    --------
    >>> with quiet() as warned:
    ...     print("chatter")
    ...     warnings.warn("look here", stacklevel=1)
    >>> str(warned[0].message)
    'look here'
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    nothing = io.StringIO()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
                yield warned
    finally:
        logging.disable(before)


def to_onnx(model: nn.Module, example: torch.Tensor, *, dynamic_batch: bool = True) -> bytes:
    """Export a model of one input to one ONNX file, in memory, with the weights inside.

    The mode of the model is taken as it is: call ``model.eval()`` first. Nothing is printed.

    Parameters
    ----------
    model : torch.nn.Module
        Takes one tensor.
    example : torch.Tensor
        An input of the shape and dtype that the file shall accept.
    dynamic_batch : bool
        Whether dimension 0 may have any size; else it has the one of the example.

    Returns
    -------
    bytes
        The file; its input is named "input", its output "output".

    Raises
    ------
    ModuleNotFoundError
        If onnx or onnxscript is missing.
    torch.onnx.OnnxExporterError
        If the model cannot be exported. `reason` returns its first line.

    See Also
    --------
    torch.onnx : https://docs.pytorch.org/docs/stable/onnx.html

    Examples
    --------
    >>> file = to_onnx(nn.Linear(4, 2), torch.zeros(2, 4))
    >>> answer(open_session(file), torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """
    for package in ("onnx", "onnxscript"):
        _require(package)
    shapes = ({0: torch.export.Dim("batch")},) if dynamic_batch else None
    names = {"input_names": ["input"], "output_names": ["output"]}
    with quiet():
        program = torch.onnx.export(
            model, (example,), dynamo=True, dynamic_shapes=shapes, verbose=False, **names
        )
    return program.model_proto.SerializeToString()


def open_session(
    file: bytes | str | os.PathLike[str], *, threads: int = 1
) -> onnxruntime.InferenceSession:
    """Open an ONNX file in ONNX Runtime, on the CPU.

    Parameters
    ----------
    file : bytes or path
        The content of a file, or where it lies.
    threads : int
        For one call. Waiting threads sleep, so that they take no time from others.

    Returns
    -------
    onnxruntime.InferenceSession
        Its errors are raised and not also printed.

    Raises
    ------
    ModuleNotFoundError
        If onnxruntime is missing.
    ValueError
        If `threads` is less than 1.

    See Also
    --------
    onnxruntime : https://onnxruntime.ai/docs/performance/tune-performance/threading.html

    Examples
    --------
    >>> open_session(to_onnx(nn.ReLU(), torch.zeros(2, 4))).get_providers()
    ['CPUExecutionProvider']
    """
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}; use 1 to share a machine")
    runtime = _require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = file if isinstance(file, bytes) else os.fspath(file)
    return runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def answer(session: onnxruntime.InferenceSession, x: torch.Tensor) -> torch.Tensor:
    """Return the first output of a session for one input, from tensor to tensor.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        As `open_session` returns it.
    x : torch.Tensor
        On any device; its dtype must be the one that the file names.

    Returns
    -------
    torch.Tensor
        On the CPU.

    Examples
    --------
    >>> answer(open_session(to_onnx(nn.ReLU(), torch.zeros(2, 2))), -torch.ones(1, 2))
    tensor([[0., 0.]])
    """
    name = session.get_inputs()[0].name
    return torch.from_numpy(session.run(None, {name: x.numpy(force=True)})[0])


def reason(error: BaseException, *, length: int = 88) -> str:
    """Return what an exporter or a runtime complains of, on one line.

    An error of torch.onnx wraps the one that matters: that one is told.

    Parameters
    ----------
    error : BaseException
        What was caught.
    length : int
        At most so many characters of its text.

    Returns
    -------
    str
        Its type and the first line of its text, or all that ONNX Runtime says.

    Examples
    --------
    >>> reason(ValueError("too long\\nsecond line"), length=3)
    'ValueError: too...'
    """
    while isinstance(error, torch.onnx.OnnxExporterError) and error.__cause__ is not None:
        error = error.__cause__
    text = str(error)
    if "ONNXRuntimeError" in text:  # its later lines say which numbers
        text = " ".join(text.rpartition("ONNXRuntimeError] : ")[2].split())
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    line = line if len(line) <= length else line[:length] + "..."
    return f"{type(error).__name__}: {line}"


def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(f"{package} {INSTALL}", name=package) from None
