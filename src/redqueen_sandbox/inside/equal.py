"""Objects of the standard library that equal a plain value, and how to see that value without asking the program.

- ``Counter``, ``defaultdict`` and ``OrderedDict`` equal a dict, and a named tuple a tuple: Python's ``==`` says so.
- A ``deque`` equals no plain value. It counts as the list of its items, the one plain value that holds the same.

Only the library's own classes count, as they were before the program ran, and named tuples, which are classes that
a program makes, if they define nothing about being equal or being walked through. What they hold is read through
the builtin types' methods.
"""

from __future__ import annotations

import sys

from . import inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_mro_of = type.__dict__["__mro__"].__get__
_names_of = type.__dict__["__dict__"].__get__  # both are immune to metaclasses
_OVERRIDES = frozenset(
    {
        "__class__", "__contains__", "__eq__", "__getattribute__", "__getitem__", "__hash__", "__iter__", "__len__",
        "__ne__",
    }
)  # fmt: skip

# Classes are looked up by their id: to compare or to hash one would ask its metaclass, which may be the program's.
_dicts: set[int] = set()
_lists: set[int] = set()
_named_tuples_allowed: list[type] = []  # where the gate sees the programs

VALUES = {
    "complex": "builtins", "range": "builtins", "date": "datetime", "datetime": "datetime", "time": "datetime",
    "timedelta": "datetime", "Decimal": "decimal", "Fraction": "fractions",
}  # fmt: skip
"""Further classes of values that unit tests compare, and their modules: such a value is written as a call."""


def remember_classes(is_gated: bool) -> None:
    """Note the library's classes, if it is there. Called once in a zygote, which runs no untrusted code."""
    if "collections" in sys.modules:
        names = vars(sys.modules["collections"])
        _dicts.update(map(id, (names["Counter"], names["defaultdict"], names["OrderedDict"])))
        _lists.add(id(names["deque"]))
    _named_tuples_allowed[:] = [tuple] * is_gated
    inputs.NAMES.update(
        {name: vars(sys.modules[module])[name] for name, module in VALUES.items() if module in sys.modules}
    )


def arguments_of(value: Any) -> tuple[str, Any]:
    """The name of the value's class if it is one of ``VALUES``, else "", and what to call it with."""
    kind: Any = type(value)
    name = next((name for name in VALUES if inputs.NAMES.get(name) is kind), "")
    return name, (value.real, value.imag) if kind is complex else kind.__reduce__(value)[1] if name else ()


def plain_value(value: object, allow_named_tuples: bool) -> tuple[type, object] | None:
    """Return the builtin type whose value the object equals, and an object that this type's methods can read.

    None: it equals no plain value.
    """
    kind = type(value)
    if id(kind) in _dicts:
        return dict, value
    if id(kind) in _lists:
        return list, list(value)  # type: ignore[call-overload]
    return (tuple, value) if (allow_named_tuples or _named_tuples_allowed) and _is_named_tuple(kind) else None


def _is_named_tuple(kind: type) -> bool:
    """Tell whether a class is a named tuple that is equal and walked through as tuples are."""
    bases = _mro_of(kind)
    if len(bases) < 2 or bases[-2] is not tuple:
        return False
    has_fields = False
    for base in bases[:-2]:
        for name in _names_of(base):
            if type(name) is not str or name in _OVERRIDES:
                return False
            has_fields = has_fields or name == "_fields"
    return has_fields
