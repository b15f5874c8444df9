"""Variations of an input, to test whether a program's output depends on its input.

A program that ignores its input is always valid, and any input solves it where one is sought, so teachers that are paid
for valid tasks drift to it. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from redqueen.domains.code.values import value_of
from redqueen_sandbox.literals import LiteralError, canonical_args, read_call

GENTLE, BOLD = (0, 1, 2), 3
"""Ways to change a value. What reads the given one mostly takes a gently changed one too: no list is emptied and signs
stay. By the first way what is in it is changed, by the second it is shorter, by the third in another order, lists and
text also longer."""
MAX_GENTLE, MAX_BOLD = 15, 2
"""Most argument lists of either sort."""
MAX_STEEP = 16
"""Largest number that is never doubled: often it counts rounds, and twice as many may take far longer (ours)."""
MAX_CHARS = 32_768
"""Characters of all lists that are tried (ours): time is in proportion to them."""


def other_inputs(arguments: str) -> tuple[list[str], list[str]]:
    """Return argument lists like ``arguments``, which are canonical: gently changed ones, and boldly changed ones.

    They are distinct, canonical, and none is the given one; the same for the same text, whatever the hash seed. Only
    the empty list, and one with a number of thousands of digits, may have none.
    """
    heads, values = _read(arguments)
    gentle = list(islice(_texts(heads, _gentle_lists(values), {arguments}), MAX_GENTLE))
    return gentle, list(islice(_texts(heads, _changed_lists(values, (BOLD,)), {arguments, *gentle}), MAX_BOLD))


def simple_inputs(arguments: str) -> list[str]:
    """Return argument lists made from the types of ``arguments`` alone, empty values first: likely guesses."""
    heads, values = _read(arguments)
    empty = [type(value)() for value in values]
    return list(islice(_texts(heads, chain([empty], _gentle_lists(empty)), set()), MAX_GENTLE))


def _read(arguments: str) -> tuple[list[str], list[Any]]:
    """Return what is written before each argument, and the arguments; no argument where one has too many digits."""
    by_place, by_name = read_call(arguments, keep_order=True)
    try:
        values = [value_of(text) for text in (*by_place, *by_name.values())]
    except ValueError:
        return [], []
    return [""] * len(by_place) + [f"{name}=" for name in by_name], values


def _gentle_lists(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the values changed in each gentle way, then by turns one more change of one of them, only one member of it,
    and of all: where all always change together, the sum may stay even."""
    yield from _changed_lists(values, GENTLE)
    raised = values
    for number in range(2 * MAX_GENTLE if values else 0):
        turn, one = divmod(number // 2, len(values))
        if number % 2:
            raised = [_changed(value, GENTLE[0]) for value in raised]
            yield raised
        else:
            values = [*values[:one], _changed_in_part(values[one], turn), *values[one + 1 :]]
            yield values


def _changed_lists(values: list[Any], ways: Iterable[int]) -> Iterator[list[Any]]:
    """Yield the values with all of them changed in each way, and, of several, with one changed: a program may only
    compare them."""
    for way in ways if values else ():
        yield [_changed(value, way) for value in values]
    for way in ways if len(values) > 1 else ():
        for place, value in enumerate(values):
            yield [*values[:place], _changed(value, way), *values[place + 1 :]]


def _texts(heads: list[str], lists: Iterator[list[Any]], known: set[str]) -> Iterator[str]:
    room = MAX_CHARS
    while True:
        try:
            values = next(lists, None)
            if values is None:
                return
            joined = ", ".join(f"{head}{_text(value)}" for head, value in zip(heads, values, strict=True))
            text = canonical_args(joined)
        except (LiteralError, ValueError):  # a number without an end, or with more digits than Python writes
            continue
        if (room := room - len(text)) < 0:
            return
        if text not in known:
            known.add(text)
            yield text


def _changed(value: Any, way: int) -> Any:
    """Return a value of like type; what it holds is changed at most once, so that time is linear in the value."""
    match value:
        case bool():
            return not value
        case int() | float():
            if isinstance(value, float) and abs(value) > 1e15:  # one more would be the same
                value /= 1000
            sign = -1 if value < 0 else 1
            step = value if abs(value) > MAX_STEEP else 0  # a small number is often one of rounds or levels
            return (value + sign, value + step + 7 * sign, value + 2 * step + 2 * sign, -value - 3)[way]
        case str():
            end = value[-1:] or "a"  # a letter that the program knows
            longer = (value[::-1] + value[:1]).swapcase() + (end if end.isdigit() else "a")
            return (value + end, value[1:] or "Q", longer, value[::-1] + " Z")[way]
        case list() | tuple() | set() | frozenset():
            return type(value)(_changed_members(_members(value), way))
        case dict():
            items = list(value.items()) or [("a", 0)]
            if way == BOLD:
                return {_changed(key, way): one for key, one in items}
            kept = items[1:] or items if way == 1 else items[:: -1 if way == 2 else 1]
            if way == 2 and len({type(one) for one in value.values()}) == 1:  # another key has the largest
                kept = [(key, one) for (key, _), (_, one) in zip(kept, items[1:] + items[:1], strict=True)]
            return {key: _changed(one, way) for key, one in kept}
        case None:
            return (1, "a", 2.5, (1,))[way]
        case _:
            return value


def _changed_in_part(value: Any, turn: int) -> Any:
    """Return the value with one of its members changed, another each turn; a number nearer to zero, and text of the
    same letters and length where it has two."""
    match value:
        case int() | float() if not isinstance(value, bool) and abs(value) > 2:
            return value - (1 if value > 0 else -1)
        case str() if len(set(value)) > 1:
            places = [place for place in range(len(value) - 1) if value[place] != value[place + 1]]
            place = places[turn % len(places)]
            return value[:place] + value[place + 1] + value[place] + value[place + 2 :]
        case list() | tuple() | set() | frozenset() if value:
            members = _members(value)
            place = turn % len(members)
            return type(value)([*members[:place], _changed_in_part(members[place], turn), *members[place + 1 :]])
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
    """Write a value; the members of sets in the order of their texts."""
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
