"""Decide comparisons of named numbers, and nothing else.

The ledger's expectations are data, so they are never handed to ``eval``: this module walks the
syntax tree and knows comparisons, ``and``, ``or``, ``not`` and arithmetic.
"""

import ast
import math
import operator
from collections.abc import Mapping

_COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_SIGN = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_ALLOWED = "comparisons, and/or/not, + - * / ** on numbers, and names"
_MAX_LENGTH = 300
_MAX_POWER = 64
_MAX_BITS = 4096


class _UndefinedError(Exception):
    """The value does not exist, such as 0 / 0; no comparison with it holds."""


def names_in(expression: str) -> tuple[str, ...]:
    """Return the names that an expression needs, in order of appearance.

    Parameters
    ----------
    expression : str
        A comparison of named numbers.

    Returns
    -------
    tuple of str
        Each name once.

    Raises
    ------
    ValueError
        If the expression holds anything but comparisons, ``and``/``or``/``not``, arithmetic,
        numbers and names.

    Examples
    --------
    >>> names_in("3.9 <= ratio <= 4.1 and steps == 2 * groups")
    ('ratio', 'steps', 'groups')
    """
    nodes = [node for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in nodes))


def evaluate(expression: str, values: Mapping[str, float | str]) -> bool:
    """Decide whether an expression holds for the given values.

    What is undefined does not hold: a value that is NaN, 0 / 0 or a division by zero makes the
    answer False, also under ``not`` and ``!=``.

    Parameters
    ----------
    expression : str
        A comparison of named numbers.
    values : mapping of str to number or str
        One value for each name. Texts can be compared by ``==`` and ``!=`` only.

    Returns
    -------
    bool
        True when the expression holds.

    Raises
    ------
    ValueError
        If the expression is of another kind, or a name has no value.
    TypeError
        If texts are ordered or used in arithmetic.

    Examples
    --------
    >>> evaluate("3.9 <= ratio <= 4.1", {"ratio": 4.0})
    True
    >>> evaluate("not ratio > 1", {"ratio": float("nan")})
    False
    """
    tree = _parse(expression)
    if any(isinstance(value, float) and math.isnan(value) for value in values.values()):
        return False
    try:
        return _decide(tree, values)
    except _UndefinedError:
        return False


def _parse(expression: str) -> ast.expr:
    """Return the checked syntax tree of a condition."""
    if len(expression) > _MAX_LENGTH:
        raise ValueError(
            f"an expectation has at most {_MAX_LENGTH} characters, got {len(expression)}; "
            "measure a combined value in the cell and name that"
        )
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"{expression!r} is no expression ({error}); write for example '3.9 <= ratio <= 4.1'"
        ) from None
    _check_condition(tree, expression)
    return tree


def _check_condition(node: ast.expr, whole: str) -> None:
    """Raise unless the node is a comparison or joins comparisons."""
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            _check_condition(part, whole)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _check_condition(node.operand, whole)
    elif isinstance(node, ast.Compare):
        for op in node.ops:
            if type(op) not in _COMPARE:
                raise _refusal(node, whole)
        for part in (node.left, *node.comparators):
            _check_operand(part, whole)
    else:
        raise _no_comparison(node, whole)


def _check_operand(node: ast.expr, whole: str) -> None:
    """Raise unless the node is a number, a name, arithmetic, or a comparison in parentheses."""
    if isinstance(node, ast.Compare):
        _check_condition(node, whole)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        _check_operand(node.left, whole)
        _check_operand(node.right, whole)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _SIGN:
        _check_operand(node.operand, whole)
    elif not (
        isinstance(node, ast.Name)
        or (isinstance(node, ast.Constant) and type(node.value) in (int, float))
    ):
        raise _refusal(node, whole)


def _refusal(node: ast.expr, whole: str) -> ValueError:
    return ValueError(f"an expectation allows {_ALLOWED}; got {ast.unparse(node)!r} in {whole!r}")


def _no_comparison(node: ast.expr, whole: str) -> ValueError:
    return ValueError(
        f"an expectation is a comparison, got {ast.unparse(node)!r} in {whole!r}; "
        "write for example 'count == 4'"
    )


def _decide(node: ast.expr, values: Mapping[str, float | str]) -> bool:
    """Return the truth of a condition; parts decide from left to right, as in Python."""
    if isinstance(node, ast.BoolOp):
        join = all if isinstance(node.op, ast.And) else any
        return join(_decide(part, values) for part in node.values)
    if isinstance(node, ast.UnaryOp):
        return not _decide(node.operand, values)
    left = _value(node.left, values)
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = _value(part, values)
        if not _compare(op, left, right):
            return False
        left = right
    return True


def _compare(op: ast.cmpop, left: float | str, right: float | str) -> bool:
    texts = isinstance(left, str) or isinstance(right, str)
    if texts and not isinstance(op, (ast.Eq, ast.NotEq)):
        raise TypeError(f"texts compare by == and != only, got {left!r} and {right!r}")
    return bool(_COMPARE[type(op)](left, right))


def _value(node: ast.expr, values: Mapping[str, float | str]) -> float | str:
    """Return the value of an operand."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise ValueError(
                f"no value for {node.id}; got values for {', '.join(values) or 'none'}"
            )
        return values[node.id]
    if isinstance(node, ast.Compare):
        return _decide(node, values)
    if isinstance(node, ast.UnaryOp):
        return _SIGN[type(node.op)](_value(node.operand, values))
    return _arithmetic(node.op, _value(node.left, values), _value(node.right, values))


def _arithmetic(op: ast.operator, left: float | str, right: float | str) -> float:
    """Return left op right, and refuse what would take long or has no value."""
    if isinstance(left, str) or isinstance(right, str):
        raise TypeError(f"arithmetic needs numbers, got {left!r} and {right!r}")
    if isinstance(op, ast.Pow):
        bits = left.bit_length() if isinstance(left, int) else 64
        if abs(right) > _MAX_POWER or bits * abs(right) > _MAX_BITS:
            raise ValueError(f"powers above {_MAX_POWER} are refused, got {left!r} ** {right!r}")
    try:
        result = _ARITHMETIC[type(op)](left, right)
    except (ZeroDivisionError, OverflowError):
        raise _UndefinedError from None
    if isinstance(result, complex) or math.isnan(result):
        raise _UndefinedError
    return result
