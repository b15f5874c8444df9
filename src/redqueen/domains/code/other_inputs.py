"""Inputs like a given one: does a program's output depend on what it is given at all?

A program that ignores its input is always valid, and any input solves it where one is sought, so teachers that are paid
for valid tasks drift to it. Ground: ours.
"""

from __future__ import annotations

import ast
from typing import Any

from redqueen.verify.literals import LiteralError, canonical_args, read_call

NUM_WAYS = 3
"""Ways to change a value. A program may be deaf to one (another case, another order), hardly to all."""


def other_inputs(arguments: str) -> list[str]:
    """Return at most ``NUM_WAYS`` argument lists of like types, each value changed where one can be; ``arguments`` are
    canonical, and none of these."""
    try:
        by_place, by_name = read_call(arguments)
        places = [ast.literal_eval(text) for text in by_place]
        names = {name: ast.literal_eval(text) for name, text in by_name.items()}
    except (LiteralError, ValueError, SyntaxError, RecursionError, MemoryError):  # a set without elements, say
        return []
    found: dict[str, None] = {}
    for way in range(NUM_WAYS):
        changed = [repr(_changed(value, way)) for value in places]
        changed += [f"{name}={_changed(value, way)!r}" for name, value in names.items()]
        try:
            found[canonical_args(", ".join(changed))] = None
        except LiteralError:  # an empty set, or a number without an end
            continue
    found.pop(arguments, None)
    return list(found)


def _changed(value: Any, way: int) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return (value + 1, 2 * value + 7, -value - 3)[way]
        case str():
            return (value + "a", value[1:] or "Q", value[::-1] + " Z")[way]
        case list():
            return (value + (value[:1] or [1]), value[1:], [_changed(one, way) for one in value[::-1]])[way]
        case tuple():
            return tuple(_changed(one, way) for one in value)
        case set():
            return {_changed(one, way) for one in value}
        case dict():
            items = list(value.items())
            changed = [(key, _changed(one, way)) for key, one in items]
            return dict((changed, items[1:], [(_changed(key, way), one) for key, one in items])[way])
        case _:
            return value
