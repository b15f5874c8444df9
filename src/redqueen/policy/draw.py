"""Drawing tokens: counter-based noise, so that a sample never depends on its batch, and inversion of the distribution.

One uniform number a token is a hash of (request seed, sample index, token index); the token is where the cumulative
distribution passes it. (The hash is the finaliser of SplitMix64, Steele et al. 2014; its use here is ours.)
"""

from __future__ import annotations

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15


def _signed(value: int) -> int:
    """Fold an integer of any size into int64, bits kept."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Logical shift of int64: torch's own drags the sign along."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift_right(x, 30)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shift_right(x, 27)) * _signed(0x94D049BB133111EB)
    return x ^ _shift_right(x, 31)


def uniforms(rng_seeds: list[int], samples: list[int], num_tokens: int, device: torch.device) -> Tensor:
    """Return (n, num_tokens) fp32 in [0, 1): row i belongs to sample ``samples[i]`` of a request's ``rng_seeds[i]``."""
    seeds = torch.tensor([_signed(s) for s in rng_seeds], dtype=torch.int64, device=device)
    which = torch.tensor(samples, dtype=torch.int64, device=device)
    key = _mix(_mix(seeds) + (which + 1) * _signed(_GOLDEN))
    steps = torch.arange(1, num_tokens + 1, dtype=torch.int64, device=device) * _signed(_GOLDEN)
    return _shift_right(_mix(key[:, None] + steps), 40).to(torch.float32) * 2.0**-24


def draw(logits: Tensor, noise: Tensor, temperature: float, top_p: float) -> tuple[Tensor, Tensor, Tensor]:
    """Draw one token a row: (tokens int64, log-probabilities, entropies), each (rows,).

    ``logits`` (rows, vocabulary) fp32; ``noise`` (rows,) in [0, 1). Temperature 0 takes the most likely token and
    reports probabilities at temperature 1. Log-probabilities and entropies (nats) are those of the softmax at the
    temperature; ``top_p`` < 1 restricts what is drawn, not what is reported, so that a learner can compute the same.
    """
    logp = torch.log_softmax(logits if temperature in (0.0, 1.0) else logits / temperature, dim=-1)
    probs = logp.exp()
    entropy = -(probs * logp).sum(dim=-1)
    if temperature == 0.0:
        tokens = logits.argmax(dim=-1)
    else:
        if top_p < 1.0:
            probs = nucleus(probs, top_p)
        cumulative = probs.cumsum(dim=-1)
        # A product with a number below 1 stays below the total, so the token found always has a positive probability.
        threshold = noise[:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, threshold, right=True)[:, 0].clamp_(max=logits.shape[-1] - 1)
    return tokens, logp.gather(1, tokens[:, None])[:, 0], entropy


def nucleus(probs: Tensor, top_p: float) -> Tensor:
    """Zero all but the smallest set of most likely tokens whose probability reaches ``top_p``, (rows, vocabulary)."""
    ordered, index = probs.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(dim=-1) - ordered
    return torch.zeros_like(probs).scatter(1, index, ordered.masked_fill(before >= top_p, 0.0))
