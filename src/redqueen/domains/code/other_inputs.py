"""Inputs like a given one: does a program's output depend on what it is given at all?

A program that ignores its input is always valid, and any input solves it where one is sought, so teachers that are paid
for valid tasks drift to it. Ground: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redqueen.verify.literals import LiteralError, canonical_args, read_call
from redqueen.verify.values import value_of

NUM_WAYS = 3
"""Ways to change a value, from the one that most programs take to the one that changes most."""
MAX_OTHERS = 8
"""Most argument lists made from one: three with all values changed, then those with one changed."""


def other_inputs(arguments: str) -> list[str]:
    """Return at most ``MAX_OTHERS`` argument lists of like types, none of them ``arguments``, which are canonical.

    There is one for every argument list but the empty one; only numbers of thousands of digits have none.
    """
    by_place, by_name = read_call(arguments)
    names = ["", *[f"{name}=" for name in by_name]]
    heads = [names[0]] * len(by_place) + names[1:]
    found: dict[str, None] = {}
    try:
        values = [value_of(text) for text in (*by_place, *by_name.values())]
        for changed in _changed_lists(values):
            texts = (f"{head}{value!r}" for head, value in zip(heads, changed, strict=True))
            try:
                found[canonical_args(", ".join(texts))] = None
            except LiteralError:  # a number without an end
                continue
    except ValueError:  # more digits than Python writes or reads
        pass
    found.pop(arguments, None)
    return list(found)[:MAX_OTHERS]


def _changed_lists(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the values with all of them changed in each way, and, of several, with one changed: a program may only
    compare them."""
    for way in range(NUM_WAYS if values else 0):
        yield [_changed(value, way) for value in values]
    for way in range(NUM_WAYS if len(values) > 1 else 0):
        for place, value in enumerate(values):
            yield [*values[:place], _changed(value, way), *values[place + 1 :]]


def _changed(value: Any, way: int) -> Any:
    """Return a value of like type that what reads the given one will mostly take: no list is emptied, keys stay, digits
    stay digits; the last way is bolder."""
    match value:
        case bool():
            return not value
        case int() | float():
            return (value + 1, 2 * value + 7, -value - 3)[way]
        case str():
            end = value[-1:] if value[-1:].isdigit() else "a"
            return (value + end, value[1:] or "Q", value[::-1] + (end if end != "a" else " Z"))[way]
        case list():
            return (value + (value[:1] or [1]), _shorter(value), [_changed(one, way) for one in value[::-1]] or [2])[
                way
            ]
        case tuple() | set() | frozenset():
            members = list(value)
            others = (
                [_changed(one, way) for one in members] or [1],
                _shorter(members),
                [*(_changed(one, way) for one in members), 2],
            )
            return type(value)(others[way])
        case dict():
            items = list(value.items()) or [("a", 1)]
            if way == NUM_WAYS - 1:
                return {_changed(key, way): one for key, one in items}
            return {key: _changed(one, way) if value else one for key, one in (items[way:] or items)}
        case None:
            return (1, "a", (1,))[way]
        case _:
            return value


def _shorter(values: list[Any]) -> list[Any]:
    """Return a list without its first value, but not an empty one."""
    return values[1:] or [_changed(one, 1) for one in values] or [1, 2]
