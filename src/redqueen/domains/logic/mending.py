"""A proposal that begins with an assignment is held to it: what is false of it is struck, what stays open is told.

A small teacher gets single clues wrong. As a program's output is computed and not believed, so the clues here are those
that the assignment makes true; and where other assignments fit them too, up to two names are told outright. A proposal
that needs more than that is left as it is, and refused by the check.
"""

from __future__ import annotations

from dataclasses import replace

from redqueen.domains.logic.checking import read_values
from redqueen.domains.logic.deduction import MAX_WORK, TooHardError, compile_clue, solve
from redqueen.domains.logic.language import Node, Puzzle, PuzzleError, read_puzzle, write_puzzle

MAX_TOLD = 2
"""Most names that are told (ours): of more, too little of the puzzle would be the teacher's."""


def held_to(plan: str, text: str) -> str:
    """Return the puzzle, mended where that is possible; otherwise the text as it is. Never raises."""
    try:
        puzzle, values = read_puzzle(text), read_values(plan)
    except (PuzzleError, ValueError):
        return text
    if set(values) != set(puzzle.names):
        return text
    ordered = tuple(values[name] for name in puzzle.names)
    kept = tuple(clue for clue in puzzle.clues if compile_clue(clue)(ordered))
    if not kept or not _is_allowed(puzzle, ordered):
        return text
    mended, work_left = replace(puzzle, clues=kept), MAX_WORK
    for _ in range(MAX_TOLD + 1):
        try:
            solved = solve(mended, work_left)
        except TooHardError:
            return text
        found, work_left = solved.solutions, work_left - solved.counts.work
        if len(found) < 2:
            return write_puzzle(mended)
        open_name = next(at for at, both in enumerate(zip(*found, strict=True)) if len(set(both)) > 1)
        mended = replace(mended, clues=(*mended.clues, _told(puzzle, ordered, open_name)))
    return text


def _told(puzzle: Puzzle, ordered: tuple[int, ...], at: int) -> Node:
    """Return the clue that tells one name's value."""
    if puzzle.sort != "knights":
        return ("=", ("var", at), ("num", ordered[at]))
    # Whoever calls another his like tells that it is a knight, and whoever calls it unlike him, that it is a knave.
    other = at - 1 if at else 1
    relation = "=" if ordered[at] else "!="
    return ("says", other, (relation, ("var", at), ("var", other)))


def _is_allowed(puzzle: Puzzle, ordered: tuple[int, ...]) -> bool:
    if not all(puzzle.low <= value <= puzzle.high for value in ordered):
        return False
    return all(len(set(ordered[start:end])) == end - start for start, end in puzzle.spans())
