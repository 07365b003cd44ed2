"""Around an answer: time, output, exit, inputs and state."""

import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch

from helpers.exercises import Wrong, _guard
from helpers.exercises._guard import OutOfTime, call, captured, kept_state, within, without_exit


def endless():
    while True:
        pass


def swallowing_exceptions():
    while True:
        try:  # noqa: SIM105 - written as a reader writes it
            endless()
        except Exception:  # noqa: BLE001, S110
            pass


def swallowing_everything():
    while True:
        try:  # noqa: SIM105
            endless()
        except:  # noqa: E722, S110
            pass


def finally_endless():
    try:
        endless()
    finally:
        endless()


def swallowing_once():
    try:
        endless()
    except:  # noqa: E722
        return "done"


def turning_it_into_another_error():
    try:
        endless()
    except BaseException:  # noqa: BLE001
        raise ValueError("mine") from None


def generating():
    for _ in iter(int, 1):
        pass


@pytest.mark.parametrize(
    "work",
    [
        endless,
        swallowing_exceptions,
        swallowing_everything,
        finally_endless,
        swallowing_once,
        turning_it_into_another_error,
        generating,
        lambda: time.sleep(60),
        lambda: threading.Event().wait(60),
    ],
)
def test_work_that_does_not_end_is_stopped_and_everything_restored(work):
    handler, trace = signal.getsignal(signal.SIGALRM), sys.gettrace()
    with pytest.raises(OutOfTime):
        within(0.1, work)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert sys.gettrace() is trace
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_work_in_time_returns_its_value_and_its_own_errors():
    assert within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 / 0)
    with pytest.raises(KeyboardInterrupt):
        within(5, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_alarm_never_outlives_work_that_ends_close_to_its_limit():
    trace, outcomes = sys.gettrace(), set()
    for steps in range(1_000, 41_000, 20):  # the limit lies somewhere in between
        try:
            outcomes.add(within(0.0003, lambda steps=steps: sum(range(steps)) * 0, again=0.0001))
        except OutOfTime:
            outcomes.add("stopped")
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert sys.gettrace() is trace
    assert outcomes <= {0, "stopped"}


def test_an_alarm_of_somebody_else_is_set_again():
    old = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        signal.setitimer(signal.ITIMER_REAL, 50)
        within(1, lambda: None)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 50
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_in_another_thread_work_runs_without_a_limit():
    seen = []
    thread = threading.Thread(
        target=lambda: seen.extend([_guard.can_limit(), within(0.001, lambda: time.sleep(0.05))])
    )
    thread.start()
    thread.join()
    assert seen == [False, None]


def test_without_an_alarm_clock_work_runs_without_a_limit(monkeypatch):
    monkeypatch.delattr(signal, "setitimer")
    assert not _guard.can_limit()
    assert within(0.001, lambda: time.sleep(0.05) or "done") == "done"


def test_output_is_kept_up_to_a_limit_and_memory_stays_bounded():
    with captured() as printed:
        for _ in range(1_000):
            print("x" * 100_000)
        print("error", file=sys.stderr)
    assert printed.kept() == "x" * 2_000
    assert printed.cut


def test_short_output_is_kept_whole():
    with captured() as printed:
        print("one")
        print("two", file=sys.stderr)
    assert printed.kept() == "one\ntwo\n"
    assert not printed.cut
    assert sys.stdout is not printed


def test_writing_bytes_to_stdout_says_what_is_needed():
    with captured(), pytest.raises(TypeError, match=r"write\(\) needs text, got bytes"):
        sys.stdout.write(b"bytes")


def test_exit_quit_and_input_raise_and_are_put_back():
    own = {"exit": "mine"}
    with without_exit([own, own]):
        with pytest.raises(SystemExit, match=r"exit\(\) was called"):
            own["exit"]()
        with pytest.raises(RuntimeError, match=r"input\(\) has no answer during a check"):
            own["input"]("Name? ")
    assert own == {"exit": "mine"}


def state():
    return (
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.get_num_threads(),
        torch.is_anomaly_enabled(),
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),
        random.getstate(),
        os.getcwd(),
        np.geterr(),
    )


def test_modes_generators_and_folder_are_put_back(tmp_path):
    before = state()
    with pytest.raises(KeyError), kept_state(1):  # noqa: PT012 - all of it must be put back
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_num_threads(2)
        torch.autograd.set_detect_anomaly(True)
        torch.manual_seed(5)
        np.random.seed(5)
        random.seed(5)
        os.chdir(tmp_path)
        np.seterr(all="raise")
        raise KeyError
    assert state() == before


def test_random_numbers_are_the_same_for_the_same_seed():
    drawn = []
    for _ in range(2):
        with kept_state(7):
            drawn.append((torch.rand(1).item(), np.random.rand(), random.random()))
    assert drawn[0] == drawn[1]


def nothing(*args, **kwargs):
    return None


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([1.0, float("nan")]),
        torch.tensor([1.0], requires_grad=True),
        torch.empty(3, device="meta"),
        torch.eye(2).to_sparse(),
        np.array([1.0, np.nan]),
        np.array([{"a": 1}], dtype=object),
        np.ma.masked_array([1, 2], [False, True]),
        [1, [float("nan"), torch.ones(2)]],
        {"a": np.ones(2)},
        "text",
        torch.nn.Linear(1, 1),
        None,
    ],
    ids=lambda value: type(value).__name__,
)
def test_untouched_inputs_of_every_kind_pass(value):
    assert call(nothing, value, named=value) is None


@pytest.mark.parametrize(
    ("value", "change", "kind"),
    [
        (torch.zeros(2), lambda t: t.add_(1), "Tensor"),
        (torch.zeros(2), lambda t: t.requires_grad_(), "Tensor"),
        (torch.zeros(2), lambda t: t.unsqueeze_(0), "Tensor"),
        (torch.zeros(2), lambda t: setattr(t, "data", t.data.double()), "Tensor"),
        (np.zeros(2), lambda a: a.fill(1), "ndarray"),
        (np.ma.masked_array([1, 2], [False, True]), lambda a: a.mask.fill(False), "MaskedArray"),
        ([1, 2], lambda x: x.append(3), "list"),
        ([1, 2], lambda x: x.__setitem__(0, 5), "list"),
        ([torch.ones(1)], lambda x: x.__setitem__(0, 1.0), "list"),
        ({"a": torch.zeros(1)}, lambda d: d["a"].add_(1), "dict"),
        ({"a": 1}, lambda d: d.clear(), "dict"),
    ],
)
def test_a_changed_input_is_noticed(value, change, kind):
    with pytest.raises(Wrong, match=rf"Your function changed its input: `second` \({kind}\)\."):
        call(lambda first, second: change(second), None, value)


@pytest.mark.parametrize("left", [0, 4, 23])
@pytest.mark.parametrize(
    "view", [lambda t: t, lambda t: t[1:], lambda t: t.T, lambda t: t[-1:, -1:], lambda t: t[2, 1]]
)
def test_an_input_whose_storage_was_cut_is_never_read(view, left):
    values = view(torch.zeros(3, 2))
    with pytest.raises(Wrong, match=r"changed its input: `x` \(Tensor\)"):
        call(lambda x: x.untyped_storage().resize_(left), values)


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_an_empty_input_needs_no_storage(shape):
    assert call(lambda x: x.untyped_storage().resize_(0), torch.zeros(shape)) is not None


def test_an_expanded_input_needs_only_the_bytes_it_shows():
    assert call(nothing, torch.zeros(1).expand(1000, 3)) is None
    assert call(nothing, torch.zeros(9)[4:].as_strided((3, 3), (1, 1), 4)) is None


def test_a_changed_input_without_a_name_is_counted_from_one():
    with pytest.raises(Wrong, match=r"changed its input: argument 2 \(list\)"):
        call(lambda *items: items[1].append(3), None, [1, 2])
    with pytest.raises(Wrong, match=r"changed its input: `there` \(list\)"):
        call(lambda *, there: there.append(3), there=[1, 2])


def test_an_input_that_may_change_is_left_alone():
    history = []
    call(lambda items, item: items.append(item), history, 1, may_change=(0,))
    call(lambda *, items: items.append(2), items=history, may_change=("items",))
    assert history == [1, 2]
