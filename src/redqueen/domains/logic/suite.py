"""The frozen suite of puzzles: nine hundred of each of four levels, drawn once from the share that no lesson shows.

``python -m redqueen.domains.logic.suite`` draws it again, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from redqueen.domains.frozen import TASKS_PER_LEVEL, fill_levels, write_frozen
from redqueen.domains.logic.generator import draw
from redqueen.domains.logic.language import write_answer, write_puzzle
from redqueen.domains.logic.measures import form_of, level

SUITES = Path(__file__).parent / "suites"
SEED = "frozen suite/1"


def draw_suite(num_tasks: int = TASKS_PER_LEVEL) -> Iterator[tuple[int, str, str]]:
    """Yield ``num_tasks`` of (level, puzzle, answer) for each level, level by level, no normal form twice."""
    return fill_levels(_drawn(), form_of, num_tasks)


def _drawn() -> Iterator[tuple[int, str, str]]:
    rng = Random(SEED)
    while True:
        drawn = draw(rng, held_out=True)
        text = write_puzzle(drawn.puzzle)
        yield level(text), text, write_answer(drawn.puzzle, drawn.solution)


if __name__ == "__main__":
    write_frozen(SUITES, "puzzles", draw_suite())
