"""Estimators against numbers worked out by hand."""

import math

import pytest

from redqueen.errors import UserError
from redqueen.learn.advantages import ESTIMATORS, advantages

REWARDS = [[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, -1.0]]
KINDS = ["code_o", "code_i"]


def flat(groups: list[tuple[float, ...]]) -> list[float]:
    return [value for group in groups for value in group]


def test_reinforce_pp_baseline_centres_by_group_and_whitens_by_batch() -> None:
    # Centred: +-0.5 and (0.5, 0.5, 0.5, -1.5); the mean is 0 and the variance (4 * 0.25 + 3 * 0.25 + 2.25) / 8 = 0.5.
    std = math.sqrt(0.5)
    expected = [0.5 / std, -0.5 / std, -0.5 / std, 0.5 / std, 0.5 / std, 0.5 / std, 0.5 / std, -1.5 / std]
    assert flat(advantages("reinforce_pp_baseline", REWARDS, KINDS)) == pytest.approx(expected)


def test_trr_pp_whitens_within_a_kind_across_prompts() -> None:
    groups = [[1.0, 0.0], [0.0, 0.0], [5.0, 7.0]]
    got = advantages("trr_pp", groups, ["code_o", "code_o", "code_f"])
    # code_o: mean 0.25, variance 3/16; code_f: mean 6, std 1.
    std = math.sqrt(3 / 16)
    assert flat(got) == pytest.approx([0.75 / std, -0.25 / std, -0.25 / std, -0.25 / std, -1.0, 1.0])


def test_grpo_whitens_each_group_on_its_own() -> None:
    std = math.sqrt(0.75)
    expected = [1.0, -1.0, -1.0, 1.0, 0.5 / std, 0.5 / std, 0.5 / std, -1.5 / std]
    assert flat(advantages("grpo", REWARDS, KINDS)) == pytest.approx(expected)


def test_rloo_compares_with_the_mean_of_the_others() -> None:
    expected = [1 - 1 / 3, -2 / 3, -2 / 3, 1 - 1 / 3, 1 - 1 / 3, 1 - 1 / 3, 1 - 1 / 3, -1 - 1]
    assert flat(advantages("rloo", REWARDS, KINDS)) == pytest.approx(expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_attempts_that_all_fare_alike_teach_nothing(estimator: str) -> None:
    got = advantages(estimator, [[0.1, 0.1, 0.1], [0.1, 0.1]], ["code_o", "code_o"])
    assert flat(got) == pytest.approx([0.0] * 5)


@pytest.mark.parametrize("estimator", ["reinforce_pp_baseline", "rloo", "grpo"])
@pytest.mark.parametrize("reward", [0.1, 0.3, -1.0])
def test_a_group_that_fares_alike_is_exactly_zero_beside_others_that_do_not(estimator: str, reward: float) -> None:
    # Means of three and of six round: what is left of them must not pass for an advantage.
    dead, *live = [reward] * 6, [1.0, -0.5, -0.5], [-1.0, -0.5, 1.0, 1.0, 1.0, -0.5], [1.0, -1.0, -1.0]
    assert advantages(estimator, [dead, *live], ["code_o"] * 4)[0] == (0.0,) * 6


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_empty_and_single_groups_are_taken_as_they_are(estimator: str) -> None:
    got = advantages(estimator, [[], [1.0], [0.0, 1.0]], ["code_o"] * 3)
    assert [len(group) for group in got] == [0, 1, 2]
    assert all(math.isfinite(value) for value in flat(got))
    assert advantages(estimator, [], []) == []


def test_an_unknown_estimator_is_refused_with_the_choices() -> None:
    with pytest.raises(UserError, match="reinforce_pp_baseline, trr_pp, grpo, rloo"):
        advantages("ppo", REWARDS, KINDS)


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        advantages("rloo", [[float("nan"), 1.0]], ["code_o"])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_step_of_dead_groups_alone_teaches_nothing_under_any_estimator(estimator: str) -> None:
    assert advantages(estimator, [[1.0, 1.0], [-0.5, -0.5], []], ["a", "b", "b"]) == [(0.0, 0.0), (0.0, 0.0), ()]
