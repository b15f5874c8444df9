"""The clipped surrogate loss of policy optimisation, token by token.

L_t = -min(rho_t A, clip(rho_t, 1 - c, 1 + c) A), with rho_t = exp(log-prob now - log-prob when sampled). Ground: PPO
(Schulman et al. 2017); c = 0.2 from AZR.

In a run the clip never acts: each batch gives one update, of the very weights that sampled it, so rho is 1 throughout,
``learn.clip`` changes nothing, and the gradient is that of REINFORCE. It would act on a batch that another policy
sampled, or in a second update on the same batch.

Where the samples come from another engine, the policy that sampled is not quite the learner's, whatever its weights:
other kernels round otherwise. Each token is then weighed by min(C, p / q), p its probability to the learner and q that
with which it was sampled, as a constant. Ground: truncated importance sampling (Ionides 2008), token by token as in Yao
et al. 2025 ("Your Efficient RL Framework Secretly Brings You Off-Policy RL Training").
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(
    new_logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    """Return (loss, clipped), each (n,): the loss of each token and whether the clip holds its gradient at zero.

    All inputs are (n,): log-probabilities in nats, ``clip`` > 0. With ``old_logprobs = new_logprobs.detach()`` the
    ratio is 1 and the gradient is that of REINFORCE, -A grad log-prob.
    """
    ratio = torch.exp(new_logprobs - old_logprobs)
    free = ratio * advantages
    held = ratio.clamp(1.0 - clip, 1.0 + clip) * advantages
    return -torch.minimum(free, held), held < free


def truncated_weights(log_ratios: Tensor, cap: float) -> Tensor:
    """Return min(``cap``, exp(``log_ratios``)), of the shape of ``log_ratios`` = log p - log q (nats)."""
    return torch.exp(log_ratios).clamp(max=cap)
