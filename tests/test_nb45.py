"""What notebook 45 says about combined savings, counted again by the checks' own code."""

import itertools
import statistics
from functools import partial
from types import SimpleNamespace

import nbformat
import pytest
import torch

from exercises import nb45
from exercises.nb45 import Arm, count
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source
from helpers.table import Table
from helpers.units import format_bytes, format_time

FOUR = Arm("Adam", True, True, 4)


@pytest.fixture(scope="module")
def peaks():
    arms = itertools.product(("Adam", "SGD, momentum"), (False, True), (False, True), (1, 4))
    return {arm: count(arm).total for arm in itertools.starmap(Arm, arms)}


def test_the_single_savings_add_up_to_more_than_the_peak(peaks):
    plain = peaks[Arm()]
    alone = [
        Arm(autocast=True),
        Arm(checkpoint=True),
        Arm(micro_batches=4),
        Arm("SGD, momentum"),
    ]
    assert sum(plain - peaks[arm] for arm in alone) > plain > peaks[Arm("SGD, momentum", *FOUR[1:])]


def test_all_but_autocast_is_the_smallest_of_the_16(peaks):
    assert len(peaks) == 16
    assert min(peaks, key=peaks.get) == Arm("SGD, momentum", False, True, 4)


def test_autocast_and_micro_batches_add_bytes_when_all_else_is_on(peaks):
    for optimizer in ("Adam", "SGD, momentum"):
        full = FOUR._replace(optimizer=optimizer)
        assert peaks[full] > peaks[full._replace(autocast=False)]
        assert peaks[full] > peaks[full._replace(micro_batches=1)]
        assert peaks[full] < peaks[full._replace(checkpoint=False)]


def test_without_its_cache_autocast_saves_bytes_and_the_weights_are_equal(peaks):
    assert count(FOUR, cached=False).total < peaks[FOUR._replace(autocast=False)]
    weights = []
    for cached in (True, False):
        torch.manual_seed(1)
        model, optimizer, ids = nb45.build(FOUR)
        for _ in range(2):
            nb45.run_step(model, optimizer, ids, FOUR, cached=cached)
        weights.append([p.detach().clone() for p in model.parameters()])
    assert all(map(torch.equal, *weights))


def test_no_arm_with_adam_is_below_four_copies_of_the_weights(peaks):
    floor = 4 * 4 * nb45.SMALL.parameters + 4 * nb45.SMALL.tensors
    assert floor == 21_217_588
    assert all(total > floor for arm, total in peaks.items() if arm.optimizer == "Adam")


@pytest.mark.parametrize("values", [(True, True, 16), (False, False, 16), (True, True, 8)])
def test_several_settings_fit_the_budget(values):
    assert judge_source("45.1", nb45._settings(*values)).status == "passed"


LEAN = {
    "the cache is emptied after each block": nb45._lean(nb45._DIVIDED + nb45._STEP).replace(
        "model(part)", "logits(model, part)"
    )
    + "\n\ndef logits(model, part):\n"
    "    x = model.embedding(part)\n"
    "    x = x + model.positions(torch.arange(part.shape[1]))\n"
    "    for layer in model.layers:\n        x = layer(x)\n        torch.clear_autocast_cache()\n"
    "    return model.head(model.norm(x))\n",
    "autocast around the loop": "def lean_step(model, optimizer, ids):\n"
    "    optimizer.zero_grad()\n"
    '    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):\n'
    "        for part in ids.chunk(4):\n"
    "            loss = F.cross_entropy(model(part).flatten(0, 1), part.flatten())\n"
    "            (loss / 4).backward()\n    optimizer.step()\n",
}


def test_autocast_around_the_loop_is_another_right_answer():
    source = nb45._IMPORTS + LEAN["autocast around the loop"]
    assert judge_source("45.3", source).status == "passed"


def test_a_model_that_is_not_called_as_a_whole_is_told_what_is_missed():
    source = nb45._IMPORTS + LEAN["the cache is emptied after each block"]
    assert "Keep the four micro-batches" in judge_source("45.3", source).sentence


def test_one_optimizer_whose_gradients_vanish_is_another_right_answer():
    body = (
        "    optimizer = make_optimizer(trained)\n\n    def hook(p):\n        optimizer.step()\n"
        "        p.grad = None\n\n"
    )
    source = nb45._HEAD + nb45._TRAINED + body + nb45._ALL
    assert judge_source("45.4", source).status == "passed"


def test_the_calculator_as_given_is_right_for_the_model_it_was_tested_on():
    namespace = {}
    exec(nb45.EXERCISES["45.5"].stub, namespace)  # noqa: S102 - our own stub
    given = namespace["attention_bytes"]
    assert given(1, 16, 4096, 64, 64) == sum(nb45.attention_parts(1, 16, 4096, 64, 64))
    assert given(1, 16, 2048, 32, 4) != sum(nb45.attention_parts(1, 16, 2048, 32, 4))


@pytest.mark.parametrize("id", ["45.2", "45.3", "45.4", "45.5"])
@pytest.mark.parametrize("value", ["None", "'text'", "[1]", "3.5", "torch.ones(2)"])
def test_any_other_type_gets_a_sentence(id, value):
    exercise = nb45.EXERCISES[id]
    source = f"import torch\n\ndef {exercise.answer}(*args):\n    return {value}\n"
    verdict = judge_source(id, source)
    assert verdict.status == "wrong"
    assert len(verdict.sentence) > 20


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_menu_asks_the_allocator_where_there_is_cuda(kind):
    path = ROOT / "notebooks" / "45_combine_the_savings.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    (source,) = [c.source for c in cells if c.cell_type == "code" and "CUDA's alloc" in c.source]
    arms, ran, counted = [Arm(), Arm(checkpoint=True)], [], []

    class Times(dict):
        def speedup(self, *names):
            return SimpleNamespace(best=1 / 1.2)

    def compare(calls, *, min_run_time, device):
        for call in calls.values():
            call()
        return Times({name: SimpleNamespace(median=0.25) for name in calls})

    def count_there(arm, where):
        counted.append((arm, where.type))
        return SimpleNamespace(allocator=SimpleNamespace(requested_bytes=3 * 2**20))

    scope = {
        "device": SimpleNamespace(type=kind),
        "arms": arms,
        "build": lambda arm, where: (where.type,),
        "train_step": lambda *args: ran.append(args),
        "count": count_there,
        "peaks": {arm: SimpleNamespace(total=2**20) for arm in arms},
        "work": dict(zip(arms, (1.0, 1.21), strict=True)),
        "timing": SimpleNamespace(compare=compare),
        "partial": partial,
        "statistics": statistics,
        "format_bytes": format_bytes,
        "format_time": format_time,
    }
    scope["Table"] = lambda heads, rows: scope.update(shown=Table(heads, rows))
    exec(source, scope)  # noqa: S102 - a cell of the notebook
    assert ran == [(kind, arm) for arm in arms]
    assert counted == ([(arm, "cuda") for arm in arms] if kind == "cuda" else [])
    expected = "3.00 MiB" if kind == "cuda" else "not measured here"
    assert [row[-1] for row in scope["shown"].rows] == [expected] * 2
