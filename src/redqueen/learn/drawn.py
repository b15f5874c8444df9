"""Log-probabilities of the tokens that were drawn, for losses that ask for no others.

With z the logits over the temperature T and p = softmax(z), log p_t = z_t - log sum_v exp z_v, and its gradient by the
logits is (1[v = t] - p_v) / T. That needs p once and one pass over it, where autograd of a log-softmax and a choice
takes several, each over the whole vocabulary.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor


def drawn_logprobs(logits: Tensor, drawn: Tensor, temperature: float | Tensor) -> Tensor:
    """Return log-probabilities (n,) in nats of the token ids ``drawn`` (n,), of fp32 logits (n, vocabulary).

    ``temperature`` > 0 is a number, or one of each row (n, 1). The gradient can be asked for once.
    """
    return cast(Tensor, _Drawn.apply(logits, drawn[:, None], temperature))


class _Drawn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, drawn: Tensor, temperature: float | Tensor) -> Tensor:
        one = not isinstance(temperature, Tensor) and temperature == 1.0
        scaled = logits if one else logits / temperature
        likeliest, place = scaled.max(dim=-1, keepdim=True)
        probabilities = torch.softmax(scaled, dim=-1)
        # Of the likeliest token p is never small, so that its logarithm is exact where that of the drawn may not be.
        log_sum = likeliest - probabilities.gather(1, place).log()
        ctx.probabilities, ctx.drawn, ctx.temperature = probabilities, drawn, temperature
        return (scaled.gather(1, drawn) - log_sum)[:, 0]

    @staticmethod
    def backward(ctx: Any, *signals: Tensor) -> tuple[Tensor, None, None]:
        signal = signals[0][:, None] / ctx.temperature
        gradient, ctx.probabilities = ctx.probabilities.mul_(-signal), None
        return gradient.scatter_add_(1, ctx.drawn, signal), None, None
