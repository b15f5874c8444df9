"""Rewards of teachers and students, case by case as the method's table has them."""

import pytest

from redqueen.learn.reward import student_reward, teacher_reward
from redqueen.nouns import Grade
from redqueen.verify import well_formed


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
