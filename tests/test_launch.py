"""Ranks report; whatever goes wrong, its reason is named and no process stays behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from torch import nn

from helpers import _post_mortem, launch
from helpers._paths import ROOT
from helpers._post_mortem import Rank

UNIX = pytest.mark.skipif(os.name == "nt", reason="signals as Unix has them")
GLOO = """
import datetime, os, signal, sys, time
import torch, torch.distributed as dist
from helpers.launch import finish, report
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=float(os.environ.get("GROUP", 30))))
rank = dist.get_rank()
"""


@pytest.fixture
def script(tmp_path):
    def write(source):
        path = tmp_path / "a folder" / "my script.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return path

    return write


def carriers(variable):
    """Return the processes of the launches that were given this variable."""
    found = []
    for process in psutil.process_iter():
        try:
            if variable in process.environ():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_ranks_report_and_print_and_get_their_arguments(script):
    path = script(
        GLOO
        + """
print("hello")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.full((1, 2), float(rank))).sum().backward()
report(step=0)
report(step=1, gradient=model.module.weight.grad, words=sys.argv[1:], rank=rank,
       threads=torch.get_num_threads(), color=os.environ["COLOR"], beside=sys.path[0])
finish(model)
"""
    )
    done = launch.torchrun(path, ["a b", 3], env={"COLOR": "green"})
    assert repr(done) == "finished: 2 ranks reported, 0 processes left"
    assert done.by_rank("rank") == (0, 1)
    assert done.by_rank("step") == (1, 1)
    assert done.by_rank("gradient") == ([[0.5, 0.5]],) * 2
    assert done.by_rank("words") == (["a b", "3"],) * 2
    assert done.by_rank("threads") == (1, 1)
    assert done.by_rank("color") == ("green", "green")
    assert {Path(folder) for folder in done.by_rank("beside")} == {path.parent}
    assert done.values[1][0] == {"step": 0}
    assert "rank 1 | hello" in done.output.splitlines()
    assert done.log(0).startswith("hello\n")
    assert 0 < done.seconds < 60
    assert done.error is done.culprit is done.root_cause is None


def test_one_process_gets_one_thread_too_and_the_surroundings_do_not_leak_in(script, monkeypatch):
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("PET_NPROC_PER_NODE", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
    source = f"import os\nfrom helpers.launch import report\nreport(**{{n: os.environ[n] for n in {names}}})"
    done = launch.torchrun(script(source), processes=1)
    assert done.values == {
        0: ({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "OMP_NUM_THREADS": "1"},)
    }


def test_the_first_error_is_named_and_not_its_echo(script):
    path = script(
        GLOO
        + """
for step in range(5):
    if rank == 1 and step == 3:
        raise ValueError("step 3 is bad")
    dist.all_reduce(torch.ones(1))
    report(step=step)
"""
    )
    done = launch.torchrun(path)
    assert done.outcome == "failed"
    assert done.culprit == 1
    assert done.error.startswith("rank 1 raised:\nTraceback (most recent call last):\n")
    assert done.error.endswith("ValueError: step 3 is bad")
    assert 'File "my script.py", line 10, in <module>' in done.error
    assert str(path.parent) not in done.error
    assert "_rank.py" not in done.error
    assert done.error in repr(done)
    assert [record["step"] for record in done.partial_values[0]] == [0, 1, 2]
    assert done.left_behind == 0
    with pytest.raises(launch.LaunchError, match=r"(?s)^failed: rank 1 raised.*step 3 is bad$"):
        done.by_rank("step")


@UNIX
def test_a_killed_rank_is_named_although_only_the_other_one_complains(script):
    path = script(
        GLOO
        + """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
"""
    )
    done = launch.torchrun(path)
    assert (done.outcome, done.culprit, done.left_behind) == ("failed", 1, 0)
    assert done.error.startswith("rank 1 died of signal SIGKILL")


def test_a_rank_that_did_fewer_steps_is_named_although_it_succeeded(script):
    path = script(
        GLOO
        + """
dist.all_reduce(torch.ones(1))
if rank == 1:
    sys.exit(0)
dist.all_reduce(torch.ones(1))
"""
    )
    done = launch.torchrun(path)
    assert (done.outcome, done.culprit) == ("failed", 1)
    assert "did it do fewer steps?\nrank 0 raised:\nTraceback" in done.error


@UNIX
def test_a_rank_that_does_not_come_is_named_with_its_line(script):
    path = script(
        GLOO
        + """
if rank == 1:
    time.sleep(50)
dist.all_reduce(torch.ones(1))
"""
    )
    done = launch.torchrun(path, env={"GROUP": "2"})
    assert (done.outcome, done.culprit) == ("failed", 1)
    assert done.error.startswith("rank 1 did not come; it was at line 9: time.sleep(50)\n")
    assert "Timed out waiting 2000ms" in done.error


@UNIX
def test_a_hang_ends_with_the_line_of_each_rank_even_where_a_rank_will_not_die(script):
    path = script(
        """
import os, signal, subprocess, sys, time
if os.environ["RANK"] == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # In a session of its own: no signal to a group reaches it.
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
while True:
    time.sleep(0.01)
"""
    )
    started = time.monotonic()
    done = launch.torchrun(path, timeout=10, env={"HANG_TEST": "1"})
    assert time.monotonic() - started < 30
    assert (done.outcome, done.culprit, done.left_behind) == ("timed out", None, 0)
    assert done.error == "rank 0: line 8: time.sleep(0.01)\nrank 1: an unknown line"
    assert done.killed >= 2
    assert carriers("HANG_TEST") == []


WAITS = "import pathlib, sys, time\npathlib.Path(sys.argv[1]).touch()\ntime.sleep(60)\n"
LAUNCHES = """
import signal, sys
from helpers import launch
# A shell's background job ignores Ctrl-C and hands that on; a notebook kernel does not.
signal.signal(signal.SIGINT, signal.default_int_handler)
print(launch.torchrun(*sys.argv[1:2], sys.argv[2:], env={sys.argv[2][-9:]: "1"}))
"""


@UNIX
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_or_the_death_of_the_notebook_ends_all_ranks(script, tmp_path, end):
    flag = tmp_path / f"FLAG_{end.name:_<4.4}"
    program = [sys.executable, "-c", LAUNCHES, str(script(WAITS)), str(flag)]
    notebook = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    limit = time.monotonic() + 90
    while not flag.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    assert len(carriers(flag.name)) == 3
    notebook.send_signal(end)
    said = notebook.communicate(timeout=120)[0]
    assert said.startswith("interrupted: 0 ranks reported, 0 processes left") == (
        end == signal.SIGINT
    )
    while carriers(flag.name) and time.monotonic() < limit:
        time.sleep(0.05)
    assert carriers(flag.name) == []


def test_a_port_in_use_and_a_second_initialization_say_what_they_are(script):
    path = script(
        """
import os, sys
import torch.distributed as dist
if os.environ["RANK"] == "1":
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    except ValueError as error:
        print(error)
    dist.destroy_process_group()
else:
    dist.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=True)
"""
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = launch.torchrun(path, [port])
    assert (done.outcome, done.culprit) == ("failed", 0)
    assert f"port: {port}" in done.error
    assert "EADDRINUSE" in done.error
    assert "trying to initialize the default process group twice" in done.log(1)


@UNIX
def test_an_abort_after_the_work_is_told_as_that_and_not_tried_again(script):
    path = script(
        """
import atexit, os
from helpers.launch import report
report(done=True)
atexit.register(os.abort)
"""
    )
    done = launch.torchrun(path, processes=1)
    assert (done.outcome, done.culprit) == ("failed", 0)
    assert done.error == (
        "rank 0 died of signal SIGABRT after its work was done; does the script end with "
        "finish(model)?"
    )
    assert done.partial_values == {0: ({"done": True},)}


def test_a_rank_that_slips_away_has_not_finished(script):
    done = launch.torchrun(script("import os\nos._exit(0)"), processes=1)
    assert (done.outcome, done.culprit) == ("failed", 0)
    assert done.error == "rank 0 left with exit code 0 before the end of the script"


@UNIX
def test_restarts_start_all_ranks_anew(script):
    path = script(
        GLOO
        + """
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
report(attempt=attempt)
if rank == 1 and attempt == 0:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
finish()
"""
    )
    done = launch.torchrun(path, restarts=1)
    assert done.values == {n: ({"attempt": 0}, {"attempt": 1}) for n in (0, 1)}


def test_two_machines_have_ranks_that_go_on_and_local_ranks_that_begin_anew(script):
    names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE")
    source = f"import os\nfrom helpers.launch import report\nreport(**{{n: int(os.environ[n]) for n in {names}}})"
    done = launch.torchrun(script(source), machines=2)
    assert done.by_rank("RANK") == (0, 1, 2, 3)
    assert done.by_rank("LOCAL_RANK") == (0, 1, 0, 1)
    assert done.by_rank("GROUP_RANK") == (0, 0, 1, 1)
    assert done.by_rank("WORLD_SIZE") == (4, 4, 4, 4)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"processes": 0}, r"^processes must be at least 1, got 0$"),
        ({"machines": 0}, r"^machines must be at least 1, or a pair such as \(1, 2\), got 0$"),
        ({"machines": (2, 1)}, r"^machines must be at least 1, .* got \(2, 1\)$"),
        ({"restarts": -1}, r"^restarts must not be negative, got -1$"),
        ({"timeout": 0}, r"^timeout must be positive, got 0 s; a start takes about 5 s$"),
    ],
)
def test_numbers_out_of_range_are_refused(script, options, says):
    with pytest.raises(ValueError, match=says):
        launch.torchrun(script(""), **options)


def test_by_rank_tells_which_rank_reported_nothing():
    done = launch.Launch("finished", 1.0, {0: ({"a": 1},), 1: ({"b": 2},)}, logs={0: "", 1: ""})
    with pytest.raises(launch.LaunchError, match=r"'a', but rank 1 did not; .*: a, b$"):
        done.by_rank("a")
    silent = launch.Launch("finished", 1.0, logs={0: "", "torchrun": ""})
    with pytest.raises(launch.LaunchError, match=r"but rank 0 did not; reported were: no names$"):
        silent.by_rank("a")
    with pytest.raises(KeyError, match=r"no output of rank 5; there is: 0, torchrun"):
        silent.log(5)


def test_report_by_hand_prints_and_refuses_what_json_cannot_hold(capsys, monkeypatch):
    monkeypatch.delenv("COURSE_LAUNCH_FOLDER", raising=False)
    launch.report(weight=torch.ones(2), name="a")
    assert capsys.readouterr().out == 'rank 0 reports {"weight": [1.0, 1.0], "name": "a"}\n'
    with pytest.raises(TypeError, match=r"^report takes what JSON holds, .* got object; turn it"):
        launch.report(thing=object())


def test_finish_takes_a_model_apart_that_the_caller_still_holds():
    model = nn.Linear(1, 1)
    launch.finish(model)
    assert vars(model) == {}


def test_the_command_by_hand_holds_no_folder_of_this_machine():
    script = ROOT / "notebooks" / "scripts" / "faulty_models.py"
    said = launch.command(script, ["a b"], processes=4).removeprefix("PYTHONPATH=. ")
    assert said == (
        "python -m torch.distributed.run --standalone --nproc-per-node=4 "
        "notebooks/scripts/faulty_models.py 'a b'"
    )
    assert launch.command("scripts/faulty_models.py") == launch.command(script)


def test_systems_get_what_gloo_needs_there():
    assert launch._system_settings("nt", "win32") == {"USE_LIBUV": "0"}
    assert launch._system_settings("posix", "linux") == {"GLOO_SOCKET_IFNAME": "lo"}
    assert launch._system_settings("posix", "darwin") == {"GLOO_SOCKET_IFNAME": "lo0"}


CLOSED = "RuntimeError: Connection closed by peer [127.0.0.1]:123"
WAITED = "RuntimeError: Timed out waiting 2000ms for recv operation to complete"


def raised(n, at, text):
    return Rank(n, "raised", 0.0, at, text)


def returned(n, at):
    return Rank(n, "returned", 0.0, at)


def running(n):
    return Rank(n, "running", 0.0)


@pytest.mark.parametrize(
    ("ranks", "codes", "culprit"),
    [
        ([raised(0, 1.0, CLOSED), raised(1, 1.1, "ValueError: x")], {0: 1, 1: 1}, 1),
        ([raised(0, 1.0, "ValueError: x"), raised(1, 0.9, "TypeError: y")], {0: 1, 1: 1}, 1),
        ([raised(0, 1.0, CLOSED), returned(1, 0.5)], {0: 1}, 1),
        ([raised(0, 1.0, "ValueError: x"), returned(1, 0.5)], {0: 1}, 0),
        ([raised(0, 1.0, CLOSED), running(1)], {0: 1, 1: -9}, 1),
        ([raised(0, 1.0, "ValueError: x"), running(1)], {0: 1, 1: -6}, 0),
        ([raised(0, 1.0, CLOSED), running(1)], {0: 1, 1: -6}, 1),
        ([running(0), running(1)], {0: -6, 1: -11}, 1),
        ([raised(0, 1.0, WAITED), running(1)], {0: 1, 1: -15}, 1),
        ([raised(0, 1.1, WAITED), raised(1, 1.0, CLOSED)], {0: 1, 1: 1}, 0),
        ([raised(0, 1.0, CLOSED), returned(1, 0.5)], {0: 1, 1: -6}, 1),
        ([raised(0, 1.0, CLOSED), running(1)], {0: 1}, 1),
        ([raised(0, 1.0, CLOSED), running(1)], {0: 1, 1: -15}, 0),
        ([raised(0, 1.0, WAITED), running(1), running(2)], {0: 1, 1: -15, 2: -15}, 0),
        ([raised(0, 1.0, CLOSED), running(1)], {0: 1, 1: 3}, 1),
        ([returned(0, 1.0), running(1)], {}, 1),
        ([returned(0, 1.0)], {}, None),
    ],
)
def test_the_rank_with_which_it_began_is_found(ranks, codes, culprit):
    by_rank = {rank.rank: rank for rank in ranks}
    assert _post_mortem.find_culprit(by_rank, codes) == culprit
    told = _post_mortem.tell(by_rank, codes, culprit, "x.py")
    assert told.startswith("torchrun failed" if culprit is None else f"rank {culprit} ")


def test_errors_lose_what_differs_from_run_to_run():
    text = (
        'File "/home/me/a b/train.py", line 3\n'
        "[/pytorch/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:40321"
        " port: 29500 \U0001f4a5 "
    )
    assert _post_mortem.mask(text) == (
        'File "train.py", line 3\n[pair.cc] Connection closed by peer [127.0.0.1]:PORT port: 29500'
    )


def test_half_a_record_of_a_killed_rank_is_left_out(tmp_path):
    line = '{"rank": 1, "time": 1.0, "values": {"a": 1}}\n'
    (tmp_path / "12.jsonl").write_text(line + '{"rank": 1, "ti')
    assert _post_mortem.read_records(tmp_path) == {1: ({"a": 1},)}


def test_ranks_of_a_start_that_was_larger_are_left_out(tmp_path):
    state = '{{"rank": {}, "world_size": {}, "started": {}, "ended": null, "how": "running"}}'
    for rank, world_size, started in [(0, 2, 1.0), (1, 2, 1.0), (0, 1, 5.0)]:
        path = tmp_path / f"{started:.0f}{rank}-7.json"
        path.write_text(state.format(rank, world_size, started))
    (tmp_path / "33-8.json").write_text("{")
    found = _post_mortem.read_ranks(tmp_path)
    assert {n: rank.started for n, rank in found.items()} == {0: 5.0}
