"""`course.py notebooks` writes one canonical form, and writes nothing when a cell fails."""

import nbformat
import pytest
from sample_notebooks import code, error, notebook, result, stream, text, write

from tools import notebooks as tool


def test_canonical_keeps_tags_folds_and_ids_and_drops_the_rest():
    cell = code("x", tags=["a"])
    cell.id = "kept"
    cell.metadata.update(
        jupyter={"source_hidden": True, "outputs_hidden": False}, cellView="form", executionInfo=1
    )
    nb = notebook(cell)
    nb.cells[0].id = "kept"
    nb.metadata["widgets"] = {}
    tidy = tool.canonical(nb)
    assert tidy.metadata == tool.METADATA
    assert tidy.cells[0].id == "kept"
    assert tidy.cells[0].metadata == {
        "tags": ["a"], "jupyter": {"source_hidden": True}, "cellView": "form",
    }  # fmt: skip


def test_canonical_joins_streams_and_drops_views_and_tracebacks():
    failed = error("ValueError", "no")
    failed.traceback = ["File /home/someone/x.py"]
    view = result("HTML()", **{tool.WIDGET_VIEW: {"model_id": "1"}})
    outputs = [stream("a"), stream("b"), stream("c", "stderr"), view, failed]
    tidy = tool.canonical(notebook(code("x", *outputs))).cells[0].outputs
    assert [out.get("text") for out in tidy[:2]] == ["ab", "c"]
    assert tidy[2].data == {"text/plain": "HTML()"}
    assert tidy[3].traceback == ["ValueError: no"]


def test_canonical_is_its_own_canonical_form(tmp_path):
    path = tmp_path / "13_x.ipynb"
    path.write_text(tool.to_text(tool.canonical(notebook(text("a"), code("1", result("1"))))))
    assert tool.is_canonical(path)
    path.write_text(path.read_text().rstrip())
    assert not tool.is_canonical(path)


def test_run_fills_in_outputs_and_a_failure_writes_nothing(tmp_path, capsys, monkeypatch):
    good = write(tmp_path / "13_good.ipynb", notebook(code("6 * 7")))
    bad = write(tmp_path / "14_bad.ipynb", notebook(code("1 / 0")))
    before = bad.read_bytes()
    monkeypatch.setattr(tool, "find", lambda names: [bad, good])
    assert tool.main([]) == 1
    assert bad.read_bytes() == before
    assert nbformat.read(good, 4).cells[0].outputs[0].data["text/plain"] == "42"
    assert tool.is_canonical(good)
    shown = capsys.readouterr()
    assert "14_bad.ipynb: not written, because a cell failed." in shown.err
    assert "1 / 0" in shown.err
    assert "ZeroDivisionError" in shown.err
    assert "13_good.ipynb: executed and written" in shown.out


def test_check_names_the_untidy_and_changes_nothing(tmp_path, capsys, monkeypatch):
    nb = notebook(code("1"))
    nb.metadata["widgets"] = {}
    path = write(tmp_path / "13_x.ipynb", nb)
    before = path.read_bytes()
    monkeypatch.setattr(tool, "find", lambda names: [path])
    assert tool.main(["--check"]) == 1
    assert "13_x.ipynb is not in the committed form" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_an_unknown_name_says_which_there_are(tmp_path):
    (tmp_path / "13_x.ipynb").touch()
    with pytest.raises(SystemExit, match="no notebook starts with '14'; there are: 13_x"):
        tool.find(["14"], tmp_path)
