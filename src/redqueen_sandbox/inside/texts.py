"""The texts of objects that have none of their own, which tell where the objects lie: addresses made for the world.

An address in such a text is replaced by a number that says when the object was first shown, in one world, and by its
complement in the partner: so every bit of it, and the order of any two, differs between the two with certainty. A
program that was given such a text runs in further worlds, each with numbers of its own.
"""

from __future__ import annotations

import _thread
import _weakref
import ctypes

from . import worlds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Text = Callable[[Any], str]

_TP_REPR = 88  # where a type object of CPython on a 64-bit machine keeps the slot
_MARK = " at 0x"
_NUM_BITS = 43  # of an address of 47 bits the lowest four are the same everywhere
_STEP = 2_654_435_761


class _Model:
    """A class whose ``__repr__`` is a Python function: its slot holds the interpreter's own way to call one."""

    def __repr__(self) -> str:
        return ""


def enter() -> None:
    """Have this process show such texts, once, before it forks anything. ``worlds.enter`` comes first."""

    async def coroutine() -> None:
        return None

    async def generator() -> Any:
        yield

    begun = coroutine()
    begun.close()
    functions = (type(enter), type(len), type((1).__add__), type(_ for _ in ()), type(begun), type(generator()))
    others = (type((lambda: begun).__closure__[0]), memoryview, _thread.RLock, _weakref.ref)  # type: ignore[index]
    ours = _slot_of(_Model).value
    for kind in (object, *functions, *others):
        original = kind.__dict__["__repr__"]
        native = _slot_of(kind).value
        if native != ctypes.c_void_p.from_address(id(original) + worlds.D_WRAPPED).value:
            raise OSError(f"this interpreter keeps {kind.__name__}.__repr__ elsewhere")
        worlds.attributes_of(kind)["__repr__"] = _shown(original)
        for heir in _heirs(kind):
            if _slot_of(heir).value == native:
                _slot_of(heir).value = ours
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _slot_of(kind: type) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(kind) + _TP_REPR)


def _heirs(kind: type) -> list[type]:
    """The type and all that are made of it."""
    found = [kind]
    for known in found:
        heirs: list[type] = type.__subclasses__(known)
        found += [heir for heir in heirs if heir not in found]
    return found


_numbers: dict[str, int] = {}
"""In which order addresses were first shown."""


def _shown(original: Text) -> Text:
    """A ``__repr__`` for this world."""

    def show(value: Any) -> str:
        text = original(value)
        return _elsewhere(text) if worlds.is_running() else text

    return show


def _elsewhere(text: str) -> str:
    """The text with another address in place of each."""
    first, *parts = text.split(_MARK)
    return first + "".join([_MARK + _moved(part) for part in parts])


def _moved(part: str) -> str:
    digits = part[: len(part) - len(part.lstrip("0123456789abcdef"))]
    if not digits:
        return part
    worlds.note()
    number, pair = worlds.number_and_pair()
    place = (_numbers.setdefault(digits, len(_numbers)) + 1) * (_STEP + 2 * pair) % (1 << _NUM_BITS)
    if number % 2:
        place = (1 << _NUM_BITS) - 1 - place
    return f"{place << 4:012x}{part[len(digits) :]}"
