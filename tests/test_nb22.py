"""The cells of notebook 22 that need a GPU run with stand-ins, and its checks of noise hold."""

import operator
from functools import partial
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from torch.utils.benchmark import Measurement
from torch.utils.benchmark.utils.common import TaskSpec

from helpers import claims, plotting, reference
from helpers._paths import ROOT
from helpers.device import describe_machine
from helpers.exercises._selftest import judge_source
from helpers.table import Table
from helpers.units import format_time

NB = nbformat.read(ROOT / "notebooks" / "22_measure_a_speedup.ipynb", as_version=4)


def cell(text):
    """Return the source of the only code cell that holds this text."""
    (found,) = [c.source for c in NB.cells if c.cell_type == "code" and text in c.source]
    return found


def measured(seconds, name="x"):
    return Measurement(1, [seconds] * 5, TaskSpec(name, "pass", num_threads=1))


def run(source, scope):
    exec(source, scope)  # noqa: S102 - cells of the notebook
    return scope


class Products:
    """Times of n × n products by a formula, in place of `timing`."""

    def __init__(self):
        self.devices = []

    def benchmark(self, call, *, min_run_time, device):
        self.devices.append(getattr(device, "type", device))
        n = call.args[0].shape[0]
        a, b = (20e-6, 1e-13) if self.devices[-1] == "cuda" else (1e-6, 2e-11)
        return measured(a + b * n**3)


@pytest.fixture
def products():
    """Run the cells of the matrix products as on a machine with CUDA."""
    empty = SimpleNamespace(rand=lambda *shape, device=None: np.empty(shape, np.int8))
    scope = {
        "np": SimpleNamespace(
            random=SimpleNamespace(
                default_rng=lambda _: SimpleNamespace(
                    random=lambda shape, dtype: np.empty(shape, np.int8)
                )
            ),
            float32=np.float32,
        ),
        "torch": empty,
        "device": SimpleNamespace(type="cuda"),
        "timing": Products(),
        "operator": operator,
        "partial": partial,
        "claims": claims,
        "plotting": plotting,
        "reference": reference,
        "describe_machine": describe_machine,
    }
    scope["time"] = SimpleNamespace(perf_counter=lambda: 0.0)
    run(cell("def product_times"), scope)
    run(
        "def first_win"
        + cell("def first_win").partition("def first_win")[2].partition("\n\n\n")[0],
        scope,
    )
    return scope


def test_with_cuda_a_third_curve_is_measured_and_drawn(products):
    assert list(products["products"]) == ["NumPy", "torch, CPU", "torch, cuda"]
    assert set(products["timing"].devices) == {"cpu", "cuda"}
    run(cell("newest = list(products)"), products)
    assert products["newest"] == "torch, cuda"
    assert set(reference.kept()["matmul_float32"]) == set(map(str, products["curve"]))
    assert products["turns"] == 128  # 20 µs against 1 µs + 2e-11 n³: from n = 99 on


def test_sizes_double_until_the_next_product_would_take_a_second(products):
    curve = products["products"]["NumPy"]
    assert list(curve)[:3] == [32, 64, 128]
    assert 8 * curve[max(curve)].median > 1
    assert 8 * curve[max(curve) // 2].median <= 1


def test_with_cuda_the_claim_about_speed_is_decided(products):
    run(cell('"A1-03"'), products)
    outcome = claims.record(
        "A1-03", ratio_small=products["small_ratio"], ratio_large=products["large_ratio"]
    )
    assert outcome.met
    assert products["small_ratio"] < 1
    assert products["large_ratio"] > 3


def test_with_cuda_the_claim_about_copies_is_decided():
    times = {"copy": 900e-6, "copy, pinned": 300e-6, "pin and copy": 2e-3, "add": 10e-6}
    shown = []
    scope = run(
        cell('"A1-36"'),
        {
            "device": SimpleNamespace(type="cuda"),
            "transfer": SimpleNamespace(
                time_copies=lambda device: {n: measured(s, n) for n, s in times.items()}
            ),
            "claims": claims,
            "display": shown.append,
            "format_time": format_time,
            "Table": Table,
        },
    )
    assert shown[0].met
    assert scope["rows"][0] == ["copy", "900 µs"]
    assert len(scope["rows"]) == 4


def test_on_a_device_with_a_queue_both_readings_differ():
    queue = {"now": 0.0, "end": 0.0}

    def order():
        queue["now"] += 5e-6
        queue["end"] = max(queue["end"], queue["now"]) + 1e-3

    def wait():
        queue["now"] = max(queue["now"], queue["end"])

    source = cell("def read_twice").partition("\n\n\n")[0]
    scope = run(source, {"time": SimpleNamespace(perf_counter=lambda: queue["now"])})
    ordered, finished = scope["read_twice"](order, wait)
    assert ordered == pytest.approx(50e-6)
    assert finished == pytest.approx(10e-3 + 5e-6)


def test_medians_remove_false_winners_and_keep_true_ones():
    source = "def false_winners" + cell("def false_winners").partition("def false_winners")[2]
    false_winners = run(source, {"np": np})["false_winners"]
    noise = np.random.default_rng(0).standard_normal(5000)
    times = 1e-3 * (1 + 0.04 * noise)
    assert false_winners(times, 1) > 0.3
    assert false_winners(times, 25) < 0.05
    halves = np.tile([1e-3, 1.2e-3], 2500)
    assert false_winners(halves, 25) == 1


def test_a_rate_above_the_peak_is_caught():
    check = run(cell("def check_rate").partition("\n\n\n")[0], {})["check_rate"]
    check(1e9, 10e-3, 100e9)
    with pytest.raises(AssertionError, match="is it done"):
        check(1e9, 1e-3, 100e9)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.stack([step(b).detach() for b in batches]).mean().item()",
        "return sum(torch.stack([step(b).detach() for b in batches]).tolist()) / len(batches)",
        """total = torch.tensor(0.0)
    for b in batches:
        total += step(b).detach()
    return float(total) / len(batches)""",
    ],
)
def test_a_mean_that_waits_once_passes(body):
    verdict = judge_source("22.5", f"def mean_loss(step, batches):\n    {body}\n")
    assert verdict.status == "passed", verdict.sentence
