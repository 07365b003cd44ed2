"""What notebook 62 says about exported files, held against them directly."""

import ast
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from exercises import nb62
from helpers import onnx_export
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source

SCRIPT = ROOT / "notebooks" / "scripts" / "export_answer.py"


def answer_in_fresh_process(kind, path, images):
    np.save(path.with_suffix(".npy"), images.numpy())
    command = [sys.executable, str(SCRIPT), kind, str(path), str(path.with_suffix(".npy"))]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(ran.stdout)


def test_an_onnx_file_answers_in_a_process_without_torch(tmp_path):
    model, images = onnx_export.digits_network().eval(), torch.rand(3, 1, 8, 8)
    folder = tmp_path / "a folder"
    folder.mkdir()
    path = folder / "digits.onnx"
    path.write_bytes(onnx_export.to_onnx(model, images[:2]))
    found = answer_in_fresh_process("ONNX", path, images)
    assert not found["torch"]
    torch.testing.assert_close(torch.tensor(found["answers"]), model(images), rtol=1e-4, atol=1e-4)
    assert found["seconds"] > 0
    assert found["memory"] > 2**20


def test_weights_answer_with_the_code_that_the_script_holds(tmp_path):
    model, images = onnx_export.digits_network().eval(), torch.rand(3, 1, 8, 8)
    torch.save(model.state_dict(), tmp_path / "digits.pt")
    found = answer_in_fresh_process("weights", tmp_path / "digits.pt", images)
    assert found["torch"]
    torch.testing.assert_close(torch.tensor(found["answers"]), model(images), rtol=1e-4, atol=1e-4)


def test_dropout_at_the_end_of_a_file_keeps_dropping():
    model, x = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5)).train(), torch.rand(2, 4)
    session = onnx_export.open_session(onnx_export.to_onnx(model, x))
    assert not torch.equal(onnx_export.answer(session, x), onnx_export.answer(session, x))


def test_dropout_stays_in_a_file_and_the_optimizer_of_the_runtime_removes_it():
    import onnx
    import onnxruntime

    model = nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.5), nn.Linear(32, 2)).train()
    x = torch.rand(2, 4)
    file = onnx_export.to_onnx(model, x)
    assert "Dropout" in [node.op_type for node in onnx.load_model_from_string(file).graph.node]
    optimized = onnx_export.open_session(file)
    answers = [onnx_export.answer(optimized, x) for _ in range(2)]
    assert torch.equal(*answers)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    answers = [onnx_export.answer(plain, x) for _ in range(2)]
    assert not torch.equal(*answers)


@pytest.mark.parametrize(("name", "expected"), list(zip(nb62.FORWARDS, nb62._FATES, strict=True)))
def test_each_forward_meets_its_fate(name, expected):
    assert nb62.fate(name) == expected
    assert expected in nb62._REASONS[name]


@pytest.mark.parametrize("value", ["None", "[1]", '"right"', "torch.ones(2)", "{}"])
@pytest.mark.parametrize("id", ["62.2", "62.3", "62.4"])
def test_an_answer_of_another_type_gets_a_sentence(id, value):
    name = nb62.EXERCISES[id].answer
    verdict = judge_source(id, f"def {name}(*given):\n    return {value}\n")
    assert verdict.status == "wrong"
    assert len(verdict.sentence) > 20


@pytest.mark.parametrize("guess", [3, None, [1], True])
def test_a_fate_of_another_type_gets_a_sentence(guess):
    source = nb62.EXERCISES["62.1"].solution + f"fates['x + random.random()'] = {guess!r}\n"
    verdict = judge_source("62.1", source)
    assert verdict.status == "wrong"
    assert "write right, refused or frozen" in verdict.sentence


@pytest.mark.parametrize("mate", nb62.MATES, ids=lambda mate: mate[0])
def test_rows_alone_tell_whether_a_function_mixes_rows(mate):
    _, function, depends, _ = mate
    x = torch.rand(6, 4) + 0.1
    alone = torch.cat([function(row) for row in x.split(1)])
    assert torch.allclose(function(x), alone, rtol=1e-5, atol=1e-5) is not depends


@pytest.mark.parametrize("version", [(3, 13), (3, 14)])
def test_where_torchscript_breaks_the_notebook_says_so_from_3_14_on(version, tmp_path):
    def break_down(model):
        raise TypeError("annotations are lazy")

    (path,) = (ROOT / "notebooks").glob("62_*.ipynb")
    sources = ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    (source,) = [each for each in sources if "torch.jit.script(model).save" in each]
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value)
    names = {
        "torch": SimpleNamespace(jit=SimpleNamespace(script=break_down)),
        "sys": SimpleNamespace(version_info=version),
        "platform": SimpleNamespace(python_version=lambda: "3.14.0"),
        "quiet": onnx_export.quiet,
        "reason": onnx_export.reason,
        "model": None,
        "files": tmp_path,
    }
    says = "No TorchScript under Python 3.14.0: TypeError: annotations are lazy"
    if version < (3, 14):  # there it works, so a failure is a failure
        with pytest.raises(AssertionError, match=says):
            exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - the course's own cell
        return
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - the course's own cell
    assert names["loaded"] is None
    assert eval(compile(last, "cell", "eval"), names) == says
