"""Read results that were measured on named kinds of machines, to draw them beside the reader's.

A file ``reference/<kind>.json`` comes from a real run on that kind of machine. Under ``curves`` it
may hold, by name and size, the five-number summary of measured times in seconds. There is no file
for a machine on which nobody has run the course.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from helpers._paths import ROOT

if TYPE_CHECKING:
    from torch.utils.benchmark import Measurement

FOLDER = ROOT / "reference"
_kept: dict[str, dict[str, list[float]]] = {}


def load(name: str, *, folder: Path = FOLDER) -> dict[str, dict[int, Measurement]]:
    """Read a curve of every kind of machine that has been measured.

    Parameters
    ----------
    name : str
        Of the curve, such as ``"matmul_float32"``.
    folder : pathlib.Path
        Where the results lie.

    Returns
    -------
    dict of str to dict of int to torch.utils.benchmark.Measurement
        For each kind of machine the time at each size; empty if nobody has measured it.

    Raises
    ------
    ValueError
        If a file does not hold what is said above.

    Examples
    --------
    >>> load("a curve that nobody has measured")
    {}
    """
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            curve = result.get("curves", {}).get(name, {})
            if curve:
                kind = result["kind"]
                found[kind] = {int(n): _measurement(kind, times) for n, times in curve.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path.name} must hold kind and curves as reference.kept gives them, got "
                f"{type(error).__name__}: {error}; write it again on that machine"
            ) from None
    return found


def keep(name: str, times: Mapping[int, Measurement]) -> None:
    """Keep a measured curve in this process, so that a run on a device can store it.

    Parameters
    ----------
    name : str
        Of the curve.
    times : mapping of int to torch.utils.benchmark.Measurement
        The measurement at each size.
    """
    import numpy as np

    summary = {n: np.quantile(m.times, (0, 0.25, 0.5, 0.75, 1)) for n, m in times.items()}
    _kept[name] = {str(n): five.tolist() for n, five in summary.items()}


def kept() -> dict[str, dict[str, list[float]]]:
    """Return what was kept: for each name and size the five-number summary of its times.

    Returns
    -------
    dict
        Of the form that a file holds under ``curves``.
    """
    return {name: dict(curve) for name, curve in _kept.items()}


def _measurement(kind: str, times: list[float]) -> Measurement:
    from torch.utils.benchmark import Measurement
    from torch.utils.benchmark.utils.common import TaskSpec

    times = [float(seconds) for seconds in times]
    if not times or min(times) <= 0:
        raise ValueError(f"times must be above zero, got {times}")
    return Measurement(1, times, TaskSpec(stmt=kind, setup="pass", num_threads=1))
