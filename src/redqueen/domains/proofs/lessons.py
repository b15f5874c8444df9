"""What the embedded base is taught of proofs: to write them, line by line in thought, and to propose lemmas."""

from __future__ import annotations

from random import Random

from redqueen.domains.domain import Lesson
from redqueen.domains.proofs.calculus import write_proof
from redqueen.domains.proofs.generator import draw
from redqueen.domains.proofs.prompts_compact import KIND, derivation, question, step_lines
from redqueen.domains.teaching import SEED_FRAC, proposing_lesson, solving_lesson

PROPOSAL_FRAC = 0.5
"""Chance that a proposal is taught beside the proof of a lemma."""
SEED_LEMMA, SEED_PROOF = "p, p>q |- q", "mp 1 2"
"""The task that a buffer begins with."""
_SEED_DERIVATION = "1 p\n2 p>q\nmp 1 2: 3 q"


def lessons(rng: Random) -> list[Lesson]:
    """Write the lessons of one freshly drawn lemma."""
    drawn = draw(rng)
    thought = "\n".join(step_lines(drawn.lines))
    result = [solving_lesson(KIND, question(drawn.lemma), thought, write_proof(drawn.steps))]
    if rng.random() < PROPOSAL_FRAC:
        references = [_reference(rng) for _ in range(rng.choices((1, 2, 3), (2, 5, 1))[0])]
        result.append(proposing_lesson(KIND, references, _written(rng)))
    return result


def _reference(rng: Random) -> str:
    return _SEED_DERIVATION if rng.random() < SEED_FRAC else _written(rng)


def _written(rng: Random) -> str:
    drawn = draw(rng)
    return derivation(drawn.lemma, drawn.lines)
