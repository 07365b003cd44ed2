"""The check of a CUDA device, with stand-ins for the device."""

import json
import time

import pytest
import torch
from sample_notebooks import code, notebook, write

from helpers import reference
from tools import gpu_check

CLAIM = (
    "import torch\nfrom helpers import claims\ntotal = torch.sum(torch.tensor([1, 2, 3, 4, 5]))\n"
    "claims.record('A1-28', total=total)"
)


def sample(tmp_path, name, *sources):
    return write(tmp_path / f"{name}.ipynb", notebook(*map(code, sources)))


def test_without_a_device_nothing_is_written(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gpu_check, "FOLDER", tmp_path / "reference")
    assert gpu_check.main([]) == 2
    assert capsys.readouterr().err.startswith("No CUDA device can be used here")
    assert not (tmp_path / "reference").exists()


def test_a_notebook_gives_its_seconds_and_what_its_claims_measured(tmp_path):
    one = gpu_check.run_notebook(sample(tmp_path, "12_sample", CLAIM), timeout=60)
    assert one["error"] is None
    assert one["seconds"] > 0
    assert one["claims"] == {"A1-28": {"met": True, "values": {"total": 15}}}
    assert one["curves"] == {}


def test_an_error_and_a_cell_that_never_ends_are_named(tmp_path):
    wrong = gpu_check.run_notebook(sample(tmp_path, "12_sample", "1 / 0"), timeout=60)
    assert wrong["error"] == "ZeroDivisionError: division by zero"
    slow = sample(tmp_path, "13_sample", "import time\ntime.sleep(60)")
    began = time.monotonic()
    assert gpu_check.run_notebook(slow, timeout=1)["error"] == "a cell ran out of time"
    assert time.monotonic() - began < 50


def test_notebooks_without_time_are_left_out(tmp_path):
    assert gpu_check.run_notebooks([sample(tmp_path, "12_sample", "1")], seconds=0) == (
        {},
        ["12_sample"],
    )


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("def test_a(): pass", {"passed": 1, "failed": 0, "skipped": 0}),
        ("def test_a(): assert 0", {"passed": 0, "failed": 1, "skipped": 0}),
        ("import nothing_of_the_kind", {"passed": 0, "failed": 1, "skipped": 0}),
        (
            "import pytest\n@pytest.mark.skip(reason='needs-cuda')\ndef test_a(): pass",
            {"passed": 0, "failed": 0, "skipped": 1},
        ),
    ],
)
def test_tests_are_counted(tmp_path, source, counts):
    path = tmp_path / "test_sample.py"
    path.write_text(source)
    assert gpu_check.run_tests(path, timeout=60) == counts


def test_everything_that_went_wrong_is_said():
    result = {
        "tests": {"passed": 1, "failed": 2, "skipped": 3},
        "notebooks": {
            "12_a": {"error": "E: x", "claims": {}},
            "13_b": {"error": None, "claims": {"A1-28": {"met": False, "values": {}}}},
        },
        "left out": ["71_c"],
    }
    assert gpu_check.problems(result) == [
        "2 tests failed",
        "3 tests were skipped",
        "12_a: E: x",
        "13_b: A1-28 does not hold here",
        "71_c was left out: no time was left",
    ]


def test_with_a_device_the_file_carries_its_kind_and_the_exit_code_its_problems(
    monkeypatch, tmp_path, capsys
):
    result = {"kind": "NVIDIA T4", "tests": {"passed": 9, "failed": 0, "skipped": 0}}
    result |= {"notebooks": {}, "left out": []}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu_check, "ROOT", tmp_path)
    monkeypatch.setattr(gpu_check, "FOLDER", tmp_path / "reference")
    monkeypatch.setattr(gpu_check, "collect", lambda paths: result)
    assert gpu_check.main(["13"]) == 0
    kept = json.loads((tmp_path / "reference" / "nvidia-t4.json").read_text())
    assert kept["kind"] == "NVIDIA T4"
    result["left out"].append("71_c")
    assert gpu_check.main(["13"]) == 1
    assert "71_c was left out" in capsys.readouterr().out


def test_what_is_collected_names_the_kind_and_the_versions(monkeypatch, tmp_path):
    counts = {"passed": 1, "failed": 0, "skipped": 0}
    monkeypatch.setattr(gpu_check, "run_tests", lambda timeout: counts)
    curve = (
        "from helpers import reference, timing\n"
        "m = timing.benchmark(lambda: sum(range(9)), min_run_time=0.01)\n"
        "reference.keep('sums', {9: m})"
    )
    paths = [sample(tmp_path, "12_sample", CLAIM), sample(tmp_path, "22_sample", curve)]
    kept = gpu_check.collect(paths, seconds=60)
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    assert list(reference.load("sums", folder=tmp_path)) == [kept["kind"]]
    assert kept["notebooks"]["12_sample"]["claims"]["A1-28"]["met"] is True
    assert kept["tests"] == counts
    assert set(kept) >= {"kind", "torch", "numpy", "cuda", "date"}
