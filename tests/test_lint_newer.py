"""What Colab's older torch, NumPy and ipywidgets lack is used behind a guard, everywhere."""

import tomllib

import nbformat
import pytest

from tools import lint_newer
from tools.lint_devices import ROOT, course_files

NAME = "torch.nn.LinearCrossEntropyLoss"
SENTENCE = (
    "x.py, line 2: torch.nn.LinearCrossEntropyLoss is newer than torch 2.11.0, which Colab has; "
    "ask hasattr or the version first, and say what happens without it"
)

FOUND = {
    "import torch\ntorch.nn.LinearCrossEntropyLoss(3, 4)": NAME,
    "import torch.nn as nn\nnn.LinearCrossEntropyLoss": NAME,
    "import torch as t\nfrom t import nn\nt.accelerator.graphs.x.y": "torch.accelerator.graphs",
    "from torch import nn as layers\nlayers.modules.linear_cross_entropy": "modules.linear_cross",
    "from torch.nn import LinearCrossEntropyLoss": NAME,
    "from torch.nn.functional import linear_cross_entropy as f": "functional.linear_cross_entropy",
    "import torch.backends.python_native": "torch.backends.python_native",
    "def f():\n    import torch\n    return torch.accelerator.Graph()": "torch.accelerator.Graph",
    "import torch\nclass A:\n    def f(self):\n        torch.accelerator.Graph()": "Graph is newer",
    "import torch\n@torch.compile(name='f')\ndef f(): pass": "name= of torch.compile is newer",
    "import torch\ndef f(x=torch.accelerator.Graph): pass": "torch.accelerator.Graph",
    "from torch import nn\nnn.BatchNorm2d(3, bias=False)": "bias= of torch.nn.BatchNorm2d",
    "import functools\nfrom torch import nn\nfunctools.partial(nn.GroupNorm, bias=False)": "bias= of",
    "import numpy as np\nnp.unique(x, sorted=False)": "numpy.unique is newer than numpy 2.0.2",
    "import numpy as np\nnp.vecmat(a, b)": "numpy.vecmat",
    "import ipywidgets\nipywidgets.TagsInput()": "TagsInput is newer than ipywidgets 7.7.1",
    "from ipywidgets import IntSlider\nIntSlider(behavior='drag')": "behavior= of ipywidgets.IntSl",
    "import ipywidgets as w\nw.Button(tooltip='a', tabbable=True)": "tabbable= of ipywidgets.But",
    "x.const_data_ptr()": "torch.Tensor.const_data_ptr",
    "f(3).y.const_data_ptr()": "torch.Tensor.const_data_ptr",
    # programs in strings, examples in docstrings
    "p = '''if True:\n    import torch\n    torch.accelerator.Graph()\n'''": "torch.accelerator.Graph",
    "import torch\ns = '''def f():\n    return torch.accelerator.Graph()\n'''": "accelerator.Graph",
    "def f():\n    '''Do.\n\n    >>> import torch\n    >>> torch.accelerator.Graph()\n    '''": "Graph is",
    # what looks like a guard and is none
    "import torch\nhasattr(torch, 'compile') and torch.accelerator.Graph()": "accelerator.Graph",
    "import torch\ndef g(): return hasattr(torch, 'Graph')\ndef f(): torch.accelerator.Graph()": "Graph",
    "import torch\ntry:\n    torch.accelerator.Graph()\nexcept ValueError: pass": "accelerator.Graph",
    "import torch\ntry:\n    pass\nexcept AttributeError:\n    torch.accelerator.Graph()": "Graph is",
    "import torch\ntry:\n    pass\nfinally:\n    torch.accelerator.Graph()": "accelerator.Graph",
    "import torch\ntry:\n    def f(): torch.accelerator.Graph()\nexcept AttributeError: pass": "Graph",
    "import torch\nif x in ('a', 'b'): torch.compile(f, name='g')": "name= of torch.compile",
}  # fmt: skip

GUARDED = [
    "import torch\nif hasattr(torch.accelerator, 'Graph'):\n    torch.accelerator.Graph()",
    "import torch\nmake = getattr(torch.accelerator, 'Graph', None)",
    (
        "import torch\ndef f():\n    if hasattr(torch.accelerator, 'Graph'):\n"
        "        return lambda: torch.accelerator.Graph()"
    ),
    "import torch\ndef f():\n    if torch.__version__ >= '2.13':\n        torch.accelerator.Graph()",
    (
        "import torch\nfrom importlib import metadata\n"
        "if metadata.version('torch') >= '2.13': torch.accelerator.Graph()"
    ),
    "import torch\ntry:\n    torch.accelerator.Graph()\nexcept (ValueError, AttributeError): pass",
    "import torch\ntry:\n    run(lambda: torch.accelerator.Graph())\nexcept AttributeError: pass",
    "try:\n    from torch.nn import LinearCrossEntropyLoss\nexcept ImportError:\n    pass",
    "try:\n    import torch.backends.python_native\nexcept Exception as error: pass",
    (
        "import inspect, torch\nif 'name' in inspect.signature(torch.compile).parameters:\n"
        "    torch.compile(f, name='a')"
    ),
    "import torch\ntry:\n    torch.compile(f, name='a')\nexcept TypeError: pass",
]
HARMLESS = [
    "import torch\ntorch.compile(f, mode='default')\ntorch.nn.Linear(3, 4, bias=False)",
    "from torch import nn\nnn.BatchNorm2d(3, affine=False)",
    "from mine import nn\nnn.LinearCrossEntropyLoss()",
    "from . import torch\ntorch.accelerator.Graph()",
    "import torch\ndef f(torch): torch.accelerator.Graph()",
    "import torch\nf = lambda torch: torch.accelerator.Graph()",
    "import torch\ndef f():\n    torch = Fake()\n    torch.accelerator.Graph()",
    "def f():\n    import torch\ndef g():\n    torch.accelerator.Graph()",
    (
        "try:\n    from torch.nn import LinearCrossEntropyLoss as Loss\nexcept ImportError:\n"
        "    Loss = None\nLoss and Loss()"
    ),
    "accelerator.Graph()\nself.torch.accelerator.Graph()",
    "'torch.accelerator.Graph'",
    "'''Prose about it.\n\nUse torch.accelerator.Graph where it exists.\n'''",
    "import ipywidgets as w\nw.Button(tooltip='a')\nw.IntSlider(description='a')",
    "x.const_data_ptr = 3",
    "def broken(",
]


def findings(source, folder, name="x.py"):
    path = folder / name
    path.write_text(source, encoding="utf-8")
    return lint_newer.findings(path)


@pytest.mark.parametrize(("source", "words"), FOUND.items())
def test_an_unguarded_use_is_found(source, words, tmp_path):
    found = findings(source, tmp_path)
    assert len(found) == 1, found
    assert words in found[0]


@pytest.mark.parametrize("source", [*GUARDED, *HARMLESS])
def test_a_guarded_use_and_what_only_looks_like_one_are_not(source, tmp_path):
    assert findings(source, tmp_path) == []


def test_the_sentence_says_where_what_and_how_to_mend_it(tmp_path):
    assert findings("import torch\ntorch.nn.LinearCrossEntropyLoss(3, 4)", tmp_path) == [SENTENCE]


def test_a_notebook_is_read_as_one_module_and_guarded_cell_by_cell(tmp_path):
    cells = [
        "import torch",
        "!pip list\nif hasattr(torch.accelerator, 'Graph'):\n    torch.accelerator.Graph()",
        "%%writefile x.py\ntorch.accelerator.Graph()",
        "x = torch.accelerator.Graph()",
        "1 +",
    ]
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    nbformat.write(nb, tmp_path / "x.ipynb")
    (found,) = lint_newer.findings(tmp_path / "x.ipynb")
    assert found.startswith("x.ipynb, cell 4: torch.accelerator.Graph is newer")


@pytest.mark.parametrize("path", course_files(), ids=lambda path: path.name)
def test_the_course_uses_nothing_newer_than_colab_without_a_guard(path):
    assert lint_newer.findings(path) == []


def test_the_command_names_findings_and_fails(tmp_path, capsys):
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_text("import torch\ntorch.accelerator.Graph()\n")
    good.write_text("import torch\ntorch.compile\n")
    assert lint_newer.main([str(good), str(bad)]) == 1
    assert "bad.py, line 2: torch.accelerator.Graph" in capsys.readouterr().out
    assert lint_newer.main([str(good)]) == 0
    assert "everything unguarded is in torch 2.11.0" in capsys.readouterr().out


def test_the_list_is_of_the_versions_that_the_course_pins():
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for library, version in lint_newer.DATA["newer"].items():
        assert f"{library}=={version}" in pins, "make the list again: see tools/public_names.py"


def test_the_list_reaches_back_to_what_the_course_admits():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for library, version in lint_newer.DATA["older"].items():
        (line,) = [each for each in project["dependencies"] if each.startswith(f"{library}>=")]
        assert version.startswith(line.partition(">=")[2])


def test_the_list_holds_what_the_newer_torch_has():
    import torch

    listed = [name for name in lint_newer.NAMES if name.count(".") == 1 and name[:6] == "torch."]
    assert "torch.thread_safe_generator" in listed
    if torch.__version__.startswith(lint_newer.DATA["newer"]["torch"]):
        assert [name for name in listed if not hasattr(torch, name[6:])] == []
    elif torch.__version__.startswith(lint_newer.DATA["older"]["torch"]):
        assert [name for name in listed if hasattr(torch, name[6:])] == []
