"""A partly written function: the variables in scope with their types, and random small arguments of each type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass
class Scope:
    """The variables in scope and their types; ``fresh`` are those not read yet (preferred, so little code is dead)."""

    types: dict[str, Type] = field(default_factory=dict)
    fresh: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)  # loop variables and loop sources, not to be reassigned
    helper: tuple[str, Type, Type] | None = None  # name, argument type, result type


class Draft:
    """A partly written function: its level and the variables in scope. All choices come from ``rng``."""

    def __init__(self, rng: Random, level: int) -> None:
        self.rng = rng
        self.level = level
        self.scope = Scope()

    def pick(self, type_: Type) -> str | None:
        """Return a variable of this type, preferring one that no expression has read yet; None when there is none."""
        fresh = [v for v in self.scope.fresh if self.scope.types[v] == type_]
        if fresh and self.rng.random() < 0.75:
            name = self.rng.choice(fresh)
        else:
            known = [v for v, t in self.scope.types.items() if t == type_]
            if not known:
                return None
            name = self.rng.choice(known)
        if name in self.scope.fresh:
            self.scope.fresh.remove(name)
        return name

    def new_name(self, type_: Type) -> str:
        """Return a name for a variable of this type, an unused one if there is one."""
        free = [n for n in NAMES[type_] if n not in self.scope.types]
        return self.rng.choice(free[:4] if free else list(NAMES[type_][:1]))

    def declare(self, name: str, type_: Type, fresh: bool = True) -> str:
        """Bring a variable into scope; return its name. ``fresh``: not read yet."""
        self.scope.types[name] = type_
        if fresh and name not in self.scope.fresh:
            self.scope.fresh.append(name)
        return name

    def small(self, low: int = 1, high: int = 4) -> str:
        """Return a literal from ``low`` to ``high``."""
        return str(self.rng.randint(low, high))

    def choose(self, options: list[tuple[float, Type | None, Callable[[], str]]]) -> str:
        """Draw one (weight, type of variable it needs or None, maker) among those whose variable is available."""
        known = set(self.scope.types.values())
        usable = [(w, make) for w, need, make in options if need is None or need in known]
        return self.rng.choices([m for _, m in usable], [w for w, _ in usable])[0]()
