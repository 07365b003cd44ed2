"""Facts about a GPU set-up, rules about them, and the stand-in card."""

import subprocess
from types import SimpleNamespace

import pytest
import torch

from helpers import gpu_setup
from helpers.device import pick_autocast_dtype, pick_device
from helpers.gpu_setup import CARDS, NEEDS, WHEELS, cuda_of, features_of, find_setup, runs_on

TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def test_facts_of_a_machine_without_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gpu_setup.shutil, "which", lambda _: None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = find_setup()
    assert (found.driver, found.visible_devices, found.device_count) == (None, None, 0)
    assert found.capability is None
    assert dict(found.table.rows)["driver"] == "none"


def test_facts_of_a_stand_in(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with gpu_setup.stand_in_card((8, 9), name="RTX 4090"):
        found = find_setup()
    assert (found.wheel_cuda, found.device_count, found.capability) == ("13.0", 1, (8, 9))
    shown = dict(found.table.rows)
    assert shown["capability"] == "8.9"
    assert shown["arch_list"] == "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
    assert shown["visible_devices"] == '"" (hides all)'
    assert "8.9" in repr(found)
    assert "8.9" in found._repr_html_()


@pytest.mark.parametrize(
    ("code", "text", "driver"),
    [
        (0, "580.65.06\n580.65.06\n", "580.65.06"),
        (9, "NVIDIA-SMI has failed", None),
        (0, "No devices were found", None),
        (0, "", None),
    ],
)
def test_the_driver_is_read_from_its_own_tool(monkeypatch, code, text, driver):
    monkeypatch.setattr(gpu_setup.shutil, "which", lambda _: "nvidia-smi")
    answer = SimpleNamespace(returncode=code, stdout=text)
    monkeypatch.setattr(gpu_setup.subprocess, "run", lambda *_, **__: answer)
    assert gpu_setup._driver_version() == driver


@pytest.mark.parametrize("error", [OSError(), subprocess.TimeoutExpired("nvidia-smi", 5)])
def test_a_tool_that_fails_or_hangs_is_no_driver(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(gpu_setup.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(gpu_setup.subprocess, "run", fail)
    assert gpu_setup._driver_version() is None


@pytest.mark.parametrize(
    ("version", "cuda"),
    [("2.13.0+cu130", "13.0"), ("2.11.0+cu128", "12.8"), ("1.9.1+cu111", "11.1"),
     ("2.13.0+cpu", None), ("2.13.0", None), ("2.13.0+rocm7.0", None), ("", None)],
)  # fmt: skip
def test_the_suffix_of_a_version_names_its_cuda(version, cuda):
    assert cuda_of(version) == cuda


@pytest.mark.parametrize(
    ("arch_list", "capability", "runs"),
    [(["sm_86"], (8, 6), True), (["sm_86"], (8, 9), True), (["sm_86"], (8, 0), False),
     (["sm_86"], (9, 0), False), (["compute_86"], (9, 0), True), (["compute_86"], (8, 0), False),
     (["sm_120"], (12, 1), True), (["sm_90a"], (9, 0), True), (["sm_90a"], (9, 1), False),
     (["sm_100f"], (10, 3), True), ([], (8, 0), False), (["sm_86"], [8, 6], True)],
)  # fmt: skip
def test_which_code_runs_on_which_card(arch_list, capability, runs):
    assert runs_on(arch_list, capability) is runs


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="arch_list must hold names such as sm_86, got 'gfx90a'"):
        runs_on(["gfx90a"], (9, 0))


@pytest.mark.skipif(TORCH < (2, 13), reason="the lists are those of torch 2.13")
def test_the_wheels_are_those_that_torch_itself_lists():
    listed = torch.cuda.PYTORCH_RELEASES_CODE_CC
    for name, archs in WHEELS.items():
        codes = {int(a[3:]) for a in archs if a.startswith("sm_")}
        assert codes == listed[cuda_of(f"+{name}")]["x86_64"]


@pytest.mark.skipif(TORCH < (2, 13), reason="the lists are those of torch 2.13")
@pytest.mark.parametrize("capability", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("wheel", WHEELS)
def test_the_rule_agrees_with_the_one_in_torch(wheel, capability):
    codes = [int(a[3:]) for a in WHEELS[wheel] if a.startswith("sm_")]
    card = 10 * capability[0] + capability[1]
    truth = any(torch.cuda._code_compatible_with_device(card, code) for code in codes)
    assert runs_on(WHEELS[wheel], capability) is truth


@pytest.mark.parametrize(("name", "capability"), CARDS.items())
def test_a_stand_in_is_what_torch_and_the_course_see(name, capability):
    with gpu_setup.stand_in_card(capability, name=name, wheel="cu126"):
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_capability() == capability
        assert torch.cuda.get_arch_list() == list(WHEELS["cu126"])
        assert torch.version.cuda == "12.6"
        assert pick_device().type == "cuda"
        has = torch.cuda.is_bf16_supported(including_emulation=False)
        assert has == features_of(capability)["bfloat16"]
        assert pick_autocast_dtype("cuda") == (torch.bfloat16 if has else torch.float16)


def test_a_stand_in_leaves_nothing_behind():
    before = torch.cuda.is_available(), torch.version.cuda, pick_device()
    with pytest.raises(ZeroDivisionError), gpu_setup.stand_in_card((9, 0)):
        1 / 0  # noqa: B018 - what happens inside must not matter
    assert (torch.cuda.is_available(), torch.version.cuda, pick_device()) == before


def test_an_unknown_wheel_is_refused():
    words = "wheel must be one of cu126, cu130, got 'cu1'"
    with pytest.raises(ValueError, match=words), gpu_setup.stand_in_card((9, 0), wheel="cu1"):
        pass


def test_the_compiler_says_the_floor_that_the_table_has():
    from torch._inductor.exc import GPUTooOldForTriton

    properties = SimpleNamespace(name="old", major=6, minor=1)
    text = str(GPUTooOldForTriton(properties, None))
    assert f">= {NEEDS['torch.compile'][0]}.{NEEDS['torch.compile'][1]}" in text
