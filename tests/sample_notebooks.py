"""Build small notebooks for the tests of the tools that run and check notebooks."""

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.notebooks import METADATA


def text(source):
    return new_markdown_cell(source)


def stream(words, name="stdout"):
    return new_output("stream", name=name, text=words)


def result(plain, **more):
    return new_output("execute_result", data={"text/plain": plain} | more, execution_count=1)


def error(name, value):
    return new_output("error", ename=name, evalue=value, traceback=[f"{name}: {value}"])


def code(source, *outputs, tags=(), count=True):
    """Make a code cell; its execution count is set by `notebook`, unless count is False."""
    cell = new_code_cell(
        source, outputs=list(outputs), metadata={"tags": list(tags)} if tags else {}
    )
    cell.execution_count = 1 if count else None
    return cell


def notebook(*cells):
    """Number the code cells in order and give each cell an id that says its place."""
    cells = [text(cell) if isinstance(cell, str) else cell for cell in cells]
    counted = 0
    for place, cell in enumerate(cells, 1):
        cell.id = f"cell-{place:02}"
        if cell.cell_type == "code" and cell.execution_count is not None:
            counted += 1
            cell.execution_count = counted
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = counted
    return new_notebook(cells=cells, metadata=nbformat.from_dict(METADATA))


def write(path, nb):
    """Write a notebook in the committed form, whatever its content."""
    path.write_text(nbformat.writes(nb).rstrip("\n") + "\n", encoding="utf-8")
    return path
