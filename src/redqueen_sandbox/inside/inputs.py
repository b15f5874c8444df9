"""Argument lists in the child: literals that the judge has already read, and a few harmless constructor calls.

A text that the judge's reader accepts arrives as ``literal`` and is certainly a plain value. The syntax of any other
text is checked here: benchmarks write ``dict(a=1)``, ``range(100, 120)``, ``'a b'.split()`` or ``'a' + 'b'`` instead of
a literal. Expressions that may compute for long, create large values or use other names are refused.
"""

from __future__ import annotations

import _ast as ast

from . import syntax

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Arguments = tuple[tuple[object, ...], dict[str, object]]

_CONSTRUCTORS: dict[str, Callable[..., object]] = {
    "dict": dict, "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "range": range,
}  # fmt: skip
_STRING_METHODS = tuple(
    ["capitalize", "join", "lower", "lstrip", "rstrip", "rsplit", "split", "splitlines", "strip", "title", "upper"]
)
_MAX_DEPTH = 100
_MAX_REPEATS = 100
_INFINITY = float("inf")  # canonical texts contain its name ``inf``; the judge decides where it is allowed


class _NotAllowed(Exception):
    pass


def _collect(*args: object, **kwargs: object) -> Arguments:
    return args, kwargs


NAMES: dict[str, object] = {
    "__builtins__": {}, "_collect": _collect, "inf": _INFINITY, "nan": float("nan"), **_CONSTRUCTORS
}  # fmt: skip
"""The names in an argument list. One dict for all inputs: a new dict would touch a page of memory for each class."""


def parse(text: str, literal: bool, backwards: bool = False) -> Arguments | None:
    """Return the arguments, or None if the text is not an argument list of plain values.

    ``backwards`` builds sets from their last element to their first, which changes the order of colliding elements.
    """
    source = f"_collect({text}\n)"
    try:
        if literal and not (backwards and "{" in text):
            code = syntax.to_code(source, "<input>", "eval")  # no tree: its nodes would touch many pages of memory
        else:
            tree = syntax.parse(source, "<input>", "eval")
            if not literal:
                _check_call(tree)
            if backwards and "{" in text:
                for node in syntax.group(tree).get(ast.Set, ()):
                    node.elts.reverse()
            code = syntax.to_code(tree, "<input>", "eval")
        return eval(code, NAMES)  # type: ignore[no-any-return]
    except (*syntax.UNPARSABLE, ArithmeticError, TypeError, NameError, _NotAllowed):
        return None


def _check_call(tree: ast.AST) -> None:
    call = tree.body if isinstance(tree, ast.Expression) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "_collect":
        raise _NotAllowed
    for argument in call.args:
        _check(argument, 0)
    for pair in call.keywords:
        if pair.arg is None:
            raise _NotAllowed
        _check(pair.value, 0)


def _check(node: ast.expr, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise _NotAllowed
    if isinstance(node, ast.Constant):
        if node.value is Ellipsis or isinstance(node.value, complex):
            raise _NotAllowed
        if isinstance(node.value, float) and node.value in (float("inf"), float("-inf")):
            raise _NotAllowed
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for item in node.elts:
            _check(item, depth + 1)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise _NotAllowed
            _check(key, depth + 1)
            _check(value, depth + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        if not (isinstance(node.operand, ast.Constant) and type(node.operand.value) in (int, float)):
            raise _NotAllowed
    elif isinstance(node, ast.BinOp):
        _check_operation(node)
    elif isinstance(node, ast.Call):
        _check_constructor(node, depth)
    else:
        raise _NotAllowed


def _check_operation(node: ast.BinOp) -> None:
    """Allow two strings joined, or a string or a list of constants repeated at most ``_MAX_REPEATS`` times."""
    if isinstance(node.op, ast.Add) and _is_constant(node.left, str) and _is_constant(node.right, str):
        return
    repeats = node.right.value if _is_constant(node.right, int) else -1  # type: ignore[attr-defined]
    is_list = isinstance(node.left, ast.List) and all(isinstance(item, ast.Constant) for item in node.left.elts)
    if not (
        isinstance(node.op, ast.Mult) and 0 <= repeats <= _MAX_REPEATS and (is_list or _is_constant(node.left, str))
    ):
        raise _NotAllowed


def _is_constant(node: ast.expr, kind: type) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is kind


def _check_constructor(node: ast.Call, depth: int) -> None:
    function = node.func
    if isinstance(function, ast.Name):
        if function.id not in _CONSTRUCTORS or (node.keywords and function.id != "dict"):
            raise _NotAllowed
    elif not (
        isinstance(function, ast.Attribute)
        and function.attr in _STRING_METHODS
        and isinstance(function.value, ast.Constant)
        and isinstance(function.value.value, str)
    ):
        raise _NotAllowed
    for argument in [*node.args, *[pair.value for pair in node.keywords]]:
        if isinstance(argument, ast.Call):  # list(range(10**9)) must not slip through
            raise _NotAllowed
        _check(argument, depth + 1)
    if any(pair.arg is None for pair in node.keywords):
        raise _NotAllowed
