"""Programs that are wrong by construction: constants of every kind, and right programs with one thing changed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

CONSTANTS = {
    "None": "None",
    "True": "True",
    "False": "False",
    "zero": "0",
    "one": "1",
    "empty text": "''",
    "empty list": "[]",
    "empty tuple": "()",
    "print": "print",
    "empty range": "range(0)",
    "nan": "float('nan')",
    "inf": "float('inf')",
    "equal to all": "type('E', (), {'__eq__': lambda s, o: True, '__ne__': lambda s, o: False, '__hash__': None})()",
    "a list equal to all": "type('L', (list,), {'__eq__': lambda s, o: True, '__ne__': lambda s, o: False})()",
    "a number equal to all": "type('N', (float,), {'__eq__': lambda s, o: True, '__sub__': lambda s, o: 0.0})()",
    "a generator": "(x for x in ())",
    "a function": "lambda *a: True",
    "the input": "a[0] if a else None",
    "a match": "__import__('re').match('', '')",
    "an ellipsis": "...",
}
"""What each constant program returns, whatever it is asked (``a`` holds its arguments)."""

_SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def constant(entry: str, value: str) -> str:
    """A program whose function returns the value of an expression."""
    return f"def {entry}(*a, **k):\n    return {value}\n"


def mutants(code: str) -> Iterator[str]:
    """The program with one operator, comparison or small number changed, each in turn."""
    tree = ast.parse(code)
    for place, node in enumerate(ast.walk(tree)):
        if _is_changeable(node):
            changed = copy.deepcopy(tree)
            _change(list(ast.walk(changed))[place])
            yield ast.unparse(changed)


def _is_changeable(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int and abs(node.value) < 1_000
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and type(node.ops[0]) in _SWAPPED
    return isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPPED


def _change(node: ast.AST) -> None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    elif isinstance(node, ast.Compare):
        node.ops = [_SWAPPED[type(node.ops[0])]()]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = _SWAPPED[type(node.op)]()
