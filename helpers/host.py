"""Measure what happens around torch on the host: fresh processes, and pages of new memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_PRODUCT = """
import numpy as np, timeit
x = np.random.default_rng(0).standard_normal(({n}, {n}), dtype=np.float32)
print(min(timeit.repeat(lambda: x @ x, number=1, repeat=10)))
"""


def run_fresh(program: str, **settings: str) -> str:
    """Run a Python program in a new process, where nothing is warm or imported yet.

    Parameters
    ----------
    program : str
        Source.
    **settings : str
        Environment variables, on top of those of this process.

    Returns
    -------
    str
        What it printed.

    Raises
    ------
    RuntimeError
        If it fails; the last line of its error is in the text.

    Examples
    --------
    >>> run_fresh("import os; print(os.environ['COLOR'])", COLOR="green")
    'green\\n'
    """
    command = [sys.executable, "-c", program]
    # Text in UTF-8 on both sides, also where the console has another encoding.
    env = os.environ | {"PYTHONIOENCODING": "utf-8"} | settings
    ran = subprocess.run(
        command, env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"the program ended with code {ran.returncode}: {last}")
    return ran.stdout


def numpy_product_seconds(*, n: int = 1000, threads: int = 1, core: str | None = None) -> float:
    """Time a product of float32 matrices in NumPy, in a fresh process with these settings.

    NumPy's BLAS reads its settings once, when it is loaded.

    Parameters
    ----------
    n : int
        Rows and columns.
    threads : int
        For OpenBLAS, OpenMP and MKL.
    core : str, optional
        For ``OPENBLAS_CORETYPE``: the processor for which OpenBLAS picks its code. By default the
        variable stays as it is.

    Returns
    -------
    float
        Seconds of the fastest of ten products.

    See Also
    --------
    OpenBLAS, runtime variables : https://www.openmathlib.org/OpenBLAS/docs/runtime_variables/

    Examples
    --------
    >>> 0 < numpy_product_seconds(n=10) < 1
    True
    """
    settings = dict.fromkeys(_THREADS, str(threads))
    if core is not None:
        settings["OPENBLAS_CORETYPE"] = core
    return float(run_fresh(_PRODUCT.format(n=n), **settings))


def page_faults(call: Callable[[], object]) -> int:
    """Count the pages of memory that the operating system hands out during a call.

    Parameters
    ----------
    call : callable
        Called once, without arguments.

    Returns
    -------
    int
        Pages; on Linux those that needed no disk.

    Examples
    --------
    >>> page_faults(lambda: None) >= 0
    True
    """
    before = _pages()
    call()
    return _pages() - before


def _pages() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such module; psutil counts there, and only there
        import psutil

        return int(psutil.Process().memory_info().num_page_faults)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
