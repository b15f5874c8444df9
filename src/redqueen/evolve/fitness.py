"""Internal fitness: what selection reads. Ratings, late payoffs or rewards, with an optional shelter for the young.

It is relative: it moves as the opponents move, and says nothing about a benchmark. External fitness, the score on held
out suites, is reported and never selected on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from redqueen.config import EvolveConfig
from redqueen.match.rating import STANDARD, RatingSystem
from redqueen.nouns import Individual


@dataclass(frozen=True)
class Evidence:
    """What is known of members, by id: payoffs of late games and mean rewards of late steps, in order of time, and the
    share of the latest probe that a student solved."""

    payoffs: Mapping[str, Sequence[float]] = field(default_factory=dict)
    rewards: Mapping[str, Sequence[float]] = field(default_factory=dict)
    probes: Mapping[str, float] = field(default_factory=dict)


def internal_fitness(
    individuals: Sequence[Individual],
    evidence: Evidence,
    step: int,
    config: EvolveConfig,
    rating: RatingSystem = STANDARD,
) -> dict[str, float]:
    """Fitness by id, as the config asks for it; each role is measured among its own. ``step`` tells their ages.

    Where a probe is asked for and nobody was probed (evolution is off, there is nothing to ask) students have their
    rating.
    """
    fitness: dict[str, float] = {}
    for role in dict.fromkeys(member.role for member in individuals):
        members = [member for member in individuals if member.role == role]
        asks = config.fitness == "probe" and role != "teacher"
        if config.fitness == "rating" or (asks and not evidence.probes):
            values = {member.id: rating.fitness(member.rating) for member in members}
        elif asks:
            values = by_late_mean(
                {m.id: (evidence.probes[m.id],) if m.id in evidence.probes else () for m in members}, 1
            )
        else:
            late = evidence.payoffs if config.fitness == "payoff" else evidence.rewards
            values = by_late_mean({m.id: late.get(m.id, ()) for m in members}, config.payoff_window)
        fitness |= age_protected(values, members, step, config.protected_steps)
    return fitness


def by_late_mean(series: Mapping[str, Sequence[float]], num_kept: int) -> dict[str, float]:
    """Fitness by id: the mean of the last ``num_kept`` >= 1 numbers, given in order of time.

    A payoff is in [0, 1]: a student's solve rate, a teacher's 1 - s. A reward is in [-1, 1]. A member without any
    number gets the mean of the others (0.5 when no member has any). Unlike a rating it does not ask who the opponent
    was. Ground: ours.
    """
    if num_kept < 1:
        raise ValueError("the window must hold at least one number")
    means = {name: fmean(values[-num_kept:]) for name, values in series.items() if values}
    unknown = fmean(means.values()) if means else 0.5
    return {name: means.get(name, unknown) for name in series}


def age_protected(
    fitness: Mapping[str, float], individuals: Sequence[Individual], step: int, min_age_steps: int
) -> dict[str, float]:
    """Lift every individual younger than ``min_age_steps`` at least to the median of the grown-ups' fitness.

    A reset rating starts at mu - 3 sigma = 0, below almost everybody, so without a shelter a child may leave before it
    has been measured. Without an older member there is no median, and no fitness changes. Ground: ours.
    """
    young = {member.id for member in individuals if step - member.born_step < min_age_steps}
    grown = [value for name, value in fitness.items() if name not in young]
    if not grown:
        return dict(fitness)
    floor = median(grown)
    return {name: max(value, floor) if name in young else value for name, value in fitness.items()}
