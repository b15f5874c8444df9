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
_Proxy = type(type.__dict__)
_BoundBuiltin = type("".format)
_BoundSlot = type("".__str__)


class Forbidden(BaseException):
    """Raised at run time where the static pass could not see; caught or not, the violation has been noted."""


_violations: list[str] = []
_is_on = [False]


def turn_on(is_gated: bool = True) -> None:
    """From now on this process runs a gated program, or none: the library's own look-ups are guarded too, or not."""
    _is_on[0] = is_gated


def is_on() -> bool:
    """Whether a gated program runs."""
    return _is_on[0]


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


def checked(name: object) -> str:
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
    """What the guarded attribute ``name`` of ``value`` may be read from: the value itself, or one that checks.

    What is found decides, not what it is asked of: a proxy, ``super`` or a metaclass can lead anywhere.
    """
    if name in CLOCK_ATTRIBUTES:
        _check_clock(value, name)
        return value
    if name == "__dict__":
        return _Held(_names_of(value))
    found = getattr(value, name)
    if name == "__setattr__":
        _check_setter(found)
    elif found is str.__dict__[name]:
        return _Template
    elif type(found) is _BoundBuiltin and found.__name__ == name and isinstance(found.__self__, str):  # type: ignore[attr-defined]
        return _Template(str.__str__(found.__self__))  # type: ignore[attr-defined]
    return _Held(found)


class _Held:
    """Gives what was found, whatever it is asked for."""

    __slots__ = ("_found",)

    def __init__(self, found: object) -> None:
        self._found = found

    def __getattribute__(self, name: str) -> object:
        return _found_by(self)


_found_by = vars(_Held)["_found"].__get__


def _names_of(value: object) -> object:
    """``value.__dict__``. Of a class it is a copy: what stands behind a proxy is handed to whoever compares itself."""
    found = value.__dict__
    if type(found) is _Proxy:
        if not issubclass(type(value), type) or _flags(value) & _IMMUTABLE_TYPE:
            violate("the namespace of a builtin class")
        return _Proxy(dict(found))  # type: ignore[call-arg]
    if isinstance(value, _ModuleType) or (type(found) is dict and "__loader__" in found and "__spec__" in found):
        violate("the namespace of a module")
    return found


def _check_setter(found: object) -> None:
    """A class's attributes are set by ``setattr``, which looks at the name."""
    is_bound_to_class = type(found) is _BoundSlot and issubclass(type(found.__self__), type)  # type: ignore[attr-defined]
    if found is type.__dict__["__setattr__"] or is_bound_to_class:
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


def guarded_getattr(value: object, name: str, *default: object) -> object:
    """``getattr`` for a gated program and for what the library looks up in its name."""
    if not _is_on[0]:
        return getattr(value, name, *default)
    name = checked(name)
    if name in GUARDED:
        value = holder(value, name)
    if value is sys and name not in _STREAMS:
        violate(f"sys.{name[:80]}")
    return getattr(value, name, *default)


def guarded_setattr(value: object, name: str, item: object) -> None:
    """``setattr`` likewise: no module changes, but for the streams that ``contextlib`` redirects."""
    if _is_on[0]:
        name = checked(name)
        if isinstance(value, _ModuleType) and not (value is sys and name in _STREAMS):
            violate("changing a module")
        if name in ("__bases__", "__class__") and issubclass(type(value), type):
            violate(f"changing {name} of a class")
    setattr(value, name, item)


def _hasattr(value: object, name: str) -> bool:
    checked(name)
    return hasattr(value, name)


def _delattr(value: object, name: str) -> None:
    name = checked(name)
    if isinstance(value, _ModuleType):
        violate("changing a module")
    delattr(value, name)


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
    if len(values) == 1 and hasattr(values[0], "__dict__"):
        return _names_of(values[0])
    return vars(*values)


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

    return read


def methodcaller(name: str, /, *args: object, **kwargs: object) -> object:
    """``operator.methodcaller``, likewise."""
    if not isinstance(name, str):
        raise TypeError("method name must be a string")
    plain_name = checked(name)
    return lambda value: guarded_getattr(value, plain_name)(*args, **kwargs)  # type: ignore[operator]


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


def _refuser(name: str) -> object:
    def refuse(*args: object, **kwargs: object) -> None:
        violate(f"use of {name}")

    return refuse


def guarded_builtins() -> Iterator[tuple[str, object]]:
    """The builtins that a gated program gets instead of the original ones."""
    yield from [(name, _refuser(name)) for name in REFUSED_BUILTINS if hasattr(builtins, name)]
    yield from (("getattr", guarded_getattr), ("hasattr", _hasattr), ("setattr", guarded_setattr))
    yield from (("delattr", _delattr), ("globals", _globals), ("locals", _locals), ("vars", _vars))
