import json
import multiprocessing
import os
import sys

import pytest

from tools import lab, workbook

NAME = "13_share_memory_with_numpy.ipynb"
NEW = "13_share_memory_with_numpy.new.ipynb"
NEW2 = "13_share_memory_with_numpy.new2.ipynb"
OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["7.0\n"]}


def notebook(*sources, outputs=(), **metadata):
    """Return a notebook of code cells, as JupyterLab would store it."""
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": dict(metadata),
            "source": source.splitlines(keepends=True),
            "outputs": list(outputs),
            "execution_count": 1 if outputs else None,
        }
        for number, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def sources(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def outputs(path):
    return [output for cell in json.loads(path.read_text())["cells"] for output in cell["outputs"]]


@pytest.fixture
def course(tmp_path):
    """A course in a folder with a space, with one executed notebook."""
    source, target = tmp_path / "my course" / "notebooks", tmp_path / "my course" / "workbook"
    write(source / NAME, notebook("a = 1", "a", outputs=[OUTPUT]))
    return source, target


@pytest.fixture
def laid(course):
    assert workbook.lay(*course) == []
    return course


def save_as_jupyterlab(path, edit=None):
    """Save a copy with outputs, counts, new ids and metadata; edit a cell if asked."""
    content = json.loads(path.read_text())
    for number, cell in enumerate(content["cells"]):
        cell["outputs"], cell["execution_count"], cell["id"] = [OUTPUT], 5, f"new-{number}"
        cell["metadata"]["trusted"] = True
    content["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    if edit:
        content["cells"][0]["source"] = edit  # JupyterLab stores a string or a list
    path.write_text(json.dumps(content, indent=1))


def test_a_copy_has_the_sources_but_no_outputs_and_counts(laid):
    source, target = laid
    assert sources(target / NAME) == sources(source / NAME)
    assert outputs(target / NAME) == []
    counts = {cell["execution_count"] for cell in json.loads((target / NAME).read_text())["cells"]}
    assert counts == {None}
    assert outputs(source / NAME), "the course's own notebook keeps its outputs"


def test_a_copy_loses_widget_state_and_the_marks_that_fold_outputs(course):
    source, target = course
    content = notebook("1", jupyter={"outputs_hidden": True, "source_hidden": True}, tags=["x"])
    content["metadata"]["widgets"] = {"state": {}}
    content["cells"] += notebook("2", jupyter={"outputs_hidden": True}, collapsed=True)["cells"]
    write(source / NAME, content)
    workbook.lay(source, target)
    laid = json.loads((target / NAME).read_text())
    assert [cell["metadata"] for cell in laid["cells"]] == [
        {"jupyter": {"source_hidden": True}, "tags": ["x"]},
        {},
    ]
    assert "widgets" not in laid["metadata"]


def test_an_untouched_copy_follows_the_course(laid):
    source, target = laid
    write(source / NAME, notebook("a = 2"))
    assert workbook.lay(source, target) == []
    assert sources(target / NAME) == ["a = 2"]


def test_an_untouched_copy_follows_metadata_too(laid):
    source, target = laid
    write(source / NAME, notebook("a = 1", "a", tags=["nbval-ignore-output"]))
    workbook.lay(source, target)
    assert "nbval-ignore-output" in (target / NAME).read_text()


def test_a_changed_copy_stays_and_the_newer_one_is_named_beside_it(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    write(source / NAME, notebook("a = 2"))
    lines = workbook.lay(source, target)
    assert lines == [f"{NAME} has your changes and stays; the newer version is beside it: {NEW}"]
    assert sources(target / NAME)[0] == "a = 'mine'"
    assert outputs(target / NAME)
    assert sources(target / NEW) == ["a = 2"]


def test_a_changed_copy_of_an_unchanged_course_is_left_in_peace(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    assert workbook.lay(source, target) == []
    assert sorted(path.name for path in target.glob("*.ipynb")) == [NAME]


def test_the_newer_version_is_offered_once_even_when_it_was_thrown_away(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    write(source / NAME, notebook("a = 2"))
    workbook.lay(source, target)
    assert workbook.lay(source, target) == []
    (target / NEW).unlink()
    assert workbook.lay(source, target) == []
    assert not (target / NEW).exists()


def test_an_unchanged_newer_version_is_replaced_by_a_still_newer_one(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    for text in ("a = 2", "a = 3"):
        write(source / NAME, notebook(text))
        assert len(workbook.lay(source, target)) == 1
    assert sources(target / NEW) == ["a = 3"]
    assert not (target / NEW2).exists()


def test_a_newer_version_that_the_reader_changed_stays_too(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    write(source / NAME, notebook("a = 2"))
    workbook.lay(source, target)
    save_as_jupyterlab(target / NEW, edit="a = 'mine as well'")
    write(source / NAME, notebook("a = 3"))
    assert workbook.lay(source, target)[0].endswith(NEW2)
    assert sources(target / NEW)[0] == "a = 'mine as well'"
    assert sources(target / NEW2) == ["a = 3"]


def test_a_file_of_the_reader_with_the_newer_name_stays(laid):
    source, target = laid
    write(target / NEW, notebook("'a file of mine'"))
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    write(source / NAME, notebook("a = 2"))
    workbook.lay(source, target)
    assert sources(target / NEW) == ["'a file of mine'"]
    assert sources(target / NEW2) == ["a = 2"]


def test_a_newer_version_taken_over_follows_the_course_again(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    write(source / NAME, notebook("a = 2"))
    workbook.lay(source, target)
    os.replace(target / NEW, target / NAME)
    assert workbook.lay(source, target) == []
    write(source / NAME, notebook("a = 3"))
    workbook.lay(source, target)
    assert sources(target / NAME) == ["a = 3"]
    assert not (target / NEW).exists()


def test_a_deleted_copy_is_laid_again(laid):
    source, target = laid
    (target / NAME).unlink()
    assert workbook.lay(source, target) == []
    assert sources(target / NAME) == ["a = 1", "a"]


def test_a_copy_that_was_only_run_keeps_its_outputs_while_the_course_stands_still(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME)
    assert workbook.lay(source, target) == []
    assert outputs(target / NAME) == [OUTPUT, OUTPUT]


def test_a_copy_that_was_only_run_keeps_its_outputs_when_the_course_was_only_rerun(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME)
    write(source / NAME, notebook("a = 1", "a", outputs=[OUTPUT, OUTPUT], tags=["new"]))
    assert workbook.lay(source, target) == []
    assert outputs(target / NAME) == [OUTPUT, OUTPUT]


def test_a_copy_that_was_only_run_is_refreshed_when_a_source_is_newer(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME)
    write(source / NAME, notebook("a = 2"))
    lines = workbook.lay(source, target)
    assert lines == [f"{NAME} is newer now; Run All brings its outputs back."]
    assert sources(target / NAME) == ["a = 2"]


def test_a_change_that_the_reader_took_back_is_no_change(laid):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    workbook.lay(source, target)
    save_as_jupyterlab(target / NAME, edit=["a = 1"])
    write(source / NAME, notebook("a = 2"))
    workbook.lay(source, target)
    assert sources(target / NAME) == ["a = 2"]


@pytest.mark.parametrize("record", ["", "{", "[]", '{"format": 99, "copies": {}}', None])
def test_a_lost_or_damaged_record_costs_no_work(laid, record):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    path = target / workbook.LAID
    path.unlink() if record is None else path.write_text(record)
    lines = workbook.lay(source, target)
    assert sources(target / NAME)[0] == "a = 'mine'"
    assert lines[0].endswith(NEW)
    assert workbook.lay(source, target) == []


def test_a_copy_from_before_the_record_follows_the_course_when_it_is_the_same(laid):
    source, target = laid
    (target / workbook.LAID).unlink()
    assert workbook.lay(source, target) == []
    write(source / NAME, notebook("a = 2"))
    workbook.lay(source, target)
    assert sources(target / NAME) == ["a = 2"]


def test_a_copy_that_is_no_notebook_stays_and_a_fresh_one_is_laid_beside_it_once(laid):
    source, target = laid
    (target / NAME).write_text('{"cells": [{"cell_type": "code", "sou')
    lines = workbook.lay(source, target)
    assert lines == [f"{NAME} cannot be read as a notebook; a fresh copy is beside it: {NEW}"]
    assert (target / NAME).read_text().endswith('"sou')
    assert sources(target / NEW) == ["a = 1", "a"]
    assert workbook.lay(source, target) == []


def test_an_empty_copy_is_laid_again(laid):
    source, target = laid
    (target / NAME).write_bytes(b"")
    workbook.lay(source, target)
    assert sources(target / NAME) == ["a = 1", "a"]


def test_programs_that_a_notebook_starts_come_along_and_follow_the_same_rules(course):
    source, target = course
    program = source / "scripts" / "ring.py"
    program.parent.mkdir()
    program.write_text("print(1)\n")
    (source / "scripts" / "__pycache__").mkdir()
    (source / "scripts" / "__pycache__" / "ring.pyc").write_bytes(b"x")
    workbook.lay(source, target)
    assert (target / "scripts" / "ring.py").read_text() == "print(1)\n"
    assert not (target / "scripts" / "__pycache__").exists()
    (target / "scripts" / "ring.py").write_text("print('mine')\n")
    program.write_text("print(2)\n")
    lines = workbook.lay(source, target)
    assert lines[0].endswith("ring.new.py")
    assert (target / "scripts" / "ring.py").read_text() == "print('mine')\n"
    assert (target / "scripts" / "ring.new.py").read_text() == "print(2)\n"


def test_files_of_the_reader_are_not_touched(laid):
    source, target = laid
    write(target / "notes.ipynb", notebook("'mine'"))
    workbook.lay(source, target)
    assert sources(target / "notes.ipynb") == ["'mine'"]


@pytest.mark.parametrize("moment", ["replace", "fsync"])
def test_a_kill_while_writing_leaves_the_old_copy_whole(laid, monkeypatch, moment):
    source, target = laid
    write(source / NAME, notebook("a = 2"))

    def kill(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, moment, kill)
    with pytest.raises(KeyboardInterrupt):
        workbook.lay(source, target)
    monkeypatch.undo()
    assert sources(target / NAME) == ["a = 1", "a"]
    assert not list(target.glob(".laying-*"))
    workbook.lay(source, target)
    assert sources(target / NAME) == ["a = 2"]


def test_a_kill_before_the_record_is_written_offers_nothing_twice(laid, monkeypatch):
    source, target = laid
    save_as_jupyterlab(target / NAME, edit="a = 'mine'")
    write(source / NAME, notebook("a = 2"))
    record = (target / workbook.LAID).read_bytes()
    workbook.lay(source, target)
    (target / workbook.LAID).write_bytes(record)
    workbook.lay(source, target)
    assert not (target / NEW2).exists()
    assert sources(target / NAME)[0] == "a = 'mine'"


def test_two_starts_at_once_leave_whole_copies(course):
    source, target = course
    for number in range(20):
        write(source / f"{number:02d}_x.ipynb", notebook("a = 1\n" * 1000))
    context = multiprocessing.get_context("spawn")
    starts = [context.Process(target=workbook.lay, args=(source, target)) for _ in range(2)]
    for start in starts:
        start.start()
    for start in starts:
        start.join(30)
    assert [start.exitcode for start in starts] == [0, 0]
    assert all(sources(path) for path in target.glob("*.ipynb"))
    assert len(list(target.glob("*.ipynb"))) == 21
    assert workbook.lay(source, target) == []


def test_a_workbook_that_cannot_be_written_is_one_sentence(course, monkeypatch, capsys):
    source, _ = course
    monkeypatch.setattr(workbook, "ROOT", source.parent)
    monkeypatch.delenv("COURSE_WORKBOOK", raising=False)
    (source.parent / "workbook").write_text("a file where the folder should be")
    assert lab.main([]) == 1
    error = capsys.readouterr().err
    assert error.startswith("The workbook cannot be written (")
    assert error.count("\n") == 1
    assert "set COURSE_WORKBOOK to a folder of your own" in error


def test_a_checkout_that_many_share_keeps_each_reader_s_copies_elsewhere(
    course, tmp_path, monkeypatch, capsys
):
    source, target = course
    monkeypatch.setattr(workbook, "ROOT", source.parent)
    for reader in ("ada", "grace"):
        monkeypatch.setenv("COURSE_WORKBOOK", str(tmp_path / reader / "my workbook"))
        assert workbook.main() == 0
    assert sources(tmp_path / "ada" / "my workbook" / NAME) == ["a = 1", "a"]
    assert (tmp_path / "grace" / "my workbook" / NAME).exists()
    assert not target.exists(), "nothing is written into the checkout"
    assert capsys.readouterr().out == ""


def test_the_folder_of_the_copies_is_the_reader_s_choice_or_lies_in_the_checkout():
    assert workbook.folder({}) == workbook.ROOT / "workbook"
    assert workbook.folder({"COURSE_WORKBOOK": ""}) == workbook.ROOT / "workbook"
    assert workbook.folder({"COURSE_WORKBOOK": "mine"}).is_absolute()


def test_jupyterlab_opens_where_the_copies_are(course, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workbook, "ROOT", course[0].parent)
    monkeypatch.setenv("COURSE_WORKBOOK", str(tmp_path / "mine"))
    monkeypatch.setenv("PYTHONSTARTUP", "")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    started = []
    monkeypatch.setattr(lab.os, "execv", lambda program, command: started.append(command))
    monkeypatch.setattr(lab.subprocess, "call", started.append)
    lab.main(["--no-browser"])
    assert f"--ServerApp.root_dir={tmp_path / 'mine'}" in started[0]


def options(folder, *arguments, is_root=False):
    return lab.lab_command(folder, list(arguments), port=4321, is_root=is_root)


def test_jupyterlab_opens_the_start_or_else_the_first_notebook(tmp_path):
    assert "--LabApp.default_url=/lab" in options(tmp_path)
    write(tmp_path / NAME, notebook("1"))
    assert f"--LabApp.default_url=/lab/tree/{NAME}" in options(tmp_path)
    write(tmp_path / lab.START, notebook("1"))
    write(tmp_path / "00_a.ipynb", notebook("1"))
    assert f"--LabApp.default_url=/lab/tree/{lab.START}" in options(tmp_path)


def test_jupyterlab_listens_on_this_machine_alone_and_keeps_its_token(tmp_path):
    command = options(tmp_path)
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--ip=127.0.0.1" in command
    assert "--port=4321" in command
    assert not [option for option in command if "token" in option or "password" in option]


def test_the_reader_s_own_options_win(tmp_path):
    command = options(tmp_path, "--no-browser", "--ServerApp.port=9000", "--ip", "0.0.0.0")
    assert command[-4:] == ["--no-browser", "--ServerApp.port=9000", "--ip", "0.0.0.0"]
    assert "--port=4321" not in command
    assert "--ip=127.0.0.1" not in command


def test_only_root_in_a_container_is_let_through(tmp_path):
    assert "--allow-root" not in options(tmp_path)
    assert "--allow-root" in options(tmp_path, is_root=True)


def test_two_free_ports_are_ports():
    assert all(1024 <= lab.free_port() < 65536 for _ in range(2))
