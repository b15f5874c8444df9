"""The static gate: one pass over a program's syntax that refuses what is impure, with the reason.

It is about honest mistakes and determinism, not about safety: the cage holds without it (and is tested without it).
Words inside strings and comments are harmless, because only syntax is looked at. What syntax cannot show
(``getattr`` with a computed name, an import by a computed name) is caught when it happens: the builtins that a
program gets note a violation, and a noted violation stands even if the program catches the exception.
"""

from __future__ import annotations

import _ast as ast
import builtins
import sys
import time

from .allowed import (
    CLOCK_ATTRIBUTES,
    HELPERS,
    MODULES,
    ONLY_NAMES,
    PLAIN_DUNDER_NAMES,
    REFUSED_ATTRIBUTES,
    REFUSED_BUILTINS,
    REFUSED_NAMES,
    SEEDED_ONLY,
)
from .syntax import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType as Module

ModuleType = type(sys)

_ALLOWED_MODULES = frozenset(MODULES)


class _Refused(Exception):
    """Carries the reason out of the walk."""


def screen(tree: ast.AST) -> str:
    """Return why the program is refused, or "" when it is not. The modules it may use must have been imported."""
    nodes = list(walk(tree))
    try:
        imports = _Imports(nodes)
        bound = _bound_names(nodes)
        for node in nodes:
            if isinstance(node, ast.Name):
                _check_name(node, bound)
            elif isinstance(node, ast.Attribute):
                _check_attribute(node, imports)
            elif isinstance(node, ast.Call):
                _check_call(node, imports)
        _check_random(nodes, imports)
    except _Refused as refusal:
        return str(refusal)
    return ""


class _Imports:
    """What the program's imports bind: ``modules`` maps a name to a module's name, ``members`` to (module, member)."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.modules: dict[str, str] = {}
        self.members: dict[str, tuple[str, str]] = {}
        self.used: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.add_module(alias)
            elif isinstance(node, ast.ImportFrom):
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
    if isinstance(member, ModuleType) and f"{module_name}.{name}" not in _ALLOWED_MODULES:
        raise _Refused(f"{module_name}.{name[:80]}")


def _bound_names(nodes: Sequence[ast.AST]) -> set[str]:
    """Every name that the program binds anywhere: a builtin of the same name is then not what it means."""
    bound: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bound.add(node.rest)
    return bound


def _check_name(node: ast.Name, bound: set[str]) -> None:
    name = node.id
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


def _check_random(nodes: Sequence[ast.AST], imports: _Imports) -> None:
    """Refuse drawing from a generator that nobody seeded."""
    if "random" not in imports.used:
        return
    drawn = ""
    seeded = False
    for node in nodes:
        module, member = _called_member(node, imports) if isinstance(node, ast.Name | ast.Attribute) else ("", "")
        if module == "random" and member in SEEDED_ONLY:
            drawn = member
        if isinstance(node, ast.Call):
            module, member = _called_member(node.func, imports)
            if module == "random" and member in ("seed", "Random"):
                if not _has_seed(node):
                    raise _Refused(f"random.{member} without a seed")
                seeded = seeded or member == "seed"
    if drawn and not seeded:
        raise _Refused(f"random.{drawn} without random.seed")


def _has_seed(call: ast.Call) -> bool:
    values = [*call.args[:1], *[pair.value for pair in call.keywords if pair.arg in ("a", "x")]]
    return bool(values) and not (isinstance(values[0], ast.Constant) and values[0].value is None)


_SET_NAMES = frozenset({"set", "frozenset", "hash"})
_SET_METHODS = frozenset({"intersection", "union", "difference", "symmetric_difference"})


def uses_hash_order(tree: ast.AST) -> bool:
    """Tell whether sets or hashes appear, so that agreement under two hash seeds would prove little."""
    for node in walk(tree):
        if isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Name) and node.id in _SET_NAMES):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _SET_METHODS:
            return True
        if isinstance(node, ast.BinOp) and (_is_dict_view(node.left) or _is_dict_view(node.right)):
            return True  # operations on the views of a dict give sets
    return False


def _is_dict_view(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")


# ---- what a program finds at run time -------------------------------------------------------------------------------


class Forbidden(BaseException):
    """Raised at run time where the static pass could not see; caught or not, the violation has been noted."""


_violations: list[str] = []


def violation() -> str:
    """The first violation noted since ``forget_violations``, or ""."""
    return _violations[0] if _violations else ""


def forget_violations() -> None:
    """Start anew, before each input."""
    _violations.clear()


def _violate(reason: str) -> None:
    _violations.append(reason)
    raise Forbidden(reason)


def _checked_name(name: object) -> None:
    if isinstance(name, str) and refused_attribute(name):
        _violate(refused_attribute(name))


def _getattr(value: object, name: str, *default: object) -> object:
    _checked_name(name)
    return getattr(value, name, *default)


def _hasattr(value: object, name: str) -> bool:
    _checked_name(name)
    return hasattr(value, name)


def _setattr(value: object, name: str, item: object) -> None:
    _checked_name(name)
    if isinstance(value, ModuleType):
        _violate("changing a module")
    setattr(value, name, item)


def _delattr(value: object, name: str) -> None:
    _checked_name(name)
    if isinstance(value, ModuleType):
        _violate("changing a module")
    delattr(value, name)


def _import(
    name: str,
    globals_: Mapping[str, object] | None = None,
    locals_: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Module:
    if level or (name not in _ALLOWED_MODULES and name not in HELPERS):
        _violate(f"import of {name[:80]}")
    found = sys.modules.get(name if fromlist else name.split(".")[0])
    if found is None:
        raise ImportError(name)
    return found


clockless_time = ModuleType("time")
"""What an import of ``time`` finds that the interpreter makes in a gated program's name (``strftime`` does)."""
vars(clockless_time).update(strftime=time.strftime, struct_time=time.struct_time, mktime=time.mktime)


def _refuser(name: str) -> object:
    def refuse(*args: object, **kwargs: object) -> None:
        _violate(f"use of {name}")

    return refuse


def _program_builtins() -> Iterator[tuple[str, object]]:
    for name, value in vars(builtins).items():
        yield name, _refuser(name) if name in REFUSED_BUILTINS else value
    yield from (("getattr", _getattr), ("hasattr", _hasattr), ("setattr", _setattr), ("delattr", _delattr))
    yield "__import__", _import


_BUILTINS = dict(_program_builtins())


def program_builtins() -> dict[str, object]:
    """A fresh copy of the builtins that a gated program gets."""
    return dict(_BUILTINS)
