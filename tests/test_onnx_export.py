"""The export that 62, 63 and 64 share: quiet, in memory, and equal to the model."""

import logging
import sys
import warnings

import pytest
import torch
from torch import nn

from helpers import data, onnx_export


@pytest.fixture(scope="module")
def model():
    return onnx_export.train_digits()


@pytest.fixture(scope="module")
def file(model):
    return onnx_export.to_onnx(model, data.load_digits().test.images[:2])


def test_the_trained_network_reads_the_test_images(model):
    test = data.load_digits().test
    right = (model(test.images).argmax(1) == test.labels).float().mean()
    assert right > 0.94
    assert not model.training
    assert not any(p.requires_grad for p in model.parameters())


def test_training_twice_gives_the_same_weights_and_leaves_the_generator_alone():
    before = torch.get_rng_state()
    first, second = (onnx_export.train_digits(width=8, epochs=1) for _ in range(2))
    assert torch.equal(first[1].weight, second[1].weight)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_works_where_gradients_are_off():
    with torch.no_grad():
        trained = onnx_export.train_digits(width=8, epochs=1)
    assert not torch.equal(trained[1].weight, onnx_export.digits_network(width=8)[1].weight)


@pytest.mark.parametrize("rows", [1, 2, 5, 360])
def test_the_file_answers_like_the_model_for_any_batch(model, file, rows):
    images = data.load_digits().test.images[:rows]
    got = onnx_export.answer(onnx_export.open_session(file), images)
    torch.testing.assert_close(got, model(images), rtol=1e-4, atol=1e-4)


def test_input_and_output_have_names(file):
    session = onnx_export.open_session(file)
    assert [each.name for each in session.get_inputs()] == ["input"]
    assert [each.name for each in session.get_outputs()] == ["output"]


def test_without_dynamic_batch_the_size_of_the_example_stays():
    file = onnx_export.to_onnx(nn.Linear(4, 3), torch.rand(2, 4), dynamic_batch=False)
    session = onnx_export.open_session(file)
    with pytest.raises(Exception, match="Got: 5 Expected: 2") as caught:
        onnx_export.answer(session, torch.rand(5, 4))
    told = onnx_export.reason(caught.value, length=200)
    assert told.startswith("InvalidArgument: 2 : INVALID_ARGUMENT")
    assert "Got: 5 Expected: 2" in told


def test_exporting_prints_logs_and_warns_nothing(capfd, recwarn):
    onnx_export.to_onnx(nn.Linear(4, 3).train(), torch.rand(2, 4))
    printed = capfd.readouterr()
    assert (printed.out, printed.err, list(recwarn)) == ("", "", [])


def test_a_model_with_a_branch_on_a_value_is_refused_in_one_line(capfd):
    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(torch.onnx.OnnxExporterError) as caught:
        onnx_export.to_onnx(Branch(), torch.rand(2))
    assert "data-dependent" in onnx_export.reason(caught.value)
    assert "\n" not in onnx_export.reason(caught.value)
    assert capfd.readouterr() == ("", "")


def test_quiet_restores_logging_and_warnings_also_after_an_error():
    disabled, filters = logging.root.manager.disable, list(warnings.filters)
    with pytest.raises(KeyError), onnx_export.quiet():
        raise KeyError("inside")
    assert logging.root.manager.disable == disabled
    assert warnings.filters == filters


def test_a_session_has_the_threads_asked_for(file):
    options = onnx_export.open_session(file, threads=2).get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)


def test_a_session_opens_a_file_on_the_disk(file, tmp_path):
    path = tmp_path / "a folder" / "digits.onnx"
    path.parent.mkdir()
    path.write_bytes(file)
    assert onnx_export.open_session(path).get_inputs()[0].shape[0] == "batch"


def test_no_thread_is_refused(file):
    with pytest.raises(ValueError, match="threads must be at least 1, got 0; use 1 to share"):
        onnx_export.open_session(file, threads=0)


@pytest.mark.parametrize("package", ["onnx", "onnxscript"])
def test_a_missing_package_is_named_with_its_remedy_by_the_export(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package} is missing; .*%pip install onnx"):
        onnx_export.to_onnx(nn.ReLU(), torch.rand(2))


def test_a_missing_runtime_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModuleNotFoundError, match="onnxruntime is missing; .*course.py lab"):
        onnx_export.open_session(b"")


def test_bytes_that_are_no_file_are_refused_in_one_line(capfd):
    with pytest.raises(Exception, match="protobuf|Protobuf") as caught:
        onnx_export.open_session(b"no model")
    assert "\n" not in onnx_export.reason(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_reason_without_text_is_its_type():
    assert onnx_export.reason(ValueError()) == "ValueError: "
