"""Syntax trees without the ``ast`` module, whose imports would make every fork dearer."""

from __future__ import annotations

import _ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""What parsing may raise: MemoryError for nesting the parser cannot hold, ValueError for NUL and lone surrogates."""


def parse(source: str, file_name: str, mode: str = "exec") -> _ast.AST:
    """Parse a source text into its tree. Raises one of ``UNPARSABLE``."""
    return compile(source, file_name, mode, _ast.PyCF_ONLY_AST, dont_inherit=True)  # type: ignore[call-overload, no-any-return]


def to_code(tree: _ast.AST, file_name: str, mode: str = "exec") -> CodeType:
    """Compile a tree. Raises one of ``UNPARSABLE``."""
    return compile(tree, file_name, mode, dont_inherit=True)  # type: ignore[call-overload, no-any-return]


def walk(tree: _ast.AST) -> Iterator[_ast.AST]:
    """Every node of the tree, in no order that matters."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                stack.extend([item for item in value if isinstance(item, _ast.AST)])
            elif isinstance(value, _ast.AST):
                stack.append(value)
