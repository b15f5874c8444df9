"""Where a program is sure to be told an address: the text or the hash of an object that has none of its own.

Only what syntax shows for certain. The rest is seen when worlds with other addresses disagree.
"""

from __future__ import annotations

import _ast as ast
import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .syntax import Grouped

_OWN_TEXT = frozenset({"__eq__", "__format__", "__getattribute__", "__hash__", "__repr__", "__str__"})


def is_shown(function: str, node: ast.AST, nodes: Grouped) -> bool:
    """Tell whether ``function(node)`` is made of an address. ``function`` is a builtin, one of ``allowed.TELLING``."""
    kind = type(node)
    if kind in (ast.Lambda, ast.GeneratorExp):
        return True
    if kind is ast.Constant:
        return function == "hash" and node.value in (None, ...)  # type: ignore[attr-defined]
    if kind is ast.Name:
        return _is_function(node.id, nodes)  # type: ignore[attr-defined]
    if kind is ast.Call and type(node.func) is ast.Name:  # type: ignore[attr-defined]
        made = node.func.id  # type: ignore[attr-defined]
        is_object = made == "object" and function == "hash"  # two texts of it never agree: that is seen in any case
        return not _is_stored(made, nodes) and (is_object or _is_bare_class(made, nodes))
    return False


def _is_function(name: str, nodes: Grouped) -> bool:
    """Whether the name is that of one function of the program and of nothing else."""
    definitions = [node for node in nodes.get(ast.FunctionDef, ()) if node.name == name]
    is_plain = len(definitions) == 1 and not definitions[0].decorator_list and not hasattr(builtins, name)
    return is_plain and not _is_stored(name, nodes) and not _classes(name, nodes)


def _is_bare_class(name: str, nodes: Grouped) -> bool:
    """Whether the name is that of one class without bases, in a program where no object has a text of its own."""
    found = _classes(name, nodes)
    if len(found) != 1 or found[0].bases or found[0].keywords or found[0].decorator_list:
        return False
    named = {node.name for node in nodes.get(ast.FunctionDef, ())}
    named.update([node.id for node in nodes.get(ast.Name, ())], [node.attr for node in nodes.get(ast.Attribute, ())])
    return _OWN_TEXT.isdisjoint(named) and name not in {node.name for node in nodes.get(ast.FunctionDef, ())}


def _classes(name: str, nodes: Grouped) -> list[ast.ClassDef]:
    return [node for node in nodes.get(ast.ClassDef, ()) if node.name == name]


def _is_stored(name: str, nodes: Grouped) -> bool:
    """Whether the name is bound by an assignment, a parameter, an import or a pattern."""
    if any(node.id == name and type(node.ctx) is not ast.Load for node in nodes.get(ast.Name, ())):
        return True
    for kind, field in ((ast.arg, "arg"), (ast.MatchAs, "name"), (ast.MatchStar, "name"), (ast.ExceptHandler, "name")):
        if any(getattr(node, field) == name for node in nodes.get(kind, ())):
            return True
    return any(name in (node.asname, node.name) for node in nodes.get(ast.alias, ()))
