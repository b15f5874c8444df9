"""The rating update against the published algorithm, and who wins a match."""

import itertools
import math

import pytest
import trueskill

from redqueen.match import STANDARD, GaussianRating, decide
from redqueen.records import Rating

BELIEFS = [(25.0, 25.0 / 3), (31.5, 2.0), (12.0, 6.5), (25.0, 0.9)]


@pytest.mark.parametrize("draw_frac", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("winner", ["teacher", "student", "draw"])
def test_the_update_equals_the_published_one_to_a_billionth(draw_frac: float, winner: str) -> None:
    # mpmath: the package's own erfc is only good to seven digits.
    oracle = trueskill.TrueSkill(draw_probability=draw_frac, backend="mpmath")
    rating = GaussianRating(draw_frac=draw_frac)
    for (mu_t, sigma_t), (mu_s, sigma_s) in itertools.product(BELIEFS, BELIEFS):
        teacher, student = rating.update(Rating(mu_t, sigma_t), Rating(mu_s, sigma_s), winner)
        ranks = {"teacher": [0, 1], "student": [1, 0], "draw": [0, 0]}[winner]
        (want_t,), (want_s,) = oracle.rate(
            [(oracle.create_rating(mu_t, sigma_t),), (oracle.create_rating(mu_s, sigma_s),)], ranks=ranks
        )
        assert teacher.mu == pytest.approx(float(want_t.mu), abs=1e-9)
        assert teacher.sigma == pytest.approx(float(want_t.sigma), abs=1e-9)
        assert student.mu == pytest.approx(float(want_s.mu), abs=1e-9)
        assert student.sigma == pytest.approx(float(want_s.sigma), abs=1e-9)


def test_two_newcomers_move_to_the_numbers_everybody_knows() -> None:
    winner, loser = STANDARD.update(STANDARD.newcomer(), STANDARD.newcomer(), "teacher")
    assert (round(winner.mu, 3), round(winner.sigma, 3)) == (29.396, 7.171)
    assert (round(loser.mu, 3), round(loser.sigma, 3)) == (20.604, 7.171)


def test_a_draw_without_a_margin_pulls_unequal_skills_together() -> None:
    rating = GaussianRating(draw_frac=0.0, tau=0.0)
    teacher, student = rating.update(Rating(30, 4), Rating(20, 4), "draw")
    # The margin is zero: v = -lead = -10 / c with c^2 = 32 + 2 * 625 / 36, so mu moves by 16 / c^2 * 10.
    step = 16 / (32 + 2 * 625 / 36) * 10
    assert teacher.mu == pytest.approx(30 - step)
    assert student.mu == pytest.approx(20 + step)


@pytest.mark.parametrize("winner", ["teacher", "student", "draw"])
def test_an_absurd_upset_stays_finite_and_lowers_the_doubt(winner: str) -> None:
    teacher, student = STANDARD.update(Rating(-500, 1), Rating(500, 1), winner)
    for rating in (teacher, student):
        assert math.isfinite(rating.mu)
        assert 0 < rating.sigma < 1.01


def test_the_expected_win_is_one_half_between_equals_and_grows_with_the_lead() -> None:
    assert STANDARD.expected_win(STANDARD.newcomer(), STANDARD.newcomer()) == 0.5
    spread = math.sqrt(4 + 4 + 2 * (25 / 6) ** 2)
    # One spread ahead is one standard deviation: Phi(1).
    assert STANDARD.expected_win(Rating(25 + spread, 2), Rating(25, 2)) == pytest.approx(0.8413447460685429)
    assert STANDARD.expected_win(Rating(25, 2), Rating(25 + spread, 2)) == pytest.approx(1 - 0.8413447460685429)


def test_the_winner_is_who_beats_the_expectation() -> None:
    assert decide(0.6, 0.46) == "student"
    assert decide(0.3, 0.46) == "teacher"
    assert (decide(0.5, 0.49), decide(0.48, 0.49)) == ("student", "teacher")  # however little is missing
    assert decide(0.5, 0.5) == "draw"


def test_a_teacher_without_a_valid_task_has_lost() -> None:
    assert decide(None, 0.99) == "student"


def test_the_lower_confidence_bound_of_a_newcomer_is_zero() -> None:
    assert STANDARD.fitness(STANDARD.newcomer()) == pytest.approx(0.0)
    assert STANDARD.fitness(Rating(30, 2)) == 24


def test_pooled_ratings_have_the_mean_mu_and_the_root_mean_square_sigma() -> None:
    pooled = STANDARD.pool([Rating(20, 1), Rating(30, 7)])
    assert (pooled.mu, pooled.sigma) == (25, pytest.approx(5))  # sqrt((1 + 49) / 2)
