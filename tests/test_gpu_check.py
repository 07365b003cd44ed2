"""The check of a CUDA device, with stand-ins for the device."""

import json
import time

import pytest
import torch
from sample_notebooks import code, notebook, write

from helpers import reference, sizing
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
        "large step": {"counted": 2 * 2**30, "requested": 2**30, "allocated": 2**30},
        "notebooks": {
            "12_a": {"error": "E: x", "claims": {}},
            "13_b": {"error": None, "claims": {"A1-28": {"met": False, "values": {}}}},
        },
        "left out": ["71_c"],
    }
    assert gpu_check.problems(result) == [
        "2 tests failed",
        "3 tests were skipped",
        "large step: 2,147,483,648 bytes were counted alive, 1,073,741,824 were requested",
        "12_a: E: x",
        "13_b: A1-28 does not hold here",
        "71_c was left out: no time was left",
    ]


def test_with_a_device_the_file_carries_its_kind_and_the_exit_code_its_problems(
    monkeypatch, tmp_path, capsys
):
    result = {"kind": "NVIDIA T4", "tests": {"passed": 9, "failed": 0, "skipped": 0}}
    result |= {"large step": {"not measured": "a reason"}}
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
    monkeypatch.setattr(gpu_check, "compare_large", lambda: {"counted": 1})
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
    assert kept["large step"] == {"counted": 1}
    assert set(kept) >= {"kind", "torch", "numpy", "cuda", "date"}


def test_the_large_model_has_a_billion_parameters_and_each_card_its_optimizer():
    assert sizing.MODELS[gpu_check.LARGE].parameters >= 10**9
    chosen = [gpu_check.largest_fitting(gib * 2**30) for gib in (4, 8, 12, 16, 20, 40)]
    assert chosen == [None, None, "SGD", "SGD, momentum", "Adam", "Adam, foreach"]


def test_a_large_step_is_counted_beside_its_sum():
    small = sizing.Shape(2, 64, 4, 2000, 128, key_heads=2)
    found = gpu_check.count_large("cpu", shape=small, optimizer="SGD, momentum")
    assert found["parameters"] == small.parameters
    assert found["optimizer"] == "SGD, momentum"
    assert found["counted"] == pytest.approx(found["sum"], rel=0.05)
    assert found["requested"] is found["allocated"] is None
    assert gpu_check.off_by(found) == ["the allocator does not tell what was requested"]


def test_a_step_that_fits_on_no_card_is_not_measured(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**32, 2**32))
    large = gpu_check.compare_large()
    assert large == {"not measured": "TinyLlama 1.1B does not fit into 4,294,967,296 free bytes"}
    assert gpu_check.off_by(large) == []


def test_with_room_the_large_step_runs_with_the_largest_optimizer(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**37, 2**37))
    monkeypatch.setattr(gpu_check, "count_large", lambda *, optimizer: {"optimizer": optimizer})
    assert gpu_check.compare_large() == {"model": "TinyLlama 1.1B", "optimizer": "Adam, foreach"}


@pytest.mark.parametrize(
    ("requested", "allocated", "says"),
    [
        (10**10, 10**10, []),
        (10**10 + 2**27, 11 * 10**9, []),
        (10**10 - 1, 10**10, ["10,000,000,000 bytes were counted alive, 9,999,999,999 were"]),
        (11 * 10**9, 11 * 10**9, ["11,000,000,000 bytes were requested, only 10,000,000,000"]),
        (10**10, 10**10 - 1, ["9,999,999,999 bytes were allocated, less than the 10,000,000,000"]),
    ],
)
def test_the_allocator_stays_near_what_was_counted(requested, allocated, says):
    large = {"counted": 10**10, "requested": requested, "allocated": allocated}
    found = gpu_check.off_by(large)
    assert len(found) == len(says)
    assert all(map(str.startswith, found, says))


def test_a_step_that_should_have_fit_is_a_problem(monkeypatch):
    def fail(*, optimizer):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**37, 2**37))
    monkeypatch.setattr(gpu_check, "count_large", fail)
    (text,) = gpu_check.off_by(gpu_check.compare_large())
    assert text == "Adam, foreach should fit into 137,438,953,472 bytes: CUDA out of memory."
