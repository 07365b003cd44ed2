"""Results of named machines are read as they were written, and broken files are named."""

import pytest
from torch.utils.benchmark import Measurement
from torch.utils.benchmark.utils.common import TaskSpec

from helpers import reference
from helpers.device import Machine

MACHINE = Machine("Imagined GPU", "cuda", 8, 4, "2.13.0", "2.4.6")


def measured(*times):
    return Measurement(1, list(times), TaskSpec("x", "pass"))


def test_what_is_written_is_read_with_median_and_iqr(tmp_path):
    times = {32: measured(1e-5, 2e-5, 3e-5, 4e-5, 9e-5), 64: measured(*[5e-5] * 7)}
    (tmp_path / "matmul").mkdir()
    text = reference.as_json(MACHINE, times)
    (tmp_path / "matmul" / "imagined_gpu.json").write_text(text)
    found = reference.load("matmul", folder=tmp_path)
    assert list(found) == ["Imagined GPU"]
    assert list(found["Imagined GPU"]) == [32, 64]
    for n, m in found["Imagined GPU"].items():
        assert m.median == pytest.approx(times[n].median)
        assert m.iqr == pytest.approx(times[n].iqr)


def test_a_file_names_kind_and_versions_and_nothing_private():
    text = reference.as_json(MACHINE, {32: measured(1e-5)})
    assert '"kind": "Imagined GPU"' in text
    assert '"torch": "2.13.0"' in text
    assert "cores" not in text


def test_a_measurement_that_nobody_has_made_is_empty(tmp_path):
    assert reference.load("matmul", folder=tmp_path) == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind": "x", "times": {"a": [1]}}', '{"kind": "x", "times": {"1": []}}',
             '{"kind": "x", "times": {"1": [0.0]}}', '{"kind": "x", "times": [1]}']
)  # fmt: skip
def test_a_broken_file_is_named_with_the_repair(tmp_path, text):
    (tmp_path / "matmul").mkdir()
    (tmp_path / "matmul" / "t4.json").write_text(text)
    with pytest.raises(ValueError, match=r"^t4.json must hold kind and times .*write it again on"):
        reference.load("matmul", folder=tmp_path)


def test_every_committed_file_can_be_read():
    names = {path.parent.name for path in reference.FOLDER.glob("*/*.json")}
    assert all(reference.load(name) for name in names)
