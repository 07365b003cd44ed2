"""What notebook 44 says about gradient accumulation, held against torch directly."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exercises import nb44
from helpers.exercises._selftest import judge_source

NET = ((5, 9), (9, 3))


def build(norm=None):
    torch.manual_seed(0)
    layers = [nn.Linear(*NET[0]), nn.Tanh(), nn.Linear(*NET[1])]
    if norm:
        layers.insert(1, norm(NET[0][1]))
    return nn.Sequential(*layers).double()


def data(sizes):
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(n, 5, generator=generator, dtype=torch.float64),
            torch.randint(3, (n,), generator=generator),
        )
        for n in sizes
    ]


def whole(parts):
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def collect(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def accumulated(parts, weights, norm=None):
    model = build(norm)
    for (x, y), weight in zip(parts, weights, strict=True):
        (F.cross_entropy(model(x), y) * weight).backward()
    return collect(model)


def error(found, expected):
    return ((found - expected).norm() / expected.norm()).item()


def full(parts, norm=None):
    return accumulated([whole(parts)], [1], norm)


def namespace(id):
    found = {}
    exec(nb44.EXERCISES[id].solution, found)  # noqa: S102 - our own solution
    return found


# --- shares -----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 4, 8])
def test_means_that_nobody_divides_add_up_to_k_times_the_mean(k):
    parts = data([4] * k)
    assert error(accumulated(parts, [1] * k), k * full(parts)) < 1e-12
    assert error(accumulated(parts, [1 / k] * k), full(parts)) < 1e-12


def test_a_share_of_the_samples_is_right_for_parts_of_any_size():
    parts = data([8, 8, 3])
    shares = [len(y) / 19 for _, y in parts]
    assert error(accumulated(parts, shares), full(parts)) < 1e-12
    assert error(accumulated(parts, [1 / 3] * 3), full(parts)) > 0.05


def test_plain_sgd_undivided_is_sgd_divided_at_k_times_the_learning_rate():
    weights = {}
    for divisor, rate in ((1, 0.01), (4, 0.04)):
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        parts = data([4] * 8)
        for batch in (parts[:4], parts[4:]):
            optimizer.zero_grad()
            for x, y in batch:
                (F.cross_entropy(model(x), y) / divisor).backward()
            optimizer.step()
        weights[divisor] = nn.utils.parameters_to_vector(model.parameters())
    assert error(weights[1], weights[4]) < 1e-12


def test_adam_takes_almost_the_same_step_undivided():
    steps = {}
    for divisor in (1, 4):
        model = build()
        before = nn.utils.parameters_to_vector(model.parameters()).detach()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for x, y in data([4] * 4):
            (F.cross_entropy(model(x), y) / divisor).backward()
        optimizer.step()
        steps[divisor] = nn.utils.parameters_to_vector(model.parameters()).detach() - before
    assert error(steps[1], steps[4]) < 1e-3


# --- the known faults, each by the value that it had when it was reported ----------------


def test_two_and_ten_tokens_averaged_as_means_are_far_off_and_sums_are_not():
    torch.manual_seed(0)
    texts = [torch.randint(50, (n + 1,)) for n in (2, 10)]

    def gradient(weights):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 50)).double()
        for text, weight in zip(texts, weights, strict=True):
            loss = F.cross_entropy(model(text[:-1]), text[1:], reduction="sum")
            (loss * weight).backward()
        return collect(model)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 50)).double()
    inputs, targets = torch.cat([t[:-1] for t in texts]), torch.cat([t[1:] for t in texts])
    F.cross_entropy(model(inputs), targets).backward()
    right = collect(model)
    assert error(gradient([1 / 12] * 2), right) < 1e-12
    assert error(gradient([1 / 4, 1 / 20]), right) > 0.5  # mean of means
    assert error(gradient([1 / 2, 1 / 10]), right) > 1.5  # not divided at all


@pytest.mark.parametrize(("count", "k"), [(10, 4), (9, 4), (3, 4), (8, 4)])
def test_every_sample_has_its_part_in_a_step_also_after_the_last_full_batch(count, k):
    """Ten micro-batches and a step on every fourth: two were never applied."""
    model, parts = build(), data([2] * count)
    optimizer = nb44._Recorder(model.parameters(), lr=0.0)
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
    namespace("44.3")["train_epoch"](model, optimizer, scheduler, parts, k, 1e9)
    batches = [parts[i : i + k] for i in range(0, count, k)]
    assert len(optimizer.seen) == len(batches)
    for batch, (grads, _) in zip(batches, optimizer.seen, strict=True):
        assert error(torch.cat([g.flatten() for g in grads]), full(batch)) < 1e-12


def test_a_loop_that_steps_on_every_kth_part_leaks_into_the_next_epoch():
    model, parts, firsts = build(), data([2] * 9), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for _ in range(2):
        for i, (x, y) in enumerate(parts, 1):
            (F.cross_entropy(model(x), y) / 4).backward()
            if i == 4:
                firsts.append(collect(model))
            if i % 4 == 0:
                optimizer.zero_grad()
    assert error(firsts[1], firsts[0]) > 0.05


def test_unscaling_each_part_divides_the_first_ones_again_and_torch_sees_only_a_repeat():
    parts = data([4] * 4)

    def run(update):
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for x, y in parts:
            scaler.scale(F.cross_entropy(model(x), y) / 4).backward()
            scaler.unscale_(optimizer)
            if update:
                scaler.update()
        return collect(model)

    assert error(run(update=True), full(parts)) > 0.2
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        run(update=False)


def test_one_unscale_for_the_batch_gives_the_plain_gradient():
    parts, model = data([4] * 4), build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x, y in parts:
        scaler.scale(F.cross_entropy(model(x), y) / 4).backward()
    scaler.unscale_(optimizer)
    assert error(collect(model), full(parts)) < 1e-12


def test_clipping_each_part_is_not_clipping_the_sum():
    parts, model = data([4] * 4), build()
    for x, y in parts:
        (F.cross_entropy(model(x), y) / 4).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
    expected = full(parts)
    assert error(collect(model), expected * 0.05 / expected.norm()) > 0.05


# --- normalization ----------------------------------------------------------------------


def test_batchnorm_breaks_the_equality_and_layernorm_keeps_it():
    parts = data([4] * 4)
    for norm, right in ((nn.BatchNorm1d, False), (nn.LayerNorm, True)):
        found = error(accumulated(parts, [1 / 4] * 4, norm), full(parts, norm))
        assert (found < 1e-12) == right
        assert right or found > 0.05


def test_a_micro_batch_of_one_has_no_variance():
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        accumulated(data([1]), [1], nn.BatchNorm1d)


# --- bytes ------------------------------------------------------------------------------


def test_two_parts_need_more_bytes_in_a_small_batch_and_fewer_in_a_large_one():
    small = [nb44.training_peak(16, 128, k).total for k in (1, 2, 4, 8)]
    assert small == [325_888, 396_032, 389_888, 386_816]
    large = [nb44.training_peak(1024, 128, k).total for k in (1, 2, 4, 8)]
    assert large == sorted(large, reverse=True)
    assert large[-1] < large[0] / 3


@pytest.mark.parametrize(("width", "batch"), [(64, 80), (128, 136)])
def test_the_first_batch_that_pays_grows_with_the_width(width, batch):
    def saved(size):
        return nb44.training_peak(size, width, 1).total - nb44.training_peak(size, width, 2).total

    assert saved(batch - 8) <= 0 < saved(batch)


def test_one_backward_on_the_sum_of_losses_spares_no_activation():
    from helpers.memory import track_memory

    peaks = []
    for at_once in (True, False):
        model, parts = build(), data([64] * 4)
        with track_memory(model, parts) as peak:
            total = 0
            for x, y in parts:
                loss = F.cross_entropy(model(x), y) / 4
                if at_once:
                    total = total + loss
                else:
                    loss.backward()
            if at_once:
                total.backward()
        peaks.append(peak.by_category["activation"])
    assert peaks[0] > 2 * peaks[1]


# --- answers that are right in another way -----------------------------------------------

OTHER_WAYS = {
    "44.1": (
        "import torch\n\n\ndef accumulate(model, loss_fn, inputs, targets, micro_batch):\n"
        "    parameters = list(model.parameters())\n"
        "    total = [torch.zeros_like(p) for p in parameters]\n"
        "    for i in range(0, len(inputs), micro_batch):\n"
        "        x, y = inputs[i : i + micro_batch], targets[i : i + micro_batch]\n"
        "        loss = loss_fn(model(x), y) * torch.tensor(len(x) / len(inputs))\n"
        "        for t, g in zip(total, torch.autograd.grad(loss, parameters)):\n"
        "            t += g\n"
        "    for p, t in zip(parameters, total):\n        p.grad = t\n"
    ),
    "44.2": (
        "import torch.nn.functional as F\n\n\ndef accumulate_tokens(model, parts):\n"
        "    total, tokens = 0.0, 0\n    for ids, targets in parts:\n"
        "        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), "
        "reduction='sum')\n        loss.backward()\n        total += loss.item()\n"
        "        tokens += (targets != -100).sum().item()\n"
        "    for p in model.parameters():\n        p.grad /= tokens\n"
        "    return total / tokens\n"
    ),
    "44.3": (
        "import torch.nn.functional as F\nfrom torch import nn\n\n\n"
        "def train_epoch(model, optimizer, scheduler, parts, k, limit):\n    samples = 0\n"
        "    optimizer.zero_grad()\n"
        "    for i, (x, y) in enumerate(parts, 1):\n"
        "        (F.cross_entropy(model(x), y) * len(y)).backward()\n        samples += len(y)\n"
        "        if i % k == 0 or i == len(parts):\n"
        "            for p in model.parameters():\n                p.grad /= samples\n"
        "            nn.utils.clip_grad_norm_(model.parameters(), limit)\n"
        "            optimizer.step()\n            scheduler.step()\n"
        "            optimizer.zero_grad(set_to_none=False)\n            samples = 0\n"
    ),
}


@pytest.mark.parametrize("id", OTHER_WAYS)
def test_another_right_way_passes(id):
    verdict = judge_source(id, OTHER_WAYS[id])
    assert verdict.status == "passed", verdict.sentence


def test_who_clips_by_hand_divides_by_the_norm_alone_and_passes():
    clip = "        nn.utils.clip_grad_norm_(model.parameters(), limit)\n"
    by_hand = (
        "        norm = sum((p.grad**2).sum() for p in model.parameters()) ** 0.5\n"
        "        for p in model.parameters():\n            p.grad *= min(1.0, limit / norm)\n"
    )
    source = nb44.EXERCISES["44.3"].solution
    assert source.count(clip) == 1
    verdict = judge_source("44.3", source.replace(clip, by_hand))
    assert verdict.status == "passed", verdict.sentence


def test_each_of_the_four_faults_of_44_3_is_named_by_itself():
    source = nb44.EXERCISES["44.3"].solution
    faults = {
        "means were added": (" * len(y) / samples", ""),
        "not clipping the sum": (
            "        nn.utils.clip",
            "            nn.utils.clip",
        ),
        "it falls too fast": (
            "        scheduler.step()",
            "        [scheduler.step() for _ in batch]",
        ),
        "it needs its step too": ("len(parts), k)", "len(parts) // k * k, k)"),
    }
    for sentence, (old, new) in faults.items():
        assert source.count(old) == 1
        assert sentence in judge_source("44.3", source.replace(old, new)).sentence
