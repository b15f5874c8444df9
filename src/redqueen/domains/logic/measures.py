"""Measures of a puzzle: the solver's counts, its class and size, and a normal form."""

from __future__ import annotations

from functools import lru_cache

from redqueen.domains.logic.deduction import Counts, Solver, TooHardError, names_in
from redqueen.domains.logic.language import Node, Puzzle, first_line, read_puzzle, write_clue
from redqueen.records import Task

_FEATURES = {
    "+": "sum", "-": "sum", "*": "product", "%": "remainder", "abs": "distance", "or": "or", "and": "and", "not": "not",
    "<": "order", ">": "order", "<=": "order", ">=": "order",
}  # fmt: skip
_ROUNDS = 2
_SWAPPED = {">": "<", ">=": "<="}
_SYMMETRIC = {"=", "!=", "+", "*", "and", "or"}


@lru_cache(maxsize=4096)
def effort(text: str) -> Counts:
    """Return the counts of solving a puzzle by deduction; for a too hard puzzle, those until the solver stopped."""
    solver = Solver(read_puzzle(text))
    try:
        solver.solve()
    except TooHardError:
        solver.counts.conflicts += 1
    return solver.counts


def measure(task: Task) -> dict[str, float]:
    """Return the numbers of clues and names, and the solver's counts."""
    puzzle, counts = read_puzzle(task.code), effort(task.code)
    return {
        "clues": float(len(puzzle.clues)),
        "names": float(len(puzzle.names)),
        "deductions": float(counts.deductions),
        "decisions": float(counts.decisions),
        "conflicts": float(counts.conflicts),
    }


def sort_of(task: Task) -> str:
    """Return the class of a puzzle, for example ``logic_puzzle order distance+sum``."""
    puzzle = read_puzzle(task.code)
    found = {_FEATURES[kind] for clue in puzzle.clues for kind in _kinds_in(clue) if kind in _FEATURES}
    return f"{task.kind} {_shape(puzzle)} {'+'.join(sorted(found)) or 'plain'}"


def size_of(task: Task) -> str:
    """Return the size of a puzzle: its number of names, and of clues in steps of two."""
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


def normal_form(puzzle: Puzzle) -> str:
    """Return one text for puzzles that are equal up to names and the order of clues.

    Names are coloured by the clues that they appear in, for two rounds (colour refinement), and renamed in the order of
    the colours. Names with equal colours keep the order of the first line, so equal symmetric puzzles may differ.
    """
    clues = [_oriented(clue) for clue in puzzle.clues]
    num = len(puzzle.names)
    mentions = [(clue, names_in(clue)) for clue in clues]
    colours = ["0"] * num
    for _ in range(_ROUNDS):
        colours = [
            "|".join(sorted(_coloured(clue, colours, at) for clue, names in mentions if at in names))
            for at in range(num)
        ]
        ranks = {colour: str(rank) for rank, colour in enumerate(sorted(set(colours)))}
        colours = [ranks[colour] for colour in colours]
    width = len(puzzle.groups[0])
    groups = sorted(
        (sorted(range(at, at + width), key=lambda i: (int(colours[i]), i)) for at in range(0, num, width)),
        key=lambda group: [int(colours[i]) for i in group],
    )
    order = [at for group in groups for at in group]
    place = {at: new for new, at in enumerate(order)}
    names = tuple(tuple(f"v{i}" for i in range(start, start + width)) for start in range(0, num, width))
    renamed = Puzzle(puzzle.sort, names, puzzle.low, puzzle.high, ())
    texts = sorted(write_clue(renamed, _sorted(_renumbered(clue, place))) for clue in clues)
    return "\n".join((first_line(renamed), *texts))


def _oriented(node: Node) -> Node:
    """Write > as < and >= as <=, with the sides swapped."""
    if node[0] in ("num", "var"):
        return node
    if node[0] == "says":
        return ("says", node[1], _oriented(node[2]))
    parts = [_oriented(part) for part in node[1:]]
    return (_SWAPPED[node[0]], *parts[::-1]) if node[0] in _SWAPPED else (node[0], *parts)


def _coloured(node: Node, colours: list[str], own: int) -> str:
    """Return a clue with each name replaced by its colour, and the name ``own`` by "me"."""
    if node[0] == "num":
        return str(node[1])
    if node[0] == "var":
        return "me" if node[1] == own else f"c{colours[node[1]]}"
    parts = [_coloured(part, colours, own) for part in node[1:] if isinstance(part, tuple)]
    if node[0] == "says":
        parts.insert(0, "me" if node[1] == own else f"c{colours[node[1]]}")
    return f"({node[0]} {' '.join(sorted(parts) if node[0] in _SYMMETRIC else parts)})"


def _renumbered(node: Node, place: dict[int, int]) -> Node:
    if node[0] == "num":
        return node
    if node[0] in ("var", "says"):
        return (node[0], place[node[1]], *(_renumbered(part, place) for part in node[2:]))
    return (node[0], *(_renumbered(part, place) for part in node[1:]))


def _sorted(node: Node) -> Node:
    """Sort the two sides of symmetric operators."""
    if node[0] in ("num", "var"):
        return node
    if node[0] == "says":
        return ("says", node[1], _sorted(node[2]))
    parts = [_sorted(part) for part in node[1:]]
    return (node[0], *(sorted(parts, key=repr) if node[0] in _SYMMETRIC else parts))
