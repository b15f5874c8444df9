"""The frozen suite of lemmas: forty of each of four levels, drawn once from the share that no lesson shows.

``python -m redqueen.domains.proofs.suite`` draws it again, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from redqueen.domains.frozen import write_frozen
from redqueen.domains.proofs.calculus import write_proof
from redqueen.domains.proofs.formulas import write_lemma
from redqueen.domains.proofs.generator import draw
from redqueen.domains.proofs.measures import form_of, level
from redqueen.domains.proofs.search import search

SUITES = Path(__file__).parent / "suites"
SEED = "frozen suite/1"
LEVELS, LEMMAS_PER_LEVEL = (1, 2, 3, 4), 40


def draw_suite() -> Iterator[tuple[int, str, str]]:
    """Yield (level, lemma, proof), level by level, no normal form twice. The proof is the shorter of the drawn one and
    the one that the search finds."""
    rng = Random(SEED)
    found: dict[int, dict[str, tuple[int, str, str]]] = {number: {} for number in LEVELS}
    while any(len(lemmas) < LEMMAS_PER_LEVEL for lemmas in found.values()):
        drawn = draw(rng, held_out=True)
        text = write_lemma(drawn.lemma)
        steps = min(drawn.steps, search(text).steps or drawn.steps, key=len)
        lemmas = found[level(len(steps))]
        if len(lemmas) < LEMMAS_PER_LEVEL:
            lemmas.setdefault(form_of(text), (level(len(steps)), text, write_proof(steps)))
    for number in LEVELS:
        yield from found[number].values()


if __name__ == "__main__":
    write_frozen(SUITES, "lemmas", draw_suite())
