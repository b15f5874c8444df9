"""A function that is being written: the variables in reach, their types, and the draws that everything makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from redqueen.tiny.values import NAMES, Type


@dataclass
class Scope:
    """The variables in reach and their types; ``fresh`` are those not read yet (preferred, so little code is dead)."""

    types: dict[str, Type] = field(default_factory=dict)
    fresh: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)  # loop variables and loop sources, not to be reassigned
    helper: tuple[str, Type, Type] | None = None  # name, argument type, result type


class Draft:
    """A function that is being written: its level and the variables in reach. All choices come from ``rng``."""

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
        """Return a name for a variable of this type, one that is not in use while there is one."""
        free = [n for n in NAMES[type_] if n not in self.scope.types]
        return self.rng.choice(free[:4] if free else list(NAMES[type_][:1]))

    def declare(self, name: str, type_: Type, fresh: bool = True) -> str:
        """Bring a variable into reach; return its name. ``fresh``: not read yet."""
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
