"""Gather what a lab report is made of: records, the machine's kind, and the course's cells."""

import json
from dataclasses import dataclass
from functools import cache

from helpers import _claim_record
from helpers._literals import record_calls
from helpers._paths import ROOT
from helpers.exercises import _catalog, _progress
from helpers.exercises._record import blank


@dataclass(frozen=True)
class Evidence:
    """Hold everything that a report shows, so that equal evidence gives an equal report.

    Attributes
    ----------
    records : dict of str to dict
        Records of predictions and exercises, by id.
    claims : dict of str to dict
        Records of claims, by id.
    machine : str
        One line on the kind of machine.
    torch, device, cores
        Version, kind of device ("cpu", "cuda", "mps" or "xpu") and usable cores.
    sample : bool
        Whether all of it was generated.
    """

    records: dict
    claims: dict
    machine: str
    torch: str
    device: str
    cores: int
    sample: bool = False

    def record(self, id):
        """Return the record of a prediction or an exercise, blank if there is none."""
        return self.records.get(id) or blank(id, "prediction" if ".p" in id else "exercise")


def gather():
    """Read the reader's records and describe the machine; write nothing."""
    from helpers.device import describe_machine

    machine = describe_machine()
    return Evidence(
        records=_progress.read_all(),
        claims=_claim_record.SHELF.read_all(),
        machine=str(machine),
        torch=machine.torch,
        device=machine.device,
        cores=machine.cores,
    )


@cache
def notebooks():
    """Return file name and title of each notebook of the course, by its number."""
    from helpers.catalog import read_entries

    return {entry.number: (entry.path.name, entry.title) for entry in read_entries()}


@cache
def cells_of(number):
    """Return the fingerprints of the cells of a notebook that record a claim, by claim.

    Returns
    -------
    dict of str to set of str
        Empty where the notebook does not lie beside the helpers.
    """
    found = {}
    for path in (ROOT / "notebooks").glob(f"{number:02}_*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and "record(" in source:
                for _, claim_id in record_calls(source):
                    found.setdefault(claim_id, set()).add(_claim_record.fingerprint(source))
    return found


def known(table):
    """Return the ids of ``"EXERCISES"`` or ``"PREDICTIONS"`` that the course itself has."""
    return _catalog.known_ids(table)
