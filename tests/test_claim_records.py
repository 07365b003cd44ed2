"""Records of claims: one file each, the newest wins, and no cell breaks where none can be kept."""

import json
import math
import os
import random
import re
import subprocess
import sys

import nbformat
import pytest

from helpers import _claim_record, _reader, _shelf, claims, exercises
from helpers._claim_record import as_record, blank, fingerprint, merge
from helpers._paths import ROOT
from tools.kernel import execute

EXAMPLE = {
    **blank("A1-28"),
    "values": {"total": 15, "ratio": 1.5, "none": None, "yes": True, "hash": "0f" * 32},
    "met": True,
    "verdict": "holds",
    "fingerprint": "0badcafe0badcafe",
    "torch": "2.13.0",
    "device": "cpu",
    "cores": 2,
    "at": 5.5,
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_shelf, "in_memory", {})
    monkeypatch.setattr(claims, "_recorded", {})
    return tmp_path / "home"


def kept(home, claim_id="A1-28"):
    return json.loads((home / "claims" / f"{claim_id}.json").read_bytes())


def test_a_recorded_claim_is_kept_in_one_file_and_nothing_else_is_written(home):
    total = 15
    outcome = claims.record("A1-28", total=total)
    record = kept(home)
    assert (record["values"], record["met"], record["verdict"]) == ({"total": 15}, True, "holds")
    assert record["device"] in ("cpu", "cuda", "mps", "xpu")
    assert record["cores"] >= 1
    assert re.fullmatch(r"\d+\.\d+\.\d+\w*", record["torch"])
    assert record["fingerprint"] is None, "this test is no cell"
    assert sorted(path.name for path in home.rglob("*") if path.is_file()) == [
        ".lock",
        "A1-28.json",
    ]
    assert outcome.notice == ""
    assert exercises.progress().rows == (), "no exercise record"


def test_the_newest_measurement_wins_though_the_clock_goes_back(home, monkeypatch):
    monkeypatch.setattr(_claim_record.time, "time", lambda: 5.0)
    wrong, total = 14, 15
    claims.record("A1-28", total=wrong)
    first = kept(home)
    claims.record("A1-28", total=total)
    assert kept(home)["met"] is True
    assert kept(home)["at"] > first["at"]


def test_what_nothing_can_measure_is_kept_as_such(home):
    ratio = None
    claims.record("A1-03", ratio_small=ratio, ratio_large=ratio)
    assert kept(home, "A1-03")["met"] is None
    assert kept(home, "A1-03")["values"] == {"ratio_small": None, "ratio_large": None}


def test_a_refused_claim_leaves_no_record(home):
    for claim_id in ("A1-64", "A1-29", "A9-99"):
        with pytest.raises(ValueError):
            claims.record(claim_id)
    assert not home.exists()


def test_a_report_is_still_that_of_this_kernel(home, monkeypatch):
    total = 15
    claims.record("A1-28", total=total)
    monkeypatch.setattr(claims, "_recorded", {})  # a new kernel
    assert claims.report().outcomes == ()
    assert kept(home)["met"] is True


def random_record(rng):
    return {**EXAMPLE, "met": rng.choice([True, False, None]), "at": rng.randint(1, 3),
            "values": {"total": rng.randint(1, 2)}}  # fmt: skip


def test_merging_is_commutative_associative_and_idempotent_and_changes_no_input():
    rng = random.Random(0)
    for _ in range(1_000):
        a, b, c = (random_record(rng) for _ in range(3))
        copies = json.dumps([a, b, c])
        assert merge(a, b) == merge(b, a)
        assert merge(merge(a, b), c) == merge(a, merge(b, c))
        assert merge(merge(a, b), b) == merge(a, b)
        assert merge(a, b)["at"] == max(a["at"], b["at"])
        assert json.dumps([a, b, c]) == copies


def test_records_of_two_claims_are_not_merged():
    with pytest.raises(ValueError, match="records must have one id, got A1-01 and A1-02"):
        merge(blank("A1-01"), blank("A1-02"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", 2),
        ("id", "../../x"),
        ("values", {"a b": 1}),
        ("values", {"total": [1]}),
        ("values", {"total": "x" * 201}),
        ("values", {"total": math.inf}),
        ("met", 1),
        ("verdict", "x" * 201),
        ("fingerprint", "/home/ada"),
        ("device", "NVIDIA T4"),
        ("cores", 0),
        ("cores", True),
        ("at", None),
        ("host", "ada"),
    ],
)
def test_a_record_with_anything_else_is_refused(field, value):
    assert as_record(EXAMPLE) == EXAMPLE
    assert as_record({**EXAMPLE, field: value}) is None


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[1]", b'{"schema": 2}'])
def test_a_file_that_is_no_record_is_set_aside_and_the_cell_goes_on(home, data):
    (home / "claims").mkdir(parents=True)
    (home / "claims" / "A1-28.json").write_bytes(data)
    total = 15
    assert claims.record("A1-28", total=total).notice == ""
    aside = [path for path in (home / "claims").iterdir() if ".aside-" in path.name]
    assert [path.read_bytes() for path in aside] == [data]


def test_where_nothing_can_be_written_the_outcome_says_so_and_stays_whole(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "file"))
    total = 15
    outcome = claims.record("A1-28", total=total)
    assert outcome.met is True
    said = "Not saved, because the progress folder cannot be written: this is remembered"
    assert said in repr(outcome)
    assert said in outcome._repr_html_()
    assert str(tmp_path) not in repr(outcome)
    assert _claim_record.SHELF.read_all()["A1-28"]["met"] is True


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**70, 10**400, "x" * 500])
def test_any_value_can_be_kept(home, value):
    claims.record("A1-28", total=value)
    assert as_record(kept(home)) is not None


# Fingerprints


@pytest.mark.parametrize(
    "same", ["n = 1000", "n=1_000", "n = 1000  # runs", "\n\nn = (1000)\n", "n = 0x3E8"]
)
def test_comments_spaces_and_the_form_of_a_number_keep_the_fingerprint(same):
    assert fingerprint(same) == fingerprint("n = 1000")


@pytest.mark.parametrize(
    "other", ["n = 100", "m = 1000", "n = 1000.0", "n = '1000'", "n = 1000; n"]
)
def test_a_number_a_name_or_a_type_changes_the_fingerprint(other):
    assert fingerprint(other) != fingerprint("n = 1000")


def test_the_fingerprint_of_a_cell_is_the_same_on_every_python():
    assert fingerprint("def f(x, *, y=None):\n    return f'{x}' or [y]") == "5d3bbae6a8e3014d"


def test_a_cell_with_magics_has_a_fingerprint_and_text_that_is_no_cell_has_none():
    assert fingerprint("%time n = 1000\n!ls") is not None
    assert fingerprint("n = = 1") is None
    assert fingerprint("\0") is None


CELLS = [
    "from helpers import claims\ntotal = 15",
    "claims.record('A1-28', total=total)",
    "%time double = 2 * total\nclaims.record('A1-12', values_equal=double, itemsize=total)",
]


def test_a_record_made_in_a_notebook_carries_the_fingerprint_of_its_cell(home, tmp_path):
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    home.mkdir()
    execute(nbformat.v4.new_notebook(cells=cells), tmp_path, course_home=home)
    assert kept(home)["fingerprint"] == fingerprint(CELLS[1])
    assert kept(home, "A1-12")["fingerprint"] == fingerprint(CELLS[2])


def test_a_program_is_no_cell(home, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("from helpers import claims\nt = 15\nclaims.record('A1-28', total=t)\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(program)], env=env, check=True)
    assert kept(home)["fingerprint"] is None


# The transfer text and the reader's id


def test_the_transfer_text_carries_claims_and_the_reader_to_another_machine(
    home, tmp_path, monkeypatch
):
    total = 15
    claims.record("A1-28", total=total)
    reader = _reader.reader_id()
    text = exercises.progress.export()
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "second"))
    assert repr(exercises.progress.load(text)) == "2 records added"
    assert repr(exercises.progress.load(text)) == "0 records added"
    assert kept(tmp_path / "second") == kept(home)
    assert _reader.reader_id() == reader


def test_a_reader_has_one_random_id_until_it_is_replaced(home):
    first = _reader.reader_id()
    assert re.fullmatch("[0-9a-f]{8}", first)
    assert _reader.reader_id() == first
    page = exercises.progress.new_id()
    second = _reader.reader_id()
    assert second != first
    assert second not in repr(page)
    assert repr(page).startswith("New id\nThe next report carries it")


def test_an_id_that_cannot_be_saved_lasts_until_the_kernel_ends(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "file"))
    first = _reader.reader_id()
    assert _reader.reader_id() == first
    assert "Not saved, because" in repr(exercises.progress.new_id())


@pytest.mark.parametrize(
    "change", [{"reader": "/home/ad"}, {"at": math.nan}, {"host": "ada"}, {"schema": 2}]
)
def test_another_record_of_a_reader_is_refused(change):
    record = {"schema": 1, "id": "reader", "reader": "0badcafe", "at": 1}
    assert _reader.as_record(record) == record
    assert _reader.as_record({**record, **change}) is None


def test_a_torn_write_leaves_the_old_record(home, monkeypatch):
    total, wrong = 15, 14
    claims.record("A1-28", total=total)
    old = kept(home)

    def full(_):
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "fsync", full)
    assert "the disk is full" in claims.record("A1-28", total=wrong).notice
    assert kept(home) == old
