"""Variations of an input, to test whether a program's output depends on its input.

A program that ignores its input is always valid, and in abduction any input solves it. Teachers that are rewarded for
valid tasks therefore drift to such programs. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from redqueen.domains.code.values import value_of
from redqueen_sandbox.literals import LiteralError, canonical_args, read_call

GENTLE, BOLD = (0, 1, 2), 3
"""Ways to change a value. A program that accepts a value usually accepts a gently changed one: no list is emptied and
signs are kept. Way 0 changes the members, way 1 makes the value shorter, way 2 changes the order and makes lists and
text longer."""
MAX_GENTLE, MAX_BOLD = 15, 2
"""Maximum number of argument lists of each sort."""
MAX_STEEP = 16
"""Numbers up to this are never doubled: they often count iterations, and twice as many may take far longer (ours)."""
MAX_CHARS = 32_768
"""Maximum number of characters of all lists together (ours): the time is proportional to it."""


def other_inputs(arguments: str) -> tuple[list[str], list[str]]:
    """Return (gently changed, boldly changed) variants of ``arguments``, a canonical argument list.

    They are distinct, canonical, differ from the given list, and do not depend on the hash seed. Only an empty list,
    and one with a number of thousands of digits, may have no variants.
    """
    prefixes, values = _read(arguments)
    gentle = list(islice(_texts(prefixes, _gentle_lists(values), {arguments}), MAX_GENTLE))
    return gentle, list(islice(_texts(prefixes, _changed_lists(values, (BOLD,)), {arguments, *gentle}), MAX_BOLD))


def simple_inputs(arguments: str) -> list[str]:
    """Return argument lists made only from the types of ``arguments``, empty values first: likely guesses."""
    prefixes, values = _read(arguments)
    empty = [type(value)() for value in values]
    return list(islice(_texts(prefixes, chain([empty], _gentle_lists(empty)), set()), MAX_GENTLE))


def _read(arguments: str) -> tuple[list[str], list[Any]]:
    """Return each argument's prefix ("" or "name="), and the values; both empty if a number has too many digits."""
    by_place, by_name = read_call(arguments, keep_order=True)
    try:
        values = [value_of(text) for text in (*by_place, *by_name.values())]
    except ValueError:
        return [], []
    return [""] * len(by_place) + [f"{name}=" for name in by_name], values


def _gentle_lists(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the values changed in each gentle way. Then alternate: one more change of a single member of one value, and
    of all values. (If all always changed together, a sum might stay even, for example.)"""
    yield from _changed_lists(values, GENTLE)
    raised = values
    for number in range(2 * MAX_GENTLE if values else 0):
        turn, i = divmod(number // 2, len(values))
        if number % 2:
            raised = [_changed(value, GENTLE[0]) for value in raised]
            yield raised
        else:
            values = [*values[:i], _changed_in_part(values[i], turn), *values[i + 1 :]]
            yield values


def _changed_lists(values: list[Any], ways: Iterable[int]) -> Iterator[list[Any]]:
    """Yield the values with all of them changed in each way; then, of several, with one changed: a program may only
    compare them."""
    for way in ways if values else ():
        yield [_changed(value, way) for value in values]
    for way in ways if len(values) > 1 else ():
        for i, value in enumerate(values):
            yield [*values[:i], _changed(value, way), *values[i + 1 :]]


def _texts(prefixes: list[str], lists: Iterator[list[Any]], known: set[str]) -> Iterator[str]:
    chars_left = MAX_CHARS
    while True:
        try:
            values = next(lists, None)
            if values is None:
                return
            joined = ", ".join(f"{prefix}{_text(value)}" for prefix, value in zip(prefixes, values, strict=True))
            text = canonical_args(joined)
        except (LiteralError, ValueError):  # an infinite number, or one with more digits than Python writes
            continue
        if (chars_left := chars_left - len(text)) < 0:
            return
        if text not in known:
            known.add(text)
            yield text


def _changed(value: Any, way: int) -> Any:
    """Return a changed value of the same type. Each member is changed at most once, so the time is linear."""
    match value:
        case bool():
            return not value
        case int() | float():
            if isinstance(value, float) and abs(value) > 1e15:  # adding 1 would not change it
                value /= 1000
            sign = -1 if value < 0 else 1
            step = value if abs(value) > MAX_STEEP else 0  # a small number often counts iterations or levels
            return (value + sign, value + step + 7 * sign, value + 2 * step + 2 * sign, -value - 3)[way]
        case str():
            end = value[-1:] or "a"  # a letter that the program handles
            longer = (value[::-1] + value[:1]).swapcase() + (end if end.isdigit() else "a")
            return (value + end, value[1:] or "Q", longer, value[::-1] + " Z")[way]
        case list() | tuple() | set() | frozenset():
            return type(value)(_changed_members(_members(value), way))
        case dict():
            items = list(value.items()) or [("a", 0)]
            if way == BOLD:
                return {_changed(key, way): one for key, one in items}
            kept = items[1:] or items if way == 1 else items[:: -1 if way == 2 else 1]
            if way == 2 and len({type(one) for one in value.values()}) == 1:  # the largest gets another key
                kept = [(key, one) for (key, _), (_, one) in zip(kept, items[1:] + items[:1], strict=True)]
            return {key: _changed(one, way) for key, one in kept}
        case None:
            return (1, "a", 2.5, (1,))[way]
        case _:
            return value


def _changed_in_part(value: Any, turn: int) -> Any:
    """Return the value with one of its members changed, a different one each turn. A number moves towards zero; in a
    text, two neighbouring letters are swapped."""
    match value:
        case int() | float() if not isinstance(value, bool) and abs(value) > 2:
            return value - (1 if value > 0 else -1)
        case str() if len(set(value)) > 1:
            swaps = [i for i in range(len(value) - 1) if value[i] != value[i + 1]]
            i = swaps[turn % len(swaps)]
            return value[:i] + value[i + 1] + value[i] + value[i + 2 :]
        case list() | tuple() | set() | frozenset() if value:
            members = _members(value)
            i = turn % len(members)
            return type(value)([*members[:i], _changed_in_part(members[i], turn), *members[i + 1 :]])
        case dict() if value:
            key = list(value)[turn % len(value)]
            return {**value, key: _changed_in_part(value[key], turn)}
    return _changed(value, GENTLE[0])


def _members(value: Any) -> list[Any]:
    return sorted(value, key=_text) if isinstance(value, set | frozenset) else list(value)


def _changed_members(members: list[Any], way: int) -> list[Any]:
    if way == 1 and len(members) > 1:
        return members[1:]
    changed = [_changed(one, way) for one in members] or [way + 1]
    return changed[::-1] + members[:1] if way == 2 else changed


def _text(value: Any) -> str:
    """Write a value; the members of sets are sorted by their texts."""
    match value:
        case set() | frozenset():
            members = ", ".join(sorted(map(_text, value)))
            if isinstance(value, frozenset):
                return f"frozenset({{{members}}})" if members else "frozenset()"
            return f"{{{members}}}" if members else "set()"
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case tuple():
            return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
        case dict():
            return f"{{{', '.join(f'{_text(key)}: {_text(one)}' for key, one in value.items())}}}"
        case _:
            return repr(value)
