"""The payoff matrix: what each student has scored against each teacher, with counts and decay.

A cell keeps a decayed sum of scores and a decayed number of games, so its ratio is a mean that favours recent games:
individuals learn between matches, and a score of fifty steps ago says little about the two of today.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PlainSerializer


@dataclass(frozen=True)
class Cell:
    """One pair's history: ``score_sum / weight`` is the student's decayed mean score; ``num_games`` never decays."""

    score_sum: float = 0.0
    weight: float = 0.0
    num_games: int = 0


def _to_rows(cells: Mapping[tuple[str, str], Cell]) -> list[tuple[object, ...]]:
    return [(*pair, *astuple(cell)) for pair, cell in cells.items()]


def _from_rows(cells: object) -> object:
    if not isinstance(cells, list):
        return cells
    return {(t, s): {"score_sum": total, "weight": weight, "num_games": n} for t, s, total, weight, n in cells}


@dataclass(frozen=True)
class PayoffMatrix:
    """Cells by ``(teacher id, student id)``, if they have played. A step keeps ``decay_frac`` in (0, 1] of each.

    JSON has no pairs for keys: a checkpoint holds rows of teacher, student and the cell's three numbers.
    """

    decay_frac: float = 0.95
    cells: Annotated[dict[tuple[str, str], Cell], PlainSerializer(_to_rows), BeforeValidator(_from_rows)] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        """Raise ValueError when the decay leaves its range."""
        if not 0 < self.decay_frac <= 1:
            raise ValueError("decay_frac must be in (0, 1]")


def record(matrix: PayoffMatrix, games: Iterable[tuple[str, str, float]]) -> PayoffMatrix:
    """The matrix after one step: every cell decays once, then each ``(teacher, student, solve_rate_frac)`` is added.

    ``solve_rate_frac`` in [0, 1] is the student's score; the teacher's is its complement. Raises ValueError outside.
    """
    keep = matrix.decay_frac
    cells = {pair: Cell(c.score_sum * keep, c.weight * keep, c.num_games) for pair, c in matrix.cells.items()}
    for teacher, student, score in games:
        if not 0 <= score <= 1:
            raise ValueError(f"score {score} of {student} against {teacher} is not in [0, 1]")
        old = cells.get((teacher, student), Cell())
        cells[teacher, student] = Cell(old.score_sum + score, old.weight + 1, old.num_games + 1)
    return PayoffMatrix(keep, cells)


def add_latest(
    latest: Mapping[str, tuple[float, ...]], ids: Iterable[str], games: Sequence[tuple[str, str, float]], num_kept: int
) -> dict[str, tuple[float, ...]]:
    """Return each one's last ``num_kept`` payoffs in order of time; ``games`` as for ``record``.

    A student's payoff is its solve rate, a teacher's the complement; whoever is not among ``ids`` is left out.
    """
    result = {}
    for name in ids:
        own = [s if name == student else 1.0 - s for teacher, student, s in games if name in (teacher, student)]
        result[name] = (*latest.get(name, ()), *own)[-num_kept:]
    return result


def keep_only(matrix: PayoffMatrix, ids: Iterable[str]) -> PayoffMatrix:
    """Drop every pair with an individual outside ``ids`` (population and hall of fame), so that it stays small."""
    known = set(ids)
    cells = {pair: cell for pair, cell in matrix.cells.items() if known.issuperset(pair)}
    return PayoffMatrix(matrix.decay_frac, cells)


def mean_scores(
    matrix: PayoffMatrix, teachers: Sequence[str], students: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The students' mean scores (num_teachers, num_students) in [0, 1], NaN where they never played, and the counts."""
    scores = np.full((len(teachers), len(students)), np.nan)
    counts = np.zeros((len(teachers), len(students)), dtype=np.int64)
    for i, teacher in enumerate(teachers):
        for j, student in enumerate(students):
            cell = matrix.cells.get((teacher, student))
            if cell is not None and cell.weight > 0:
                scores[i, j] = cell.score_sum / cell.weight
                counts[i, j] = cell.num_games
    return scores, counts
