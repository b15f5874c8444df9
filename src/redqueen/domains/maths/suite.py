"""The frozen held-out suite: exercises of the share that lessons never show, drawn once.

``python -m redqueen.domains.maths.suite FILE`` draws the file again, to the byte. A line has ``id``
("exercises/LEVEL-NUMBER"), ``level``, ``code``, ``text`` ("" for a formal exercise) and ``answer``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import count, islice, product
from pathlib import Path
from random import Random

from redqueen.domains.domain import Item
from redqueen.domains.maths.exercises import LEVELS, Exercise, draw
from redqueen.domains.maths.language import normal_form
from redqueen.domains.maths.prompts_compact import FORMAL, WORD
from redqueen.domains.maths.word_problems import draw_words
from redqueen.domains.rows import Row, frozen_files, rows_of_file
from redqueen.errors import UserError
from redqueen.nouns import Task

SUITES = Path(__file__).parent / "suites"
NUM_A_LEVEL, NUM_MORE, RNG_SEED = 200, 500, "maths/suite/1"
"""Exercises of each kind and level that were drawn first, what older figures are of; those of each kind that were drawn
later, of every level but the first, whose held-out share has hardly more; and the seed."""


def load_suite(folder: Path = SUITES) -> list[Item]:
    """Load the frozen files. Raises UserError when one is missing, has changed, or cannot be read."""
    return [_item(row) for path in frozen_files(folder) for row in rows_of_file(path)]


def unseen(drawn: Iterable[Exercise], seen: set[str]) -> Iterator[Exercise]:
    """Yield those exercises whose normal form is not among ``seen``, and add it there."""
    for exercise in drawn:
        form = normal_form(exercise.code)
        if form not in seen:
            seen.add(form)
            yield exercise


def draw_suite() -> list[dict[str, object]]:
    """Draw the records of the suite, no two of one normal form."""
    rng = Random(RNG_SEED)
    records: list[dict[str, object]] = []
    seen: set[str] = set()
    for levels, number in ((LEVELS, NUM_A_LEVEL), (LEVELS[1:], NUM_MORE)):
        for level, author in product(levels, (draw, draw_words)):
            drawn = (author(rng, level, held_out=True) for _ in count())
            for exercise in islice(unseen(drawn, seen), number):
                name = f"exercises/{level}-{len(records) + 1:03d}"
                fields = {"code": exercise.code, "text": exercise.text, "answer": exercise.answer}
                records.append({"id": name, "level": level, **fields})
    return records


def _item(row: Row) -> Item:
    level = row.fields.get("level")
    if not isinstance(level, int):
        raise UserError(f"{row.where}: the field level must be a whole number")
    name, text = row.text("id"), row.text("text")
    kind = WORD if text else FORMAL
    task = Task(name, "", "", kind, row.text("code"), ("",), (row.text("answer"),), text)
    return Item(id=name, cluster=name, stratum=f"{name.split('/')[0]}/{level}", kind=kind, task=task)


if __name__ == "__main__":
    lines = [json.dumps(record) + "\n" for record in draw_suite()]
    Path(sys.argv[1]).write_text("".join(lines), encoding="utf-8")
