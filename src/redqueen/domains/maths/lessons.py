"""What the embedded base is taught of the domain: to solve, with a thought or at once, and to propose.

A thought is the habit: both ways are taught equally often, and what an answer begins with has the weight of its way.
"""

from __future__ import annotations

from random import Random

from redqueen.domains.compact import IN, MSG, REF
from redqueen.domains.domain import Lesson
from redqueen.domains.maths.exercises import LEVELS, Exercise, draw
from redqueen.domains.maths.prompts_compact import FORMAL, WORD, formal_reference, word_reference
from redqueen.domains.maths.word_problems import draw_words
from redqueen.domains.teaching import SEED_FRAC, proposing_lesson, solving_lesson

WORD_FRAC, PROPOSAL_FRAC = 0.4, 0.5
"""Chance that a problem is told in words, and that a proposal is taught beside it."""
SEED = "1 + 1"
_LEVEL_WEIGHTS = (3, 4, 3)
_STORY_OF_TEACHERS = 0.5


def lessons(rng: Random) -> list[Lesson]:
    """Write the lessons of one freshly drawn problem."""
    level = rng.choices(LEVELS, _LEVEL_WEIGHTS)[0]
    in_words = rng.random() < WORD_FRAC
    exercise = (draw_words if in_words else draw)(rng, level, held_out=False)
    result = [_solving(exercise)]
    if rng.random() < PROPOSAL_FRAC:
        result.append(_proposing(rng, exercise, level))
    return result


def _solving(exercise: Exercise) -> Lesson:
    kind, question = (WORD, MSG + exercise.text) if exercise.text else (FORMAL, exercise.code)
    return solving_lesson(kind, question, exercise.steps, exercise.answer)


def _proposing(rng: Random, exercise: Exercise, level: int) -> Lesson:
    """References of about the same level, then the problem as a new one."""
    references = [_reference(rng, bool(exercise.text), level) for _ in range(rng.choices((1, 2, 3), (2, 5, 1))[0])]
    kind, proposal = (WORD, f"{exercise.text}{IN}{exercise.code}") if exercise.text else (FORMAL, exercise.code)
    return proposing_lesson(kind, [text.removeprefix(REF) for text in references], proposal)


def _reference(rng: Random, in_words: bool, level: int) -> str:
    if rng.random() < SEED_FRAC:
        return formal_reference(SEED)
    level = min(LEVELS[-1], max(LEVELS[0], level + rng.choice((-1, 0, 0, 0, 1))))
    other = (draw_words if rng.random() < _STORY_OF_TEACHERS else draw)(rng, level, held_out=False)
    return word_reference(other.text, other.code) if in_words else formal_reference(other.code)
