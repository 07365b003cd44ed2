"""The lint for device-agnostic code: what it finds, what it leaves alone, and the course itself."""

import json

import pytest
import torch

from helpers import device_lint
from helpers.device_lint import lint, lint_file
from tools import lint_devices

MODULE = "import torch\nfrom torch import nn\nclass M(nn.Module):\n"
INIT = MODULE + "    def __init__(self):\n        super().__init__()\n        "
FORWARD = MODULE + "    def forward(self, x):\n        "

FAULTS = [
    ("named device", "model.cuda()"),
    ("named device", "x = x.cuda(0)"),
    ("named device", "x.to('cuda')"),
    ("named device", "x.to('cuda:1', non_blocking=True)"),
    ("named device", "x.to(0)"),
    ("named device", "x.to(device='mps')"),
    ("named device", "torch.ones(3, device='xpu')"),
    ("named device", "torch.device('cuda')"),
    ("named device", "device = 'cuda:0'"),
    ("named device", "self.device = 'mps'"),
    ("named device", "DEVICE = 'cuda'"),
    ("named device", "def train(model, device='cuda'): pass"),
    ("named device", "def train(model, *, device='cuda'): pass"),
    ("named device", "parser.add_argument('--device', default='cuda')"),
    ("named device", "torch.load(f, map_location='cuda')"),
    ("named device", "torch.load(f, 'cuda:0')"),
    ("named device", "with torch.autocast('cuda'): pass"),
    ("named device", "with torch.autocast(device_type='cuda'): pass"),
    ("named device", "torch.amp.GradScaler()"),
    ("named device", "torch.amp.GradScaler('cuda')"),
    ("named device", "torch.cuda.amp.autocast()"),
    ("named device", "torch.Generator('cuda')"),
    ("one vendor", "device = 'cuda' if torch.cuda.is_available() else 'cpu'"),
    ("one vendor", "torch.device('cuda' if torch.cuda.is_available() else 'cpu')"),
    ("one vendor", "d = torch.device('cuda') if a.is_available() else torch.device('cpu')"),
    ("one vendor", "d = 'cuda' if a.is_available() else 'mps' if b.is_available() else 'cpu'"),
    ("raises without it", "torch.cuda.synchronize()"),
    ("raises without it", "torch.mps.empty_cache()"),
    ("raises without it", "torch.accelerator.synchronize()"),
    ("number without it", "torch.accelerator.memory_allocated()"),
    ("raises without it", "torch.cuda.Event(enable_timing=True)"),
    ("raises without it", "if debug:\n    torch.cuda.synchronize()"),
    ("raises without it", "def _sync():\n    torch.cuda.synchronize()\n_sync()"),
    ("raises without it", "def sync():\n    torch.cuda.synchronize()\nif torch.cuda.is_available():\n    sync()"),
    ("number without it", "peak = torch.cuda.max_memory_allocated()"),
    ("number without it", "torch.xpu.memory_reserved()"),
    ("born on the CPU", FORWARD + "return x + torch.arange(x.shape[1])"),
    ("born on the CPU", FORWARD + "return x @ torch.ones(3, 3).view(3, 3).t()"),
    ("born on the CPU", FORWARD + "return f(torch.zeros(3)).to(x.device)"),
    ("left behind", INIT + "self.w = torch.ones(3)"),
    ("left behind", INIT + "self.w = -torch.ones(3) / 2"),
    ("left behind", INIT + "self.w = 2 * torch.arange(3).float().view(1, 3)"),
    ("left behind", INIT + "self.w = torch.ones(3, device=device)"),
    ("hidden layers", INIT + "self.layers = [nn.Linear(2, 2), nn.ReLU()]"),
    ("hidden layers", INIT + "self.layers = [torch.nn.Linear(2, 2) for _ in range(3)]"),
    ("hidden layers", INIT + "self.layers = {'a': nn.Linear(2, 2)}"),
    ("hidden layers", INIT + "self.layers = {n: nn.Linear(2, 2) for n in 'ab'}"),
    ("no leaf", "w = torch.ones(3, requires_grad=True).to(device)"),
    ("float64", "torch.ones(3, dtype=torch.float64, device=device)"),
    ("float64", "x.to(device, torch.float64)"),
    ("float64", "x.to(device=device, dtype=torch.double)"),
]  # fmt: skip

HARMLESS = [
    "device = pick_device()",
    "x.to(device)",
    "x.to('cpu')",
    "torch.ones(3, device='meta')",
    "torch.device('cpu')",
    "torch.ones(3, device=x.device)",
    "torch.amp.GradScaler(device.type)",
    "with torch.autocast(device.type): pass",
    "d = 'cuda' if a() else 'mps' if b.is_available() else 'xpu' if c.is_available() else 'cpu'",
    "kind = 'cuda' if name == 'b' else 'no'\nname = 'cuda'",
    "if device.type == 'cuda':\n    torch.cuda.synchronize()",
    "if torch.cuda.is_available():\n    device = 'cuda'",
    "times = copies(device) if device.type == 'cuda' else None",
    "names = {'cuda': 'card' if torch.cuda.is_available() else 'none'}",
    "gpu = torch.cuda.is_available()\nif gpu:\n    x = x.cuda()",
    "peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None",
    "torch.cuda.is_available() and torch.cuda.synchronize()",
    "for i in range(torch.cuda.device_count()):\n    torch.cuda.synchronize(i)",
    "[torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]",
    "[torch.cuda.synchronize(d) for d in ds if d.type == 'cuda']",
    "try:\n    torch.cuda.synchronize()\nexcept AssertionError:\n    pass",
    "def f():\n    if not torch.cuda.is_available():\n        return None\n    torch.cuda.synchronize()",
    "def f():\n    assert torch.cuda.is_available()\n    with x:\n        torch.cuda.synchronize()",
    "@mark.skipif(not torch.cuda.is_available(), reason='')\ndef test():\n    torch.cuda.synchronize()",
    "def _sync():\n    torch.cuda.synchronize()\nif torch.cuda.is_available():\n    _sync()",
    (
        "class A:\n    def _s(self):\n        torch.cuda.synchronize()\n"
        "    def f(self):\n        if torch.cuda.is_available():\n            self._s()"
    ),
    "with gpu_setup.stand_in_card((8, 0)):\n    torch.cuda.get_device_capability()",
    "torch.cuda.manual_seed_all(0)",
    "except_ = torch.cuda.OutOfMemoryError",
    "torch.float64",
    "torch.ones(3, dtype=torch.float64)",
    "torch.ones(3, dtype=torch.float64, device='cpu')",
    "x.to(torch.float64)",
    "w = torch.ones(3, requires_grad=False).to(device)",
    "w = torch.ones(3, device=device, requires_grad=True)",
    "print('cuda')",
    "names = {'cuda': 'NVIDIA'}",
    FORWARD + "return x + torch.arange(3, device=x.device)",
    FORWARD + "return x + torch.arange(3).view(1, 3).to(x.device)",
    FORWARD + "return x + (2 * torch.arange(3)).to(x)",
    FORWARD + "return x * torch.tensor(0.5)",
    FORWARD + "return x + torch.zeros_like(x)",
    FORWARD + "with torch.device(x.device):\n            return x + torch.ones(3)",
    "def forward(x):\n    return x + torch.ones(3)",
    INIT + "self.w = nn.Parameter(torch.ones(3))",
    INIT + "self.register_buffer('w', torch.ones(3))",
    INIT + "self.sizes = [3, 4]",
    INIT + "self.layers = nn.ModuleList([nn.Linear(2, 2)])",
    INIT + "self.rate = torch.tensor(0.5)",
    "class A:\n    def __init__(self):\n        self.w = torch.ones(3)",
    "x = (\n    'a %s'\n    % b\n)",
    "if torch.cuda._is_compiled():\n    torch.cuda.synchronize()",
    "%timeit f()\n!ls\nx = 1",
]  # fmt: skip


@pytest.mark.parametrize(("rule", "source"), FAULTS)
def test_a_fault_is_found_once_and_named(rule, source):
    assert lint(source).rules == (rule,)


@pytest.mark.parametrize("source", HARMLESS)
def test_what_runs_everywhere_is_no_finding(source):
    assert list(lint(source)) == []


def test_every_rule_can_be_broken():
    assert {rule for rule, _ in FAULTS} == set(device_lint.RULES)


def _classified():
    return [(owner, name) for owner, names in device_lint.HARMLESS.items() for name in names]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="needs a machine without a GPU")
@pytest.mark.parametrize(("owner", "name"), _classified())
def test_what_is_called_harmless_does_not_raise_here(owner, name):
    function = getattr(getattr(torch, owner), name, None)
    if function is not None:
        function(0) if "manual" in name else function()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_the_calls_that_return_a_number_do_so_here():
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_reserved() == 0


def test_findings_come_in_order_of_lines_and_say_what_to_do():
    found = lint("x = 1\nmodel.cuda()\ndevice = 'cuda'")
    assert [f.line for f in found] == [2, 3]
    assert len(found) == 2
    assert str(found).splitlines()[0] == (
        "line 2: `model.cuda()` (named device). The name of one vendor's device stands in the "
        "code. Instead: device = pick_device(), and pass it on."
    )
    assert '<td style="text-align:left">model.cuda()</td>' in found._repr_html_()


def test_nothing_found_is_said_in_words():
    assert repr(lint("x = 1")) == "No line was found that works on one kind of device only."
    assert lint("")._repr_html_().startswith("<p>No line")


def test_a_long_line_is_cut():
    code = lint(f"torch.ones({'1, ' * 40}device='cuda')").rows[0].code
    assert len(code) == 60
    assert code.endswith("...")


def test_what_is_no_python_is_refused():
    with pytest.raises(ValueError, match="source must be Python, got an error in line 2"):
        lint("x = 1\nx = = 2")


def test_a_notebook_is_read_cell_by_cell_and_what_it_shows_on_purpose_is_left_out(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["model.cuda()"], "metadata": {}},
        {"cell_type": "code", "source": ["x = 1\n", "model.cuda()"], "metadata": {}},
        {"cell_type": "code", "source": ["x.cuda()"], "metadata": {"tags": ["teaches-old-api"]}},
        {"cell_type": "code", "source": ["x.cuda()\n\n", 'check("21.3", x)'], "metadata": {}},
        {"cell_type": "code", "source": ["%%bash\n", "x.cuda()"], "metadata": {}},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert [str(f)[:14] for f in lint_file(path)] == ["cell 2, line 2"]


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ValueError, match=r"path must end in .py or .ipynb, got a.txt"):
        lint_file(tmp_path / "a.txt")


def test_the_course_passes_its_own_lint():
    found = {path.name: lint_devices.findings_in(path) for path in lint_devices.course_files()}
    assert {name: rows for name, rows in found.items() if rows} == {}


def test_the_course_has_files_to_lint():
    names = {path.name for path in lint_devices.course_files()}
    assert {"course.py", "device.py", "nb13.py", "13_share_memory_with_numpy.ipynb"} <= names


def test_the_command_names_the_file_and_fails(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text("model.cuda()\n")
    assert lint_devices.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("train.py: line 1: `model.cuda()`")
    path.write_text("model.to(device)\n")
    assert lint_devices.main([str(path)]) == 0
