"""Texts of errors are recognized: those raised here by raising them, the others as recorded."""

import io
import subprocess

import pytest
import torch
from torch._subclasses import FakeTensorMode

from helpers import gpu_errors
from helpers.gpu_errors import TABLE, explain

# Each is raised in a process that sees no GPU: name of the entry, code.
RAISED = {
    "torch.ones(1, device='cuda')": ("CPU wheel", "no driver"),
    "torch.cuda.synchronize()": ("CPU wheel", "no driver"),
    "torch.cuda.Stream()": ("CPU wheel", "no driver", "unguarded torch.cuda"),
    "torch.ones(1, device='mps')": ("build without this device",),
    "torch.ones(1, device='xpu')": ("build without this device", "CPU wheel"),
    "torch.accelerator.synchronize()": ("no accelerator", "no driver"),
    "torch.ones(1).to(0)": ("no accelerator", "no driver"),
    "torch.ones(1).pin_memory()": ("no accelerator", "no driver"),
    "torch.cuda.set_device(0)": ("unguarded torch.cuda", "no driver"),
    "torch.cuda.memory_summary()": ("unguarded torch.cuda", "no driver"),
    "torch.cuda.Event().record()": ("unguarded torch.cuda", "no driver"),
    "torch.device('gpu')": ("unknown device name",),
    "torch.ones(1, device='meta').numpy()": ("to NumPy",),
    "torch.nn.functional.cross_entropy(torch.zeros(1, 10), torch.tensor([10]))": (
        "index on the CPU",
    ),
    "torch.nn.functional.embedding(torch.tensor([9]), torch.zeros(9, 2))": ("index on the CPU",),
    "torch.zeros(3)[torch.tensor([3])]": ("index on the CPU",),
    "torch.ones(3) + torch.ones(3, device='meta')": ("two devices",),
}


@pytest.fixture(scope="module")
def raised():
    return gpu_errors.without_gpu(list(RAISED))


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="Apple's GPU cannot be hidden")
@pytest.mark.parametrize("line", RAISED)
def test_what_is_raised_without_a_gpu_is_recognized(line, raised):
    assert explain(": ".join(raised[line])).entry.name in RAISED[line]


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_a_sample_is_explained_by_its_own_entry(entry):
    assert explain(entry.sample).entry is entry
    assert all(text.endswith(".") for text in (entry.cause, entry.fix))
    assert entry.source == "torch" or "/" in entry.source


def test_names_are_unique():
    assert len({entry.name for entry in TABLE}) == len(TABLE)


def test_torch_itself_says_that_a_forked_process_cannot_use_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    with pytest.raises(RuntimeError) as caught:
        torch.cuda._lazy_init()
    assert explain(caught.value).entry.name == "forked process"
    assert explain(caught.value).facts == {"device": "CUDA"}


def test_fake_tensors_raise_the_mismatch_that_a_gpu_would():
    with FakeTensorMode(), pytest.raises(RuntimeError) as caught:
        torch.ones(3, 3, device="cuda") @ torch.ones(3, 3)
    assert explain(caught.value).entry.name == "two devices"
    assert set(explain(caught.value).facts.values()) <= {"cuda:0 and cpu", "cuda:0, cpu"}  # 2.11


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_file_from_a_gpu_is_recognized():
    file = io.BytesIO()
    torch.save(torch.ones(1), file)
    file.seek(0)
    with pytest.raises(RuntimeError) as caught:
        torch.load(file, map_location="cuda")
    assert explain(caught.value).entry.name == "file from a GPU"


def test_facts_are_read_from_the_text():
    facts = {e.name: explain(e.sample).facts for e in TABLE}
    assert facts["old driver"] == {"driver_serves": "CUDA 11.4"}
    assert facts["out of memory"] == {
        "asked": "30.29 GiB",
        "total": "10.74 GiB",
        "free": "3.69 GiB",
        "allocated": "6.10 GiB",
    }
    assert facts["index on the CPU"] == {"target": "10"}
    assert facts["device-side assert"] == {}


def test_an_older_out_of_memory_text_gives_what_it_has():
    text = "CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; ..."
    assert explain(text).facts == {"asked": "2.26 GiB"}


def test_an_explanation_shows_itself():
    shown = explain("CUDA out of memory. Tried to allocate 2.26 GiB")
    assert repr(shown).splitlines()[0] == "error: out of memory"
    assert repr(shown).splitlines()[-1] == "it says: asked 2.26 GiB"
    assert "<td" in shown._repr_html_()
    assert "it says" not in repr(explain("device-side assert triggered"))


def test_a_line_that_ends_the_process_is_an_error():
    with pytest.raises(subprocess.CalledProcessError):
        gpu_errors.without_gpu(["__import__('os')._exit(3)"])


def test_an_unknown_text_is_refused():
    with pytest.raises(LookupError, match="the table has no error like 'ValueError: no'"):
        explain(ValueError("no"))


def test_the_table_has_one_row_per_error():
    assert len(gpu_errors.table().rows) == len(TABLE)
    assert all(len(row[0]) <= 72 for row in gpu_errors.table().rows)
