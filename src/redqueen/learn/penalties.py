"""The KL penalty, token by token: D(p || q) = sum_v p_v (log p_v - log q_v) in nats.

An exact sum over the vocabulary, not an estimate from the token that was drawn. Source: KL as in REINFORCE++ and ProRL;
the exact sum is ours.
"""

from __future__ import annotations

from torch import Tensor


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Return D(p || q) (n,) >= 0 of log-probabilities (n, vocabulary)."""
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)
