import getpass
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest
import torch

from helpers import doctor
from helpers._paths import ROOT

NAMES = [
    "Python, torch, NumPy",
    "kernel",
    "NumPy bridge",
    "cores and threads",
    "memory",
    "disk",
    "progress",
    "shared memory",
    "compiler",
    "spaces in paths",
    "start method",
    "several processes",
    "GPU",
    "GPU build",
    "GPU driver",
    "bfloat16",
    "widgets",
    "noise",
    "optional packages",
    "Colab",
    "network",
]
GIB = 2**30
KERNEL = {"prefix": "/a", "expected": "/a", "expected_exists": True, "same_checkout": True}
VERSIONS = {"python": (3, 13), "torch": "2.13.0+cpu", "numpy": "2.4.6"}
DRIVER = {"needed": True, "available": False, "card": False, "warning": ""}


def judge(name, **facts):
    report = doctor.examine(facts={name: facts})
    return next(row for row in report.rows if row.name == name)


@pytest.fixture(scope="module")
def report():
    return doctor.examine()


def test_every_machine_gets_the_same_checks_in_the_same_order(report):
    assert [row.name for row in report.rows] == NAMES


def test_every_status_is_ok_note_or_fix(report):
    assert {row.status for row in report.rows} <= {"ok", "note", "fix"}


def test_a_check_that_needs_a_fix_names_one(report):
    assert all(row.fix for row in report.rows if row.status == "fix")


def test_no_check_failed_on_this_machine(report):
    assert "could not be examined" not in str(report)


@pytest.mark.parametrize("show", [str, repr, doctor.Report._repr_html_])
def test_no_path_user_or_host_is_shown(report, show):
    words = show(report).split()
    secrets = [str(ROOT), sys.prefix, str(Path.home()), os.getcwd()]
    assert not [secret for secret in secrets if len(secret) > 1 and secret in show(report)]
    assert socket.gethostname() not in words
    assert getpass.getuser() not in words


def test_importing_the_doctor_imports_neither_torch_nor_numpy():
    code = "import sys, helpers.doctor; print({'torch', 'numpy', 'psutil'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("name", "facts", "status", "message", "fix"),
    [
        ("Python, torch, NumPy", VERSIONS, "ok", "Python 3.13, torch 2.13.0+cpu", ""),
        ("Python, torch, NumPy", {**VERSIONS, "python": (3, 10)}, "fix", "3.10", "course.py lab"),
        ("Python, torch, NumPy", {**VERSIONS, "python": (3, 15)}, "fix", "3.15", "3.11-3.14"),
        ("Python, torch, NumPy", {**VERSIONS, "torch": "2.9.1"}, "fix", "2.9.1", "torch 2.11"),
        ("Python, torch, NumPy", {**VERSIONS, "torch": None}, "fix", "None", "course.py lab"),
        ("Python, torch, NumPy", {**VERSIONS, "numpy": "1.26.4"}, "fix", "1.26.4", "NumPy 2.0"),
        ("kernel", KERNEL, "ok", "the course's own", ""),
        ("kernel", {**KERNEL, "prefix": "/b"}, "fix", "another environment", "Change kernel"),
        (
            "kernel",
            {**KERNEL, "prefix": "/b", "expected_exists": False},
            "ok",
            "an environment of your own",
            "",
        ),
        ("kernel", {**KERNEL, "same_checkout": False}, "fix", "another copy", "course.py lab"),
        ("NumPy bridge", {"works": True}, "ok", "comes back", ""),
        ("NumPy bridge", {"works": False}, "fix", "do not match", "reinstall both together"),
        ("cores and threads", {"cores": 8, "quota": "", "threads": 8}, "ok", "8 cores", ""),
        (
            "cores and threads",
            {"cores": 1, "quota": "max 100000", "threads": 1},
            "ok",
            "1 core,",
            "",
        ),
        (
            "cores and threads",
            {"cores": 64, "quota": "200000 100000", "threads": 64},
            "fix",
            "2 cores, 64 threads",
            "OMP_NUM_THREADS=2",
        ),
        ("memory", {"available": 8 * GIB, "limit": "max", "used": "1"}, "ok", "8.0 GiB", ""),
        ("memory", {"available": GIB, "limit": "", "used": ""}, "fix", "1.0 GiB", "close programs"),
        (
            "memory",
            {"available": 64 * GIB, "limit": str(2 * GIB), "used": str(GIB)},
            "fix",
            "1.0 GiB",
            "33, 41, 61 and 71",
        ),
        ("memory", {"available": None, "limit": "", "used": ""}, "note", "needs psutil", ""),
        ("disk", {"free": 5 * GIB}, "ok", "5.0 GiB", ""),
        ("disk", {"free": GIB // 2}, "fix", "0.5 GiB", "COURSE_HOME"),
        ("progress", {"works": True}, "ok", "can be saved", ""),
        ("progress", {"works": False}, "fix", "stays in memory", "progress.export()"),
        ("shared memory", {"size": None}, "ok", "needs no /dev/shm", ""),
        ("shared memory", {"size": 8 * GIB}, "ok", "8.0 GiB", ""),
        ("shared memory", {"size": 64 * 2**20}, "note", "num_workers=0", "--shm-size=2g"),
        ("compiler", {"found": True, "works": True, "headers": True}, "ok", "OpenMP", ""),
        (
            "compiler",
            {"found": False, "works": False, "headers": True},
            "note",
            "none found; 61 and 62 skip",
            "build-essential",
        ),
        (
            "compiler",
            {"found": True, "works": False, "headers": True},
            "note",
            "cannot build with OpenMP",
            "Xcode",
        ),
        (
            "compiler",
            {"found": True, "works": True, "headers": False},
            "note",
            "Python.h is missing",
            "python3-dev",
        ),
        ("spaces in paths", {"places": {"environment": "/a", "cache": "/b"}}, "ok", "none", ""),
        (
            "spaces in paths",
            {"places": {"environment": "/a b", "cache": "/c"}},
            "note",
            "environment",
            "COURSE_VENV",
        ),
        (
            "spaces in paths",
            {"places": {"environment": "/a", "cache": "/c d"}},
            "note",
            "cache",
            "TORCHINDUCTOR_CACHE_DIR",
        ),
        (
            "spaces in paths",
            {"places": {"environment": "/a b", "temporary files": "/c d"}},
            "note",
            "the environment and of the temporary files",
            "TMPDIR",
        ),
        ("start method", {"method": "fork"}, "ok", "fork", ""),
        ("start method", {"method": "forkserver"}, "note", "workers import their classes", ""),
        ("start method", {"method": "spawn"}, "note", "spawn", ""),
        ("several processes", {"gloo": True, "loopback": True, "own_name": True}, "ok", "gloo", ""),
        (
            "several processes",
            {"gloo": False, "loopback": True, "own_name": True},
            "note",
            "no gloo",
            "",
        ),
        (
            "several processes",
            {"gloo": True, "loopback": False, "own_name": True},
            "fix",
            "loopback",
            "127.0.0.1",
        ),
        (
            "several processes",
            {"gloo": True, "loopback": True, "own_name": False},
            "fix",
            "does not resolve",
            "GLOO_SOCKET_IFNAME",
        ),
        ("GPU", {"kind": None}, "note", "fine: GPU cells say what they skip", ""),
        ("GPU", {"kind": "mps"}, "ok", "mps is available", ""),
        ("GPU build", {"built_for": "13.0", "card": None}, "ok", "13.0", ""),
        ("GPU build", {"built_for": None, "card": False}, "ok", "no NVIDIA card", ""),
        ("GPU build", {"built_for": None, "card": True}, "fix", "CPU build", "pytorch.org"),
        ("GPU driver", DRIVER, "ok", "no NVIDIA card", ""),
        ("GPU driver", {**DRIVER, "needed": False}, "ok", "not needed", ""),
        ("GPU driver", {**DRIVER, "available": True}, "ok", "recent enough", ""),
        ("GPU driver", {**DRIVER, "card": True}, "fix", "cannot use it", "update"),
        (
            "GPU driver",
            {**DRIVER, "warning": "The NVIDIA driver on your system is too old (found 11040)"},
            "fix",
            "too old",
            "older CUDA",
        ),
        ("bfloat16", {"card": False, "supported": False}, "ok", "no CUDA card", ""),
        ("bfloat16", {"card": True, "supported": True}, "ok", "computes in bfloat16", ""),
        ("bfloat16", {"card": True, "supported": False}, "note", "42 uses float16", ""),
        ("widgets", {"version": None, "in_kernel": True}, "note", "stand in", "course.py lab"),
        ("widgets", {"version": "8.1.9", "in_kernel": True}, "ok", "reload the page", ""),
        ("widgets", {"version": "7.7.1", "in_kernel": False}, "ok", "7.7.1", ""),
        ("noise", {"seconds": [1.0] * 50}, "ok", "0%", ""),
        ("noise", {"seconds": [1.0, 2.0] * 25}, "note", "67%", "close programs"),
        ("optional packages", {"missing": []}, "ok", "all found", ""),
        ("optional packages", {"missing": ["onnx"]}, "note", "onnx", "deploy"),
        ("Colab", {"loaded": False}, "ok", "not on Colab", ""),
        ("Colab", {"loaded": True}, "note", "goes away", "progress.export()"),
        ("network", {}, "ok", "not needed", ""),
    ],
)
def test_each_machine_gets_its_row(name, facts, status, message, fix):
    row = judge(name, **facts)
    assert row.status == status
    assert message in row.message
    assert fix in row.fix
    assert bool(fix) == bool(row.fix)


def test_a_probe_that_fails_becomes_a_note_and_hides_no_other(monkeypatch):
    def broken():
        raise RuntimeError("/secret/path")

    monkeypatch.setitem(doctor.CHECKS, "disk", (broken, doctor._judge_disk))
    rows = {row.name: row for row in doctor.examine().rows}
    assert len(rows) == len(NAMES)
    assert rows["disk"].status == "note"
    assert rows["disk"].message == "could not be examined (RuntimeError)"


def test_a_home_that_cannot_be_written_is_found_by_writing(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("a file where a folder should be: no user may write below it")
    monkeypatch.setenv("COURSE_HOME", str(blocked / "progress"))
    rows = {row.name: row for row in doctor.examine().rows}
    assert rows["progress"].status == "fix"
    assert rows["disk"].status in {"ok", "fix"}


def test_the_progress_probe_leaves_no_file(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    assert doctor._find_progress() == {"works": True}
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_on_the_path_none_is_found(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor._find_compiler()["found"] is False


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands in for the compiler")
def test_a_compiler_that_fails_is_not_believed(monkeypatch, tmp_path):
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = doctor._find_compiler()
    assert (facts["found"], facts["works"]) == (True, False)


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands in for nvidia-smi")
@pytest.mark.parametrize(
    ("script", "card"),
    [("echo 'GPU 0: a card'", True), ("exit 9", False), ("echo 'No devices'", False)],
)
def test_a_card_is_what_its_own_tool_lists(monkeypatch, tmp_path, script, card):
    fake = tmp_path / "nvidia-smi"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor._has_nvidia_card() is card


def find(name):
    """Return the row of one check, found on this machine and not from given facts."""
    return doctor._examine_one(name, None)


def test_without_a_gpu_the_row_says_that_this_is_fine(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: None)
    assert (find("GPU").status, "skip" in find("GPU").message) == ("note", True)
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available: torch.device("cuda")
    )
    assert find("GPU").message == "cuda is available"


def test_a_driver_that_is_too_old_is_found_by_what_torch_warns(monkeypatch):
    def available():
        warnings.warn(
            "The NVIDIA driver on your system is too old (found version 11040).", stacklevel=1
        )
        return False

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", available)
    assert (find("GPU driver").status, find("GPU driver").fix[:6]) == ("fix", "update")


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands in for nvidia-smi")
def test_a_card_that_torch_cannot_use_is_found(monkeypatch, tmp_path):
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\necho 'GPU 0: a card'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert (find("GPU build").status, find("GPU build").fix[:9]) == ("fix", "reinstall")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert (find("GPU build").status, find("GPU driver").status) == ("ok", "fix")


def test_a_small_shared_memory_is_found(monkeypatch):
    class Small:
        f_frsize, f_blocks = 4096, 16384

    monkeypatch.setattr(os, "statvfs", lambda path: Small, raising=False)
    assert "64 MiB" in find("shared memory").message
    assert "--shm-size" in find("shared memory").fix


def test_a_space_in_the_environment_or_the_cache_is_found(monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/plain")
    monkeypatch.setattr(sys, "prefix", "/a b/.venv")
    assert "COURSE_VENV" in find("spaces in paths").fix
    monkeypatch.setattr(sys, "prefix", "/plain")
    assert find("spaces in paths").status == "ok"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/c d")
    assert find("spaces in paths").fix.startswith("set TORCHINDUCTOR_CACHE_DIR")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/plain")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/e f")
    assert find("spaces in paths").fix.startswith("set TMPDIR")


def test_a_kernel_of_another_environment_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_VENV", str(tmp_path))
    assert (find("kernel").status, "Change kernel" in find("kernel").fix) == ("fix", True)
    monkeypatch.setenv("COURSE_VENV", sys.prefix)
    assert find("kernel").status == "ok"


def test_a_kernel_without_widgets_is_found(monkeypatch):
    installed = doctor._installed
    monkeypatch.setattr(
        doctor, "_installed", lambda name: None if name == "ipywidgets" else installed(name)
    )
    assert (find("widgets").status, find("widgets").fix[:10]) == ("note", "start with")


def test_no_check_needs_the_network(monkeypatch):
    def refuse(self, address):
        assert address[0] in {"127.0.0.1", "::1", "localhost"}, address

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", lambda address, *_: refuse(None, address))
    assert find("network").message == "not needed"
    assert not [row for row in doctor.examine().rows if "could not be examined" in row.message]


def test_a_name_server_that_never_answers_does_not_stop_the_doctor():
    assert doctor._within(0.05, lambda: time.sleep(5)) is False


def test_asking_for_the_start_method_does_not_fix_it():
    code = (
        "import multiprocessing as m; from helpers import doctor; doctor._find_start_method();"
        "m.set_start_method('spawn'); print(doctor._find_start_method())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'method': 'spawn'}\n"


def test_the_summary_names_what_needs_a_fix():
    good, bad = doctor.Row("disk", "ok", "fine"), doctor.Row("memory", "fix", "low", "close")
    assert doctor.Report((good,)).summary == "This machine can run the course."
    assert doctor.Report((good, bad)).summary == "To fix first: memory."
    assert str(doctor.Report((good, bad))).splitlines() == [
        "ok    disk: fine",
        "fix   memory: low",
        "      -> close",
        "",
        "To fix first: memory.",
    ]


def test_the_table_escapes_what_it_shows():
    html = doctor.Report((doctor.Row("a", "note", "<b>"),))._repr_html_()
    assert "&lt;b&gt;" in html


def test_an_unknown_check_is_refused():
    with pytest.raises(ValueError, match=r"expected names of checks, got \['gpu'\]; use Python"):
        doctor.examine(facts={"gpu": {}})
