"""Guards at run time: every road by which a string becomes an attribute, a name or code.

``getattr`` and similar functions, ``operator.attrgetter``, format fields, namespaces as dicts, and the few places where
the library itself looks up or evaluates a text of the program's. A noted violation stands even if the program catches
the exception it raises.
"""

from __future__ import annotations

import _string
import builtins
import sys

from . import worlds
from .allowed import CLOCK_ATTRIBUTES, GUARDED, REFUSED_BUILTINS, refused_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

PROGRAM_NAME = "program"
"""What ``__name__`` is for a program: it was imported, not started, so its main block does not run."""
_ModuleType = type(sys)
_IMMUTABLE_TYPE = 1 << 8  # the flag of a class that the interpreter made
_flags = type.__dict__["__flags__"].__get__  # immune to metaclasses
_bound_to = super.__dict__["__self__"].__get__
_STREAMS = ("stdout", "stderr")


class Forbidden(BaseException):
    """Raised at run time where the static pass could not see; caught or not, the violation has been noted."""


_violations: list[str] = []
_is_on = [False]


def turn_on(is_gated: bool = True) -> None:
    """From now on this process runs a gated program, or none: the library's own look-ups are guarded too, or not."""
    _is_on[0] = is_gated


def violation() -> str:
    """The first violation noted since ``forget_violations``, or ""."""
    return _violations[0] if _violations else ""


def forget_violations() -> None:
    """Reset, before each input."""
    _violations.clear()
    _is_seeded[0] = False


def violate(reason: str) -> NoReturn:
    """Note a violation and raise it."""
    _violations.append(reason)
    raise Forbidden(reason)


def _checked(name: object) -> str:
    """The name as a plain string: a subclass could lie about what it equals. What is none is returned as it is."""
    if type(name) is not str:
        if not isinstance(name, str):
            return name  # type: ignore[return-value]
        name = str.__str__(name)
    reason = refused_attribute(name)
    if reason:
        violate(reason)
    if name == "__hash__":
        worlds.note()
    return name


def holder(value: object, name: str) -> object:
    """What the guarded attribute ``name`` of ``value`` may be read from: the value itself, or one that checks."""
    if name == "__dict__":
        _check_namespace(value)
    elif name == "__setattr__":
        _check_setter(value)
    elif name in CLOCK_ATTRIBUTES:
        _check_clock(value, name)
    elif type(value) is super:
        if isinstance(_bound_to(value), str):
            return _Template(str.__str__(_bound_to(value)))
    elif isinstance(value, type):
        if issubclass(value, str) and getattr(value, name) is str.__dict__[name]:
            return _Template
    elif isinstance(value, str) and getattr(type(value), name) is str.__dict__[name]:
        return _Template(str.__str__(value))
    return value


def _check_namespace(value: object) -> None:
    if isinstance(value, _ModuleType):
        violate("the namespace of a module")
    if isinstance(value, type) and _flags(value) & _IMMUTABLE_TYPE:
        violate("the namespace of a builtin class")


def _check_setter(value: object) -> None:
    """A class's attributes are set by ``setattr``, which looks at the name."""
    kind = _bound_to(value) if type(value) is super else value
    if isinstance(kind, type) and (kind is not value or issubclass(kind, type)):
        violate("the setter of a class")


def _check_clock(value: object, name: str) -> None:
    date = getattr(sys.modules.get("datetime"), "date", None)
    kind = _bound_to(value) if type(value) is super else value
    if date and (isinstance(kind, date) or (isinstance(kind, type) and issubclass(kind, date))):
        violate(f"reading the clock with .{name}")


def check_template(text: str) -> None:
    """Note a violation when a format text asks for a refused attribute."""
    if "." not in text:
        return
    try:
        for _, field, inner, _ in _string.formatter_parser(text):
            if field:
                for is_attribute, part in _string.formatter_field_name_split(field)[1]:
                    if is_attribute:
                        _checked(part)
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


def guarded_getattr(value: object, name: str, *default: object) -> object:
    """``getattr`` for a gated program and for what the library looks up in its name."""
    if not _is_on[0]:
        return getattr(value, name, *default)
    name = _checked(name)
    if name in GUARDED:
        value = holder(value, name)
    if value is sys and name not in _STREAMS:
        violate(f"sys.{name[:80]}")
    return getattr(value, name, *default)


def guarded_setattr(value: object, name: str, item: object) -> None:
    """``setattr`` likewise: no module changes, but for the streams that ``contextlib`` redirects."""
    if _is_on[0]:
        name = _checked(name)
        if isinstance(value, _ModuleType) and not (value is sys and name in _STREAMS):
            violate("changing a module")
    setattr(value, name, item)


def _hasattr(value: object, name: str) -> bool:
    _checked(name)
    return hasattr(value, name)


def _delattr(value: object, name: str) -> None:
    name = _checked(name)
    if isinstance(value, _ModuleType):
        violate("changing a module")
    delattr(value, name)


_Proxy = type(type.__dict__)


def _namespace(name: str) -> object:
    """What ``globals`` or ``locals`` gives where a guard was called: by the program, not by the library for it.

    The module's own namespace can be read and not written: who could put other builtins there would have no guards.
    """
    frame = sys._getframe(2)
    if frame.f_globals is not vars(sys.modules[PROGRAM_NAME]):
        violate("the namespace of a module")
    found: dict[str, object] = getattr(frame, name)
    if found is frame.f_globals:
        return _Proxy({key: value for key, value in found.items() if key != "__builtins__"})  # type: ignore[call-arg]
    return found


def _globals() -> object:
    return _namespace("f_globals")


def _locals() -> object:
    return _namespace("f_locals")


def _vars(*values: object) -> object:
    if not values:
        return _namespace("f_locals")
    _check_namespace(values[0])
    return vars(*values)


def _attrgetter(*names: str) -> object:
    """``operator.attrgetter``. Not the class itself: from an instance it could be had, and called with other names."""
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError("attribute name must be a string")
    paths = [tuple([_checked(part) for part in str.__str__(name).split(".")]) for name in names]

    def read(value: object) -> object:
        found = []
        for path in paths:
            reached = value
            for part in path:
                reached = guarded_getattr(reached, part)
            found.append(reached)
        return found[0] if len(found) == 1 else tuple(found)

    return read


def _methodcaller(name: str, /, *args: object, **kwargs: object) -> object:
    """``operator.methodcaller``, likewise."""
    if not isinstance(name, str):
        raise TypeError("method name must be a string")
    checked = _checked(name)
    return lambda value: guarded_getattr(value, checked)(*args, **kwargs)  # type: ignore[operator]


def _user_format(self: object, /, *args: object, **fields: object) -> str:
    """``collections.UserString.format``, whose template is a string of the program's."""
    return guarded_getattr(self.data, "format")(*args, **fields)  # type: ignore[attr-defined, operator, no-any-return]


def _user_format_map(self: object, fields: object) -> str:
    return guarded_getattr(self.data, "format_map")(fields)  # type: ignore[attr-defined, operator, no-any-return]


_is_seeded = [False]


def drawing(name: str, draw: Callable[..., object]) -> Callable[..., object]:
    """A function of ``random`` that draws from the shared generator: it must have been seeded."""

    def drawn(*args: object, **kwargs: object) -> object:
        if _is_on[0] and not _is_seeded[0]:
            violate(f"random.{name} without random.seed")
        return draw(*args, **kwargs)

    return drawn


def seeding(seed: Callable[..., object]) -> Callable[..., object]:
    """``random.seed``, with a seed."""

    def seeded(a: object = None, version: int = 2) -> None:
        if _is_on[0] and a is None:
            violate("random.seed without a seed")
        _is_seeded[0] = True
        seed(a, version)

    return seeded


def _guarded_exec(text: str, globals_: dict[str, object], locals_: dict[str, object]) -> None:
    """``exec`` for ``dataclasses``, which writes the names of fields into code: it runs as the program's own."""
    if not _is_on[0]:
        exec(text, globals_, locals_)
        return
    if not text.isascii():
        text = vars(sys.modules["unicodedata"])["normalize"]("NFKC", text)
    for word in _words(text):
        if refused_attribute(word) and word not in _OF_DATACLASSES:
            violate(refused_attribute(word))
    exec(text, vars(sys.modules[PROGRAM_NAME]), locals_)


_OF_DATACLASSES = frozenset({"__create_fn__", "__dataclass_builtins_object__", "__dataclass_self__"})


def _words(text: str) -> list[str]:
    return "".join([char if char.isalnum() or char == "_" else " " for char in text]).split()


def _guarded_compile(text: str, file_name: str, mode: str) -> object:
    """``compile`` for ``typing``, which evaluates annotations written as strings: types, and nothing that acts."""
    if _is_on[0]:
        for character in "(=:":
            if character in text:
                violate("an annotation that is no type")
        for word in _words(text):
            if word[:1] == "_" or refused_attribute(word):
                violate(f"{word[:80]} in an annotation")
    return compile(text, file_name, mode)


MEMBERS = {"operator.attrgetter": _attrgetter, "operator.methodcaller": _methodcaller}
"""What stands in for members of modules."""

_IN_LIBRARY: dict[str, dict[str, object]] = {
    "contextlib": {"getattr": guarded_getattr, "setattr": guarded_setattr},
    "dataclasses": {"exec": _guarded_exec, "getattr": guarded_getattr},
    "functools": {"getattr": guarded_getattr, "setattr": guarded_setattr},
    "pprint": {"getattr": guarded_getattr},
    "string": {"getattr": guarded_getattr},
    "typing": {"compile": _guarded_compile},
}
"""Modules that look up, or evaluate, a text which their caller chose: the builtins they do it with."""


def guard_library() -> None:
    """Put the guards into the library's modules. They do nothing until ``turn_on``."""
    for name, guards in _IN_LIBRARY.items():
        if name in sys.modules:
            vars(sys.modules[name]).update(guards)
    if "collections" in sys.modules:
        user_string = vars(sys.modules["collections"])["UserString"]
        user_string.format, user_string.format_map = _user_format, _user_format_map


def _refuser(name: str) -> object:
    def refuse(*args: object, **kwargs: object) -> None:
        violate(f"use of {name}")

    return refuse


def guarded_builtins() -> Iterator[tuple[str, object]]:
    """The builtins that a gated program gets instead of the original ones."""
    yield from [(name, _refuser(name)) for name in REFUSED_BUILTINS if hasattr(builtins, name)]
    yield from (("getattr", guarded_getattr), ("hasattr", _hasattr), ("setattr", guarded_setattr))
    yield from (("delattr", _delattr), ("globals", _globals), ("locals", _locals), ("vars", _vars))
