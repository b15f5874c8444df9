"""The clipped surrogate against hand-computed numbers."""

import pytest
import torch

from redqueen.learn.loss import clipped_surrogate, truncated_weights


def test_the_loss_is_the_smaller_of_the_free_and_the_clipped_gain() -> None:
    ratio = torch.tensor([1.1, 1.5, 0.5, 1.5, 0.5])
    advantage = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0])
    loss, clipped = clipped_surrogate(ratio.log(), torch.zeros(5), advantage, clip=0.2)
    assert loss.tolist() == pytest.approx([-1.1, -1.2, -0.5, 1.5, 0.8])
    assert clipped.tolist() == [False, True, False, False, True]


def test_at_ratio_one_the_gradient_is_that_of_reinforce() -> None:
    new = torch.tensor([-1.0, -2.0], requires_grad=True)
    loss, _ = clipped_surrogate(new, new.detach(), torch.tensor([3.0, -0.5]), clip=0.2)
    loss.sum().backward()
    assert new.grad is not None and new.grad.tolist() == pytest.approx([-3.0, 0.5])


def test_a_clipped_token_has_no_gradient() -> None:
    new = torch.tensor([0.0], requires_grad=True)
    loss, _ = clipped_surrogate(new, torch.tensor([-1.0]), torch.tensor([1.0]), clip=0.2)
    loss.sum().backward()
    assert new.grad is not None and new.grad.item() == 0.0


def test_a_tokens_weight_is_its_probability_over_the_samplers_cut_at_the_cap() -> None:
    log_ratios = torch.tensor([0.25, 1.0, 3.0, 2.0]).log()
    assert truncated_weights(log_ratios, cap=2.0).tolist() == pytest.approx([0.25, 1.0, 2.0, 2.0])
    assert truncated_weights(torch.tensor([9999.0, -9999.0]), cap=2.0).tolist() == [2.0, 0.0]
