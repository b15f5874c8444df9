"""Statistics against numbers worked out by hand, and against scipy."""

from itertools import combinations
from math import comb, isnan, sqrt
from statistics import fmean

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from redqueen.statistics import (
    bootstrap_mean,
    difference,
    least_p,
    mean_interval,
    pass_at_k,
    percentile_interval,
    permutation_p,
    resampled_means,
    t_quantile,
    wilson,
)

NUMBERS = st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=4)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_wilson_of_eight_in_ten_is_the_textbook_interval() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_wilson_stays_inside_zero_and_one_at_the_edges() -> None:
    # no success in n: the upper end is z^2 / (n + z^2), with z^2 = 3.8415
    assert wilson(0, 20) == pytest.approx((0.0, 3.8415 / 23.8415), abs=1e-4)
    assert wilson(20, 20) == pytest.approx((1 - 3.8415 / 23.8415, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2)])
def test_wilson_refuses_impossible_numbers(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="must lie"):
        wilson(successes, n)


def middle(share: float, values: list[int], **design: list[str]) -> tuple[float, float]:
    """Return the ends of the middle ``share`` of the resampled means: few values by hand need other ends than 95 %."""
    low, high = np.quantile(resampled_means(values, rng(), 2000, **design), [(1 - share) / 2, (1 + share) / 2])
    return low, high


def test_the_bootstrap_of_zero_and_one_has_the_quantiles_of_its_three_means() -> None:
    # two draws from {0, 1}: mean 0, 1/2, 1 with chances 1/4, 1/2, 1/4
    assert middle(0.4, [0, 1]) == (0.5, 0.5)
    assert middle(0.6, [0, 1]) == (0.0, 1.0)


def test_clusters_are_drawn_whole() -> None:
    values = [0, 0, 1, 1]
    # as four items, the 10 % and 90 % quantiles of Binomial(4, 1/2) / 4 are 1/4 and 3/4 (cumulative 1/16, 5/16, ...)
    assert middle(0.8, values) == (0.25, 0.75)
    # as two pairs they are those of two draws from {0, 1}
    assert middle(0.8, values, clusters=["a", "a", "b", "b"]) == (0.0, 1.0)


def test_clusters_of_unequal_size_weigh_by_their_items() -> None:
    # clusters a = (1), b = (0, 0, 0): the means of aa, ab, bb are 1, 1/4, 0 with chances 1/4, 1/2, 1/4
    clusters = ["a", "b", "b", "b"]
    assert middle(0.4, [1, 0, 0, 0], clusters=clusters) == (0.25, 0.25)
    assert middle(0.6, [1, 0, 0, 0], clusters=clusters) == (0.0, 1.0)


def test_strata_keep_their_sizes() -> None:
    # each stratum is all 0 or all 1: whatever is drawn within it, the mean stays 1/2
    assert bootstrap_mean([0, 0, 1, 1], rng(), strata=["easy", "easy", "hard", "hard"]) == (0.5, 0.5)
    # only the first stratum varies: its two draws from {0, 1} make means of 1/2, 3/4, 1 over all four
    values, strata = [0, 1, 1, 1], ["easy", "easy", "hard", "hard"]
    assert middle(0.4, values, strata=strata) == (0.75, 0.75)
    assert middle(0.6, values, strata=strata) == (0.5, 1.0)


def test_clusters_are_drawn_whole_within_their_stratum() -> None:
    clusters, strata = ["a", "a", "b", "b", "c"], ["easy", "easy", "easy", "easy", "hard"]
    # from a = (0, 0) and b = (1, 1) two are drawn, c = (1) stands always: sums of 1, 3, 5 over five items
    assert middle(0.4, [0, 0, 1, 1, 1], clusters=clusters, strata=strata) == (0.6, 0.6)
    assert middle(0.6, [0, 0, 1, 1, 1], clusters=clusters, strata=strata) == (0.2, 1.0)


def test_strata_of_one_cluster_each_are_drawn_together_because_alone_they_show_no_spread() -> None:
    values, strata = [0, 1, 0, 1], ["a", "b", "c", "d"]
    assert bootstrap_mean(values, rng(), strata=strata) == bootstrap_mean(values, rng()) == (0.0, 1.0)
    # only the pair of "easy" and the two single clusters vary, each by itself
    low, high = bootstrap_mean([0, 0, 0, 1], rng(), strata=["easy", "easy", "b", "c"])
    assert (low, high) == (0.0, 0.5)


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
    assert bootstrap_mean((hard_and_easy + 0.25) - hard_and_easy, rng()) == pytest.approx((0.25, 0.25))
    alone = bootstrap_mean(hard_and_easy, rng())
    assert alone.high - alone.low > 0.1


# pass@k: the share of all choices of k attempts that hold a right one


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_it_is_the_share_of_choices_that_hold_a_right_attempt(attempts: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(attempts)))
    expected = fmean(any(choice) for choice in combinations(attempts, k))
    assert pass_at_k(len(attempts), sum(attempts), k) == pytest.approx(expected)


def test_pass_at_1_is_the_solve_rate() -> None:
    assert pass_at_k(200, 37, 1) == pytest.approx(37 / 200)


@pytest.mark.parametrize(("n", "correct", "k"), [(4, 1, 0), (4, 1, 5), (4, 5, 1), (4, -1, 1)])
def test_what_cannot_be_estimated_is_refused(n: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass@k"):
        pass_at_k(n, correct, k)


# Over runs, one number each


def test_complete_separation_of_three_from_three_has_the_smallest_p_there_is() -> None:
    assert permutation_p([4, 5, 6], [1, 2, 3]) == least_p(3, 3) == pytest.approx(2 / 20)


def test_complete_separation_of_five_from_three_has_a_smaller_one() -> None:
    # 56 labellings; none but the true one puts the means so far apart.
    assert permutation_p([10, 11, 12, 13, 14], [1, 2, 3]) == least_p(5, 3) == pytest.approx(1 / 56)


def test_the_permutation_test_counts_labellings_at_least_as_extreme() -> None:
    # {1, 4} against {2, 3}: all differences of the six labellings are 0, 1, 2 in size; the observed one is 0.
    assert permutation_p([1, 4], [2, 3]) == 1.0
    # {2, 4} against {1, 3}: |3 - 2| = 1; the six give 2, 1, 0, 0, 1, 2, so four are at least as extreme.
    assert permutation_p([2, 4], [1, 3]) == pytest.approx(4 / 6)


def test_rounding_does_not_break_a_tie() -> None:
    assert permutation_p([0.1 + 0.2] * 3, [0.3] * 3) == permutation_p([0.1, 0.2], [0.2, 0.1]) == 1.0
    assert permutation_p([0.1, 0.7], [0.7, 0.1]) == 1.0


@given(NUMBERS, NUMBERS)
def test_the_test_is_two_sided_and_never_below_its_smallest_value(arm: list[float], reference: list[float]) -> None:
    p = permutation_p(arm, reference)
    assert p == permutation_p(reference, arm)
    assert least_p(len(arm), len(reference)) <= p + 1e-12 <= 1 + 1e-9


def test_many_runs_are_tested_by_drawing() -> None:
    rng = np.random.default_rng(0)
    arm, reference = rng.normal(0, 1, 12), rng.normal(0, 1, 12)
    assert comb(24, 12) > 200_000
    assert permutation_p(list(arm), list(arm)) == 1.0
    assert permutation_p(list(arm + 5), list(reference)) == pytest.approx(1 / 200_000)


def test_an_interval_over_seeds_is_students() -> None:
    # Mean 3, variance (4 + 1 + 9) / 2 = 7, standard error sqrt(7 / 3); t with 2 degrees of freedom is 4.303.
    half = 4.30265 * sqrt(7 / 3)
    assert mean_interval([1.0, 2.0, 6.0]) == pytest.approx((3 - half, 3 + half), abs=1e-4)


def test_three_runs_of_one_sign_alone_do_not_put_an_interval_above_zero() -> None:
    low, high = mean_interval([0.1, 0.2, 0.9])
    assert low < 0 < high
    assert mean_interval([0.30, 0.32, 0.34]).low > 0


def test_a_difference_carries_estimate_interval_and_what_the_seeds_allow() -> None:
    # Variances 1 and 1 of three each: standard error sqrt(2 / 3), exactly 4 degrees of freedom, t = 2.776.
    found = difference([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert found.estimate == 3.0
    assert found.interval == pytest.approx((3 - 2.77645 * sqrt(2 / 3), 3 + 2.77645 * sqrt(2 / 3)), abs=1e-4)
    assert found.p == found.least_p == pytest.approx(0.1)


def test_the_degrees_of_freedom_of_a_difference_are_rounded_down() -> None:
    # s^2 / n is 1 / 3 and 4 / 3: (5 / 3)^2 / ((1 / 9 + 16 / 9) / 2) = 50 / 17 = 2.94, so 2 are counted.
    found = difference([5.0, 6.0, 7.0], [1.0, 3.0, 5.0])
    half = 4.30265 * sqrt(5 / 3)
    assert found.interval == pytest.approx((3 - half, 3 + half), abs=1e-4)


def test_an_arm_without_spread_lends_no_degrees_of_freedom() -> None:
    found = difference([4.0, 5.0, 6.0], [1.0] * 5)
    assert found.interval == pytest.approx((4 - 4.30265 * sqrt(1 / 3), 4 + 4.30265 * sqrt(1 / 3)), abs=1e-4)


def test_one_run_or_runs_without_spread_have_no_interval() -> None:
    unknown = [
        mean_interval([]),
        mean_interval([2.0]),
        mean_interval([2.0, 2.0, 2.0]),
        mean_interval([0.1 + 0.2, 0.3, 0.3]),
        difference([1.0], [1.0, 2.0]).interval,
        difference([1.0, 1.0], [2.0, 2.0]).interval,
    ]
    assert all(isnan(end) for interval in unknown for end in interval)


@pytest.mark.parametrize(("arm", "reference"), [([], [1.0]), ([1.0], [])])
def test_a_difference_needs_a_run_on_each_side(arm: list[float], reference: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one run"):
        difference(arm, reference)


# scipy as the oracle -----------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.data())
def test_wilson_is_scipys(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    expected = scipy.stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(NUMBERS, NUMBERS)
def test_the_permutation_test_is_scipys(arm: list[float], reference: list[float]) -> None:
    def means_apart(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.abs(np.mean(x, axis) - np.mean(y, axis))

    expected = scipy.stats.permutation_test((arm, reference), means_apart, vectorized=True, alternative="greater")
    assert permutation_p(arm, reference) == pytest.approx(expected.pvalue)


def test_the_bootstrap_of_a_mean_is_scipys() -> None:
    values = np.random.default_rng(3).exponential(size=25)
    expected = scipy.stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=rng())
    found = bootstrap_mean(values, rng(), num_resamples=20_000)
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.02)
    assert resampled_means(values, rng(), 20_000).std() == pytest.approx(expected.standard_error, rel=0.03)


def test_the_paired_bootstrap_is_scipys() -> None:
    a, b = np.random.default_rng(4).random((2, 25))
    expected = scipy.stats.bootstrap(
        (a, b), lambda x, y, axis: np.mean(x - y, axis), paired=True, n_resamples=20_000, method="percentile", rng=rng()
    )
    found = bootstrap_mean(np.subtract(a, b), rng(), num_resamples=20_000)
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.01)


@pytest.mark.parametrize("free", [*range(1, 200), 1000, 10**6])
def test_the_quantile_of_t_is_scipys(free: int) -> None:
    assert t_quantile(free) == pytest.approx(scipy.stats.t.ppf(0.975, free), abs=5e-4)


@given(st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=9).filter(lambda values: len(set(values)) > 1))
def test_the_interval_of_a_mean_is_scipys(values: list[float]) -> None:
    expected = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean_interval(values) == pytest.approx(tuple(expected), rel=1e-3, abs=1e-3)


@given(NUMBERS.filter(lambda v: len(set(v)) > 1), NUMBERS.filter(lambda v: len(set(v)) > 1))
def test_the_interval_of_a_difference_holds_welchs(arm: list[float], reference: list[float]) -> None:
    expected = scipy.stats.ttest_ind(arm, reference, equal_var=False).confidence_interval(0.95)
    found = difference(arm, reference).interval
    assert found.low <= expected.low + 1e-2 and found.high >= expected.high - 1e-2


def test_intervals_over_three_seeds_hold_the_mean_in_nineteen_of_twenty() -> None:
    draws = np.random.default_rng(1).normal(1.0, 1.0, (4000, 3))
    held = [low <= 1.0 <= high for low, high in (mean_interval(list(row)) for row in draws)]
    assert fmean(held) == pytest.approx(0.95, abs=0.015)


def test_draws_in_which_a_statistic_is_not_defined_do_not_count() -> None:
    assert percentile_interval(np.array([np.nan, 1.0, 1.0])) == (1.0, 1.0)
    assert all(isnan(end) for end in percentile_interval(np.array([np.nan])))
