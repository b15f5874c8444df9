"""The types of the generated programs: names for their variables, and random small arguments."""

from __future__ import annotations

from random import Random
from typing import Literal

Type = Literal["int", "bool", "str", "ints", "strs", "tup", "dict"]

NAMES: dict[Type, tuple[str, ...]] = {
    "int": ("a", "b", "c", "n", "m", "k", "x", "y", "total", "count", "best"),
    "bool": ("ok", "flag", "done"),
    "str": ("s", "t", "u", "w", "text", "name"),
    "ints": ("xs", "ys", "zs", "nums", "out", "res", "items"),
    "strs": ("words", "parts", "chars"),
    "tup": ("p", "q", "pair"),
    "dict": ("d", "e", "counts", "seen"),
}
LETTERS = "abcdeknorstxyz"
WORDS = ("cat", "dog", "sun", "red", "bee", "tree", "abba", "noon", "kayak", "toto", "ace", "box", "data", "code")


def write_value(rng: Random, type_: Type) -> object:
    """Return a random small argument of this type."""
    match type_:
        case "int":
            return rng.choice((rng.randint(0, 9), rng.randint(0, 9), rng.randint(-5, 12), rng.randint(10, 40)))
        case "bool":
            return rng.random() < 0.5
        case "str":
            return _write_text(rng)
        case "ints":
            high = rng.choice((5, 9, 9, 9, 12))
            return [
                rng.randint(-3 if rng.random() < 0.2 else 0, high) for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 5)))
            ]
        case "strs":
            return [_write_text(rng) for _ in range(rng.choice((1, 2, 2, 3)))]
        case "tup":
            return tuple(rng.randint(-2, 9) for _ in range(rng.choice((2, 2, 3))))
        case "dict":
            return {k: rng.randint(0, 9) for k in rng.sample("abcxyz", rng.choice((1, 2, 2, 3)))}


def _write_text(rng: Random) -> str:
    roll = rng.random()
    if roll < 0.25:
        return rng.choice(WORDS)
    letters = rng.sample(LETTERS, rng.randint(2, 4)) if roll < 0.7 else LETTERS
    text = "".join(rng.choice(letters) for _ in range(rng.choice((1, 2, 3, 3, 4, 5))))
    return text.upper() if roll > 0.96 else text
