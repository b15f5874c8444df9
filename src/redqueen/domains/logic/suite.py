"""The frozen suite of puzzles: forty of each of four levels, drawn once from the share that no lesson shows.

``python -m redqueen.domains.logic.suite`` draws it again, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from redqueen.domains.frozen import write_frozen
from redqueen.domains.logic.generator import draw
from redqueen.domains.logic.language import write_answer, write_puzzle
from redqueen.domains.logic.measures import form_of, level

SUITES = Path(__file__).parent / "suites"
SEED = "frozen suite/1"
LEVELS, PUZZLES_PER_LEVEL = (1, 2, 3, 4), 40


def draw_suite() -> Iterator[tuple[int, str, str]]:
    """Yield (level, puzzle, answer), level by level, no normal form twice."""
    rng = Random(SEED)
    found: dict[int, dict[str, tuple[int, str, str]]] = {number: {} for number in LEVELS}
    while any(len(puzzles) < PUZZLES_PER_LEVEL for puzzles in found.values()):
        drawn = draw(rng, held_out=True)
        text = write_puzzle(drawn.puzzle)
        puzzles = found[level(text)]
        if len(puzzles) < PUZZLES_PER_LEVEL:
            puzzles.setdefault(form_of(text), (level(text), text, write_answer(drawn.puzzle, drawn.solution)))
    for number in LEVELS:
        yield from found[number].values()


if __name__ == "__main__":
    write_frozen(SUITES, "puzzles", draw_suite())
