"""Islands: parents and those who leave are of one island; a migrant is a copy whose donor stays where it is."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scripted import Table, Teacher, config_of, half
from tiny_models import tiny_bank

from redqueen.config import Config, EvolveConfig, LearnConfig
from redqueen.engine import open_engine
from redqueen.errors import UserError
from redqueen.evolve.generation import Newborn, replace_weakest
from redqueen.evolve.islands import MIGRATE, Island, islands_of
from redqueen.learn.torch_learner import TorchLearner
from redqueen.learn.torch_store import TorchStore
from redqueen.loop import play_step
from redqueen.match.rating import STANDARD
from redqueen.nouns import Completion, Genes, Individual, Rating, Rollout
from redqueen.timing import Clock

STEP = 20
PLAIN = EvolveConfig(every_steps=10, migrate_every_steps=20)


def students(number: int) -> list[Individual]:
    return [Individual(f"S{i}", "student", slot=i, rating=Rating(20.0 + i, 2.0 + i)) for i in range(number)]


def born_on(
    island: Island,
    store: TorchStore,
    fitness: dict[str, float],
    rules: EvolveConfig,
    rng: np.random.Generator,
    appraise: Callable[[Individual], float] | None = None,
) -> list[Newborn]:
    return replace_weakest(
        island.members,
        fitness=fitness,
        broken=(),
        distances=None,
        step=STEP,
        rules=rules,
        rating=STANDARD,
        store=store,
        rng=rng,
        appraise=appraise,
        migrant=island.migrant,
    )


def generation(
    store: TorchStore, people: list[Individual], fitness: dict[str, float], rules: EvolveConfig, seed: int = 0
) -> list[list[Newborn]]:
    """The newborns of each island."""
    rng = np.random.default_rng(seed)
    return [born_on(i, store, fitness, rules, rng) for i in islands_of(people, fitness, (), STEP, rules)]


def store_of(number: int) -> TorchStore:
    bank = tiny_bank(num_members=number)
    return TorchStore(bank, TorchLearner(bank, LearnConfig()))


@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 100))
def test_islands_divide_a_role_and_a_migrant_comes_from_the_one_before(number: int, count: int, step: int) -> None:
    people = students(number)
    fitness = {person.id: float(-i) for i, person in enumerate(people)}
    rules = PLAIN.model_copy(update={"num_islands": count})
    islands = islands_of(people, fitness, (), step, rules)
    assert sorted(member.slot for island in islands for member in island.members) == list(range(number))
    sizes = [len(island.members) for island in islands]
    assert not sizes or (max(sizes) - min(sizes) <= 1 and min(sizes) >= 1)
    moving = len(islands) > 1 and step % 20 == 0
    for before, island in pairwise([*islands[-1:], *islands]):
        assert island.migrant == (before.members[0] if moving else None)  # whose first is its fittest


def test_one_island_is_the_whole_role_and_nobody_comes() -> None:
    people = students(5)
    (island,) = islands_of(people, {p.id: 0.0 for p in people}, (), STEP, PLAIN)
    assert list(island.members) == people and island.migrant is None


def test_the_broken_do_not_migrate() -> None:
    people = students(4)  # islands S0, S2 and S1, S3
    fitness = {person.id: float(i) for i, person in enumerate(people)}
    rules = PLAIN.model_copy(update={"num_islands": 2})
    migrants = [island.migrant for island in islands_of(people, fitness, ("S3", "S0", "S2"), STEP, rules)]
    assert migrants == [people[1], None]


@given(st.integers(0, 1000), st.permutations(range(8)))
def test_parents_and_those_who_leave_are_of_one_island_and_a_migrant_is_a_copy(seed: int, order: list[int]) -> None:
    store, people = STORE(), students(8)
    fitness = {person.id: float(order[i]) for i, person in enumerate(people)}
    rules = PLAIN.model_copy(update={"num_islands": 2, "replaced_frac": 0.5})
    before = store.bank.flat.clone()
    islands = [{p.id: p for p in people[i::2]} for i in range(2)]
    for at, born in enumerate(generation(store, people, fitness, rules, seed)):
        first, *children = born
        assert len(children) == 1
        assert all({*c.birth.parents, c.birth.replaced} <= islands[at].keys() for c in children)
        (donor,) = (islands[1 - at][name] for name in first.birth.parents)
        assert donor.id == max(islands[1 - at], key=lambda name: fitness[name])
        assert first.birth.replaced == min(islands[at], key=lambda name: fitness[name])
        assert (first.birth.operator, first.birth.relative_change, first.birth.space) == (MIGRATE, 0.0, "none")
        assert torch.equal(store.bank.flat[first.individual.slot], before[donor.slot])
        assert torch.equal(store.bank.flat[donor.slot], before[donor.slot])
        assert first.individual.rating == donor.rating and first.individual.born_step == STEP


def _one_store() -> Callable[[], TorchStore]:
    """One store for all examples, each of which begins with the same factors."""
    store = store_of(8)
    fresh = store.bank.flat.clone()

    def opened() -> TorchStore:
        store.load_state({"factors": fresh})
        return store

    return opened


STORE = _one_store()


def test_a_migrant_keeps_genes_ratings_and_moments_whatever_a_child_would_have() -> None:
    store, people = store_of(4), students(4)
    answers = (Completion((3,), (-1.0,), 1.0, True), Completion((5,), (-1.0,), 1.0, True))
    store.learner.update([Rollout(3, (1, 2), answers, (1.0, -1.0))])
    people[3] = replace(people[3], genes=Genes(2.0, 1.0, 0.5), domain_ratings=(("code", Rating(9.0, 3.0)),))
    fitness = {person.id: float(i) for i, person in enumerate(people)}
    rules = EvolveConfig(every_steps=10, migrate_every_steps=20, num_islands=2, genes=("learning_rate",))
    (migrant,) = generation(store, people, fitness, rules)[0]
    assert (migrant.individual.id, migrant.individual.parents) == ("S0.20", ("S3",))
    assert migrant.individual.genes == people[3].genes
    assert migrant.individual.domain_ratings == people[3].domain_ratings
    moments = store.learner.moments(3)
    assert moments and all(torch.equal(store.learner.moments(0)[name], value) for name, value in moments.items())


def test_several_children_are_tried_for_a_birth_and_a_migrant_is_not() -> None:
    store, people = store_of(8), students(8)
    fitness = {person.id: float(i) for i, person in enumerate(people)}
    rules = EvolveConfig(every_steps=10, num_islands=2, migrate_every_steps=20, replaced_frac=0.5, children_per_birth=3)
    tried: list[str] = []

    def appraise(child: Individual) -> float:
        tried.append(child.operator)
        return 0.0

    island = islands_of(people, fitness, (), STEP, rules)[0]
    born = born_on(island, store, fitness, rules, np.random.default_rng(0), appraise)
    assert [child.birth.replaced for child in born] == ["S0", "S2"]
    assert len(tried) == 3 and MIGRATE not in tried


def test_a_run_on_islands_has_migrants_in_its_lineage_and_repeats_by_its_seed() -> None:
    config = config_of(
        population={"num_teachers": 4, "num_students": 4},
        evolve={"enabled": True, "every_steps": 1, "num_islands": 2, "migrate_every_steps": 2},
        learn={"train_teachers": False},
    )
    played = [_births(config) for _ in range(2)]
    assert played[0] == played[1]
    assert [operator for _, _, operator in played[0] if operator == MIGRATE] == [MIGRATE] * 4
    for replaced, parents, operator in played[0]:
        sides = {(int(name.split(".")[0][1:]) - 1) % 2 for name in parents}
        own = (int(replaced.split(".")[0][1:]) - 1) % 2
        assert sides == ({1 - own} if operator == MIGRATE else {own})


def _births(config: Config) -> list[tuple[str, tuple[str, ...], str]]:
    with open_engine(config) as engine:
        state, seated = Table(engine).sit(config, Teacher(), half)
        births = []
        for _ in range(2):
            state, report = play_step(state, seated, Clock())
            births += [(birth.replaced, birth.parents, birth.operator) for birth in report.births]
    return births


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(UserError, match=r"migrate_every_steps must be a multiple of every_steps \(20\)"):
        config_of(evolve={"num_islands": 2, "every_steps": 20})
    with pytest.raises(UserError, match=r"num_islands is 2, and an island needs two of each role.* lower it to 1"):
        config_of(evolve={"num_islands": 2})
