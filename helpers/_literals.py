"""Tell measured arguments from typed ones, by reading the source of a call.

A claim recorded with a number that somebody typed would agree with the ledger on every machine.
"""

import ast
import linecache
import re
from collections.abc import Iterator
from itertools import islice
from types import FrameType

_CLAIM_ID = re.compile(r"A\d-\d\d")
# These turn a literal into the same literal, so they do not make it a measurement.
_NUMBER_MAKERS = {"abs", "bool", "float", "int", "max", "min", "round", "str", "sum"}


def literal_arguments(source: str) -> list[str]:
    """List the arguments of ``record`` calls that are typed instead of measured.

    Parameters
    ----------
    source : str
        Python source or a notebook cell; lines that start with ``%`` or ``!`` are ignored.

    Returns
    -------
    list of str
        One entry for each such argument: line, claim, name and text.

    Raises
    ------
    SyntaxError
        If the source is not Python.

    Examples
    --------
    >>> literal_arguments('claims.record("A1-56", ratio_summed=2 + 2)')
    ['line 1: A1-56 ratio_summed=2 + 2']
    >>> literal_arguments('claims.record("A1-56", ratio_summed=ratio)')
    []
    """
    found = []
    for call, claim_id in record_calls(source):
        for name, node in _typed(call):
            found.append(f"line {call.lineno}: {claim_id} {name}={ast.unparse(node)}")
    return found


def record_calls(source: str) -> Iterator[tuple[ast.Call, str]]:
    """Yield each ``record("A1-..", ...)`` call of a source with the claim's id."""
    tree = ast.parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            text = first.value if isinstance(first, ast.Constant) else None
            if name == "record" and isinstance(text, str) and _CLAIM_ID.fullmatch(text):
                yield node, text


def typed_in_call(frame: FrameType) -> list[str]:
    """Return the keyword arguments that were typed as literals in the call a frame is making.

    Empty when the source is not at hand, as in ``python -c``: then nothing can be said.
    """
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return []
    # The end of a call is unique; its start moves with the attribute in chained calls.
    _, end_line, _, end_column = _position(frame)
    return [
        f"{name}={ast.unparse(node)}"
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and (call.end_lineno, call.end_col_offset) == (end_line, end_column)
        for name, node in _typed(call)
    ]


def _position(frame: FrameType) -> tuple[int | None, ...]:
    positions = frame.f_code.co_positions()
    return next(islice(positions, frame.f_lasti // 2, None), (None,) * 4)


def _typed(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and node of each keyword argument that reads no variable."""
    for keyword in call.keywords:
        if keyword.arg is not None and _reads_nothing(keyword.value):
            yield keyword.arg, keyword.value
        elif keyword.arg is None and isinstance(keyword.value, ast.Dict):
            for key, node in zip(keyword.value.keys, keyword.value.values, strict=True):
                if key is not None and _reads_nothing(node):
                    yield str(getattr(key, "value", "?")), node


def _reads_nothing(node: ast.expr) -> bool:
    """Tell whether an expression is made of constants alone; None claims nothing, so it may stay."""
    if isinstance(node, ast.Constant) and node.value is None:
        return False
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names <= _NUMBER_MAKERS
