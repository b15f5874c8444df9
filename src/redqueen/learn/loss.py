"""The clipped surrogate loss of policy optimisation, token by token.

L_t = -min(rho_t A, clip(rho_t, 1 - c, 1 + c) A), with rho_t = exp(log-prob now - log-prob when sampled). Source: PPO
(Schulman et al. 2017); c = 0.2 from AZR.

With one update per step rho is always 1: the sampling weights are the current ones, the clip has no effect, and the
gradient is that of REINFORCE. With ``learn.updates_per_step`` > 1 the later mini-batches are off-policy and clipped.

If another engine sampled, its policy differs slightly from the learner's even with equal weights, since its kernels
round differently. Each token's loss is then multiplied by min(C, p / q), as a constant, with p the token's probability
for the learner and q for the sampler. Source: truncated importance sampling (Ionides 2008), token by token as in Yao et
al. 2025 ("Your Efficient RL Framework Secretly Brings You Off-Policy RL Training").

The KL penalty is D(p || q) = sum_v p_v (log p_v - log q_v) in nats, exact over the vocabulary. With z the logits over
the temperature T and p = softmax(z), a drawn token has log p_t = z_t - log sum_v exp z_v, whose gradient is
(1[v = t] - p_v) / T.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from redqueen.records import Mismatch


def clipped_surrogate(
    new_logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    """Return (loss, clipped), each (n,): the loss of each token, and whether clipping makes its gradient zero.

    All inputs are (n,): log-probabilities in nats, ``clip`` > 0. With ``old_logprobs = new_logprobs.detach()`` the
    ratio is 1 and the gradient is that of REINFORCE, -A grad log-prob.
    """
    ratio = torch.exp(new_logprobs - old_logprobs)  # (n,)
    free = ratio * advantages
    held = ratio.clamp(1.0 - clip, 1.0 + clip) * advantages
    return -torch.minimum(free, held), held < free


def truncated_weights(log_ratios: Tensor, cap: float) -> Tensor:
    """Return min(``cap``, exp(``log_ratios``)), of the shape of ``log_ratios`` = log p - log q (nats)."""
    return torch.exp(log_ratios).clamp(max=cap)


def add_by_member(sums: Tensor, member_of: Tensor, values: Tensor) -> None:
    """Add each of ``values`` (n,) to its member's place, ``member_of`` (n,), in ``sums`` (members,).

    On a GPU ``index_add_`` adds in a random order of threads, which would change the last digits in a journal.
    """
    if sums.device.type == "cpu":
        sums.index_add_(0, member_of, values)
    else:
        members = torch.arange(len(sums), device=sums.device)
        sums += torch.where(member_of == members[:, None], values, 0.0).sum(dim=1)  # (members, n) -> (members,)


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Return D(p || q) (n,) >= 0 of log-probabilities (n, vocabulary)."""
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)


def drawn_logprobs(logits: Tensor, drawn: Tensor, temperature: float | Tensor) -> Tensor:
    """Return log-probabilities (n,) in nats of the token ids ``drawn`` (n,), of fp32 logits (n, vocabulary).

    ``temperature`` > 0 is a number, or one for each row (n, 1). The gradient can be computed only once.
    """
    return cast(Tensor, _DrawnLogprobs.apply(logits, drawn[:, None], temperature))


class _DrawnLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, drawn: Tensor, temperature: float | Tensor) -> Tensor:
        one = not isinstance(temperature, Tensor) and temperature == 1.0
        scaled = logits if one else logits / temperature  # (n, vocabulary)
        likeliest, place = scaled.max(dim=-1, keepdim=True)  # (n, 1) each
        probabilities = torch.softmax(scaled, dim=-1)  # (n, vocabulary)
        # The largest probability is never tiny, so its logarithm is accurate; that of the drawn token may not be.
        log_sum = likeliest - probabilities.gather(1, place).log()  # (n, 1)
        ctx.probabilities, ctx.drawn, ctx.temperature = probabilities, drawn, temperature
        return (scaled.gather(1, drawn) - log_sum)[:, 0]  # (n,)

    @staticmethod
    def backward(ctx: Any, *signals: Tensor) -> tuple[Tensor, None, None]:
        signal = signals[0][:, None] / ctx.temperature  # (n, 1)
        gradient, ctx.probabilities = ctx.probabilities.mul_(-signal), None  # (n, vocabulary)
        return gradient.scatter_add_(1, ctx.drawn, signal), None, None


class MismatchSums:
    """Adds up d = log p - log q by member, ``num_members`` of them; ``cap`` is that of the weights exp(d)."""

    def __init__(self, num_members: int, cap: float, device: torch.device) -> None:
        self.cap = cap
        # Rows: number of tokens, sum of |d|, sum of exp(d) - 1 - d, number of truncated weights
        self.sums = torch.zeros(4, num_members, dtype=torch.float64, device=device)
        self.largest = torch.zeros(num_members, dtype=torch.float64, device=device)

    def add(self, log_ratios: Tensor, member_of: Tensor) -> None:
        """Add tokens: ``log_ratios`` (n,) in nats, and the index of each token's member (n,)."""
        d = log_ratios.double()
        size = d.abs()
        for row, values in enumerate((torch.ones_like(d), size, torch.expm1(d) - d, (d.exp() > self.cap).double())):
            add_by_member(self.sums[row], member_of, values)
        self.largest.scatter_reduce_(0, member_of, size, "amax")

    def merge(self, other: MismatchSums) -> None:
        """Add the sums of ``other`` for the same members."""
        self.sums += other.sums
        self.largest = torch.maximum(self.largest, other.largest)

    def of(self, member: int) -> Mismatch | None:
        """Return a member's mismatch; None when nothing was added for it."""
        num, size, divergence, truncated = self.sums[:, member].tolist()
        if num == 0:
            return None
        return Mismatch(size / num, float(self.largest[member]), divergence / num, truncated / num)
