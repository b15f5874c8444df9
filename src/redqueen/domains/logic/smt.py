"""Solving a puzzle by z3, in the sandbox: its unique solution, or the reason for its rejection.

Names are bit vectors wide enough for every number that a clue can reach, so every query is decidable and no arithmetic
overflows. z3 is bounded by its own count of work, which is the same on every machine, rather than by time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from redqueen.domains.logic.language import Node, Puzzle, read_puzzle, write_answer, write_puzzle

MAX_WORK = 3_000_000
"""z3's resource limit for one query (ours): about half a second."""
MAX_BITS = 40
"""Maximum width of numbers in bits (ours): products of a dozen names of three digits are not sensible puzzles."""
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: a % b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: z3.And(a, b),
    "or": lambda a, b: z3.Or(a, b),
}


class _Refused(Exception):
    """Carries a verdict and its reason."""


def judge(text: str, max_work: int = MAX_WORK) -> tuple[str, str, str]:
    """Return ``("ok", puzzle, answer)`` for a text that ``read_puzzle`` can read, or a verdict, its reason and ""."""
    puzzle = read_puzzle(text)
    try:
        model = _Model(puzzle, max_work)
        solution = model.one_solution()
    except _Refused as refusal:
        return refusal.args[0], refusal.args[1], ""
    return "ok", write_puzzle(puzzle), write_answer(puzzle, solution)


class _Model:
    """A puzzle as constraints of z3."""

    def __init__(self, puzzle: Puzzle, max_work: int) -> None:
        reach = max(puzzle.high, *(_reach(clue, puzzle.high) for clue in puzzle.clues))
        self.bits = reach.bit_length() + 2
        if self.bits > MAX_BITS:
            raise _Refused("too-large", "a clue multiplies to numbers that are too large")
        self.names = [z3.BitVec(f"v{at}", self.bits) for at in range(len(puzzle.names))]
        self.solver = z3.SolverFor("QF_FD")
        self.solver.set("rlimit", max_work)
        self.solver.set("ctrl_c", False)  # the sandbox forbids signal handlers
        for name in self.names:
            self.solver.add(name >= puzzle.low, name <= puzzle.high)
        for start, end in puzzle.spans():
            self.solver.add(z3.Distinct(*self.names[start:end]))
        for clue in puzzle.clues:
            self.solver.add(self._constraint(clue))

    def one_solution(self) -> tuple[int, ...]:
        """Return the unique solution. Raises _Refused when there is none or more than one."""
        if not self._is_possible():
            raise _Refused("contradictory", "no assignment fits all clues")
        found = self.solver.model()
        values = tuple(found.eval(name, model_completion=True).as_signed_long() for name in self.names)
        self.solver.add(z3.Or(*(name != value for name, value in zip(self.names, values, strict=True))))
        if self._is_possible():
            raise _Refused("ambiguous", "more than one assignment fits all clues")
        return values

    def _is_possible(self) -> bool:
        answer = self.solver.check()
        if answer == z3.unknown:
            raise _Refused("timeout", "the solver gave up")
        return bool(answer == z3.sat)

    def _constraint(self, node: Node) -> Any:
        kind = node[0]
        if kind == "num":
            return z3.BitVecVal(node[1], self.bits)
        if kind == "var":
            return self.names[node[1]]
        if kind == "says":
            return (self.names[node[1]] == 1) == self._constraint(node[2])
        if kind == "not":
            return z3.Not(self._constraint(node[1]))
        left = self._constraint(node[1])
        if kind == "abs":
            return z3.If(left < 0, -left, left)
        return _OPERATORS[kind](left, self._constraint(node[2]))


def _reach(node: Node, high: int) -> int:
    """Return an upper bound of the absolute values of all numbers in a clue."""
    if node[0] == "num":
        return int(node[1])
    if node[0] == "var":
        return high
    parts = [_reach(part, high) for part in node[1:] if isinstance(part, tuple)]
    if node[0] in ("+", "-"):
        return sum(parts)
    return parts[0] * max(1, parts[1]) if node[0] == "*" else max(parts)


def _warm_up() -> None:
    """Solve one puzzle of each sort, and exceed the limit once, so that all is loaded before the sandbox closes."""
    for text in (
        "order A B\nA < B",
        "number x y, 1 9\nx * y = 9\nx % 2 = 1\n|x - y| = 0",
        "knights A B\nA: not B or A",
    ):
        judge(text)
    judge("number x y z, 0 99\nx * y * z = x * x + y * y + 1", max_work=1_000)


_warm_up()
