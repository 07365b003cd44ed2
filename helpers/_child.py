"""Own a server in a process: hear its first line, ask it, end it with the end of its input."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import urllib.request
from collections.abc import Sequence
from typing import IO


def start(command: Sequence[str], said: IO[str]) -> subprocess.Popen[str]:
    """Start a program that ends when its input does, so also when this process is killed."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, text=True)


def first_line(process: subprocess.Popen[str], wait: float) -> str:
    """Return the first line that a process writes; empty if it ends or takes too long."""
    lines: list[str] = []
    assert process.stdout
    stdout = process.stdout
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(wait)
    return lines[0].strip() if lines else ""


def last_line(said: IO[str]) -> str:
    """Return the last line of what a process said on its standard error."""
    said.seek(0)
    return (said.read().strip().splitlines() or ["it said nothing"])[-1]


def get(url: str, *, timeout: float) -> str:
    """Return the text at an address, without the system's proxy, which could not reach here."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout) as answer:
        return answer.read().decode()


def end_input(process: subprocess.Popen[str]) -> None:
    """Close the input of a process, which it waits for."""
    assert process.stdin
    with contextlib.suppress(OSError):
        process.stdin.close()


def close(process: subprocess.Popen[str], wait: float) -> None:
    """End a process and wait until it has ended; kill it after so many seconds."""
    end_input(process)
    try:
        process.wait(wait)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    assert process.stdout
    process.stdout.close()
