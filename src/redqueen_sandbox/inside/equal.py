"""Standard library objects that equal a plain value, and how to read that value without calling the program's code.

- ``Counter``, ``defaultdict`` and ``OrderedDict`` equal a dict, and a named tuple equals a tuple, by Python's ``==``.
- A ``deque`` equals no plain value. It counts as the list of its items.

Only the library's own classes count, as they were before the program ran. Named tuples are classes of the program: they
count if they do not override comparison or iteration. Contents are read through the methods of the builtin types.
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

# Classes are identified by id: comparing or hashing a class calls its metaclass, which may be the program's.
_dicts: set[int] = set()
_lists: set[int] = set()
_named_tuples_allowed: list[type] = []  # not empty: programs are gated, so named tuples count as tuples

VALUES = {
    "complex": "builtins", "range": "builtins", "date": "datetime", "datetime": "datetime", "time": "datetime",
    "timedelta": "datetime", "Decimal": "decimal", "Fraction": "fractions",
}  # fmt: skip
"""Further classes of values that unit tests may compare, with their modules. Such a value is written as a call."""


def remember_classes(is_gated: bool) -> None:
    """Record the library's classes that are imported. Called once in a zygote, before any untrusted code runs."""
    if "collections" in sys.modules:
        names = vars(sys.modules["collections"])
        _dicts.update(map(id, (names["Counter"], names["defaultdict"], names["OrderedDict"])))
        _lists.add(id(names["deque"]))
    _named_tuples_allowed[:] = [tuple] * is_gated
    inputs.NAMES.update(
        {name: vars(sys.modules[module])[name] for name, module in VALUES.items() if module in sys.modules}
    )


def arguments_of(value: Any) -> tuple[str, Any]:
    """Return the name of the value's class in ``VALUES`` and the arguments that create the value, or ("", ())."""
    kind: Any = type(value)
    name = next((name for name in VALUES if inputs.NAMES.get(name) is kind), "")
    return name, (value.real, value.imag) if kind is complex else kind.__reduce__(value)[1] if name else ()


def plain_value(value: object, allow_named_tuples: bool) -> tuple[type, object] | None:
    """Return the builtin type whose value the object equals, and an object that this type's methods can read.

    Returns None if it does not equal a plain value.
    """
    kind = type(value)
    if id(kind) in _dicts:
        return dict, value
    if id(kind) in _lists:
        return list, list(value)  # type: ignore[call-overload]
    return (tuple, value) if (allow_named_tuples or _named_tuples_allowed) and _is_named_tuple(kind) else None


def _is_named_tuple(kind: type) -> bool:
    """Return whether a class is a named tuple that does not override comparison or iteration."""
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
