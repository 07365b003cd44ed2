"""What notebook 71 says about levers and budgets, counted again with few steps."""

import json
from functools import partial

import nbformat
import pytest
import torch
from test_contest import metered, recipe

from exercises import nb71
from helpers import addition, contest, launch
from helpers._paths import ROOT
from helpers.exercises import Wrong
from helpers.exercises._selftest import judge_source

HUGE = 2**40
FIRST, SECOND = nb71.BUDGETS["71.3"], nb71.BUDGETS["71.4"]


def peak(*args, **options):
    return metered(recipe(*args, steps=2, **options)).bytes


def test_the_start_needs_more_than_twice_the_first_budget():
    assert peak(128) > 2 * FIRST > 3 * SECOND


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 32},
        {"batch": 64, "parts": 2},
        {"batch": 64, "cast": True},
        {"batch": 64, "segments": True},
        {"batch": 64, "share": 0.5},
    ],
    ids=str,
)
def test_several_recipes_meet_the_first_budget_with_room(options):
    assert SECOND < peak(**options) < 0.95 * FIRST


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 32, "segments": True, "cast": True},
        {"batch": 32, "parts": 2, "segments": True},
        {"batch": 32, "parts": 2, "cast": True},
        {"batch": 32, "share": 0.3, "cast": True},
        {"batch": 32, "half": True},
        {"batch": 16},
    ],
    ids=str,
)
def test_several_recipes_meet_the_second_budget_with_room(options):
    assert peak(**options) < 0.98 * SECOND


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 32},
        {"batch": 32, "parts": 2},
        {"batch": 32, "segments": True},
        {"batch": 32, "cast": True},
        {"batch": 64, "segments": True, "cast": True},
    ],
    ids=str,
)
def test_other_single_levers_or_too_many_rows_miss_the_second_budget(options):
    assert peak(**options) > SECOND


def test_from_4_sums_to_2_the_step_is_the_peak_unless_it_is_fused():
    assert peak(4, fused=False) - peak(2, fused=False) == 2 * addition.LENGTH
    assert peak(2) < peak(2, fused=False)
    copies = 4 * sum(p.nbytes for p in addition.build().parameters())
    assert copies < peak(2) < 1.1 * copies


def test_the_share_that_keeps_a_fifth_needs_less_than_the_one_that_keeps_nothing():
    assert peak(128, share=0.2) < peak(128, share=0) == peak(128, segments=True)


def test_a_table_under_no_grad_never_moves_and_nothing_else_is_said():
    def forward(model, ids):
        with torch.no_grad():
            x = model.embed(ids)
        for block in model.blocks:
            x = block(x)
        return model.head(model.norm(x))

    def train(model, sums):
        optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
        for _ in range(2):
            addition.loss(partial(forward, model), sums[:8]).backward()
            optimizer.step()
        return model

    made = contest.attempt(train, HUGE)
    assert made.reasons == ("2 of 30 tensors never moved: token.weight, position.weight.",)


@pytest.mark.parametrize("id", ["71.1", "71.2", "71.3", "71.4", "71.5"])
@pytest.mark.parametrize("value", ["None", "[]", "'text'", "torch.zeros(2)", "3"])
def test_another_type_gets_a_sentence(id, value):
    exercise = nb71.EXERCISES[id]
    source = f"{exercise.answer} = {value}\n"
    if not exercise.stub.startswith(exercise.answer):
        head = exercise.stub.partition("\n")[0]
        source = f"{head}\n    return {value}\n"
    verdict = judge_source(id, source)
    assert verdict.status in ("wrong", "unfinished")
    assert verdict.sentence
    assert "Traceback" not in verdict.sentence


@pytest.mark.parametrize(
    ("number", "says"),
    [("71.3", "Weights, gradients and Adam's moments are most of it"), ("71.4", "activations of")],
)
def test_advice_names_what_stands_at_the_peak(number, says):
    made = contest.attempt(recipe(32 if number == "71.4" else 2), HUGE, least=0)
    assert says in nb71._advice(made)


def test_advice_for_micro_batches_gives_both_shares():
    made = contest.attempt(recipe(64, parts=4), HUGE, least=0)
    advice = nb71._advice(made)
    rows, rest = (int(text.split()[-1].replace(",", "")) for text in advice.split(" of them")[:1]
                  + advice.split(" are weights")[:1])  # fmt: skip
    assert rows + rest == made.bytes
    assert rest > rows
    assert "activations of 16 rows" in advice


def test_a_second_model_is_not_told_that_it_added_up_losses():
    def train(model, sums):
        return recipe(16)(addition.build(), sums)

    assert "other tensors you made" in nb71._advice(contest.attempt(train, HUGE, least=0))


def test_the_check_counts_what_an_attempt_counts():
    source = (
        "import torch\nfrom helpers import addition\n"
        "def train_smaller(model, sums):\n"
        "    addition.loss(model, sums[:64]).backward()\n    return model\n"
    )

    def train(model, sums):
        addition.loss(model, sums[:64]).backward()
        return model

    made = contest.attempt(train, SECOND)
    assert made.reasons[0] in judge_source("71.4", source).sentence


def test_ranks_that_are_not_done_in_time_get_a_sentence(monkeypatch):
    slow = launch.Launch("timed out", 110.0, error="rank 0: line 82")
    monkeypatch.setattr(nb71, "torchrun", lambda *_, **__: slow)
    monkeypatch.setattr(nb71, "run_ranks", nb71.run_ranks.__wrapped__)
    recipe = {"split": "FSDP2", "micro_batches": 2, "checkpoint": True, "bfloat16": True}
    with pytest.raises(Wrong, match=r"The ranks were not done after 110 s\. Fewer micro-batches"):
        nb71.test_ranks(recipe, None)
    with pytest.raises(Wrong, match=r"must divide the 32 rows of a rank, got 2\.0"):
        nb71.test_ranks(recipe | {"micro_batches": 2.0}, None)


def test_the_notebook_states_the_budgets_that_are_checked():
    book = nbformat.read(ROOT / "notebooks" / "71_train_under_a_budget.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in book.cells)
    for id, budget in nb71.BUDGETS.items():
        assert f"{budget / 2**20:g} MiB" in nb71.EXERCISES[id].task
        assert f"{budget / 2**20:g} MiB" in text
    assert '{"first budget": 9 * 2**19, "second budget": 5 * 2**19}' in text
    assert (FIRST, SECOND) == (9 * 2**19, 5 * 2**19)


def test_rank_recipes_that_pass_and_that_do_not():
    base = {"split": "FSDP2", "micro_batches": 4, "checkpoint": False, "bfloat16": False}
    fits = [
        base | {"bfloat16": True},
        base | {"split": "ZeRO-1", "checkpoint": True},
        base | {"checkpoint": True, "bfloat16": True},
        base | {"split": "ZeRO-1", "micro_batches": 8},
    ]
    over = [
        base | {"split": "none", "micro_batches": 32, "checkpoint": True, "bfloat16": True},
        base | {"split": "FSDP2, root only"},
        base | {"split": "ZeRO-1"},
        base,
    ]
    recipes = json.dumps([one | {"fused": True} for one in fits + over])
    run = launch.torchrun("scripts/budget_ranks.py", [recipes, 0, 0], timeout=120)
    peaks = [max(pair) for pair in zip(*_bytes(run), strict=True)]
    assert max(peaks[: len(fits)]) < nb71.BUDGETS["71.5"] < min(peaks[len(fits) :])


def test_gathered_blocks_that_are_too_large_are_named():
    recipe = {"split": "FSDP2", "micro_batches": 4, "checkpoint": True, "bfloat16": False}
    assert "A block is gathered whole" in nb71._why(recipe)
    assert "segments, or smaller" in nb71._why(recipe | {"split": "ZeRO-1"})


def _bytes(run):
    return [[one["bytes"] for one in rank] for rank in run.by_rank("recipes")]


def test_the_figure_names_an_attempt_after_the_readers_function():
    judge_source("71.3", nb71.EXERCISES["71.3"].wrong[0].source)  # it ends after one step
    names = [name for name, *_ in contest.plot_attempts("Attempts", {"first": FIRST}).rows]
    assert "train_small" in names
