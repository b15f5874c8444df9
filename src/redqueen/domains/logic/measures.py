"""How hard a puzzle is, by the counts of the solver that deduces and tries; and what sort of puzzle it is."""

from __future__ import annotations

from functools import lru_cache

from redqueen.domains.logic.deduction import Counts, Solver, TooHardError
from redqueen.domains.logic.language import Node, Puzzle, read_puzzle
from redqueen.domains.logic.normal import normal_form
from redqueen.nouns import Task

_FEATURES = {
    "+": "sum", "-": "sum", "*": "product", "%": "remainder", "abs": "distance", "or": "or", "and": "and", "not": "not",
    "<": "order", ">": "order", "<=": "order", ">=": "order",
}  # fmt: skip


@lru_cache(maxsize=4096)
def effort(text: str) -> Counts:
    """Return the work of solving a puzzle by deduction; of one that is too hard for that, the work until given up."""
    solver = Solver(read_puzzle(text))
    try:
        solver.solve()
    except TooHardError:
        solver.counts.conflicts += 1
    return solver.counts


def measure(task: Task) -> dict[str, float]:
    """Return the solver's counts, and how much there is to read."""
    puzzle, counts = read_puzzle(task.code), effort(task.code)
    return {
        "clues": float(len(puzzle.clues)),
        "names": float(len(puzzle.names)),
        "deductions": float(counts.deductions),
        "decisions": float(counts.decisions),
        "conflicts": float(counts.conflicts),
    }


def sort_of(task: Task) -> str:
    """Return the sort of a puzzle: ``logic_puzzle order distance+sum``."""
    puzzle = read_puzzle(task.code)
    found = {_FEATURES[kind] for clue in puzzle.clues for kind in _kinds_in(clue) if kind in _FEATURES}
    return f"{task.kind} {_shape(puzzle)} {'+'.join(sorted(found)) or 'plain'}"


def size_of(task: Task) -> str:
    """Return what makes a puzzle long: its names, and its clues in steps of two."""
    puzzle = read_puzzle(task.code)
    return f"{task.kind} names {len(puzzle.names)} clues {(len(puzzle.clues) + 1) // 2}"


@lru_cache(maxsize=4096)
def form_of(text: str) -> str:
    """Return the normal form of a puzzle's text."""
    return normal_form(read_puzzle(text))


def _shape(puzzle: Puzzle) -> str:
    return "grid" if len(puzzle.groups) > 1 else puzzle.sort


def _kinds_in(node: Node) -> set[str]:
    found = {node[0]}
    for part in node[1:]:
        if isinstance(part, tuple):
            found |= _kinds_in(part)
    return found
