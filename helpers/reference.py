"""Read results that were measured on named kinds of machines, to draw them beside the reader's.

Each file ``reference/<name>/<kind>.json`` comes from a real run and holds the kind of machine,
the versions, and for each size the five-number summary of its times in seconds. There is no file
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

    from helpers.device import Machine

FOLDER = ROOT / "reference"


def load(name: str, *, folder: Path = FOLDER) -> dict[str, dict[int, Measurement]]:
    """Read the reference results of one measurement.

    Parameters
    ----------
    name : str
        Of the measurement, such as ``"matmul_float32"``.
    folder : pathlib.Path
        Where the results lie.

    Returns
    -------
    dict of str to dict of int to torch.utils.benchmark.Measurement
        For each kind of machine the time at each size; empty if nobody has measured it.

    Raises
    ------
    ValueError
        If a file does not hold what `as_json` writes.

    Examples
    --------
    >>> load("a measurement that nobody has made")
    {}
    """
    found = {}
    for path in sorted((folder / name).glob("*.json")):
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            times = {
                int(size): [float(t) for t in values] for size, values in kept["times"].items()
            }
            found[kept["kind"]] = {n: _measurement(kept["kind"], t) for n, t in times.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path.name} must hold kind and times as reference.as_json writes them, "
                f"got {type(error).__name__}: {error}; write it again on that machine"
            ) from None
    return found


def as_json(machine: Machine, times: Mapping[int, Measurement]) -> str:
    """Write results as the text of a reference file.

    Parameters
    ----------
    machine : Machine
        Where they were measured; see `helpers.device.describe_machine`.
    times : mapping of int to torch.utils.benchmark.Measurement
        The measurement at each size.

    Returns
    -------
    str
        JSON: kind, versions and the least, quartile, median, quartile and greatest time.
    """
    import numpy as np

    five = {
        str(n): np.quantile(m.times, (0, 0.25, 0.5, 0.75, 1)).tolist() for n, m in times.items()
    }
    kept = {"kind": machine.kind, "torch": machine.torch, "numpy": machine.numpy, "times": five}
    return json.dumps(kept, indent=1) + "\n"


def _measurement(kind: str, times: list[float]) -> Measurement:
    from torch.utils.benchmark import Measurement
    from torch.utils.benchmark.utils.common import TaskSpec

    if not times or min(times) <= 0:
        raise ValueError(f"times must be above zero, got {times}")
    return Measurement(1, times, TaskSpec(stmt=kind, setup="pass", num_threads=1))
