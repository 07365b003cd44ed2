"""The README's table, the skeleton of a new notebook, and the files a visitor looks for."""

import importlib
import re
import shutil

import nbformat
import pytest
import yaml

from helpers import __version__, catalog
from helpers._paths import ROOT
from tools import lint_notebooks, new, readme
from tools.kernel import execute
from tools.notebooks import canonical, is_canonical, to_text

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_notebooks_is_what_the_notebooks_say():
    assert readme.with_tables(README) == README, "run python3 course.py notebooks"


def test_the_figure_is_the_one_that_the_notebook_drew():
    assert readme.FIGURE.read_bytes() == readme.figure(), "run python3 course.py notebooks"
    assert f"]({readme.FIGURE.relative_to(ROOT).as_posix()})" in README


def test_a_notebook_without_the_figure_is_named(tmp_path):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    nbformat.write(nb, tmp_path / "13_share_memory_with_numpy.ipynb")
    with pytest.raises(ValueError, match="must hold a figure whose message"):
        readme.figure(tmp_path)


def test_a_path_adds_up_the_minutes_of_its_notebooks(tmp_path):
    for number, minutes in (("11", 30), ("12", 45), ("21", 60)):
        text = f"# Title\n\nPromise.\n\n{minutes} min · CPU · after nothing"
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
        nbformat.write(nb, tmp_path / f"{number}_title.ipynb")
    rows = {row[0]: row[2:] for row in catalog.paths_by_time(tmp_path).rows}
    assert rows["Two hours"] == ("11, 12", "1.2 h")
    assert rows["Weeks"] == ("11, 12, 21", "2.2 h")


def test_a_path_needs_only_what_it_holds_before_or_says_that_you_know():
    needs = {entry.number: re.findall(r"\b\d\d\b", entry.after) for entry in catalog.read_entries()}

    def with_all_before(numbers):
        return {n for number in numbers for n in (number, *with_all_before(needs[number]))}

    for _, purpose, notebooks, _ in catalog.paths_by_time().rows:
        stated = re.sub(r"(\d\d) to (\d\d)", lambda m: " ".join(
            map(str, range(int(m[1]), int(m[2]) + 1))), purpose)  # fmt: skip
        known = {"00"} | with_all_before(re.findall(r"\b\d\d\b", stated))
        for number in notebooks.split(", "):
            assert set(needs[number]) <= known, (purpose, number)
            known.add(number)


def test_a_readme_without_markers_is_refused():
    with pytest.raises(ValueError, match="README.md must hold"):
        readme.with_tables("# Course\n")


def test_a_notebook_without_facts_is_named(tmp_path):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title\n\nPromise.")])
    nbformat.write(nb, tmp_path / "46_title.ipynb")
    with pytest.raises(ValueError, match="46_title.ipynb must begin with"):
        readme.table(tmp_path)


def test_the_readme_has_the_length_of_a_good_one():
    own = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", README, flags=re.DOTALL)
    assert 250 <= len(own.split()) <= 600


def test_links_of_the_texts_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
            assert (ROOT / target).exists(), f"{name}: {target}"


@pytest.mark.parametrize(
    "name", ["46", "verb the object", "96 verb the object", "46 verb", "4 verb the object", ""]
)
def test_a_name_that_does_not_fit_is_refused_with_an_example(name):
    with pytest.raises(ValueError, match='such as "46 verb the object"'):
        new.read_name(name)


@pytest.fixture
def course(tmp_path):
    for name in ("notebooks", "exercises"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_number_that_is_taken_is_refused(course):
    new.lay_out("46 verb the object", course)
    with pytest.raises(FileExistsError, match="46 is taken by 46_verb_the_object.ipynb"):
        new.lay_out("46 do another thing", course)


def test_a_new_notebook_runs_and_passes_every_lint(course):
    notebook, module = new.lay_out("46 verb the object", course)
    assert is_canonical(notebook)
    nb = nbformat.read(notebook, as_version=4)
    use = f"import importlib.util\nspec = importlib.util.spec_from_file_location('nb46', {str(module)!r})"
    use += "\nnb46 = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(nb46)"
    use += "\nfrom helpers import exercises\nexercises.use(nb46)"
    nb.cells.insert(0, nbformat.v4.new_code_cell(use))
    execute(nb, course)
    del nb.cells[0]
    for number, cell in enumerate((c for c in nb.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = number
    notebook.write_text(to_text(canonical(nb)), encoding="utf-8")
    assert lint_notebooks.lint(notebook) == []
    assert "13" in readme.row(notebook) or "46 Verb the object" in readme.row(notebook)


def test_the_command_says_what_it_made(course, monkeypatch, capsys):
    monkeypatch.setattr(new, "lay_out", lambda words: (course / "46_a_b.ipynb", course / "nb46.py"))
    assert new.main(["46", "a", "b"]) == 0
    assert "python3 course.py notebooks 46" in capsys.readouterr().out


def test_the_command_refuses_with_one_sentence(capsys):
    assert new.main(["nonsense"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_citation_has_the_version_of_the_course():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert citation["license"] == ["Apache-2.0", "CC-BY-4.0"]


def test_the_changelog_names_the_version():
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_every_file_of_the_forge_can_be_read(path):
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_workflows_call_commands_that_exist():
    import course as program

    text = "".join(p.read_text() for p in (ROOT / ".github" / "workflows").glob("*.yml"))
    called = set(re.findall(r"course\.py ([a-z-]+)", text))
    assert called
    assert called <= set(program.COMMANDS)


def test_contributing_has_eight_steps():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^(\d)\. ", text, flags=re.MULTILINE) == list("12345678")


def test_a_copied_checkout_without_git_still_knows_its_table(tmp_path):
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    assert readme.table(tmp_path / "notebooks") in README


@pytest.mark.parametrize("entry", catalog.read_entries(), ids=lambda entry: entry.path.stem)
def test_the_stated_minutes_leave_room_for_reading_guessing_and_the_exercises(entry):
    """200 words a minute is how adults read prose about code; a guess needs a moment's thought."""
    module = importlib.import_module(f"exercises.nb{entry.number}")
    cells = nbformat.read(entry.path, 4).cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    exercises = sum(exercise.minutes for exercise in module.EXERCISES.values())
    guesses = 1 if entry.number == "00" else 2  # six of those of 00 are asked in three minutes
    needed = exercises + words / 200 + guesses * len(module.PREDICTIONS)
    assert 0.9 * needed <= entry.minutes <= 2 * needed, f"{entry.number} needs {needed:.0f} min"
