"""Where code runs is told rightly with and without an accelerator."""

import contextlib
import dataclasses
from types import SimpleNamespace

import pytest
import torch

from helpers import device


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available=False: None
    )


def install_gpu(monkeypatch, kind, name=None):
    """Pretend that an accelerator is present; return the list of devices waited for."""
    waited = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available=False: torch.device(kind)
    )
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    if name is not None:
        monkeypatch.setattr(getattr(torch, kind), "get_device_name", lambda device: name)
    return waited


def install_cuda(monkeypatch, capability):
    """Pretend that a CUDA GPU of this compute capability is present."""
    install_gpu(monkeypatch, "cuda")
    entered = []

    @contextlib.contextmanager
    def use(index):
        entered.append(index)
        yield

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device", use)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.version, "hip", None)
    properties = SimpleNamespace(major=capability[0], minor=capability[1])
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: properties)
    return entered


def test_without_an_accelerator_the_cpu_is_picked(no_gpu):
    assert device.pick_device() == torch.device("cpu")


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_an_available_accelerator_is_picked(monkeypatch, kind):
    install_gpu(monkeypatch, kind)
    assert device.pick_device() == torch.device(kind)


def test_an_accelerator_that_torch_was_built_for_but_that_is_absent_is_not_picked(monkeypatch):
    monkeypatch.setattr(
        torch.accelerator,
        "current_accelerator",
        lambda check_available=False: None if check_available else torch.device("cuda"),
    )
    assert device.pick_device() == torch.device("cpu")


@pytest.mark.parametrize("wanted", [None, "cpu", "cuda", "cuda:1", "mps", "meta"])
def test_synchronize_never_raises_without_a_gpu(no_gpu, monkeypatch, wanted):
    def refuse(*_):
        raise RuntimeError("Cannot access accelerator device when none is available.")

    monkeypatch.setattr(torch.accelerator, "synchronize", refuse)
    assert device.synchronize(wanted) is None


def test_synchronize_waits_for_the_accelerator(monkeypatch):
    waited = install_gpu(monkeypatch, "cuda")
    device.synchronize()
    device.synchronize("cuda:1")
    device.synchronize(torch.device("cuda"))
    assert waited == [torch.device("cuda"), torch.device("cuda:1"), torch.device("cuda")]


@pytest.mark.parametrize("wanted", ["cpu", "mps", "meta"])
def test_synchronize_leaves_the_accelerator_alone_for_another_device(monkeypatch, wanted):
    waited = install_gpu(monkeypatch, "cuda")
    device.synchronize(wanted)
    assert waited == []


def test_synchronize_refuses_a_word_that_is_no_device(no_gpu):
    with pytest.raises(RuntimeError, match="gpu"):
        device.synchronize("gpu")


def test_machine_line_names_kind_cores_threads_and_versions(no_gpu, monkeypatch):
    monkeypatch.setattr(device, "_usable_cores", lambda: 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")
    monkeypatch.setattr("numpy.__version__", "2.4.6")
    machine = device.describe_machine()
    line = "Machine: CPU · 2 cores · 1 thread · torch 2.13.0 · NumPy 2.4.6"
    assert str(machine) == line
    assert repr(machine) == line
    assert machine._repr_html_() == f"<span>{line}</span>"
    assert machine.device == "cpu"


def test_machine_counts_one_core_and_many_threads_in_words():
    machine = device.Machine("CPU", "cpu", 1, 8, "2.13.0", "2.4.6")
    assert "1 core · 8 threads" in str(machine)


def test_machine_names_the_gpu_and_escapes_it_in_html(monkeypatch):
    install_gpu(monkeypatch, "cuda", name="Test <GPU>")
    machine = device.describe_machine()
    assert str(machine).startswith("Machine: Test <GPU> · ")
    assert "Test &lt;GPU&gt;" in machine._repr_html_()
    assert machine.device == "cuda"


def test_machine_falls_back_to_the_type_when_the_gpu_has_no_name(monkeypatch):
    install_gpu(monkeypatch, "cuda")

    def refuse(_):
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(torch.cuda, "get_device_name", refuse)
    assert device.describe_machine().kind == "CUDA"


def test_machine_names_apples_gpu(monkeypatch):
    install_gpu(monkeypatch, "mps")
    assert device.describe_machine().kind == "Apple GPU"


def test_machine_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        device.describe_machine().cores = 64


def test_cores_follow_the_affinity_mask(monkeypatch):
    monkeypatch.setattr(device.os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setattr(device, "_cgroup_quota", lambda: None)
    assert device._usable_cores() == 3


def test_cores_without_an_affinity_mask_come_from_the_count(monkeypatch):
    monkeypatch.delattr(device.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(device.os, "process_cpu_count", lambda: None, raising=False)
    monkeypatch.setattr(device, "_cgroup_quota", lambda: None)
    assert device._usable_cores() == 1


@pytest.mark.parametrize(("quota", "cores"), [(0.5, 1), (1.5, 1), (2.0, 2), (64.0, 4)])
def test_cores_follow_the_quota_of_a_container(monkeypatch, quota, cores):
    monkeypatch.setattr(device.os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(device, "_cgroup_quota", lambda: quota)
    assert device._usable_cores() == cores


@pytest.mark.parametrize(
    ("files", "membership", "quota"),
    [
        ({}, "", None),
        ({"cpu.max": "max 100000\n"}, "0::/\n", None),
        ({"cpu.max": "150000 100000\n"}, "0::/\n", 1.5),
        ({"cpu.max": "nonsense"}, "0::/\n", None),
        ({"cpu.max": "100000 0"}, "0::/\n", None),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, "0::/a/b\n", 2.0),
        ({"a/b/cpu.max": "50000 100000", "a/cpu.max": "200000 100000"}, "0::/a/b\n", 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "", None),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, "", 4.0),
        (
            {"cpu/job/cpu.cfs_quota_us": "300000", "cpu/job/cpu.cfs_period_us": "100000"},
            "4:cpu:/job\n3:memory:/job\n",
            3.0,
        ),
        ({}, "0::/../outside\n", None),
    ],
)
def test_quota_is_the_smallest_on_the_way_up(tmp_path, files, membership, quota):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "self").write_text(membership)
    found = device._cgroup_quota(tmp_path / "cgroup", tmp_path / "self")
    assert found == quota


@pytest.mark.parametrize(
    ("capability", "dtype"),
    [((7, 5), torch.float16), ((8, 0), torch.bfloat16), ((9, 0), torch.bfloat16)],
)
def test_cuda_dtype_follows_the_hardware_and_not_its_emulation(monkeypatch, capability, dtype):
    install_cuda(monkeypatch, capability)
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda *_: True)
    assert device.pick_autocast_dtype("cuda") is dtype
    assert device.pick_autocast_dtype() is dtype
    assert torch.cuda.is_bf16_supported() is True  # what a reader would have asked


def test_dtype_is_asked_of_the_given_gpu(monkeypatch):
    entered = install_cuda(monkeypatch, (8, 0))
    device.pick_autocast_dtype("cuda:1")
    assert entered == [torch.device("cuda:1")]


def test_dtype_on_other_devices(no_gpu):
    assert device.pick_autocast_dtype() is torch.bfloat16
    assert device.pick_autocast_dtype("cpu") is torch.bfloat16
    assert device.pick_autocast_dtype(torch.device("mps")) is torch.float16
    assert device.pick_autocast_dtype("xpu") is torch.bfloat16


def test_dtype_for_a_missing_gpu_is_the_one_every_gpu_has(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device.pick_autocast_dtype("cuda") is torch.float16
