"""Plain Python values from canonical texts, for benchmarks that compare values, not texts.

Nothing is evaluated: a canonical text is parsed, and only literals are read from the syntax tree.
"""

from __future__ import annotations

import ast
import math

_INFINITY = math.inf


def value_of(text: str) -> object:
    """Return the value of a canonical text, infinities and frozen sets included.

    Raises ValueError for a text that is not canonical.
    """
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError("not a canonical text") from error


def _value(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)  # type: ignore[operator]
        case ast.Name(id="inf"):
            return _INFINITY
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Set(elts=items):
            return {_value(item) for item in items}
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(item) for key, item in zip(keys, values, strict=True) if key is not None}
        case ast.Call(func=ast.Name(id="set"), args=[]):
            return set()
        case ast.Call(func=ast.Name(id="frozenset"), args=items):
            return frozenset(member for item in items for member in _value(item))  # type: ignore[attr-defined]
    raise ValueError("not a canonical text")
