"""What notebook 34 says about kills, files and machines, held against real processes."""

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import torch.distributed.checkpoint as dcp

from exercises import nb34
from helpers import launch
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source

SCRIPTS = ROOT / "notebooks" / "scripts"
SLURM = SCRIPTS / "recover_slurm.sh"
ANSWERS = {
    "34.1": "def train(folder, steps, make, batch, save):\n    return {}\n",
    "34.2": "def best_interval(save_seconds, seconds_between_failures, machines):\n    return {}\n",
    "34.3": "def reads(chunks, start, stop):\n    return {}\n",
    "34.4": "def newest_whole(root):\n    return {}\n",
}


@pytest.mark.parametrize("value", ["None", "'text'", "[1.5]", "{'a': 1}", "torch.ones(2)", "True"])
@pytest.mark.parametrize("id", ANSWERS)
def test_an_answer_of_another_type_gets_a_sentence(id, value):
    verdict = judge_source(id, ANSWERS[id].format(value))
    assert verdict.status == "wrong", verdict
    assert len(verdict.sentence) > 20


def test_the_best_interval_is_the_cheapest_in_a_simulation():
    save, mean, work = 30.0, 3600.0, 4e6
    best = (2 * save * mean) ** 0.5
    spent = {scale: _simulate(best * scale, save, mean, work) for scale in (0.25, 1, 4)}
    assert spent[1] < spent[0.25]
    assert spent[1] < spent[4]


def _simulate(interval, save, mean, work):
    """Return the seconds until the work is done, when failures come at random."""
    generator = random.Random(0)
    clock = done = 0.0
    failure = generator.expovariate(1 / mean)
    while done < work:
        if failure > interval + save:
            clock, done, failure = (
                clock + interval + save,
                done + interval,
                failure - interval - save,
            )
        else:
            clock, failure = clock + failure, generator.expovariate(1 / mean)
    return clock


@pytest.mark.skipif(os.name == "nt", reason="needs-root-netns: a kill is another thing on Windows")
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_save_cut_short_by_a_kill_is_not_picked_up(tmp_path):
    run = launch.torchrun(SCRIPTS / "recover_train.py", [tmp_path, "kill=4"], timeout=200)
    assert run.outcome == "failed"
    assert run.culprit == 1
    assert run.left_behind == 0
    assert (tmp_path / "step-2" / ".metadata").exists()
    assert (tmp_path / "step-4" / "__0_0.distcp").exists()
    assert not (tmp_path / "step-4" / ".metadata").exists()
    with pytest.raises(dcp.api.CheckpointException):
        dcp.load({}, checkpoint_id=tmp_path / "step-4", no_dist=True)
    namespace = {}
    exec(nb34.EXERCISES["34.4"].solution, namespace)  # noqa: S102 - our own solution
    assert namespace["newest_whole"](tmp_path) == tmp_path / "step-2"


# --- The batch script -------------------------------------------------------------------


def _options():
    lines = SLURM.read_text().splitlines()
    return dict(re.fullmatch(r"#SBATCH --([a-z-]+)=?(\S*)", x).groups() for x in _sbatch(lines))


def _sbatch(lines):
    return [line for line in lines if line.startswith("#SBATCH")]


def test_the_batch_script_asks_for_machines_one_agent_each():
    options = _options()
    assert set(options) <= {
        "job-name", "nodes", "ntasks-per-node", "gpus-per-node", "cpus-per-task", "time",
        "requeue", "open-mode",
    }  # fmt: skip
    assert options["ntasks-per-node"] == "1"
    assert int(options["nodes"]) >= 2
    assert int(options["time"]) > 0  # minutes
    assert options["open-mode"] == "append"  # else a requeued job overwrites its own log


def test_slurm_reads_all_options_before_the_first_command():
    lines = SLURM.read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    first_command = next(n for n, line in enumerate(lines) if line and not line.startswith("#"))
    assert all(n < first_command for n, line in enumerate(lines) if line.startswith("#SBATCH"))


@pytest.mark.skipif(
    shutil.which("bash") is None or os.name == "nt", reason="needs-root-netns: bash"
)
def test_the_batch_script_is_good_bash():
    done = subprocess.run(["bash", "-n", SLURM], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- Two hosts --------------------------------------------------------------------------


def _can_make_hosts():
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip"):
        return False
    name = f"c34-{uuid.uuid4().hex[:6]}"
    made = (
        subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode
        == 0
    )
    if made:
        subprocess.run(["ip", "netns", "del", name], check=True)
    own = ["unshare", "--uts", "--mount", "true"]
    return made and subprocess.run(own, check=False, capture_output=True).returncode == 0


@pytest.fixture
def hosts():
    """Make two hosts on one wire: network namespaces, a name and an address each."""
    tag = uuid.uuid4().hex[:5]
    names = [f"c34a{tag}", f"c34b{tag}"]
    try:
        for name in names:
            _ip("netns", "add", name)
        _ip("link", "add", names[0], "netns", names[0], "type", "veth",
            "peer", "name", names[1], "netns", names[1])  # fmt: skip
        for n, name in enumerate(names, 1):
            _ip("-n", name, "addr", "add", f"10.34.34.{n}/24", "dev", name)
            _ip("-n", name, "link", "set", name, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


# What Slurm does for the script: name the machines, and start one task on each.
SCONTROL = "#!/bin/bash\nprintf '%s\\n' {first} {second}\n"
SRUN = """\
#!/bin/bash
on() {{
    host=$1; shift
    ip netns exec "$host" unshare --uts --mount bash -c '
        mount --bind "$HOSTS" /etc/hosts; hostname "$0"; exec "$@"' "$host" "$@"
}}
on {first} "$@" & one=$!
on {second} "$@" & two=$!
wait $one && wait $two
"""


def _stand_ins(folder, names):
    """Write stand-ins for Slurm's programs; return the folder that holds them."""
    table = folder / "hosts"
    table.write_text("127.0.0.1 localhost\n" + "".join(
        f"10.34.34.{n} {name}\n" for n, name in enumerate(names, 1)))  # fmt: skip
    programs = folder / "programs"
    programs.mkdir()
    words = {"first": names[0], "second": names[1]}
    python = f'#!/bin/bash\nexec {shlex.quote(sys.executable)} "$@"\n'
    for name, text in {"scontrol": SCONTROL, "srun": SRUN}.items():
        (programs / name).write_text(text.format(**words))
        (programs / name).chmod(0o755)
    (programs / "python").write_text(python)
    (programs / "python").chmod(0o755)
    return programs


@pytest.mark.skipif(not _can_make_hosts(), reason="needs-root-netns")
def test_the_batch_script_trains_on_two_hosts(hosts, tmp_path):
    programs = _stand_ins(tmp_path, hosts)
    environment = {k: v for k, v in os.environ.items() if "GLOO" not in k} | {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "c[1-2]",
        "SLURM_JOB_ID": "34",
        "HOSTS": str(tmp_path / "hosts"),
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_GPUS_ON_NODE": "1",
    }
    checkpoints = tmp_path / "checkpoints"
    with (tmp_path / "log").open("w+") as log:
        job = subprocess.Popen(["bash", SLURM, checkpoints], cwd=ROOT, env=environment, stdout=log,
                               stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        try:
            assert job.wait(200) == 0, (tmp_path / "log").read_text()[-3000:]
        finally:
            for name in hosts:
                _kill_all_in(name)
    said = (tmp_path / "log").read_text()
    worlds = set(re.findall(r"rank (\d) reports .*\"world_size\": (\d)", said))
    assert worlds == {("0", "2"), ("1", "2")}
    assert (checkpoints / "step-10" / "__1_0.distcp").exists()


def _kill_all_in(host):
    found = subprocess.run(
        ["ip", "netns", "pids", host], check=False, capture_output=True, text=True
    ).stdout
    for pid in found.split():
        os.kill(int(pid), 9)
