"""What notebook 53 says about profiles, traces, logs, TensorBoard and bars, held against them."""

import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import nbformat
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from exercises import nb53
from helpers import board, claims
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source

SCRIPT = ROOT / "notebooks" / "scripts" / "log_and_wait.py"
CPU = [ProfilerActivity.CPU]


def cell(text):
    """Return the source of the only code cell that holds this text."""
    path = ROOT / "notebooks" / "53_profile_and_log.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    (found,) = [c.source for c in cells if c.cell_type == "code" and text in c.source]
    return found


def cycle(steps, **plan):
    """Profile numbered steps; return what the table holds after the loop, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(activities=CPU, schedule=schedule(**plan)) as prof:
            for step in range(steps):
                with record_function(f"numbered {step}"):
                    torch.ones(4, 4) @ torch.ones(4, 4)
                prof.step()
        rows = {row.key: row.count for row in prof.key_averages()}
    return rows, [str(warning.message) for warning in caught]


# --- profiler ----------------------------------------------------------------------------


def test_a_schedule_without_step_raises_and_names_the_profiler():
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2)) as prof:
        torch.ones(2)
    with pytest.raises(AssertionError, match="Profiler must be initialized before getting key"):
        prof.key_averages()


def test_without_repeat_the_table_holds_the_last_unfinished_cycle_or_nothing():
    plan = {"wait": 1, "warmup": 1, "active": 2}
    assert "aten::mm" not in cycle(41, **plan)[0]
    assert cycle(43, **plan)[0]["aten::mm"] == 1
    assert cycle(41, **plan, repeat=1)[0]["aten::mm"] == 2


def test_repeat_records_the_steps_after_wait_and_warm_up():
    rows, _ = cycle(41, wait=1, warmup=1, active=2, repeat=1)
    assert [key for key in rows if key.startswith("numbered")] == ["numbered 2", "numbered 3"]


def test_a_second_export_raises(tmp_path):
    with profile(activities=CPU) as prof:
        torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "a.json"))
    with pytest.raises(RuntimeError, match="Trace is already saved"):
        prof.export_chrome_trace(str(tmp_path / "b.json"))


def test_a_trace_of_a_few_steps_is_small_and_grows_with_each(tmp_path):
    sizes = []
    for steps in (1, 4):
        with profile(activities=CPU) as prof:
            for _ in range(20 * steps):
                torch.ones(4, 4) @ torch.ones(4, 4)
        path = tmp_path / f"{steps}.json"
        prof.export_chrome_trace(str(path))
        sizes.append(path.stat().st_size)
    assert 2 * sizes[0] < sizes[1] < 5_000_000
    assert "host_name" in json.loads(path.read_text())  # look before you share


@pytest.mark.skipif(torch.cuda.is_available(), reason="the column is there with CUDA")
def test_without_cuda_its_column_is_missing_and_sorting_by_it_is_accepted():
    with profile(activities=CPU) as prof:
        torch.ones(4, 4) @ torch.ones(4, 4)
    table = prof.key_averages().table(sort_by="cuda_time_total")
    assert "aten::mm" in table
    assert "CUDA" not in table


@pytest.mark.parametrize(
    "wrong",
    [
        {"trace_files": 1, "mm_count": 16, "active_steps": 2, "mm_per_step": 8},
        {"trace_files": 2, "mm_count": 8, "active_steps": 2, "mm_per_step": 8},
    ],
)
def test_the_ledger_can_disagree_about_the_schedule(wrong):
    assert not claims.record("A2-46", **wrong).met


# --- logs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "whole"),
    [
        ("list, dumped at the end", False),
        ("write", False),
        ("line by line", True),
        ("write, flush", True),
        ("logging", True),
    ],
)
def test_a_killed_process_leaves_what_it_had_flushed(tmp_path, way, whole):
    path = tmp_path / "log.jsonl"
    command = [sys.executable, str(SCRIPT), way, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "written\n"
        child.kill()
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    kept = [json.loads(line) for line in lines if line.endswith("\n")]
    assert [record["step"] for record in kept] == list(range(len(kept)))
    assert (len(kept) == 1000) == whole


def test_json_refuses_tensors_and_numpy_scalars_and_lets_nan_pass():
    for value in (torch.tensor(0.5), torch.tensor(0.5).numpy()[()]):
        with pytest.raises(TypeError, match="is not JSON serializable"):
            json.dumps({"loss": value})
        assert json.loads(json.dumps({"loss": value.item()})) == {"loss": 0.5}
    assert json.dumps(float("nan")) == "NaN"
    with pytest.raises(ValueError, match="not JSON compliant"):
        json.dumps(float("nan"), allow_nan=False)


def test_the_log_of_the_exercise_survives_a_kill_in_the_middle(tmp_path):
    """The check looks from outside while the log is open; here the process really ends."""
    path = tmp_path / "run.jsonl"
    program = (
        nb53.EXERCISES["53.4"].solution
        + "\nimport sys, time\nlog = RunLog(sys.argv[1])\n"
        + "for step in range(100):\n    log.append({'step': step, 'loss': float('nan')})\n"
        + "print('written', flush=True)\ntime.sleep(30)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "written\n"
        child.kill()
    with path.open("a") as file:
        file.write('{"step": 100, "lo')
    scope = {}
    exec(nb53.EXERCISES["53.4"].solution, scope)  # noqa: S102 - our own source
    log = scope["RunLog"](path)
    assert log.read() == [{"step": n, "loss": None} for n in range(100)]
    log.append({"step": 100, "loss": 0.5})  # the next run goes on in the same file
    log.append({"step": 101, "loss": 0.5})
    assert [record["step"] for record in scope["RunLog"](path).read()] == list(range(102))


# --- TensorBoard -------------------------------------------------------------------------


def test_two_runs_in_one_folder_make_one_curve_whose_steps_jump_back(tmp_path):
    for _ in range(2):
        with SummaryWriter(str(tmp_path)) as writer:
            for step in range(3):
                writer.add_scalar("loss", 1.0, step)
    assert [step for step, _ in board.read_points(tmp_path)] == [0, 1, 2, 0, 1, 2]
    assert len(os.listdir(tmp_path)) == 2
    writer.add_scalar("loss", float("nan"), 3)  # after close: a third file, without a word
    writer.close()
    assert len(os.listdir(tmp_path)) == 3
    assert str(board.read_points(tmp_path)[-1][1]) == "nan"


def test_the_logging_cell_makes_a_new_run_each_time(tmp_path):
    scope = {"tempfile": tempfile, "runs": tmp_path, "SummaryWriter": SummaryWriter, "board": board}
    new_run = cell("def new_run()").partition("writer =")[0]
    for source in (new_run, cell("spike_run = new_run()"), cell("spike_run = new_run()")):
        exec(source, scope)  # noqa: S102 - our own source
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == 2
    for folder in folders:
        steps = [step for step, _ in board.read_points(folder)]
        assert steps == list(range(10_000))


# --- progress bars -----------------------------------------------------------------------


def test_a_bar_is_redrawn_by_time_and_by_each_postfix():
    def redraws(change=lambda bar: None, **options):
        out = io.StringIO()
        bar = tqdm(range(500), file=out, **options)
        for _ in bar:
            change(bar)
        return out.getvalue().count("\r")

    assert redraws() < 100
    assert redraws(lambda bar: bar.set_postfix(loss=1.0)) > 500
    assert redraws(lambda bar: bar.set_postfix(loss=1.0, refresh=False)) < 100
    assert redraws(disable=None) == 0


# --- what the checks say about other types ------------------------------------------------


@pytest.mark.parametrize("made", ["None", "[]", "'text'", "torch.ones(2)", "0"])
@pytest.mark.parametrize("id", ["53.1", "53.3", "53.5"])
def test_another_type_gets_a_sentence(id, made):
    exercise = nb53.EXERCISES[id]
    source = f"import torch\ndef {exercise.answer}(*arguments):\n    return {made}\n"
    verdict = judge_source(id, source)
    assert verdict.status == "wrong", verdict
    assert "Traceback" not in verdict.sentence


@pytest.mark.parametrize("made", ["None", "[]", "'text'", "torch.ones(2)"])
def test_another_type_in_the_table_of_times_gets_a_sentence(made):
    source = "import torch\n" + nb53._times(step_total=made)
    assert judge_source("53.2", source).status == "wrong"


@pytest.mark.parametrize("made", ["'text'", "{}", "torch.ones(2)", "0"])
def test_another_type_from_read_gets_a_sentence(made):
    source = nb53._log("        return records", f"        import torch\n        return {made}")
    assert judge_source("53.4", source).status == "wrong"


def test_a_log_without_a_constructor_gets_a_sentence():
    verdict = judge_source("53.4", "class RunLog:\n    pass\n")
    assert verdict.status in ("wrong", "raised")
    assert verdict.sentence


def test_the_script_says_when_it_is_ready_and_ends_by_itself():
    source = Path(SCRIPT).read_text()
    assert 'print("written", flush=True)' in source
    assert "time.sleep(30)" in source
