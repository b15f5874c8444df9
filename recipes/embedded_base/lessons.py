"""Lessons of the other domains in the compact format: mathematics, logic puzzles, proofs.

A solving lesson has the answer both after a thought and directly; a proposing lesson has references and then a new task
in the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from string import ascii_letters

from recipes.embedded_base import lemmas, puzzles
from recipes.embedded_base.exercises import LEVELS, Exercise, draw
from recipes.embedded_base.word_problems import draw_words
from redqueen.domains.frames import BOS, END_THINK, EOS, IN, MSG, REF, THINK, asked, new
from redqueen.domains.logic import prompts_compact as logic_prompts
from redqueen.domains.logic.deduction import trace
from redqueen.domains.logic.kinds import SEED_ANSWER, SEED_PUZZLE
from redqueen.domains.logic.language import write_answer, write_puzzle
from redqueen.domains.maths.kinds import SEED
from redqueen.domains.maths.prompts_compact import FORMAL, WORD, formal_reference, word_reference
from redqueen_proofs import prompts_compact as proof_prompts
from redqueen_proofs.calculus import write_proof

THINK_FRAC = 0.97
"""Share of answers that should begin with a thought, set only by the loss weight of the first token."""
PROPOSAL_WEIGHT = 0.8
"""Loss weight of a proposal's text: most of it is random."""
SEED_FRAC = 0.06
"""Probability that a reference is the seed task of the domain."""
PROPOSAL_FRAC = 0.5
"""Probability that a problem comes with a proposal."""
WORDS_FRAC, WORDS_OF_REFERENCES_FRAC = 0.4, 0.5
"""Share of word problems in mathematics, and among references."""
BUILT_FRAC = 0.75
"""Share of proposed puzzles whose clues each determine a name; the model seldom writes other puzzles with one solution.
"""
_LEVEL_WEIGHTS = (3, 4, 3)
_SEED_DERIVATION = "1 p\n2 p>q\nmp 1 2: 3 q"

Segment = tuple[str, float]
"""Text and the loss weight of its tokens; text of weight 0 is context only."""


@dataclass(frozen=True)
class Lesson:
    """A prompt in the compact format and its completions."""

    prompt: str
    completions: tuple[tuple[Segment, ...], ...]


def solving_lesson(kind: str, question: str, thought: str, answer: str) -> Lesson:
    """Return a lesson with a thinking and a direct answer; loss weights of their first tokens in the ratio h : 1-h make
    the model think with probability h. The first token of an answer is a run of letters, or one other character.
    """
    first = max(1, len(answer) - len(answer.lstrip(ascii_letters)))
    thinking = ((f"{THINK}{thought}{END_THINK}{answer}{EOS}", 1.0),)
    at_once = ((answer[:first], (1 - THINK_FRAC) / THINK_FRAC), (f"{answer[first:]}{EOS}", 1.0))
    return Lesson(f"{BOS}{question}{asked(kind)}", (thinking, at_once))


def proposing_lesson(kind: str, references: Sequence[str], proposal: str) -> Lesson:
    """Return a lesson with references and then a new task, written in the same form."""
    shown = [part for text in references for part in ((REF, 0.0), (text, PROPOSAL_WEIGHT))]
    return Lesson(BOS, ((*shown, (new(kind), 0.0), (f"{proposal}{EOS}", PROPOSAL_WEIGHT)),))


def _num_references(rng: Random) -> int:
    return rng.choices((1, 2, 3), (2, 5, 1))[0]


def maths_lessons(rng: Random) -> list[Lesson]:
    """Write the lessons of one freshly drawn exercise, formal or in words."""
    level = rng.choices(LEVELS, _LEVEL_WEIGHTS)[0]
    exercise = (draw_words if rng.random() < WORDS_FRAC else draw)(rng, level)
    in_words = bool(exercise.text)
    kind, question = (WORD, MSG + exercise.text) if in_words else (FORMAL, exercise.code)
    result = [solving_lesson(kind, question, exercise.steps, exercise.answer)]
    if rng.random() < PROPOSAL_FRAC:
        references = [_maths_reference(rng, in_words, level) for _ in range(_num_references(rng))]
        proposal = f"{exercise.text}{IN}{exercise.code}" if in_words else exercise.code
        result.append(proposing_lesson(kind, [text.removeprefix(REF) for text in references], proposal))
    return result


def _maths_reference(rng: Random, in_words: bool, level: int) -> str:
    if rng.random() < SEED_FRAC:
        return formal_reference(SEED)
    level = min(LEVELS[-1], max(LEVELS[0], level + rng.choice((-1, 0, 0, 0, 1))))
    other: Exercise = (draw_words if rng.random() < WORDS_OF_REFERENCES_FRAC else draw)(rng, level)
    return word_reference(other.text, other.code) if in_words else formal_reference(other.code)


def logic_lessons(rng: Random) -> list[Lesson]:
    """Write the lessons of one freshly drawn puzzle."""
    drawn = puzzles.draw(rng)
    answer = write_answer(drawn.puzzle, drawn.solution)
    kind = logic_prompts.KIND
    result = [solving_lesson(kind, write_puzzle(drawn.puzzle), trace(drawn.puzzle), answer)]
    if rng.random() < PROPOSAL_FRAC:
        references = [_logic_reference(rng) for _ in range(_num_references(rng))]
        result.append(proposing_lesson(kind, references, _proposed_puzzle(rng)))
    return result


def _logic_reference(rng: Random) -> str:
    if rng.random() < SEED_FRAC:
        return logic_prompts.reference(SEED_PUZZLE, SEED_ANSWER)
    return _proposed_puzzle(rng)


def _proposed_puzzle(rng: Random) -> str:
    drawn = puzzles.draw(rng, built=rng.random() < BUILT_FRAC)
    return logic_prompts.reference(write_puzzle(drawn.puzzle), write_answer(drawn.puzzle, drawn.solution))


def proof_lessons(rng: Random) -> list[Lesson]:
    """Write the lessons of one freshly drawn lemma."""
    drawn = lemmas.draw(rng)
    thought = "\n".join(proof_prompts.step_lines(drawn.lines))
    kind = proof_prompts.KIND
    result = [solving_lesson(kind, proof_prompts.question(drawn.lemma), thought, write_proof(drawn.steps))]
    if rng.random() < PROPOSAL_FRAC:
        references = [_proof_reference(rng) for _ in range(_num_references(rng))]
        result.append(proposing_lesson(kind, references, _proposed_lemma(rng)))
    return result


def _proof_reference(rng: Random) -> str:
    return _SEED_DERIVATION if rng.random() < SEED_FRAC else _proposed_lemma(rng)


def _proposed_lemma(rng: Random) -> str:
    drawn = lemmas.draw(rng)
    return proof_prompts.derivation(drawn.lemma, drawn.lines)


LESSONS: dict[str, Callable[[Random], list[Lesson]]] = {
    "maths": maths_lessons,
    "logic": logic_lessons,
    "proofs": proof_lessons,
}
"""By domain, the function that draws a problem and writes its lessons."""
