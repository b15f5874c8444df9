"""The static gate: it checks a program's syntax tree once and refuses impure programs, with the reason.

It catches honest mistakes. Safety and determinism do not depend on it (and are tested without it). Words inside strings
and comments are ignored, because only syntax is checked. ``guards`` refuses at run time what syntax cannot show:
``getattr`` with a computed name, or a name that a module does not have.
"""

from __future__ import annotations

import _ast as ast

from . import syntax
from .allowed import PLAIN_DUNDER_NAMES, PURE, REFUSED, REFUSED_BUILTINS, is_special

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .syntax import Grouped

_PURE = frozenset(PURE)
_REFUSED = frozenset(REFUSED)


def screen(nodes: Grouped) -> str:
    """Return why the program is refused, or "" if it is not. Does not change the tree."""
    return _check_imports(nodes) or _check_names(nodes)


def _check_imports(nodes: Grouped) -> str:
    """Refuse imports of anything but pure modules, except in a main block, which never runs."""
    unused = {id(inner) for node in nodes.get(ast.If, ()) if _is_main_test(node.test) for inner in node.body}
    for node in nodes.get(ast.Import, ()):
        for alias in node.names:
            if alias.name not in _PURE and id(node) not in unused:
                return f"import of {alias.name[:80]}"
    for node in nodes.get(ast.ImportFrom, ()):
        if (node.level or node.module not in _PURE) and id(node) not in unused:
            return f"import from {(node.module or '')[:80] or 'a relative place'}"
        for alias in node.names:
            if alias.name[:1] == "_" and node.module != "__future__":
                return f"import of {alias.name[:80]}"
    return ""


def _is_main_test(test: ast.expr) -> bool:
    return (
        type(test) is ast.Compare
        and type(test.left) is ast.Name
        and test.left.id == "__name__"
        and type(test.ops[0]) is ast.Eq
        and type(test.comparators[0]) is ast.Constant
        and test.comparators[0].value == "__main__"
    )


def _bound_names(nodes: Grouped) -> set[str]:
    """Return every name that the program binds: such a name does not mean the builtin of the same name."""
    bound = {node.id for node in nodes.get(ast.Name, ()) if type(node.ctx) is not ast.Load}
    bound.update([node.arg for node in nodes.get(ast.arg, ())])
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        bound.update([node.name for node in nodes.get(kind, ()) if node.name])
    bound.update([node.rest for node in nodes.get(ast.MatchMapping, ()) if node.rest])
    bound.update([node.asname or node.name.split(".")[0] for node in nodes.get(ast.alias, ())])
    return bound


def _check_names(nodes: Grouped) -> str:
    """Refuse names in ``REFUSED`` in every position, and reads of builtins and special names that are not allowed."""
    read = {node.id for node in nodes.get(ast.Name, ())}
    everywhere = syntax.names(nodes) | read | {node.attr for node in nodes.get(ast.Attribute, ())}
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
        everywhere.update([node.name for node in nodes.get(kind, ())])
    if not _REFUSED.isdisjoint(everywhere):
        name = min(everywhere & _REFUSED)
        return f"{name}, which {REFUSED[name]}"
    bound = _bound_names(nodes)
    for name in sorted(read):
        is_unknown = is_special(name) and name not in PLAIN_DUNDER_NAMES
        if (name in REFUSED_BUILTINS or is_unknown) and (name not in bound or name == "__import__"):
            return f"use of {name[:80]}"
    return ""
