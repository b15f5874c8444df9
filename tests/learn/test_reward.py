"""Rewards of teachers and students, case by case as the method's table has them."""

import pytest

from redqueen.config import LearnConfig
from redqueen.learn.rewards import diversity_reward, student_reward, teacher_reward
from redqueen.records import Crowding, Grade
from redqueen_sandbox import well_formed


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
    [("ok", -0.5), ("error", -0.5), ("timeout", -0.5), ("unparsable", -1.0), ("syntax", -1.0), ("invalid-input", -1.0)],
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
