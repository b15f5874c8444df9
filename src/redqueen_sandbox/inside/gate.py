"""The static gate: it looks once at a program's syntax and refuses what is impure, with the reason.

It is about honest mistakes and determinism, not about safety: the cage holds without it (and is tested without it).
Words inside strings and comments are harmless, because only syntax is looked at. What syntax cannot show
(``getattr`` with a computed name, a name that a module lacks) is caught in ``guards``, when it happens.
"""

from __future__ import annotations

import _ast as ast

from . import syntax
from .allowed import DEFINABLE, GUARDED, ONLY_NAMES, PLAIN_DUNDER_NAMES, PURE, REFUSED, REFUSED_BUILTINS, is_special
from .allowed import refused_attribute as refused
from .guards import GUARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .syntax import Grouped

_PURE = frozenset(PURE)
_REFUSED = frozenset(REFUSED)
_SELF_MATCHING = frozenset(
    {"bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
)


class _Refused(Exception):
    """Carries the reason out of the walk."""


def screen(nodes: Grouped) -> str:
    """Return why the program is refused, or "" when it is not. Changes nothing."""
    try:
        _check_imports(nodes)
        bound = bound_names(nodes)
        _check_names(nodes, set(bound))
        if ast.MatchClass in nodes:
            _check_patterns(nodes, bound)
    except _Refused as refusal:
        return str(refusal)
    return ""


def guard_attributes(nodes: Grouped) -> None:
    """Have the values of ``GUARDED`` attributes pass through ``guards.holder``, each with the name wanted of it."""
    for node in nodes.get(ast.Attribute, ()):
        if node.attr in GUARDED and type(node.ctx) is ast.Load:
            place = {
                name: getattr(node.value, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
            }
            function = ast.Name(GUARD, ast.Load(), **place)
            node.value = ast.Call(function, [node.value, ast.Constant(node.attr, **place)], [], **place)


def _check_imports(nodes: Grouped) -> None:
    """Refuse imports of anything but pure modules, except in a main block, which never runs."""
    unused = {id(inner) for node in nodes.get(ast.If, ()) if _is_main_test(node.test) for inner in node.body}
    for node in nodes.get(ast.Import, ()):
        for alias in node.names:
            is_idle = alias.name == "sys" and not _is_read(alias.asname or "sys", nodes)
            if (alias.name not in _PURE or is_idle) and id(node) not in unused:
                raise _Refused(f"import of {alias.name[:80]}")
    for node in nodes.get(ast.ImportFrom, ()):
        if (node.level or node.module not in _PURE) and id(node) not in unused:
            raise _Refused(f"import from {(node.module or '')[:80] or 'a relative place'}")
        for alias in node.names:
            if alias.name[:1] == "_" and node.module != "__future__":
                raise _Refused(f"import of {alias.name[:80]}")


def _is_read(module: str, nodes: Grouped) -> bool:
    """Whether a public name of the module is read: ``sys`` alone, as a value, is no honest need."""
    values = [node.value for node in nodes.get(ast.Attribute, ()) if node.attr in ONLY_NAMES["sys"]]
    return any(type(value) is ast.Name and value.id == module for value in values)


def _is_main_test(test: ast.expr) -> bool:
    return (
        type(test) is ast.Compare
        and type(test.left) is ast.Name
        and test.left.id == "__name__"
        and type(test.ops[0]) is ast.Eq
        and type(test.comparators[0]) is ast.Constant
        and test.comparators[0].value == "__main__"
    )


def bound_names(nodes: Grouped) -> list[str]:
    """Every name that the program binds, once for each place: a builtin of the same name is then not what it means."""
    bound = [node.id for node in nodes.get(ast.Name, ()) if type(node.ctx) is not ast.Load]
    bound += [node.arg for node in nodes.get(ast.arg, ())]
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        bound += [node.name for node in nodes.get(kind, ()) if node.name]
    bound += [node.rest for node in nodes.get(ast.MatchMapping, ()) if node.rest]
    return bound + [node.asname or node.name.split(".")[0] for node in nodes.get(ast.alias, ())]


def _check_names(nodes: Grouped, bound: set[str]) -> None:
    """Look at every name in every position: refused ones may stand nowhere, some builtins not be read."""
    read = {node.id for node in nodes.get(ast.Name, ())}
    attributes = {node.attr for node in nodes.get(ast.Attribute, ()) if not _is_plain_setter(node)}
    if any(node.attr == "__bases__" and type(node.ctx) is not ast.Load for node in nodes.get(ast.Attribute, ())):
        raise _Refused("changing __bases__")
    everywhere = syntax.names(nodes) | read | attributes
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
        everywhere.update([node.name for node in nodes.get(kind, ()) if node.name not in DEFINABLE])
    if not _REFUSED.isdisjoint(everywhere):
        raise _Refused(refused(min(everywhere & _REFUSED)))
    for name in sorted(read & REFUSED_BUILTINS):
        if name not in bound or name.startswith("__"):
            raise _Refused(f"use of {name}")
    matched = {name for node in nodes.get(ast.MatchClass, ()) for name in node.kwd_attrs}
    for name in sorted([name for name in everywhere if name[:2] == "__" and is_special(name) and name not in bound]):
        if name in read and name not in PLAIN_DUNDER_NAMES:
            raise _Refused(f"use of {name[:80]}")
        if (name in attributes or name in matched) and refused(name):
            raise _Refused(refused(name))


def _is_plain_setter(node: ast.Attribute) -> bool:
    """Whether it is ``super().__setattr__`` or ``object.__setattr__``, with which objects set their own attributes."""
    if node.attr != "__setattr__":
        return False
    value = node.value.func if type(node.value) is ast.Call and not node.value.args else node.value
    return type(value) is ast.Name and value.id == ("super" if value is not node.value else "object")


# ---- class patterns ------------------------------------------------------------------------------


def _check_patterns(nodes: Grouped, bound: list[str]) -> None:
    """Parts of a class pattern by position read attributes whose names stand in ``__match_args__``, as strings. So the
    class must be a builtin that matches itself, or one of the program's own whose names its text shows.
    """
    names = {name for node in nodes[ast.MatchClass] for name in node.kwd_attrs}
    positional = [node.cls for node in nodes[ast.MatchClass] if node.patterns]
    if positional:
        names.update([node.target.id for node in nodes.get(ast.AnnAssign, ()) if type(node.target) is ast.Name])
        names.update(_listed_names(nodes))
    for cls in positional:
        name = cls.id if type(cls) is ast.Name else ""
        if (name not in _SELF_MATCHING or name in bound) and not _is_open(name, nodes, bound):
            raise _Refused(f"a class pattern on {name or 'an attribute'}, whose attributes are not plain to see")
    for name in names:
        if name in GUARDED or refused(name):
            raise _Refused(f"a class pattern that reads {name}")


def _listed_names(nodes: Grouped) -> list[str]:
    """The strings in each ``__match_args__``, which must be a tuple of them that a class's body is given."""
    listed: list[str] = []
    num_open = 0
    for node in [line for cls in nodes.get(ast.ClassDef, ()) for line in cls.body if type(line) is ast.Assign]:
        if type(node.targets[0]) is ast.Name and node.targets[0].id == "__match_args__" and len(node.targets) == 1:
            items = node.value.elts if type(node.value) is ast.Tuple else [node.value]
            listed += [getattr(item, "value", None) for item in items]  # type: ignore[misc]
            num_open += 1
    named = [node for node in nodes.get(ast.Name, ()) if node.id == "__match_args__"]
    named += [node for node in nodes.get(ast.Attribute, ()) if node.attr == "__match_args__"]
    if num_open != len(named) or not all(type(name) is str for name in listed):
        raise _Refused("__match_args__ that is no tuple of plain names")
    return listed


def _is_open(name: str, nodes: Grouped, bound: list[str]) -> bool:
    """Whether the class is what its one class statement says: no other base, and no decorator but ``dataclass``."""
    found = [node for node in nodes.get(ast.ClassDef, ()) if node.name == name]
    if len(found) != 1 or bound.count(name) != 1 or found[0].keywords:
        return False
    for node in found[0].decorator_list:
        function = node.func if type(node) is ast.Call else node
        if type(function) is not ast.Name or function.id != "dataclass" or bound.count("dataclass") != 1:
            return False
        if not any(alias.name == "dataclass" for line in nodes.get(ast.ImportFrom, ()) for alias in line.names):
            return False
    return all(type(base) is ast.Name and _is_open(base.id, nodes, bound) for base in found[0].bases)
