"""One turn of evolution: who is replaced by whose child, and what the child is."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_adapters import adapter, distance
from tiny_models import tiny_bank

from redqueen.adapters.genotype import norm
from redqueen.adapters.hall_of_fame import HallOfFame
from redqueen.config import EvolveConfig
from redqueen.errors import UserError
from redqueen.evolve.generation import PlannedBirth, admit_fittest, breed, plan
from redqueen.learn.torch_learner import TorchLearner, TorchStore
from redqueen.records import Individual, Rating


def students(number: int) -> list[Individual]:
    return [Individual(f"S{i}", "student", slot=i + 4, rating=Rating(25 + i, 2.0)) for i in range(number)]


def fitness_of(people: list[Individual]) -> dict[str, float]:
    return {person.id: float(i) for i, person in enumerate(people)}


def planned(number: int, seed: int = 0, broken: tuple[str, ...] = (), **rules: object) -> list[PlannedBirth]:
    people = students(number)
    return plan(people, fitness_of(people), EvolveConfig(**rules), np.random.default_rng(seed), broken)


def test_of_four_the_weakest_leaves_and_the_fittest_breed() -> None:
    for seed in range(20):
        (birth,) = planned(4, seed)
        assert birth.replaced == "S0"
        assert birth.parents == (("S3",) if birth.operator.startswith("M") else ("S3", "S2"))


def test_mutation_and_crossover_come_from_a_fair_coin_and_operators_are_uniform_in_their_family() -> None:
    drawn = Counter(planned(4, seed)[0].operator for seed in range(4000))
    assert set(drawn) == {"M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4"}
    assert all(count / 4000 == pytest.approx(1 / 8, abs=0.025) for count in drawn.values())


def test_of_two_the_survivor_can_only_be_mutated() -> None:
    for seed in range(20):
        (birth,) = planned(2, seed)
        assert birth.replaced == "S0" and birth.parents == ("S1",) and birth.operator.startswith("M")


def test_one_member_alone_is_not_replaced() -> None:
    assert planned(1) == []


def test_a_broken_member_is_replaced_first_and_never_breeds() -> None:
    (birth,) = planned(4, broken=("S3",))
    assert birth.replaced == "S3"
    assert "S3" not in birth.parents and birth.parents[0] == "S2"


def test_when_all_are_broken_founders_take_their_places() -> None:
    births = planned(2, broken=("S0", "S1"))
    assert [(b.replaced, b.parents, b.operator) for b in births] == [("S0", (), "founder"), ("S1", (), "founder")]


def test_the_parents_of_a_generation_all_stay_alive() -> None:
    births = planned(8, selection="rank", replaced_frac=0.5)
    leaving = {birth.replaced for birth in births}
    assert leaving == {"S0", "S1", "S2", "S3"}
    assert not leaving & {parent for birth in births for parent in birth.parents}


def test_a_control_can_be_the_only_operator() -> None:
    assert planned(4, operators=("copy_parent",))[0].parents == ("S3",)
    assert planned(4, operators=("linear_0_5",))[0].parents == ("S3", "S2")
    assert planned(2, operators=("linear_0_5",))[0].operator == "copy_parent"


def test_an_unknown_operator_is_refused() -> None:
    people, rules = students(4), EvolveConfig().model_copy(update={"operators": ("X99",)})
    with pytest.raises(UserError, match="unknown operator 'X99'"):
        plan(people, fitness_of(people), rules, np.random.default_rng(0))


def test_the_same_seed_plans_the_same_generation() -> None:
    assert planned(8, seed=5) == planned(8, seed=5) != planned(8, seed=6)


def born(birth: PlannedBirth, **rules: object):
    people = {person.id: person for person in students(4)}
    genotypes = {name: adapter(i) for i, name in enumerate(people)}
    fitness = {name: float(i) for i, name in enumerate(people)}
    return breed(birth, people, genotypes, fitness, 20, EvolveConfig(**rules)), genotypes


def test_a_child_takes_role_and_slot_and_tells_where_it_comes_from() -> None:
    newborn, genotypes = born(PlannedBirth("S0", ("S3", "S2"), "X4", 11))
    child, birth = newborn.individual, newborn.birth
    assert (child.id, child.role, child.slot, child.born_step) == ("S0.20", "student", 4, 20)
    assert (child.parents, child.operator) == (("S3", "S2"), "X4")
    assert (birth.step, birth.child, birth.replaced, birth.rng_seed) == (20, "S0.20", "S0", 11)
    assert 1 <= birth.constants["eta"] <= 1.5
    gap = distance(newborn.genotype, genotypes["S3"]) / norm(genotypes["S3"])
    assert birth.relative_change == pytest.approx(gap)
    assert newborn.genotype.rank == genotypes["S3"].rank


def test_founders_that_take_the_places_of_broken_members_have_genes_of_their_own() -> None:
    genes = {"genes": ("learning_rate",)}
    one, other = (born(PlannedBirth("S0", (), "founder", seed), **genes)[0].individual.genes for seed in (1, 2))
    assert one.learning_rate != 1.0 != other.learning_rate != one.learning_rate


def test_a_childs_child_keeps_the_name_of_its_place() -> None:
    old = Individual("T2.10", "teacher", 2, Rating(20, 3))
    parent = Individual("T1", "teacher", 1, Rating(30, 3))
    people = {person.id: person for person in (old, parent)}
    birth = PlannedBirth("T2.10", ("T1",), "copy_parent", 0)
    newborn = breed(birth, people, {"T1": adapter(0)}, {"T1": 1.0}, 20, EvolveConfig())
    assert newborn.individual.id == "T2.20" and newborn.individual.slot == 2


def test_a_childs_rating_is_inherited_or_reset() -> None:
    birth = PlannedBirth("S0", ("S3", "S2"), "X2", 0)
    assert born(birth)[0].individual.rating == Rating(27.5, 2.0)
    assert born(birth, child_rating="reset")[0].individual.rating == Rating(25.0, 25.0 / 3)


def test_constants_from_the_config_reach_the_operator() -> None:
    newborn, _ = born(PlannedBirth("S0", ("S3",), "M4", 0), constants={"M4": {"mutation_std": 0.0}})
    assert newborn.birth.constants == {"mutation_std": 0.0}
    assert newborn.birth.relative_change < 1e-6


def test_the_fittest_member_of_a_role_that_is_not_broken_is_copied_into_the_hall() -> None:
    bank = tiny_bank("llama", num_members=7)
    store, fitness = TorchStore(bank, TorchLearner(bank)), fitness_of(students(3))
    members = [replace(one, slot=at) for at, one in enumerate(students(3))]
    for broken, name, slot in (((), "S2", 2), (("S2",), "S1", 1)):
        _, (entry,) = admit_fittest(
            HallOfFame(2, first_slot=3), members, fitness=fitness, broken=broken, step=10, store=store
        )
        assert entry.member == name and torch.equal(bank.flat[entry.individual.slot], bank.flat[slot])


def test_a_founder_is_the_base_model_again() -> None:
    newborn, _ = born(PlannedBirth("S1", (), "founder", 3))
    assert norm(newborn.genotype) == 0.0
    assert all(float(a.abs().min()) > 0 for a, _ in newborn.genotype.factors.values())
    assert newborn.individual.parents == () and newborn.birth.operator == "founder"
