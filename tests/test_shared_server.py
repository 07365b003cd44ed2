"""What a class on one machine needs: computed from fakes, and measured once for real."""

import json
import platform
import sys

import psutil
import pytest

from tools import shared_kernels, shared_ports, shared_server
from tools.shared_kernels import Use
from tools.shared_server import Machine, Measured

MIB, GIB = 2**20, 2**30
LARGE = Machine(
    cores=32, memory=64 * GIB, shared_memory=8 * GIB, disk=99 * GIB, environment=2 * GIB,
    copies=MIB,
)  # fmt: skip


def use(peak=700, own=200, shared=50, threads=9, start=2.0, failed=""):
    return Use(start, own * MIB, shared * MIB, peak * MIB, threads, failed)


def measured(*kernels, server=100 * MIB, ports=None):
    return Measured(list(kernels or [use(), use(peak=900)]), server, ports or {"service": ""})


def rows(users=20, found=None, machine=LARGE):
    found = shared_server.advise(users, found or measured(), machine)
    return {row.name: row for row in found}


def test_a_machine_with_room_is_said_to_have_it_word_first():
    found = rows()
    assert [row.status for row in found.values()] == ["ok"] * 6
    assert str(found["memory"]).startswith("ok    memory: 200 MiB per kernel after setup")
    assert "20 users need 20.7 GiB, 64.0 GiB are available" in found["memory"].message


def test_memory_counts_the_largest_peak_for_each_and_shared_bytes_once():
    assert shared_server.memory_needed(20, measured()) == 20 * 1000 * MIB + 2 * 50 * MIB + GIB
    assert shared_server.memory_needed(0, measured()) == 2 * 50 * MIB + GIB


def test_too_little_memory_says_how_many_fit():
    machine = Machine(32, 11 * GIB, 8 * GIB, 99 * GIB, 2 * GIB, MIB)
    row = rows(machine=machine)["memory"]
    assert row.status == "fix"
    assert row.fix.startswith("10 users fit here")
    tiny = Machine(32, GIB // 2, 8 * GIB, 99 * GIB, 2 * GIB, MIB)
    assert rows(machine=tiny)["memory"].fix.startswith("0 users fit here")


@pytest.mark.parametrize(
    ("users", "threads", "word"), [(20, 1, "ok"), (8, 4, "ok"), (64, 1, "note")]
)
def test_threads_per_user_follow_from_the_cores(users, threads, word):
    row = rows(users)["cores"]
    assert f"OMP_NUM_THREADS={threads} for each" in row.message
    assert row.status == word
    assert (word == "note") == ("2 users wait for one core" in row.fix)


def test_the_environment_is_counted_once_where_it_is_shared():
    row = rows()["disk"]
    assert "shared by 20 users 2.1 GiB" in row.message
    assert "one for each 40.1 GiB" in row.message
    full = Machine(32, 64 * GIB, 8 * GIB, GIB, 2 * GIB, MIB)
    assert rows(machine=full)["disk"].status == "fix"


@pytest.mark.parametrize(("size", "word"), [(None, "ok"), (2 * GIB, "ok"), (64 * MIB, "note")])
def test_a_small_or_absent_shared_memory_is_named(size, word):
    row = rows(machine=Machine(32, 64 * GIB, size, 99 * GIB, 2 * GIB, MIB))["shared memory"]
    assert row.status == word
    assert (word == "note") == ("--shm-size" in row.fix)


def test_a_port_that_two_wanted_is_named_with_its_program():
    row = rows(found=measured(ports={"torchrun": "", "service": "address already in use"}))["ports"]
    assert (row.status, row.message) == ("fix", "service: address already in use")


def test_a_cell_that_failed_is_shown():
    row = rows(found=measured(use(failed="MemoryError: no")))["kernels"]
    assert (row.status, row.fix) == ("fix", "a cell failed: MemoryError: no")


def test_a_jupyterlab_that_never_came_up_is_a_fault():
    assert rows(found=measured(server=None))["memory"].status == "fix"


def test_the_rows_name_no_machine_and_no_folder(capsys):
    text = " ".join(map(str, rows().values()))
    assert platform.node() not in text.split()
    assert sys.prefix not in text


@pytest.mark.parametrize("arguments", [["--users", "0"], ["--kernels", "0"], ["--kernels", "99"]])
def test_numbers_out_of_range_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        shared_server.main(arguments)
    assert "use --kernels 3" in capsys.readouterr().err


def test_the_command_measures_prints_and_says_whether_a_fix_is_needed(monkeypatch, capsys):
    monkeypatch.setattr(shared_kernels, "measure", lambda path, kernels: [use()] * kernels)
    monkeypatch.setattr(shared_kernels, "server_memory", lambda: 100 * MIB)
    monkeypatch.setattr(shared_ports, "examine", lambda: {"service": ""})
    monkeypatch.setattr(shared_server, "read_machine", lambda: LARGE)
    assert shared_server.main(["--users", "5"]) == 0
    assert "5 users need" in capsys.readouterr().out
    monkeypatch.setattr(shared_ports, "examine", lambda: {"service": "no port"})
    assert shared_server.main([]) == 1


def test_this_machine_is_read_without_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(shared_server.sysconfig, "get_path", lambda name: str(tmp_path))
    (tmp_path / "file").write_bytes(b"x" * 1000)
    machine = shared_server.read_machine()
    assert machine.environment == 1000
    assert machine.cores >= 1
    assert machine.copies > MIB // 4


# For real, small


@pytest.fixture
def tiny(tmp_path):
    """A notebook whose setup cell is known by its last line, and one cell that takes memory."""
    cells = ["describe_machine = print", "x = 0\ndescribe_machine()", "block = bytes(50_000_000)"]
    nb = {"cells": [{"cell_type": "code", "source": [source]} for source in cells]}
    (tmp_path / "99_tiny.ipynb").write_text(json.dumps(nb))
    return tmp_path / "99_tiny.ipynb"


def test_the_setup_cell_divides_a_notebook(tiny):
    setup, rest = shared_kernels.cells_of(tiny)
    assert (len(setup), rest) == (2, ["block = bytes(50_000_000)"])


def children():
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_kernels_are_measured_at_once_and_none_is_left(tiny):
    before = children()
    uses = shared_kernels.measure(tiny, kernels=2, wait=60)
    assert [use.failed for use in uses] == ["", ""]
    assert all(use.peak >= use.own > MIB for use in uses)
    assert all(use.threads >= 1 and use.start > 0 for use in uses)
    assert children() <= before


def test_a_cell_that_raises_is_kept_and_the_other_kernels_go_on(tiny):
    tiny.write_text(tiny.read_text().replace("block = bytes(50_000_000)", "1 / 0"))
    (use,) = shared_kernels.measure(tiny, kernels=1, wait=60)
    assert use.failed == "ZeroDivisionError: division by zero"


def test_two_programs_at_two_addresses_are_no_fault():
    program = "import os; print(f'http://127.0.0.1:{os.getpid()}', flush=True); input()"
    assert shared_ports.two_at_once(program) == ""


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("print('http://127.0.0.1:8000', flush=True); input()", "both answered at http"),
        ("raise OSError('address already in use')", "OSError: address already in use"),
    ],
)
def test_two_programs_that_clash_are_named_and_ended(program, says):
    before = children()
    assert shared_ports.two_at_once(program).startswith(says)
    assert children() <= before


def test_two_torchruns_at_once_both_run():
    name, program = next(iter(shared_ports.PROGRAMS.items()))
    assert "torchrun" in name
    assert shared_ports.examine({name: program}) == {name: ""}
