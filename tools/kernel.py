"""Start notebook kernels in one known environment, wherever they are started from.

The tests, `course.py notebooks` and the reader-state tests all use it, so that a committed
output and a compared output come from equal settings.
"""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from helpers._paths import ROOT

# None removes a variable. Whatever a CI machine or a shell sets here would show in an output.
SETTINGS = {
    "PYTEST_CURRENT_TEST": None,  # ipykernel stops capturing what child processes write if set
    "PYTEST_VERSION": None,
    "MPLBACKEND": None,  # "Agg" would suppress inline figures
    "PYTHONSTARTUP": None,  # IPython runs it
    "NO_COLOR": None,
    "FORCE_COLOR": None,
    "JUPYTER_PATH": None,
    "OMP_NUM_THREADS": "1",  # same last digits whatever the core count
    "MKL_NUM_THREADS": None,
    "OPENBLAS_NUM_THREADS": None,
    "COLUMNS": "80",
}


@contextmanager
def environment(folder, course_home=None):
    """Set the variables that a kernel inherits when it starts, and yield its progress folder.

    Every folder that Jupyter and IPython write to lies in `folder`, so neither the user's
    configuration nor a read-only home can change a result.

    Parameters
    ----------
    folder : str or Path
        An empty folder that outlives the kernel.
    course_home : Path, optional
        Progress folder of an earlier run; by default a fresh, empty one in `folder`.

    Yields
    ------
    Path
        The folder in ``COURSE_HOME``.
    """
    home = Path(course_home or Path(folder) / "progress")
    home.mkdir(exist_ok=True)
    changes = SETTINGS | {
        "COURSE_HOME": str(home),
        "IPYTHONDIR": f"{folder}/ipython",
        "JUPYTER_CONFIG_DIR": f"{folder}/config",
        "JUPYTER_DATA_DIR": f"{folder}/data",
        "JUPYTER_RUNTIME_DIR": f"{folder}/runtime",
        # pytest's own changes of sys.path do not reach a kernel; this does
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    with _variables(changes):
        yield home


@contextmanager
def _variables(changes):
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(values):
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def prepare_fonts():
    """Build matplotlib's font cache here, once, instead of in the first kernel.

    There it would print a notice into a committed or compared output. Under a read-only
    home matplotlib also exports a temporary cache folder, which the kernels then inherit.
    """
    import matplotlib.font_manager  # noqa: F401


def execute(nb, where, *, course_home=None, timeout=300):
    """Run a notebook's cells in a new kernel of this Python, and fill in their outputs.

    Parameters
    ----------
    nb : nbformat.NotebookNode
        Changed in place: outputs and execution counts.
    where : Path
        Where the kernel runs: the folder of the notebook's file.
    course_home : Path, optional
        Progress folder to use; fresh by default.
    timeout : float
        Seconds allowed for one cell.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises that is not tagged ``raises-exception``.
    """
    from nbclient import NotebookClient

    prepare_fonts()
    client = NotebookClient(
        nb,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(where)}},
    )
    scratch = tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True)
    with scratch as folder, environment(folder, course_home):
        client.execute()
    return nb
