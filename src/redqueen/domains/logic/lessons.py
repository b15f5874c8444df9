"""What the embedded base is taught of puzzles: to solve them by deduction, and to propose them."""

from __future__ import annotations

from random import Random

from redqueen.domains.domain import Lesson
from redqueen.domains.logic.deduction import trace
from redqueen.domains.logic.generator import Drawn, draw
from redqueen.domains.logic.language import write_answer, write_puzzle
from redqueen.domains.logic.prompts_compact import KIND, reference
from redqueen.domains.teaching import SEED_FRAC, proposing_lesson, solving_lesson

PROPOSAL_FRAC = 0.5
"""Chance that a proposal is taught beside the solution of a puzzle."""
BUILT_PROPOSALS_FRAC = 0.75
"""Share of proposals whose clues each decide a name: a writer this small seldom makes any other puzzle unique."""
SEED_PUZZLE, SEED_ANSWER = "order A B\nA < B", "A = 1, B = 2"
"""The task that a buffer begins with."""


def lessons(rng: Random) -> list[Lesson]:
    """Write the lessons of one freshly drawn puzzle."""
    drawn = draw(rng)
    answer = write_answer(drawn.puzzle, drawn.solution)
    result = [solving_lesson(KIND, write_puzzle(drawn.puzzle), trace(drawn.puzzle), answer)]
    if rng.random() < PROPOSAL_FRAC:
        references = [_reference(rng) for _ in range(rng.choices((1, 2, 3), (2, 5, 1))[0])]
        result.append(proposing_lesson(KIND, references, _written(_proposal(rng))))
    return result


def _reference(rng: Random) -> str:
    return reference(SEED_PUZZLE, SEED_ANSWER) if rng.random() < SEED_FRAC else _written(_proposal(rng))


def _proposal(rng: Random) -> Drawn:
    return draw(rng, built=rng.random() < BUILT_PROPOSALS_FRAC)


def _written(drawn: Drawn) -> str:
    return reference(write_puzzle(drawn.puzzle), write_answer(drawn.puzzle, drawn.solution))
