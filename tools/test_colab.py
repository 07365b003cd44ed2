"""Run the notebooks with the versions that Colab has, started the way Colab starts them.

    python3 course.py test-colab                    every notebook
    python3 course.py test-colab 13 62              those whose names start so
    python3 course.py test-colab --torch 2.13.0 62  with another torch
    python3 course.py test-colab --python PATH 62   in an environment that exists already

The first run makes an environment from colab_pins.txt, with the packages that Colab has; it
stays for later runs. Then a folder such as /content is laid with the course in it, so that
the first cell of each notebook adds what Colab lacks, under a freeze, and finds the helpers.
Every cell runs and every assertion must hold; outputs are not compared. This shows that the
course runs with Colab's versions, not that it runs on Colab: no GPU, no front end of Colab.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat

from helpers._paths import ROOT
from tools import kernel, notebooks

PINS = Path(__file__).with_name("colab_pins.txt")
READY = "ready.json"  # in a finished environment: the pins that could not be had
PYTHON = "python3.13"  # Colab's, taken where it is installed
TRIES = 12
# Runs in each Python of the environment; only kernels get the variable.
STAND_IN = (
    "import os, sys, types; os.environ.get('COURSE_ON_COLAB') and "
    "sys.modules.setdefault('google.colab', types.ModuleType('google.colab'))\n"
)


class CannotTestError(Exception):
    """End with one sentence: the environment could not be made."""


# The environment --------------------------------------------------------------------------


def read_pins(torch=None):
    """Return Colab's version of each package, by its plain name.

    Parameters
    ----------
    torch : str, optional
        Another version of torch. Triton, which belongs to Colab's torch, is left out then.
    """
    lines = PINS.read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {plain(name): version for name, version in pins.items()}
    if torch and torch != pins["torch"]:
        pins["torch"] = torch
        del pins["triton"]
    return pins


def plain(name):
    """Return a package's name in the form in which two spellings are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_python(which=shutil.which):
    """Return Colab's Python where it starts here, else the running one."""
    other = which(PYTHON)
    program = "import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 13))"
    if not other:
        return sys.executable
    ran = subprocess.run([other, "-c", program], capture_output=True, check=False)
    return sys.executable if ran.returncode else other


def environment_folder(pins, python):
    """Return where the environment for these pins and this Python lies."""
    content = json.dumps([pins, python])
    key = hashlib.sha256(content.encode()).hexdigest()[:8]
    return Path(sys.prefix, "colab", f"torch-{pins['torch']}-{key}")


def make_environment(pins, python, run=subprocess.run):
    """Make the environment, or take it where it is finished; return its Python and what differs.

    Returns
    -------
    Path
        The interpreter inside.
    dict of str to str
        For each pin that could not be had, what pip said.

    Raises
    ------
    CannotTestError
        If pip cannot install what Colab has, even without some of its pins.
    """
    folder = environment_folder(pins, python)
    inside = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / READY).exists():
        return inside, json.loads((folder / READY).read_text(encoding="utf-8"))
    print(f"Making an environment with Colab's versions in {folder}; this takes minutes.")
    shutil.rmtree(folder, ignore_errors=True)  # the rest of a run that was interrupted
    run([python, "-m", "venv", str(folder)], check=True)
    different = install(inside, pins, run)
    (folder / READY).write_text(json.dumps(different), encoding="utf-8")
    return inside, different


def install(inside, pins, run=subprocess.run):
    """Install what Colab has; leave out a pin that cannot be had."""
    left, different = dict(pins), {}
    for _ in range(TRIES):
        reason = _pip(inside, left, run)
        if not reason:
            return different
        faulty = [name for name in _blamed(reason) if name in left]
        if not faulty or set(faulty) & {"torch"}:
            break
        for name in faulty:
            different[name] = f"{left.pop(name)}: {last_line(reason)}"
    raise CannotTestError(f"pip cannot install Colab's versions here: {last_line(reason)}")


def _pip(inside, pins, run):
    with tempfile.TemporaryDirectory() as folder:
        words = ["install", "--quiet", "--no-input", *(f"{n}=={v}" for n, v in pins.items())]
        ran = run([str(inside), "-m", "pip", *words], capture_output=True, text=True, cwd=folder)
    return ran.stderr.strip() if ran.returncode else ""


def _blamed(reason):
    """Return the packages that pip names as what it cannot find or what contradicts."""
    names = re.findall(r"(?:No matching distribution found for|user requested) ([\w.-]+)", reason)
    names += re.findall(r"Failed (?:to build|building wheel for) '?([\w.-]+)", reason)
    return list(dict.fromkeys(plain(name) for name in names))


def last_line(text):
    """Return the last line in which pip names an error, without its prefix."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")] or lines or ["no message"]
    return errors[-1].removeprefix("ERROR: ")


# The notebooks ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What became of one notebook."""

    name: str
    cells: int
    seconds: float
    error: str = ""

    def __str__(self):
        """Return its line of the table."""
        said = self.error or "every cell ran"
        return f"{self.name:<36}{self.cells:>6}{self.seconds:>9.0f}  {said}"


HEADING = f"{'notebook':<36}{'cells':>6}{'seconds':>9}"


def lay_content(folder, root=ROOT):
    """Lay the course into a folder such as /content, as the first cell would fetch it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if Path(root, name).is_file():
            target = Path(folder, "course", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(root, name), target)


def lay_stand_in(python):
    """Let a kernel of the environment believe that it runs on Colab, when it is told to."""
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=True)
    Path(found.stdout.strip(), "stand_in_for_colab.pth").write_text(STAND_IN, encoding="utf-8")


def execute(path, python, content, timeout=600):
    """Run one notebook in a kernel of that Python, in that folder; return its Result."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal, CellTimeoutError

    nb, start = nbformat.read(path, as_version=4), time.monotonic()
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
    scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with scratch as folder, kernel.environment(folder), as_on_colab():
        lay_kernel(os.environ["JUPYTER_DATA_DIR"], python)
        resources = {"metadata": {"path": str(content)}}
        client = NotebookClient(nb, timeout=timeout, kernel_name="colab", resources=resources)
        try:
            client.execute()
            error = ""
        except CellTimeoutError:
            error = f"cell {last_begun(nb)} took more than {timeout} s"
        except CellControlSignal:
            error = failing_cell(nb)
        except Exception as failure:  # noqa: BLE001 - a dead kernel: the others still run
            error = f"{type(failure).__name__}: {failure}"
    # nbclient catches Ctrl-C, ends the kernel and goes on; here the whole run is meant.
    if getattr(client, "_async_cleanup_kernel_future", None):
        raise KeyboardInterrupt
    cells = sum(cell.cell_type == "code" for cell in nb.cells)
    return Result(Path(path).stem, cells, time.monotonic() - start, error)


@contextmanager
def as_on_colab():
    """Set what a kernel inherits as Colab does: no path to the course, no number of threads."""
    for name in ("PYTHONPATH", "OMP_NUM_THREADS", "COLUMNS"):  # kernel.environment restores them
        os.environ.pop(name, None)
    # The second keeps the debugger of ipykernel 6.17 from warning into the table.
    more = {"COURSE_ON_COLAB": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            os.environ.update({} if value is None else {name: value})


def lay_kernel(data, python):
    """Write what Jupyter needs to know to start a kernel of another Python."""
    place = Path(data, "kernels", "colab")
    place.mkdir(parents=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Colab", "language": "python"}
    (place / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def failing_cell(nb):
    """Name the cell that failed and the first line of its error."""
    number = last_begun(nb)
    errors = [out for out in nb.cells[number - 1].outputs if out.output_type == "error"]
    said = [f"{error.ename}: {error.evalue}".partition("\n")[0] for error in errors]
    return f"cell {number}: {', '.join(said) or 'failed without an error'}"


def last_begun(nb):
    """Return the place of the last cell that was started, counted from 1 over all cells."""
    return max(n for n, cell in enumerate(nb.cells, 1) if cell.get("execution_count"))


def describe(python):
    """Return the versions in an environment that decide what runs."""
    program = (
        "import json, platform; from importlib.metadata import version; print(json.dumps("
        "{'Python': platform.python_version()} | {name: version(name) for name in "
        "('torch', 'numpy', 'ipywidgets', 'ipykernel', 'ipython')}))"
    )
    ran = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=True)
    return ", ".join(f"{name} {version}" for name, version in json.loads(ran.stdout).items())


def main(argv=None, run_one=execute, make=make_environment):
    """Make the environment, run the notebooks, print a table; 0 if all ran, 1 if not, 2 if none."""
    parser = argparse.ArgumentParser(prog="course.py test-colab", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", help="how names start, such as 13")
    parser.add_argument("--torch", help="another version than Colab's")
    parser.add_argument("--python", help="the Python of an environment that exists; it is "
                        "given what Colab's runtime would be given")  # fmt: skip
    options = parser.parse_args(argv)
    paths = notebooks.find(options.names)
    try:
        if options.python:
            python, different = Path(options.python), {}
        else:
            python, different = make(read_pins(options.torch), find_python())
        lay_stand_in(python)
        found = describe(python)
    except (CannotTestError, OSError, subprocess.CalledProcessError) as error:
        print(f"Nothing was tested. {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return interrupted()
    for name, reason in different.items():
        print(f"Not as on Colab: {name} {reason}")
    print(found, HEADING, sep="\n", flush=True)
    try:
        return run_all(paths, python, run_one)
    except KeyboardInterrupt:
        return interrupted()


def interrupted():
    """Say so and return the exit code of a program that Ctrl-C ended."""
    print("Interrupted.", file=sys.stderr)
    return 130


def results(paths, python, run_one=execute):
    """Run the notebooks one after the other in one folder; yield the Result of each."""
    with tempfile.TemporaryDirectory(prefix="content-", ignore_cleanup_errors=True) as content:
        lay_content(content)
        for path in paths:
            yield run_one(path, python, content)


def run_all(paths, python, run_one):
    """Run the notebooks and print a line for each; return 0 if all ran, else 1."""
    failed = []
    for result in results(paths, python, run_one):
        print(result, flush=True)
        failed += [result.name] if result.error else []
    print(f"{len(failed)} of {len(paths)} failed: {', '.join(failed)}" if failed
          else f"all {len(paths)} ran")  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
