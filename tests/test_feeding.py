"""Datasets that workers import: what they load, count, cache and draw, under each start method."""

import multiprocessing
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
import yaml
from torch.utils.data import DataLoader

from helpers import feeding, plotting
from helpers._paths import ROOT
from helpers.data import load_digits

METHODS = multiprocessing.get_all_start_methods()


@pytest.fixture(scope="module")
def digits():
    return load_digits().train


@pytest.fixture
def own_process():
    """Run a program with this environment and return what it prints."""

    def run(program, **environ):
        command = [sys.executable, "-c", program]
        env = {**os.environ, **environ}
        done = subprocess.run(
            command, env=env, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


# Start methods -----------------------------------------------------------------------------

CHOOSE = "from helpers import feeding; print(feeding.choose_start_method())"


@pytest.mark.parametrize("method", METHODS)
def test_the_variable_decides_how_workers_start(own_process, method):
    program = f"{CHOOSE}; import multiprocessing as m; print(m.get_start_method())"
    assert own_process(program, COURSE_START_METHOD=method) == [method, method]


def test_without_the_variable_python_decides(own_process):
    python = own_process("import multiprocessing as m; print(m.get_start_method())")
    assert own_process(CHOOSE, COURSE_START_METHOD="") == python


def test_an_unknown_method_is_named_with_the_known_ones():
    with pytest.raises(ValueError) as caught:
        feeding.choose_start_method({"COURSE_START_METHOD": "thread"})
    assert str(caught.value) == (
        f"COURSE_START_METHOD must be one of {', '.join(METHODS)} on this system, got 'thread'; "
        "unset it for Python's own choice"
    )


PROGRAM = """
import torch
from torch.utils.data import DataLoader
from helpers import feeding
from helpers.data import load_digits

if __name__ == "__main__":
    feeding.choose_start_method()
    digits = load_digits().train
    loads = feeding.Loads(digits, wait=0)
    keys = [("rows", 3), ("waiting", 4)]
    images, _ = next(iter(DataLoader(loads, batch_size=2, sampler=keys, num_workers=1)))
    print(torch.equal(images, digits.images[3:5]), loads.loaded.value)
    shared = feeding.SharedCache(digits.images.__getitem__, 4, (1, 8, 8), torch.clone)
    print(sum(len(hits) for _, hits in DataLoader(shared, num_workers=1)))
    print(torch.equal(shared.items, digits.images[:4]))
"""


@pytest.mark.parametrize("method", METHODS)
def test_workers_find_the_datasets_under_each_start_method(tmp_path, own_process, method):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    run = f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"
    assert own_process(run, COURSE_START_METHOD=method) == ["True", "2", "4", "True"]


def test_the_nightly_leg_runs_the_notebook_under_each_start_method():
    text = (ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["jobs"]["start-methods"]
    assert sorted(job["strategy"]["matrix"]["method"]) == ["fork", "forkserver", "spawn"]
    assert job["env"][feeding.VARIABLE] == "${{ matrix.method }}"
    (command,) = [step["run"] for step in job["steps"] if "course.py test" in step.get("run", "")]
    assert (ROOT / command.split()[-1]).name == "23_feed_the_model.ipynb"
    assert any("size=64M /dev/shm" in step.get("run", "") for step in job["steps"])


# Loads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", feeding.LOADS)
def test_every_load_returns_the_digit_and_is_counted(digits, load):
    loads = feeding.Loads(digits, wait=0, rounds=3)
    image, label = loads[load, 7]
    assert torch.equal(image, digits.images[7])
    assert label == digits.labels[7]
    assert loads.loaded.value == 1
    assert len(loads) == len(digits)


def test_items_of_workers_are_counted_too(digits):
    loads = feeding.Loads(digits)
    keys = [("rows", index) for index in range(10)]
    assert len(list(DataLoader(loads, batch_size=5, sampler=keys, num_workers=2))) == 2
    assert loads.loaded.value == 10


def test_waiting_sleeps_and_computing_counts_rounds(digits, monkeypatch):
    slept = []
    monkeypatch.setattr(feeding.time, "sleep", slept.append)
    loads = feeding.Loads(digits, wait=0.5)
    _ = loads["rows", 0], loads["computing", 0]
    assert slept == []
    _ = loads["waiting", 0]
    assert slept == [0.5]


def test_loads_refuse_what_they_do_not_know(digits):
    with pytest.raises(KeyError, match="one of rows, waiting, computing, got 'disk'"):
        feeding.Loads(digits)["disk", 0]
    with pytest.raises(ValueError, match="wait must not be negative, got -1; use 0 for none"):
        feeding.Loads(digits, wait=-1)
    with pytest.raises(ValueError, match="rounds must not be negative, got -2"):
        feeding.Loads(digits, rounds=-2)


# Transform and caches ----------------------------------------------------------------------


def test_a_shift_keeps_the_pixels_and_meets_all_nine_places():
    image = torch.arange(9.0).reshape(1, 3, 3)
    kept = image.clone()
    torch.manual_seed(0)
    shifted = {tuple(feeding.shift_at_random(image).flatten().tolist()) for _ in range(200)}
    assert len(shifted) == 9
    assert {tuple(sorted(pixels)) for pixels in shifted} == {tuple(range(9))}
    assert torch.equal(image, kept)


def test_the_tutorials_cache_freezes_the_draw_and_holds_one_entry_too_many():
    torch.manual_seed(0)
    cached = feeding.TransformedCache(torch.rand(20, 1, 8, 8), feeding.shift_at_random, limit=10)
    assert len(cached.cache) == 0
    first, hit = cached[3]
    assert not hit
    assert all(torch.equal(cached[3][0], first) for _ in range(5))
    for index in range(len(cached)):
        _ = cached[index]
    assert len(cached.cache) == 11
    assert list(cached.cache) == list(range(9, 20))  # the hit at 3 protected nothing


def test_the_shared_cache_loads_each_image_once_and_returns_copies():
    asked = []

    def load(index):
        asked.append(index)
        return torch.full((2, 2), float(index))

    shared = feeding.SharedCache(load, 5, (2, 2), torch.Tensor.zero_)
    order = [4, 0, 4, 4, 0]
    assert [shared[index][1] for index in order] == [False, False, True, True, True]
    assert asked == [4, 0]
    assert shared.items[4].tolist() == [[4.0, 4.0], [4.0, 4.0]]  # zeroed copies, not the entry
    assert len(shared) == 5


def test_workers_fill_the_shared_cache_and_lose_the_other_one():
    images = torch.rand(6, 1, 8, 8)
    lost = feeding.TransformedCache(images, torch.clone)
    shared = feeding.SharedCache(images.__getitem__, 6, (1, 8, 8), torch.clone)
    hits = {}
    for name, dataset in {"lost": lost, "shared": shared}.items():
        epochs = [DataLoader(dataset, batch_size=3, num_workers=2) for _ in range(2)]
        hits[name] = [sum(int(hit.sum()) for _, hit in epoch) for epoch in epochs]
    assert hits == {"lost": [0, 0], "shared": [0, 6]}
    assert len(lost.cache) == 0
    assert torch.equal(shared.items, images)


# Draws and streams -------------------------------------------------------------------------


def test_only_the_generator_made_for_an_item_ignores_who_asks():
    draws = feeding.Draws(seed=3)
    first, again = draws[1, 2], draws[1, 2]
    fixed = "default_rng([seed, epoch, index])"
    assert first[fixed] == again[fixed] != draws[2, 1][fixed]
    assert feeding.Draws(seed=4)[1, 2][fixed] != first[fixed]
    assert all(first[name] != again[name] for name in first if name != fixed)


def test_every_worker_yields_all_numbers():
    loader = DataLoader(feeding.Numbers(5), batch_size=None, num_workers=2)
    assert Counter(loader) == dict.fromkeys(range(5), 2)


# Figure ------------------------------------------------------------------------------------

RATES = {"rows": {0: 1e5, 2: 1e4}, "waiting": {0: 100.0, 2: 200.0}}


@pytest.mark.parametrize("theme", plotting.PALETTES)
def test_the_figure_shows_each_load_and_the_model(theme):
    plotting.use_style(theme)
    chart = feeding.plot_throughput("Loads", RATES, appetite=450, caption="here")
    plotting.use_style("light")
    assert chart.columns == ("items per second", "0", "2")
    assert chart.rows == (
        ("rows", "100,000", "10,000"),
        ("waiting", "100", "200"),
        ("the model", "450", "450"),
    )
    dashed = [line for line in chart.axes.lines if line.get_linestyle() == "--"]
    assert [set(line.get_ydata()) for line in dashed] == [{450}]
    assert len(chart.axes.lines) == 3


@pytest.mark.parametrize(
    ("rates", "appetite", "words"),
    [
        ({}, 1, "at least one rate for each load"),
        ({"a": {}}, 1, "at least one rate for each load"),
        ({"a": {0: 1}, "b": {1: 1}}, 1, r"got \[0\] for a and \[1\] for b"),
        ({"a": {0: 0}}, 1, "must be above zero, got 0 for a"),
        ({"a": {0: 1}}, -1, "must be above zero, got -1 for the model"),
    ],
)
def test_a_figure_that_cannot_be_drawn_says_why(rates, appetite, words):
    with pytest.raises(ValueError, match=words):
        feeding.plot_throughput("", rates, appetite=appetite)
