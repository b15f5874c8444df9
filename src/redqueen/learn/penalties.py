"""What the loss may hold beside the policy gradient, token by token: divergence from a reference, and entropy.

Both are exact sums over the vocabulary, not estimates from the token that was drawn: D(p || q) = sum_v p_v (log p_v -
log q_v) and H(p) = -sum_v p_v log p_v, in nats. Ground: KL as in REINFORCE++ and ProRL; the exact sum is ours.
"""

from __future__ import annotations

from torch import Tensor


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Return D(p || q) (n,) >= 0 of log-probabilities (n, vocabulary)."""
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)


def entropy(log_p: Tensor) -> Tensor:
    """Return H(p) (n,) of log-probabilities (n, vocabulary)."""
    return -(log_p.exp() * log_p).sum(dim=-1)
