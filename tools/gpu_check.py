"""Run on a CUDA device what no other machine can run, and keep what it measured.

    python3 course.py gpu-check

Runs the tests that need CUDA, counts one step of a model of more than a billion parameters beside
the allocator, then runs every notebook, and writes ``reference/<kind>.json`` with what each
claim measured. It takes at most eight minutes: notebooks that no longer fit are named
in the file. Without a device nothing is written.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import nbformat

from helpers._paths import ROOT
from helpers.device import describe_machine
from tools import notebooks as tool
from tools.kernel import execute

FOLDER = ROOT / "reference"
TESTS = ROOT / "tests" / "test_cuda.py"
LIMIT = 8 * 60.0
LARGE, LENGTH = "TinyLlama 1.1B", 256  # with plain SGD it fits on a card of 16 GB
WORKSPACES = 128 * 2**20  # of cuBLAS and of attention
_OUTCOMES = """
import json as _json
from helpers import claims as _claims, reference as _reference
_outcomes = {o.claim.id: {"met": o.met, "values": dict(o.values)}
             for o in _claims.report().outcomes}
print(_json.dumps({"claims": _outcomes, "curves": _reference.kept()}))
"""


def run_tests(path=TESTS, *, timeout):
    """Run a file of tests; return how many passed, failed and were skipped.

    Returns
    -------
    dict of str to int
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", str(path), f"--junitxml={report}"]
        subprocess.run(command, cwd=ROOT, timeout=timeout, check=False)
        if not report.is_file():
            return {"passed": 0, "failed": 1, "skipped": 0}
        counts = ET.parse(report).getroot().find("testsuite").attrib
    failed = int(counts["failures"]) + int(counts["errors"])
    skipped = int(counts["skipped"])
    return {
        "passed": int(counts["tests"]) - failed - skipped,
        "failed": failed,
        "skipped": skipped,
    }


def largest_fitting(free):
    """Return the optimizer of the largest step that fits, by the sum of `helpers.sizing`.

    Parameters
    ----------
    free : int
        Bytes that the card has left.

    Returns
    -------
    str or None
        A key of `helpers.sizing.OPTIMIZERS`; None if not even plain SGD leaves a tenth of the
        card for the context, rounding and workspaces.

    Examples
    --------
    >>> largest_fitting(80 * 2**30), largest_fitting(12 * 2**30), largest_fitting(8 * 2**30)
    ('Adam, foreach', 'SGD', None)
    """
    from helpers import sizing

    for optimizer in ("Adam, foreach", "Adam", "SGD, momentum", "SGD"):
        needed = sizing.forecast(sizing.MODELS[LARGE], 1, length=LENGTH, optimizer=optimizer)
        if needed.total <= 0.9 * free:
            return optimizer
    return None


def count_large(device="cuda", *, shape=None, optimizer):
    """Take two steps of a large model and count the second one, beside the allocator.

    Parameters
    ----------
    device : str
        Where it trains.
    shape : helpers.sizing.Shape, optional
        The model; that of `LARGE` unless told otherwise.
    optimizer : str
        A key of `helpers.sizing.OPTIMIZERS`.

    Returns
    -------
    dict
        Bytes: ``sum`` (written down beforehand), ``counted`` (live tensors), ``requested`` and
        ``allocated`` (of the allocator, None where there is none).
    """
    import torch

    from helpers import sizing
    from helpers.memory import track_memory

    shape = shape or sizing.MODELS[LARGE]
    with torch.device(device):
        model = sizing.LanguageModel(shape)
        ids = torch.zeros(1, LENGTH, dtype=torch.int64)
    chosen = sizing.OPTIMIZERS[optimizer](model.parameters())
    sizing.train_step(model, chosen, ids)
    with track_memory(model, chosen, ids) as peak:
        sizing.train_step(model, chosen, ids)
    reached = peak.allocator
    return {
        "parameters": shape.parameters,
        "optimizer": optimizer,
        "sum": sizing.forecast(shape, 1, length=LENGTH, optimizer=optimizer).total,
        "counted": peak.total,
        "requested": reached and reached.requested_bytes,
        "allocated": reached and reached.max_memory_allocated,
    }


def compare_large():
    """Count a large step on the CUDA device; return its bytes, or why there are none."""
    import torch

    free, _ = torch.cuda.mem_get_info()
    optimizer = largest_fitting(free)
    if optimizer is None:
        return {"not measured": f"{LARGE} does not fit into {free:,} free bytes"}
    try:
        found = count_large(optimizer=optimizer)
    except torch.OutOfMemoryError as error:
        return {"failed": f"{optimizer} should fit into {free:,} bytes: {str(error)[:120]}"}
    finally:
        torch.cuda.empty_cache()
    return {"model": LARGE} | found


def off_by(large):
    """Return what is wrong with the bytes of a large step, one sentence each.

    The allocator is asked for every live tensor, so it never shows less. What it shows beyond
    them are scratch and workspaces: at most 5 % and 128 MiB.

    Examples
    --------
    >>> off_by({"counted": 10**10, "requested": 10**10 + 2**20, "allocated": 10**10 + 2**21})
    []
    >>> off_by({"not measured": "too small a card"})
    []
    """
    if "not measured" in large:
        return []
    if "failed" in large:
        return [large["failed"]]
    counted, requested, allocated = (large[k] for k in ("counted", "requested", "allocated"))
    if requested is None:
        return ["the allocator does not tell what was requested"]
    found = []
    if requested < counted:
        found.append(f"{counted:,} bytes were counted alive, {requested:,} were requested")
    if requested > 1.05 * counted + WORKSPACES:
        found.append(f"{requested:,} bytes were requested, only {counted:,} were counted alive")
    if allocated < requested:
        found.append(f"{allocated:,} bytes were allocated, less than the {requested:,} requested")
    return found


def run_notebook(path, *, timeout):
    """Execute a notebook; return its seconds, its error if any, its claims and its curves."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    nb = nbformat.read(path, as_version=4)
    nb.cells.append(nbformat.v4.new_code_cell(_OUTCOMES))
    began, error, outcomes = time.monotonic(), None, {"claims": {}, "curves": {}}
    try:
        execute(nb, path.parent, timeout=max(1, int(timeout)))
        outcomes = json.loads(nb.cells[-1].outputs[-1].text)
    except CellTimeoutError:
        error = "a cell ran out of time"
    except CellExecutionError as raised:
        error = f"{raised.ename}: {raised.evalue}"[:200]
    return {"seconds": round(time.monotonic() - began, 1), "error": error, **outcomes}


def run_notebooks(paths, *, seconds):
    """Execute notebooks in order until the time is used up.

    Returns
    -------
    (dict, list of str)
        What each gave, and the names of those that were left out.
    """
    deadline, found, left = time.monotonic() + seconds, {}, []
    for path in paths:
        rest = deadline - time.monotonic()
        if rest <= 0:
            left.append(path.stem)
            continue
        found[path.stem] = run_notebook(path, timeout=rest)
    return found, left


def file_name(kind):
    """Return the name of the file for a kind of device.

    Examples
    --------
    >>> file_name("NVIDIA H200")
    'nvidia-h200.json'
    """
    return re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-") + ".json"


def collect(paths, *, seconds=LIMIT):
    """Run everything and return what is stored."""
    import torch

    began = time.monotonic()
    machine = describe_machine()
    tests = run_tests(timeout=seconds)
    large = compare_large()
    done, left = run_notebooks(paths, seconds=seconds - (time.monotonic() - began))
    curves = {}
    for one in done.values():
        curves |= one.pop("curves")
    return {
        "kind": machine.kind,
        "torch": machine.torch,
        "numpy": machine.numpy,
        "cuda": torch.version.cuda,
        "date": datetime.date.today().isoformat(),
        "tests": tests,
        "large step": large,
        "notebooks": done,
        "curves": curves,  # helpers.reference.load draws them beside a reader's own
        "left out": left,
    }


def problems(result):
    """Return what went wrong, one sentence each."""
    tests = result["tests"]
    found = [f"{tests['failed']} tests failed"] if tests["failed"] else []
    found += [f"{tests['skipped']} tests were skipped"] if tests["skipped"] else []
    found += [f"large step: {text}" for text in off_by(result["large step"])]
    for name, one in result["notebooks"].items():
        found += [f"{name}: {one['error']}"] if one["error"] else []
        found += [
            f"{name}: {id} does not hold here"
            for id, claim in one["claims"].items()
            if claim["met"] is False
        ]
    return found + [f"{name} was left out: no time was left" for name in result["left out"]]


def main(argv=None):
    """Check this machine's CUDA device; return 0, 1 if something failed, 2 without a device."""
    import torch

    parser = argparse.ArgumentParser(prog="course.py gpu-check")
    parser.add_argument("names", nargs="*", help="how notebooks' names start, such as 22")
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        print(
            "No CUDA device can be used here, so nothing was checked or written; "
            "`python3 course.py doctor` says what is missing.",
            file=sys.stderr,
        )
        return 2
    result = collect(tool.find(options.names))
    FOLDER.mkdir(exist_ok=True)
    target = FOLDER / file_name(result["kind"])
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    found = problems(result)
    for line in found:
        print(line)
    print(f"written: {target.relative_to(ROOT)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
