"""The static gate: it looks once at a program's syntax and refuses what is impure, with the reason.

It is about honest mistakes and determinism, not about safety: the cage holds without it (and is tested without it).
Words inside strings and comments are harmless, because only syntax is looked at. What syntax cannot show
(``getattr`` with a computed name, an import by a computed name) is caught in ``runtime``, when it happens.
"""

from __future__ import annotations

import _ast as ast
import sys

from .allowed import (
    CLOCK_ATTRIBUTES,
    MODULES,
    ONLY_NAMES,
    PLAIN_DUNDER_NAMES,
    REFUSED_ATTRIBUTES,
    REFUSED_BUILTINS,
    REFUSED_NAMES,
    SEEDED_ONLY,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .syntax import Grouped

_ModuleType = type(sys)

_ALLOWED_MODULES = frozenset(MODULES)


class _Refused(Exception):
    """Carries the reason out of the walk."""


def screen(nodes: Grouped) -> str:
    """Return why the program is refused, or "" when it is not. The modules it may use must have been imported."""
    try:
        imports = _Imports(nodes)
        bound = _bound_names(nodes)
        for name in nodes.get(ast.Name, ()):
            _check_name(name.id, bound)
        for attribute in nodes.get(ast.Attribute, ()):
            _check_attribute(attribute, imports)
        if imports.used:
            for call in nodes.get(ast.Call, ()):
                _check_call(call, imports)
            _check_random(nodes, imports)
    except _Refused as refusal:
        return str(refusal)
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
            if alias.name == "*" and (source in ONLY_NAMES or source == "random"):
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
    if (name.startswith("_") and module_name != "__future__") or name in REFUSED_NAMES.get(module_name, ()):
        raise _Refused(f"{module_name}.{name[:80]}")
    if module_name in ONLY_NAMES and name not in ONLY_NAMES[module_name]:
        raise _Refused(f"{module_name}.{name[:80]}")
    if module_name not in sys.modules:  # named in a way that the judge, choosing the zygote, could not read
        raise _Refused(f"import of {module_name}")
    member = vars(sys.modules[module_name]).get(name)
    if isinstance(member, _ModuleType) and f"{module_name}.{name}" not in _ALLOWED_MODULES:
        raise _Refused(f"{module_name}.{name[:80]}")


def _bound_names(nodes: Grouped) -> set[str]:
    """Every name that the program binds anywhere: a builtin of the same name is then not what it means."""
    bound = {node.id for node in nodes.get(ast.Name, ()) if type(node.ctx) is ast.Store}
    bound.update([node.arg for node in nodes.get(ast.arg, ())])
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        bound.update([node.name for node in nodes.get(kind, ()) if node.name])
    bound.update([node.rest for node in nodes.get(ast.MatchMapping, ()) if node.rest])
    bound.update([node.asname or node.name.split(".")[0] for node in nodes.get(ast.alias, ())])
    return bound


def _check_name(name: str, bound: set[str]) -> None:
    if name in bound and not name.startswith("__"):
        return
    if name in REFUSED_BUILTINS:
        raise _Refused(f"use of {name}")
    if name.startswith("__") and name.endswith("__") and name not in PLAIN_DUNDER_NAMES and name not in bound:
        raise _Refused(f"use of {name[:80]}")


def _check_attribute(node: ast.Attribute, imports: _Imports) -> None:
    reason = refused_attribute(node.attr)
    if reason:
        raise _Refused(reason)
    if node.attr in CLOCK_ATTRIBUTES and "datetime" in imports.used:
        raise _Refused(f"reading the clock with .{node.attr}")
    module = _module_of(node.value, imports)
    if module:
        check_member(module, node.attr)
    if not isinstance(node.ctx, ast.Load):
        root: ast.AST = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and (root.id in imports.modules or root.id in imports.members):
            raise _Refused(f"changing {root.id}, which was imported")


def refused_attribute(name: str) -> str:
    """Return why the attribute is refused, or "". Called for literal names here and for computed ones at run time."""
    return f"attribute {name}" if name in REFUSED_ATTRIBUTES else ""


def _module_of(node: ast.AST, imports: _Imports) -> str:
    """The name of the imported module that the expression stands for, or ""."""
    if isinstance(node, ast.Name):
        return imports.modules.get(node.id, "")
    if isinstance(node, ast.Attribute):
        parent = _module_of(node.value, imports)
        inner = f"{parent}.{node.attr}"
        return inner if parent and inner in _ALLOWED_MODULES else ""
    return ""


def _check_call(node: ast.Call, imports: _Imports) -> None:
    called = _called_member(node.func, imports)
    if called in (("operator", "attrgetter"), ("operator", "methodcaller")):
        for argument in node.args[: 1 if called[1] == "methodcaller" else None]:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise _Refused(f"operator.{called[1]} with a computed name")
            for part in argument.value.split("."):
                if refused_attribute(part):
                    raise _Refused(refused_attribute(part))


def _called_member(function: ast.AST, imports: _Imports) -> tuple[str, str]:
    """(module, member) of what is called, when it is a member of an imported module; else ("", "")."""
    if isinstance(function, ast.Name):
        return imports.members.get(function.id, ("", ""))
    if isinstance(function, ast.Attribute):
        module = _module_of(function.value, imports)
        return (module, function.attr) if module else ("", "")
    return "", ""


def _check_random(nodes: Grouped, imports: _Imports) -> None:
    """Refuse drawing from a generator that nobody seeded."""
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


_SET_NAMES = frozenset({"set", "frozenset", "hash"})
_SET_METHODS = frozenset({"intersection", "union", "difference", "symmetric_difference"})


def uses_hash_order(nodes: Grouped) -> bool:
    """Tell whether sets or hashes appear, so that agreement under two hash seeds would prove little."""
    return (
        ast.Set in nodes
        or ast.SetComp in nodes
        or any(node.id in _SET_NAMES for node in nodes.get(ast.Name, ()))
        or any(node.attr in _SET_METHODS for node in nodes.get(ast.Attribute, ()))
        # Operations on the views of a dict give sets.
        or any(_is_dict_view(node.left) or _is_dict_view(node.right) for node in nodes.get(ast.BinOp, ()))
    )


def _is_dict_view(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")
