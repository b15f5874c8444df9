"""How far the engine that sampled is from the learner, by hand."""

import math

import pytest
import torch

from redqueen.learn.loss import MismatchSums


def test_the_figures_of_each_member_are_those_computed_by_hand() -> None:
    sums, others = (MismatchSums(3, cap=2.0, device=torch.device("cpu")) for _ in range(2))
    sums.add(torch.tensor([0.1]), torch.tensor([0]))
    others.add(torch.tensor([math.log(3.0), 0.0, -0.5]), torch.tensor([0, 2, 0]))  # another lane's
    sums.merge(others)
    first = sums.of(0)
    assert first.mean_abs == pytest.approx((math.log(3.0) + 0.5 + 0.1) / 3)
    assert first.max_abs == pytest.approx(math.log(3.0))
    divergence = (3 - 1 - math.log(3.0)) + (math.exp(-0.5) - 1 + 0.5) + (math.exp(0.1) - 1 - 0.1)
    assert first.kl == pytest.approx(divergence / 3)
    assert first.truncated_frac == pytest.approx(1 / 3)  # 3 is above the cap of 2
    last = sums.of(2)
    assert (last.mean_abs, last.max_abs, last.kl, last.truncated_frac) == (0.0, 0.0, 0.0, 0.0)
    assert sums.of(1) is None


def test_the_divergence_of_a_probability_that_vanished_is_finite() -> None:
    sums = MismatchSums(1, cap=2.0, device=torch.device("cpu"))
    sums.add(torch.tensor([-9999.0]), torch.tensor([0]))
    assert sums.of(0).kl == pytest.approx(9998.0)
