"""Ratings: the protocol that matchmaking and selection ask, Gaussian skill ratings behind it, and who won a match.

The Gaussian update is that of Herbrich, Minka and Graepel, "TrueSkill: a Bayesian skill rating system" (2006), for two
players: each skill is a normal belief, a performance is skill plus noise of standard deviation ``beta``, and the higher
performance wins unless the two are closer than the draw margin. The two roles are rated against each other, so the
ratings are zero-sum between them: both sub-populations cannot rise together, and a flat mean rating is no stagnation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Literal, Protocol

from redqueen.records import Rating

Winner = Literal["teacher", "student", "draw"]

_UNIT = NormalDist()


class RatingSystem(Protocol):
    """Rates teachers and students by their games against each other.

    What a ``Rating`` means is the system's own affair: others store its two numbers and hand them back.
    """

    def newcomer(self) -> Rating:
        """Return the rating of a member without any game."""
        ...

    def expected_win(self, student: Rating, teacher: Rating) -> float:
        """Return the student's expected win in [0, 1]."""
        ...

    def update(self, teacher: Rating, student: Rating, winner: Winner) -> tuple[Rating, Rating]:
        """Return both ratings after one game, as ``(teacher, student)``."""
        ...

    def fitness(self, rating: Rating) -> float:
        """Return what selection reads: the higher the better."""
        ...

    def inherit(self, parents: Sequence[Rating]) -> Rating:
        """Return the rating of a child that takes its parents' (one or more) over."""
        ...

    def pool(self, ratings: Sequence[Rating]) -> Rating:
        """Return one rating for a member that has several (one or more), each in a domain of its own."""
        ...


@dataclass(frozen=True)
class GaussianRating:
    """Implements ``RatingSystem``: a skill is a normal belief. The defaults are the published constants.

    ``mu``, ``sigma``: mean and standard deviation of a newcomer's rating, in rating points. ``beta``: spread of one
    performance. ``tau``: drift of a skill between matches. ``draw_frac`` in [0, 1): probability of a draw between
    equals, which fixes the draw margin (no reader of the paper names one; 0.1 is the rating system's usual value).
    """

    mu: float = 25.0
    sigma: float = 25.0 / 3
    beta: float = 25.0 / 6
    tau: float = 25.0 / 300
    draw_frac: float = 0.1

    def newcomer(self) -> Rating:
        """Return the rating of a member without any game."""
        return Rating(self.mu, self.sigma)

    def expected_win(self, student: Rating, teacher: Rating) -> float:
        """Return the student's expected win in [0, 1]. Ground: paper.

        p = Phi((mu_s - mu_t) / sqrt(sigma_s^2 + sigma_t^2 + 2 beta^2)).
        """
        spread = math.sqrt(student.sigma**2 + teacher.sigma**2 + 2 * self.beta**2)
        return _cdf((student.mu - teacher.mu) / spread)

    def update(self, teacher: Rating, student: Rating, winner: Winner) -> tuple[Rating, Rating]:
        """Return the two beliefs after one game, as ``(teacher, student)``.

        With c^2 = sigma_t^2 + sigma_s^2 + 2 beta^2 (each sigma^2 widened by tau^2 first), the first player's
        mu += sigma^2 / c * v and sigma^2 *= 1 - sigma^2 / c^2 * w; the second player's v has the other sign.
        """
        if winner == "student":
            new_student, new_teacher = self._shift(student, teacher, False)
            return new_teacher, new_student
        return self._shift(teacher, student, winner == "draw")

    def fitness(self, rating: Rating) -> float:
        """Return the lower confidence bound mu - 3 sigma: a skill that is very probably reached. Ground: paper."""
        return rating.mu - 3 * rating.sigma

    def inherit(self, parents: Sequence[Rating]) -> Rating:
        """Return the parents' mean mu and twice their root mean square sigma, at most a newcomer's. Ground: ours."""
        sigma = 2 * math.sqrt(fmean(rating.sigma**2 for rating in parents))
        return Rating(fmean(rating.mu for rating in parents), min(sigma, self.sigma))

    def pool(self, ratings: Sequence[Rating]) -> Rating:
        """Return the mean mu and the root mean square sigma. Ground: ours."""
        return Rating(fmean(rating.mu for rating in ratings), math.sqrt(fmean(rating.sigma**2 for rating in ratings)))

    def draw_margin(self) -> float:
        """Performances closer than this are a draw: Phi^-1((draw_frac + 1) / 2) sqrt(2) beta, in rating points."""
        return _UNIT.inv_cdf((self.draw_frac + 1) / 2) * math.sqrt(2) * self.beta

    def _shift(self, first: Rating, second: Rating, drawn: bool) -> tuple[Rating, Rating]:
        """The update when ``first`` has won or, with ``drawn``, neither has."""
        var_first = first.sigma**2 + self.tau**2
        var_second = second.sigma**2 + self.tau**2
        c = math.sqrt(var_first + var_second + 2 * self.beta**2)
        lead, margin = (first.mu - second.mu) / c, self.draw_margin() / c
        v, w = _draw_moments(lead, margin) if drawn else _win_moments(lead, margin)
        return _moved(first.mu, var_first, c, v, w), _moved(second.mu, var_second, c, -v, w)


STANDARD = GaussianRating()
"""With the published standard constants."""


def decide(solve_rate_frac: float | None, expected_win_frac: float, tolerance_frac: float = 1e-9) -> Winner:
    """Who won: the student if it solved more than the ratings predict, the teacher if less, else a draw.

    ``solve_rate_frac`` is the mean over the match's tasks of the share of judged attempts that were right; None when
    the teacher made no valid task, and then the student wins. A match whose attempts were all lost is no game: do not
    ask. Ground: re-implementations.
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
    """Mean and variance corrections (v, w) of a normal cut off below ``margin``, seen from ``lead``."""
    x = lead - margin
    mass = _cdf(x)
    # Far in the lower tail the mass underflows; there v tends to -x and w to 1.
    v = _pdf(x) / mass if mass > 0 else -x
    return v, min(1.0, max(0.0, v * (v + x)))


def _draw_moments(lead: float, margin: float) -> tuple[float, float]:
    """Corrections (v, w) of a normal cut off outside [-margin, margin], seen from ``lead``."""
    distance = abs(lead)  # the lower tail, where both masses keep their digits
    upper, lower = margin - distance, -margin - distance
    mass = _cdf(upper) - _cdf(lower)
    if mass <= 0:  # no margin at all, or out of reach: the interval is a point, v = -lead and w = 1
        return math.copysign(upper, -lead), 1.0
    v = (_pdf(lower) - _pdf(upper)) / mass
    w = v**2 + (upper * _pdf(upper) - lower * _pdf(lower)) / mass
    return math.copysign(1.0, lead) * v, min(1.0, max(0.0, w))


def _pdf(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _cdf(x: float) -> float:
    """Phi(x) through erfc, which keeps its digits in the lower tail where erf would cancel."""
    return math.erfc(-x / math.sqrt(2)) / 2
