"""Guards in the library's own modules: where they look up, set or evaluate a text of the program's, or read a clock.

They are put in place once, in zygotes that run gated programs alone.
"""

from __future__ import annotations

import sys
import time

from . import gate, syntax
from .allowed import GUARDED, refused_attribute
from .guards import PROGRAM_NAME, ModuleType, checked, guarded_getattr, guarded_hash, guarded_setattr, refuser, violate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SET_BY_DATACLASSES = frozenset({"__hash__", "__match_args__", "__repr__", "__setattr__"})


def _setattr_of_dataclasses(value: object, name: str, item: object) -> None:
    """``setattr`` for ``dataclasses``, whose names are those of fields: a program can rename a field."""
    for part in item if name == "__match_args__" else (name,):  # type: ignore[attr-defined]
        if part not in _SET_BY_DATACLASSES and (refused_attribute(part) or part in GUARDED):
            violate(refused_attribute(part) or f"a field named {part}")
    setattr(value, name, item)


def _getattr_of_copy(value: object, name: str, *default: object) -> object:
    """``getattr`` for ``copy``: how an object reduces itself, whose state has attributes by the names of slots."""
    found = getattr(value, name, *default)
    if name not in ("__reduce_ex__", "__reduce__") or not callable(found):
        return found

    def reduce(*protocol: object) -> object:
        reduced = found(*protocol)
        state = reduced[2] if type(reduced) is tuple and len(reduced) > 2 else None
        if type(state) is tuple and len(state) == 2 and type(state[1]) is dict:
            for key in state[1]:
                checked(key)
        return reduced

    return reduce


def _guarded_exec(text: str, globals_: dict[str, object], locals_: dict[str, object]) -> None:
    """``exec`` for ``dataclasses``, which writes the names of fields into code: it runs as the program's own."""
    for word in _words(text):
        if refused_attribute(word) and word not in _OF_DATACLASSES:
            violate(refused_attribute(word))
    tree = syntax.parse(text, "<fields>")
    gate.guard_attributes(syntax.group(tree))
    exec(syntax.to_code(tree, "<fields>"), vars(sys.modules[PROGRAM_NAME]), locals_)


_OF_DATACLASSES = frozenset(
    {"__create_fn__", "__dataclass_builtins_object__", "__dataclass_self__", "__delattr__", "__setattr__"}
)


def _words(text: str) -> list[str]:
    if not text.isascii():  # the parser reads names in this form
        text = vars(sys.modules["unicodedata"])["normalize"]("NFKC", text)
    return "".join([char if char.isalnum() or char == "_" else " " for char in text]).split()


def _guarded_compile(text: str, file_name: str, mode: str) -> object:
    """``compile`` for ``typing``, which evaluates annotations written as strings: types, and nothing that acts."""
    for character in "(=:":
        if character in text:
            violate("an annotation that is no type")
    for word in _words(text):
        if word[:1] == "_" or word in GUARDED or refused_attribute(word):
            violate(f"{word[:80]} in an annotation")
    return compile(text, file_name, mode)


def _guard_evaluation(kind: Any) -> None:
    """Have ``ForwardRef._evaluate``, which ``functools`` ends in, look up only the program's own names."""
    evaluate = kind._evaluate

    def evaluate_own(reference: Any, globals_: object, locals_: object, *rest: object, **options: object) -> object:
        if not globals_ is locals_ is vars(sys.modules[PROGRAM_NAME]) or reference.__forward_module__ is not None:
            violate("an annotation of another module")
        return evaluate(reference, globals_, locals_, *rest, **options)

    kind._evaluate = evaluate_own


_GUARDS: dict[str, dict[str, object]] = {
    "copy": {"getattr": _getattr_of_copy, "setattr": guarded_setattr},
    "dataclasses": {"exec": _guarded_exec, "getattr": guarded_getattr, "setattr": _setattr_of_dataclasses},
    "functools": {"getattr": guarded_getattr, "setattr": guarded_setattr},
    "string": {"getattr": guarded_getattr},
    "typing": {"compile": _guarded_compile, "hash": guarded_hash},
    **{name: {"hash": guarded_hash} for name in ("_collections_abc", "datetime", "enum", "fractions")},
}
"""Modules that look up, evaluate or hash what their caller chose: the builtins they do it with."""


_CLOCKLESS = ("_STRUCT_TM_ITEMS", "altzone", "daylight", "mktime", "struct_time", "timezone", "tzname", "tzset")


def _of_given_time(name: str) -> object:
    """A function of ``time`` that reads the clock where its last argument is None or left out."""
    function, num_needed = vars(time)[name], 2 if name == "strftime" else 1

    def convert(*given: object) -> object:
        if len(given) < num_needed or given[-1] is None:
            violate("use of the clock")
        return function(*given)

    return convert


def guard_library() -> None:
    """Put the guards into the library's modules that are here. ``datetime`` must be the one written in Python."""
    for name, guards in _GUARDS.items():
        if name in sys.modules:
            vars(sys.modules[name]).update(guards)
    if "typing" in sys.modules:
        _guard_evaluation(vars(sys.modules["typing"])["ForwardRef"])
    if "enum" in sys.modules:  # it makes an enum of any module's names
        type.__delattr__(vars(sys.modules["enum"])["EnumType"], "_convert_")
    if "datetime" in sys.modules:
        clockless = ModuleType("time")
        vars(clockless).update({name: vars(time)[name] for name in _CLOCKLESS})
        vars(clockless).update({name: _of_given_time(name) for name in ("localtime", "gmtime", "strftime")})
        vars(clockless)["__getattr__"] = refuser("the clock")
        for name in {"datetime", "_pydatetime", "_strptime"}.intersection(sys.modules):
            for key in ("_time", "time"):
                if isinstance(vars(sys.modules[name]).get(key), ModuleType):
                    vars(sys.modules[name])[key] = clockless
    if "statistics" in sys.modules:  # it draws from the shared generator for its callers
        drawless = vars(sys.modules["statistics"])["random"] = ModuleType("random")
        vars(drawless)["__getattr__"] = refuser("random")
