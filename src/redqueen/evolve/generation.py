"""One turn of evolution for one role: plan who leaves and who breeds, then breed; who enters the hall of fame.

``plan`` looks at fitness only and is cheap; ``breed`` makes one planned child from the parents' genotypes. The children
of a generation are all made from individuals that stay, so the order of breeding does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray

from redqueen.config import EvolveConfig
from redqueen.errors import UserError
from redqueen.evolve.genes import founder_genes, mutated
from redqueen.evolve.islands import MIGRATE
from redqueen.evolve.operators import apply, find, tuned
from redqueen.evolve.replacement import choose_leaving
from redqueen.evolve.selection import fittest_first, select_parents
from redqueen.match.rating import STANDARD, RatingSystem
from redqueen.nouns import Birth, Individual, Rating
from redqueen.policy.protocols import AdapterStore
from redqueen.population.genotype import Genotype, fresh_like
from redqueen.population.hall_of_fame import Entry, HallOfFame, admit


@dataclass(frozen=True)
class PlannedBirth:
    """Who leaves, from whom the child comes, by which operator, with which seed. No parents: a fresh founder."""

    replaced: str
    parents: tuple[str, ...]
    operator: str
    rng_seed: int


@dataclass(frozen=True)
class Newborn:
    """The child as a member, its factors, its line in the lineage, and whose optimiser state it takes (None: fresh)."""

    individual: Individual
    genotype: Genotype
    birth: Birth
    moments_from: str | None


def check_constants(config: EvolveConfig, lora_rank: int) -> None:
    """Raise UserError when the config sets a constant that its operator does not have, or one out of range for adapters
    of this rank."""
    for operator, constants in config.constants.items():
        try:
            chosen = tuned(find(operator), constants)
        except UserError as error:
            raise UserError(f"evolve.constants: {error}") from None
        if (leading := getattr(chosen.constants, "num_leading", 0)) > lora_rank:
            raise UserError(
                f"evolve.constants.{operator}.num_leading is {leading}, and an adapter has {lora_rank} components "
                "(population.lora_rank): lower it, or set it to 0 to draw it"
            )


def plan(
    individuals: Sequence[Individual],
    fitness: Mapping[str, float],
    rules: EvolveConfig,
    rng: np.random.Generator,
    broken: Collection[str] = (),
    behaviour_distances: NDArray[np.float64] | None = None,
    num_children: int = 1,
    migrant: str | None = None,
) -> list[PlannedBirth]:
    """The births of one generation of one role (n individuals): ``num_children`` for each that leaves, of which one
    will be kept.

    ``broken`` are ids whose update was not finite: they leave first and never breed. ``behaviour_distances`` (n, n),
    in the order of ``individuals``, is read by ``crowding`` alone. With one survivor there is only mutation; with none
    (all broken) the slots get fresh founders. A copy of ``migrant``, who lives elsewhere, takes the place of the one
    that leaves first. Raises UserError for an unknown operator.
    """
    values = [fitness[member.id] for member in individuals]
    broken_at = [i for i, member in enumerate(individuals) if member.id in broken]
    leaving = choose_leaving(
        rules.replacement, values, rules.replaced_frac, broken_at, rules.num_elite, behaviour_distances
    )
    survivors = [i for i in range(len(individuals)) if i not in leaving]
    births = []
    if migrant and leaving:
        births.append(PlannedBirth(individuals[leaving[0]].id, (migrant,), MIGRATE, rng_seed=0))
        leaving = leaving[1:]
    for i in [i for i in leaving for _ in range(num_children)]:
        operator = _draw_operator(rules, len(survivors), rng)
        parents: list[int] = []
        if survivors:
            pool = [values[s] for s in survivors]
            num_parents = find(operator).num_parents
            chosen = select_parents(rules.selection, pool, num_parents, rng, rules.tournament_size)
            parents = [survivors[c] for c in chosen]
        names = tuple(individuals[p].id for p in parents)
        births.append(PlannedBirth(individuals[i].id, names, operator, int(rng.integers(2**31))))
    return births


def breed(
    planned: PlannedBirth,
    individuals: Mapping[str, Individual],
    genotypes: Mapping[str, Genotype],
    fitness: Mapping[str, float],
    step: int,
    rules: EvolveConfig,
    rating: RatingSystem = STANDARD,
) -> Newborn:
    """Make the planned child. Same role, same slot, same rank as the one it replaces.

    ``genotypes`` must hold the parents (for a founder, the replaced one, of which only the shapes are read). The id is
    the name of the slot's founder with the step: ``T2`` or ``T2.10``, replaced at step 20, gives ``T2.20``.
    """
    old = individuals[planned.replaced]
    parents = [individuals[name] for name in planned.parents]
    name = f"{old.id.split('.')[0]}.{step}"
    birth = Birth(step, name, old.id, planned.parents, planned.operator, rng_seed=planned.rng_seed, space="none")
    child = Individual(name, old.role, old.slot, rating.newcomer(), step, planned.parents, planned.operator)
    if planned.operator == MIGRATE:
        (donor,) = parents
        child = replace(child, rating=donor.rating, domain_ratings=donor.domain_ratings, genes=donor.genes)
        return Newborn(child, genotypes[donor.id], birth, donor.id)
    if rules.genes:
        dice = np.random.default_rng([planned.rng_seed, 1])
        given = rules.genes, rules.gene_factor, dice
        child = replace(child, genes=mutated(parents[0].genes, *given) if parents else founder_genes(*given))
    if not parents:
        rng = torch.Generator().manual_seed(planned.rng_seed)
        return Newborn(child, fresh_like(genotypes[old.id], rng), birth, None)
    operator = tuned(find(planned.operator), rules.constants.get(planned.operator, {}))
    made = apply(
        operator,
        [genotypes[parent] for parent in planned.parents],
        [fitness[parent] for parent in planned.parents],
        planned.rng_seed,
        rules.space,
        rules.preserve_norm,
    )
    if rules.child_rating == "inherit":
        child = replace(
            child,
            rating=rating.inherit([parent.rating for parent in parents]),
            domain_ratings=_inherited(parents, rating),
        )
    birth = replace(
        birth,
        constants=made.constants,
        relative_change=made.change.overall,
        space=rules.space,
        layer_changes=made.change.per_layer,
    )
    return Newborn(child, made.genotype, birth, parents[0].id if rules.child_moments == "inherit" else None)


def _inherited(parents: Sequence[Individual], rating: RatingSystem) -> tuple[tuple[str, Rating], ...]:
    """The child's ratings in the domains in which a parent has one."""
    found: dict[str, list[Rating]] = {}
    for parent in parents:
        for domain, one in parent.domain_ratings:
            found.setdefault(domain, []).append(one)
    return tuple((domain, rating.inherit(ratings)) for domain, ratings in sorted(found.items()))


def replace_weakest(
    members: Sequence[Individual],
    *,
    fitness: Mapping[str, float],
    broken: Collection[str],
    distances: NDArray[np.float64] | None,
    step: int,
    rules: EvolveConfig,
    rating: RatingSystem,
    store: AdapterStore,
    rng: np.random.Generator,
    appraise: Callable[[Individual], float] | None = None,
    migrant: Individual | None = None,
) -> list[Newborn]:
    """Replace the weakest of one role on one island, and whoever is broken, by children of the fittest survivors there
    and by ``migrant``, if one comes, in the store too.

    The arguments are those of ``plan`` and ``breed``. With ``appraise``, which tells how good the member in a slot is,
    ``children_per_birth`` children are tried for each that leaves, and the best, of equals the first, is kept.
    """
    num_children = rules.children_per_birth if appraise else 1
    known = {member.id: member for member in (*members, *([migrant] if migrant else []))}
    planned = plan(members, fitness, rules, rng, broken, distances, num_children, migrant.id if migrant else None)
    needed = dict.fromkeys(name for birth in planned for name in birth.parents or (birth.replaced,))
    genotypes = {name: store.genotype(known[name].slot) for name in needed}
    bred = [breed(birth, known, genotypes, fitness, step, rules, rating) for birth in planned]

    def settle(child: Newborn) -> None:
        moments_from = known[child.moments_from].slot if child.moments_from else None
        store.load(child.individual.slot, child.genotype, moments_from)

    def worth(child: Newborn) -> float:
        settle(child)
        return appraise(child.individual) if appraise else 0.0

    newborns = []
    for _, group in groupby(bred, key=lambda child: child.birth.replaced):
        children = list(group)
        best = max(children, key=worth) if len(children) > 1 else children[0]
        settle(best)
        newborns.append(best)
    return newborns


def admit_fittest(
    hall: HallOfFame,
    members: Sequence[Individual],
    *,
    fitness: Mapping[str, float],
    broken: Collection[str],
    step: int,
    store: AdapterStore,
) -> tuple[HallOfFame, list[Entry]]:
    """Copy the fittest teacher and the fittest student into the hall of fame, if there is one; broken ones stay out."""
    admitted = []
    for role in ("teacher", "student"):
        sound = [member for member in members if member.role == role and member.id not in broken]
        for at in fittest_first([fitness[member.id] for member in sound])[:1]:
            hall, entry = admit(hall, sound[at], step)
            if entry is not None:
                store.copy(sound[at].slot, entry.individual.slot)
                admitted.append(entry)
    return hall, admitted


def _draw_operator(rules: EvolveConfig, num_survivors: int, rng: np.random.Generator) -> str:
    """Crossover or mutation by a coin, then uniform among the enabled; what is impossible is not drawn.

    An operator counts by the parents it needs, so that the controls can be enabled like any other. With one survivor
    and only crossovers enabled the child is a copy.
    """
    if num_survivors == 0:
        return "founder"
    one = [name for name in rules.operators if find(name).num_parents == 1]
    two = [name for name in rules.operators if find(name).num_parents == 2] if num_survivors > 1 else []
    crossing = rng.random() < rules.crossover_frac
    enabled = (two or one) if crossing else (one or two)
    return enabled[int(rng.integers(len(enabled)))] if enabled else "copy_parent"
