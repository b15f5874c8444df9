"""Matchmaking: the pairs of teacher and student of a step, by skill ratings that every match updates.

``pfsp``, prioritised fictitious self-play, favours pairs with an uncertain outcome; ``uniform`` is its control, and
``all_pairs`` fills the payoff matrix. The two sub-populations may differ in size: each teacher draws one student
without replacement, and the pool refills when it is empty. With fewer students than teachers, some meet several
teachers; with more, some have no match in this step.

The Gaussian update is that of Herbrich, Minka and Graepel, "TrueSkill: a Bayesian skill rating system" (2006), for two
players: each skill is a normal distribution, a performance is skill plus noise of standard deviation ``beta``, and the
higher performance wins unless the two are closer than the draw margin. The two roles are rated against each other, so
the ratings are zero-sum between them: both sub-populations cannot rise together, and a flat mean rating does not mean
stagnation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from redqueen.config import MatchConfig
from redqueen.records import Individual, Match, Rating

DEFAULTS = MatchConfig()
_UNIT_NORMAL = NormalDist()


@dataclass(frozen=True)
class GaussianRating:
    """Rates teachers and students by their matches against each other; a skill is a normal distribution.

    The defaults are the published constants.

    ``mu``, ``sigma``: mean and standard deviation of a newcomer's rating, in rating points. ``beta``: standard
    deviation of one performance. ``tau``: drift of a skill between matches. ``draw_frac`` in [0, 1): probability of a
    draw between equals, which fixes the draw margin (no reader of the paper gives it; 0.1 is TrueSkill's usual value).
    """

    mu: float = 25.0
    sigma: float = 25.0 / 3
    beta: float = 25.0 / 6
    tau: float = 25.0 / 300
    draw_frac: float = 0.1

    def newcomer(self) -> Rating:
        """Return the rating of a member without matches."""
        return Rating(self.mu, self.sigma)

    def expected_win(self, student: Rating, teacher: Rating) -> float:
        """Return the probability in [0, 1] that the student wins. Source: paper.

        p = Phi((mu_s - mu_t) / sqrt(sigma_s^2 + sigma_t^2 + 2 beta^2)).
        """
        spread = math.sqrt(student.sigma**2 + teacher.sigma**2 + 2 * self.beta**2)
        return _cdf((student.mu - teacher.mu) / spread)

    def update(self, teacher: Rating, student: Rating, winner: Winner) -> tuple[Rating, Rating]:
        """Return both ratings after one match, as ``(teacher, student)``.

        With c^2 = sigma_t^2 + sigma_s^2 + 2 beta^2 (each sigma^2 widened by tau^2 first), the first player's
        mu += sigma^2 / c * v and sigma^2 *= 1 - sigma^2 / c^2 * w; the second player's v has the other sign.
        """
        if winner == "student":
            new_student, new_teacher = self._shift(student, teacher, False)
            return new_teacher, new_student
        return self._shift(teacher, student, winner == "draw")

    def fitness(self, rating: Rating) -> float:
        """Return mu - 3 sigma, a lower confidence bound of the skill. Source: paper."""
        return rating.mu - 3 * rating.sigma

    def pool(self, ratings: Sequence[Rating]) -> Rating:
        """Return the mean mu and the root mean square sigma. Source: ours.

        A child's sigma is not widened: with a lower mu - 3 sigma, the newest would be removed instead of the worst.
        """
        return Rating(fmean(rating.mu for rating in ratings), math.sqrt(fmean(rating.sigma**2 for rating in ratings)))

    def draw_margin(self) -> float:
        """Performances closer than this are a draw: Phi^-1((draw_frac + 1) / 2) sqrt(2) beta, in rating points."""
        return _UNIT_NORMAL.inv_cdf((self.draw_frac + 1) / 2) * math.sqrt(2) * self.beta

    def _shift(self, first: Rating, second: Rating, drawn: bool) -> tuple[Rating, Rating]:
        """Update both ratings after ``first`` won or, with ``drawn``, after a draw."""
        var_first = first.sigma**2 + self.tau**2
        var_second = second.sigma**2 + self.tau**2
        c = math.sqrt(var_first + var_second + 2 * self.beta**2)
        lead, margin = (first.mu - second.mu) / c, self.draw_margin() / c
        v, w = _draw_moments(lead, margin) if drawn else _win_moments(lead, margin)
        return _moved(first.mu, var_first, c, v, w), _moved(second.mu, var_second, c, -v, w)


STANDARD = GaussianRating()
"""The rating system with the published constants."""


def decide(solve_rate_frac: float | None, expected_win_frac: float, tolerance_frac: float = 1e-9) -> Winner:
    """Return the winner: the student if it solved more than the ratings predict, the teacher if less, else a draw.

    ``solve_rate_frac`` is the mean over the match's tasks of the share of graded attempts that were right; None when
    the teacher made no valid task, and then the student wins. Do not call this for a match whose attempts were all
    lost: it has no result. Source: re-implementations.
    """
    if solve_rate_frac is None:
        return "student"
    if abs(solve_rate_frac - expected_win_frac) <= tolerance_frac:
        return "draw"
    return "student" if solve_rate_frac > expected_win_frac else "teacher"


def _moved(mu: float, variance: float, c: float, v: float, w: float) -> Rating:
    """Shift the mean by variance / c * v and shrink the variance by 1 - variance / c^2 * w."""
    return Rating(mu + variance / c * v, math.sqrt(variance * max(1e-12, 1 - variance / c**2 * w)))


def _win_moments(lead: float, margin: float) -> tuple[float, float]:
    """Mean and variance corrections (v, w) of a normal truncated below ``margin``, relative to ``lead``."""
    x = lead - margin
    mass = _cdf(x)
    # Far in the lower tail the mass underflows; there v tends to -x and w to 1.
    v = _pdf(x) / mass if mass > 0 else -x
    return v, min(1.0, max(0.0, v * (v + x)))


def _draw_moments(lead: float, margin: float) -> tuple[float, float]:
    """Corrections (v, w) of a normal truncated to [-margin, margin], relative to ``lead``."""
    distance = abs(lead)  # in the lower tail both probabilities keep their precision
    upper, lower = margin - distance, -margin - distance
    mass = _cdf(upper) - _cdf(lower)
    if mass <= 0:  # the interval has no mass: treated as a point, v = -lead and w = 1
        return math.copysign(upper, -lead), 1.0
    v = (_pdf(lower) - _pdf(upper)) / mass
    w = v**2 + (upper * _pdf(upper) - lower * _pdf(lower)) / mass
    return math.copysign(1.0, lead) * v, min(1.0, max(0.0, w))


def _pdf(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _cdf(x: float) -> float:
    """Phi(x) by erfc, which keeps its precision in the lower tail, where erf loses it by cancellation."""
    return math.erfc(-x / math.sqrt(2)) / 2


def pair(
    teachers: Sequence[Individual],
    students: Sequence[Individual],
    rng: np.random.Generator,
    config: MatchConfig = DEFAULTS,
) -> list[Match]:
    """Return the matches of a step by ``config.rule``, ordered by teacher (``all_pairs``: then by student).

    Under pfsp a student is drawn with weight p (1 - p), where p is its expected win. Raises ValueError without teachers
    or students. Source: paper (pfsp), re-implementations (weight, refilling pool), ours (the other rules).
    """
    if not teachers or not students:
        raise ValueError("a match needs at least one teacher and one student")
    wins = _expected_wins([t.rating for t in teachers], [s.rating for s in students])
    pairs = RULES[config.rule](wins, rng)
    return [Match(teachers[i].id, students[j].id, float(wins[i, j])) for i, j in pairs]


def preference(teachers: Sequence[Rating], students: Sequence[Rating]) -> float:
    """Return how far pfsp's first draw is from uniform, in [0, 1 - 1 / number of students]; 0: uniform.

    The total variation distance between a teacher's chances of drawing each student, proportional to p (1 - p), and
    equal chances. Mean over teachers (ours).
    """
    log_weights = _log_weights(_expected_wins(teachers, students))
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
) -> list[Match]:
    """Put a frozen past member into each match with probability ``config.hall_of_fame_frac``.

    The past member replaces the teacher or the student with equal probability (or always the only role that has a hall)
    and is drawn uniformly. A match that would occur twice is left unchanged. The number of matches does not change.
    Source: hall of fame of Rosin and Belew (1997); the share and the choice of the role are ours. Off by default.
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
        changed = Match(teacher.id, student.id, STANDARD.expected_win(student.rating, teacher.rating))
        result.append(match if changed in result else changed)
    return result


def _pfsp(wins: NDArray[np.float64], rng: np.random.Generator) -> list[tuple[int, int]]:
    """One student for each teacher, drawn with weight p (1 - p)."""
    return _draw_without_replacement(_log_weights(wins), rng)


def _uniform(wins: NDArray[np.float64], rng: np.random.Generator) -> list[tuple[int, int]]:
    """One student for each teacher, all equally likely."""
    return _draw_without_replacement(np.zeros_like(wins), rng)


def _all_pairs(wins: NDArray[np.float64], rng: np.random.Generator) -> list[tuple[int, int]]:
    """All pairs: every student attempts every teacher's tasks."""
    return [(i, j) for i, j in np.ndindex(wins.shape)]


RULES: dict[str, Callable[[NDArray[np.float64], np.random.Generator], list[tuple[int, int]]]] = {
    "pfsp": _pfsp,
    "uniform": _uniform,
    "all_pairs": _all_pairs,
}


def _expected_wins(teachers: Sequence[Rating], students: Sequence[Rating]) -> NDArray[np.float64]:
    return np.array([[STANDARD.expected_win(student, teacher) for student in students] for teacher in teachers])


def _log_weights(wins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(p (1 - p)), bounded below: an extreme p gives a tiny weight, not 0/0."""
    return np.log(np.clip(wins * (1 - wins), 1e-300, None))


def _draw_without_replacement(log_weights: NDArray[np.float64], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Let the teachers draw in random order, so that the last one does not always get the remaining student; return the
    pairs sorted by teacher."""
    num_teachers, num_students = log_weights.shape
    pool: list[int] = []
    drawn = []
    for teacher in rng.permutation(num_teachers):
        pool = pool or list(range(num_students))
        weights = np.exp(log_weights[teacher, pool] - log_weights[teacher, pool].max())
        student = pool.pop(rng.choice(len(pool), p=weights / weights.sum()))
        drawn.append((int(teacher), student))
    return sorted(drawn)


Winner = Literal["teacher", "student", "draw"]
