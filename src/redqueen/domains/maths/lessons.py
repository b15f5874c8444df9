"""What the embedded base is taught of the domain: to solve, with a thought or at once, and to propose.

A thought is the habit: both ways are taught equally often, and what an answer begins with has the weight of its way.
"""

from __future__ import annotations

from random import Random

from redqueen.domains.compact import BOS, END_THINK, EOS, IN, REF, THINK, new
from redqueen.domains.domain import Lesson
from redqueen.domains.maths.exercises import LEVELS, Exercise, draw
from redqueen.domains.maths.prompts_compact import (
    FORMAL,
    WORD,
    formal_question,
    formal_reference,
    word_question,
    word_reference,
)
from redqueen.domains.maths.word_problems import draw_words

THINK_HABIT_FRAC = 0.97
"""Share of answers that open with a thought (ours)."""
PROPOSAL_WEIGHT = 0.8
"""Weight of proposals' text in the loss, as for programs: most of it is chance."""
WORD_FRAC, PROPOSAL_FRAC, SEED_FRAC = 0.4, 0.5, 0.06
"""Chance that a problem is told in words, that a proposal is taught beside it, and that a reference is the seed."""
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
    question = word_question(exercise.text) if exercise.text else formal_question(exercise.code)
    thinking = ((f"{THINK}{exercise.steps}{END_THINK}{exercise.answer}{EOS}", 1.0),)
    # Both are taught equally often: weights in the ratio h : 1-h make the habit h. An answer's first sign is one token.
    first = (exercise.answer[0], (1 - THINK_HABIT_FRAC) / THINK_HABIT_FRAC)
    at_once = (first, (exercise.answer[1:] + EOS, 1.0))
    return Lesson(BOS + question, (thinking, at_once))


def _proposing(rng: Random, exercise: Exercise, level: int) -> Lesson:
    """References of about the same level, then the problem as a new one."""
    references = [_reference(rng, bool(exercise.text), level) for _ in range(rng.choices((1, 2, 3), (2, 5, 1))[0])]
    written = [part for text in references for part in ((REF, 0.0), (text.removeprefix(REF), PROPOSAL_WEIGHT))]
    kind, proposal = (WORD, f"{exercise.text}{IN}{exercise.code}") if exercise.text else (FORMAL, exercise.code)
    return Lesson(BOS, ((*written, (new(kind), 0.0), (proposal + EOS, PROPOSAL_WEIGHT)),))


def _reference(rng: Random, in_words: bool, level: int) -> str:
    if rng.random() < SEED_FRAC:
        return formal_reference(SEED)
    level = min(LEVELS[-1], max(LEVELS[0], level + rng.choice((-1, 0, 0, 0, 1))))
    other = (draw_words if rng.random() < _STORY_OF_TEACHERS else draw)(rng, level, held_out=False)
    return word_reference(other.text, other.code) if in_words else formal_reference(other.code)
