"""Reproduce the frozen suites of mathematics, puzzles and lemmas: the same lines as in the package.

    python -m recipes.embedded_base.suites FOLDER

They are drawn from the held-out share of each generator, which is in no lesson. A suite never changes: a change would
make older scores incomparable.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice, product
from pathlib import Path
from random import Random

from recipes.embedded_base import exercises, lemmas, puzzles
from recipes.embedded_base.exercises import Exercise
from recipes.embedded_base.word_problems import draw_words
from redqueen.domains.logic.language import write_answer, write_puzzle
from redqueen.domains.logic.measures import effort
from redqueen.domains.logic.measures import form_of as puzzle_form
from redqueen.domains.maths.language import normal_form
from redqueen_proofs.calculus import write_proof
from redqueen_proofs.formulas import write_lemma
from redqueen_proofs.measures import form_of as lemma_form
from redqueen_proofs.search import search

SEED, EXERCISES_SEED = "frozen suite/1", "maths/suite/1"
LEVELS, TASKS_PER_LEVEL = (1, 2, 3, 4), 900
"""For puzzles and lemmas: with 3,600 items a score's 95 % interval is at most 1.6 points to each side."""
FIRST_EXERCISES, MORE_EXERCISES = 200, 500
"""Exercises of each kind and level, and those added later to every level except the first, which has hardly more."""
LEVEL_DEDUCTIONS = (3, 6, 9)
"""Most deductions of a puzzle of level 1, 2 and 3; a decision counts as three deductions."""


def unseen(drawn: Iterable[Exercise], seen: set[str]) -> Iterator[Exercise]:
    """Yield the exercises whose normal form is not in ``seen``, and add it there."""
    for exercise in drawn:
        form = normal_form(exercise.code)
        if form not in seen:
            seen.add(form)
            yield exercise


def draw_exercises() -> Iterator[dict[str, object]]:
    """Draw the suite of mathematics in its order, no normal form twice."""
    rng, numbers = Random(EXERCISES_SEED), count(1)
    seen: set[str] = set()
    for levels, number in ((exercises.LEVELS, FIRST_EXERCISES), (exercises.LEVELS[1:], MORE_EXERCISES)):
        for level, author in product(levels, (exercises.draw, draw_words)):
            drawn = (author(rng, level, held_out=True) for _ in count())
            for exercise in islice(unseen(drawn, seen), number):
                name = f"exercises/{level}-{next(numbers):03d}"
                fields = {"code": exercise.code, "text": exercise.text, "answer": exercise.answer}
                yield {"id": name, "level": level, **fields}


def _draw_puzzles() -> Iterator[tuple[int, str, str]]:
    rng = Random(SEED)
    while True:
        drawn = puzzles.draw(rng, held_out=True)
        text = write_puzzle(drawn.puzzle)
        yield puzzle_level(text), text, write_answer(drawn.puzzle, drawn.solution)


def puzzle_level(text: str) -> int:
    """Return the difficulty of a puzzle, 1 to 4, by the solver's deductions and decisions."""
    counts = effort(text)
    return 1 + sum(counts.deductions + 3 * counts.decisions > most for most in LEVEL_DEDUCTIONS)


def _draw_lemmas() -> Iterator[tuple[int, str, str]]:
    """Yield lemmas with the shorter of the drawn proof and the one that the search finds."""
    rng = Random(SEED)
    while True:
        drawn = lemmas.draw(rng, held_out=True)
        text = write_lemma(drawn.lemma)
        steps = min(drawn.steps, search(text).steps or drawn.steps, key=len)
        yield min(len(steps), LEVELS[-1]), text, write_proof(steps)


def fill_levels(
    name: str, drawn: Iterable[tuple[int, str, str]], form_of: Callable[[str], str], num_tasks: int = TASKS_PER_LEVEL
) -> list[dict[str, object]]:
    """Return the first ``num_tasks`` of the drawn (level, code, output) of each level, no normal form twice in one."""
    found: dict[int, dict[str, tuple[str, str]]] = {level: {} for level in LEVELS}
    for level, code, output in drawn:
        if len(found[level]) < num_tasks:
            found[level].setdefault(form_of(code), (code, output))
        if all(len(tasks) == num_tasks for tasks in found.values()):
            break
    return [
        {"id": f"{name}/{level}-{number:03d}", "level": level, "code": code, "output": output}
        for level in LEVELS
        for number, (code, output) in enumerate(found[level].values(), start=1)
    ]


def draw_puzzles(num_tasks: int = TASKS_PER_LEVEL) -> list[dict[str, object]]:
    """Draw the suite of puzzles: ``num_tasks`` of each level."""
    return fill_levels("puzzles", _draw_puzzles(), puzzle_form, num_tasks)


def draw_lemmas(num_tasks: int = TASKS_PER_LEVEL) -> list[dict[str, object]]:
    """Draw the suite of lemmas: ``num_tasks`` of each level."""
    return fill_levels("lemmas", _draw_lemmas(), lemma_form, num_tasks)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    suites: dict[str, Callable[[], Iterable[dict[str, object]]]]
    suites = {"exercises": draw_exercises, "puzzles": draw_puzzles, "lemmas": draw_lemmas}
    for name, draw in suites.items():
        lines = "".join(json.dumps(record) + "\n" for record in draw())
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit("give the folder to write the suites into"))
