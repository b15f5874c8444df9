"""The frozen suites are what their generators draw."""

import json
from itertools import islice

import pytest

from recipes.embedded_base.suites import draw_exercises, draw_lemmas, draw_puzzles
from redqueen.domains.logic.kinds import LOGIC
from redqueen.domains.maths.kinds import SUITES
from redqueen.domains.rows import frozen_files, rows_of_file
from redqueen_proofs.kinds import PROOFS


@pytest.mark.parametrize("num_exercises", [300, pytest.param(None, id="all", marks=pytest.mark.slow)])
def test_the_suite_of_mathematics_is_drawn_again_line_by_line(num_exercises: int | None) -> None:
    [path] = frozen_files(SUITES)
    frozen = [row.fields for row in islice(rows_of_file(path), num_exercises)]
    assert frozen == json.loads(json.dumps(list(islice(draw_exercises(), num_exercises))))


@pytest.mark.parametrize(
    ("domain", "draw", "num_tasks"),
    [
        pytest.param(LOGIC, draw_puzzles, 10, id="puzzles"),
        pytest.param(PROOFS, draw_lemmas, 10, id="lemmas"),
        pytest.param(LOGIC, draw_puzzles, 900, id="all puzzles", marks=pytest.mark.slow),
        pytest.param(PROOFS, draw_lemmas, 900, id="all lemmas", marks=pytest.mark.slow),
    ],
)
def test_puzzles_and_lemmas_are_drawn_again(domain, draw, num_tasks) -> None:
    items = [item for item in domain.suite() if int(item.id.rsplit("-", 1)[1]) <= num_tasks]
    frozen = [(item.id, item.task.code, item.task.outputs[0]) for item in items]
    assert frozen == [(row["id"], row["code"], row["output"]) for row in draw(num_tasks)]
