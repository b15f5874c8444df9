"""When a contest program's answer is what the case expects: LiveCodeBench's comparison, by a strict grammar of numbers.

Lines are compared as text, or word by word as decimal numbers of any length. Only ASCII digits make a number; nan and
infinity are words like any other. No number is ever written out, so that a large exponent costs nothing.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,9}))?")
_BLANKS = " \t\r\f\v"
_WORDS = re.compile(rf"[^{_BLANKS}]+")

Number = tuple[str, str, int]
"""Sign, digits without zeros at either end, and the power of ten of the last of them; zero is ("", "", 0)."""


def same_value(said: object, expected: object) -> bool:
    """Tell whether a returned value is what JSON wrote: tuples count as lists, numbers by value (LiveCodeBench)."""
    if isinstance(said, list | tuple) and isinstance(expected, list):
        return len(said) == len(expected) and all(same_value(a, b) for a, b in zip(said, expected, strict=True))
    if isinstance(said, dict) and isinstance(expected, dict):
        keyed = {str(key): value for key, value in said.items()}
        if len(keyed) != len(said) or keyed.keys() != expected.keys():
            return False
        return all(same_value(keyed[key], expected[key]) for key in expected)
    return said == expected


def same_output(said: str, expected: str) -> bool:
    """Tell whether two outputs agree line by line: the same text, or the same numbers (LiveCodeBench)."""
    ours, theirs = (text.strip(_BLANKS + "\n").split("\n") for text in (said, expected))
    return len(ours) == len(theirs) and all(map(_same_line, ours, theirs))


def _same_line(said: str, expected: str) -> bool:
    ours, theirs = said.strip(_BLANKS), expected.strip(_BLANKS)
    if ours == theirs:
        return True
    numbers = [[number_of(word) for word in _WORDS.findall(line)] for line in (ours, theirs)]
    return None not in numbers[0] and numbers[0] == numbers[1]


def number_of(word: str) -> Number | None:
    """Return the decimal number that a word is, or None."""
    match = _NUMBER.fullmatch(word)
    if match is None:
        return None
    sign, whole, part, only_part, exponent = match.groups()
    part = only_part or part or ""
    digits = ((whole or "") + part).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return "", "", 0
    return "-" if sign == "-" else "", kept, int(exponent or 0) - len(part) + len(digits) - len(kept)
