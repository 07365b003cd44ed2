"""Start scripts/serve.py as a process of its own, freeze it, stop it, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

import psutil

from helpers import _child
from helpers._paths import ROOT

SCRIPT = ROOT / "notebooks" / "scripts" / "serve.py"


@dataclass(frozen=True)
class Server:
    """Hold a server that runs: its address and its process. As a context it closes itself.

    Attributes
    ----------
    url : str
        Where it listens, on 127.0.0.1, without a slash at the end.
    process : subprocess.Popen
        Its process. It ends with `close`, or when this process ends, in whatever way.
    """

    url: str
    process: subprocess.Popen[str] = field(repr=False)
    _said: IO[str] = field(repr=False)

    @property
    def running(self) -> bool:
        """Tell whether its process lives."""
        return self.process.poll() is None

    def get(self, path: str) -> str:
        """Return what it answers to a GET, as text.

        Parameters
        ----------
        path : str
            Such as "/health".

        Returns
        -------
        str
            The body of the answer.

        Raises
        ------
        OSError
            If it does not answer within 30 s, or not with a status of 200.
        """
        return _child.get(self.url + path, timeout=30)

    def freeze(self, seconds: float) -> None:
        """Stop its process for some seconds, as a long pause of the machine would.

        Parameters
        ----------
        seconds : float
            Returns after that.
        """
        process = psutil.Process(self.process.pid)
        process.suspend()
        try:
            time.sleep(seconds)
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def stop(self) -> None:
        """Ask it to end, by SIGTERM (on Windows by the end of its input); return at once."""
        if os.name == "nt":
            _child.end_input(self.process)
        elif self.running:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it without asking, by SIGKILL (TerminateProcess on Windows); return at once."""
        self.process.kill()

    def close(self, *, wait: float = 15.0) -> None:
        """End it, and wait until it has; a second call does nothing.

        Parameters
        ----------
        wait : float
            Seconds in which it may answer what it has accepted. Then it is killed.
        """
        _child.close(self.process, wait)
        self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Server: running" if self.running else "Server: ended"


def start(model: str | Path, *, wait: float = 60.0, **options: float) -> Server:
    """Start the server on a free port of 127.0.0.1 and return when it answers.

    Parameters
    ----------
    model : str or pathlib.Path
        An ONNX file.
    wait : float
        Seconds in which it must answer.
    **options : float
        Of the script, with underscores: ``max_batch=8`` stands for ``--max-batch 8``.

    Returns
    -------
    Server
        Close it, or use it in a ``with`` statement.

    Raises
    ------
    FileNotFoundError
        If there is no such model.
    RuntimeError
        If it does not start, with the last line of what it said.

    See Also
    --------
    The same by hand: ``python notebooks/scripts/serve.py digits.onnx --port 8000``.
    """
    if not Path(model).is_file():
        raise FileNotFoundError(f"model must be an ONNX file, got {str(model)!r}; export one first")
    command = [sys.executable, str(SCRIPT), str(model), "--until-input-ends"]
    for name, value in options.items():
        command += ["--" + name.replace("_", "-"), f"{value:.15g}"]
    said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - `close` closes it
    process = _child.start(command, said)
    deadline = time.monotonic() + wait
    line = _child.first_line(process, wait)
    url = f"http://127.0.0.1:{json.loads(line)['port']}" if line else ""
    server = Server(url, process, said)
    try:
        if line and time.monotonic() < deadline:
            server.get("/health")
            return server
        reason = _child.last_line(said)
    except OSError as error:
        reason = str(error)
    process.kill()
    server.close()
    raise RuntimeError(f"the server must answer within {wait:g} s: {reason}")
