"""Rewards of teachers and students, case by case as the method's table has them."""

import math

import pytest

from redqueen.config import LearnConfig
from redqueen.learn.rewards import beyond_chance, diversity_reward, student_reward, teacher_reward, well_formed
from redqueen.records import Crowding, Grade


def test_an_invalid_proposal_costs_its_teacher_one() -> None:
    assert teacher_reward(None) == -1.0
    assert teacher_reward(None, unsolved_reward=-0.5, certain_reward=-0.5) == -1.0


def test_a_task_that_nobody_solves_earns_nothing() -> None:
    assert teacher_reward(0.0) == 0.0


def test_a_task_that_everybody_solves_earns_nothing() -> None:
    assert teacher_reward(1.0) == 0.0


@pytest.mark.parametrize(("solved", "reward"), [(0.125, 0.875), (0.5, 0.5), (0.875, 0.125)])
def test_a_task_in_between_earns_the_share_that_failed(solved: float, reward: float) -> None:
    assert teacher_reward(solved) == reward


def test_the_hardest_task_that_is_still_solved_earns_most() -> None:
    rewards = [teacher_reward(k / 8) for k in range(9)]
    assert max(rewards) == rewards[1]


def test_the_ends_may_be_paid_as_the_code_of_azr_does() -> None:
    assert teacher_reward(0.0, -0.5, -0.5) == -0.5
    assert teacher_reward(1.0, -0.5, -0.5) == -0.5
    assert teacher_reward(0.25, -0.5, -0.5) == 0.75


def test_a_right_answer_earns_one_a_wrong_one_costs_a_half_an_unreadable_one_costs_one() -> None:
    assert student_reward(Grade(True, "ok"), True) == 1.0
    assert student_reward(Grade(False, "ok"), True) == -0.5
    assert student_reward(Grade(False, "unparsable"), False) == -1.0


@pytest.mark.parametrize(
    ("verdict", "reward"),
    [
        ("ok", -0.5),
        ("error", -0.5),
        ("timeout", -0.5),
        ("unparsable", -1.0),
        ("syntax", -1.0),
        ("invalid-input", -1.0),
        ("forbidden", -1.0),
    ],
)
def test_an_answer_that_could_be_tried_is_well_formed_and_one_that_could_not_is_not(
    verdict: str, reward: float
) -> None:
    grade = Grade(False, verdict)
    assert student_reward(grade, well_formed(grade)) == reward


def pressure(novelty: float = 0.0, crowd_frac: float = 0.0, size_hardness: float = 0.0) -> Crowding:
    return Crowding("code_o int->int plain", novelty, crowd_frac, size_hardness)


def test_without_counter_pressures_the_reward_stays() -> None:
    assert diversity_reward(0.75, 0.25, pressure(1.0, 1.0, 0.5), LearnConfig()) == 0.75


def test_novelty_pays_where_somebody_solved_the_task_and_not_where_nobody_did() -> None:
    config = LearnConfig(novelty_bonus=0.5)
    assert diversity_reward(0.75, 0.25, pressure(novelty=0.5), config) == 1.0
    assert diversity_reward(0.0, 0.0, pressure(novelty=1.0), config) == 0.0


def test_a_crowded_class_costs_and_never_more_than_an_invalid_proposal() -> None:
    assert diversity_reward(0.75, 0.25, pressure(crowd_frac=0.5), LearnConfig(crowding_penalty=0.5)) == 0.5
    assert diversity_reward(0.0, 0.0, pressure(crowd_frac=0.5), LearnConfig(crowding_penalty=0.5)) == -0.25
    harsh = LearnConfig(crowding_penalty=1.0, unsolved_reward=-0.5)
    assert diversity_reward(-0.5, 0.0, pressure(crowd_frac=1.0), harsh) == -1.0


def test_hardness_that_size_explains_is_not_paid_for() -> None:
    assert diversity_reward(0.75, 0.25, pressure(size_hardness=0.5), LearnConfig(size_guard_frac=1.0)) == 0.25
    assert diversity_reward(0.75, 0.25, pressure(size_hardness=0.5), LearnConfig(size_guard_frac=0.5)) == 0.5


@pytest.mark.parametrize(
    ("solve_frac", "chance", "num_attempts", "rescaled"),
    [
        (0.25, 0.0, 8, 0.25),  # nothing is known of a guess: as it is
        (1.0, 0.5, 8, 1.0),
        (0.875, 0.5, 8, 0.75),  # (0.875 - 0.5) / 0.5; the bound is 0.5 + 1.645 * sqrt(0.25 / 8) = 0.791
        (0.75, 0.5, 8, 0.0),
        (0.5, 0.5, 8, 0.0),
        (0.25, 0.5, 8, 0.0),
        (0.75, 0.5, 64, 0.5),  # more attempts tell it from a guess: 0.5 + 1.645 * sqrt(0.25 / 64) = 0.603
        (0.5, 0.25, 64, 1 / 3),  # (0.5 - 0.25) / 0.75
    ],
)
def test_a_solve_rate_counts_as_far_as_it_exceeds_chance(
    solve_frac: float, chance: float, num_attempts: int, rescaled: float
) -> None:
    assert beyond_chance(solve_frac, chance, num_attempts) == pytest.approx(rescaled)


def test_tasks_that_are_guessed_pay_their_teacher_almost_nothing() -> None:
    def mean_pay(chance: float) -> float:  # of eight guesses at one of two values
        weights = [math.comb(8, k) / 2**8 for k in range(9)]
        return sum(w * teacher_reward(beyond_chance(k / 8, chance, 8)) for k, w in enumerate(weights))

    assert mean_pay(0.0) == pytest.approx(0.5 - 1 / 2**8)  # without the correction; none right pays nothing
    assert mean_pay(0.5) == pytest.approx(8 / 2**8 * 0.25)
