"""Who breeds and who leaves, on numbers small enough to check by eye."""

from collections import Counter

import numpy as np
import pytest

from redqueen.evolve.selection import choose_leaving, num_leaving, select_parents

FITNESS = [3.0, 9.0, -1.0, 5.0]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_truncation_takes_the_fittest_in_order() -> None:
    assert select_parents("truncation", FITNESS, 2, rng()) == [1, 3]


@pytest.mark.parametrize("rule", ["truncation", "tournament", "rank"])
def test_parents_are_distinct_and_the_fittest_comes_first(rule: str) -> None:
    generator = rng()
    for _ in range(50):
        first, second = select_parents(rule, FITNESS, 2, generator)
        assert first != second and FITNESS[first] > FITNESS[second]


def test_a_tournament_of_two_never_takes_the_worst_but_takes_the_others() -> None:
    generator = rng()
    won = Counter(select_parents("tournament", FITNESS, 1, generator)[0] for _ in range(2000))
    # Of six pairs the best is in three, the second best wins two, the third one.
    assert won[2] == 0
    assert [won[i] / 2000 for i in (1, 3, 0)] == pytest.approx([3 / 6, 2 / 6, 1 / 6], abs=0.04)


def test_rank_weights_are_four_three_two_one() -> None:
    generator = rng()
    drawn = Counter(select_parents("rank", FITNESS, 1, generator)[0] for _ in range(4000))
    assert [drawn[i] / 4000 for i in (1, 3, 0, 2)] == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.03)


def test_a_fitness_that_is_no_number_is_never_the_best() -> None:
    assert select_parents("truncation", [float("nan"), -5.0], 1, rng()) == [1]


def test_more_parents_than_candidates_are_refused() -> None:
    with pytest.raises(ValueError, match="2 parents from 1"):
        select_parents("truncation", [1.0], 2, rng())


@pytest.mark.parametrize(("members", "leave"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 1), (7, 1), (8, 2), (100, 25)])
def test_a_quarter_leaves_and_at_least_one_of_two(members: int, leave: int) -> None:
    assert num_leaving(members, 0.25) == leave


def test_a_fraction_of_zero_switches_evolution_off_and_of_one_leaves_a_survivor() -> None:
    assert num_leaving(8, 0.0) == 0
    assert num_leaving(8, 1.0) == 7


def test_the_worst_fraction_leaves_the_least_fit_first() -> None:
    assert choose_leaving(FITNESS, 0.5) == [2, 0]


def test_the_broken_leaves_before_the_worst() -> None:
    assert choose_leaving(FITNESS, 0.25, broken=[1]) == [1]
    assert choose_leaving(FITNESS, 0.5, broken=[1]) == [1, 2]


def test_all_the_broken_leave_even_past_the_quota_and_even_a_single_member() -> None:
    assert choose_leaving(FITNESS, 0.25, broken=[0, 1, 3]) == [0, 1, 3]
    assert choose_leaving([1.0], 0.25, broken=[0]) == [0]
    assert choose_leaving([1.0], 0.25) == []
