"""Guards in the library's own modules: the places where they look up, set or evaluate a text of the program's."""

from __future__ import annotations

import sys

from . import rewrite, syntax, worlds
from .allowed import GUARDED, refused_attribute, refused_name
from .guards import PROGRAM_NAME, attrgetter, checked, guarded_getattr, guarded_setattr, is_on, methodcaller, violate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _setattr_of_dataclasses(value: object, name: str, item: object) -> None:
    """``setattr`` for ``dataclasses``, whose names are those of fields: a program can rename a field."""
    if is_on():
        for part in item if name == "__match_args__" else (name,):  # type: ignore[attr-defined]
            if refused_name(part):
                violate(refused_name(part))
    setattr(value, name, item)


def _getattr_of_copy(value: object, name: str, *default: object) -> object:
    """``getattr`` for ``copy``: how an object reduces itself, whose state has attributes by the names of slots."""
    found = getattr(value, name, *default)
    if not is_on() or name not in ("__reduce_ex__", "__reduce__") or not callable(found):
        return found

    def reduce(*protocol: object) -> object:
        reduced = found(*protocol)
        state = reduced[2] if type(reduced) is tuple and len(reduced) > 2 else None
        if type(state) is tuple and len(state) == 2 and type(state[1]) is dict:
            for key in state[1]:
                checked(key)
        return reduced

    return reduce


def _user_format(self: object, /, *args: object, **fields: object) -> str:
    """``collections.UserString.format``, whose template is a string of the program's."""
    return guarded_getattr(self.data, "format")(*args, **fields)  # type: ignore[attr-defined, operator, no-any-return]


def _user_format_map(self: object, fields: object) -> str:
    return guarded_getattr(self.data, "format_map")(fields)  # type: ignore[attr-defined, operator, no-any-return]


def _guarded_exec(text: str, globals_: dict[str, object], locals_: dict[str, object]) -> None:
    """``exec`` for ``dataclasses``, which writes the names of fields into code: it runs as the program's own."""
    if not is_on():
        exec(text, globals_, locals_)
        return
    for word in _words(text):
        if refused_attribute(word) and word not in _OF_DATACLASSES:
            violate(refused_attribute(word))
    tree = syntax.parse(text, "<fields>")
    rewrite.guard_attributes(syntax.group(tree), rewrite.GUARD, GUARDED)
    exec(syntax.to_code(tree, "<fields>"), vars(sys.modules[PROGRAM_NAME]), locals_)


_OF_DATACLASSES = frozenset({"__create_fn__", "__dataclass_builtins_object__", "__dataclass_self__"})


def _words(text: str) -> list[str]:
    if not text.isascii():  # the parser reads names in this form
        text = vars(sys.modules["unicodedata"])["normalize"]("NFKC", text)
    return "".join([char if char.isalnum() or char == "_" else " " for char in text]).split()


def _guarded_compile(text: str, file_name: str, mode: str) -> object:
    """``compile`` for ``typing``, which evaluates annotations written as strings: types, and nothing that acts."""
    if is_on():
        for character in "(=:":
            if character in text:
                violate("an annotation that is no type")
        for word in _words(text):
            if word[:1] == "_" or word in GUARDED or refused_attribute(word):
                violate(f"{word[:80]} in an annotation")
    return compile(text, file_name, mode)


def _deepcopy(x: object, memo: object = None) -> object:
    """``copy.deepcopy``. The keys of a memo are addresses."""
    if memo is not None:
        worlds.note()
    return vars(sys.modules["copy"])["deepcopy"](x, memo)


def _compare_for_pprint(self: Any, other: Any) -> bool:
    """``pprint._safe_key.__lt__``, which puts what cannot be compared in the order of addresses."""
    try:
        return self.obj < other.obj  # type: ignore[no-any-return]
    except TypeError:
        return (str(type(self.obj)), worlds.place_of(self.obj)) < (str(type(other.obj)), worlds.place_of(other.obj))


MEMBERS = {
    "copy.deepcopy": _deepcopy,
    "operator.attrgetter": attrgetter,
    "operator.methodcaller": methodcaller,
}
"""What stands in for members of modules."""

_IN_LIBRARY: dict[str, dict[str, object]] = {
    "_collections_abc": {"hash": worlds.hash_of},
    "collections": {"hash": worlds.hash_of},
    "contextlib": {"getattr": guarded_getattr, "setattr": guarded_setattr},
    "copy": {"getattr": _getattr_of_copy, "setattr": guarded_setattr},
    "dataclasses": {"exec": _guarded_exec, "getattr": guarded_getattr, "setattr": _setattr_of_dataclasses},
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
    if "pprint" in sys.modules:
        vars(sys.modules["pprint"])["_safe_key"].__lt__ = _compare_for_pprint
