"""Guards at run time: every road by which a string becomes an attribute, a name or code.

``getattr`` and similar functions, ``operator.attrgetter``, format fields, namespaces as dicts, imports. A noted
violation stands even if the program catches the exception it raises.
"""

from __future__ import annotations

import _string
import builtins
import os
import sys

from . import allowed
from .allowed import GUARDED, HELPERS, refused_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType as Module
    from typing import Any, NoReturn

GUARD = f"<guard {os.urandom(8).hex()}>"
"""The name of ``holder`` among the builtins: no program can write it, or know it."""
PROGRAM_NAME = "program"
"""What ``__name__`` is for a program: it was imported, not started, so its main block does not run."""
ModuleType = type(sys)
_IMMUTABLE_TYPE = 1 << 8  # the flag of a class that the interpreter made
_flags = type.__dict__["__flags__"].__get__  # immune to metaclasses
_Proxy = type(type.__dict__)
_BoundBuiltin = type("".format)
_MAX_RECURSION = 10_000  # deeper, nested C calls would run out of stack


class Forbidden(BaseException):
    """Raised at run time where the static pass could not see; caught or not, the violation has been noted."""


_violations: list[str] = []


def violation() -> str:
    """The first violation noted since ``forget_violations``, or ""."""
    return _violations[0] if _violations else ""


def forget_violations() -> None:
    """Reset, before each input."""
    _violations.clear()


def violate(reason: str) -> NoReturn:
    """Note a violation and raise it."""
    _violations.append(reason)
    raise Forbidden(reason)


# ---- attributes ----------------------------------------------------------------------------------


def checked(name: object) -> str:
    """The name as a plain string: a subclass could lie about what it equals. What is none is returned as it is."""
    if type(name) is not str:
        if not isinstance(name, str):
            return name  # type: ignore[return-value]
        name = str.__str__(name)
    reason = refused_attribute(name)
    if reason:
        violate(reason)
    return name


def holder(value: object, name: str) -> object:
    """What the guarded attribute ``name`` of ``value`` may be read from: the value itself, or one that checks.

    What is found decides, not what it is asked of: a proxy, ``super`` or a metaclass can lead anywhere.
    """
    if name == "__dict__":
        return _Held(_names_of(value))
    found: Any = getattr(value, name)
    if type(found) in _WRAPPERS and name == "__hash__":
        return _Held(_salted(found))
    if type(found) in _WRAPPERS and name == "__repr__" and found.__objclass__ in (object, type):
        violate("the address of an object")
    if found is str.__dict__[name]:
        return _Template
    if type(found) is _BoundBuiltin and found.__name__ == name and isinstance(found.__self__, str):  # type: ignore[attr-defined]
        return _Template(str.__str__(found.__self__))  # type: ignore[attr-defined]
    return _Held(found)


_WRAPPERS = (type(object.__hash__), type("".__hash__))
_HASHED_BY_VALUE: set[object] = {int, float, complex, str, bytes}


def _shows_address(value: Any, owner: Any = None) -> bool:
    """Whether a value's hash is made of an address: of None, a class or a builtin it is the same in all processes."""
    found: Any = type.__getattribute__(type(value), "__hash__")
    if owner is None and type(found) is not _WRAPPERS[0]:  # a function of Python's, or none
        return False
    owner = owner or found.__objclass__
    if owner is tuple or owner is frozenset:
        return any([_shows_address(item) for item in owner.__iter__(value)])
    return owner not in _HASHED_BY_VALUE


def _salted(found: Any) -> object:
    """A builtin ``__hash__`` that was looked up, which differs from process to process where it shows an address."""
    return lambda *values: _salt(found(*values), values[0] if values else found.__self__, found.__objclass__)


def _salt(real: int, value: object, owner: object = None) -> int:
    return hash(("address", real)) if _shows_address(value, owner) else real


def guarded_hash(value: object) -> int:
    """``hash`` likewise, for a gated program and for the library."""
    return _salt(hash(value), value)


class _Held:
    """Gives what was found, whatever it is asked for."""

    __slots__ = ("_found",)

    def __init__(self, found: object) -> None:
        self._found = found

    def __getattribute__(self, name: str) -> object:
        return _found_by(self)


_found_by = vars(_Held)["_found"].__get__


def _names_of(value: object) -> object:
    """``value.__dict__``. Of a class it is a copy (what stands behind a proxy is handed to whoever compares itself),
    and its keys are checked like the names of attributes."""
    found = value.__dict__
    if type(found) is _Proxy:
        if not issubclass(type(value), type) or _flags(value) & _IMMUTABLE_TYPE:
            violate("the namespace of a builtin class")
        copied = dict(found)  # type: ignore[call-overload]
        for key in copied.keys() - allowed.HARMLESS_KEYS:
            checked(key)
        return _Proxy(copied)  # type: ignore[call-arg]
    if isinstance(value, ModuleType) or (type(found) is dict and "__loader__" in found and "__spec__" in found):
        violate("the namespace of a module")
    return found


def check_template(text: str) -> None:
    """Note a violation when a format text asks for a refused attribute."""
    if "." not in text:
        return
    try:
        for _, field, inner, _ in _string.formatter_parser(text):
            if field:
                for is_attribute, part in _string.formatter_field_name_split(field)[1]:
                    if is_attribute:
                        checked(part)
            if inner:
                check_template(inner)
    except ValueError:
        return  # the formatting itself will say so


class _Template(str):
    """A string whose format fields are looked at before they are filled in."""

    __slots__ = ()

    def format(*args: object, **fields: object) -> str:
        first, *values = args
        text = str.__str__(first)  # type: ignore[arg-type]
        check_template(text)
        return str.format(text, *values, **fields)

    def format_map(self, fields: object) -> str:
        text = str.__str__(self)
        check_template(text)
        return str.format_map(text, fields)  # type: ignore[arg-type]


def guarded_getattr(value: object, name: str, /, *default: object) -> object:
    """``getattr`` for a gated program and for what the library looks up in its name."""
    name = checked(name)
    if name in GUARDED:
        value = holder(value, name)
    return getattr(value, name, *default)


def guarded_setattr(value: object, name: str, item: object, /) -> None:
    """``setattr`` likewise; a class keeps its bases."""
    name = checked(name)
    if name == "__bases__":
        violate("changing __bases__")
    setattr(value, name, item)


def _hasattr(value: object, name: str, /) -> bool:
    checked(name)
    return hasattr(value, name)


def _delattr(value: object, name: str, /) -> None:
    delattr(value, checked(name))


def attrgetter(*names: str) -> object:
    """``operator.attrgetter``. Not the class itself: from an instance it could be had, and called with other names."""
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError("attribute name must be a string")
    paths = [tuple([checked(part) for part in str.__str__(name).split(".")]) for name in names]

    def read(value: object) -> object:
        found = []
        for path in paths:
            reached = value
            for part in path:
                reached = guarded_getattr(reached, part)
            found.append(reached)
        return found[0] if len(found) == 1 else tuple(found)

    return staticmethod(read)  # it binds no instance, as that does not


def methodcaller(name: str, /, *args: object, **kwargs: object) -> object:
    """``operator.methodcaller``, likewise."""
    if not isinstance(name, str):
        raise TypeError("method name must be a string")
    plain_name = checked(name)
    return staticmethod(lambda value: guarded_getattr(value, plain_name)(*args, **kwargs))  # type: ignore[operator]


# ---- namespaces and imports ----------------------------------------------------------------------


def _vars(*values: object) -> object:
    if not values:
        violate("use of locals")
    if len(values) == 1 and hasattr(values[0], "__dict__"):
        return _names_of(values[0])
    return vars(*values)


_modules: dict[str, Module] = {}
_MEMBERS: dict[str, object] = {"operator.attrgetter": attrgetter, "operator.methodcaller": methodcaller}


def _import(
    name: str,
    globals_: Mapping[str, object] | None = None,
    locals_: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Module:
    if level == 0 and name in _modules:
        return _modules[name if fromlist else name.split(".")[0]]
    if level == 0 and name in HELPERS and name in sys.modules:
        return ModuleType(name)  # the interpreter's own C code takes the module itself from ``sys.modules``
    violate(f"import of {name[:80]}")


def make_modules(stream: object) -> None:
    """Make, once in a zygote, what a program finds when it imports: the public names of each pure module, no more.

    ``stream``: where its prints go."""
    for name in allowed.PURE:
        if name not in sys.modules:
            continue
        members = vars(sys.modules[name])
        made = _modules[name] = ModuleType(name)
        public = allowed.ONLY_NAMES.get(name) or members.get("__all__") or [key for key in members if key[:2] != "__"]
        for key in frozenset(public).intersection(members) - allowed.REFUSED_NAMES.get(name, frozenset()):
            if not isinstance(members[key], ModuleType) and (key[0] != "_" or "__all__" in members):
                vars(made)[key] = _MEMBERS.get(f"{name}.{key}", members[key])
        if "__all__" in members:  # what an import of everything takes
            vars(made)["__all__"] = [key for key in members["__all__"] if key in vars(made)]
        vars(made)["__getattr__"] = _look(name)
        if "." in name:
            parent, _, child = name.rpartition(".")
            vars(_modules[parent])[child] = made
    if "decimal" in _modules:
        _HASHED_BY_VALUE.add(vars(_modules["decimal"])["Decimal"])
    if "sys" in _modules:
        vars(_modules["sys"]).update(setrecursionlimit=_set_recursion_limit, stdout=stream, stderr=stream)


def _look(module_name: str) -> object:
    """A module's own ``__getattr__``: asking for a name that only the real one has is noted."""

    def look(name: str) -> object:
        if name[:2] != "__" and name in vars(sys.modules[module_name]):
            violate(f"{module_name}.{name[:80]}")
        raise AttributeError(f"module {module_name!r} has no attribute {name!r}")

    return look


own_frames = 0
"""How many frames the harness has, and adds in a second run: a limit that a program sets is for its own."""


def _set_recursion_limit(limit: int) -> None:
    sys.setrecursionlimit(min(limit, _MAX_RECURSION) + own_frames if limit > 0 else limit)


class Missing:
    """The last place where the interpreter looks for a module or a codec: what is not here by now is refused, so that
    no program gets another value from its absence."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        violate(f"import of {name[:80]}")


def refuser(name: str) -> object:
    """A function that notes a violation."""

    def refuse(*args: object, **kwargs: object) -> None:
        violate(f"use of {name}")

    return refuse


def _guarded_builtins() -> Iterator[tuple[str, object]]:
    yield from [(name, refuser(name)) for name in allowed.REFUSED_BUILTINS if hasattr(builtins, name)]
    for guard in (guarded_getattr, _hasattr, guarded_setattr, _delattr, _vars, guarded_hash):
        guard.__name__ = guard.__qualname__ = guard.__name__.rpartition("_")[2]
        yield guard.__name__, staticmethod(guard)  # it binds no instance, as the builtin does not
    yield from (("__import__", _import), (GUARD, holder))


PROGRAM_BUILTINS = {**vars(builtins), **dict(_guarded_builtins())}
"""The builtins that a gated program gets: one dict for all inputs, since to copy it is to touch all it holds."""
