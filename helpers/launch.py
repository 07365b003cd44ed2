"""Start scripts in several processes with torchrun, and bring back what each rank found."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from helpers import _post_mortem
from helpers._agent import MACHINE
from helpers._paths import ROOT
from helpers._rank import FOLDER

_GRACE = 5.0  # seconds between the request to end and the end
_MARK = "COURSE_LAUNCH"
# Variables of a surrounding torchrun would reach the ranks; PET_ ones are torchrun's own options.
_FOREIGN = re.compile(
    r"PET_|TORCHELASTIC_|(MASTER_(ADDR|PORT)|(GROUP_|LOCAL_|ROLE_)?(RANK|WORLD_SIZE)|ROLE_NAME)$"
)


class LaunchError(RuntimeError):
    """Say that a launch did not finish, when its values were asked for."""


@dataclass(frozen=True)
class Launch:
    """Hold how a launch ended and what its ranks reported.

    Parameters
    ----------
    outcome : str
        "finished", "failed", "timed out" or "interrupted".
    seconds : float
        From the start of torchrun until nothing was left.
    partial_values : dict of int to tuple of dict
        What each rank reported, in order, however the launch ended.
    culprit : int or None
        The rank with which the trouble began.
    root_cause : int or None
        The rank that torchrun names: the first whose end it saw.
    error : str or None
        What went wrong; the culprit's own error.
    left_behind : int
        Processes of this launch that are still there. 0, or the machine refused to end one.
    killed : int
        Processes that did not end when asked and were killed.
    logs : dict
        What each rank printed, and what torchrun printed under "torchrun".

    Examples
    --------
    >>> Launch("finished", 4.1, {0: ({"steps": 3},), 1: ({"steps": 3},)})
    finished: 2 ranks reported, 0 processes left
    """

    outcome: str
    seconds: float
    partial_values: Mapping[int, tuple[dict, ...]] = field(default_factory=dict)
    culprit: int | None = None
    root_cause: int | None = None
    error: str | None = None
    left_behind: int = 0
    killed: int = 0
    logs: Mapping[int | str, str] = field(default_factory=dict)

    @property
    def values(self) -> Mapping[int, tuple[dict, ...]]:
        """Return what each rank reported, in order; raise LaunchError unless it finished."""
        if self.outcome != "finished":
            raise LaunchError(f"{self.outcome}: {self.error}")
        return self.partial_values

    def by_rank(self, name: str) -> tuple:
        """Return the last value that each rank reported under a name, in the order of ranks.

        Parameters
        ----------
        name : str
            A keyword of ``report``.

        Returns
        -------
        tuple
            One value per rank.

        Raises
        ------
        LaunchError
            If the launch did not finish, or a rank reported no such name.

        Examples
        --------
        >>> Launch("finished", 4.1, {0: ({"loss": 2.0}, {"loss": 1.0}), 1: ({"loss": 3.0},)}).by_rank(
        ...     "loss"
        ... )
        (1.0, 3.0)
        """
        found = {}
        for rank, records in self.values.items():
            for record in records:
                if name in record:
                    found[rank] = record[name]
        missing = sorted(set(self._ranks()) - set(found))
        if missing or not found:
            known = sorted({key for records in self.values.values() for r in records for key in r})
            raise LaunchError(
                f"each rank must report {name!r}, but rank {missing[0] if missing else 0} did "
                f"not; reported were: {', '.join(known) or 'no names'}"
            )
        return tuple(found[rank] for rank in self._ranks())

    def _ranks(self):
        return [key for key in self.logs if key != "torchrun"] or list(self.partial_values)

    def log(self, rank: int | str) -> str:
        """Return what one rank printed, or what torchrun printed.

        Parameters
        ----------
        rank : int or "torchrun"
            Whose output.

        Raises
        ------
        KeyError
            If there is no such rank.

        Examples
        --------
        >>> Launch("failed", 4.1, logs={0: "hello"}).log(0)
        'hello'
        """
        if rank not in self.logs:
            known = ", ".join(map(str, self.logs))
            raise KeyError(f"there is no output of rank {rank}; there is: {known or 'none'}")
        return self.logs[rank]

    @property
    def output(self) -> str:
        """Return what all ranks printed, each line with its rank in front."""
        return "\n".join(
            f"rank {rank} | {line}" for rank in self._ranks() for line in self._lines(rank)
        )

    def _lines(self, rank):
        return self.logs.get(rank, "").splitlines()

    def __repr__(self) -> str:
        ranks = f"{len(self.partial_values)} ranks reported"
        head = f"{self.outcome}: {ranks}, {self.left_behind} processes left"
        return f"{head}\n{self.error}" if self.error else head


def torchrun(
    script: str | Path,
    args: Sequence[object] = (),
    *,
    processes: int = 2,
    machines: int | tuple[int, int] = 1,
    restarts: int = 0,
    timeout: float = 60.0,
    env: Mapping[str, str] | None = None,
) -> Launch:
    """Run a script in several processes with torchrun and wait until all of them are gone.

    One thread per process, no fixed port, everything on the loopback interface. Whatever happens,
    an error, a hang, an interrupt or the end of this process, no process stays behind.

    Parameters
    ----------
    script : path
        The program; a relative path counts from the working directory, else from ``notebooks/``.
    args : sequence
        Arguments of the script; each is turned to text.
    processes : int
        Per machine.
    machines : int or (int, int)
        Agents to start, each a "machine" on this one. A pair starts the second number of them and
        goes on while the first number is left.
    restarts : int
        How often torchrun may start all ranks anew after a failure.
    timeout : float
        Seconds for all of it.
    env : mapping, optional
        Environment variables of the ranks, on top of those of this process.

    Returns
    -------
    Launch
        How it ended and what the ranks reported. A failure raises only when values are asked for.

    Raises
    ------
    FileNotFoundError
        If there is no such script.
    ValueError
        If a number is out of range.

    See Also
    --------
    torchrun : https://docs.pytorch.org/docs/stable/elastic/run.html

    Examples
    --------
    >>> torchrun("scripts/missing.py")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no script scripts/missing.py, neither here nor in notebooks/
    """
    script = _find(script)
    fewest, most = _check(processes, machines, restarts, timeout)
    mark = uuid.uuid4().hex
    folder = Path(tempfile.mkdtemp(prefix="launch-")).resolve()
    try:
        common = [f"--nproc-per-node={processes}", f"--max-restarts={restarts}"]
        common += [f"--log-dir={folder}", "-m", "helpers._rank", str(script), *map(str, args)]
        commands = [[*where, *common] for where in _rendezvous(fewest, most)]
        start = time.monotonic()
        stop, killed = _run(commands, _environment(folder, mark, env or {}), mark, timeout)
        seconds = time.monotonic() - start
        seen = _Remains(folder, script, stop, seconds, killed, len(_marked(mark)))
        return seen.launch(fewest)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def command(script: str | Path, args: Sequence[object] = (), *, processes: int = 2) -> str:
    """Return the command that runs the script by hand, from the folder of the course.

    Parameters
    ----------
    script : path
        As for ``torchrun``.
    args : sequence
        Arguments of the script.
    processes : int
        Ranks.

    Returns
    -------
    str
        For a shell. Without an installed course Python finds the helpers through PYTHONPATH.

    Examples
    --------
    >>> command(ROOT / "course.py", [1]).removeprefix("PYTHONPATH=. ")
    'python -m torch.distributed.run --standalone --nproc-per-node=2 course.py 1'
    """
    script = _find(script)
    if script.is_relative_to(ROOT):
        script = script.relative_to(ROOT)
    words = ["python", "-m", "torch.distributed.run", "--standalone"]
    words += [f"--nproc-per-node={processes}", script.as_posix(), *map(str, args)]
    return ("" if os.name == "nt" else "PYTHONPATH=. ") + shlex.join(words)


def report(**values: object) -> None:
    """Hand values from a rank to the notebook that launched it.

    Parameters
    ----------
    **values
        Numbers, texts, lists, dictionaries, tensors or arrays: what JSON holds or ``tolist`` makes
        of it. A script that runs by hand prints them.

    Raises
    ------
    TypeError
        If a value is something else.

    Examples
    --------
    >>> report(loss=0.5)
    rank 0 reports {"loss": 0.5}
    """
    rank = int(os.environ.get("RANK", "0"))
    folder = os.environ.get(FOLDER)
    if folder is None:
        sys.stdout.write(f"rank {rank} reports {json.dumps(values, default=_plain)}\n")
        return
    record = {"rank": rank, "time": time.time(), "values": values}
    line = json.dumps(record, default=_plain) + "\n"
    with Path(folder, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line)


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(
        f"report takes what JSON holds, tensors and arrays, got {type(value).__name__}; "
        "turn it into a number, a text, a list or a dictionary"
    )


def finish(*models: object) -> None:
    """End a distributed script in order: let the models go, wait for all ranks, leave the group.

    A DistributedDataParallel model that is alive when the interpreter ends can abort a process
    after all its work is done. The caller's variable would keep it alive, so this takes the
    model apart: use it no more.

    Parameters
    ----------
    *models : torch.nn.Module
        Every wrapped model of the script.

    See Also
    --------
    Process groups, shutdown : https://docs.pytorch.org/docs/stable/distributed.html#shutdown

    Examples
    --------
    >>> finish()
    """
    import gc

    import torch.distributed as dist

    for model in models:
        vars(model).clear()
    gc.collect()
    if dist.is_available() and dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def _find(script):
    for path in (Path(script), ROOT / "notebooks" / script):
        if path.is_file():
            return path.resolve()
    raise FileNotFoundError(f"no script {script}, neither here nor in notebooks/")


def _check(processes, machines, restarts, timeout):
    fewest, most = machines if isinstance(machines, tuple) else (machines, machines)
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    if not 1 <= fewest <= most:
        raise ValueError(f"machines must be at least 1, or a pair such as (1, 2), got {machines}")
    if restarts < 0:
        raise ValueError(f"restarts must not be negative, got {restarts}")
    if timeout <= 0:
        raise ValueError(f"timeout must be positive, got {timeout} s; a start takes about 5 s")
    return fewest, most


def _rendezvous(fewest, most):
    """Return for each machine the options that say where the agents meet."""
    if most == 1:
        return [["--standalone", "--local-addr=127.0.0.1"]]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # A machine that dies is missed after 3 s; a smaller group forms 5 s after its first member.
    quick = "keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=5"
    options = [
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}",
        f"--rdzv-id={uuid.uuid4().hex}",
        f"--nnodes={fewest}:{most}",
        "--local-addr=127.0.0.1",
    ]
    return [[*options, f"--rdzv-conf=is_host={int(n == 0)},{quick}"] for n in range(most)]


def _environment(folder, mark, extra):
    kept = {key: value for key, value in os.environ.items() if not _FOREIGN.match(key)}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    kept |= {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": path,
        "PYTHONIOENCODING": "utf-8",
        "PYTHONUNBUFFERED": "1",
        # With the shared store, ranks of a restart read addresses of dead ones (pytorch#135712).
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        FOLDER: str(folder),
        _MARK: mark,
    }
    kept |= _system_settings(os.name, sys.platform)
    return kept | {key: str(value) for key, value in extra.items()}


def _system_settings(name, platform):
    if name == "nt":
        return {"USE_LIBUV": "0"}  # torch's wheels for Windows are built without it
    return {"GLOO_SOCKET_IFNAME": "lo" if platform == "linux" else "lo0"}


def _run(commands, env, mark, timeout):
    """Start the agents and wait; return why they were stopped, or None, and how many died of it."""
    deadline = time.monotonic() + timeout
    agents, stop, killed = [], None, 0
    try:
        for machine, options in enumerate(commands):
            agents.append(_start(options, env | {MACHINE: str(machine)}))
        for agent in agents:
            agent.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        stop = "timed out"
    except KeyboardInterrupt:
        stop = "interrupted"
    finally:
        killed = _end(agents, mark)
    return stop, killed


def _start(options, env):
    log = Path(env[FOLDER], f"agent-{env[MACHINE]}.log")
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "helpers._agent", *options],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,  # an interrupt of the notebook must not reach it by itself
        )


def _end(agents, mark):
    """Ask the agents to end, then kill every process of this launch; return how many."""
    import psutil

    try:
        for agent in agents:
            if agent.poll() is None:
                agent.send_signal(signal.SIGTERM)  # the agent forwards it to its ranks
        limit = time.monotonic() + _GRACE
        for agent in agents:
            agent.wait(max(0.0, limit - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    victims = _marked(mark)
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    for agent in agents:  # before psutil waits: whoever waits first gets the exit code
        agent.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(_GRACE)
    psutil.wait_procs(victims, _GRACE)
    return len(victims)


def _marked(mark):
    """Return the living processes that carry this launch in their environment."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone, or somebody else's
    return found


@dataclass(frozen=True)
class _Remains:
    """Hold what a launch left in its folder, and make a Launch of it."""

    folder: Path
    script: Path
    stop: str | None
    seconds: float
    killed: int
    left_behind: int

    def launch(self, fewest):
        agents = [_post_mortem.read_json(p) for p in sorted(self.folder.glob("agent-*.json"))]
        ranks = _post_mortem.read_ranks(self.folder)
        done = [agent["finished"] for agent in agents if agent]
        returned = [rank.how == "returned" for rank in ranks.values()]
        finished = not self.stop and all(done + returned) and len(done) >= fewest
        outcome = self.stop or ("finished" if finished else "failed")
        codes = {int(n): c for a in agents if a for n, c in a["codes"].items()}
        culprit, error = self._blame(outcome, ranks, codes)
        return Launch(
            outcome=outcome,
            seconds=self.seconds,
            partial_values=_post_mortem.read_records(self.folder),
            culprit=culprit,
            root_cause=next((a["root_cause"] for a in agents if a and a["codes"]), None),
            error=error,
            left_behind=self.left_behind,
            killed=self.killed,
            logs={n: rank.log for n, rank in ranks.items()} | {"torchrun": self._agents()},
        )

    def _blame(self, outcome, ranks, codes):
        if outcome == "finished":
            return None, None
        if outcome != "failed":
            return None, _post_mortem.where_each_was(ranks, self.script)
        culprit = _post_mortem.find_culprit(ranks, codes)
        return culprit, _post_mortem.tell(ranks, codes, culprit, self.script)

    def _agents(self):
        logs = sorted(self.folder.glob("agent-*.log"))
        return "\n".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)
