"""Matchmaking: which teacher is paired with which student this step.

``pfsp``, prioritised fictitious self-play, favours pairs whose outcome is open; ``uniform`` is its control, and
``all_pairs`` fills the payoff matrix. Numbers need not match: each teacher draws one student without replacement and
the pool refills when it runs out, so with fewer students some meet several teachers, and with more some sit out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.config import MatchConfig
from redqueen.match.rating import STANDARD, RatingSystem
from redqueen.records import Individual, Match, Rating

DEFAULTS = MatchConfig()


def pair(
    teachers: Sequence[Individual],
    students: Sequence[Individual],
    rng: np.random.Generator,
    config: MatchConfig = DEFAULTS,
    rating: RatingSystem = STANDARD,
) -> list[Match]:
    """The matches of one step by ``config.rule``, in the order of ``teachers`` (``all_pairs``: then of ``students``).

    ``pfsp_exponent`` sharpens pfsp: a student is drawn with weight (p (1 - p))^exponent, p its expected win; 0 is
    uniform. Raises ValueError for an empty side.
    Ground: paper (pfsp), re-implementations (weight, refilling pool), ours (the other rules).
    """
    if not teachers or not students:
        raise ValueError("a match needs at least one teacher and one student")
    wins = _expected_wins([t.rating for t in teachers], [s.rating for s in students], rating)
    pairs = RULES[config.rule](wins, rng, config.pfsp_exponent)
    return [Match(teachers[i].id, students[j].id, float(wins[i, j])) for i, j in pairs]


def preference(
    teachers: Sequence[Rating],
    students: Sequence[Rating],
    config: MatchConfig = DEFAULTS,
    rating: RatingSystem = STANDARD,
) -> float:
    """Total variation distance of pfsp's first draw from a uniform one, in [0, 1 - 1 / number of students]; 0: uniform.

    The total variation distance between a teacher's chances of drawing each student, proportional to
    (p (1 - p))^exponent, and equal chances: the share of draws that look at the ratings. Mean over teachers (ours).
    """
    log_weights = _log_weights(_expected_wins(teachers, students, rating), config.pfsp_exponent)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    chances = weights / weights.sum(axis=1, keepdims=True)
    return float(np.abs(chances - 1 / len(students)).sum(axis=1).mean() / 2)


def with_hall_of_fame(
    matches: Sequence[Match],
    teachers: Sequence[Individual],
    students: Sequence[Individual],
    hall_teachers: Sequence[Individual],
    hall_students: Sequence[Individual],
    rng: np.random.Generator,
    config: MatchConfig = DEFAULTS,
    rating: RatingSystem = STANDARD,
) -> list[Match]:
    """Put a frozen past member into each match with probability ``config.hall_of_fame_frac``.

    A fair coin (among the sides that have a hall) says which side the past member takes; it is drawn uniformly. A match
    that would stand there twice is left as it was. The number of matches does not change. Ground:
    hall of fame of Rosin and Belew (1997); the share and the coin are ours, off by default.
    """
    members = {member.id: member for member in (*teachers, *students)}
    sides = [side for side, hall in (("teacher", hall_teachers), ("student", hall_students)) if hall]
    result: list[Match] = []
    for match in matches:
        teacher, student = members[match.teacher], members[match.student]
        if sides and rng.random() < config.hall_of_fame_frac:
            if sides[int(rng.integers(len(sides)))] == "teacher":
                teacher = hall_teachers[int(rng.integers(len(hall_teachers)))]
            else:
                student = hall_students[int(rng.integers(len(hall_students)))]
        changed = Match(teacher.id, student.id, rating.expected_win(student.rating, teacher.rating))
        result.append(match if changed in result else changed)
    return result


def _pfsp(wins: NDArray[np.float64], rng: np.random.Generator, exponent: float) -> list[tuple[int, int]]:
    """One student for each teacher, drawn with weight (p (1 - p))^exponent."""
    return _draw_without_replacement(_log_weights(wins, exponent), rng)


def _uniform(wins: NDArray[np.float64], rng: np.random.Generator, exponent: float) -> list[tuple[int, int]]:
    """One student for each teacher, all equally likely."""
    return _draw_without_replacement(np.zeros_like(wins), rng)


def _all_pairs(wins: NDArray[np.float64], rng: np.random.Generator, exponent: float) -> list[tuple[int, int]]:
    """Every student attempts every teacher's tasks."""
    num_teachers, num_students = wins.shape
    return [(i, j) for i in range(num_teachers) for j in range(num_students)]


RULES: dict[str, Callable[[NDArray[np.float64], np.random.Generator, float], list[tuple[int, int]]]] = {
    "pfsp": _pfsp,
    "uniform": _uniform,
    "all_pairs": _all_pairs,
}


def _expected_wins(teachers: Sequence[Rating], students: Sequence[Rating], rating: RatingSystem) -> NDArray[np.float64]:
    return np.array([[rating.expected_win(student, teacher) for student in students] for teacher in teachers])


def _log_weights(wins: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """In logarithms, so that a hopeless pair gets a tiny weight rather than a 0/0."""
    return exponent * np.log(np.clip(wins * (1 - wins), 1e-300, None))


def _draw_without_replacement(log_weights: NDArray[np.float64], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Teachers draw in random order, lest the last of the list always takes what is left; sorted back by teacher."""
    num_teachers, num_students = log_weights.shape
    pool: list[int] = []
    drawn = []
    for teacher in rng.permutation(num_teachers):
        pool = pool or list(range(num_students))
        weights = np.exp(log_weights[teacher, pool] - log_weights[teacher, pool].max())
        student = pool.pop(rng.choice(len(pool), p=weights / weights.sum()))
        drawn.append((int(teacher), student))
    return sorted(drawn)
