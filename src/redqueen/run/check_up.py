"""The check-up of a generation: how healthy the co-evolution is, measured on the journal and the adapters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.evolve import health
from redqueen.evolve.health import proposing_distances, solving_distances
from redqueen.journal import Journal
from redqueen.journal.write import Row
from redqueen.nouns import Individual, Role
from redqueen.policy.protocols import AdapterStore
from redqueen.population.genotype import norm, pairwise_distances

Matrix = NDArray[np.float64]


def check_up(
    journal: Journal,
    store: AdapterStore,
    played: Sequence[Individual],
    living: Sequence[Individual],
    step: int,
    every_steps: int,
) -> health.Health:
    """Measure the generation that ends with ``step``, which the journal must hold already.

    A generation is the last ``every_steps`` steps. Games and behaviour are those of the members that ``played``; the
    adapters compared are those of the ``living`` (the population now), children included.
    """
    since = max(0, step - every_steps)
    tasks = journal.query(
        "SELECT 1.0 * num_correct / num_attempts AS solved FROM task WHERE step > ? AND step <= ? AND num_attempts > 0",
        (since, step),
    )
    games = _games(journal, since, step)
    return health.Health(
        disengagement=health.disengagement([row["solved"] for row in tasks]),
        cycling=_cycling(games),
        forgetting_frac=health.forgetting(
            _against_the_past(journal, 0, since), _against_the_past(journal, since, step)
        ),
        teachers=health.Diversity(
            _weights(store, living, "teacher"),
            health.behaviour_diversity(
                proposing_distances(_class_counts(journal, _ids(played, "teacher"), since, step))
            ),
        ),
        students=health.Diversity(
            _weights(store, living, "student"), _solving_diversity(games, _ids(played, "student"))
        ),
        stability=_stability(journal, step, every_steps),
    )


def _ids(members: Sequence[Individual], role: Role) -> list[str]:
    return [member.id for member in members if member.role == role]


def _games(journal: Journal, since: int, step: int) -> list[Row]:
    """Each pair that played after ``since``: solve_frac (weighted by tasks) and the number of attempts."""
    return journal.query(
        "SELECT m.teacher, m.student, sum(m.solve_frac * m.num_tasks) / sum(m.num_tasks) AS solved, "
        "(SELECT count(*) FROM attempt a JOIN task t ON a.task = t.seq WHERE t.step > ?1 AND t.step <= ?2 "
        "AND t.teacher = m.teacher AND a.student = m.student AND NOT a.lost) AS num_attempts "
        "FROM match m WHERE m.step > ?1 AND m.step <= ?2 AND m.solve_frac IS NOT NULL AND m.teacher != m.student "
        "GROUP BY m.teacher, m.student ORDER BY m.teacher, m.student",
        (since, step),
    )


def _table(games: Sequence[Row], teachers: Sequence[str], students: Sequence[str], column: str) -> Matrix:
    """One number of each game as (teachers, students), NaN where a pair never played."""
    table = np.full((len(teachers), len(students)), np.nan)
    for game in games:
        if game["teacher"] in teachers and game["student"] in students:
            table[teachers.index(game["teacher"]), students.index(game["student"])] = game[column]
    return table


def _cycling(games: Sequence[Row]) -> health.Cycling | None:
    teachers, students = sorted({g["teacher"] for g in games}), sorted({g["student"] for g in games})
    solved, attempts = (_table(games, teachers, students, column) for column in ("solved", "num_attempts"))
    return health.cycling(solved, attempts)


def _solving_diversity(games: Sequence[Row], students: Sequence[str]) -> float | None:
    teachers = sorted({g["teacher"] for g in games})
    return health.behaviour_diversity(solving_distances(_table(games, teachers, students, "solved").T))


def _class_counts(journal: Journal, teachers: Sequence[str], since: int, step: int) -> Matrix:
    """How many tasks of each behaviour class each teacher wrote: (teachers, classes)."""
    rows = journal.query(
        "SELECT teacher, behaviour_class AS name, count(*) AS num FROM task WHERE step > ? AND step <= ? "
        "GROUP BY teacher, behaviour_class",
        (since, step),
    )
    names = sorted({row["name"] for row in rows})
    counts = np.zeros((len(teachers), len(names)))
    for row in rows:
        if row["teacher"] in teachers:
            counts[teachers.index(row["teacher"]), names.index(row["name"])] = row["num"]
    return counts


def _against_the_past(journal: Journal, since: int, step: int) -> dict[str, float]:
    """The population's mean score against each past member in the games after ``since``, by the past member's id."""
    rows = journal.query(
        "SELECT h.id, avg(CASE WHEN m.teacher = h.id THEN m.solve_frac ELSE 1 - m.solve_frac END) AS score "
        "FROM hall h JOIN match m ON h.id IN (m.teacher, m.student) "
        "WHERE m.step > ? AND m.step <= ? AND m.solve_frac IS NOT NULL GROUP BY h.id ORDER BY h.id",
        (since, step),
    )
    return {row["id"]: row["score"] for row in rows}


def _weights(store: AdapterStore, living: Sequence[Individual], role: Role) -> float | None:
    """The spread of the adapters of one role."""
    adapters = [store.genotype(member.slot) for member in living if member.role == role]
    if len(adapters) < 2:
        return None
    return health.weight_diversity(np.array(pairwise_distances(adapters)), [norm(adapter) for adapter in adapters])


def _stability(journal: Journal, step: int, every_steps: int) -> health.Stability | None:
    """Solve rate and classes covered so far, generation by generation up to this one."""
    rates = journal.query(
        "SELECT (step - 1) / ?1 AS number, avg(1.0 * num_correct / num_attempts) AS solved FROM task "
        "WHERE num_attempts > 0 AND step <= ?2 GROUP BY number ORDER BY number",
        (every_steps, step),
    )
    firsts = [
        row["number"]
        for row in journal.query(
            "SELECT (min(step) - 1) / ?1 AS number FROM task WHERE step <= ?2 GROUP BY behaviour_class",
            (every_steps, step),
        )
    ]
    covered = [float(sum(first <= row["number"] for first in firsts)) for row in rates]
    return health.stability([row["solved"] for row in rates], covered)
