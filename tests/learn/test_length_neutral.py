"""Advantages from which the part that length explains was taken out, worked out by hand."""

import pytest

from redqueen.learn.length_neutral import length_neutral


def test_the_slope_over_the_groups_of_a_kind_is_taken_out() -> None:
    # A = (2, -2), d = (-2, 2) and A = (1, -1), d = (-1, 1): sum(d A) = -8 - 2 = -10, sum(d^2) = 10, b = -1.
    left = length_neutral([(2.0, -2.0), (1.0, -1.0)], [(10, 14), (5, 7)], ["code_o", "code_o"])
    assert left == [(0.0, 0.0), (0.0, 0.0)]
    # d = (-2, 2) and (1, -1), A = (1, -1) twice: sum(d A) = -4 + 2 = -2, sum(d^2) = 10, b = -0.2.
    left = length_neutral([(1.0, -1.0), (1.0, -1.0)], [(10, 14), (7, 5)], ["code_o", "code_o"])
    assert left == [pytest.approx((0.6, -0.6)), pytest.approx((1.2, -1.2))]


def test_what_is_left_pulls_at_no_kinds_length_and_keeps_each_groups_mean() -> None:
    advantages = [(1.5, -0.5, 0.2), (0.3, -0.9, 0.6), (-1.0, 1.0, 0.0)]
    lengths = [(3, 9, 4), (20, 31, 28), (7, 6, 2)]
    left = length_neutral(advantages, lengths, ["a", "b", "b"])
    for kind in ([0], [1, 2]):
        pull = sum(a * (n - sum(lengths[i]) / 3) for i in kind for a, n in zip(left[i], lengths[i], strict=True))
        assert pull == pytest.approx(0.0, abs=1e-12)
    assert [sum(group) for group in left] == [pytest.approx(sum(group)) for group in advantages]
    assert left != [pytest.approx(group) for group in advantages]


def test_kinds_do_not_share_a_slope_and_groups_that_say_nothing_stay_silent() -> None:
    groups = [(1.0, -1.0), (1.0, -1.0), (0.0, 0.0), ()]
    left = length_neutral(groups, [(10, 14), (9, 9), (1, 50), ()], ["a", "b", "a", "a"])
    assert left == [pytest.approx((0.0, 0.0)), (1.0, -1.0), (0.0, 0.0), ()]


def test_a_group_of_equal_advantages_stays_as_it_is_also_where_whitening_has_rounded() -> None:
    # Seven rewards do not centre exactly, so the whitened advantages of a group of equal rewards can be 1e-17, not 0.
    left = length_neutral([(1.0, -1.0), (-1e-17, -1e-17)], [(10, 14), (1, 50)], ["a", "a"])
    assert left == [pytest.approx((0.0, 0.0)), (-1e-17, -1e-17)]
