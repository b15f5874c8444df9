"""Divergence of small distributions, by hand."""

import math

import pytest
import torch

from redqueen.learn.loss import divergence


def logs(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).log()


def test_the_divergence_is_the_expected_difference_of_log_probabilities_under_the_first() -> None:
    p, q = logs((0.5, 0.5), (0.9, 0.1)), logs((0.25, 0.75), (0.9, 0.1))
    expected = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert divergence(p, q).tolist() == pytest.approx([expected, 0.0])
