"""Fresh processes get their settings and tell their errors; pages of new memory are counted."""

import sys
from types import SimpleNamespace

import psutil
import pytest
import torch

from helpers import host


def test_a_fresh_process_has_the_settings_and_not_our_imports():
    program = "import os, sys; print(os.environ['COLOR'], 'torch' in sys.modules, 'µ')"
    assert host.run_fresh(program, COLOR="green") == "green False µ\n"


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("1 / 0", r"^the program ended with code 1: ZeroDivisionError: division by zero$"),
        ("import os; os._exit(3)", r"^the program ended with code 3: no message$"),
    ],
)
def test_a_program_that_fails_says_why(program, says):
    with pytest.raises(RuntimeError, match=says):
        host.run_fresh(program)


def test_the_settings_of_blas_reach_the_process(monkeypatch):
    seen = {}

    def run(program, **settings):
        seen.update(settings, program=program)
        return "0.25\n"

    monkeypatch.setattr(host, "run_fresh", run)
    assert host.numpy_product_seconds(n=77, threads=3, core="Nehalem") == 0.25
    assert "(77, 77)" in seen.pop("program")
    assert seen.pop("OPENBLAS_CORETYPE") == "Nehalem"
    assert set(seen.values()) == {"3"}
    seen.clear()
    host.numpy_product_seconds()
    assert "OPENBLAS_CORETYPE" not in seen


def test_a_larger_product_takes_longer():
    assert host.numpy_product_seconds(n=800) > 5 * host.numpy_product_seconds(n=40)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count in another way")
def test_new_memory_is_handed_out_page_by_page():
    source = torch.ones(2**24)
    target = torch.empty_like(source).copy_(source)
    assert host.page_faults(lambda: target.copy_(source)) < 10
    assert host.page_faults(source.clone) >= 32  # 2 MiB each where pages are huge


def test_where_there_is_no_resource_module_psutil_counts(monkeypatch):
    count = iter((100, 142))

    class Process:
        def memory_info(self):
            return SimpleNamespace(num_page_faults=next(count))

    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(psutil, "Process", Process)
    assert host.page_faults(lambda: None) == 42
