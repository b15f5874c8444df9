"""Intervals against numbers worked out by hand."""

from math import isnan

import numpy as np
import pytest

from redqueen.evaluate.intervals import Interval, bootstrap_difference, bootstrap_mean, non_overlapping, wilson


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_wilson_at_z_of_two_matches_the_formula_done_by_hand() -> None:
    # z = 2 exactly, p = 1/2, n = 12: (1/2 + 4/24 -+ 2 sqrt(1/48 + 4/576)) / (1 + 4/12) = (2/3 -+ 1/3) / (4/3)
    interval = wilson(6, 12, confidence=0.9544997361036416)
    assert interval == pytest.approx((0.25, 0.75))


def test_wilson_of_eight_in_ten_is_the_textbook_interval() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_wilson_stays_inside_zero_and_one_at_the_edges() -> None:
    # no success in n: the upper end is z^2 / (n + z^2), with z^2 = 3.8415
    assert wilson(0, 20) == pytest.approx((0.0, 3.8415 / 23.8415), abs=1e-4)
    assert wilson(20, 20) == pytest.approx((1 - 3.8415 / 23.8415, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n", "confidence"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)])
def test_wilson_refuses_impossible_numbers(successes: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="must lie"):
        wilson(successes, n, confidence)


def test_the_bootstrap_of_zero_and_one_has_the_quantiles_of_its_three_means() -> None:
    # two draws from {0, 1}: mean 0, 1/2, 1 with chances 1/4, 1/2, 1/4
    assert bootstrap_mean([0, 1], rng(), confidence=0.4) == (0.5, 0.5)
    assert bootstrap_mean([0, 1], rng(), confidence=0.6) == (0.0, 1.0)


def test_clusters_are_drawn_whole() -> None:
    values = [0, 0, 1, 1]
    # as four items, the 10 % and 90 % quantiles of Binomial(4, 1/2) / 4 are 1/4 and 3/4 (cumulative 1/16, 5/16, ...)
    assert bootstrap_mean(values, rng(), confidence=0.8) == (0.25, 0.75)
    # as two pairs they are those of two draws from {0, 1}
    assert bootstrap_mean(values, rng(), clusters=["a", "a", "b", "b"], confidence=0.8) == (0.0, 1.0)


def test_clusters_of_unequal_size_weigh_by_their_items() -> None:
    # clusters a = (1), b = (0, 0, 0): the means of aa, ab, bb are 1, 1/4, 0 with chances 1/4, 1/2, 1/4
    clusters = ["a", "b", "b", "b"]
    assert bootstrap_mean([1, 0, 0, 0], rng(), clusters, confidence=0.4) == (0.25, 0.25)
    assert bootstrap_mean([1, 0, 0, 0], rng(), clusters, confidence=0.6) == (0.0, 1.0)


def test_strata_keep_their_sizes() -> None:
    # each stratum is all 0 or all 1: whatever is drawn within it, the mean stays 1/2
    assert bootstrap_mean([0, 0, 1, 1], rng(), strata=["easy", "easy", "hard", "hard"]) == (0.5, 0.5)
    # only the first stratum varies: its two draws from {0, 1} make means of 1/2, 3/4, 1 over all four
    values, strata = [0, 1, 1, 1], ["easy", "easy", "hard", "hard"]
    assert bootstrap_mean(values, rng(), confidence=0.4, strata=strata) == (0.75, 0.75)
    assert bootstrap_mean(values, rng(), confidence=0.6, strata=strata) == (0.5, 1.0)


def test_clusters_are_drawn_whole_within_their_stratum() -> None:
    clusters, strata = ["a", "a", "b", "b", "c"], ["easy", "easy", "easy", "easy", "hard"]
    # from a = (0, 0) and b = (1, 1) two are drawn, c = (1) stands always: sums of 1, 3, 5 over five items
    assert bootstrap_mean([0, 0, 1, 1, 1], rng(), clusters, confidence=0.4, strata=strata) == (0.6, 0.6)
    assert bootstrap_mean([0, 0, 1, 1, 1], rng(), clusters, confidence=0.6, strata=strata) == (0.2, 1.0)


def test_a_cluster_in_two_strata_is_refused() -> None:
    with pytest.raises(ValueError, match="one stratum"):
        bootstrap_mean([0.0, 1.0], rng(), clusters=["a", "a"], strata=["easy", "hard"])


def test_many_items_give_nearly_the_normal_interval() -> None:
    values = [0.0, 1.0] * 500
    low, high = bootstrap_mean(values, rng(), num_resamples=4000)
    half = 1.96 * 0.5 / 1000**0.5
    assert low == pytest.approx(0.5 - half, abs=0.003)
    assert high == pytest.approx(0.5 + half, abs=0.003)


def test_one_seed_gives_one_interval() -> None:
    values = np.random.default_rng(1).random(50)
    assert bootstrap_mean(values, rng()) == bootstrap_mean(values, rng())


def test_no_values_give_no_interval() -> None:
    assert all(isnan(end) for end in bootstrap_mean([], rng()))


@pytest.mark.parametrize("values", [[float("nan"), 1.0], [[1.0], [2.0]]])
def test_values_must_be_one_row_of_finite_numbers(values: list[object]) -> None:
    with pytest.raises(ValueError, match="finite"):
        bootstrap_mean(values, rng())


def test_every_value_needs_a_cluster() -> None:
    with pytest.raises(ValueError, match="as many labels"):
        bootstrap_mean([1.0, 2.0], rng(), clusters=["a"])
    with pytest.raises(ValueError, match="as many labels"):
        bootstrap_mean([1.0, 2.0], rng(), strata=["easy"])


def test_a_paired_difference_ignores_how_hard_the_items_are() -> None:
    hard_and_easy = np.linspace(0, 1, 40)
    assert bootstrap_difference(hard_and_easy + 0.25, hard_and_easy, rng()) == pytest.approx((0.25, 0.25))
    alone = bootstrap_mean(hard_and_easy, rng())
    assert alone.high - alone.low > 0.1


def test_a_paired_difference_needs_pairs() -> None:
    with pytest.raises(ValueError, match="equal shapes"):
        bootstrap_difference([1.0], [1.0, 2.0], rng())


def test_intervals_that_touch_overlap() -> None:
    assert non_overlapping(Interval(0.1, 0.2), Interval(0.3, 0.4))
    assert non_overlapping(Interval(0.3, 0.4), Interval(0.1, 0.2))
    assert not non_overlapping(Interval(0.1, 0.3), Interval(0.3, 0.4))
    assert not non_overlapping(Interval(0.0, 1.0), Interval(0.3, 0.4))
    assert not non_overlapping(Interval(float("nan"), float("nan")), Interval(0.3, 0.4))
