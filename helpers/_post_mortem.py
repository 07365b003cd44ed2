"""Read what the ranks of a launch left behind, and name the one with which its trouble began."""

import json
import re
import signal
from dataclasses import dataclass
from pathlib import Path

LOG_LIMIT = 1 << 20  # bytes of each rank's output that are kept, the last ones
_LAST_LINES = 12
# What a rank says when another one is gone or does not come.
_ECHO = re.compile(
    r"Connection (closed|reset|refused)|connectFullMesh|Timed out waiting|Broken pipe|"
    r"wait timeout|failed to recv|recvValue failed|NCCL error|remote process exited",
    re.IGNORECASE,
)
_ABORT = -6  # SIGABRT, which Windows lacks
_LATE = re.compile(r"Timed out waiting|wait timeout|timed out", re.IGNORECASE)


@dataclass(frozen=True)
class Rank:
    """Hold how one rank ended.

    Parameters
    ----------
    rank : int
        Its number.
    how : str
        "returned", "raised", or "running" where it left no word.
    started, ended : float
        Seconds since the epoch; `ended` is None where it left no word.
    text : str
        The traceback from the script's own frame on, when it raised.
    log : str
        What it printed.
    stack : str
        Where it was when it was told to stop.
    """

    rank: int
    how: str
    started: float
    ended: float | None = None
    text: str = ""
    log: str = ""
    stack: str = ""

    @property
    def echoes(self):
        """Tell whether its error speaks of another rank."""
        return self.how == "raised" and bool(_ECHO.search(self.text))

    def line(self, script):
        """Return the line of the script where it raised or was told to stop, or None."""
        pattern = rf'File "{re.escape(str(script))}", line (\d+)'
        # A stack begins with the innermost frame, a traceback ends with it.
        found = re.findall(pattern, self.stack) or re.findall(pattern, self.text)[::-1]
        if not found:
            return None
        number = int(found[0])
        source = Path(script).read_text(encoding="utf-8").splitlines()
        return f"line {number}: {source[number - 1].strip()}"


def read_ranks(folder):
    """Return the last process of each rank of the last start, by rank."""
    states = [(read_json(path), path) for path in folder.glob("[0-9]*-*.json")]
    states = sorted(((s, p) for s, p in states if s), key=lambda pair: pair[0]["started"])
    if not states:
        return {}
    last = {state["rank"]: (state, path) for state, path in states}
    # After the loss of a machine the last start has fewer ranks than the first one.
    world_size = states[-1][0]["world_size"]
    return {n: _rank(*last[n]) for n in sorted(last) if n < world_size}


def _rank(state, path):
    return Rank(
        rank=state["rank"],
        how=state["how"],
        started=state["started"],
        ended=state["ended"],
        text=state.get("text", ""),
        log=_tail(path.with_suffix(".log")),
        stack=_tail(path.with_suffix(".stack")),
    )


def read_records(folder):
    """Return what the ranks reported, by rank, in the order of time."""
    records = []
    for path in folder.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:
                continue  # the process was killed in the middle of this line
    records.sort(key=lambda record: record["time"])
    ranks = sorted({record["rank"] for record in records})
    return {n: tuple(r["values"] for r in records if r["rank"] == n) for n in ranks}


def read_json(path):
    """Return the content of a JSON file, or None where there is no whole one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _tail(path):
    try:
        data = path.read_bytes()
    except OSError:
        return ""
    return data[-LOG_LIMIT:].decode("utf-8", "replace")


def find_culprit(ranks, codes):
    """Return the rank with which the trouble began, or None.

    A rank that a signal killed comes before one that raised, an error of its own before an error
    that speaks of another rank. Where all errors speak of others, a rank that ended earlier, or
    the only one that never came, is the reason.
    """
    raised = _raised(ranks)
    own = [rank.rank for rank in raised if not rank.echoes]
    dead = [n for n, rank in ranks.items() if _died(rank, codes)]
    # An abort may be the answer of C++ to another rank's end; other signals come from outside.
    dead.sort(key=lambda n: codes.get(n) == _ABORT)
    if dead and (codes.get(dead[0]) != _ABORT or not own):
        return dead[0]
    if own or not raised:
        return own[0] if own else _left_early(ranks)
    first = raised[0]
    end = min(rank.ended for rank in raised)
    earlier = [r for r in ranks.values() if r.how == "returned" and r.ended < end]
    if earlier:
        return min(earlier, key=lambda rank: rank.ended).rank
    gone = [n for n, rank in ranks.items() if _slipped_away(rank, codes)]
    if gone:
        return gone[0]
    waiting = [n for n, rank in ranks.items() if rank.how == "running"]
    if len(waiting) == 1 and _LATE.search(first.text):
        return waiting[0]
    return first.rank


def _raised(ranks):
    """Return the ranks that raised, the likely first one first.

    Whoever waited in vain was not told of another rank's end, so that comes before a lost
    connection, whatever the clocks of a busy machine say.
    """
    found = [rank for rank in ranks.values() if rank.how == "raised"]
    return sorted(found, key=lambda r: (r.echoes and not _LATE.search(r.text), r.ended))


def _died(rank, codes):
    """Tell whether the process ended badly by itself: not by an exception, not when asked to."""
    code = codes.get(rank.rank, 0)
    return rank.how != "raised" and code not in (0, -signal.SIGTERM)


def _slipped_away(rank, codes):
    """Tell whether the process ended with code 0 in the middle: nobody had to stop it."""
    return rank.how == "running" and rank.rank not in codes and not rank.stack


def _left_early(ranks):
    return next((n for n, rank in ranks.items() if rank.how == "running"), None)


def tell(ranks, codes, culprit, script):
    """Return in a few lines how a launch failed, the culprit's own error first."""
    if culprit is None:
        return "torchrun failed, and no rank left an error; read log('torchrun')"
    one = ranks[culprit]
    raised = _raised(ranks)
    if one.how == "raised":
        others = {n: rank for n, rank in ranks.items() if n != culprit}
        after = where_each_was(others, script) if others and _LATE.search(one.text) else ""
        return mask(f"rank {culprit} raised:\n{one.text.rstrip()}\n{after}".rstrip())
    if one.how == "returned" and raised and one.ended < raised[0].ended:
        gap = raised[0].ended - one.ended
        head = f"rank {culprit} finished {gap:.1f} s earlier; did it do fewer steps?"
    elif _died(one, codes):
        after = " after its work was done; does the script end with finish(model)?"
        head = f"rank {culprit} died {_code(codes[culprit])}"
        head += after if one.how == "returned" else ""
    elif raised and not _slipped_away(one, codes):
        head = f"rank {culprit} did not come; it was at {one.line(script) or 'an unknown line'}"
    else:
        head = f"rank {culprit} left with exit code 0 before the end of the script"
    if not raised:
        return mask(f"{head}\n{_last(one.log)}".rstrip())
    other = raised[0]
    return mask(f"{head}\nrank {other.rank} raised:\n{other.text.rstrip()}")


def where_each_was(ranks, script):
    """Return one line per rank: where it was when it was told to stop."""
    said = []
    for rank in ranks.values():
        where = "finished" if rank.how == "returned" else rank.line(script) or "an unknown line"
        said.append(f"rank {rank.rank}: {where}")
    return "\n".join(said) or "no rank had started"


def mask(text):
    """Take out of an error what differs from run to run: ports, folders, pictures."""
    text = re.sub(r"(\[?127\.0\.0\.1\]?):\d+", r"\1:PORT", text)
    text = re.sub(r"\[[^\]\s]*/([^/\]\s]+\.(?:cc|cpp|h|hpp)):\d+\]", r"[\1]", text)
    text = re.sub(r'File "[^"]*[/\\]([^"/\\]+)"', r'File "\1"', text)
    text = re.sub(r"[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F]", "", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def _code(code):
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"of signal {signal.Signals(-code).name}"
    except ValueError:
        return f"of signal {-code}"


def _last(log):
    return mask("\n".join(log.strip().splitlines()[-_LAST_LINES:]))
