"""Write the instructor's edition: every notebook with its solutions and the course's answers."""

import importlib
import sys

import nbformat

from helpers._paths import ROOT
from tools import caller, classroom, notebooks, reader

FOLDER = ROOT / "instructor-edition"
MARK = ".measured-pytorch-edition"  # a folder with this file in it may be written over
_LABEL = "**For instructors.** "


def write(folder, names=(), *, run=False):
    """Write the edition of the named notebooks; return 1 when one could not be executed.

    The folder gets a .gitignore of its own: solutions must not reach a repository by mistake. One
    that holds anything else than an earlier edition is refused: a reader's answers stay.
    """
    folder = caller.path(folder)
    try:
        prepare(folder)
    except OSError as error:
        print(f"{folder}: {error.strerror or error}", file=sys.stderr)
        return 2
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    copy_programs(notebooks.NOTEBOOKS, folder)
    return max([_write_one(path, folder, run) for path in notebooks.find(names)], default=0)


def prepare(folder):
    """Make the folder of an edition, or see that it is one.

    Raises
    ------
    OSError
        If it cannot be made, or holds anything else.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise FileExistsError("it must be a new or empty folder, or hold an earlier edition")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("course.py classroom made this folder and may write it over.\n")


def _write_one(path, folder, run):
    """Write one notebook of the edition, executed if asked for; return 1 if a cell failed."""
    from nbclient.exceptions import CellControlSignal

    nb, failed = edition(path), ""
    if run:
        from tools.kernel import execute

        try:
            execute(nb, folder)
        except CellControlSignal as error:
            failed = f"{getattr(error, 'ename', 'stopped')}: {getattr(error, 'evalue', error)}"
    text = notebooks.to_text(notebooks.canonical(nb))
    (folder / path.name).write_text(text, encoding="utf-8", newline="\n")
    if failed:
        print(f"{path.name}: written, but a cell failed: {failed}", file=sys.stderr)
        return 1
    print(f"{path.name}: written")
    return 0


def copy_programs(source, folder):
    """Copy the programs that the notebooks start."""
    from tools import workbook

    for copy in workbook.course_files(source):
        if not copy.name.endswith(".ipynb"):
            workbook.write_atomically(folder / copy.name, copy.content)


def edition(path, pages=None):
    """Return a notebook with solutions, the options' sentences and the core of its page.

    Parameters
    ----------
    path : pathlib.Path
        A notebook of the course.
    pages : pathlib.Path, optional
        Where its page lies; the course's ``classroom/`` by default.

    Returns
    -------
    nbformat.NotebookNode
        Without outputs.
    """
    module = importlib.import_module(f"exercises.nb{path.stem[:2]}")
    nb = nbformat.read(path, as_version=4)
    nb = reader.with_solutions(nb, module.EXERCISES)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
            cell.metadata.get("jupyter", {}).pop("outputs_hidden", None)
    nb.cells = [_page_cell(path, pages or classroom.PAGES), *_with_sentences(nb.cells, module)]
    return nb


def _page_cell(path, pages):
    text = classroom.read(pages / f"{path.stem[:2]}.md")
    core = text.partition(classroom.END)[2].strip() or "The page of this notebook is not written."
    return _note("instructor-page", f"{_LABEL}Solutions are filled in below.\n\n{core}")


def _with_sentences(cells, module):
    """Yield the cells, each prediction followed by what the course answers to each guess."""
    for cell in cells:
        yield cell
        if cell.cell_type != "code":
            continue
        for name, id in reader.CALL.findall(cell.source):
            if name == "predict":
                rows = classroom.guesses(module.PREDICTIONS[id])
                table = classroom.table((f"guess for {id}", "what the course answers"), rows)
                yield _note(f"instructor-{id.replace('.', '-')}", f"{_LABEL}\n\n{table}")


def _note(id, source):
    cell = nbformat.v4.new_markdown_cell(source)
    cell.id = id
    return cell
