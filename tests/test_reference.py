"""Results of named machines are read as they were kept, and broken files are named."""

import json

import pytest
from torch.utils.benchmark import Measurement
from torch.utils.benchmark.utils.common import TaskSpec

from helpers import reference


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(reference, "_kept", {})


def measured(*times):
    return Measurement(1, list(times), TaskSpec("x", "pass"))


def test_what_is_kept_is_read_with_median_and_iqr(tmp_path):
    times = {32: measured(1e-5, 2e-5, 3e-5, 4e-5, 9e-5), 64: measured(*[5e-5] * 7)}
    reference.keep("matmul", times)
    result = {"kind": "Imagined GPU", "torch": "2.13.0", "curves": reference.kept()}
    (tmp_path / "imagined-gpu.json").write_text(json.dumps(result))
    found = reference.load("matmul", folder=tmp_path)
    assert list(found) == ["Imagined GPU"]
    assert list(found["Imagined GPU"]) == [32, 64]
    for n, m in found["Imagined GPU"].items():
        assert m.median == pytest.approx(times[n].median)
        assert m.iqr == pytest.approx(times[n].iqr)


def test_a_curve_kept_again_replaces_the_old_one_and_copies_are_handed_out():
    reference.keep("matmul", {32: measured(1e-5)})
    reference.keep("matmul", {64: measured(2e-5)})
    reference.kept()["matmul"].clear()
    assert reference.kept() == {"matmul": {"64": [2e-5] * 5}}


def test_a_curve_that_nobody_has_measured_is_empty(tmp_path):
    assert reference.load("matmul", folder=tmp_path) == {}
    (tmp_path / "t4.json").write_text('{"kind": "T4", "notebooks": {}}')
    assert reference.load("matmul", folder=tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"curves": []}',
        '{"curves": {"matmul": {"1": [1.0]}}}',
        '{"kind": "x", "curves": {"matmul": {"a": [1]}}}',
        '{"kind": "x", "curves": {"matmul": {"1": []}}}',
        '{"kind": "x", "curves": {"matmul": {"1": [0.0]}}}',
        '{"kind": "x", "curves": {"matmul": [1]}}',
    ],
)
def test_a_broken_file_is_named_with_the_repair(tmp_path, text):
    (tmp_path / "t4.json").write_text(text)
    with pytest.raises(ValueError, match=r"^t4.json must hold kind and curves .*write it again on"):
        reference.load("matmul", folder=tmp_path)


def test_every_committed_file_can_be_read():
    for path in reference.FOLDER.glob("*.json"):
        for name in json.loads(path.read_text(encoding="utf-8")).get("curves", {}):
            assert reference.load(name)
