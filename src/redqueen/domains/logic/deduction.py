"""Solving a puzzle by deduction with bounded work: constraint propagation, then backtracking search.

Three rules shrink the domains of the names until nothing changes: clues (a value is kept only if the clue can still be
true), all-different groups, and places that only one name can take. Then a value is tried. The steps are a trace that a
student can write down, and their counts measure how hard the puzzle is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from redqueen.domains.logic.language import Node, Puzzle, write_clue

MAX_COMBINATIONS = 1_200
"""A clue is skipped while its names have more combinations of values than this, to bound the work of a step (ours)."""
MAX_WORK = 2_000_000
"""Maximum number of visited parts of clues and names, about 0.15 s (ours); beyond it a puzzle is rejected as too hard.
The puzzles of the frozen suite need a hundredth."""
_WORK_PER_NAME = 4
"""Work of assigning and storing one name's value, in addition to the parts of the clue."""

Domains = list[tuple[int, ...]]


class TooHardError(Exception):
    """The puzzle needs more work than the limit."""


@dataclass
class Counts:
    """Counts of a solver's steps: deductions (domains shrank), decisions (values tried), conflicts (failed tries), and
    ``work``, which is bounded: parts of clues and names visited.
    """

    deductions: int = 0
    decisions: int = 0
    conflicts: int = 0
    work: int = 0


@dataclass
class Solved:
    """The solutions, at most two, and the counts of the search."""

    solutions: list[tuple[int, ...]]
    counts: Counts


def compile_clue(node: Node) -> Callable[[Sequence[int]], int]:
    """Return a function from the values of all names to the truth of a clue, or to the value of a term."""
    kind = node[0]
    if kind == "num":
        number = node[1]
        return lambda values: number
    if kind == "var":
        place = node[1]
        return lambda values: values[place]
    if kind == "says":
        speaker, said = node[1], compile_clue(node[2])
        return lambda values: (values[speaker] == 1) == said(values)
    left = compile_clue(node[1])
    if kind == "abs":
        return lambda values: abs(left(values))
    if kind == "not":
        return lambda values: not left(values)
    right = compile_clue(node[2])
    return _BINARY[kind](left, right)


_BINARY: dict[str, Callable[..., Callable[[Sequence[int]], int]]] = {
    "and": lambda a, b: lambda values: a(values) and b(values),
    "or": lambda a, b: lambda values: a(values) or b(values),
    "=": lambda a, b: lambda values: a(values) == b(values),
    "!=": lambda a, b: lambda values: a(values) != b(values),
    "<": lambda a, b: lambda values: a(values) < b(values),
    ">": lambda a, b: lambda values: a(values) > b(values),
    "<=": lambda a, b: lambda values: a(values) <= b(values),
    ">=": lambda a, b: lambda values: a(values) >= b(values),
    "+": lambda a, b: lambda values: a(values) + b(values),
    "-": lambda a, b: lambda values: a(values) - b(values),
    "*": lambda a, b: lambda values: a(values) * b(values),
    "%": lambda a, b: lambda values: a(values) % b(values),
}


def names_in(node: Node) -> list[int]:
    """Return the positions of the names that a clue mentions, sorted."""
    if node[0] == "num":
        return []
    if node[0] == "var":
        return [node[1]]
    found = {node[1]} if node[0] == "says" else set(names_in(node[1]))
    for part in node[2:]:
        found.update(names_in(part))
    return sorted(found)


def _num_parts(node: Node) -> int:
    return 1 + sum(_num_parts(part) for part in node[1:] if isinstance(part, tuple))


@dataclass
class Solver:
    """Solves one puzzle. ``lines`` is the trace if ``is_traced``; beyond ``max_work`` TooHardError is raised."""

    puzzle: Puzzle
    is_traced: bool = False
    max_work: int = MAX_WORK
    lines: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    solutions: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.checks = [(compile_clue(clue), names_in(clue), _num_parts(clue)) for clue in self.puzzle.clues]
        self.texts = [write_clue(self.puzzle, clue) for clue in self.puzzle.clues] if self.is_traced else []
        self.spans = self.puzzle.spans()
        places = len(self.puzzle.names) * (len(self.puzzle.values) if self.spans else 1)
        self.work_per_pass = places + sum(len(names) for _, names, _ in self.checks)

    def solve(self, most: int = 2) -> Solved:
        """Find up to ``most`` solutions. Raises TooHardError when they need too much work."""
        start: Domains = [self.puzzle.values] * len(self.puzzle.names)
        self._search(start, most)
        return Solved(self.solutions, self.counts)

    def _search(self, domains: Domains, most: int) -> None:
        if not self._propagate(domains):
            self.counts.conflicts += 1
            return
        undecided = [(len(domain), at) for at, domain in enumerate(domains) if len(domain) > 1]
        if not undecided:
            self.solutions.append(tuple(domain[0] for domain in domains))
            return
        _, at = min(undecided)
        left = list(domains[at][::-1] if self.puzzle.sort == "knights" else domains[at])
        while left:
            if len(domains[at]) == 1:  # the last value is known, not tried
                self._search(domains, most)
                return
            value = left.pop(0)
            before = len(self.solutions)
            self.counts.decisions += 1
            self._trace(f"try {self._shown(at, (value,))}")
            tried = list(domains)
            tried[at] = (value,)
            self._search(tried, most)
            if len(self.solutions) >= most:
                return
            domains[at] = tuple(sorted(left))
            if len(self.solutions) == before:
                self._trace("back: " + " ".join(self._shown(i, d) for i, d in enumerate(domains)))

    def _propagate(self, domains: Domains) -> bool:
        """Shrink domains until nothing changes; False when some name is left without a value."""
        used: set[int] = set()
        while True:
            self._spend(self.work_per_pass)
            step = self._remove_taken(domains, used) or self._apply_clues(domains) or self._only_places(domains)
            if step == "stuck":
                return False
            if not step:
                return True

    def _remove_taken(self, domains: Domains, used: set[int]) -> str:
        """All-different: remove the value of a decided name from the others of its group."""
        for start, end in self.spans:
            for at in range(start, end):
                if len(domains[at]) != 1 or at in used:
                    continue
                used.add(at)
                value = domains[at][0]
                new = {
                    i: tuple(v for v in domains[i] if v != value)
                    for i in range(start, end)
                    if i != at and value in domains[i]
                }
                if new:
                    return self._apply(domains, self._shown(at, domains[at]) if self.is_traced else "", new)
        return ""

    def _apply_clues(self, domains: Domains) -> str:
        for number, (is_true, names, num_parts) in enumerate(self.checks):
            new = self._revise(domains, is_true, names, num_parts)
            if new:
                return self._apply(domains, self.texts[number] if self.is_traced else "", new)
        return ""

    def _revise(
        self, domains: Domains, is_true: Callable[[Sequence[int]], int], names: list[int], num_parts: int
    ) -> dict[int, tuple[int, ...]]:
        size = prod(len(domains[at]) for at in names)
        if size > MAX_COMBINATIONS:
            return {}
        self._spend(size * (num_parts + _WORK_PER_NAME * len(names)))
        values = [domain[0] for domain in domains]
        kept: list[set[int]] = [set() for _ in names]
        for combination in product(*(domains[at] for at in names)):
            for at, value in zip(names, combination, strict=True):
                values[at] = value
            if is_true(values) and self._are_distinct(names, combination):
                for some, value in zip(kept, combination, strict=True):
                    some.add(value)
        return {
            at: tuple(v for v in domains[at] if v in some)
            for at, some in zip(names, kept, strict=True)
            if len(some) < len(domains[at])
        }

    def _spend(self, work: int) -> None:
        self.counts.work += work
        if self.counts.work > self.max_work:
            raise TooHardError

    def _are_distinct(self, names: list[int], combination: tuple[int, ...]) -> bool:
        """Return whether names of one all-different group have distinct values."""
        for start, end in self.spans:
            values = [value for at, value in zip(names, combination, strict=True) if start <= at < end]
            if len(set(values)) < len(values):
                return False
        return True

    def _only_places(self, domains: Domains) -> str:
        """Assign a place that only one name of a group can take to that name."""
        for start, end in self.spans:
            for value in self.puzzle.values:
                takers = [at for at in range(start, end) if value in domains[at]]
                if len(takers) == 1 and len(domains[takers[0]]) > 1:
                    return self._apply(domains, f"only {value}", {takers[0]: (value,)})
        return ""

    def _apply(self, domains: Domains, why: str, new: dict[int, tuple[int, ...]]) -> str:
        self.counts.deductions += 1
        stuck = not all(new.values())
        if not stuck:
            for at, domain in new.items():
                domains[at] = domain
        self._trace(f"{why}: " + ("no" if stuck else " ".join(self._shown(at, new[at]) for at in sorted(new))))
        return "stuck" if stuck else "changed"

    def _shown(self, at: int, domain: tuple[int, ...]) -> str:
        if not self.is_traced:
            return ""
        between = "" if self.puzzle.high < 10 else "/"
        return self.puzzle.names[at] + between.join(map(str, domain))

    def _trace(self, line: str) -> None:
        if self.is_traced:
            self.lines.append(line)


def solve(puzzle: Puzzle, max_work: int = MAX_WORK) -> Solved:
    """Return at most two solutions of a puzzle, and the counts. Raises TooHardError beyond ``max_work``."""
    return Solver(puzzle, max_work=max_work).solve()


def trace(puzzle: Puzzle) -> str:
    """Return the steps to the first solution, one per line."""
    solver = Solver(puzzle, is_traced=True)
    solver.solve(most=1)
    return "\n".join(solver.lines)
