"""Syntax trees without the ``ast`` module, whose imports would make every fork dearer."""

from __future__ import annotations

import _ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    Grouped = dict[type, list[Any]]

_NODES = (
    _ast.expr, _ast.stmt, _ast.arguments, _ast.arg, _ast.keyword, _ast.alias, _ast.comprehension, _ast.excepthandler,
    _ast.match_case, _ast.pattern, _ast.withitem, _ast.mod,
)  # fmt: skip
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""What parsing may raise: MemoryError for nesting the parser cannot hold, ValueError for NUL and lone surrogates."""


def parse(source: str, file_name: str, mode: str = "exec") -> _ast.AST:
    """Parse a source text into its tree. Raises one of ``UNPARSABLE``."""
    return compile(source, file_name, mode, _ast.PyCF_ONLY_AST, dont_inherit=True)  # type: ignore[call-overload, no-any-return]


def to_code(source: _ast.AST | str, file_name: str, mode: str = "exec") -> CodeType:
    """Compile a tree or a text. Raises one of ``UNPARSABLE``."""
    return compile(source, file_name, mode, dont_inherit=True)  # type: ignore[arg-type, no-any-return]


def group(tree: _ast.AST) -> Grouped:
    """Every node of the tree but operators and contexts, by its type, in one walk."""
    grouped: Grouped = {}
    stack = [tree]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in grouped:
            grouped[kind].append(node)
        else:
            grouped[kind] = [node]
        for name in kind._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                stack.extend([item for item in value if isinstance(item, _ast.AST)])
            elif isinstance(value, _NODES):
                stack.append(value)
    return grouped
