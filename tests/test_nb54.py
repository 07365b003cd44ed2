"""What notebook 54 says about files and resuming, held against torch directly."""

import ast
import copy
import importlib.util
import io
import json
import os
import subprocess
import sys
import textwrap
import time
import zipfile

import nbformat
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from exercises import nb54
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source
from helpers.table import Table

SCRIPTS = ROOT / "notebooks" / "scripts"
NOTEBOOK = ROOT / "notebooks" / "54_save_and_resume.ipynb"
PARTS = (
    "parameters",
    "buffers",
    "optimizer",
    "scheduler",
    "scaler",
    "place in the data",
    "random state",
)


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def trainer():
    return load_script("resume_digits")


@pytest.fixture(scope="module")
def half_way(trainer):
    """Return the snapshot after 20 steps and the run after 40."""
    run = trainer.build(seed=3)
    take_steps(trainer, run, 20)
    parts = trainer.snapshot(run)
    take_steps(trainer, run, 20)
    return parts, run


def take_steps(trainer, run, count):
    for _ in range(count):
        trainer.step(run)


def outputs(trainer, run):
    run.model.eval()
    with torch.no_grad():
        return run.model(trainer.digits.images)


def through_a_file(thing, **options):
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file, **options)


def solution(id):
    exercise = nb54.EXERCISES[id]
    namespace = {"torch": torch, "np": np}
    exec(exercise.solution, namespace)  # noqa: S102 - a stored solution of the course
    return namespace[exercise.answer]


def from_notebook(name):
    """Return a function as the notebook defines it."""
    nb = nbformat.read(NOTEBOOK, 4)
    cell = next(c for c in nb.cells if c.cell_type == "code" and f"def {name}(" in c.source)
    wanted = [n for n in ast.parse(cell.source).body if getattr(n, "name", "") == name]
    namespace = {"torch": torch, "zipfile": zipfile, "FORMAT": 1}
    exec(compile(ast.Module(wanted, []), name, "exec"), namespace)  # noqa: S102 - a cell of the course
    return namespace[name]


def run_script(name, *arguments):
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(SCRIPTS / name), *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": paths},
    ).stdout.strip()


# --- resuming ---------------------------------------------------------------------------


def test_a_complete_resume_from_a_file_is_equal_to_the_bit(trainer, half_way):
    parts, true_run = half_way
    run = trainer.build(seed=999)
    trainer.restore(run, through_a_file(parts))
    take_steps(trainer, run, 20)
    assert trainer.digest(run) == trainer.digest(true_run)
    assert torch.equal(outputs(trainer, run), outputs(trainer, true_run))
    assert run.scaler.state_dict() == true_run.scaler.state_dict()


def test_a_resume_in_a_new_process_is_equal_to_the_bit(trainer, half_way, tmp_path):
    parts, true_run = half_way
    path = tmp_path / "a folder" / "half.pt"
    path.parent.mkdir()
    torch.save(parts, path)
    printed = run_script("resume_digits.py", path, 20, torch.get_num_threads())
    assert printed == trainer.digest(true_run)


def test_the_snapshot_has_the_seven_parts_and_is_no_view(trainer, half_way):
    parts, true_run = half_way
    assert tuple(parts) == PARTS
    now = dict(true_run.model.named_parameters())
    assert not any(torch.equal(now[name], value) for name, value in parts["parameters"].items())


@pytest.mark.parametrize("left_out", PARTS)
def test_each_part_that_is_left_out_changes_the_outputs(trainer, half_way, left_out):
    parts, true_run = half_way
    run = trainer.build(seed=999)
    trainer.restore(run, {name: part for name, part in parts.items() if name != left_out})
    take_steps(trainer, run, 20)
    assert not torch.equal(outputs(trainer, run), outputs(trainer, true_run))
    pairs = zip(run.model.parameters(), true_run.model.parameters(), strict=True)
    equal = all(torch.equal(a, b) for a, b in pairs)
    assert equal == (left_out == "buffers")


def test_a_scheduler_made_after_loading_begins_with_the_first_rate():
    def make():
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        return optimizer, scheduler

    optimizer, scheduler = make()
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
    assert optimizer.param_groups[0]["lr"] == 0.125
    assert states[1]["lr_lambdas"] == [None]
    late = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    late.load_state_dict(states[0])
    torch.optim.lr_scheduler.LambdaLR(late, lambda e: 0.5**e).load_state_dict(states[1])
    assert late.param_groups[0]["lr"] == 1.0
    optimizer, scheduler = make()
    optimizer.load_state_dict(states[0])
    scheduler.load_state_dict(states[1])
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.0625


def test_each_iteration_of_a_loader_draws_from_the_global_generator():
    data = TensorDataset(torch.zeros(4))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    iter(DataLoader(data, generator=torch.Generator()))
    assert torch.equal(before, torch.get_rng_state())
    iter(DataLoader(data))
    assert not torch.equal(before, torch.get_rng_state())


# --- files ------------------------------------------------------------------------------


def test_a_file_holds_the_storage_of_a_view_once():
    table = torch.zeros(1000, 100)
    file = io.BytesIO()
    torch.save({"table": table, "row": table[3]}, file)
    assert 400_000 < file.tell() < 410_000
    loaded = through_a_file({"table": table, "row": table[3]})
    loaded["row"].fill_(1.0)
    assert loaded["table"][3].sum() == 100
    assert through_a_file(table[3].clone()).untyped_storage().nbytes() == 400


def test_a_hostile_file_does_nothing_by_default_and_its_work_without_the_sandbox(tmp_path):
    class Payload:
        def __reduce__(self):
            return io.open, ("made while loading", "w")

    path = tmp_path / "stranger.pt"
    torch.save({"weight": torch.ones(4), "extra": Payload()}, path)
    assert os.listdir(tmp_path) == ["stranger.pt"]
    found = json.loads(run_script("load_stranger.py", path))
    assert found["weights_only=True"]["appeared"] == []
    assert "Unsupported global" in found["weights_only=True"]["error"]
    assert found["weights_only=False"] == {
        "error": "none",
        "weights are fine": True,
        "appeared": ["made while loading"],
    }


def wrapped(model):
    return {
        "compiled": torch.compile(model),
        "DataParallel": nn.DataParallel(model),
        "both": nn.DataParallel(torch.compile(model)),
        "plain": model,
    }


@pytest.mark.parametrize("kind", ["compiled", "DataParallel", "both", "plain"])
def test_only_a_strict_or_a_careful_load_notices_a_prefix(kind, tmp_path):
    source, target = nb54._plain(), nb54._plain()
    path = tmp_path / "weights.pt"
    torch.save(wrapped(source)[kind].state_dict(), path)
    before = copy.deepcopy(target.state_dict())
    if kind != "plain":
        target.load_state_dict(torch.load(path), strict=False)
        assert all(torch.equal(v, before[k]) for k, v in target.state_dict().items())
        with pytest.raises(RuntimeError, match="Missing key"):
            target.load_state_dict(torch.load(path))
    solution("54.3")(target, path)
    state = target.state_dict()
    assert all(torch.equal(v, state[k]) for k, v in source.state_dict().items())


def test_a_strict_load_that_fails_has_overwritten_the_layers_that_fit():
    model, other = nb54._plain(), nb54._plain()
    state = {**other.state_dict(), "2.weight": torch.zeros(9, 9)}
    with pytest.raises(RuntimeError, match=r"size mismatch for 2\.weight"):
        model.load_state_dict(state)
    assert torch.equal(model[0].weight, other[0].weight)


BAD = {
    "empty": (b"", "unreadable, BadZipFile"),
    "web page": (b"<!DOCTYPE html>", "unreadable, BadZipFile"),
    "list": ([1], "of another program"),
    "no format": ({"weight": torch.ones(2)}, "of another program"),
    "newer": ({"format": 2}, "of a newer version"),
    "not ours to run": ({"format": 1, "x": np.float64(1)}, "unreadable, UnpicklingError"),
    "good": ({"format": 1}, ""),
}


@pytest.mark.parametrize("kind", BAD)
def test_the_notebook_says_why_a_file_is_passed_over(kind, tmp_path):
    path, (content, reason) = tmp_path / "step-1.pt", BAD[kind]
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    assert from_notebook("why_not")(path) == reason


def test_the_notebook_finds_a_flipped_bit_and_half_a_file(tmp_path):
    path = tmp_path / "step-1.pt"
    torch.save({"format": 1, "weight": torch.full((50,), 1234.5)}, path)
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[good.index(np.float32(1234.5).tobytes())] ^= 1
    path.write_bytes(flipped)
    assert torch.load(path)["weight"][0] != 1234.5
    assert from_notebook("why_not")(path).startswith("damaged in ")
    path.write_bytes(good[: len(good) // 2])
    assert from_notebook("why_not")(path) == "unreadable, BadZipFile"


@pytest.mark.parametrize(
    ("losses", "last", "gone"),
    [
        ({9: 0.2, 10: 0.3, 11: 0.4}, 2, []),
        ({8: 0.1, 9: 0.2, 10: 0.3, 11: 0.4}, 2, [9]),
        ({8: 0.4, 9: 0.3, 10: 0.2, 11: 0.1}, 1, [8, 9, 10]),
    ],
)
def test_the_best_and_the_last_stay(losses, last, gone):
    assert from_notebook("can_go")(losses, last) == gone


def test_the_notebook_goes_on_without_safetensors(monkeypatch):
    for name in ("safetensors", "safetensors.torch"):
        monkeypatch.setitem(sys.modules, name, None)
    nb = nbformat.read(NOTEBOOK, 4)
    cell = next(c for c in nb.cells if "from safetensors.torch" in c.source)
    namespace = {"torch": torch, "row": torch.zeros(3), "Table": Table, "textwrap": textwrap}
    exec(cell.source, namespace)  # noqa: S102 - a cell of the course
    assert {result for _, result in namespace["rows"]} == {"not measured here: needs safetensors"}


SAVER = """
import os, sys, uuid, torch
from pathlib import Path
{source}
path, n = Path(sys.argv[1]), 0
while True:
    n += 1
    save_atomically({{"n": n, "weight": torch.full((1_000_000,), float(n))}}, path)
"""


def test_a_process_killed_while_it_saves_leaves_a_whole_file(tmp_path):
    script, path = tmp_path / "saver.py", tmp_path / "last.pt"
    script.write_text(SAVER.format(source=nb54.EXERCISES["54.2"].solution))
    process = subprocess.Popen([sys.executable, str(script), str(path)])
    try:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.1)
    finally:
        process.kill()
        process.wait(timeout=30)
    state = torch.load(path)
    assert (state["weight"] == state["n"]).all()
    assert from_notebook("why_not")(path) == "of another program"  # whole, and without a format


# --- the checks -------------------------------------------------------------------------

SIGNATURES = {
    "54.2": "def save_atomically(thing, path):\n    return ",
    "54.3": "def load_or_refuse(model, path):\n    return ",
    "54.4": "def resume(make_optimizer, make_scheduler, state):\n    return ",
}


@pytest.mark.parametrize("value", ["None", "[1]", "'text'", "torch.ones(2)", "(1, 2)", "{}"])
@pytest.mark.parametrize("id", ["54.1", *SIGNATURES])
def test_an_answer_of_another_type_gets_a_sentence(id, value):
    if id == "54.1":
        source = f"class Checkpoint:\n    def take(self, run):\n        return {value}\n"
        source += "    def put_back(self, run, state):\n        return None\n"
    else:
        source = SIGNATURES[id] + value + "\n"
    verdict = judge_source(id, source)
    assert verdict.status == "wrong"
    assert verdict.sentence[0].isupper() or verdict.sentence.startswith("take")


def test_a_save_of_an_own_kind_passes():
    source = """
import os, tempfile

def save_atomically(thing, path):
    file = tempfile.NamedTemporaryFile(dir=path.parent, delete=False)
    try:
        with file:
            torch.save(thing, file)
            file.flush()
            os.fsync(file)
        os.replace(file.name, path)
    except BaseException:
        os.unlink(file.name)
        raise
"""
    assert judge_source("54.2", source).status == "passed"


def test_a_save_by_way_of_memory_passes():
    source = """
import io, os, uuid

def save_atomically(thing, path):
    held = io.BytesIO()
    torch.save(thing, held)
    temp = path.parent / f"{os.getpid()}.new"
    try:
        with open(temp, "wb") as file:
            file.write(held.getvalue())
            file.flush()
            os.fsync(file.fileno())
        temp.replace(path)
    finally:
        temp.unlink(missing_ok=True)
"""
    assert judge_source("54.2", source).status == "passed"
