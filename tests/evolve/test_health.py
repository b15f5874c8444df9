"""Five failure modes of co-evolution: each is detected where it occurs and only there."""

import numpy as np
import pytest

from redqueen.evolve.health import (
    Cycling,
    Disengagement,
    Diversity,
    Health,
    Stability,
    cycling,
    disengagement,
    forgetting,
    mean_pairwise,
    stability,
    warnings,
    weight_diversity,
)


def test_disengagement_counts_tasks_without_a_gradient() -> None:
    assert disengagement([1.0, 1.0, 0.0, 0.5]) == Disengagement(won_frac=0.5, lost_frac=0.25)
    assert disengagement([]) is None


def test_one_ladder_of_strength_is_no_cycle() -> None:
    ladder = 0.5 + np.add.outer([0.2, 0.0, -0.2], [0.25, 0.0, -0.25])
    found = cycling(ladder)
    assert found is not None
    assert found.residual_frac == pytest.approx(0.0, abs=1e-9) and found.reversal_frac == 0.0


def test_rock_paper_scissors_is_nothing_but_a_cycle() -> None:
    # Each student beats one teacher, loses to one, ties with one: no ladder explains any of it.
    circle = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]])
    found = cycling(circle)
    assert found is not None
    assert found.residual_frac == pytest.approx(1.0)
    # Of 9 comparisons (3 pairs of teachers, 3 of students) 6 disagree; counted by hand.
    assert found.reversal_frac == pytest.approx(6 / 9)


def test_sampling_noise_alone_is_not_called_a_cycle() -> None:
    rng = np.random.default_rng(0)
    attempts = np.full((8, 8), 40.0)
    noisy = rng.binomial(40, 0.5, size=(8, 8)) / 40
    raw, corrected = cycling(noisy), cycling(noisy, attempts)
    assert raw is not None and corrected is not None
    assert raw.residual_frac > 0.5
    assert corrected.residual_frac < 0.25
    # A ladder with the same noise: with the noise taken off, next to nothing stands off it.
    ladder = np.clip(0.5 + np.add.outer(np.linspace(-0.2, 0.2, 8), np.linspace(-0.2, 0.2, 8)), 0, 1)
    found = cycling(rng.binomial(40, ladder) / 40, attempts)
    assert found is not None and found.residual_frac < 0.15


def test_noise_is_taken_off_for_each_degree_of_freedom_that_the_ladder_leaves() -> None:
    scores = np.array([[0.8, 0.2], [0.2, 0.8]])
    found = cycling(scores, np.full((2, 2), 4.0))
    # All variation, 4 * 0.09, is off the ladder, which fits 3 of 4 cells; noise is 0.8 * 0.2 / 4 for the one left.
    assert found is not None and found.residual_frac == pytest.approx((0.36 - 0.04) / 0.36)


def test_pairs_that_never_met_are_left_out() -> None:
    ladder = 0.5 + np.add.outer([0.2, 0.0, -0.2], [0.25, 0.0, -0.25])
    ladder[0, 2] = np.nan
    found = cycling(ladder)
    assert found is not None and found.residual_frac == pytest.approx(0.0, abs=1e-9)


def test_too_few_meetings_say_nothing_about_cycles() -> None:
    assert cycling(np.array([[0.5, np.nan], [np.nan, 0.5]])) is None
    assert cycling(np.array([[0.5]])) is None


def test_forgetting_is_the_mean_loss_against_the_past_and_gains_do_not_hide_it() -> None:
    then = {"T0@10": 0.8, "T0@20": 0.4, "T0@30": 0.5}
    now = {"T0@10": 0.2, "T0@20": 0.9, "T9@90": 0.1}
    # Lost 0.6 on the first, nothing on the second; the others do not stand in both.
    assert forgetting(then, now) == pytest.approx(0.3)
    assert forgetting(then, {}) is None


def test_weight_diversity_is_zero_for_copies_and_one_for_right_angles() -> None:
    assert weight_diversity(np.zeros((3, 3)), [2.0, 2.0, 2.0]) == 0.0
    right_angles = np.full((3, 3), 2 * np.sqrt(2)) - np.diag([2 * np.sqrt(2)] * 3)
    assert weight_diversity(right_angles, [2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert weight_diversity(np.zeros((2, 2)), [0.0, 0.0]) is None
    assert weight_diversity(np.zeros((1, 1)), [1.0]) is None


def test_members_differ_by_the_mean_over_the_pairs_of_which_something_is_known() -> None:
    distances = np.array([[0.0, 0.5, np.nan], [0.5, 0.0, 0.3], [np.nan, 0.3, 0.0]])
    assert mean_pairwise(distances) == pytest.approx(0.4)
    assert mean_pairwise(np.zeros((1, 1))) is None


def test_a_flat_solve_rate_without_progress_is_seen_over_a_window() -> None:
    found = stability([0.1, 0.5, 0.5, 0.5, 0.5], [1.0, 4.0, 4.0, 4.0, 5.0], num_generations=4)
    assert found == Stability(solve_mean_frac=0.5, solve_spread=0.0, progress_frac=pytest.approx(0.125))
    assert stability([0.5], [1.0], num_generations=4) is None


HEALTHY = Health(
    Disengagement(0.2, 0.2),
    Cycling(0.1, 0.1),
    forgetting_frac=0.02,
    teachers=Diversity(0.8, 0.3),
    students=Diversity(0.8, 0.3),
    stability=Stability(0.5, 0.1, 0.2),
)


def test_a_healthy_race_gets_no_warning() -> None:
    assert warnings(HEALTHY) == []
    assert warnings(Health()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"disengagement": Disengagement(0.9, 0.0)}, "Tasks too easy: 90% of the tasks are solved by every attempt"),
        ({"disengagement": Disengagement(0.0, 0.85)}, "Tasks too hard: 85% of the tasks are solved by no attempt"),
        (
            {"disengagement": Disengagement(0.45, 0.4)},
            "Tasks without a training signal: 85% are solved always or never",
        ),
        ({"cycling": Cycling(0.7, 0.4)}, "Cycling: no ranking by strength explains 70% of the results"),
        ({"forgetting_frac": 0.25}, "Forgetting: against past members the score fell by 25%"),
        ({"teachers": Diversity(0.02, 0.3)}, "Loss of diversity: the teachers' adapters are 2%"),
        ({"students": Diversity(0.8, 0.01)}, "Loss of diversity: two students differ in 1%"),
        ({"stability": Stability(0.48, 0.01, 0.0)}, "Stagnation: the solve rate stays at 48%"),
    ],
)
def test_each_failure_mode_has_its_own_plain_warning(change: dict, said: str) -> None:
    (warning,) = warnings(Health(**{**HEALTHY.__dict__, **change}))
    assert warning.startswith(said)


def test_a_disengaged_race_is_not_called_stable_too() -> None:
    sick = Health(disengagement=Disengagement(1.0, 0.0), stability=Stability(1.0, 0.0, 0.0))
    assert [text.split(":")[0] for text in warnings(sick)] == ["Tasks too easy"]
