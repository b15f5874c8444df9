"""Syntax trees without the ``ast`` module, whose imports would make every fork more expensive."""

from __future__ import annotations

import _ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    Grouped = dict[type, list[Any]]

_LEAF_TYPES = frozenset(
    {
        "boolop", "cmpop", "constant", "expr_context", "identifier", "int", "operator", "string", "type_ignore",
        "unaryop",
    }
)  # fmt: skip


def _fields_of_nodes() -> dict[type, tuple[str, ...]]:
    """Return for each type of node the fields that hold other nodes, read from the grammar in its docstring."""
    found: dict[type, tuple[str, ...]] = {}
    for kind in vars(_ast).values():
        head = (getattr(kind, "__doc__", None) or "").split("\n")[0]
        if isinstance(kind, type) and head.startswith(f"{kind.__name__}("):
            pairs = [part.split() for part in head[len(kind.__name__) + 1 : -1].split(", ") if part]
            found[kind] = tuple([name for what, name in pairs if what.rstrip("*?") not in _LEAF_TYPES])
    return found


_CHILDREN = _fields_of_nodes()
_ONE_NAME = (
    (_ast.arg, "arg"), (_ast.keyword, "arg"), (_ast.alias, "name"), (_ast.alias, "asname"),
    (_ast.ClassDef, "name"), (_ast.ImportFrom, "module"), (_ast.ExceptHandler, "name"), (_ast.MatchAs, "name"),
    (_ast.MatchStar, "name"), (_ast.MatchMapping, "rest"),
    *[(getattr(_ast, kind), "name") for kind in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(_ast, kind)],
)  # fmt: skip
_SEVERAL_NAMES = ((_ast.Global, "names"), (_ast.Nonlocal, "names"), (_ast.MatchClass, "kwd_attrs"))
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""Exceptions of the parser: MemoryError for too deep a nesting, ValueError for NUL and lone surrogates."""


def parse(source: str, file_name: str, mode: str = "exec") -> _ast.AST:
    """Parse a source text into its tree. Raises one of ``UNPARSABLE``."""
    return compile(source, file_name, mode, _ast.PyCF_ONLY_AST, dont_inherit=True)  # type: ignore[call-overload, no-any-return]


def to_code(source: _ast.AST | str, file_name: str, mode: str = "exec") -> CodeType:
    """Compile a tree or a text. Raises one of ``UNPARSABLE``."""
    return compile(source, file_name, mode, dont_inherit=True)  # type: ignore[arg-type, no-any-return]


def group(tree: _ast.AST) -> Grouped:
    """Return the nodes of the tree by type, without operators and contexts, in one traversal."""
    grouped: Grouped = {}
    stack = [tree]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in grouped:
            grouped[kind].append(node)
        else:
            grouped[kind] = [node]
        for name in _CHILDREN.get(kind, ()):
            value = getattr(node, name, None)
            if type(value) is list:
                stack.extend([item for item in value if item is not None])
            elif value is not None:
                stack.append(value)
    return grouped


def names(grouped: Grouped) -> set[str]:
    """Return every name in the tree except variables, attributes and names of functions."""
    found: set[str] = set()
    for kind, field in _ONE_NAME:
        if kind in grouped:
            found.update([getattr(node, field) for node in grouped[kind]])
    for kind, field in _SEVERAL_NAMES:
        if kind in grouped:
            for node in grouped[kind]:
                found.update(getattr(node, field))
    found.discard(None)  # type: ignore[arg-type]
    return found
