"""Selection: fitness, survivor selection, parent selection, and inherited genes.

Fitness is relative: it changes as the opponents change. Scores on held-out suites are never read here. The only member
of a role is never replaced for its fitness; of two or more at least one is replaced and one stays. Broken members (last
update not finite) are replaced first. Genes are factors on a member's learning rate and temperature: a founder's is g^z
with z standard normal, a child's its first parent's times g or 1/g (population-based training, Jaderberg et al. 2017;
which genes, and g: ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from types import FunctionType
from typing import Any, Literal, cast

import numpy as np

from redqueen.config import EvolveConfig
from redqueen.domains.registry import import_as
from redqueen.errors import UserError
from redqueen.match import STANDARD
from redqueen.records import Genes, Individual


@dataclass(frozen=True)
class Evidence:
    """The data from which fitness is computed, by member id: ``rewards``, the mean rewards of recent steps, oldest
    first; ``probes``, the share of the latest probe that a student solved."""

    rewards: Mapping[str, Sequence[float]] = field(default_factory=dict)
    probes: Mapping[str, float] = field(default_factory=dict)


def internal_fitness(
    individuals: Sequence[Individual],
    evidence: Evidence,
    step: int,
    config: EvolveConfig,
) -> dict[str, float]:
    """Fitness by id, as ``config.fitness`` defines it, role by role; ``step`` gives the members' ages.

    If a configured probe did not run (evolution is off, the archive is empty), students are measured by rating. A
    user's function (``module:NAME``) gets a member and the evidence. Raises UserError when it cannot be imported or
    does not return a finite number.
    """
    fitness: dict[str, float] = {}
    measure = import_fitness(config.fitness)
    for role in dict.fromkeys(member.role for member in individuals):
        members = [member for member in individuals if member.role == role]
        uses_probe = config.fitness == "probe" and role != "teacher"
        if measure:
            values = finite_by({m.id: measure(m, evidence) for m in members}, f"evolve.fitness {config.fitness}")
        elif config.fitness == "rating" or (uses_probe and not evidence.probes):
            values = {member.id: STANDARD.fitness(member.rating) for member in members}
        elif uses_probe:
            values = by_late_mean(
                {m.id: (evidence.probes[m.id],) if m.id in evidence.probes else () for m in members}, 1
            )
        else:
            values = by_late_mean({m.id: evidence.rewards.get(m.id, ()) for m in members}, config.every_steps)
        fitness |= age_protected(values, members, step, config.protected_steps)
    return fitness


def import_fitness(name: str) -> Callable[[Individual, Evidence], float] | None:
    """Import a user's fitness; None for a built-in one. Raises UserError when the import fails."""
    return cast(Any, import_as(name, FunctionType, "a function")) if ":" in name else None


def finite_by(values: Mapping[str, object], source: str) -> dict[str, float]:
    """Return numbers by name as floats. Raises UserError, naming the source, for one that is not a finite number."""
    for name, value in values.items():
        try:
            good = math.isfinite(float(value))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            good = False
        if not good:
            raise UserError(f"{source} returns {value!r:.80} for {name}: return a finite number")
    return {name: float(value) for name, value in values.items()}  # type: ignore[arg-type]


def by_late_mean(series: Mapping[str, Sequence[float]], num_kept: int) -> dict[str, float]:
    """Fitness by id: the mean of the last ``num_kept`` >= 1 numbers of a series, which is in order of time.

    A member without any number gets the mean of the others (0.5 when no member has any). Unlike a rating, a mean reward
    ignores who the opponent was. Source: ours.
    """
    if num_kept < 1:
        raise ValueError("the window must hold at least one number")
    means = {name: fmean(values[-num_kept:]) for name, values in series.items() if values}
    unknown = fmean(means.values()) if means else 0.5
    return {name: means.get(name, unknown) for name in series}


def rank_frac(names: Sequence[str], members: Sequence[Individual], rewards: Mapping[str, Sequence[float]]) -> float:
    """Return the mean rank of the members ``names`` within their role by mean recent reward: 0 worst, 1 best.

    Ties count half, so a member chosen at random has 0.5 on average. NaN when there is no other member to compare with.
    """
    means = {m.id: fmean(rewards[m.id]) for m in members if rewards.get(m.id)}
    beaten = [
        (means[other] < means[name]) + (means[other] == means[name]) / 2
        for name in names
        if name in means
        for other in means
        if other != name
    ]
    return fmean(beaten) if beaten else float("nan")


def age_protected(
    fitness: Mapping[str, float], individuals: Sequence[Individual], step: int, min_age_steps: int
) -> dict[str, float]:
    """Raise the fitness of individuals younger than ``min_age_steps`` to at least the median of the older ones.

    A reset rating starts at mu - 3 sigma = 0, below almost all others, so an unprotected child may be replaced before
    it has been measured. Without an older member there is no median, and no fitness changes. Source: ours.
    """
    young = {member.id for member in individuals if step - member.born_step < min_age_steps}
    older = [value for name, value in fitness.items() if name not in young]
    if not older:
        return dict(fitness)
    floor = median(older)
    return {name: max(value, floor) if name in young else value for name, value in fitness.items()}


Selection = Literal["truncation", "tournament", "rank"]

TOURNAMENT_SIZE = 2
"""Candidates in a tournament: 2 is the weakest selection pressure (ours)."""


def select_parents(rule: Selection, fitness: Sequence[float], num_parents: int, rng: np.random.Generator) -> list[int]:
    """The indices of ``num_parents`` distinct parents, the fittest of them first.

    ``truncation`` takes the fittest (paper). ``tournament`` takes, for each parent, the best of two drawn at random
    from the remaining candidates. ``rank`` draws with weight n for the best down to 1 for the worst (both ours). Raises
    ValueError for too few candidates.
    """
    if not 1 <= num_parents <= len(fitness):
        raise ValueError(f"cannot select {num_parents} parents from {len(fitness)}")
    ranking = fittest_first(fitness)
    if rule == "truncation":
        return ranking[:num_parents]
    left, chosen = list(ranking), []
    for _ in range(num_parents):
        if rule == "tournament":
            place = int(rng.choice(len(left), size=min(TOURNAMENT_SIZE, len(left)), replace=False).min())
        else:
            weights = np.arange(len(left), 0, -1, dtype=np.float64)
            place = int(rng.choice(len(left), p=weights / weights.sum()))
        chosen.append(left.pop(place))
    return sorted(chosen, key=ranking.index)


def fittest_first(fitness: Sequence[float]) -> list[int]:
    """Indices from the fittest to the least fit; equals keep their order, NaN counts as the worst."""
    return sorted(range(len(fitness)), key=lambda i: (np.isnan(fitness[i]), -fitness[i]))


def num_leaving(num_members: int, replaced_frac: float) -> int:
    """How many of a role are replaced: the fraction rounded down, at least 1 of 2 or more, never all; 0 for 0."""
    if not 0 <= replaced_frac <= 1:
        raise ValueError("replaced_frac must be in [0, 1]")
    if num_members < 2 or replaced_frac == 0:
        return 0
    return min(max(1, int(replaced_frac * num_members + 1e-9)), num_members - 1)


def choose_leaving(fitness: Sequence[float], replaced_frac: float = 0.25, broken: Collection[int] = ()) -> list[int]:
    """The indices to replace: all broken members, then the least fit of the others up to the fraction (paper: 25 %),
    but not the fittest of these."""
    quota = num_leaving(len(fitness), replaced_frac)
    leaving = sorted(broken)
    sound = [i for i in fittest_first(fitness) if i not in leaving]
    num_more = max(0, quota - len(leaving))  # less than len(sound), since the quota is less than all
    return leaving + sound[len(sound) - num_more :][::-1]


GENE_FACTOR = 1.25
"""g. Source: population-based training."""
SMALLEST, LARGEST = 0.1, 10.0
"""Bounds of a factor (ours)."""


def founder_genes(enabled: Sequence[str], rng: np.random.Generator) -> Genes:
    """Return a founder's genes; those that are not enabled are 1."""
    return replace(Genes(), **{name: _bounded(GENE_FACTOR ** float(rng.normal())) for name in enabled})


def mutated(genes: Genes, enabled: Sequence[str], rng: np.random.Generator) -> Genes:
    """Return a child's genes, mutated from its first parent's ``genes``."""
    steps = {name: GENE_FACTOR if rng.random() < 0.5 else 1.0 / GENE_FACTOR for name in enabled}
    return replace(genes, **{name: _bounded(getattr(genes, name) * step) for name, step in steps.items()})


def _bounded(value: float) -> float:
    return min(LARGEST, max(SMALLEST, value))
