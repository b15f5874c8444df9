"""The payoff matrix keeps decayed means and counts, and survives a checkpoint."""

import numpy as np
import pytest

from redqueen.match.payoff import PayoffMatrix, add_latest, keep_only, mean_scores, record


def test_a_later_game_weighs_more_than_an_earlier_one() -> None:
    matrix = record(PayoffMatrix(decay_frac=0.5), [("T0", "S0", 1.0)])
    matrix = record(matrix, [("T0", "S0", 0.25)])
    scores, counts = mean_scores(matrix, ["T0"], ["S0"])
    # (0.5 * 1 + 0.25) / (0.5 + 1) = 0.5
    assert scores[0, 0] == pytest.approx(0.5)
    assert counts[0, 0] == 2


def test_a_step_in_which_a_pair_does_not_meet_leaves_its_mean_alone() -> None:
    matrix = record(PayoffMatrix(decay_frac=0.5), [("T0", "S0", 0.75)])
    matrix = record(matrix, [("T0", "S1", 0.0)])
    assert mean_scores(matrix, ["T0"], ["S0"])[0][0, 0] == pytest.approx(0.75)


def test_pairs_that_never_met_are_unknown_not_zero() -> None:
    scores, counts = mean_scores(record(PayoffMatrix(), [("T0", "S0", 0.0)]), ["T0", "T1"], ["S0"])
    assert scores[0, 0] == 0 and np.isnan(scores[1, 0])
    assert counts.tolist() == [[1], [0]]


def test_recording_leaves_the_old_matrix_as_it_was() -> None:
    before = PayoffMatrix()
    record(before, [("T0", "S0", 1.0)])
    assert before.cells == {}


def test_the_dead_leave_the_matrix() -> None:
    matrix = record(PayoffMatrix(), [("T0", "S0", 1.0), ("T1", "S0", 0.0)])
    assert set(keep_only(matrix, ["T0", "S0"]).cells) == {("T0", "S0")}


def test_a_score_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not in \[0, 1\]"):
        record(PayoffMatrix(), [("T0", "S0", 1.5)])


def test_only_the_latest_payoffs_are_kept_and_a_teachers_is_the_complement() -> None:
    latest = add_latest({"S1": (0.1, 0.2), "S9": (0.5,)}, ["T1", "S1"], [("T1", "S1", 0.75)], 2)
    assert latest == {"T1": (0.25,), "S1": (0.2, 0.75)}
