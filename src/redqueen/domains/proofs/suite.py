"""The frozen suite of lemmas: nine hundred of each of four levels, drawn once from the share that no lesson shows.

``python -m redqueen.domains.proofs.suite`` draws it again, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from redqueen.domains.frozen import TASKS_PER_LEVEL, fill_levels, write_frozen
from redqueen.domains.proofs.calculus import write_proof
from redqueen.domains.proofs.formulas import write_lemma
from redqueen.domains.proofs.generator import draw
from redqueen.domains.proofs.measures import form_of, level
from redqueen.domains.proofs.search import search

SUITES = Path(__file__).parent / "suites"
SEED = "frozen suite/1"


def draw_suite(num_tasks: int = TASKS_PER_LEVEL) -> Iterator[tuple[int, str, str]]:
    """Yield ``num_tasks`` of (level, lemma, proof) for each level, level by level, no normal form twice.

    The proof is the shorter of the drawn one and the one that the search finds.
    """
    return fill_levels(_drawn(), form_of, num_tasks)


def _drawn() -> Iterator[tuple[int, str, str]]:
    rng = Random(SEED)
    while True:
        drawn = draw(rng, held_out=True)
        text = write_lemma(drawn.lemma)
        steps = min(drawn.steps, search(text).steps or drawn.steps, key=len)
        yield level(len(steps)), text, write_proof(steps)


if __name__ == "__main__":
    write_frozen(SUITES, "lemmas", draw_suite())
