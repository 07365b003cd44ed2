"""Find what Colab's older torch, NumPy and ipywidgets do not have.

    python -m tools.lint_newer              the whole course
    python -m tools.lint_newer FILE ...

The names and keyword parameters in question stand in newer_than_colab.json, which
tools/public_names.py made from two environments. A use is no finding when it is guarded:

- in a ``try`` that catches what its absence raises;
- in a function, or a cell, that asks ``hasattr`` or ``getattr`` for it, looks for the keyword
  in a signature, or compares a version.

Names are followed through imports and scopes, into programs that stand in strings and into
the examples of docstrings. Of an object whose class the source does not show, the attributes
that Tensor, Module, Optimizer and ndarray gained are findings under any name.
"""

import argparse
import ast
import doctest
import json
import operator
import sys
from pathlib import Path

import nbformat

from tools.lint_devices import course_files

DATA = json.loads(Path(__file__).with_name("newer_than_colab.json").read_text(encoding="utf-8"))
NAMES = frozenset(DATA["names"])
KEYWORDS = {name: frozenset(words) for name, words in DATA["keywords"].items()}
OBJECTS = ("torch.Tensor.", "torch.nn.Module.", "torch.optim.Optimizer.", "numpy.ndarray.")
ATTRIBUTES = {name.rpartition(".")[2]: name for name in NAMES if name.startswith(OBJECTS)}
CATCHES = {"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError", "Exception"}
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
NO_GUARDS = (frozenset(), False)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


# What a name stands for -----------------------------------------------------------------


class Scope:
    """Know which names of a module or a function stand for something imported."""

    def __init__(self, nodes, parent=None, taken=()):
        """Collect what `nodes` bind; a name that is also bound otherwise stands for nothing."""
        self.parent, self.bound = parent, dict.fromkeys(taken)
        for node in _inside(nodes):
            for name, dotted in _bindings(node):
                known = self.bound.get(name, dotted)
                self.bound[name] = dotted if dotted == known else None

    def find(self, name):
        """Return the dotted name that a name stands for, or None."""
        if name in self.bound:
            return self.bound[name]
        return self.parent.find(name) if self.parent else None

    def resolve(self, node):
        """Spell out ``a.b.c`` from what is imported; None for anything else."""
        if isinstance(node, ast.Name):
            return self.find(node.id)
        if isinstance(node, ast.Attribute):
            left = self.resolve(node.value)
            return f"{left}.{node.attr}" if left else None
        return None


def _inside(nodes):
    """Yield all nodes of a scope, without what lies in the functions and classes in it."""
    for node in nodes:
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield from _inside(ast.iter_child_nodes(node))


def _bindings(node):
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            home = None if node.level else node.module
            yield alias.asname or alias.name, home and f"{home}.{alias.name}"
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, None
    elif isinstance(node, NAMED) and node.name:
        yield node.name, None


# Guards -----------------------------------------------------------------------------------


def _guards(nodes):
    """Return the words that a function asks for before it uses them, and if it asks a version."""
    words, asks_version = set(), False
    for node in _inside(nodes):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asked = {"hasattr": 2, "getattr": 3}.get(node.func.id)
            if asked == len(node.args) and isinstance(node.args[1], ast.Constant):
                words.add(node.args[1].value)
        elif isinstance(node, ast.Compare):
            words |= {_text(node.left)} if isinstance(node.ops[0], ast.In | ast.NotIn) else set()
            asks_version = asks_version or any(map(_is_version, ast.walk(node)))
    return words, asks_version


def _text(node):
    return node.value if isinstance(node, ast.Constant) else None


def _is_version(node):
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in ("__version__", "TorchVersion") or (
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith("metadata.version")
    )


def _caught(handlers):
    """Tell whether one of these handlers meets a name that is not there."""
    for handler in handlers:
        named = ast.walk(handler.type) if handler.type else ()
        if handler.type is None or any(getattr(n, "id", "") in CATCHES for n in named):
            return True
    return False


# Reading ------------------------------------------------------------------------------------


class Reader(ast.NodeVisitor):
    """Collect (line, what) for each unguarded use in one function, module or cell."""

    def __init__(self, nodes, scope, guards=NO_GUARDS, tries=0, is_function=False):
        """Read `nodes`, of which `scope` knows the names, under the guards around them."""
        self.scope, self.found, self.tries, self.is_function = scope, [], tries, is_function
        self.words, self.asks_version = map(operator.or_, _guards(nodes), guards)
        for node in nodes:
            self.visit(node)

    def _report(self, node, what, word):
        if not (self.tries or self.asks_version or word in self.words):
            self.found.append((getattr(node, "lineno", 1), what))

    def _check_name(self, node, dotted):
        parts = dotted.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if name in NAMES:
                self._report(node, name, parts[end - 1])
                return

    def visit_Name(self, node):
        if dotted := self.scope.find(node.id):
            self._check_name(node, dotted)

    def visit_Attribute(self, node):
        if dotted := self.scope.resolve(node):
            self._check_name(node, dotted)
            return
        if node.attr in ATTRIBUTES and isinstance(node.ctx, ast.Load):
            self._report(node, ATTRIBUTES[node.attr], node.attr)
        self.visit(node.value)

    def visit_ImportFrom(self, node):
        for alias in node.names if node.module and not node.level else ():
            self._check_name(node, f"{node.module}.{alias.name}")

    def visit_Import(self, node):
        for alias in node.names:
            self._check_name(node, alias.name)

    def visit_Call(self, node):
        called = self.scope.resolve(node.func)
        if called == "functools.partial" and node.args:
            called = self.scope.resolve(node.args[0])
        for keyword in node.keywords:
            if keyword.arg in KEYWORDS.get(called, ()):
                self._report(node, f"{keyword.arg}= of {called}", keyword.arg)
        self.generic_visit(node)

    def visit_Try(self, node):
        caught = _caught(node.handlers)
        self.tries += caught
        for part in node.body:
            self.visit(part)
        self.tries -= caught
        for part in [*node.handlers, *node.orelse, *node.finalbody]:
            self.visit(part)

    def _visit_function(self, node):
        for outer in [*getattr(node, "decorator_list", []), *node.args.defaults]:
            self.visit(outer)
        for outer in filter(None, node.args.kw_defaults):
            self.visit(outer)
        body = node.body if isinstance(node.body, list) else [node.body]
        taken = [argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)]
        # A lambda is mostly called where it stands, a function mostly elsewhere.
        tries = self.tries if isinstance(node, ast.Lambda) else 0
        guards = (self.words, self.asks_version) if self.is_function else NO_GUARDS
        scope = Scope(body, self.scope, taken)
        self.found += Reader(body, scope, guards, tries, is_function=True).found

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function  # noqa: N815

    def visit_Constant(self, node):
        for source in _programs(node.value):
            first = node.lineno
            self.found += [(first, what) for _, what in _read(source, self.scope)]


def _programs(value):
    """Return what a string holds as Python: a program of several lines, or a docstring's examples."""
    if not isinstance(value, str) or "\n" not in value:
        return []
    if ">>> " in value:
        try:
            examples = doctest.DocTestParser().get_examples(value)
        except ValueError:
            return []
        return ["".join(example.source for example in examples)]
    return [value]


def _read(source, scope=None):
    try:
        nodes = ast.parse(source).body
    except (SyntaxError, ValueError):  # prose, or a cell that shows an error on purpose
        return []
    return Reader(nodes, Scope(nodes, scope)).found


def _cells(path):
    from tools.lint_notebooks import _python

    for number, cell in enumerate(nbformat.read(path, as_version=4).cells, 1):
        if cell.cell_type == "code":
            try:
                yield number, ast.parse(_python(cell.source)).body
            except SyntaxError:
                continue


def findings(path):
    """Return a sentence for each unguarded use in a Python file or a notebook."""
    path = Path(path)
    if path.suffix == ".ipynb":
        cells = list(_cells(path))
        scope = Scope([node for _, nodes in cells for node in nodes])
        found = [
            (f"cell {n}", what) for n, nodes in cells for _, what in Reader(nodes, scope).found
        ]
    else:
        found = [(f"line {n}", what) for n, what in _read(path.read_text(encoding="utf-8"))]
    return [f"{path.name}, {where}: {_sentence(what)}" for where, what in dict.fromkeys(found)]


def _sentence(what):
    library = what.rpartition(" ")[2].partition(".")[0]
    return (
        f"{what} is newer than {library} {DATA['older'][library]}, which Colab has; ask hasattr "
        "or the version first, and say what happens without it"
    )


def main(argv=None):
    """Print each finding; return 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m tools.lint_newer")
    parser.add_argument("paths", nargs="*", type=Path, help="files; the whole course by default")
    options = parser.parse_args(argv)
    found = [each for path in options.paths or course_files() for each in findings(path)]
    for sentence in found:
        print(sentence)
    older = ", ".join(f"{library} {version}" for library, version in DATA["older"].items())
    print(f"{len(found)} findings" if found else f"everything unguarded is in {older}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
