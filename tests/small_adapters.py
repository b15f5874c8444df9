"""Small adapters for the tests of variation: random ones, founders, and other writings of the same dW."""

import math

import torch

from redqueen.adapters.genotype import Genotype

SHAPES = {
    "model.layers.0.self_attn.q_proj": (12, 10),
    "model.layers.0.mlp.up_proj": (17, 12),
    "model.layers.1.self_attn.q_proj": (12, 10),
}


def adapter(seed: int, rank: int = 4, dtype: torch.dtype = torch.float32, alpha: float = 8.0) -> Genotype:
    """A trained-looking adapter: random factors, A and B of different size."""
    rng = torch.Generator().manual_seed(seed)
    factors = {}
    for name, (num_out, num_in) in SHAPES.items():
        a = torch.randn(rank, num_in, generator=rng)
        b = 0.3 * torch.randn(num_out, rank, generator=rng)
        factors[name] = (a.to(dtype), b.to(dtype))
    return Genotype(factors, alpha)


def founder(seed: int, rank: int = 4) -> Genotype:
    """A fresh adapter: B = 0."""
    return Genotype({name: (a, torch.zeros_like(b)) for name, (a, b) in adapter(seed, rank).factors.items()}, 8.0)


def rewritten(genotype: Genotype, seed: int) -> Genotype:
    """(R^-1 A, B R) for a random invertible R in each module: the same dW in other factors.

    R has singular values within a factor of four, so that float32 does not lose what the test is about.
    """
    rng = torch.Generator().manual_seed(seed)
    factors = {}
    for name, (a, b) in genotype.factors.items():
        left, right = (torch.linalg.qr(torch.randn(a.shape[0], a.shape[0], generator=rng))[0] for _ in range(2))
        mix = left @ torch.diag(0.5 + 1.5 * torch.rand(a.shape[0], generator=rng)) @ right
        factors[name] = (torch.linalg.inv(mix) @ a, b @ mix)
    return Genotype(factors, genotype.alpha)


def dense(genotype: Genotype, name: str) -> torch.Tensor:
    """The dense dW of one module, in float64."""
    a, b = genotype.factors[name]
    return genotype.scale * b.double() @ a.double()


def distance(one: Genotype, other: Genotype) -> float:
    """|dW_one - dW_other| (Frobenius) over all modules, from the dense matrices."""
    gaps = [float((dense(one, name) - dense(other, name)).norm()) for name in one.names]
    return math.hypot(*gaps)
