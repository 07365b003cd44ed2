"""Name the cell to run first when a cell was run before the one that it builds on.

After a restart the notebook's outputs still stand there and its names are gone. Python then
says that a name is not defined; the reader needs to know which cell makes it.
"""

import ast
import contextlib
import json
import os
from pathlib import Path


def maker_of(name, cells):
    """Find the code cell that makes a name, and the heading above it.

    Parameters
    ----------
    name : str
        A name that a cell uses.
    cells : sequence of dict
        The cells of a notebook, as in its file.

    Returns
    -------
    (str, str) or None
        The first line of code of the cell, and the last heading before it ("" if there is none).

    Examples
    --------
    >>> cells = [{"cell_type": "markdown", "source": "## Setup"},
    ...          {"cell_type": "code", "source": "import torch"}]
    >>> maker_of("torch", cells)
    ('import torch', 'Setup')
    """
    heading = ""
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heads = [line for line in source.splitlines() if line.startswith("#")]
            heading = heads[-1].lstrip("# ") if heads else heading
        elif name in _names_made(source):
            return next(line for line in source.splitlines() if line.strip()), heading
    return None


def _names_made(source):
    """Return the names that a cell binds at its top level."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a shell line of IPython
        return set()
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                found.add(inner.id)
            elif isinstance(inner, ast.alias):
                found.add((inner.asname or inner.name).partition(".")[0])
    return found


def advice(name, notebook):
    """Say which cell to run first for a name that is missing.

    Parameters
    ----------
    name : str
        The missing name.
    notebook : path-like or None
        The notebook that runs, if it is known.

    Returns
    -------
    str
        One sentence, or "" if no cell of the notebook makes the name.

    Examples
    --------
    >>> advice("torch", None)
    ''
    """
    if not notebook:
        return ""
    try:
        cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
        made = maker_of(name, cells)
    except (OSError, ValueError, KeyError):
        return ""
    if made is None:
        return ""
    line, heading = made
    place = f" under “{heading}”" if heading else ""
    return (
        f"`{name}` is made by the cell that begins with `{line}`{place}. Run that cell first, "
        "or choose Run > Run All Above Selected Cell."
    )


def install():
    """Let the kernel add the advice below the error of a missing name; elsewhere do nothing."""
    with contextlib.suppress(ImportError):
        from IPython import get_ipython

        shell = get_ipython()
        if shell is not None:
            shell.set_custom_exc((NameError,), _show)


def _show(shell, kind, error, trace, tb_offset=None):
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    name = getattr(error, "name", None)
    said = advice(name, os.environ.get("JPY_SESSION_NAME")) if name else ""
    if said:
        print(said)
