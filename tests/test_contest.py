"""The meter of 71 counts what track_memory counts, sees compiled code, and judges fairly."""

import threading
from functools import partial

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from helpers import addition, contest
from helpers.memory import track_memory

BUDGET = 2**24


def recipe(
    batch=8, steps=2, *, parts=1, cast=False, segments=False, share=None, half=False, fused=True
):
    """Return a training by a recipe."""

    def train(model, sums):
        if half:
            model.bfloat16()
        for block in model.blocks if segments else ():
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
        for block in model.blocks if share is not None else ():
            block.compile()
        optimizer = torch.optim.AdamW(model.parameters(), 5e-3, fused=fused)
        with contest.activation_budget(1 if share is None else share):
            for _ in range(steps):
                for part in sums[torch.randint(len(sums), (batch,))].chunk(parts):
                    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
                        loss = addition.loss(model, part)
                    (loss / parts).backward()
                    del loss
                optimizer.step()
                optimizer.zero_grad()
        return model

    return train


def metered(train, seed=0):
    """Return the meter of a training, without asking what it has learned."""
    model, sums = addition.build(seed), addition.load_sums().train
    torch.manual_seed(seed)
    with contest.meter(model, sums) as found:
        train(model, sums)
    return found


def one_pass(batch=16):
    model, rows = addition.build(), addition.load_sums().train[:batch]
    return model, rows


def test_it_counts_what_track_memory_counts():
    model, rows = one_pass()
    with track_memory(model, rows) as peak:
        addition.loss(model, rows).backward()
    model, rows = one_pass()
    with contest.meter(model, rows) as found:
        addition.loss(model, rows).backward()
    assert found.bytes == peak.total
    assert dict(found.peak.by_category) == dict(peak.by_category)


def test_it_counts_the_arithmetic_that_torch_counts():
    model, rows = one_pass()
    with FlopCounterMode(display=False) as counter:
        addition.loss(model, rows).backward()
    model, rows = one_pass()
    with contest.meter(model, rows) as found:
        addition.loss(model, rows).backward()
    assert found.flops == counter.get_total_flops() > 0


def test_compiled_code_runs_compiled_and_the_share_decides_what_is_kept():
    peaks = {}
    for share in (1, 0.5, 0):
        peaks[share] = metered(recipe(64, 1, share=share)).bytes
    plain = metered(recipe(64, 1)).bytes
    assert peaks[0] == metered(recipe(64, 1, segments=True)).bytes
    assert peaks[0] < plain > peaks[0.5]
    assert abs(peaks[1] / plain - 1) < 0.01


def test_the_arithmetic_of_compiled_code_is_seen_too():
    plain, kept, none = (metered(recipe(64, 1, share=share)).flops for share in (None, 1, 0))
    assert plain == kept
    assert 1.1 * plain < none < 1.34 * plain


@pytest.mark.parametrize("asked", [{}, {"backend": "inductor", "mode": "max-autotune"}])
def test_whatever_backend_is_asked_for_graphs_run_operation_by_operation(asked, monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "compile", lambda model, **options: seen.append(options) or model)
    with contest.meter():
        torch.compile(torch.nn.Identity(), fullgraph=True, **asked)
        torch.compile(**asked)(torch.nn.Identity())
    assert seen == [{"fullgraph": True, "backend": "aot_eager"}, {"backend": "aot_eager"}]


def test_everything_is_put_back_also_after_an_exception():
    resize, compile = torch.UntypedStorage.resize_, torch.compile
    with pytest.raises(ZeroDivisionError), contest.meter():
        1 / 0  # noqa: B018
    assert (torch.UntypedStorage.resize_, torch.compile) == (resize, compile)


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_outside_is_refused(share):
    with (
        pytest.raises(ValueError, match=f"share must be between 0 and 1, got {share}"),
        contest.activation_budget(share),
    ):
        pass


def test_a_share_holds_inside_the_block_only():
    from torch._functorch import config

    before = config.activation_memory_budget
    with contest.activation_budget(0.25):
        assert config.activation_memory_budget == 0.25
    assert config.activation_memory_budget == before


def test_bytes_are_equal_over_seeds_and_threads():
    threads = torch.get_num_threads()
    try:
        found = set()
        for count, seed in ((1, 0), (2, 0), (1, 1)):
            torch.set_num_threads(count)
            found.add(metered(recipe(2), seed).bytes)
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1


def test_a_training_over_the_budget_ends_after_the_step_that_was():
    steps = []

    def train(model, sums):
        try:
            for _ in range(5):
                recipe(8, 1)(model, sums)
                steps.append(1)
        except Exception:  # noqa: BLE001 - as a reader's code might
            steps.append("caught")
        return model

    made = contest.attempt(train, 1000)
    assert not steps
    assert (made.steps, made.accuracy, made.accepted) == (1, None, False)
    assert made.reasons == (
        f"{made.bytes:,} bytes are {made.bytes - 1000:,} over the budget of 1,000.",
    )


def test_early_false_trains_to_the_end_and_asks_for_sums():
    made = contest.attempt(recipe(steps=3), 1000, early=False)
    assert made.steps == 3
    assert 0 <= made.accuracy <= 1
    assert len(made.reasons) == 2
    assert made.reasons[1].endswith("of the held-out sums are right, not 90%.")


def test_a_good_training_is_accepted_and_says_so():
    made = contest.attempt(recipe(), BUDGET, least=0)
    assert made.accepted
    assert repr(made).startswith("accepted: 1.")
    assert made.rows == 8


@pytest.mark.parametrize("back", [None, {}, torch.zeros(3)])
def test_something_else_than_a_model_is_rejected(back):
    made = contest.attempt(lambda model, sums: back, BUDGET)
    kind = type(back).__name__
    assert made.reasons == (f"train must return the trained model, got {kind}.",)


def test_compiled_and_half_models_are_loaded_into_a_fresh_one(monkeypatch):
    monkeypatch.setattr(addition, "accuracy", lambda *_: 0.95)  # asking for sums takes seconds
    for train in (recipe(half=True), recipe(share=0)):
        assert contest.attempt(train, BUDGET, least=0).accepted

    def wrapped(model, sums):
        return torch.compile(recipe()(model, sums))

    assert contest.attempt(wrapped, BUDGET, least=0).accepted


def test_each_fault_of_a_state_has_a_reason():
    start = {"a": torch.ones(2), "b": torch.zeros(2)}
    moved = {name: tensor + 1 for name, tensor in start.items()}
    assert contest.refuse(start, moved) == []
    assert contest.refuse(start, {"a": moved["a"]}) == ["The names differ: b."]
    assert contest.refuse(start, moved | {"c": moved["a"]}) == ["The names differ: c."]
    assert contest.refuse(start, moved | {"b": torch.ones(3)}) == ["b has shape (3,), not (2,)."]
    nan = torch.full((2,), torch.nan)
    assert contest.refuse(start, moved | {"b": nan}) == ["b is not finite."]
    assert contest.refuse(start, start) == ["2 of 2 tensors never moved: a, b."]


def test_every_attempt_is_drawn_once_with_its_verdict(monkeypatch):
    monkeypatch.setattr(contest, "_made", [])
    with pytest.raises(ValueError, match="nothing to draw: call attempt"):
        contest.plot_attempts("None", {})
    monkeypatch.setattr(addition, "accuracy", lambda *_: 0.95)  # asking for sums takes seconds
    for _ in range(2):
        contest.attempt(recipe(), BUDGET, label="good")
    contest.attempt(recipe(), 1000, label="large")
    contest.attempt(lambda model, sums: model, BUDGET, label="idle")
    contest.attempt(recipe(), BUDGET, least=0.96, label="dull")
    chart = contest.plot_attempts("Four attempts", {"budget": 2**21})
    assert [row[0] for row in chart.rows] == ["good", "large", "idle", "dull"]
    assert [row[3] for row in chart.rows] == ["accepted", "over budget", "not all moved", "wrong"]


def test_what_was_trained_outside_the_meter_is_rejected():
    ready = recipe()(addition.build(), addition.load_sums().train)

    def copied(model, sums):
        model.load_state_dict(ready.state_dict())
        return model

    def in_a_thread(model, sums):
        thread = threading.Thread(target=recipe(), args=(model, sums))
        thread.start()
        thread.join()
        return model

    for train in (copied, in_a_thread, lambda model, sums: ready):
        (reason,) = contest.attempt(train, BUDGET, least=0).reasons
        assert reason.startswith("No arithmetic was counted: all training belongs inside, in")


def test_smaller_sums_are_rejected():
    def train(model, sums):
        rows = sums[:8].clone()
        sums.data = torch.empty(0, 9, dtype=sums.dtype)
        return recipe()(model, rows)

    (reason,) = contest.attempt(train, BUDGET, least=0).reasons
    assert reason.startswith("The sums were changed, and they count in full")


def test_a_training_that_takes_too_long_ends_and_hears_how_far_it_came():
    made = contest.attempt(recipe(steps=10**6), BUDGET, seconds=0.2)
    assert 0 < made.steps < 10**5
    assert made.reasons[0].startswith(
        f"Stopped after 0.2 s and {made.steps:,} steps: take fewer, or"
    )

    def without_an_optimizer(model, sums):
        while True:
            model(sums[:8])

    made = contest.attempt(without_an_optimizer, BUDGET, seconds=0.1)
    assert made.reasons[0].startswith("Stopped after 0.1 s and 0 steps")
