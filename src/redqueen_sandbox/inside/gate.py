"""The static gate: it looks once at a program's syntax and refuses what is impure, with the reason.

It is about honest mistakes and determinism, not about safety: the cage holds without it (and is tested without it).
Words inside strings and comments are harmless, because only syntax is looked at. What syntax cannot show
(``getattr`` with a computed name, an import by a computed name) is caught in ``runtime``, when it happens.
"""

from __future__ import annotations

import _ast as ast
import sys

from . import addresses, modules, patterns, rewrite, syntax
from .allowed import (
    CLOCK_ATTRIBUTES,
    DEFINABLE,
    GUARDED,
    MODULES,
    ORDER_ATTRIBUTES,
    ORDER_NAMES,
    PLAIN_DUNDER_NAMES,
    REFUSED,
    REFUSED_BUILTINS,
    SEEDED_ONLY,
    TAKE_A_NAME,
    TELLING,
    VIEWS,
    is_special,
    refused_attribute,
    refused_name,
)
from .guards import Forbidden, check_template, forget_violations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .syntax import Grouped

_ALLOWED_MODULES = frozenset(MODULES)
_REFUSED = frozenset(REFUSED)
_CALLED_WITH_TEXT = TAKE_A_NAME | TELLING


class _Refused(Exception):
    """Carries the reason out of the walk."""


def screen(nodes: Grouped, guard: str = "") -> str:
    """Return why the program is refused, or "" when it is not. The modules it may use must have been imported.

    ``guard`` is the name of the builtin that looks at values whose attribute decides only at run time: with it the
    tree is changed so that they pass through it. Without it the tree stays as it is.
    """
    try:
        imports = _Imports(nodes)
        bound = _bound_names(nodes)
        read = {node.id for node in nodes.get(ast.Name, ())}
        attributes = {node.attr for node in nodes.get(ast.Attribute, ())}
        _check_names(nodes, read, attributes, bound)
        if imports.used:
            for node in nodes.get(ast.Attribute, ()):
                _check_attribute(node, imports)
            if "sys" in imports.used and not _reads_sys(nodes, imports):
                raise _Refused("import of sys")
        if imports.used or "format" in attributes or not _CALLED_WITH_TEXT.isdisjoint(read):
            for call in nodes.get(ast.Call, ()):
                _check_call(call, imports, nodes, bound)
        if imports.used:
            _check_random(nodes, imports)
        if ast.MatchClass in nodes or "__match_args__" in bound:
            reason = patterns.refusal(nodes, lambda node: _called_member(node, imports))
            if reason:
                raise _Refused(reason)
    except _Refused as refusal:
        return str(refusal)
    if guard:
        has_clocks = not _CLOCK_MODULES.isdisjoint(imports.used)
        rewrite.guard_attributes(nodes, guard, GUARDED if has_clocks else GUARDED - CLOCK_ATTRIBUTES)
    return ""


class _Imports:
    """What the program's imports bind: ``modules`` maps a name to a module's name, ``members`` to (module, member)."""

    def __init__(self, nodes: Grouped) -> None:
        self.modules: dict[str, str] = {}
        self.members: dict[str, tuple[str, str]] = {}
        self.used: set[str] = set()
        for node in nodes.get(ast.Import, ()):
            for alias in node.names:
                self.add_module(alias)
        for node in nodes.get(ast.ImportFrom, ()):
            self.add_members(node)

    def add_module(self, alias: ast.alias) -> None:
        if alias.name not in _ALLOWED_MODULES:
            raise _Refused(f"import of {alias.name[:80]}")
        self.used.add(alias.name)
        bound = alias.asname or alias.name.split(".")[0]
        self.modules[bound] = alias.name if alias.asname else alias.name.split(".")[0]

    def add_members(self, node: ast.ImportFrom) -> None:
        source = node.module or ""
        if node.level or source not in _ALLOWED_MODULES:
            raise _Refused(f"import from {source[:80] or 'a relative place'}")
        self.used.add(source)
        for alias in node.names:
            if alias.name == "*" and source == "random":
                raise _Refused(f"import of everything from {source}")
            check_member(source, alias.name)
            name = alias.asname or alias.name
            if f"{source}.{alias.name}" in _ALLOWED_MODULES:
                self.modules[name] = f"{source}.{alias.name}"
            else:
                self.members[name] = (source, alias.name)


def check_member(module_name: str, name: str) -> None:
    """Refuse a module's member that is private, impure or a door to a module that may not be imported."""
    if name == "*":
        return
    if module_name not in sys.modules:  # named in a way that the judge, choosing the zygote, could not read
        raise _Refused(f"import of {module_name}")
    if (name.startswith("_") and module_name != "__future__") or modules.is_hidden(module_name, name):
        raise _Refused(f"{module_name}.{name[:80]}")


def _reads_sys(nodes: Grouped, imports: _Imports) -> bool:
    """Whether ``sys`` is imported for one of its harmless names, and not as a value to be handed on."""
    read = [node.value for node in nodes.get(ast.Attribute, ())]
    return any(_module_of(node, imports) == "sys" for node in read) or ("sys" in dict(imports.members.values()))


def _bound_names(nodes: Grouped) -> set[str]:
    """Every name that the program binds anywhere: a builtin of the same name is then not what it means."""
    bound = {node.id for node in nodes.get(ast.Name, ()) if type(node.ctx) is ast.Store}
    bound.update([node.arg for node in nodes.get(ast.arg, ())])
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        bound.update([node.name for node in nodes.get(kind, ()) if node.name])
    bound.update([node.rest for node in nodes.get(ast.MatchMapping, ()) if node.rest])
    bound.update([node.asname or node.name.split(".")[0] for node in nodes.get(ast.alias, ())])
    return bound


def _check_names(nodes: Grouped, read: set[str], attributes: set[str], bound: set[str]) -> None:
    """Look at every name in every position: refused ones may stand nowhere, some builtins not be read."""
    everywhere = syntax.names(nodes) | read | attributes
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef):
        everywhere.update([node.name for node in nodes.get(kind, ()) if node.name not in DEFINABLE])
    if not _REFUSED.isdisjoint(everywhere):
        raise _Refused(refused_name(min(everywhere & _REFUSED)))
    for name in sorted(read & REFUSED_BUILTINS):
        if name not in bound or name.startswith("__"):
            raise _Refused(f"use of {name}")
    special = {name for name in everywhere if name[:2] == "__" and is_special(name) and name not in bound}
    if special:
        matched = [name for node in nodes.get(ast.MatchClass, ()) for name in node.kwd_attrs]
        for name in sorted(special):
            if name in read and name not in PLAIN_DUNDER_NAMES:
                raise _Refused(f"use of {name[:80]}")
            if (name in attributes or name in matched) and refused_attribute(name):
                raise _Refused(refused_attribute(name))


_CLOCK_MODULES = frozenset({"datetime", "calendar"})


def _check_attribute(node: ast.Attribute, imports: _Imports) -> None:
    if node.attr in CLOCK_ATTRIBUTES and _called_member(node.value, imports)[0] == "datetime":
        raise _Refused(f"reading the clock with .{node.attr}")
    module = _module_of(node.value, imports)
    if module:
        check_member(module, node.attr)
    if type(node.ctx) is not ast.Load:
        root: ast.AST = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and (root.id in imports.modules or root.id in imports.members):
            raise _Refused(f"changing {root.id}, which was imported")


def _module_of(node: ast.AST, imports: _Imports) -> str:
    """The name of the imported module that the expression stands for, or ""."""
    if isinstance(node, ast.Name):
        return imports.modules.get(node.id, "")
    if isinstance(node, ast.Attribute):
        parent = _module_of(node.value, imports)
        inner = f"{parent}.{node.attr}"
        return inner if parent and inner in _ALLOWED_MODULES else ""
    return ""


def _check_call(node: ast.Call, imports: _Imports, nodes: Grouped, bound: set[str]) -> None:
    """Refuse the refused names that stand as strings where a name is taken, and what is sure to tell an address."""
    function = node.func
    if type(function) is ast.Name:
        name = function.id
        if name in TAKE_A_NAME and len(node.args) > 1:
            _check_text(node.args[1])
        is_telling = name in TELLING and len(node.args) == 1 and name not in bound
        if is_telling and addresses.is_shown(name, node.args[0], nodes):
            raise _Refused(f"{name} of an object, which tells where it lies in memory")
    elif type(function) is ast.Attribute and function.attr == "format" and type(function.value) is ast.Constant:
        _check_fields(function.value.value)
    if imports.used and _called_member(function, imports) in _NAME_TAKERS:
        for argument in node.args:
            _check_text(argument)


_NAME_TAKERS = frozenset({("operator", "attrgetter"), ("operator", "methodcaller")})


def _check_text(node: ast.AST) -> None:
    if type(node) is ast.Constant and type(node.value) is str:
        for part in node.value.split("."):
            if refused_attribute(part):
                raise _Refused(refused_attribute(part))


def _check_fields(template: object) -> None:
    try:
        check_template(template if type(template) is str else "")
    except Forbidden as refusal:
        forget_violations()
        raise _Refused(str(refusal)) from None


def _called_member(function: ast.AST, imports: _Imports) -> tuple[str, str]:
    """(module, member) of what is called, when it is a member of an imported module; else ("", "")."""
    if isinstance(function, ast.Name):
        return imports.members.get(function.id, ("", ""))
    if isinstance(function, ast.Attribute):
        module = _module_of(function.value, imports)
        return (module, function.attr) if module else ("", "")
    return "", ""


def _check_random(nodes: Grouped, imports: _Imports) -> None:
    """Refuse drawing from an unseeded generator."""
    if "random" not in imports.used:
        return
    used = [_called_member(node, imports) for kind in (ast.Name, ast.Attribute) for node in nodes.get(kind, ())]
    drawn = next((member for module, member in used if module == "random" and member in SEEDED_ONLY), "")
    seeded = False
    for call in nodes.get(ast.Call, ()):
        module, member = _called_member(call.func, imports)
        if module == "random" and member in ("seed", "Random"):
            if not _has_seed(call):
                raise _Refused(f"random.{member} without a seed")
            seeded = seeded or member == "seed"
    if drawn and not seeded:
        raise _Refused(f"random.{drawn} without random.seed")


def _has_seed(call: ast.Call) -> bool:
    values = [*call.args[:1], *[pair.value for pair in call.keywords if pair.arg in ("a", "x")]]
    return bool(values) and not (isinstance(values[0], ast.Constant) and values[0].value is None)


_SET_OPERATORS = (ast.BitAnd, ast.BitOr, ast.Sub, ast.BitXor)
_READERS = frozenset(
    {
        "all", "any", "dict", "enumerate", "filter", "iter", "len", "list", "map", "max", "min", "reversed", "sorted",
        "sum", "tuple", "zip",
    }
)  # fmt: skip
"""Builtins that read a view through, and keep it to themselves."""


def uses_hash_order(nodes: Grouped) -> bool:
    """Tell whether sets or hashes may appear, so that agreement under two hash seeds would prove little."""
    if ast.Set in nodes or ast.SetComp in nodes:
        return True
    if not ORDER_NAMES.isdisjoint([node.id for node in nodes.get(ast.Name, ())]):
        return True
    attributes = {node.attr for node in nodes.get(ast.Attribute, ())}
    if not ORDER_ATTRIBUTES.isdisjoint(attributes) or any(map(_orders_by_text, nodes.get(ast.keyword, ()))):
        return True
    if any(alias.name in ORDER_ATTRIBUTES for node in nodes.get(ast.ImportFrom, ()) for alias in node.names):
        return True
    if any(name in VIEWS for node in nodes.get(ast.MatchClass, ()) for name in node.kwd_attrs):
        return True
    return not VIEWS.isdisjoint(attributes) and _is_set_made_of_views(nodes)


def _orders_by_text(pair: ast.keyword) -> bool:
    """Whether values are put in order by their texts, which may hold addresses."""
    return pair.arg == "key" and type(pair.value) is ast.Name and pair.value.id in TELLING


def _is_set_made_of_views(nodes: Grouped) -> bool:
    """Operations on the views of a dict give sets: is there an operator, and a view that it could meet?"""
    operations = [node for kind in (ast.BinOp, ast.AugAssign) for node in nodes.get(kind, ())]
    if not any(type(node.op) in _SET_OPERATORS for node in operations):
        return False
    read: set[int] = set()
    for kind in (ast.For, ast.AsyncFor, ast.comprehension):
        read.update([id(node.iter) for node in nodes.get(kind, ())])
    for node in nodes.get(ast.Call, ()):
        if (type(node.func) is ast.Name and node.func.id in _READERS) or (
            type(node.func) is ast.Attribute and node.func.attr in ("join", "extend", "update")
        ):
            read.update([id(argument) for argument in node.args])
    for node in nodes.get(ast.Compare, ()):
        read.update([id(side) for side in node.comparators])
    views = [node for node in nodes.get(ast.Attribute, ()) if node.attr in VIEWS]
    called = {id(node.func) for node in nodes.get(ast.Call, ()) if id(node) in read}
    return any(id(view) not in called for view in views)
