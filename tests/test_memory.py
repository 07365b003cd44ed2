"""Bytes of tensors, and the peak of a block against torch's own private tracker."""

import gc
import subprocess
import sys
import threading
import weakref
from contextlib import nullcontext
from itertools import groupby

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim import optimizer as optimizer_hooks
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint

from helpers import _live_bytes, _memory_peak
from helpers._paths import ROOT
from helpers.memory import (
    AllocatorPeak,
    shares_storage,
    storage_bytes,
    tensor_bytes,
    track_memory,
)

VOCABULARY, WIDTH, LAYERS, TIME, BATCH = 61, 32, 2, 16, 3


class Transformer(nn.Module):
    def __init__(self, *, segments=0):
        super().__init__()
        self.segments = segments
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        layer = [WIDTH, 4, 4 * WIDTH, 0.0]
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(*layer, batch_first=True, norm_first=True)
            for _ in range(LAYERS)
        )
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.segments else layer(x)
        return self.head(x)


OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adam loop": lambda p: torch.optim.Adam(p, foreach=False),
    "adam foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "adam fused": lambda p: torch.optim.Adam(p, fused=True),
    "sgd momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "sgd momentum foreach": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
}


def build(*, optimizer="adam", segments=0, **_):
    torch.manual_seed(0)
    model = Transformer(segments=segments)
    ids = torch.randint(0, VOCABULARY, (BATCH, TIME))
    return model, OPTIMIZERS[optimizer](model.parameters()), ids


def train_step(model, optimizer, ids, /, *, autocast=False, micro_batches=1, **_):
    optimizer.zero_grad()
    for _ in range(micro_batches):
        with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
            loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        (loss / micro_batches).backward()
        del loss
    optimizer.step()


def our_peak(steps=1, **settings):
    model, optimizer, ids = build(**settings)
    for _ in range(steps):
        train_step(model, optimizer, ids, **settings)
    with track_memory(model, optimizer, ids) as peak:
        train_step(model, optimizer, ids, **settings)
    return peak


def torch_peak(steps=1, **settings):
    from torch.distributed._tools.mem_tracker import MemTracker

    model, optimizer, ids = build(**settings)
    for _ in range(steps):
        train_step(model, optimizer, ids, **settings)
    tracker = MemTracker()
    tracker.track_external(model, optimizer, ids)
    with tracker:
        train_step(model, optimizer, ids, **settings)
    return tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]


SETTINGS = {
    "plain": {},
    "first step": {"steps": 0},
    "autocast": {"autocast": True},
    "checkpoint": {"segments": LAYERS},
    "checkpoint and autocast": {"segments": LAYERS, "autocast": True},
    "autocast foreach": {"autocast": True, "optimizer": "adam foreach"},
    "autocast loop": {"autocast": True, "optimizer": "adam loop"},
    "checkpoint foreach": {"segments": LAYERS, "optimizer": "adam foreach"},
    "checkpoint loop": {"segments": LAYERS, "optimizer": "adam loop"},
    "first step foreach": {"steps": 0, "optimizer": "adam foreach"},
} | {name: {"optimizer": name} for name in OPTIMIZERS if name != "adam"}


@pytest.mark.parametrize("name", SETTINGS)
def test_total_equals_torchs_private_tracker_to_the_byte(name):
    peak = our_peak(**SETTINGS[name])
    assert peak.total == torch_peak(**SETTINGS[name])
    assert sum(peak.by_category.values()) == peak.total


@pytest.mark.parametrize("name", ["plain", "autocast", "checkpoint", "adam foreach"])
def test_fake_tensors_count_like_real_ones_in_every_category(name):
    real = our_peak(**SETTINGS[name])
    with FakeTensorMode():
        fake = our_peak(**SETTINGS[name])
    assert fake.by_category == real.by_category
    assert fake.device == real.device == torch.device("cpu")


@pytest.mark.parametrize("name", ["plain", "checkpoint"])
def test_total_equals_torchs_private_tracker_under_fake_tensors(name):
    with FakeTensorMode():
        assert our_peak(**SETTINGS[name]).total == torch_peak(**SETTINGS[name])


def test_counts_are_the_same_in_fresh_processes():
    program = (
        "from tests.test_memory import SETTINGS, our_peak\n"
        "for name in ('plain', 'autocast', 'checkpoint'):\n"
        "    print(sorted(our_peak(**SETTINGS[name]).by_category.items()))\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    first, second = (run.communicate(timeout=120)[0].decode() for run in runs)
    here = [sorted(our_peak(**SETTINGS[n]).by_category.items()) for n in ("plain", "autocast")]
    assert first == second
    assert first.splitlines()[:2] == [str(line) for line in here]


def test_repeats_are_equal_and_the_second_step_carries_the_moments():
    first, second, third = (our_peak(steps=steps) for steps in range(3))
    assert second.by_category == third.by_category
    assert first.total < second.total


def mlp():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    return model, torch.optim.Adam(model.parameters())


def mlp_step(model, optimizer, x, y):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def test_peak_of_an_mlp_is_the_sum_written_by_hand():
    model, optimizer = mlp()
    batch, weights = 2048, sum(p.numel() * 4 for p in model.parameters())
    x, y = torch.randn(batch, 64), torch.randint(0, 10, (batch,))
    mlp_step(model, optimizer, x, y)
    with track_memory(model, optimizer, x, y) as peak:
        mlp_step(model, optimizer, x, y)
    assert peak.by_category == {
        "parameter": weights,
        "gradient": (512 * 10 + 10) * 4,  # of the last layer alone: backward has begun
        "optimizer state": 2 * weights + 6 * 4,
        "activation": 2 * batch * 512 * 4 + 8,
        "recomputed": 0,
        "temporary": 2 * batch * 512 * 4,
        "other": batch * (64 * 4 + 8),
    }


def test_first_adam_step_reports_its_moments_as_optimizer_state():
    model, optimizer = mlp()
    x, y = torch.randn(4, 64), torch.randint(0, 10, (4,))
    with track_memory(model, optimizer, x, y) as peak:
        mlp_step(model, optimizer, x, y)
    weights = peak.by_category["parameter"]
    assert peak.by_category["gradient"] == weights
    # The peak lies inside the loop over the parameters: nearly all moments exist by then.
    assert weights < peak.by_category["optimizer state"] <= 2 * weights + 6 * 4
    assert peak.live().by_category["optimizer state"] == 2 * weights + 6 * 4
    assert peak.live().by_category["temporary"] == 0


def test_checkpointing_turns_activations_into_recomputed_bytes():
    plain, checkpointed = our_peak(), our_peak(segments=LAYERS)
    assert plain.by_category["recomputed"] == 0
    assert checkpointed.by_category["recomputed"] > 0
    assert checkpointed.by_category["activation"] < plain.by_category["activation"]


def test_gradient_accumulation_is_counted_where_torchs_tracker_refuses():
    with pytest.raises(NotImplementedError):
        torch_peak(micro_batches=2)
    once, twice, four = (our_peak(micro_batches=k) for k in (1, 2, 4))
    assert twice.by_category == four.by_category
    assert twice.by_category["gradient"] == twice.by_category["parameter"]
    assert twice.total > once.total


def sparse_total(optimizer_kind):
    torch.manual_seed(0)
    model = nn.Embedding(1000, 8, sparse=True)
    optimizer = optimizer_kind(model.parameters(), lr=0.1)
    ids = torch.tensor([1, 2, 3])
    with track_memory(model, optimizer, ids) as peak:
        model(ids).sum().backward()
        gradient = peak.live().by_category["gradient"]
        optimizer.step()
    return peak, gradient


def test_sparse_gradients_count_indices_and_values():
    peak, gradient = sparse_total(torch.optim.SGD)
    assert gradient == 3 * 8 + 3 * 8 * 4
    assert peak.live().by_category["gradient"] == gradient
    peak, _ = sparse_total(torch.optim.SparseAdam)
    assert peak.live().by_category["optimizer state"] == 2 * 1000 * 8 * 4
    assert peak.live().by_category["temporary"] == 0


def test_nested_blocks_agree_and_see_the_same_bytes():
    model, optimizer, ids = build()
    train_step(model, optimizer, ids)
    with track_memory(model, optimizer, ids) as outer, track_memory(model, optimizer, ids) as inner:
        train_step(model, optimizer, ids)
    assert outer.by_category == inner.by_category == our_peak().by_category


def mode_state():
    return (
        len(_get_current_dispatch_mode_stack()),
        len(optimizer_hooks._global_optimizer_pre_hooks),
        len(optimizer_hooks._global_optimizer_post_hooks),
        torch.UntypedStorage.resize_,
        "resize_" in vars(torch.UntypedStorage),
    )


def gradient_hooks(model):
    hooks = [p._post_accumulate_grad_hooks for p in model.parameters()]
    return sum(len(hook) for hook in hooks if hook)


@pytest.mark.parametrize("where", ["block", "operation", "step", "watch", "things"])
def test_an_exception_leaves_no_hook_no_mode_and_the_original_resize(where):
    model, optimizer, ids = build()
    before = mode_state()

    def fail(*_):
        raise ZeroDivisionError

    def block():
        with track_memory(model, optimizer, "x" if where == "things" else ids) as peak:
            if where == "operation":
                torch.ones(2) @ torch.ones(3)
            if where == "watch":
                peak.watch(object())
            if where == "step":
                train_step(model, optimizer, ids)
                model.head.weight.grad = None
                optimizer.register_step_pre_hook(fail)
                optimizer.step()
            raise ZeroDivisionError

    with pytest.raises((ZeroDivisionError, RuntimeError, TypeError)):
        block()
    assert mode_state() == before
    assert gradient_hooks(model) == 0


def test_hooks_are_on_inside_the_block_and_off_after_it():
    model, optimizer, ids = build()
    before = mode_state()
    with track_memory(model, optimizer, ids):
        assert mode_state() != before
        assert gradient_hooks(model) == len(list(model.parameters()))
    assert mode_state() == before
    assert gradient_hooks(model) == 0


def test_an_exception_in_an_operation_changes_no_count():
    with track_memory() as peak:
        x = torch.ones(10)
        with pytest.raises(RuntimeError, match="size"):
            x + torch.ones(3)
        assert peak.live().total == 40


def test_an_exception_in_step_does_not_mislabel_the_next_forward():
    model, optimizer, ids = build()
    with track_memory(model, optimizer, ids) as peak:
        handle = optimizer.register_step_pre_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            optimizer.step()
        handle.remove()
        out = model(ids)
        assert peak.live().by_category["temporary"] == 0
        assert peak.live().by_category["activation"] > out.nbytes


def test_the_model_is_freed_after_the_block():
    model, optimizer, ids = build()
    with track_memory(model, optimizer, ids) as peak:
        train_step(model, optimizer, ids)
    died = weakref.ref(model)
    storage = weakref.ref(model.head.weight.untyped_storage())
    del model, optimizer
    gc.collect()
    assert died() is None
    assert storage() is None
    assert peak.total > 0


def test_bytes_of_a_dead_tensor_are_given_back_even_if_its_address_is_used_again():
    with track_memory() as peak:
        for _ in range(50):
            torch.ones(1000)
        assert peak.live().total == 0
    assert peak.total == 4000


def jagged():
    return torch.nested.nested_tensor([torch.ones(3), torch.ones(5)], layout=torch.jagged)


def emptied():
    tensor = torch.ones(100)
    tensor.untyped_storage().resize_(0)
    return tensor


def expanded():
    return torch.ones(1).expand(10**6)


EDGES = {  # what it shows, what it keeps alive
    "expanded": (expanded, 4_000_000, 4),
    "slice": (lambda: torch.ones(10**6)[:1], 4, 4_000_000),
    "csr": (lambda: torch.eye(100).to_sparse_csr(), 2_008, 2_808),
    "csc": (lambda: torch.eye(100).to_sparse_csc(), 2_008, 2_808),
    "bsr": (lambda: torch.eye(100).to_sparse_bsr((10, 10)), 4_168, 4_248),
    "coo": (lambda: torch.eye(100).to_sparse(), 2_000, 2_000),
    "coo that requires grad": (lambda: torch.eye(100).to_sparse().requires_grad_(), 2_000, 2_000),
    "jagged": (jagged, 56, 56),
    "conjugate": (lambda: torch.ones(100, dtype=torch.complex64).conj(), 800, 800),
    "emptied": (emptied, 400, 0),
    "empty": (lambda: torch.empty(0, 3), 0, 0),
    "empty view": (lambda: torch.ones(6)[:0], 0, 24),
    "number": (lambda: torch.tensor(1.0, dtype=torch.float64), 8, 8),
    "bfloat16": (lambda: torch.ones(3, dtype=torch.bfloat16), 6, 6),
    "meta": (lambda: torch.ones(100, device="meta"), 0, 0),
    "mkldnn": (lambda: torch.ones(100, 100).to_mkldnn(), 40_000, 0),
    "array": (lambda: torch.from_numpy(np.zeros(10))[2:4], 16, 80),
    "parameter": (lambda: nn.Parameter(torch.ones(5)), 20, 20),
    "wrapper": (lambda: TwoTensor(torch.ones(5), torch.ones(5)), 40, 40),
    "wrapper of one tensor twice": (lambda: TwoTensor(x := torch.ones(5), x), 40, 20),
}
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


@pytest.mark.parametrize("name", EDGES)
def test_a_tensor_shows_and_keeps_these_bytes(name):
    make, shown, kept = EDGES[name]
    assert (tensor_bytes(make()), storage_bytes(make())) == (shown, kept)


@pytest.mark.parametrize("name", EDGES)
def test_a_tensor_made_in_the_block_counts_what_it_keeps_alive(name):
    make, _, kept = EDGES[name]
    with track_memory() as peak:
        tensor = make()
        assert peak.live().total == kept
        del tensor
        assert peak.live().total == 0


@pytest.mark.parametrize("name", EDGES)
def test_a_registered_tensor_counts_what_it_keeps_alive(name):
    make, _, kept = EDGES[name]
    tensor = make()
    with track_memory(tensor, [tensor]) as peak:
        assert peak.live().total == kept
    category = "parameter" if name == "parameter" else "other"
    assert peak.by_category[category] == peak.total == kept


def test_fake_tensors_have_the_bytes_of_the_real_ones():
    with FakeTensorMode():
        x = torch.ones(1000)
        y = torch.ones(1000)
        assert tensor_bytes(x[:10]) == 40
        assert storage_bytes(x[:10]) == 4000
        assert shares_storage(x, x[5:])
        assert not shares_storage(x, y)


@pytest.mark.parametrize("count", [tensor_bytes, storage_bytes])
def test_bytes_of_something_else_are_refused(count):
    with pytest.raises(TypeError) as error:
        count(np.zeros(3))
    assert str(error.value) == (
        "tensor must be a torch.Tensor, got numpy.ndarray; for an array use array.nbytes"
    )


def shared_pairs():
    x, array = torch.ones(6), np.zeros(6, np.float32)
    coo, meta = torch.eye(3).to_sparse(), torch.ones(3, device="meta")
    csr = torch.eye(3).to_sparse_csr()
    return {
        "itself": (x, x, True),
        "view": (x, x.view(2, 3), True),
        "slices that do not overlap": (x[:3], x[3:], True),
        "empty view": (x, x[:0], True),
        "expanded": (x, x.expand(4, 6), True),
        "detached": (x, x.detach(), True),
        "other dtype": (x, x.view(torch.int32), True),
        "copy": (x, x.clone(), False),
        "empty and itself": (e := torch.empty(0), e, False),
        "two empty ones": (torch.empty(0), torch.empty(0), False),
        "one array twice": (torch.from_numpy(array), torch.from_numpy(array[2:]), True),
        "parts of one array": (torch.from_numpy(array[:2]), torch.from_numpy(array[2:]), False),
        "neighbors": (torch.from_numpy(array[:3]), torch.from_numpy(array[3:]), False),
        "sparse and its values": (coo, coo.coalesce().values(), True),
        "sparse and a copy": (coo, coo.clone(), False),
        "csr and its columns": (csr, csr.col_indices(), True),
        "csr and dense": (csr, csr.to_dense(), False),
        "distinct meta tensors": (meta, torch.ones(3, device="meta"), False),
        "meta view": (meta, meta[1:], True),
        "meta and real": (meta, x, False),
        "wrapper and its part": (TwoTensor(x, x.clone()), x[2:], True),
        "opaque": (x.to_mkldnn(), x, False),
        "emptied": (t := emptied(), t.view(-1), False),
    }


def test_storage_is_shared_when_a_byte_is_in_both():
    for name, (a, b, expected) in shared_pairs().items():
        assert shares_storage(a, b) is expected, name
        assert shares_storage(b, a) is expected, name


@pytest.mark.parametrize("order", ["a", "b"])
def test_arrays_are_refused_with_the_call_that_answers(order):
    pair = [torch.ones(3), torch.ones(3)]
    pair["ab".index(order)] = np.zeros(3)
    with pytest.raises(TypeError) as error:
        shares_storage(*pair)
    assert str(error.value) == (
        f"{order} must be a torch.Tensor, got numpy.ndarray; for an array use "
        "np.shares_memory(tensor.detach().numpy(), array)"
    )


REFUSED = {
    "generator": (lambda: nn.Linear(2, 2).parameters(), "got generator; pass the module itself"),
    "array": (lambda: np.zeros(3), r"got numpy.ndarray; pass torch.from_numpy\(array\)"),
    "array in a nest": (lambda: {"x": [np.zeros(3)]}, "got numpy.ndarray"),
    "text": (lambda: "cpu", "got str; pass the tensors that it holds"),
    "number": (lambda: 3, "got int"),
    "nothing": (lambda: None, "got NoneType"),
    "class": (lambda: nn.Linear, "got type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_things_of_a_wrong_type_are_refused_with_advice(name):
    make, fragment = REFUSED[name]
    beginning = (
        "^track_memory takes modules, optimizers, tensors and lists, tuples or dicts of them, "
    )
    with pytest.raises(TypeError, match=beginning + fragment), track_memory(make()):
        pass


def test_nests_are_opened_and_numbers_in_them_passed_over():
    model, optimizer = mlp()
    batch = {"x": torch.ones(3), "names": ["a", None], "lengths": (2, 1.5), "pair": {torch.ones(2)}}
    with track_memory([model, optimizer], batch, []) as peak:
        pass
    assert peak.by_category["parameter"] == sum(p.nbytes for p in model.parameters())
    assert peak.by_category["other"] == 20


def test_tied_weights_and_repeated_things_count_once():
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False))
    model[1].weight = model[0].weight
    slices = torch.arange(6.0).split(3)
    with track_memory(model, model, slices, slices[0]) as peak:
        pass
    assert peak.by_category["parameter"] == 160
    assert peak.by_category["other"] == 24


def test_buffers_and_views_of_older_tensors_are_other():
    model, older = nn.BatchNorm1d(5), torch.ones(100)
    with track_memory(model) as peak:
        view = older[:10]
    assert view.numel() == 10
    assert peak.by_category["parameter"] == 2 * 5 * 4
    assert peak.by_category["other"] == 2 * 5 * 4 + 8 + 400


def test_watch_registers_what_was_built_inside():
    with track_memory() as peak:
        model, optimizer = mlp()
        assert peak.live().by_category["parameter"] == 0
        peak.watch(model, optimizer)
        weights = peak.live().by_category["parameter"]
        mlp_step(model, optimizer, torch.ones(2, 64), torch.zeros(2, dtype=torch.long))
        live = peak.live().by_category
    assert weights == live["parameter"] == live["gradient"] == 1_204_264
    assert live["optimizer state"] == 2 * weights + 6 * 4
    assert live["activation"] == 0


def test_watch_after_the_block_is_refused():
    with track_memory() as peak:
        pass
    with pytest.raises(RuntimeError, match="which has ended; call it there or pass the object"):
        peak.watch(torch.ones(3))


def test_gradients_from_before_the_block_count():
    model = nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    with track_memory(model) as peak:
        pass
    assert peak.by_category["gradient"] == peak.by_category["parameter"] == 32


def test_a_hook_that_clears_gradients_is_no_fault():
    model = nn.Linear(3, 2)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
    with track_memory(model) as peak:
        model(torch.ones(1, 3)).sum().backward()
    assert peak.by_category["gradient"] == 0
    assert peak.live().total == 32


def test_the_forward_inside_an_lbfgs_closure_is_activation():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        out = model(torch.ones(4, 3))
        assert peak.live().by_category["activation"] >= out.nbytes
        loss = out.square().sum()
        loss.backward()
        return loss

    with track_memory(model, optimizer) as peak:
        optimizer.step(closure)
    assert peak.live().by_category["optimizer state"] > 0


def test_other_threads_are_not_seen():
    kept = []
    model, optimizer, ids = build()
    with track_memory() as peak:
        for work in (
            lambda: kept.append(torch.ones(1000)),
            lambda: train_step(model, optimizer, ids),
        ):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert peak.total == 0
    with track_memory(model, optimizer) as peak:
        thread = threading.Thread(target=lambda: train_step(model, optimizer, ids))
        thread.start()
        thread.join()
        assert peak.live().by_category["gradient"] == 0
    assert peak.timeline.operations == (0, 0)


def test_operations_on_a_wrapper_count_its_parts():
    pair = TwoTensor(torch.ones(5), torch.ones(5))
    with track_memory(pair) as peak:
        doubled = pair * 2
    assert doubled.shape == (5,)
    assert peak.live().by_category["other"] == peak.live().by_category["activation"] == 40


def test_a_fake_mode_opened_inside_holds_no_bytes():
    with track_memory() as peak:
        with FakeTensorMode():
            fake = torch.ones(10**9) + 1
        real = torch.ones(10)
    assert fake.shape == (10**9,)
    assert peak.total == real.nbytes


def test_devices_are_counted_apart_and_the_busiest_is_shown():
    with FakeTensorMode(), track_memory() as peak:
        small = torch.empty(10)
        large = torch.empty(1000, device="cuda:0")
        del large
        torch.empty(500, device="cuda:0")
    assert peak.device == torch.device("cuda:0")
    assert peak.total == 4000
    assert {str(d): p.total for d, p in peak.peaks.items()} == {"cpu": 40, "cuda:0": 4000}
    assert small.nbytes == 40
    assert peak.live().total == 0


def test_an_empty_block_has_a_peak_of_zero_on_the_cpu():
    with track_memory() as peak:
        pass
    assert (peak.total, peak.device, peak.peaks) == (0, torch.device("cpu"), {})
    assert peak.allocator is None
    assert set(peak.by_category.values()) == {0}
    assert len(peak.timeline) == 0
    assert repr(peak.timeline) == "Timeline of cpu: no points"
    assert "total" in repr(peak)


def test_the_timeline_tells_where_the_peak_is():
    model, optimizer = mlp()
    x, y = torch.randn(2048, 64), torch.randint(0, 10, (2048,))
    mlp_step(model, optimizer, x, y)
    with track_memory(model, optimizer, x, y) as peak:
        mlp_step(model, optimizer, x, y)
    line = peak.timeline
    at = line.total.index(peak.total)
    assert max(line.total) == peak.total
    assert {name: column[at] for name, column in line.by_category.items()} == peak.by_category
    assert [sum(row) for row in zip(*line.by_category.values(), strict=True)] == list(line.total)
    assert line.phases[at] == "backward"
    phases = [phase for phase, _ in groupby(line.phases)]
    assert phases == ["forward", "backward", "step", "forward"]
    assert list(line.operations) == sorted(line.operations)
    assert repr(line).endswith(f"20.0 MiB at operation {line.operations[at]} (backward)")


def test_a_small_batch_moves_the_peak_into_the_step():
    model, optimizer = mlp()
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    mlp_step(model, optimizer, x, y)
    with track_memory(model, optimizer, x, y) as peak:
        mlp_step(model, optimizer, x, y)
    assert peak.timeline.phases[peak.timeline.total.index(peak.total)] == "step"


def test_a_long_block_keeps_a_bounded_timeline_with_the_peak(monkeypatch):
    monkeypatch.setattr(_live_bytes, "MAX_POINTS", 16)
    with track_memory() as peak:
        for i in range(200):
            torch.ones(1000 if i == 77 else 10)
    assert 8 <= len(peak.timeline) <= 16
    assert max(peak.timeline.total) == peak.total == 4000


def test_live_bytes_after_the_block_are_those_at_its_end():
    kept = []
    with track_memory() as peak:
        kept.append(torch.ones(10))
        torch.ones(100)
    kept.clear()
    assert peak.total == 440
    assert peak.live().total == 40


def test_kept_losses_and_kept_graphs_grow_by_these_bytes():
    model, optimizer = mlp()
    x, y = torch.randn(256, 64), torch.randint(0, 10, (256,))
    mlp_step(model, optimizer, x, y)
    kept = []
    with track_memory(model, optimizer, x, y) as peak:
        start = peak.live().total
        for _ in range(3):
            kept.append(F.cross_entropy(model(x), y))
        assert peak.live().total - start == 3 * (2 * 256 * 512 * 4 + 256 * 10 * 4 + 4 + 4)
        kept.clear()
        assert peak.live().total == start


def test_results_show_themselves_as_text_and_html():
    x = torch.ones(1000, requires_grad=True)
    with track_memory(x) as peak:
        y = x * 2
    assert y.nbytes == 4000
    assert repr(peak).splitlines() == [
        "Peak of live tensors on cpu",
        "category    bytes      size    share",
        "activation  4,000  3.91 KiB   50.0 %",
        "other       4,000  3.91 KiB   50.0 %",
        "total       8,000  7.81 KiB  100.0 %",
    ]
    assert repr(peak.live()).startswith("Live tensors on cpu\n")
    html = peak._repr_html_()
    assert "<caption>Peak of live tensors on cpu</caption>" in html
    assert html.count("<tr>") == 4
    assert "<td>4,000</td><td>3.91 KiB</td><td>50.0 %</td>" in html
    assert "Live tensors on cpu" in peak.live()._repr_html_()


class FakeAccelerator:
    """Stand in for torch.accelerator: an allocator that keeps a peak until it is reset."""

    def __init__(self, monkeypatch, kind="cuda"):
        self.now = self.peak = 0
        self.is_available = lambda: True
        self.current_accelerator = lambda: torch.device(kind)
        self.device_count = lambda: 1
        self.max_memory_allocated = lambda index: self.peak
        monkeypatch.setattr(torch, "accelerator", self)
        stats = lambda index: {"requested_bytes.all.peak": self.peak - 12}
        monkeypatch.setattr(torch.cuda, "memory_stats", stats)

    def reset_peak_memory_stats(self, index):
        self.peak = self.now

    def hold(self, size):
        self.now = size
        self.peak = max(self.peak, size)


def watched():
    return _memory_peak.AllocatorWatch(fake=False)


def test_the_allocator_peak_is_that_of_the_block_also_when_blocks_are_nested(monkeypatch):
    accelerator = FakeAccelerator(monkeypatch)
    cuda = torch.device("cuda:0")
    accelerator.hold(9000)
    accelerator.hold(1000)
    outer = watched()
    accelerator.hold(5000)
    accelerator.hold(2000)
    inner = watched()
    accelerator.hold(3000)
    assert inner.peak(cuda) == AllocatorPeak(cuda, 3000, 2988)
    inner.close()
    outer.close()
    accelerator.hold(10_000)
    assert inner.peak(cuda) == AllocatorPeak(cuda, 3000, 2988)
    assert outer.peak(cuda) == AllocatorPeak(cuda, 5000, 4988)
    assert outer.peak(torch.device("cpu")) is None


def test_other_accelerators_tell_no_requested_bytes_and_fake_tensors_no_peak(monkeypatch):
    accelerator = FakeAccelerator(monkeypatch, kind="mps")
    watch = watched()
    accelerator.hold(100)
    watch.close()
    assert watch.peak(torch.device("mps:0")) == AllocatorPeak(torch.device("mps:0"), 100, None)
    fake = _memory_peak.AllocatorWatch(fake=True)
    assert fake.peak(torch.device("mps:0")) is None


def test_an_allocator_without_statistics_has_no_peak(monkeypatch):
    accelerator = FakeAccelerator(monkeypatch, kind="mps")

    def refuse(index):
        raise RuntimeError("Allocator for mps is not a DeviceAllocator.")

    accelerator.reset_peak_memory_stats = accelerator.max_memory_allocated = refuse
    with track_memory() as peak:
        torch.ones(3)
    assert peak.allocator is None
    assert peak.total == 12


def test_the_allocator_watch_ends_with_the_block(monkeypatch):
    FakeAccelerator(monkeypatch)
    with pytest.raises(ZeroDivisionError), track_memory():
        raise ZeroDivisionError
    assert _memory_peak.AllocatorWatch.open_watches == []


def test_a_torch_without_the_private_functions_is_named(monkeypatch):
    monkeypatch.delattr(torch._C, "_current_graph_task_id")
    with pytest.raises(RuntimeError) as error, track_memory():
        pass
    assert str(error.value) == (
        f"track_memory needs torch 2.11 to 2.13, got {torch.__version__} without "
        "_current_graph_task_id; install a tested version from constraints.txt"
    )


def test_results_are_frozen():
    with track_memory() as peak:
        pass
    with pytest.raises(AttributeError):
        peak.live().device = "cuda"
    with pytest.raises(AttributeError):
        peak.total = 0
