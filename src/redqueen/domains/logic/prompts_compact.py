"""Puzzles in the compact format of the embedded base.

::

    solve      BOS puzzle ASK logic_puzzle OUT                        ->  [THINK steps /THINK] A = 2, B = 1 EOS
    propose    BOS REF assignment IN puzzle ... NEW logic_puzzle OUT  ->  assignment IN puzzle EOS

A teacher first writes the intended assignment, so that each clue can be true for it; the puzzle is repaired to fit it
(see ``checking.repair``). Whether it is the unique solution is always verified.
"""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.config import VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import IN, REF, asked, has_mark, new
from redqueen.domains.logic.checking import repair
from redqueen.records import Task

KIND = "logic_puzzle"


def reference(puzzle: str, answer: str) -> str:
    """Return an earlier task, or a new one, as a teacher writes it."""
    return f"{answer}{IN}{puzzle}"


def _propose(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    return "".join(REF + reference(task.code, task.outputs[0]) for task in references) + new(KIND)


def _solve(task: Task) -> str:
    return task.code.strip("\n") + asked(KIND)


def _read_proposal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the puzzle after the last IN, and repair it by the assignment before, if there is one."""
    plan, _, puzzle = text.rpartition(IN)
    if has_mark(plan) or has_mark(puzzle):
        return ParsedProposal(error="a mark where text should be")
    if not puzzle.strip():
        return ParsedProposal(error="no puzzle")
    return ParsedProposal(code=repair(plan.strip(), puzzle.strip()))


WORDS = Words(_propose, _solve, _read_proposal, str.strip)
