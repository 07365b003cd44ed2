"""Ask and check what 53_profile_and_log teaches."""

import json
import math
import os
import random
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import torch
from torch.profiler import record_function

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "53.p1": Number(
        question="Twenty steps are profiled. What share of the wall time lies inside torch's "
        "operators, all of them together?",
        unit="%",
        notes=(
            (0, 5, "The training itself takes its part, if a small one."),
            (5, 40, "You did not take the table for the step."),
            (40, 80, "Forward, backward and optimizer are a small part of this step."),
            (80, 101, "The table adds up to 100 % of itself, not of the step."),
            (101, float("inf"), "A share of the time of one thread is at most 100 %."),
        ),
    ),
    "53.p2": Choice(
        question="Sum the column “CPU total” over all operators. How does it compare with the sum "
        "of “Self CPU”?",
        options={
            "equal": "Each microsecond would be in one row only. In “total” it is not: "
            "aten::linear includes the aten::addmm that it calls.",
            "less": "Total includes self, row by row, so it cannot be less.",
            "more": "Right: a child's time is in its own row and again in every row above it.",
        },
    ),
    "53.p3": Number(
        question="One training step of this small network is profiled. How large is the trace "
        "file?",
        unit="bytes",
        notes=(
            (0, 10_000, "Each operator is one entry of JSON, and a step has hundreds of them."),
            (10_000, 50_000, "The order is right: some hundreds of entries, each with its text."),
            (50_000, 200_000, "Right: some hundreds of entries of about 250 bytes."),
            (200_000, float("inf"), "The network has three layers; for a large one you are right."),
        ),
    ),
    "53.p4": Number(
        question="1,000 lines were written with file.write, then the process is killed. How many "
        "whole lines are in the file?",
        unit="lines",
        among=1000,
        notes=(
            (
                0,
                1,
                "Then all of it still lay in the process. How much a process collects depends on its Python.",
            ),
            (1, 1000, "You thought of the part that had not left the process."),
            (1000, 1001, "write returned, and yet the last part was still inside the process."),
        ),
    ),
    "53.p5": Choice(
        question="The loss is 1.0 in 10,000 steps, except for one of 50.0. What is the largest "
        "value on TensorBoard's page?",
        options={
            "50.0": "It would be, if the page kept peaks. It keeps a random sample.",
            "1.0": "Right: one point in ten is kept, by chance, and this one was not.",
            "about 1.05": "That is an average over the neighbors. Nothing is averaged: points are "
            "left out.",
        },
    ),
}


def _kind(value):
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


def _number(value, what):
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise Wrong(f"{what} must be a number, got {_kind(value)}")
    return float(value)


# --- 53.1 -------------------------------------------------------------------------------

_LABELS = ("forward", "backward", "logging")


def _row(key, count, own, total):
    return SimpleNamespace(
        key=key,
        count=count,
        self_cpu_time_total=own,
        cpu_time_total=total,
        self_cpu_time=own / count,
        cpu_time=total / count,
    )


def _profiled():
    """Make the rows of a profile of three phases; return them, seconds, and inside operators."""
    rows, inside, wall = [], 0.0, 0.0
    for number, label in enumerate(_LABELS):
        parent, child = (random.uniform(50, 900) for _ in range(2))
        outside = random.uniform(2_000, 9_000)
        count = random.randint(2, 9)
        rows.append(_row(f"aten::parent_{number}", count, parent, parent + child))
        rows.append(_row(f"aten::child_{number}", 2 * count, child, child))
        rows.append(_row(label, count, outside, outside + parent + child))
        inside += parent + child
        wall += outside + parent + child
    random.shuffle(rows)
    gap = random.uniform(1_000, 5_000)  # between the phases, where no label is
    return rows, (wall + gap) / 1e6, inside / 1e6


def test_coverage(answer, call):
    for _ in range(3):
        rows, wall, inside = _profiled()
        truth = inside / wall
        got = _number(call(answer, list(rows), wall, set(_LABELS)), "The share")
        if abs(got - truth) > 1e-6 * truth:
            raise Wrong(
                f"{inside * 1e3:.2f} ms of {wall * 1e3:.2f} ms lie in operators, which is "
                f"{truth:.4f}; got {got:.4g}. {_why_coverage(got, rows, wall)}"
            )
    got = _number(call(answer, [], 1.0, set(_LABELS)), "The share")
    if got != 0:
        raise Wrong(f"A profile without rows explains 0 of the wall time, got {got}.")


def _why_coverage(got, rows, wall):
    operators = [r for r in rows if r.key not in _LABELS]
    own = sum(r.self_cpu_time_total for r in operators) / 1e6 / wall
    every = sum(r.self_cpu_time_total for r in rows)
    sums = {
        sum(r.cpu_time_total for r in operators) / 1e6 / wall: "You summed cpu_time_total: a "
        "child is counted again in its parent. Sum the self times.",
        every / 1e6 / wall: "The labels' own self time is what no operator explains: Python. "
        "Leave out the rows whose key is in labels.",
        sum(r.cpu_time_total for r in rows) / 1e6 / wall: "Labels and totals are both in the "
        "sum: take self times, of operators only.",
        own * 1e6: "The profiler's times are microseconds, wall_seconds are seconds.",
        own * 1e3: "The profiler's times are microseconds, not milliseconds.",
        own * 100: "That is in percent: return the share itself, from 0 to 1.",
        sum(r.self_cpu_time_total for r in operators) / every: "You divided by the sum of the "
        "table. The wall time is larger: between the phases no row looks.",
        sum(r.self_cpu_time for r in operators) / 1e6 / wall: "self_cpu_time is the mean of one "
        "call. Sum self_cpu_time_total, over all calls.",
    }
    near = [why for value, why in sums.items() if abs(got - value) <= 1e-6 * abs(value)]
    return near[0] if near else "Sum self_cpu_time_total of the operators, divide by the wall."


_COVER = "def coverage(rows, wall_seconds, labels):\n"


def _cover(term, *, keep="if r.key not in labels", divide="/ 1e6 / wall_seconds"):
    return _COVER + f"    return sum(r.{term} for r in rows {keep}) {divide}\n"


# --- 53.2 -------------------------------------------------------------------------------

_SPANS = (  # name, start and end in ms; the picture of the stub
    ("step", 0, 12),
    ("forward", 1, 5),
    ("forward", 6, 8),
    ("matmul", 2, 4),
    ("matmul", 6, 7),
)
_PARENT = {"matmul": "forward", "forward": "step"}


def _tree_times():
    total = {name: sum(e - s for n, s, e in _SPANS if n == name) for name, *_ in _SPANS}
    own = {
        name: t - sum(total[c] for c, parent in _PARENT.items() if parent == name)
        for name, t in total.items()
    }
    columns = {"total": total, "self": own}
    return {f"{name} {what}": columns[what][name] for name in total for what in columns}


_WHY_TIMES = {
    ("step total", 6): "Total includes the children. What is left without them is self.",
    ("step total", 3): "Total includes children and grandchildren.",
    ("step self", 12): "Self leaves out what the children take: here two calls of forward.",
    ("step self", 3): "matmul lies in forward, which you have subtracted: subtract children, not "
    "grandchildren again.",
    ("step self", 5): "The gap between the two calls of forward, 5 to 6 ms, belongs to step: "
    "nobody else runs then.",
    ("forward total", 4): "forward runs twice: its row sums both calls, 4 ms and 2 ms.",
    ("forward total", 7): "From 5 to 6 ms forward is not running: that gap is step's own.",
    ("forward total", 3): "Total includes the child: matmul is part of it.",
    ("forward self", 6): "Self leaves out the child: matmul takes 3 ms of it.",
    ("forward self", 2): "Both calls of forward hold a matmul: 2 ms and 1 ms.",
    ("matmul total", 2): "matmul runs twice: its row sums both calls.",
    ("matmul self", 0): "matmul has no child, so all of its time is its own.",
}


def test_columns(answer, call):
    for name, truth in _tree_times().items():
        got = _number(answer[name], name)
        if got != truth:
            why = _WHY_TIMES.get((name, got), "Add up the lengths of the calls, in ms; for self, "
                                 "subtract the direct children.")  # fmt: skip
            raise Wrong(f"{name} is {got:g} ms in your answer. {why}")


def _times(**changed):
    named = {k: changed.get(k.replace(" ", "_"), v) for k, v in _tree_times().items()}
    return "times = {\n" + "".join(f'    "{k}": {v},\n' for k, v in named.items()) + "}\n"


# --- 53.3 -------------------------------------------------------------------------------


def test_profile_steps(answer, call):
    for extra in (1, 3):
        steps, products = 4 * random.randint(8, 12) + extra, random.randint(2, 5)
        done = []
        rows = _rows_of(answer, call, partial_step(products, done), steps)
        if done != list(range(steps)):
            raise Wrong(
                f"{len(done)} of {steps} steps ran, numbered from 0. Profiling must not change "
                "the training: the schedule stops the profiler, not the loop."
            )
        _look_at_recorded(rows, products, steps)


def partial_step(products, done):
    """Return a training step that writes down its number and shows it to a profiler."""
    x = torch.ones(4, 4)

    def train_step(step):
        with record_function(f"numbered {step}"):
            for _ in range(products):
                torch.mm(x, x)
        done.append(step)

    return train_step


def _rows_of(answer, call, train_step, steps):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = call(answer, train_step, steps)
        except AssertionError as error:
            if "must be initialized" not in str(error):
                raise
            raise Wrong(
                "The profiler never left its first phase: “Profiler must be initialized”. It "
                "counts steps only if you tell it: call prof.step() at the end of each."
            ) from None
    if isinstance(rows, str):
        raise Wrong("Return the rows, prof.key_averages(), not the text of their table.")
    if not isinstance(rows, list) or not all(hasattr(r, "key") for r in rows):
        raise Wrong(f"Return prof.key_averages(), got {_kind(rows)}")
    return rows, [str(w.message) for w in caught]


def _look_at_recorded(found, products, steps):
    rows, texts = found
    recorded = sorted(int(r.key.split()[1]) for r in rows if r.key.startswith("numbered"))
    if any("won't be using warmup" in text for text in texts):
        raise Wrong(
            "warmup=0: the counts are there, but the first recorded step pays for the start of "
            "the profiler. Give it one step of warm-up."
        )
    if len(recorded) == steps:
        raise Wrong(
            f"All {steps} steps are recorded. Without a schedule the trace grows with the run: "
            "use wait, warmup and active."
        )
    if not recorded or recorded[0] > 3:
        raise Wrong(
            f"Of {steps} steps, {recorded or 'none'} were in the table. Without repeat the cycle of four "
            "starts again, and clears what came before. Say repeat=1."
        )
    if recorded == [1, 2]:
        raise Wrong(
            "Steps 1 and 2 are recorded: prof.step() came before the work of the step. It says "
            "that a step is over: call it last."
        )
    count = sum(r.count for r in rows if r.key == "aten::mm")
    if recorded != [2, 3] or count != 2 * products:
        raise Wrong(
            f"Recorded are the steps {recorded}, with {count} products. Wait one step, warm up "
            "for one, then record the next two: 2 and 3."
        )


_PROFILE = (
    "def profile_steps(train_step, steps):\n"
    "    cpu = torch.profiler.ProfilerActivity.CPU\n"
    "    plan = torch.profiler.schedule({plan})\n"
    "    with torch.profiler.profile(activities=[cpu], schedule=plan) as prof:\n"
    "        for step in range(steps):\n"
)
_WORK = "            train_step(step)\n"
_STEP = "            prof.step()\n"
_ROWS = "    return prof.key_averages()\n"


def _profile(plan="wait=1, warmup=1, active=2, repeat=1", body=_WORK + _STEP, end=_ROWS):
    return _PROFILE.format(plan=plan) + body + end


# --- 53.4 -------------------------------------------------------------------------------


def test_run_log(answer, call):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        _look_at_writing(answer, call, Path(folder, "a.jsonl"))
        _look_at_values(answer, call, Path(folder, "b.jsonl"))
        _look_at_reading(answer, call, Path(folder))
        _look_at_restart(answer, call, Path(folder, "restart.jsonl"))


def _look_at_writing(answer, call, path):
    log, records = call(answer, path), [{"step": n, "loss": 0.5 / (n + 1)} for n in range(6)]
    with mock.patch.object(os, "fsync") as fsync, _rewrites(path) as rewritten:
        for number, record in enumerate(records[:4], 1):
            _append(call, log, dict(record))
            seen = path.read_text(encoding="utf-8") if path.exists() else ""
            if seen.count("\n") != number and not seen.strip().startswith("["):
                raise Wrong(
                    f"After record {number}, another program finds {seen.count(chr(10))} whole "
                    "lines in the file. What is not there is lost in a kill: write one line with "
                    "its line end, and flush it."
                )
    if fsync.called:
        raise Wrong(
            "fsync waits for the disk at each record, some milliseconds. Against a kill, flush is "
            "enough: the line belongs to the operating system then."
        )
    if seen.strip().startswith("["):
        raise Wrong(
            "One list is rewritten for each record: the work grows with its square, and a kill "
            "in the middle leaves no valid file. Append one line per record."
        )
    if rewritten:
        raise Wrong(
            "The whole file is written again for each record: a kill between the first line and "
            "the last leaves a part of it. Append one line per record, and touch no other."
        )
    again = call(answer, path)
    for record in records[4:]:
        _append(call, again, record)
    _compare(call(again.read), records, "after a restart")


@contextmanager
def _rewrites(path):
    """Note each time that a file with something in it is opened to be written anew, or replaced."""
    found, plain_open, plain_replace = [], open, os.replace

    def watched_open(file, mode="r", *rest, **options):
        if "w" in mode and not isinstance(file, int) and Path(file) == path:
            found.extend([mode] * (path.exists() and path.stat().st_size > 0))
        return plain_open(file, mode, *rest, **options)

    def watched_replace(old, new, **options):
        found.extend(["replace"] * (Path(new) == path))
        return plain_replace(old, new, **options)

    with (
        mock.patch("builtins.open", watched_open),
        mock.patch("io.open", watched_open),  # pathlib's way
        mock.patch.object(os, "replace", watched_replace),
    ):
        yield found


def _append(call, log, record):
    if not (hasattr(log, "append") and hasattr(log, "read")):
        raise Wrong("RunLog needs the methods append and read.")
    try:
        call(log.append, record)
    except TypeError as error:
        if "JSON serializable" not in str(error):
            raise
        raise Wrong(
            f"{error}. A tensor of one number and NumPy's scalars are no numbers for json: "
            "both have .item()."
        ) from None
    except ValueError as error:
        if "not JSON compliant" not in str(error):
            raise
        raise Wrong(
            "A NaN stopped the run that was to be logged. Write null: None in Python."
        ) from None


def _compare(got, expected, when):
    if not isinstance(got, list):
        raise Wrong(f"read must return a list of records, got {_kind(got)}")
    if len(got) < len(expected) and got == expected[-len(got) :] and got:
        raise Wrong(
            f"{len(got)} of {len(expected)} records are there {when}: opening with “w” erases "
            "what the first part of the run wrote. Open with “a”."
        )
    if got != expected:
        raise Wrong(f"read returns {got} {when}, expected {expected}.")


def _look_at_values(answer, call, path):
    log, loss = call(answer, path), round(random.uniform(0.1, 2), 1) + 0.017
    record = {
        "step": np.int64(7),
        "loss": torch.tensor(loss, dtype=torch.float64, requires_grad=True),
        "norm": np.float32(0.25),
        "rate": torch.tensor(float("nan")),
        "peak": float("inf"),
        "phase": "train",
    }
    _append(call, log, record)
    line = path.read_text(encoding="utf-8").splitlines()[-1]
    stored = json.loads(line, parse_constant=_refuse)
    expected = {"step": 7, "loss": loss, "norm": 0.25, "rate": None, "peak": None}
    for key, value in (expected | {"phase": "train"}).items():
        got = stored.get(key)
        if isinstance(got, str) and key != "phase":
            raise Wrong(f"{key} came back as the text {got!r}. Store the number: .item().")
        if got != value or isinstance(got, float) != isinstance(value, float):
            raise Wrong(f"{key} was stored as {got!r}, expected {value!r}.")


def _refuse(constant):
    raise Wrong(
        f"The line holds {constant}, which is not JSON: other programs stop there. Write null "
        "for what is not finite."
    )


def _look_at_reading(answer, call, folder):
    whole = [{"step": n, "loss": 1.5} for n in range(3)]
    lines = [json.dumps(record) for record in whole]
    torn, middle, nothing = (folder / f"{name}.jsonl" for name in ("torn", "middle", "nothing"))
    torn.write_text("\n".join(lines) + '\n{"step": 3, "lo', encoding="utf-8")
    middle.write_text(f'{lines[0]}\n{{"step": 1, "lo\n{lines[2]}\n', encoding="utf-8")
    try:
        _compare(call(call(answer, torn).read), whole, "from a file whose last line is torn")
    except ValueError:
        raise Wrong(
            "A kill can tear the last line, and read raised there: the 3 whole records before it "
            "are lost to the reader. Leave a broken last line out."
        ) from None
    try:
        got = call(call(answer, middle).read)
    except ValueError:
        got = None
    if got is not None:
        raise Wrong(
            f"Line 2 of 3 is broken, and read returned {len(got)} records without a word. Only "
            "the last line can be torn by a kill: anywhere else, raise ValueError."
        )
    try:
        _compare(call(call(answer, nothing).read), [], "from a log without a file")
    except FileNotFoundError:
        raise Wrong("No file yet is a log without records: read returns [].") from None


def _look_at_restart(answer, call, path):
    """Tear the last line, as a kill does, and let a new run go on in the same file."""
    records = [{"step": n, "loss": 1.5} for n in range(5)]
    whole = "".join(json.dumps(record) + "\n" for record in records[:3])
    path.write_text(whole + '{"step": 3, "lo', encoding="utf-8")
    log = call(answer, path)
    for record in records[3:]:
        _append(call, log, dict(record))
    try:
        got = call(log.read)
    except ValueError:
        got = "an error"
    if got != records:
        raise Wrong(
            "A kill tore the last line, the run was started again and appended two records, and "
            f"read gives {got}. The rest of the torn line now stands in the middle of the file: "
            "before the first append, cut the file after its last line end."
        )


_LOG = (
    "class RunLog:\n    def __init__(self, path):\n        self.path, self.whole = path, False\n\n"
)
_MEND = """    def mend(self):
        \"\"\"Cut off what a kill has left of a line, before the first append.\"\"\"
        if not self.whole and os.path.exists(self.path):
            with open(self.path, "r+b") as file:
                file.truncate(file.read().rfind(b"\\n") + 1)
        self.whole = True

"""
_APPEND = """    def append(self, record):
        plain = {}
        for key, value in record.items():
            value = value.item() if hasattr(value, "item") else value
            if isinstance(value, float) and not math.isfinite(value):
                value = None
            plain[key] = value
        self.mend()
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(plain) + "\\n")

"""
_READ = """    def read(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            *lines, torn = file.read().split("\\n")
        records = [json.loads(line) for line in lines]
        return records
"""
_IMPORTS = "import json\nimport math\nimport os\n\n\n"


def _log(old="", new="", *, append=_APPEND, read=_READ):
    return _IMPORTS + (_LOG + _MEND + append + read).replace(old, new)


# --- 53.5 -------------------------------------------------------------------------------


def _spiky(count):
    """Make a falling curve with a spike in each tenth of it, the last one at its end."""
    values = [3 - 2 * i / count + random.uniform(0, 0.1) for i in range(count)]
    spikes = [random.randint(i * count // 10 + count // 30, (i + 1) * count // 10 - count // 30)
              for i in range(9)] + [count - 1]  # fmt: skip
    for number, place in enumerate(spikes):
        values[place] += random.uniform(30, 60) * (-1 if number % 3 == 1 else 1)
    return values, spikes


def test_thin(answer, call):
    for _ in range(3):
        n, count = 2 * random.randint(40, 60), random.randint(2_000, 3_000)
        values, spikes = _spiky(count)
        first = random.randint(0, 50)
        steps = list(range(first, first + count))
        lost = spikes[4] - 2  # nowhere near an edge, and no spike of its own
        values[lost], values[spikes[4]] = float("nan"), values[spikes[4] - 1]
        got = _thinned(call(answer, list(steps), list(values), n))
        _look_at_points(got, steps, values, n)
        kept = set(got[0])
        _look_at_spikes(kept, [steps[i] for i in spikes if i != spikes[4]], steps, values)
        if steps[lost] not in kept:
            raise Wrong(
                f"The NaN at step {steps[lost]} is not drawn. Every comparison with NaN is False, "
                "so max() passes over it: let a NaN count as a maximum."
            )
    few = ([3, 5, 9], [1.0, 2.0, 1.5])
    got = _thinned(call(answer, list(few[0]), list(few[1]), 10))
    if got != few:
        raise Wrong(f"3 points with n = 10 need no thinning: return all, got {got}.")


def _thinned(got):
    if not isinstance(got, tuple | list) or len(got) != 2:
        raise Wrong(f"Return two lists, steps and values, got {_kind(got)}")
    if not all(hasattr(part, "__len__") for part in got) or len(got[0]) != len(got[1]):
        raise Wrong("Return as many steps as values, in two lists.")
    return list(got[0]), list(got[1])


def _look_at_points(got, steps, values, n):
    if len(got[0]) > n:
        raise Wrong(
            f"{len(got[0])} points came back, {n} are allowed: two for each of n // 2 bins."
        )
    if any(b <= a for a, b in zip(got[0], got[0][1:], strict=False)):
        raise Wrong(
            "The steps must increase, each one once. In a bin the minimum may come after the "
            "maximum: sort the places that you keep."
        )
    original = dict(zip(steps, values, strict=True))
    for step, value in zip(*got, strict=True):
        if step not in original or not _same(original[step], value):
            raise Wrong(
                f"({step}, {value:.4g}) was never logged. An average lowers a spike and draws "
                "what did not happen: keep points, do not make new ones."
            )


def _same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def _look_at_spikes(kept, spikes, steps, values):
    tenth = len(steps) // 10
    for i in range(0, len(steps) - tenth, tenth):
        if not kept & set(steps[i : i + tenth]):
            raise Wrong(
                f"No point lies between the steps {steps[i]} and {steps[i + tenth]}: the curve "
                "has a hole there. Choose in each bin, not over the whole run."
            )
    if spikes[-1] not in kept:
        raise Wrong(
            f"The last point, step {spikes[-1]}, is a spike and is not kept. Bins of "
            "len(values) // bins points leave the remainder out."
        )
    for step in spikes:
        if step not in kept:
            value = values[step - steps[0]]
            raise Wrong(
                f"The spike at step {step}, value {value:.1f}, is not kept. Keep the minimum and "
                "the maximum of each bin."
            )


_THIN = """def thin(steps, values, n):
    if len(values) <= n:
        return steps, values
    bins, kept = n // 2, set()

    def height(i):
        return math.inf if math.isnan(values[i]) else values[i]

    for b in range(bins):
        places = range(b * len(values) // bins, (b + 1) * len(values) // bins)
        kept |= {min(places, key=height), max(places, key=height)}
    kept = sorted(kept)
    return [steps[i] for i in kept], [values[i] for i in kept]
"""
_THIN_HEAD = "def thin(steps, values, n):\n    if len(values) <= n:\n        return steps, values\n"


def _thin(old="", new=""):
    return "import math\n\n\n" + _THIN.replace(old, new)


EXERCISES = {
    "53.1": Exercise(
        title="Say how much of the wall time a profile explains",
        minutes=5,
        task="`rows` are `prof.key_averages()`: each has `key`, `count`, `cpu_time_total` and "
        "`self_cpu_time_total`, in microseconds over all calls. Return the share of "
        "`wall_seconds` that lies inside operators. Rows whose key is in `labels` are no "
        "operators.",
        stub="def coverage(rows, wall_seconds, labels):\n"
        '    """Return the share of the wall time inside operators, 0 to 1."""\n    ...\n',
        answer="coverage",
        test=test_coverage,
        hints=(
            "Only self times add up without counting anything twice.",
            "A label that sleeps for a second has a self time of a second, and no operator ran.",
            "inside = sum(r.self_cpu_time_total for r in rows if r.key not in labels)",
        ),
        solution=_cover("self_cpu_time_total"),
        wrong=(
            WrongAnswer("totals", _cover("cpu_time_total"), "again in its parent"),
            WrongAnswer("labels counted", _cover("self_cpu_time_total", keep=""), "Leave out the"),
            WrongAnswer("both", _cover("cpu_time_total", keep=""), "of operators only"),
            WrongAnswer(
                "microseconds",
                _cover("self_cpu_time_total", divide="/ wall_seconds"),
                "are microseconds, wall_seconds",
            ),
            WrongAnswer(
                "milliseconds",
                _cover("self_cpu_time_total", divide="/ 1e3 / wall_seconds"),
                "not milliseconds",
            ),
            WrongAnswer(
                "percent",
                _cover("self_cpu_time_total", divide="/ 1e4 / wall_seconds"),
                "return the share itself",
            ),
            WrongAnswer("means", _cover("self_cpu_time"), "the mean of one call"),
            WrongAnswer(
                "share of the table",
                _cover(
                    "self_cpu_time_total",
                    divide="/ max(1, sum(r.self_cpu_time_total for r in rows))",
                ),
                "divided by the sum of the table",
            ),
            WrongAnswer(
                "one row",
                _COVER + "    return max(r.self_cpu_time_total for r in rows) / 1e6\n",
                "Sum self_cpu_time_total of the operators",
            ),
            WrongAnswer(
                "no rows",
                _cover("self_cpu_time_total").replace("    return", "    return not rows or"),
                "must be a number",
            ),
            WrongAnswer(
                "whole for nothing",
                _cover("self_cpu_time_total").replace(
                    "    return", "    return 0.5 * (not rows) +"
                ),
                "A profile without rows",
            ),
            WrongAnswer("nothing", _COVER + "    sum(r.count for r in rows)\n", "got None"),
        ),
    ),
    "53.2": Exercise(
        title="Read self against total time",
        minutes=4,
        task="Three labels are nested, and two of them run twice. Write down both columns of "
        "each label, in ms, as a profiler's table sums them.",
        stub="# step     0 ------------------------ 12\n"
        "# forward    1 -------- 5   6 ---- 8\n"
        "# matmul       2 ---- 4     6 - 7\n"
        "times = {\n" + "".join(f'    "{name}": ...,\n' for name in _tree_times()) + "}\n",
        answer="times",
        test=test_columns,
        hints=(
            "Total: from the start of a call to its end, summed over the calls. Self: that, less "
            "the totals of the direct children.",
            "The self times of all rows add up to the outermost total, 12.",
            "step self is 12 - 6.",
        ),
        solution=_times(),
        wrong=(
            WrongAnswer("self is total", _times(step_self=12), "Self leaves out what the children"),
            WrongAnswer("total is self", _times(step_total=6), "Total includes the children"),
            WrongAnswer("no family", _times(step_total=3), "children and grandchildren."),
            WrongAnswer("grandchild twice", _times(step_self=3), "not grandchildren again"),
            WrongAnswer("gap lost", _times(step_self=5), "belongs to step"),
            WrongAnswer("one call", _times(forward_total=4), "sums both calls, 4 ms and 2 ms"),
            WrongAnswer("gap to the child", _times(forward_total=7), "that gap is step's own"),
            WrongAnswer("child left out", _times(forward_total=3), "matmul is part of it"),
            WrongAnswer("child kept", _times(forward_self=6), "Self leaves out the child"),
            WrongAnswer("one matmul", _times(matmul_total=2), "matmul runs twice"),
            WrongAnswer("leaf", _times(matmul_self=0), "has no child"),
            WrongAnswer("words", _times(matmul_self="'all'"), "must be a number"),
            WrongAnswer("far off", _times(step_total=100), "Add up the lengths"),
        ),
    ),
    "53.3": Exercise(
        title="Profile two steps of a long run",
        minutes=6,
        task="The run has `steps` steps. Repair `profile_steps`: all of them run, the profiler "
        "waits for one, warms up in one, records the next two (2 and 3, counted from 0), and "
        "its rows come back.",
        stub=_profile("wait=1, warmup=1, active=2", body=_WORK, end=_ROWS),
        answer="profile_steps",
        test=test_profile_steps,
        hints=(
            "The schedule is a function of a counter, and somebody has to move it.",
            "With 41 steps and cycles of 4, the last cycle has just begun when the run ends.",
            "plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)",
        ),
        solution=_profile(),
        wrong=(
            WrongAnswer("no step", _profile(body=_WORK), "call prof.step()"),
            WrongAnswer("no repeat", _profile("wait=1, warmup=1, active=2"), "Say repeat=1"),
            WrongAnswer("no warm-up", _profile("wait=2, warmup=0, active=2, repeat=1"), "warmup=0"),
            WrongAnswer("step first", _profile(body=_STEP + _WORK), "call it last"),
            WrongAnswer(
                "no schedule",
                _profile().replace(", schedule=plan", ""),
                "Without a schedule",
            ),
            WrongAnswer("one step", _profile("wait=1, warmup=1, active=1, repeat=1"), "2 and 3"),
            WrongAnswer(
                "loop ends", _profile().replace("range(steps)", "range(4)"), "not the loop"
            ),
            WrongAnswer(
                "text", _profile(end="    return prof.key_averages().table()\n"), "not the text"
            ),
            WrongAnswer("profiler", _profile(end="    return prof\n"), "got profile"),
            WrongAnswer("nothing", _profile(end=""), "got None"),
        ),
        limit=20.0,
    ),
    "53.4": Exercise(
        title="Write a log that survives a kill",
        minutes=12,
        task="`append` writes one record as one line of JSON that outlives the process: tensors "
        "of one number and NumPy scalars as numbers, NaN and infinities as null. `read` returns "
        "the records, without a torn last line, and [] where no file is; a broken line elsewhere "
        "raises ValueError. A new run may append behind a torn line.",
        stub="class RunLog:\n    def __init__(self, path):\n        self.path = path\n\n"
        '    def append(self, record):\n        """Write one record as one line."""\n        ...\n\n'
        '    def read(self):\n        """Return the records as a list."""\n        ...\n',
        answer="RunLog",
        test=test_run_log,
        hints=(
            "A line is safe when another program can read it. Closing a file flushes it.",
            "torch.tensor(0.5) and np.float32(0.5) both have .item(); nan != nan. What a kill left "
            "of a line has no line end: leave it out, and cut it off before you append.",
            'In append, last: with open(self.path, "a") as file: file.write(json.dumps(plain) + '
            '"\\n")',
        ),
        solution=_log(),
        wrong=(
            WrongAnswer(
                "no flush",
                _log(
                    '        with open(self.path, "a", encoding="utf-8") as file:\n'
                    "            file.write",
                    '        self.file = getattr(self, "file", None) or open(self.path, "a")\n'
                    "        self.file.write",
                ),
                "another program finds 0 whole lines",
            ),
            WrongAnswer(
                "opened anew",
                _log(
                    '        with open(self.path, "a", encoding="utf-8") as file:\n'
                    "            file.write",
                    '        self.file = getattr(self, "file", None) or open(self.path, "w", 1)\n'
                    "        self.file.write",
                ),
                "Open with “a”",
            ),
            WrongAnswer(
                "all lines written again",
                _log(
                    '        with open(self.path, "a", encoding="utf-8") as file:\n',
                    "        try:\n            with open(self.path) as file:\n"
                    "                before = file.read()\n"
                    "        except FileNotFoundError:\n            before = ''\n"
                    '        with open(self.path, "w", encoding="utf-8") as file:\n'
                    "            file.write(before)\n",
                ),
                "written again for each record",
            ),
            WrongAnswer("str", _log("value.item()", "str(value)"), "came back as the text"),
            WrongAnswer(
                "tensors only",
                _log('hasattr(value, "item")', 'hasattr(value, "grad_fn")'),
                "both have .item()",
            ),
            WrongAnswer("NaN", _log("math.isfinite", "bool"), "is not JSON"),
            WrongAnswer(
                "NaN raises",
                _log("json.dumps(plain)", "json.dumps(plain, allow_nan=False)").replace(
                    "math.isfinite", "bool"
                ),
                "stopped the run",
            ),
            WrongAnswer(
                "rounded",
                _log("value.item() if", "round(value.item(), 1) if"),
                "loss was stored as",
            ),
            WrongAnswer(
                "fsync",
                _log(
                    'file.write(json.dumps(plain) + "\\n")',
                    'file.write(json.dumps(plain) + "\\n")\n            file.flush()\n'
                    "            os.fsync(file.fileno())",
                ),
                "fsync waits",
            ),
            WrongAnswer(
                "one list",
                _log(
                    append="    def append(self, record):\n"
                    '        self.all = [*getattr(self, "all", []), record]\n'
                    '        with open(self.path, "w") as file:\n'
                    "            json.dump(self.all, file)\n\n"
                ),
                "Append one line per record",
            ),
            WrongAnswer(
                "torn line raises",
                _log('*lines, torn = file.read().split("\\n")', "lines = list(file)"),
                "Leave a broken last line out",
            ),
            WrongAnswer(
                "broken line hidden",
                _log("for line in lines]", 'for line in lines if line.endswith("}")]'),
                "without a word",
            ),
            WrongAnswer(
                "torn line stays",
                _log("        self.mend()\n", ""),
                "cut the file after its last line end",
            ),
            WrongAnswer(
                "line end first",
                _log(
                    '                file.truncate(file.read().rfind(b"\\n") + 1)\n',
                    '                if not file.read().endswith(b"\\n"):\n'
                    '                    file.write(b"\\n")\n',
                ),
                "read gives an error",
            ),
            WrongAnswer(
                "no file",
                _log(
                    "        if not os.path.exists(self.path):\n            return []\n",
                    "",
                ),
                "No file yet",
            ),
            WrongAnswer(
                "last one only",
                _log("        return records", "        return records[:1]"),
                "read returns",
            ),
            WrongAnswer(
                "nothing", _log("        return records", "        print(records)"), "got None"
            ),
            WrongAnswer(
                "no read",
                _IMPORTS + (_LOG + _MEND + _APPEND).rstrip() + "\n",
                "methods append and read",
            ),
        ),
    ),
    "53.5": Exercise(
        title="Draw ten thousand points without losing the one that matters",
        minutes=8,
        task="Return steps and values of at most `n` points, in order: the minimum and the "
        "maximum of each of `n // 2` equal bins. A NaN counts as a maximum. With `n` points or "
        "fewer, return all.",
        stub="def thin(steps, values, n):\n"
        '    """Return two lists: the steps that are kept, and their values."""\n    ...\n',
        answer="thin",
        test=test_thin,
        hints=(
            "Choose places, not values: a place gives you the step and the value, in order.",
            "max([1.0, nan]) is 1.0 and max([nan, 1.0]) is nan.",
            "for b in range(n // 2): places = range(b * len(values) // (n // 2), ...)",
        ),
        solution=_thin(),
        wrong=(
            WrongAnswer(
                "every k-th",
                _THIN_HEAD + "    k = -(-len(values) // n)\n    return steps[::k], values[::k]\n",
                "is not kept",
            ),
            WrongAnswer(
                "mean",
                _THIN_HEAD + "    k = -(-len(values) // n)\n    starts = range(0, len(values), k)\n"
                "    return ([steps[i] for i in starts],\n"
                "            [sum(values[i : i + k]) / len(values[i : i + k]) for i in starts])\n",
                "was never logged",
            ),
            WrongAnswer(
                "largest of all",
                _THIN_HEAD + "    kept = sorted(sorted(range(len(values)),\n"
                "                  key=lambda i: -abs(values[i] - 2) if values[i] == values[i]\n"
                "                  else -1e9)[:n])\n"
                "    return [steps[i] for i in kept], [values[i] for i in kept]\n",
                "has a hole there",
            ),
            WrongAnswer(
                "maximum only",
                _thin("kept |= {min(places, key=height), ", "kept |= {"),
                "Keep the minimum",
            ),
            WrongAnswer(
                "remainder",
                _thin(
                    "range(b * len(values) // bins, (b + 1) * len(values) // bins)",
                    "range(b * (len(values) // bins), (b + 1) * (len(values) // bins))",
                ),
                "leave the remainder out",
            ),
            WrongAnswer(
                "NaN",
                _thin("math.inf if math.isnan(values[i]) else values[i]", "values[i]"),
                "let a NaN count",
            ),
            WrongAnswer("n bins", _thin("n // 2, set()", "n, set()"), "points came back"),
            WrongAnswer(
                "not sorted",
                _thin("sorted(kept)", "sorted(kept, key=lambda i: values[i])"),
                "must increase",
            ),
            WrongAnswer(
                "values only",
                _thin("[steps[i] for i in kept], [values[i] for i in kept]", "values[:n]"),
                "Return two lists",
            ),
            WrongAnswer(
                "uneven",
                _thin("[values[i] for i in kept]", "values[:3]"),
                "as many steps as values",
            ),
            WrongAnswer(
                "short series",
                _thin("return steps, values", "return steps[:2], values[:2]"),
                "need no thinning",
            ),
            WrongAnswer("nothing", _THIN_HEAD, "got None"),
        ),
    ),
}
