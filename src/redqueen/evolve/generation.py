"""One generation of one role: plan survivors and parents, breed children, and admit members to the hall of fame.

``plan`` reads fitness only and is cheap; ``breed`` makes one planned child from the parents' genotypes. All parents are
survivors, so the order of breeding does not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from redqueen.adapters.genotype import Genotype, fresh_like
from redqueen.adapters.hall_of_fame import Entry, HallOfFame, admit
from redqueen.adapters.protocols import AdapterStore
from redqueen.config import Config, EvolveConfig
from redqueen.errors import UserError
from redqueen.evolve.operators import apply, find, tuned
from redqueen.evolve.selection import (
    choose_leaving,
    fittest_first,
    founder_genes,
    import_fitness,
    mutated,
    num_leaving,
    select_parents,
)
from redqueen.match import STANDARD
from redqueen.records import Birth, Individual

CROSSOVER_FRAC = 0.5
"""Probability of crossover; otherwise mutation. Source: re-implementations (a fair coin)."""


@dataclass(frozen=True)
class PlannedBirth:
    """The replaced member, the child's parents, the operator and the seed. Without parents: a fresh founder."""

    replaced: str
    parents: tuple[str, ...]
    operator: str
    rng_seed: int


@dataclass(frozen=True)
class Child:
    """The child as a member, its factors and its record for the lineage."""

    individual: Individual
    genotype: Genotype
    birth: Birth


def check_rules(config: Config) -> None:
    """Raise UserError when a user's operator or fitness cannot be imported, when a constant is unknown to its operator
    or out of range for this rank, or when a role with one survivor has no operator that needs only one parent."""
    rules, population = config.evolve, config.population
    try:
        import_fitness(rules.fitness)
    except UserError as error:
        raise UserError(f"evolve.fitness: {error}") from None
    for operator in dict.fromkeys((*rules.operators, *rules.constants)):
        try:
            chosen = tuned(find(operator), rules.constants.get(operator, {}))
        except UserError as error:
            raise UserError(f"evolve.{'constants' if operator in rules.constants else 'operators'}: {error}") from None
        if (leading := getattr(chosen.constants, "num_leading", 0)) > population.lora_rank:
            raise UserError(
                f"evolve.constants.{operator}.num_leading is {leading}, and an adapter has {population.lora_rank} "
                "components (population.lora_rank): lower it, or set it to 0 to draw it"
            )
    sizes = population.num_teachers, 1 if config.students_are_clones else population.num_students
    lone = [size for size in sizes if size - num_leaving(size, rules.replaced_frac) == 1 < size]
    if rules.enabled and lone and all(find(operator).num_parents > 1 for operator in rules.operators):
        raise UserError(
            f"evolve.operators has only crossovers, but only one of a role's {lone[0]} members survives a generation: "
            "add an operator with one parent, or more members"
        )


def plan(
    individuals: Sequence[Individual],
    fitness: Mapping[str, float],
    rules: EvolveConfig,
    rng: np.random.Generator,
    broken: Collection[str] = (),
) -> list[PlannedBirth]:
    """Plan the births of one generation of one role.

    ``broken``: ids of members whose update was not finite; they are all replaced and are never parents. One survivor
    can only be mutated; without any the slots get fresh founders. Raises UserError for an unknown operator.
    """
    values = [fitness[member.id] for member in individuals]
    broken_at = [i for i, member in enumerate(individuals) if member.id in broken]
    leaving = choose_leaving(values, rules.replaced_frac, broken_at)
    survivors = [i for i in range(len(individuals)) if i not in leaving]
    births = []
    for i in leaving:
        operator = draw_operator(rules, len(survivors), rng)
        parents: list[int] = []
        if survivors:
            pool = [values[s] for s in survivors]
            num_parents = find(operator).num_parents
            chosen = select_parents(rules.selection, pool, num_parents, rng)
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
) -> Child:
    """Make the planned child, with the role, slot and rank of the member that it replaces.

    ``genotypes`` must hold the parents (for a founder: the replaced member, of which only the shapes are read). The id
    is that of the slot's founder with the step: ``T2`` or ``T2.10``, replaced at step 20, gives ``T2.20``.
    """
    old = individuals[planned.replaced]
    parents = [individuals[name] for name in planned.parents]
    name = f"{old.id.split('.')[0]}.{step}"
    birth = Birth(step, name, old.id, planned.parents, planned.operator, rng_seed=planned.rng_seed)
    child = Individual(name, old.role, old.slot, STANDARD.newcomer(), step, planned.parents, planned.operator)
    if rules.genes:
        gene_rng = np.random.default_rng([planned.rng_seed, 1])
        genes = mutated(parents[0].genes, rules.genes, gene_rng) if parents else founder_genes(rules.genes, gene_rng)
        child = replace(child, genes=genes)
    if not parents:
        rng = torch.Generator().manual_seed(planned.rng_seed)
        return Child(child, fresh_like(genotypes[old.id], rng), birth)
    operator = tuned(find(planned.operator), rules.constants.get(planned.operator, {}))
    made = apply(
        operator,
        [genotypes[parent] for parent in planned.parents],
        [fitness[parent] for parent in planned.parents],
        planned.rng_seed,
    )
    if rules.child_rating == "inherit":
        child = replace(child, rating=STANDARD.pool([parent.rating for parent in parents]))
    birth = replace(
        birth, constants=made.constants, relative_change=made.change.overall, layer_changes=made.change.per_layer
    )
    return Child(child, made.genotype, birth)


def replace_weakest(
    members: Sequence[Individual],
    *,
    fitness: Mapping[str, float],
    broken: Collection[str],
    step: int,
    rules: EvolveConfig,
    store: AdapterStore,
    rng: np.random.Generator,
) -> list[Child]:
    """Replace the weakest of one role, and broken members, by children of survivors, and load these into ``store``.

    The arguments are those of ``plan`` and ``breed``.
    """
    by_id = {member.id: member for member in members}
    planned = plan(members, fitness, rules, rng, broken)
    needed = dict.fromkeys(name for birth in planned for name in birth.parents or (birth.replaced,))
    genotypes = {name: store.genotype(by_id[name].slot) for name in needed}
    newborns = [breed(birth, by_id, genotypes, fitness, step, rules) for birth in planned]
    for child in newborns:
        store.load(child.individual.slot, child.genotype)
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
    """Copy the fittest teacher and student that are not broken into the hall of fame, if there is one."""
    admitted = []
    for role in ("teacher", "student"):
        sound = [member for member in members if member.role == role and member.id not in broken]
        for at in fittest_first([fitness[member.id] for member in sound])[:1]:
            hall, entry = admit(hall, sound[at], step)
            if entry is not None:
                store.copy(sound[at].slot, entry.individual.slot)
                admitted.append(entry)
    return hall, admitted


def draw_operator(rules: EvolveConfig, num_survivors: int, rng: np.random.Generator) -> str:
    """Choose crossover or mutation at random, then one of the enabled operators uniformly.

    An operator with two parents counts as a crossover, any other as a mutation, so that controls can be enabled too.
    With one survivor and only crossovers enabled the child is a copy.
    """
    if num_survivors == 0:
        return "founder"
    one = [name for name in rules.operators if find(name).num_parents == 1]
    two = [name for name in rules.operators if find(name).num_parents == 2] if num_survivors > 1 else []
    crossing = rng.random() < CROSSOVER_FRAC
    enabled = (two or one) if crossing else (one or two)
    return enabled[int(rng.integers(len(enabled)))] if enabled else "copy_parent"
