"""Class patterns with parts by position: the names of the attributes they read stand in ``__match_args__``, as strings.

And keyword patterns on attributes that only some values may give (``allowed.GUARDED``). So the class must be one whose
names are plain to see: a builtin that matches itself, or a class of the program that is defined once, by a plain
``class`` statement, and whose names nothing can change.
"""

from __future__ import annotations

import _ast as ast

from .allowed import CLOCK_ATTRIBUTES, GUARDED, refused_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .syntax import Grouped

    Origin = Callable[[ast.AST], tuple[str, str]]

_SELF_MATCHING = frozenset(
    {"bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
)
_BASES = frozenset(
    {
        ("abc", "ABC"), ("enum", "Enum"), ("enum", "IntEnum"), ("typing", "Generic"), ("typing", "NamedTuple"),
        ("typing", "Protocol"),
    }
)  # fmt: skip
_BUILTIN_BASES = frozenset({"Exception", "KeyError", "RuntimeError", "TypeError", "ValueError", "object"})
_DECORATORS = frozenset(
    {
        ("dataclasses", "dataclass"), ("functools", "total_ordering"), ("typing", "final"),
        ("typing", "runtime_checkable"),
    }
)  # fmt: skip
_HANDED_OUT = GUARDED - CLOCK_ATTRIBUTES
"""Names that no pattern may read: an object can say that it is of any class, and be a proxy of anything."""
_NAMESPACES = frozenset({"globals", "locals", "vars", "__annotations__"})


def refusal(nodes: Grouped, origin: Origin) -> str:
    """Return why the class patterns are refused, or "". ``origin`` gives the imported (module, member) of a node."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for node in nodes.get(ast.ClassDef, ()):
        classes.setdefault(node.name, []).append(node)
    if not _declares_openly(nodes):
        return "__match_args__ that is no tuple of plain names"
    guarded = {node.cls for node in nodes.get(ast.MatchClass, ()) if not GUARDED.isdisjoint(node.kwd_attrs)}
    named = guarded.union([node.cls for node in nodes.get(ast.MatchClass, ()) if node.patterns])
    if not named:
        return ""
    if not _HANDED_OUT.isdisjoint(_names_read(nodes)):
        return "a class pattern that reads " + min(_HANDED_OUT.intersection(_names_read(nodes)))
    changed = {node.attr for node in nodes.get(ast.Attribute, ()) if type(node.ctx) is not ast.Load}
    if not changed.isdisjoint(("__bases__", "__class__")):
        return "class patterns beside classes that change"
    if any(node.id in _NAMESPACES for node in nodes.get(ast.Name, ())):
        return "class patterns beside namespaces that can change"
    rebound = _rebound(nodes)
    for cls in named:
        name = cls.id if type(cls) is ast.Name else ""
        if name in _SELF_MATCHING and name not in classes and name not in rebound and cls not in guarded:
            continue
        if not _is_open(name, classes, rebound, nodes, origin):
            return f"a class pattern on {name or 'an attribute'}, whose attributes are not plain to see"
    return ""


def _declares_openly(nodes: Grouped) -> bool:
    """Whether ``__match_args__`` is only ever given a tuple of plain names, in the body of a class."""
    num_open = 0
    for node in nodes.get(ast.ClassDef, ()):
        for line in node.body:
            if type(line) is ast.Assign and len(line.targets) == 1 and _is_match_args(line.targets[0]):
                num_open += _is_plain(line.value)
            elif type(line) is ast.AnnAssign and _is_match_args(line.target):
                num_open += line.value is not None and _is_plain(line.value)
    if any(node.attr == "__match_args__" for node in nodes.get(ast.Attribute, ())):
        return False
    return num_open == sum(map(_is_match_args, nodes.get(ast.Name, ())))


def _names_read(nodes: Grouped) -> set[str]:
    """Every name that a class pattern of the program may read: by keyword, or by position from a class's fields."""
    found = {name for node in nodes.get(ast.MatchClass, ()) for name in node.kwd_attrs}
    found.update([node.target.id for node in nodes.get(ast.AnnAssign, ()) if type(node.target) is ast.Name])
    for node in [*nodes.get(ast.Assign, ()), *nodes.get(ast.AnnAssign, ())]:
        target = node.target if type(node) is ast.AnnAssign else node.targets[0]
        if _is_match_args(target) and type(node.value) is ast.Tuple:
            found.update([item.value for item in node.value.elts if type(item) is ast.Constant])
    return found


def _is_match_args(node: ast.AST) -> bool:
    return type(node) is ast.Name and node.id == "__match_args__"


def _is_plain(value: ast.expr) -> bool:
    return type(value) is ast.Tuple and all(
        type(item) is ast.Constant and type(item.value) is str and not refused_attribute(item.value)
        for item in value.elts
    )


def _rebound(nodes: Grouped) -> set[str]:
    """Names bound otherwise than by a class statement."""
    found = {node.id for node in nodes.get(ast.Name, ()) if type(node.ctx) is not ast.Load}
    found.update([node.arg for node in nodes.get(ast.arg, ())])
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        found.update([node.name for node in nodes.get(kind, ()) if node.name])
    found.update([node.rest for node in nodes.get(ast.MatchMapping, ()) if node.rest])
    return found


def _is_open(
    name: str, classes: dict[str, list[ast.ClassDef]], rebound: set[str], nodes: Grouped, origin: Origin
) -> bool:
    """Whether the class is what its one class statement says: no metaclass, no decorator or base that is not known."""
    if name in rebound or len(classes.get(name, ())) != 1:
        return name not in classes and name in _named_tuples(nodes, rebound, origin)
    node = classes[name][0]
    own = rebound.union(classes)
    if node.keywords or not all(_is_from(decorator, _DECORATORS, own, origin) for decorator in node.decorator_list):
        return False
    for base in node.bases:
        if _is_from(base, _BASES, own, origin):
            continue
        base_name = base.id if type(base) is ast.Name else ""
        if base_name in _BUILTIN_BASES and base_name not in own and origin(base) == ("", ""):
            continue
        if base_name == name or not _is_open(base_name, classes, rebound, nodes, origin):
            return False
    return True


def _is_from(node: ast.expr, allowed: frozenset[tuple[str, str]], own: set[str], origin: Origin) -> bool:
    """Whether the node is one of the ``allowed`` members of modules, called or subscripted or neither."""
    if type(node) is ast.Call:
        node = node.func
    if type(node) is ast.Subscript:
        node = node.value
    root: ast.AST = node
    while type(root) is ast.Attribute:
        root = root.value
    return type(root) is ast.Name and root.id not in own and origin(node) in allowed


def _named_tuples(nodes: Grouped, rebound: set[str], origin: Origin) -> set[str]:
    """Names bound exactly once in the program, to a ``namedtuple`` whose fields stand in the text."""
    stored = [node.id for node in nodes.get(ast.Name, ()) if type(node.ctx) is not ast.Load]
    found = set()
    for node in nodes.get(ast.Assign, ()):
        target, value = node.targets[0], node.value
        if type(target) is not ast.Name or stored.count(target.id) != 1 or type(value) is not ast.Call:
            continue
        is_plain = _is_from(value, frozenset({("collections", "namedtuple")}), rebound, origin)
        if is_plain and len(value.args) > 1 and _is_literal(value.args[1]):
            found.add(target.id)
    return found


def _is_literal(node: ast.expr) -> bool:
    items = node.elts if type(node) in (ast.List, ast.Tuple) else [node]  # type: ignore[attr-defined]
    return all(
        type(item) is ast.Constant
        and type(item.value) is str
        and _HANDED_OUT.isdisjoint(item.value.replace(",", " ").split())
        for item in items
    )
