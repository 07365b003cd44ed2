"""Ask and check what 34_scale_out_and_recover teaches."""

import copy
import math
import os
import random
import shutil
import tempfile
import textwrap
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "34.p1": Choice(
        question="Two ranks wrote the checkpoint of step 10, each half of the rows. On how many "
        "ranks can it be read?",
        options={
            "2": "A file per rank suggests it. But a reader opens what it needs, not what has its "
            "number.",
            "1 or 2": "Fewer readers can read more each, and more readers can read less.",
            "any number": "Right: the metadata says which file holds which rows.",
            "1, after rank 0 has merged the files": "Nothing has to be merged: each reader takes "
            "its rows from where they lie.",
        },
    ),
    "34.p2": Number(
        question="10 steps, a checkpoint after every second one. Step 4 is taken, and in the middle "
        "of its save rank 1 is killed. Later it hangs in step 8. How many steps does rank "
        "0 complete in all?",
        unit="steps",
        notes=(
            (0, 10, "Fewer than 10 steps cannot be training of 10 steps."),
            (10, 11, "No step is lost only if its result was saved. Which saves were complete?"),
            (11, 13, "One of the faults costs two steps: a save that was cut short is no save."),
            (13, 14, "Right: steps 3 and 4 again, and step 7 again."),
            (14, 20, "After a fault training goes on after the last complete save, not at 1."),
            (20, 1e6, "A restart does not begin at step 1: it reads a checkpoint."),
        ),
    ),
    "34.p3": Choice(
        question="Weights and Adam's moments after step 10, with and without the two faults. How "
        "many of the tensors differ?",
        options={
            "none": "Right: a step is a function of the state and its own number, and both came "
            "back whole.",
            "some, in the last bits": "Rounding differs where the order of additions differs. "
            "Here the same two ranks add the same numbers again.",
            "all of them": "They would, if the optimizer had begun anew or the batches had come "
            "in another order.",
        },
    ),
    "34.p4": Choice(
        question="In step 8 rank 1 sleeps: alive, no error, no answer. What ends the wait?",
        options={
            "the agent": "The agent watches whether its processes live. This one lives.",
            "a timeout on rank 0": "Right: the rank that waits gives up, fails, and so makes the "
            "agent start all ranks anew.",
            "nothing": "With the default it takes half an hour on gloo, so it can look like it.",
        },
    ),
    "34.p5": Choice(
        question="Had both saves gone to one folder, the kill would have left rank 0's file of "
        "step 4, rank 1's file of step 2 and the metadata of step 2. What does loading give?",
        options={
            "an error": "Names, shapes and places are those of step 2, and they fit both files.",
            "step 2": "Rank 0's rows are those of step 4 already.",
            "step 4": "Rank 1 has not written step 4.",
            "half of each": "Right: rows of two different steps, one of them as the label, and no "
            "error.",
        },
    ),
    "34.p6": Choice(
        question="Two machines with one rank each, 32 samples for each rank in a step. The second "
        "machine vanishes in step 4 and does not come back. The launch allows one or two machines.",
        options={
            "the job ends": "It would with --nnodes=2. This launch said 1:2.",
            "the job waits for a second machine": "It waits a few seconds for latecomers, then "
            "begins with those that are there.",
            "it goes on, with 64 samples in a step": "World size is 1 now, and the script gives "
            "each rank its 32.",
            "it goes on, with 32 samples in a step": "Right, and nothing says so: half the batch, "
            "the same learning rate.",
        },
    ),
}


def _kind(value):
    return "None" if value is None else type(value).__name__


# --- 34.1 -------------------------------------------------------------------------------


class _Killed(BaseException):
    """Stand in for SIGKILL: nobody should catch it."""


class _World:
    """Give a training function what it needs, and kill it where the check says so."""

    def __init__(self, steps):
        self.steps, self.seed = steps, random.randrange(10_000)
        self.kill, self.asked, self.saved = None, [], 0

    def make(self):
        """Build a model whose start differs at each call, and an optimizer with a memory."""
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def batch(self, step):
        """Return the batch of a step, a function of the step alone."""
        self._strike(("in", step))
        self.asked.append(step)
        x = torch.randn(8, 3, generator=torch.Generator().manual_seed(self.seed + step))
        return x, x.sum(1, keepdim=True)

    def save(self, state, path):
        """Save as a whole or not at all."""
        step = self.asked[-1] if self.asked else 0
        self._strike(("before saving", step))
        draft = Path(path).with_suffix(".draft")
        torch.save(state, draft)
        os.replace(draft, path)
        self.saved = step
        self._strike(("after saving", step))

    def _strike(self, place):
        if place == self.kill:
            self.kill = None
            raise _Killed(f"{place[0]} step {place[1]}")


def _reference(world, forget_at=None):
    """Train without a stop from the saved start; forget the momentum after a step if asked to."""
    model, optimizer = world.make()
    model.load_state_dict(world.start)
    for step in range(1, world.steps + 1):
        x, y = world.batch(step)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        if step == forget_at:
            optimizer.state.clear()
    return model


def _same(a, b):
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def test_train(answer, call):
    for place in ("in", "before saving", "after saving"):
        world = _World(steps=random.randint(5, 8))
        with tempfile.TemporaryDirectory() as folder:
            _first_run(answer, call, world, Path(folder), place)


def _first_run(answer, call, world, folder, place):
    start = world.make()
    world.start = copy.deepcopy(start[0].state_dict())
    at = random.randint(3, world.steps - 1)
    world.kill = (place, at)
    try:
        _train(answer, call, folder, world, _once(start, world.make))
    except _Killed:
        pass
    else:
        _ask_why_it_lives(world, place, at)
    saved = world.saved
    if saved < at - 1:
        raise Wrong(
            f"Killed {place} step {at}, and the last save was after step {saved}. Save after each "
            "step."
        )
    world.asked = []
    model = _train(answer, call, folder, world, world.make)
    _look_at_steps(world, saved, place, at)
    _look_at_model(world, model, saved)
    world.asked = []
    again = _train(answer, call, folder, world, world.make)
    if world.asked:
        raise Wrong("Called once more after its end, train took more steps. There was none left.")
    if not _same(again, model):
        raise Wrong("Called once more after its end, train must return the finished model.")


def _once(start, make):
    """Return a function that gives the reference's start first, then other ones."""
    starts = [start]
    return lambda: starts.pop() if starts else make()


def _ask_why_it_lives(world, place, at):
    if world.kill is None:
        raise Wrong(
            f"The run was killed {place} step {at}, and train returned as if nothing had happened. "
            "SIGKILL cannot be caught; do not catch what stands for it."
        )
    raise Wrong(f"train never saved step {at}: take all {world.steps} steps, and save after each.")


def _train(answer, call, folder, world, make):
    try:
        model = call(answer, folder, world.steps, make, world.batch, world.save)
    except FileNotFoundError:
        raise Wrong(
            "The first run finds no checkpoint: ask whether the file exists before you load it."
        ) from None
    if not isinstance(model, nn.Module):
        raise Wrong(f"train must return the model, got {_kind(model)}.")
    return model


def _look_at_steps(world, saved, place, at):
    first = world.asked[0] if world.asked else None
    where = f"Killed {place} step {at}, saved after step {saved}"
    if first == 1:
        raise Wrong(f"{where}, and the second run began with step 1. Load what was saved.")
    if first is None or first > saved + 1:
        raise Wrong(f"{where}, and the second run never took step {saved + 1}.")
    if first < saved + 1:
        raise Wrong(
            f"{where}, and the second run began with step {first}. What step {saved} did is in "
            f"the saved weights: begin with step {saved + 1}."
        )
    if world.asked != list(range(saved + 1, world.steps + 1)):
        raise Wrong(f"{where}; then come steps {saved + 1} to {world.steps}, each once.")


def _look_at_model(world, model, saved):
    asked = list(world.asked)
    true, forgetful = _reference(world), _reference(world, forget_at=saved)
    world.asked = asked
    if _same(model, true):
        return
    if _same(model, forgetful):
        raise Wrong(
            "The steps are right and the weights are not: the optimizer's momentum began at zero "
            "again. Save and load optimizer.state_dict(), too."
        )
    raise Wrong(
        "The weights differ from those of a run that was never killed. What is saved after a step "
        "must be loaded before the next one: model and optimizer."
    )


# --- 34.2 -------------------------------------------------------------------------------


def test_best_interval(answer, call):
    for _ in range(8):
        save = random.uniform(5, 120)
        machines = random.randint(2, 40)
        alone = random.uniform(50, 200) * machines * save
        found = call(answer, save, alone, machines)
        if getattr(found, "ndim", None) == 0:
            found = found.item()
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise Wrong(f"Return a number of seconds, got {_kind(found)}.")
        _look_at_interval(found, save, alone, machines)


def _look_at_interval(found, save, alone, machines):
    mean = alone / machines
    tempting = {
        math.sqrt(save * mean): "Too short: on average a failure costs half an interval, not all "
        "of it.",
        math.sqrt(2 * save * alone): f"{machines} machines fail {machines} times as often as one.",
        math.sqrt(2 * save * alone * machines): "More machines fail more often: the interval must "
        "become shorter with them.",
        2 * save * mean: "Seconds times seconds are no seconds: take the root.",
        math.sqrt(2 * mean / save): "Under the root must stand seconds squared. And a slower disk "
        "must lengthen the interval.",
        mean / 2: "A slower disk must lengthen the interval.",
        math.sqrt(2 * save * mean) / 60: "Return seconds, not minutes.",
    }
    right = math.sqrt(2 * save * mean)
    if found > 0 and _cost(found, save, mean) <= 1.001 * _cost(right, save, mean):
        return
    for value, sentence in tempting.items():
        if math.isclose(found, value, rel_tol=0.01):
            raise Wrong(sentence)
    if not found > 0:
        raise Wrong(f"An interval is longer than 0 s, got {found:.3g} s.")
    raise Wrong(
        f"A save of {save:.0f} s, a failure every {mean:.0f} s on average: an interval of "
        f"{found:.3g} s costs {_cost(found, save, mean):.1%} of the time, the best one "
        f"{_cost(right, save, mean):.1%}."
    )


def _cost(interval, save, mean):
    return save / interval + interval / (2 * mean)


# --- 34.3 -------------------------------------------------------------------------------


def test_reads(answer, call):
    for readers in random.sample(range(1, 8), 7):
        chunks, total = _chunks()
        share = -(-total // readers)
        for reader in range(readers):
            start, stop = min(reader * share, total), min((reader + 1) * share, total)
            _look_at_reads(call(answer, chunks, start, stop), chunks, start, stop)


def _chunks():
    """Return unequal chunks, in order, and the number of their rows."""
    chunks, first = [], 0
    for n in range(random.randint(2, 5)):
        rows = random.randint(1, 9)
        chunks.append((f"__{n}_0.distcp", first, rows))
        first += rows
    return chunks, first


def _triples(found):
    def good(read):
        return (
            isinstance(read, list | tuple)
            and len(read) == 3
            and isinstance(read[0], str)
            and all(isinstance(n, int) and not isinstance(n, bool) for n in read[1:])
        )

    if not isinstance(found, list | tuple) or not all(map(good, found)):
        raise Wrong(
            f"Return a list of (file, from, to), a text and two whole numbers, got {_kind(found)}."
        )
    return [tuple(read) for read in found]


def _look_at_reads(found, chunks, start, stop):
    reads, sizes = _triples(found), {file: (first, rows) for file, first, rows in chunks}
    asked = f"Chunks {[chunk[1:] for chunk in chunks]}, rows {start} to {stop}"
    for file, begin, end in reads:
        if file not in sizes:
            raise Wrong(f"There is no file {file}.")
        if begin == end:
            raise Wrong(f"{asked}: you read no row of {file}. Leave it closed.")
        if not 0 <= begin < end <= sizes[file][1]:
            raise Wrong(
                f"{asked}: rows {begin} to {end} of {file}, which has {sizes[file][1]}. from and to "
                "count within the file."
            )
    rows = [sizes[file][0] + n for file, begin, end in reads for n in range(begin, end)]
    needed = list(range(start, stop))
    if rows == needed:
        return
    if sorted(rows) == needed:
        raise Wrong(f"{asked}: all rows, but not in their order.")
    if set(rows) > set(needed):
        raise Wrong(f"{asked}: you read {len(rows)} rows and need {len(needed)}.")
    missing = sorted(set(needed) - set(rows))
    if missing:
        raise Wrong(f"{asked}: row {missing[0]} is not read.")
    raise Wrong(f"{asked}: row {max(rows, key=rows.count)} is read twice.")


# --- 34.4 -------------------------------------------------------------------------------


def _write(path):
    """Write a checkpoint of two files with at least two tensors in each."""
    import torch.distributed.checkpoint as dcp  # seconds: not for those who list the exercises

    state = {name: torch.randn(random.randint(20, 40)) for name in "abcde"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one process is what we want here
        dcp.save(
            state,
            storage_writer=dcp.FileSystemWriter(path, thread_count=2),
            no_dist=True,
        )


def _lose_metadata(path):
    (path / ".metadata").rename(path / ".metadata.tmp")


def _lose_a_file(path):
    max(path.glob("*.distcp")).unlink()


def _cut_a_file(path):
    file = min(path.glob("*.distcp"))
    file.write_bytes(file.read_bytes()[: -random.randint(1, 100)])  # of its last tensor only


_BROKEN = {
    "has no .metadata: its save never ended": _lose_metadata,
    "lacks a file that its metadata names": _lose_a_file,
    "has a file that ends before the bytes that its metadata names": _cut_a_file,
}


def test_newest_whole(answer, call):
    with tempfile.TemporaryDirectory() as folder:
        root, model = Path(folder, "run 1"), Path(folder, "model")
        _write(model)
        root.mkdir()
        _expect(call(answer, root), None, "The folder is empty", {})
        nine = random.choice([9, 99])
        for step in (nine, nine + 1):
            shutil.copytree(model, root / f"step-{step}")
        os.utime(root / f"step-{nine}", (2e9, 2e9))
        best, reasons = root / f"step-{nine + 1}", {f"step-{nine}": f"is older than {nine + 1}"}
        _expect(call(answer, root), best, "Two whole checkpoints", reasons)
        (root / f"step-{nine + 50}").write_text("a file, not a folder")
        shutil.copytree(model, root / "step-best")
        reasons |= {f"step-{nine + 50}": "is no folder", "step-best": "has no number"}
        _expect(call(answer, root), best, "Among other names", reasons)
        for n, (reason, damage) in enumerate(_BROKEN.items(), 2):
            path = root / f"step-{nine + n}"
            shutil.copytree(model, path)
            damage(path)
            reasons[path.name] = reason
            _expect(call(answer, root), best, "A damaged one is the newest", reasons)
        for step in (nine, nine + 1):
            shutil.rmtree(root / f"step-{step}")
        _expect(call(answer, root), None, "No whole one is left", reasons)


def _expect(found, expected, case, reasons):
    if found is not None and not isinstance(found, Path):
        raise Wrong(f"Return the path of a folder, or None, got {_kind(found)}.")
    if found == expected:
        return
    if found is None:
        raise Wrong(f"{case}: you found none, but {expected.name} is whole. Look further back.")
    if found.name in reasons:
        raise Wrong(f"{case}: {found.name} {reasons[found.name]}.")
    raise Wrong(f"{case}: {found.name} is none of its checkpoints.")


# --- The answers ------------------------------------------------------------------------

_HEAD = """\
def train(folder, steps, make, batch, save):
    model, optimizer = make()
    path = folder / "last.pt"
"""
_LOAD = """\
    done = 0
    if path.exists():
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["step"]
"""
_LOOP = """\
    for step in range(done + 1, steps + 1):
        x, y = batch(step)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
"""
_SAVE = """\
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        save(state, path)
"""
_END = "    return model\n"
_RIGHT = _HEAD + _LOAD + _LOOP + _SAVE + _END
_ONLY_MODEL = '        save({"model": model.state_dict(), "step": step}, path)\n'


def _train_with(old, new):
    if old not in _RIGHT:
        raise ValueError(f"the solution must contain {old!r} to be spoiled")
    return _RIGHT.replace(old, new)


_INTERVAL = "def best_interval(save_seconds, seconds_between_failures, machines):\n    return "
_READS = """\
def reads(chunks, start, stop):
    found = []
    for file, first, rows in chunks:
        begin, end = max(start, first), min(stop, first + rows)
        if begin < end:
            found.append((file, begin - first, end - first))
    return found
"""
_NEWEST_HEAD = """\
def is_whole(path):
    from torch.distributed.checkpoint import FileSystemReader

    if not (path / ".metadata").is_file():
        return False
    for entry in FileSystemReader(path).read_metadata().storage_data.values():
        file = path / entry.relative_path
        if not file.is_file() or file.stat().st_size < entry.offset + entry.length:
            return False
    return True


"""
_NEWEST = """\
def newest_whole(root):
    steps = [path for path in root.glob("step-*") if path.name[5:].isdigit()]
    for path in sorted(steps, key=lambda path: int(path.name[5:]), reverse=True):
        if is_whole(path):
            return path
    return None
"""


def _newest_with(old, new):
    source = _NEWEST_HEAD + _NEWEST
    if old not in source:
        raise ValueError(f"the solution must contain {old!r} to be spoiled")
    return source.replace(old, new)


EXERCISES = {
    "34.1": Exercise(
        title="Resume after a kill",
        minutes=9,
        task="A kill may come at any place; then train is called again with the same folder. "
        "Repair it: no saved step is taken twice, and the model that it returns is that of a run "
        "without kills, to the bit. save(state, path) is atomic; batch(step) depends on the step "
        "alone.",
        stub=_HEAD + _LOOP.replace("done + 1", "1") + _ONLY_MODEL + _END,
        answer="train",
        test=test_train,
        hints=(
            "What does the second call know? Only what lies in the folder.",
            "Killed in step 5, saved after step 4: the next step is 5, with the momentum of 4.",
            "if path.exists(): state = torch.load(path)  # before the loop",
        ),
        solution=_RIGHT,
        wrong=(
            WrongAnswer(
                "starts over",
                _HEAD + "    done = 0\n" + _LOOP + _SAVE + _END,
                "Load what was saved",
            ),
            WrongAnswer(
                "takes the saved step again",
                _train_with("range(done + 1", "range(max(done, 1)"),
                "What step",
            ),
            WrongAnswer(
                "skips a step",
                _train_with('done = state["step"]', 'done = state["step"] + 1'),
                "never took",
            ),
            WrongAnswer(
                "no optimizer",
                _train_with('        optimizer.load_state_dict(state["optimizer"])\n', ""),
                "momentum began at zero",
            ),
            WrongAnswer(
                "no model",
                _train_with('        model.load_state_dict(state["model"])\n', ""),
                "The weights differ",
            ),
            WrongAnswer(
                "loads without asking",
                _train_with("    if path.exists():\n", "    if True:\n"),
                "ask whether the file exists",
            ),
            WrongAnswer(
                "catches the kill",
                _HEAD
                + _LOAD
                + "    try:\n        return _go(model, optimizer, done, steps, batch, "
                "save, path)\n    except BaseException:\n        return model\n\n\n"
                "def _go(model, optimizer, done, steps, batch, save, path):\n"
                + _LOOP
                + _SAVE
                + _END,
                "cannot be caught",
            ),
            WrongAnswer(
                "saves at the end only",
                _RIGHT.replace(
                    _SAVE,
                    textwrap.dedent(_SAVE)
                    .replace("state =", "    state =")
                    .replace("save(", "    save("),
                ),
                "the last save was after step 0",
            ),
            WrongAnswer(
                "returns nothing", _RIGHT.replace("    return model\n", ""), "must return the model"
            ),
            WrongAnswer(
                "stops early", _train_with("steps + 1)", "min(steps, 2) + 1)"), "never saved step"
            ),
            WrongAnswer(
                "stops early after the restart",
                _train_with("steps + 1)", "(steps if done else steps + 1))"),
                "each once",
            ),
            WrongAnswer(
                "one step more each time",
                _train_with(
                    "range(done + 1, steps + 1)", "[*range(done + 1, steps + 1)] or [steps]"
                ),
                "took more steps",
            ),
            WrongAnswer(
                "a new model when there is nothing to do",
                _train_with("    return model", "    return model if done < steps else make()[0]"),
                "must return the finished model",
            ),
        ),
    ),
    "34.2": Exercise(
        title="Choose the checkpoint interval",
        minutes=6,
        task="A save stops training for save_seconds. One machine fails every "
        "seconds_between_failures on average, any of them stops the job, and what was done since "
        "the last save is lost. Return the interval between saves, in seconds, that costs least.",
        stub=_INTERVAL + "...\n",
        answer="best_interval",
        test=test_best_interval,
        hints=(
            "Per second, saves cost save / interval. Which part of an interval does a failure cost?",
            "Half an interval on average. With a save of 2 s and a failure every 100 s, 20 s "
            "between saves cost 2 / 20 + 10 / 100.",
            "mean = seconds_between_failures / machines",
        ),
        solution=_INTERVAL + "(2 * save_seconds * seconds_between_failures / machines) ** 0.5\n",
        wrong=(
            WrongAnswer(
                "a failure costs a whole interval",
                _INTERVAL + "(save_seconds * seconds_between_failures / machines) ** 0.5\n",
                "half an interval",
            ),
            WrongAnswer(
                "one machine",
                _INTERVAL + "(2 * save_seconds * seconds_between_failures) ** 0.5\n",
                "times as often as one",
            ),
            WrongAnswer(
                "more machines, longer",
                _INTERVAL + "(2 * save_seconds * seconds_between_failures * machines) ** 0.5\n",
                "More machines fail more often",
            ),
            WrongAnswer(
                "no root",
                _INTERVAL + "2 * save_seconds * seconds_between_failures / machines\n",
                "take the root",
            ),
            WrongAnswer(
                "divided",
                _INTERVAL + "(2 * seconds_between_failures / machines / save_seconds) ** 0.5\n",
                "seconds squared",
            ),
            WrongAnswer(
                "half the time between failures",
                _INTERVAL + "seconds_between_failures / machines / 2\n",
                "A slower disk",
            ),
            WrongAnswer(
                "minutes",
                _INTERVAL
                + "(2 * save_seconds * seconds_between_failures / machines) ** 0.5 / 60\n",
                "not minutes",
            ),
            WrongAnswer("a constant", _INTERVAL + "3.0\n", "costs"),
            WrongAnswer("zero", _INTERVAL + "0\n", "longer than 0 s"),
            WrongAnswer("a text", _INTERVAL + "'often'\n", "Return a number of seconds"),
        ),
    ),
    "34.3": Exercise(
        title="Plan what each reader reads",
        minutes=6,
        task="chunks lists (file, first row, number of rows), in order, without gaps. A reader "
        "owns the rows from start to stop, stop excluded. Return (file, from, to) for each file "
        "that it must open; from and to count within the file.",
        stub='''\
def reads(chunks, start, stop):
    """List the rows that a reader takes from each file."""
    ...
''',
        answer="reads",
        test=test_reads,
        hints=(
            "A chunk and a reader share an interval of rows, or none.",
            "Files of 5 and 3 rows, reader of rows 4 to 6: one row of each, (4, 5) and (0, 1).",
            "begin, end = max(start, first), min(stop, first + rows)",
        ),
        solution=_READS,
        wrong=(
            WrongAnswer(
                "whole files",
                _READS.replace("(file, begin - first, end - first)", "(file, 0, rows)"),
                "rows and need",
            ),
            WrongAnswer(
                "rows of the whole tensor",
                _READS.replace("(file, begin - first, end - first)", "(file, begin, end)"),
                "count within the file",
            ),
            WrongAnswer(
                "stop included", _READS.replace("min(stop, ", "min(stop + 1, "), "rows and need"
            ),
            WrongAnswer(
                "start left out", _READS.replace("max(start, ", "max(start + 1, "), "is not read"
            ),
            WrongAnswer(
                "opens what it does not need",
                _READS.replace(
                    "        if begin < end:\n            ",
                    "        end = max(begin, end)\n        ",
                ),
                "Leave it closed",
            ),
            WrongAnswer(
                "a file for each reader",
                "def reads(chunks, start, stop):\n    file, first, rows = chunks[0]\n"
                "    return [(file, 0, min(rows, stop - start))] if stop > start else []\n",
                "is not read",
            ),
            WrongAnswer(
                "backwards", _READS.replace("return found", "return found[::-1]"), "in their order"
            ),
            WrongAnswer(
                "reads twice",
                _READS.replace("return found", "return found + found[:1]"),
                "read twice",
            ),
            WrongAnswer(
                "makes up a name",
                _READS.replace("append((file,", "append(('0.pt',"),
                "There is no file",
            ),
            WrongAnswer(
                "a number",
                "def reads(chunks, start, stop):\n    return stop - start\n",
                "Return a list",
            ),
        ),
    ),
    "34.4": Exercise(
        title="Find the newest whole checkpoint",
        minutes=9,
        task="root holds folders step-N of torch.distributed.checkpoint, among other things. "
        "Return the path of the newest whole one, or None. Whole: .metadata is there, and each "
        "file that it names is long enough for what it says. In storage_data each value has "
        "relative_path, offset and length.",
        stub='def newest_whole(root):\n    paths = sorted(root.glob("step-*"))\n    return paths[-1]\n',
        answer="newest_whole",
        test=test_newest_whole,
        hints=(
            "Newest by number; whole by what the metadata says; and if it is not whole, the next.",
            "As text step-9 comes after step-10. A copy that was cut short keeps its metadata.",
            "data = dcp.FileSystemReader(path).read_metadata().storage_data.values()",
        ),
        solution=_NEWEST_HEAD + _NEWEST,
        wrong=(
            WrongAnswer(
                "sorted as text",
                _newest_with("key=lambda path: int(path.name[5:]), ", ""),
                "is older than",
            ),
            WrongAnswer(
                "by time of change",
                _newest_with("int(path.name[5:])", "path.stat().st_mtime"),
                "is older than",
            ),
            WrongAnswer(
                "the highest number",
                _newest_with("if is_whole(path)", "if path.is_dir()"),
                "has no .metadata",
            ),
            WrongAnswer(
                "believes the metadata",
                _newest_with("    for entry", "    return True\n    for entry"),
                "lacks a file",
            ),
            WrongAnswer(
                "does not look at lengths",
                _newest_with(" or file.stat().st_size < entry.offset + entry.length", ""),
                "ends before the bytes",
            ),
            WrongAnswer(
                "does not add the offset",
                _newest_with("entry.offset + entry.length", "entry.length"),
                "ends before the bytes",
            ),
            WrongAnswer(
                "asks only the newest",
                _newest_with("    return None", "    return None").replace(
                    "            return path\n", "            return path\n        return None\n"
                ),
                "Look further back",
            ),
            WrongAnswer(
                "any folder",
                _NEWEST_HEAD
                + "def newest_whole(root):\n"
                + '    whole = [path for path in root.glob("step-*") if is_whole(path)]\n'
                + "    def number(path):\n        digits = path.name[5:]\n"
                + "        return int(digits) if digits.isdigit() else 10**9\n"
                + "    return max(whole, key=number, default=None)\n",
                "has no number",
            ),
            WrongAnswer(
                "the folder above",
                _newest_with("    return None", "    return root"),
                "is none of its",
            ),
            WrongAnswer(
                "a name",
                _newest_with("            return path", "            return path.name"),
                "Return the path",
            ),
            WrongAnswer("a number", "def newest_whole(root):\n    return 10\n", "Return the path"),
        ),
    ),
}
