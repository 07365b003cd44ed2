"""Falsify what the course measures and checks, and see whether anything notices.

A test that cannot fail proves nothing. So this command breaks things on purpose: it deletes
each refusal of each exercise's test, makes each test pass always, and falsifies the times and
byte counts that notebooks assert on. Whatever nobody notices is named.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import json
import pkgutil
import re
import sys
from dataclasses import replace
from pathlib import Path

import nbformat

from helpers.exercises._selftest import judge_source
from tools import notebooks as tool
from tools.kernel import execute

IGNORED = "nbval-ignore-output"
_SOURCES = re.compile(r"\btiming\.(benchmark|compare)\b|\btrack_memory\(")

# Each falsifies times or bytes in its own way: an assert of a ratio survives some of them.
_FALSIFIED = {
    "times scaled by 10": "_t = [s * 10 if _n % 2 else s for s in _t]",
    "times swapped": "_t = [1e-8 / s for s in _t]",
    "times equal": "_t = [0.1] * len(_t)",
    "bytes scaled by 10": "_factor = 10",
}
_PRELUDE = """
import itertools as _itertools
from helpers import _memory_peak as _mp, timing as _timing
_failed, _count, _reads = [], _itertools.count(), _itertools.count(1)
_as_measurements = _timing._as_measurements
def _falsify(_t, _n):
    {times}
    return _t
def _falsified(times, numbers, threads):
    for name, t in times.items():
        per_call = [s / numbers[name] for s in t]  # a block holds many calls
        times[name] = [s * numbers[name] for s in _falsify(per_call, next(_count))]
    return _as_measurements(times, numbers, threads)
_timing._as_measurements = _falsified
{bytes}
_total = _mp.MemoryPeak.total.fget
_mp.MemoryPeak.total = property(lambda self: _total(self) * (_factor if next(_reads) % 2 else 1))
"""


# --- exercises --------------------------------------------------------------------------


def raises_wrong(node):
    """Tell whether a statement is ``raise Wrong(...)``."""
    call = getattr(node, "exc", None)
    return (
        isinstance(node, ast.Raise)
        and isinstance(call, ast.Call)
        and getattr(call.func, "id", None) == "Wrong"
    )


class _Without(ast.NodeTransformer):
    """Put ``pass`` in the place of the refusal that begins on one line."""

    def __init__(self, line):
        self.line = line

    def visit_Raise(self, node):
        same = node.lineno == self.line and raises_wrong(node)
        return ast.copy_location(ast.Pass(), node) if same else node


def _exercises_of(source, file):
    """Return the exercises of a module's source, run under a file name of its own."""
    namespace = {"__name__": Path(file).stem, "__file__": file}
    exec(compile(source, file, "exec"), namespace)  # noqa: S102 - the course's own module
    return namespace["EXERCISES"]


def unnoticed_in_exercises(text, file="exercises/nb.py"):
    """Return what can be broken in a module of exercises without a stored answer noticing.

    Parameters
    ----------
    text : str
        Source of the module.
    file : str
        Name to report.

    Returns
    -------
    list of str
        One sentence for each survivor.
    """
    tree = ast.parse(text)
    found = []
    original = _exercises_of(text, file)
    for id, exercise in original.items():
        passing = replace(exercise, test=lambda answer, call: None)
        if not any(
            judge_source(id, wrong.source, passing).status == "passed" for wrong in exercise.wrong
        ):
            found.append(f"{id}: a test that always passes goes unnoticed")
    refusals = [node.lineno for node in ast.walk(tree) if raises_wrong(node)]
    for line in refusals:
        mutant = ast.fix_missing_locations(_Without(line).visit(ast.parse(text)))
        if not _noticed(original, _exercises_of(mutant, file)):
            said = " ".join(text.splitlines()[line - 1].split())
            found.append(f"{Path(file).name}, line {line}: no stored answer needs `{said[:60]}`")
    return found


def _noticed(original, mutated):
    """Tell whether a stored wrong answer no longer gets its sentence."""
    for id, exercise in mutated.items():
        for wrong in original[id].wrong:
            with contextlib.suppress(Exception):
                if wrong.says in judge_source(id, wrong.source, exercise).sentence:
                    continue
            return True
    return False


# --- notebooks --------------------------------------------------------------------------


def measuring(nb):
    """Return the indices of cells with ignored outputs that depend on a measurement.

    A name depends on one if the statement that binds it calls `timing` or `track_memory`, or
    reads another such name.
    """
    tainted, found = set(), []
    for index, cell in enumerate(nb.cells):
        tree = _parse(cell)
        if tree is None:
            continue
        depends = False
        for statement in tree.body:
            names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
            if _SOURCES.search(ast.unparse(statement)) or read & tainted:
                depends = True
                if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    tainted.add(statement.name)  # what it binds inside stays inside
                else:
                    tainted |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        if depends and IGNORED in cell.metadata.get("tags", ()):
            found.append(index)
    return found


def _parse(cell):
    if cell.cell_type != "code":
        return None
    with contextlib.suppress(SyntaxError):
        return ast.parse(cell.source)
    return None


class _Noting(ast.NodeTransformer):
    """Let an assert note its cell instead of ending it, so that later cells still run."""

    def __init__(self, index):
        self.index = index

    def visit_Assert(self, node):
        noting = ast.parse(f"None if True else _failed.append({self.index})").body[0]
        noting.value.test = node.test
        return ast.copy_location(noting, node)


def falsified(nb, how):
    """Return a copy of a notebook whose measurements are falsified and whose asserts only note."""
    nb = copy.deepcopy(nb)
    times = _FALSIFIED[how] if how.startswith("times") else "pass"
    scale = _FALSIFIED[how] if how.startswith("bytes") else "_factor = 1"
    for index, cell in enumerate(nb.cells):
        tree = _parse(cell)
        if tree is not None:
            tree = ast.fix_missing_locations(_Noting(index).visit(tree))
            cell.source = ast.unparse(tree)
    prelude = _PRELUDE.format(times=times, bytes=scale)
    nb.cells.insert(0, nbformat.v4.new_code_cell(prelude))
    nb.cells.append(nbformat.v4.new_code_cell("print(sorted(set(_failed)))"))
    return nb


def unnoticed_in_notebook(path):
    """Return the measuring cells of a notebook in which no assert notices a false measurement."""
    nb = nbformat.read(path, as_version=4)
    wanted, noticed = measuring(nb), set()
    for how in _FALSIFIED if wanted else ():
        mutant = falsified(nb, how)
        for cell in mutant.cells:
            cell.metadata["tags"] = [*cell.metadata.get("tags", ()), "raises-exception"]
        execute(mutant, path.parent)
        noticed |= set(json.loads(mutant.cells[-1].outputs[0].text))
    return [
        f"{path.stem}, cell {index}: no assert notices false measurements"
        for index in wanted
        if index not in noticed
    ]


def main(argv=None):
    """Report what goes unnoticed; return 1 if anything does."""
    parser = argparse.ArgumentParser(prog="course.py check --mutate")
    parser.add_argument("names", nargs="*", help="numbers of notebooks, such as 13")
    parser.add_argument("--exercises-only", action="store_true", help="leave the notebooks out")
    options = parser.parse_args(argv)
    import exercises

    found = []
    for module in pkgutil.iter_modules(exercises.__path__):
        if module.name.startswith(tuple(f"nb{name}" for name in options.names) or "nb"):
            path = Path(importlib.import_module(f"exercises.{module.name}").__file__)
            found += unnoticed_in_exercises(path.read_text(encoding="utf-8"), str(path))
    if not options.exercises_only:
        for path in tool.find(options.names):
            found += unnoticed_in_notebook(path)
    for line in found:
        print(line)
    print(f"{len(found)} of the changes went unnoticed" if found else "every change was noticed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
