"""The pages for instructors: what is generated is fresh, what people write is there."""

import os
import re
import runpy
import subprocess

import nbformat
import pytest

from helpers import catalog
from helpers._paths import ROOT
from helpers.exercises import Choice, Number
from tools import classroom, classroom_edition, classroom_plans, reader
from tools.classroom_plans import Fixed, Plan, Take

ENTRIES = {entry.number: entry for entry in catalog.read_entries()}
PAGES = sorted(classroom.PAGES.glob("[0-9][0-9].md"))
WORDS = dict(zip(classroom.CORE, (25, 60, 20, 35), strict=True))  # at least so many


@pytest.fixture(scope="module")
def texts():
    return classroom.fresh_texts()


@pytest.fixture(scope="module")
def notebooks():
    return classroom_plans.read_notebooks()


# The pages


def test_every_notebook_has_a_page_and_every_page_a_notebook():
    assert [page.stem for page in PAGES] == list(ENTRIES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_up_to_date(page, texts):
    assert classroom.read(page) == texts[page], f"run python3 course.py classroom {page.stem}"
    entry = ENTRIES[page.stem]
    assert classroom.read(page).startswith(f"# {entry.number} {entry.title}\n\n{classroom.START}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_a_core_that_somebody_wrote(page):
    core = classroom.core_of(classroom.read(page))
    assert tuple(core) == classroom.CORE
    short = {heading: len(core[heading].split()) for heading in core}
    assert {h: n for h, n in short.items() if n < WORDS[h]} == {}
    assert "to be written" not in classroom.read(page).lower()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_every_prediction_where_it_explains_wrong_guesses(page):
    explained = classroom.core_of(classroom.read(page))["What stands behind the wrong guesses"]
    module = __import__(f"exercises.nb{page.stem}", fromlist=["PREDICTIONS"])
    named = set(re.findall(r"\d\d\.p\d+", explained))
    assert named >= set(module.PREDICTIONS)


def test_an_empty_page_would_be_refused(tmp_path):
    empty = classroom.empty_page(ENTRIES["13"])
    core = classroom.core_of(empty)
    assert tuple(core) == classroom.CORE
    assert not any(core.values())


def test_the_generated_part_shows_every_option_exercise_and_claim():
    text = classroom.generated(ENTRIES["13"])
    assert text.startswith("75 min · CPU, GPU optional · after 11, 12")
    assert "1. Who owns these bytes? (13.p1)" in text
    assert "| 14.0 | array \\* 2 makes a new array" in text
    assert "The stored run measured 7.0." in text
    assert "| 13.2 | detach only | … keeps the storage … |" in text
    assert "| A1-12 | fails |" in text


def test_an_answer_that_machines_differ_in_is_not_printed_as_one():
    text = classroom.generated(ENTRIES["13"])
    question = next(line for line in text.splitlines() if line.startswith("**13.p5**"))
    assert question.endswith("The answer is measured anew on each machine.")


def test_only_what_lies_between_the_markers_is_rewritten(tmp_path):
    page = f"# Title\n\n{classroom.START}\nold\n{classroom.END}\n\n## Main point\nMine.\n"
    fresh = classroom.with_generated(page, "new", tmp_path / "13.md")
    assert fresh == page.replace("old", "new")


@pytest.mark.parametrize("page", ["# Title\n", f"{classroom.END}\n{classroom.START}\n"])
def test_a_page_without_its_markers_is_named(page, tmp_path):
    with pytest.raises(ValueError, match=r"13\.md must hold <!-- generated -->"):
        classroom.with_generated(page, "new", tmp_path / "13.md")


def test_a_missing_page_is_laid_out_and_then_nothing_is_stale(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(classroom, "PAGES", tmp_path)
    monkeypatch.setattr(classroom.fresh_texts, "__defaults__", ((), ROOT / "notebooks", tmp_path))
    assert classroom.main(["--check", "13"]) == 1
    assert capsys.readouterr().out == ("13.md is stale; run: python3 course.py classroom 13\n")
    assert classroom.main(["13"]) == 0
    assert (tmp_path / "13.md").read_text().endswith("## To discuss\n")
    assert classroom.main(["--check", "13"]) == 0


def test_markdown_in_a_text_stays_text():
    assert classroom.plain("w0**2 | a[1] <b>\n`x[0] | y`") == (
        "w0\\*\\*2 \\| a\\[1\\] \\<b\\> `x[0] \\| y`"
    )


def test_a_range_reads_as_whole_numbers_where_things_are_counted():
    counted = Number(question="?", unit="calls", among=9, notes=((0, 6, "few"), (6, 7, "one")))
    ends = ((0, 4096, "small"), (4096, 8192, "fits"), (8192, 1e9, "large"))
    measured = Number(question="?", unit="bytes", notes=ends)
    times = Number(question="?", unit="times", notes=ends)
    assert [row[0] for row in classroom.guesses(counted)] == ["0 to 5 calls", "6 calls"]
    assert [row[0] for row in classroom.guesses(measured)] == [
        "below 4.00 KiB", "4.00 KiB up to 8.00 KiB", "8.00 KiB and more",
    ]  # fmt: skip
    assert classroom.guesses(times)[1] == ("4,096 up to 8,192 times", "fits")
    assert classroom.guesses(Choice(question="?", options={"a": "A", "b": "B"}))[1] == ("b", "B")


# The guide


def test_the_guide_says_first_that_it_holds_answers_and_its_plans_are_fresh(texts):
    guide = classroom.read(classroom.GUIDE)
    assert guide == texts[classroom.GUIDE], "run python3 course.py classroom"
    assert "hold the answers" in guide.partition("##")[0]


def test_commands_that_the_guide_names_are_modules():
    named = set(re.findall(r"course\.py ([a-z-]+)", classroom.read(classroom.GUIDE)))
    assert {"classroom", "shared-server", "wheelhouse", "class", "doctor"} <= named
    files = {"class": "class_table"}
    modules = [files.get(name, name.replace("-", "_")) for name in named]
    assert [name for name in modules if not (ROOT / "tools" / f"{name}.py").exists()] == []


posix_only = pytest.mark.skipif(os.name == "nt", reason="JupyterHub runs on POSIX systems alone")


@posix_only
def test_the_recipe_gives_each_reader_folders_of_their_own(tmp_path):
    """Run the script of the recipe with programs that say what they were given."""
    home, bin_folder = tmp_path / "a home", tmp_path / "env" / "bin"
    for folder in (home, bin_folder):
        folder.mkdir(parents=True)
    for name in ("python", "jupyterhub-singleuser"):
        program = bin_folder / name
        program.write_text(
            '#!/bin/sh\necho "$(basename "$0")|$(pwd)|$*|$COURSE_WORKBOOK|$COURSE_HOME"\n'
        )
        program.chmod(0o755)
    environ = {"HOME": str(home), "COURSE": str(ROOT), "COURSE_VENV": str(bin_folder.parent),
               "PATH": os.environ["PATH"]}  # fmt: skip
    script = str(classroom.PAGES / "jupyterhub" / "start_server.sh")
    said = subprocess.check_output(["sh", script, "--port=1"], env=environ, text=True)
    own = f"{home}/measured-pytorch|{home}/.measured-pytorch"
    assert said.splitlines() == [
        f"python|{ROOT}|-m tools.workbook|{own}",
        f"jupyterhub-singleuser|{home}|--port=1|{own}",
    ]


def test_the_hub_listens_on_this_machine_alone_and_starts_the_recipe_s_script(monkeypatch):
    from traitlets.config import Config

    monkeypatch.setenv("COURSE", str(ROOT))
    monkeypatch.setenv("COURSE_VENV", "/srv/env")
    path = classroom.PAGES / "jupyterhub" / "jupyterhub_config.py"
    c = Config()
    runpy.run_path(str(path), init_globals={"get_config": lambda: c})
    assert c.JupyterHub.bind_url.startswith("http://127.0.0.1:")
    assert c.Spawner.cmd == ["sh", str(path.with_name("start_server.sh"))]
    assert c.Spawner.environment["COURSE_VENV"] == "/srv/env"
    assert "--allow-root" not in c.Spawner.args


# The plans


ALL_PLANS = (*classroom_plans.PLANS, *classroom_plans.SIX_WEEKS)


@pytest.mark.parametrize("plan", ALL_PLANS, ids=lambda plan: plan.name)
def test_a_plan_fits_into_its_hours_and_fills_them(plan, notebooks):
    minutes = classroom_plans.total(plan, notebooks)
    assert minutes <= plan.minutes
    complete = all(part.number in notebooks for part in plan.parts if isinstance(part, Take))
    assert not complete or minutes >= 0.8 * plan.minutes


@pytest.mark.parametrize("plan", ALL_PLANS, ids=lambda plan: plan.name)
def test_nobody_sits_for_more_than_two_hours_without_a_break(plan, notebooks):
    at_work = 0
    for _, what, _, minutes, _ in classroom_plans.rows(plan, notebooks):
        rest = what == "Break" or "lunch" in what
        at_work = 0 if rest else at_work + minutes
        assert at_work <= 120


@pytest.mark.parametrize("plan", ALL_PLANS, ids=lambda plan: plan.name)
def test_a_plan_takes_beats_and_exercises_that_exist(plan, notebooks):
    for part in plan.parts:
        if isinstance(part, Take) and part.number in notebooks:
            notebook = notebooks[part.number]
            assert set(part.beats or ()) <= set(range(1, len(notebook.beats) + 1))
            ids = {f"{part.number}.{number}" for number in part.exercises}
            assert ids <= set(notebook.exercises)


def test_six_weeks_hold_every_notebook_once_and_in_an_order_that_their_facts_allow(notebooks):
    parts = [part for plan in classroom_plans.SIX_WEEKS for part in plan.parts]
    order = [part.number for part in parts if isinstance(part, Take)]
    assert len(order) == len(set(order))
    assert set(notebooks) <= set(order)
    for place, number in enumerate(order):
        if number in notebooks:
            needed = re.findall(r"\b\d\d\b", notebooks[number].entry.after)
            assert set(needed) <= set(order[:place]), number


def test_the_minutes_of_a_part_come_from_facts_exercises_and_predictions(notebooks):
    notebook = notebooks["13"]  # 75 minutes, 20 of them exercises, five beats
    assert notebook.per_beat == 11
    two = Take("13", (1, 2), (3,))
    assert classroom_plans.minutes_of(two, notebook) == (3 + 2 * 11 + 8 + 2 * 2, 2)
    assert classroom_plans.homework(two, notebook) == {"13.1": 4, "13.2": 4, "13.4": 4}


def test_a_plan_names_its_parts_and_leaves_out_what_does_not_exist(notebooks):
    plan = Plan("x", 60, (Take("13", (1, 2, 3, 5), (3,)), Fixed("Break", 9), Take("99")))
    first, second = classroom_plans.rows(plan, notebooks)
    assert first[2] == "beats 1 to 3 and 5; exercise 13.3"
    assert (second[1], second[3]) == ("Break", 9)


def test_a_guide_without_the_markers_of_a_plan_is_refused():
    with pytest.raises(ValueError, match="must hold <!-- plan: two hours -->"):
        classroom_plans.with_plans("# Guide\n")


# The edition


def asks(source, id):
    return ("predict", id) in reader.CALL.findall(source)


@pytest.mark.parametrize("number", ["00", "13"])
def test_the_edition_holds_solutions_sentences_and_the_page(number):
    path = ENTRIES[number].path
    module = __import__(f"exercises.nb{number}", fromlist=["EXERCISES"])
    nb = classroom_edition.edition(path)
    nbformat.validate(nb)
    sources = [cell.source for cell in nb.cells]
    assert sources[0].startswith("**For instructors.**")
    if (classroom.PAGES / f"{number}.md").exists():
        assert "## To discuss" in sources[0]
    for id, exercise in module.EXERCISES.items():
        assert reader.check_cell(id, exercise, exercise.solution) in sources
    for id, asked in module.PREDICTIONS.items():
        below = next(source for source in sources if f"| guess for {id} |" in source)
        assert sources.index(below) > next(n for n, s in enumerate(sources) if asks(s, id))
        assert all(classroom.plain(row[1]) in below for row in classroom.guesses(asked))


def test_a_notebook_without_a_page_says_so_in_its_edition(tmp_path):
    nb = classroom_edition.edition(ENTRIES["13"].path, pages=tmp_path)
    assert "The page of this notebook is not written." in nb.cells[0].source


def test_the_edition_is_written_with_the_programs_and_kept_out_of_git(tmp_path, capsys):
    folder = tmp_path / "edition"
    assert classroom.main(["13", "--edition", str(folder)]) == 0
    nb = nbformat.read(folder / "13_share_memory_with_numpy.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in nb.cells)
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "scripts").is_dir()
    assert capsys.readouterr().out == "13_share_memory_with_numpy.ipynb: written\n"


def test_a_folder_with_anything_else_is_never_written_over(tmp_path, capsys):
    mine = tmp_path / "13_share_memory_with_numpy.ipynb"
    mine.write_text("my own answers")
    assert classroom.main(["13", "--edition", str(tmp_path)]) == 2
    assert "must be a new or empty folder, or hold an earlier edition" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["my own answers"]
    assert classroom.main(["13", "--edition", str(mine)]) == 2
    assert mine.read_text() == "my own answers"


def test_an_earlier_edition_is_written_over(tmp_path, one_cell):
    for source in ("1", "2"):
        one_cell(source)
        assert classroom.main(["00", "--edition", str(tmp_path)]) == 0
    assert nbformat.read(tmp_path / "00_start_here.ipynb", as_version=4).cells[0].source == "2"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--edition", "13"], "numbers come first: classroom 13 --edition"),
        (["13", "--execute"], "--execute runs the notebooks of --edition"),
        (["--check", "--edition"], "choose one"),
        (["99"], "no notebook starts with '99'"),
        (["--check", "99"], "no notebook starts with '99'"),
    ],
)
def test_arguments_that_would_do_something_else_are_refused(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        classroom.main(arguments)
    assert ended.value.code not in (0, None)
    assert says in capsys.readouterr().err + str(ended.value)


@pytest.fixture
def one_cell(monkeypatch):
    """Make the edition of a notebook one cell with the given source."""

    def put(source):
        def edition(path):
            nb = nbformat.read(path, as_version=4)
            nb.cells = [nbformat.v4.new_code_cell(source)]
            return nb

        monkeypatch.setattr(classroom_edition, "edition", edition)

    return put


def test_the_edition_is_executed_when_asked(tmp_path, one_cell, capsys):
    one_cell("6 * 7")
    assert classroom.main(["00", "--edition", str(tmp_path), "--execute"]) == 0
    nb = nbformat.read(tmp_path / "00_start_here.ipynb", as_version=4)
    assert nb.cells[0].outputs[0].data["text/plain"] == "42"


def test_a_cell_that_fails_is_named_and_the_notebook_is_written_all_the_same(
    tmp_path, one_cell, capsys
):
    one_cell("1 / 0")
    assert classroom_edition.write(tmp_path, ["00"], run=True) == 1
    assert "a cell failed: ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert (tmp_path / "00_start_here.ipynb").exists()
