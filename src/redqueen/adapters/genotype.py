"""The genotype: an adapter's LoRA factors, and measures on dW = (alpha / rank) B A that never form it.

A dense dW of a 7B model is some 26 GB in fp32; its two factors are 323 MB. All measures are therefore traces of r x r
Gram matrices: <dW1, dW2> = s1 s2 tr((B1^T B2)(A2 A1^T)). These are accumulated in float64, because a distance is the
small difference of large squares: float32 would round away a change below 0.03 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Factors = tuple[Tensor, Tensor]
"""``(A, B)`` of one module: A is (rank, in_features), B is (out_features, rank), as PEFT stores lora_A and lora_B."""

Squares = dict[str, tuple[float, float]]
"""By module: |dW_one - dW_other|^2, never below 0, and |dW_other|^2 (Frobenius)."""


@dataclass(frozen=True)
class Genotype:
    """The factors of one adapter by module name, e.g. ``model.layers.0.self_attn.q_proj``, and its ``lora_alpha``.

    ``factors[name] = (A, B)`` with A (rank, in) and B (out, rank); every module has the same rank.
    ``alpha`` is PEFT's lora_alpha: the adapter adds dW = (alpha / rank) B A to the module's weight.
    """

    factors: dict[str, Factors]
    alpha: float

    def __post_init__(self) -> None:
        """Raise ValueError when a module's factors do not fit each other or the ranks differ."""
        if not self.factors:
            raise ValueError("a genotype needs at least one module")
        for name, (a, b) in self.factors.items():
            if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1] or a.shape[0] != self.rank:
                raise ValueError(
                    f"{name}: A {tuple(a.shape)} and B {tuple(b.shape)} are not (rank, in) and (out, rank) "
                    "with one rank for all modules"
                )

    @property
    def rank(self) -> int:
        """The LoRA rank r, shared by all modules."""
        return next(iter(self.factors.values()))[0].shape[0]

    @property
    def scale(self) -> float:
        """alpha / rank, the factor in front of B A."""
        return self.alpha / self.rank

    @property
    def is_zero(self) -> bool:
        """Whether dW is 0 (B is 0 in every module), as for an untrained founder."""
        return not any(bool(b.any()) for _, b in self.factors.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Module names in their stored order."""
        return tuple(self.factors)


@dataclass(frozen=True)
class RelativeChange:
    """|dW_child - dW_parent| / |dW_parent| in Frobenius norm, over the whole adapter and module by module."""

    overall: float
    per_layer: dict[str, float]


def flattened(genotype: Genotype) -> Tensor:
    """Return the factors in one row (parameters,), module after module, A before B, as in an adapter bank."""
    return torch.cat([factor.reshape(-1) for pair in genotype.factors.values() for factor in pair])


def same_shape(one: Genotype, other: Genotype) -> bool:
    """Whether two genotypes have the same modules, shapes, rank and alpha, as crossover requires."""
    return (
        one.alpha == other.alpha
        and one.factors.keys() == other.factors.keys()
        and all(
            a.shape == other.factors[name][0].shape and b.shape == other.factors[name][1].shape
            for name, (a, b) in one.factors.items()
        )
    )


def is_finite(genotype: Genotype) -> bool:
    """Whether everything that the adapter adds is finite in float32; False if an update has broken it."""
    norms = ((a.float().norm(), b.float().norm()) for a, b in genotype.factors.values())
    return all(bool((a * b * genotype.scale).isfinite()) for a, b in norms)


def clone(genotype: Genotype) -> Genotype:
    """A copy that shares no memory with the original and no autograd history."""
    factors = {name: (a.detach().clone(), b.detach().clone()) for name, (a, b) in genotype.factors.items()}
    return Genotype(factors, genotype.alpha)


def on_cpu(genotype: Genotype) -> Genotype:
    """The genotype with its factors in main memory; factors that are already there are shared, not copied."""
    return Genotype({name: (a.cpu(), b.cpu()) for name, (a, b) in genotype.factors.items()}, genotype.alpha)


def fresh_like(genotype: Genotype, rng: torch.Generator) -> Genotype:
    """A founder of the same shape, on the CPU: A uniform in +-1 / sqrt(in) as in PEFT, B zero, so dW = 0."""
    factors = {}
    for name, (a, b) in genotype.factors.items():
        noise = 2 * torch.rand(a.shape, generator=rng) - 1
        factors[name] = ((noise / math.sqrt(a.shape[1])).to(a.dtype), torch.zeros(b.shape, dtype=b.dtype))
    return Genotype(factors, genotype.alpha)


def layer_norms(genotype: Genotype) -> dict[str, float]:
    """|dW| (Frobenius) of each module."""
    return {name: math.sqrt(square) for name, (_, square) in _squares(genotype, genotype).items()}


def norm(genotype: Genotype) -> float:
    """|dW| (Frobenius) over all modules together; 0 for a founder, whose B is zero."""
    return math.sqrt(sum(value**2 for value in layer_norms(genotype).values()))


def pairwise_distances(genotypes: Sequence[Genotype]) -> list[list[float]]:
    """The symmetric (n, n) matrix of |dW_one - dW_other| (Frobenius) over all modules, in one pass over the factors.

    Raises ValueError when the genotypes do not have the same modules and rank.
    """
    n, r = len(genotypes), genotypes[0].rank
    if any(other.factors.keys() != genotypes[0].factors.keys() or other.rank != r for other in genotypes):
        raise ValueError("the genotypes do not adapt the same modules at the same rank")
    products = torch.zeros(n, n, dtype=torch.float64)
    for name in genotypes[0].names:
        gram_a = gram_of_rows([genotype.factors[name][0] for genotype in genotypes])
        gram_b = gram_of_rows([genotype.factors[name][1].T for genotype in genotypes])
        products += (gram_a * gram_b).view(n, r, n, r).sum(dim=(1, 3)).cpu()
    scales = torch.tensor([genotype.scale for genotype in genotypes], dtype=torch.float64)
    products *= scales[:, None] * scales[None, :]
    squares = products.diagonal()
    gaps = (squares[:, None] + squares[None, :] - products - products.T).clamp(min=0).sqrt()
    return gaps.fill_diagonal_(0.0).tolist()


def relative_change(child: Genotype, parent: Genotype) -> RelativeChange:
    """The distance of a child from its (first) parent, relative to the parent's size, overall and per module.

    Where the parent's dW is zero the ratio is undefined; it is then 0 if the child's is zero too, and otherwise 1, so
    that the number stays finite in journals and plots. Source: method section 7.
    """
    return change_of(_squares(child, parent))


def change_of(squares: Squares) -> RelativeChange:
    """The relative change from its squares; a constant factor of all of them cancels."""
    per_layer = {name: _ratio(gap, base) for name, (gap, base) in squares.items()}
    gaps, bases = zip(*squares.values(), strict=True)
    return RelativeChange(_ratio(sum(gaps), sum(bases)), per_layer)


def gram_of_rows(parts: Sequence[Tensor]) -> Tensor:
    """The Gram matrix (k, k) in float64 of the k rows of all ``parts`` (r_i, n) together.

    It is computed in blocks of columns, so that the float64 copy stays in the processor's cache.
    """
    num_rows, num_columns = sum(part.shape[0] for part in parts), parts[0].shape[1]
    block = min(num_columns, 2048)
    wide = torch.empty(num_rows, block, dtype=torch.float64, device=parts[0].device)
    gram = torch.zeros(num_rows, num_rows, dtype=torch.float64, device=parts[0].device)
    for start in range(0, num_columns, block):
        piece, row = wide[:, : min(block, num_columns - start)], 0
        for part in parts:
            piece[row : row + part.shape[0]] = part[:, start : start + block]
            row += part.shape[0]
        gram += piece @ piece.T
    return gram


def _squares(one: Genotype, other: Genotype) -> Squares:
    """|dW_one - dW_other|^2 (never below 0) and |dW_other|^2 of each module.

    Raises ValueError when the two do not have the same modules. Source: ours (the trace identity in the file's head).
    """
    if one.factors.keys() != other.factors.keys():
        raise ValueError("the genotypes do not adapt the same modules")
    r, squares = one.rank, {}
    for name, (a1, b1) in one.factors.items():
        a2, b2 = other.factors[name]
        products = gram_of_rows([a1, a2]) * gram_of_rows([b1.T, b2.T])
        own, others, crossed = products[:r, :r].sum(), products[r:, r:].sum(), products[:r, r:].sum()
        base = float(others) * other.scale**2
        gap = float(own) * one.scale**2 + base - 2 * float(crossed) * one.scale * other.scale
        squares[name] = (max(0.0, gap), max(0.0, base))
    return squares


def _ratio(gap_square: float, base_square: float) -> float:
    """sqrt(gap / base); for a base of 0, 0 if the gap is 0 too and otherwise 1."""
    if base_square <= 0.0:
        return 0.0 if gap_square <= 0.0 else 1.0
    return math.sqrt(gap_square / base_square)
