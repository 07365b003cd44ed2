"""The cells of notebook 41 that need a GPU run with stand-ins, and its sum speaks of its network."""

from types import SimpleNamespace

import nbformat
import pytest

from helpers import oom
from helpers._paths import ROOT
from helpers.table import Table
from helpers.units import format_bytes

NB = nbformat.read(ROOT / "notebooks" / "41_account_for_memory.ipynb", as_version=4)
GIB = 2**30


def cell(text):
    """Return the source of the only code cell that holds this text."""
    (found,) = [c.source for c in NB.cells if c.cell_type == "code" and text in c.source]
    return found


def card(**changed):
    """Stand in for a CUDA device with 16 GiB."""
    sizes = {"allocated": 2**24 + 512, "reserved": 2**25, "free": 15 * GIB} | changed
    cuda = SimpleNamespace(
        mem_get_info=lambda device: (sizes["free"], 16 * GIB),
        memory_allocated=lambda device: sizes["allocated"],
        memory_reserved=lambda device: sizes["reserved"],
    )
    made = SimpleNamespace(nbytes=2**24)
    return {
        "torch": SimpleNamespace(cuda=cuda, ones=lambda *_, **__: made),
        "device": SimpleNamespace(type="cuda"),
        "Table": Table,
        "format_bytes": format_bytes,
    }


def test_with_cuda_four_meters_are_read_each_holding_the_one_before():
    scope = card()
    exec(cell("def meters_of"), scope)  # noqa: S102 - a cell of the notebook
    assert scope["readings"] == [2**24, 2**24 + 512, 2**25, GIB]


def test_a_meter_that_shows_less_than_the_one_before_is_noticed():
    with pytest.raises(AssertionError):
        exec(cell("def meters_of"), card(allocated=2**26))  # noqa: S102


def test_without_cuda_three_meters_are_not_measured():
    scope = card() | {"device": SimpleNamespace(type="cpu")}
    exec(cell("def meters_of"), scope)  # noqa: S102
    assert scope["readings"] == [2**24, None, None, None]
    assert scope["rows"][3] == ["nvidia-smi", "not measured here"]


def test_a_message_of_a_card_is_read_in_place_of_the_recorded_one():
    said = oom.RECORDED.replace("1.53 GiB", "29.12 GiB")
    stand_in = SimpleNamespace(provoke=lambda device: said, read=oom.read)
    scope = card() | {"oom": stand_in}
    exec(cell("oom.provoke"), scope)  # noqa: S102
    assert scope["read"].tried == round(29.12 * GIB)
