"""Start two of everything that listens, as two people on one machine do, and see both answer."""

import subprocess
import sys
import tempfile
from contextlib import ExitStack

from helpers import _child
from helpers._paths import ROOT

# Each program says one line when it is up, and ends when its input does.
PROGRAMS = {
    "torchrun (31 to 34)": """
from helpers import launch
ranks = launch.torchrun("scripts/print_ranks.py", timeout=90).values
print("ranks", len(ranks), flush=True)
input()
""",
    "TensorBoard (53)": """
import tempfile
from helpers import board
with tempfile.TemporaryDirectory() as folder:
    running = board.start(folder, wait=90)
    print(running.url, flush=True)
    try: input()
    except EOFError: running.close()
""",
    "service (63)": """
import pathlib, tempfile, torch
from helpers import serving
from helpers.onnx_export import digits_network, to_onnx
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "digits.onnx")
    path.write_bytes(to_onnx(digits_network().eval(), torch.zeros(2, 64)))
    with serving.start(path, wait=90) as server:
        print(server.url, flush=True)
        try: input()
        except EOFError: pass
""",
}


def two_at_once(program, *, wait=120):
    """Start a program twice at the same time.

    Returns
    -------
    str
        "" when both came up, at two addresses; else what was wrong.
    """
    with ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)]
        command = [sys.executable, "-c", program]
        running = [_start(stack, command, file) for file in said]
        lines = [_child.first_line(process, wait) for process in running]
        for line, file in zip(lines, said, strict=True):
            if not line:
                return _child.last_line(file)
        if lines[0] == lines[1] and "://" in lines[0]:
            return f"both answered at {lines[0]}"
        return ""


def _start(stack, command, said):
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
    )
    stack.callback(_child.close, process, 30)
    return process


def examine(programs=PROGRAMS, *, wait=120):
    """Return what was wrong with each program when two ran at once; "" for nothing."""
    return {name: two_at_once(source, wait=wait) for name, source in programs.items()}
