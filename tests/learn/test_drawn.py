"""Log-probabilities of drawn tokens beside those of a plain log-softmax."""

import math

import pytest
import torch

from redqueen.learn.loss import drawn_logprobs

GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(7, 50, generator=GENERATOR) * 4.0
DRAWN = torch.randint(50, (7,), generator=GENERATOR)
SIGNAL = torch.randn(7, generator=GENERATOR)


def test_of_three_logits_by_hand() -> None:
    # exp(0) + exp(log 2) + exp(log 5) = 8, so that p = 1/8, 2/8, 5/8; at temperature 1/2 they are 1/30, 4/30, 25/30.
    logits = torch.tensor([[0.0, math.log(2.0), math.log(5.0)]]).requires_grad_()
    got = drawn_logprobs(logits, torch.tensor([1]), 1.0)
    assert got.item() == pytest.approx(math.log(2 / 8))
    assert drawn_logprobs(logits, torch.tensor([1]), 0.5).item() == pytest.approx(math.log(4 / 30))
    (gradient,) = torch.autograd.grad(got.sum(), logits)
    assert gradient[0].tolist() == pytest.approx([-1 / 8, 1 - 2 / 8, -5 / 8])


@pytest.mark.parametrize(
    "temperature",
    [1.0, 0.7, torch.linspace(0.5, 2.0, 7)[:, None]],
    ids=["one", "a number", "one of each row"],
)
def test_values_and_gradients_are_those_of_plain_autograd(temperature: float | torch.Tensor) -> None:
    leaves = [LOGITS.double().clone().requires_grad_(), LOGITS.clone().requires_grad_()]
    plain = torch.log_softmax(leaves[0] / temperature, dim=-1).gather(1, DRAWN[:, None])[:, 0]
    got = drawn_logprobs(leaves[1], DRAWN, temperature)
    torch.testing.assert_close(got.double(), plain, rtol=1e-6, atol=1e-6)
    for value in (plain, got):
        (value * SIGNAL).sum().backward()
    torch.testing.assert_close(leaves[1].grad.double(), leaves[0].grad, rtol=1e-5, atol=1e-7)


def test_a_token_that_is_next_to_impossible_has_its_exact_value() -> None:
    logits = torch.zeros(1, 4)
    logits[0, 2] = -500.0  # its probability is 0 in fp32, its logarithm is not
    assert drawn_logprobs(logits, torch.tensor([2]), 1.0).item() == pytest.approx(-500.0 - math.log(3.0))


def test_logits_that_are_no_numbers_give_none() -> None:
    logits = torch.tensor([[0.0, math.nan, 1.0]])
    assert drawn_logprobs(logits, torch.tensor([0]), 1.0).isnan().all()


def test_what_it_is_given_stays_as_it_was() -> None:
    logits = LOGITS.clone().requires_grad_()
    torch.autograd.grad(drawn_logprobs(logits, DRAWN, 1.0).sum(), logits)
    assert torch.equal(logits, LOGITS)
