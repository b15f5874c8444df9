"""Internal fitness: rating, mean reward, shelter for the young."""

import math

import pytest

from redqueen.config import EvolveConfig
from redqueen.evolve.selection import Evidence, age_protected, by_late_mean, internal_fitness, rank_frac
from redqueen.records import Individual, Rating


def person(name: str, mu: float, sigma: float, born_step: int = 0) -> Individual:
    return Individual(name, "student", 0, Rating(mu, sigma), born_step)


def test_fitness_is_the_rating_that_has_very_probably_been_reached() -> None:
    members = [person("S0", 30, 2), person("S1", 28, 1)]
    assert internal_fitness(members, Evidence(), 10, EvolveConfig()) == {"S0": 24, "S1": 25}


def test_only_the_last_steps_count() -> None:
    assert by_late_mean({"S0": [1.0, 0.0, 0.5]}, num_kept=2)["S0"] == pytest.approx(0.25)


def test_who_has_no_reward_yet_is_neither_good_nor_bad() -> None:
    assert by_late_mean({"S0": [1.0], "S1": [0.5], "S2": []}, 5)["S2"] == pytest.approx(0.75)
    assert by_late_mean({"S0": [], "S1": []}, 5) == {"S0": 0.5, "S1": 0.5}


def test_the_young_are_lifted_to_the_median_of_the_grown() -> None:
    people = [person("S0", 0, 0), person("S1", 0, 0), person("S2", 0, 0), person("S3", 0, 0, born_step=95)]
    fitness = {"S0": 10.0, "S1": 14.0, "S2": 30.0, "S3": 0.0}
    assert age_protected(fitness, people, step=100, min_age_steps=10) == {**fitness, "S3": 14.0}
    assert age_protected(fitness, people, step=105, min_age_steps=10) == fitness


def test_a_young_one_that_is_already_good_keeps_its_fitness() -> None:
    people = [person("S0", 0, 0), person("S1", 0, 0, born_step=95)]
    assert age_protected({"S0": 10.0, "S1": 20.0}, people, 100, 10) == {"S0": 10.0, "S1": 20.0}


def test_while_all_are_young_nobody_is_lifted() -> None:
    people = [person("S0", 0, 0), person("S1", 0, 0)]
    assert age_protected({"S0": 1.0, "S1": 2.0}, people, 5, 10) == {"S0": 1.0, "S1": 2.0}


def test_the_config_says_what_selection_reads_and_each_role_is_measured_among_its_own() -> None:
    people = [person("S0", 30, 2), person("S1", 28, 1, born_step=9), Individual("T0", "teacher", 1, Rating(50, 1))]
    scores = {"S0": (0.0, 1.0, 0.5), "T0": (0.25,)}
    assert internal_fitness(people, Evidence(scores), 10, EvolveConfig()) == {"S0": 24, "S1": 25, "T0": 47}
    by_window = EvolveConfig(fitness="reward", every_steps=2)
    # S1 has not played: it gets the mean of the students, and the teacher has no part in that.
    assert internal_fitness(people, Evidence(scores), 10, by_window) == {"S0": 0.75, "S1": 0.75, "T0": 0.25}
    young = [*people[:1], person("S1", 10, 1, born_step=9), people[2]]
    assert internal_fitness(young, Evidence(scores), 10, EvolveConfig(every_steps=4, protected_steps=5))["S1"] == 24
    assert internal_fitness(young, Evidence(scores), 10, EvolveConfig())["S1"] == 7


def test_by_reward_a_teacher_that_nobody_can_solve_is_weaker_than_one_that_teaches() -> None:
    teachers = [Individual(name, "teacher", slot, Rating(25, 8)) for slot, name in enumerate(("T1", "T2"))]
    # No attempt solves T1's tasks: it wins each match and earns 0. T2's are solved half the time.
    evidence = Evidence({"T1": (-1.0, 0.0, 0.0), "T2": (0.0, 0.5, 0.25)})
    found = internal_fitness(teachers, evidence, 10, EvolveConfig(fitness="reward", every_steps=2))
    assert found == {"T1": 0.0, "T2": 0.375}


def test_the_rank_of_who_left_is_its_place_by_reward() -> None:
    people = [person(f"S{i}", 25, 8) for i in range(4)]
    rewards = {"S0": (0.1, 0.3), "S1": (0.5,), "S2": (-0.5, 0.0), "S3": (0.2,)}
    assert [rank_frac([f"S{i}"], people, rewards) for i in (2, 1)] == [0.0, 1.0]
    assert rank_frac(["S0", "S3"], people, rewards) == 0.5, "both have 0.2: each is above one and ties with one"
    assert math.isnan(rank_frac(["S0"], people[:1], rewards))
