"""Objects of the standard library that equal a plain value, and how to see that value without asking the program.

- ``Counter``, ``defaultdict`` and ``OrderedDict`` equal a dict, and a named tuple a tuple: Python's ``==`` says so.
- A ``deque`` equals no plain value. It counts as the list of its items, the one plain value that holds the same.

Only the library's own classes count, as they were before the program ran, and named tuples, which are classes that
a program makes, if they define nothing about being equal or being walked through. What they hold is read through
the builtin types' methods.
"""

from __future__ import annotations

import sys

_mro_of = type.__dict__["__mro__"].__get__
_names_of = type.__dict__["__dict__"].__get__  # both are immune to metaclasses
_OWN_WAYS = frozenset(
    {
        "__class__", "__contains__", "__eq__", "__getattribute__", "__getitem__", "__hash__", "__iter__", "__len__",
        "__ne__",
    }
)  # fmt: skip

# Classes are looked up by their id: to compare or to hash one would ask its metaclass, which may be the program's.
_dicts: set[int] = set()
_lists: set[int] = set()
_matches: set[int] = set()
_record_base: list[type] = []


def take_records(takes: bool) -> None:
    """Say whether named tuples count, which are classes of the program's own making.

    They do where the gate has seen the program, and in benchmarks.
    """
    _record_base[:] = [tuple] if takes else []


def remember_classes() -> None:
    """Note the library's classes, if it is there. Called once in a zygote, which runs no untrusted code."""
    if "collections" in sys.modules:
        names = vars(sys.modules["collections"])
        _dicts.update(map(id, (names["Counter"], names["defaultdict"], names["OrderedDict"])))
        _lists.add(id(names["deque"]))
    if "re" in sys.modules:
        _matches.add(id(vars(sys.modules["re"])["Match"]))


def is_match(value: object) -> bool:
    """Tell whether the value is a match of a regular expression, which a benchmark may ask to be there."""
    return id(type(value)) in _matches


def plain_value(value: object) -> tuple[type, object] | None:
    """Return the builtin type whose value the object equals, and an object that this type's methods can read.

    None: it equals no plain value.
    """
    kind = type(value)
    if id(kind) in _dicts:
        return dict, value
    if id(kind) in _lists:
        return list, list(value)  # type: ignore[call-overload]
    return (tuple, value) if _record_base and _is_record(kind) else None


def _is_record(kind: type) -> bool:
    """Tell whether a class is a named tuple that is equal and walked through as tuples are."""
    bases = _mro_of(kind)
    if len(bases) < 2 or bases[-2] is not tuple:
        return False
    has_fields = False
    for base in bases[:-2]:
        for name in _names_of(base):
            if type(name) is not str or name in _OWN_WAYS:
                return False
            has_fields = has_fields or name == "_fields"
    return has_fields
