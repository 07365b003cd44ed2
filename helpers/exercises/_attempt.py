"""Tell whether a reader has begun and finished an answer, before any of it runs."""

import ast
import inspect
import linecache

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


def look_at(answer, exercise):
    """Return the state of an answer and, unless it can be tested, a sentence.

    Returns
    -------
    (str, str)
        ``"not attempted"``, ``"unfinished"``, ``"wrong"`` (a dictionary with other keys) or
        ``"attempted"``, which means that the test decides.
    """
    if answer is ...:
        return "not attempted", ""
    if isinstance(answer, dict | list | tuple) and not _about_kind(answer, exercise):
        return _look_at_container(answer, exercise)
    mismatch = _about_kind(answer, exercise)
    if mismatch:
        return "wrong", mismatch
    node = definition(answer)
    stub = node and _named(ast.parse(exercise.stub), node.name)
    if stub is None:
        return "attempted", ""
    if _shape(stub) == _shape(node):
        return "not attempted", ""
    if _holes(node):
        return "unfinished", f"`...` is still on line {_holes(node)[0]} of your cell."
    return "attempted", ""


def definition(obj):
    """Return the syntax tree of the function or class in its cell, or None if it has none.

    ``inspect.getsource`` fails for classes in a kernel. Every cell lies in ``linecache``, also
    where no history is kept.
    """
    obj = _unwrapped(obj)
    name = getattr(obj, "__name__", None)
    for code in _codes(obj):
        node = _named(_parse(code.co_filename), name, first=_first_line(obj))
        if node is not None:
            return node
    if isinstance(obj, type) and obj.__module__ == "__main__":  # a class without any method
        found = (_named(_parse(file), name) for file in reversed(list(linecache.cache)))
        return next((node for node in found if node is not None), None)
    return None


def cell_of(obj):
    """Return the name under which ``linecache`` holds the cell of a function or class."""
    return next((code.co_filename for code in _codes(_unwrapped(obj))), None)


def globals_of(obj):
    """Return the namespaces in which the code of a function or class looks up its names."""
    obj = _unwrapped(obj)
    functions = [obj] if hasattr(obj, "__globals__") else _methods(obj)
    return [function.__globals__ for function in functions[:1]]


def _about_kind(answer, exercise):
    """Return what to hand in instead when the stub holds another kind of thing, or an empty text."""
    kind = _stub_kind(exercise)
    got = type(answer).__name__
    if kind == "dict" and not isinstance(answer, dict):
        return (
            f"Expected a dict with the keys of the stub, got {got}. "
            f"Fill in its values and pass `{exercise.answer}`."
        )
    if kind == "function" and not callable(answer):
        return (
            f"Expected the function `{exercise.answer}`, got {got}. Pass the function itself, "
            "without calling it."
        )
    if kind == "class" and not callable(answer):
        return f"Expected the class `{exercise.answer}`, got {got}. Pass the class itself."
    return ""


def _stub_kind(exercise):
    """Return what the stub binds to the answer's name: a function, a class, a dict or another."""
    for node in ast.parse(exercise.stub).body:
        if isinstance(node, _DEFINITIONS) and node.name == exercise.answer:
            return "class" if isinstance(node, ast.ClassDef) else "function"
    return "dict" if _stub_keys(exercise) else "other"


def _look_at_container(answer, exercise):
    values = list(answer.values()) if isinstance(answer, dict) else list(answer)
    keys = _stub_keys(exercise)
    if isinstance(answer, dict) and keys and set(answer) != set(keys):
        return "wrong", _about_keys(answer, keys)
    open_places = [value is ... for value in values]
    if values and all(open_places):
        return "not attempted", ""
    if any(open_places):
        return "unfinished", f"`...` is still in {sum(open_places)} of {len(values)} places."
    return "attempted", ""


def _stub_keys(exercise):
    for node in ast.walk(ast.parse(exercise.stub)):
        named = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == exercise.answer for target in node.targets
        )
        if named and isinstance(node.value, ast.Dict):
            return [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
    return []


def _about_keys(answer, keys):
    missing = [repr(key) for key in keys if key not in answer]
    unknown = sorted(repr(key)[:60] for key in answer if key not in keys)
    parts = [f"{', '.join(missing)} is missing"] if missing else []
    parts += [f"{', '.join(unknown)} was not asked for"] if unknown else []
    return f"The keys differ from those of the exercise: {' and '.join(parts)}."


def _unwrapped(obj):
    obj = getattr(obj, "__func__", obj)
    try:
        return inspect.unwrap(obj) if hasattr(obj, "__wrapped__") else obj
    except ValueError:  # wrapped in a circle
        return obj


def _codes(obj):
    if isinstance(obj, type):
        return [function.__code__ for function in _methods(obj)]
    code = getattr(obj, "__code__", None)
    return [code] if inspect.iscode(code) else []


def _methods(cls):
    if not isinstance(cls, type):
        return []
    members = (getattr(member, "__func__", member) for member in vars(cls).values())
    members = (getattr(member, "fget", None) or member for member in members)
    members = (_unwrapped(member) for member in members)
    return [
        member
        for member in members
        if inspect.isfunction(member)
        and member.__qualname__.startswith(f"{cls.__qualname__}.")
        and member.__code__.co_filename != "<string>"  # written by dataclasses, not by the reader
    ]


def _first_line(obj):
    code = getattr(obj, "__code__", None)
    return code.co_firstlineno if inspect.iscode(code) else None


def _parse(file):
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


def _named(tree, name, *, first=None):
    nodes = [
        node for node in ast.walk(tree) if isinstance(node, _DEFINITIONS) and node.name == name
    ]
    exact = [node for node in nodes if _start(node) == first]
    return (exact or nodes or [None])[-1]


def _start(node):
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _shape(node):
    """Return a text that changes with the code, not with comments, spaces or docstrings."""
    docstrings = [
        id(inner.body[0])
        for inner in ast.walk(node)
        if isinstance(inner, _DEFINITIONS) and ast.get_docstring(inner, clean=False) is not None
    ]
    for inner in ast.walk(node):
        if isinstance(inner, _DEFINITIONS):
            inner.body = [line for line in inner.body if id(line) not in docstrings]
    return ast.dump(node)


def _holes(node):
    values = (inner.value for inner in ast.walk(node) if isinstance(inner, _STATEMENTS))
    return sorted(
        value.lineno for value in values if isinstance(value, ast.Constant) and value.value is ...
    )
