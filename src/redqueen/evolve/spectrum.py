"""The singular value decomposition of dW from its factors, batched over layers; no dense dW, no tall QR.

Thin QR of the factors, [B1 B2] = Q_out T_out and [A1; A2]^T = Q_in T_in, turns each dW_i = B_i A_i into a small core
Q_out^T dW_i Q_in. T_out and T_in come from float64 Gram matrices, and the tall Q are never formed. The small matrices
(cores, singular vectors in coordinates) are computed in float64, and one product with the factors makes the child.
Householder QR gives the same up to rounding and took 2.5 times as long on tall, thin factors.

The balanced factorisation B = U sqrt(S), A = sqrt(S) V^T with fixed signs is the same for every factorisation (B R,
R^-1 A) of one adapter, so noise on it depends on dW alone. (Equal singular values leave their directions free, and
so the noise on them.) The scale alpha / rank is left out: every operator is homogeneous in dW.
Source: method (SVD through QR, balanced split), ours (Gram matrices, signs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from redqueen.adapters.genotype import Factors, Genotype, clone, gram_of_rows, on_cpu, same_shape

MAX_STACK_NUMEL = 4_000_000
"""Maximum entries of the larger factor in one stack. Changing it changes the order of random draws."""

Names = tuple[str, ...]


def stacks(parents: Sequence[Genotype], only: Collection[str] | None = None) -> Iterator[tuple[Names, list[Factors]]]:
    """Yield stacks of modules of one shape: their L names and, for each parent, ``(A (L, r, in), B (L, out, r))``.

    Half-precision factors are converted to float32; float64 stays. ``only`` restricts the stacks to some modules.
    """
    by_shape: dict[tuple[torch.Size, torch.Size], list[str]] = {}
    for name, (a, b) in parents[0].factors.items():
        if only is None or name in only:
            by_shape.setdefault((a.shape, b.shape), []).append(name)
    for (shape_a, shape_b), names in by_shape.items():
        count = max(1, MAX_STACK_NUMEL // max(shape_a.numel(), shape_b.numel()))
        for start in range(0, len(names), count):
            chunk = tuple(names[start : start + count])
            yield chunk, [_stacked(parent, chunk) for parent in parents]


def map_stacks(
    parents: Sequence[Genotype], change: Callable[[Names, list[Factors]], Factors], only: Collection[str] | None = None
) -> Genotype:
    """Make the child whose stacks are ``change(names, the parents' stacks)``; modules outside ``only`` copy parent 0.

    The child has parent 0's dtype, module order and alpha, and shares no memory with another genotype.
    """
    first = parents[0]
    child: dict[str, Factors] = {}
    for names, stacked in stacks(parents, only):
        a, b = change(names, stacked)
        for i, name in enumerate(names):
            dtype_a, dtype_b = (part.dtype for part in first.factors[name])
            child[name] = (a[i].to(dtype_a, copy=True), b[i].to(dtype_b, copy=True))
    for name, (a, b) in first.factors.items():
        if name not in child:
            child[name] = (a.detach().clone(), b.detach().clone())
    return Genotype({name: child[name] for name in first.names}, first.alpha)


def _stacked(genotype: Genotype, names: Names) -> Factors:
    """The named modules of one genotype as ``(A (L, r, in), B (L, out, r))``, at least in float32."""
    pairs = [genotype.factors[name] for name in names]
    return _wide(torch.stack([a.detach() for a, _ in pairs])), _wide(torch.stack([b.detach() for _, b in pairs]))


def _wide(stack: Tensor) -> Tensor:
    return stack if stack.dtype == torch.float64 else stack.float()


DEAD_FRAC = 1e-5
"""Singular values below this share of the layer's largest are rounding errors: they are set to 0."""

_RANK_TOLERANCE = 1e-12
"""Squared singular values of the scaled factors below this share of the largest count as linear dependence."""


@dataclass(frozen=True)
class Joint:
    """One or more adapters of L layers in one pair of orthonormal bases: dW_i = Q_out core_i Q_in^T.

    ``parts`` are the factors (A (L, r, in), B (L, out, r)), k columns in all. Q_out = [B1 B2] mix_out with mix_out
    (L, k, m), and Q_in = [A1; A2]^T mix_in with mix_in (L, k, m); each core is (L, m, m). Small tensors are float64;
    where factors are linearly dependent the surplus basis vectors are zero.
    """

    parts: tuple[Factors, ...]
    mix_out: Tensor
    mix_in: Tensor
    cores: tuple[Tensor, ...]


@dataclass(frozen=True)
class Spectrum:
    """dW = U diag(s) V^T of L layers, with U = [B1 B2] u and V = [A1; A2]^T v in coordinates of the factors.

    u and v (L, k, r) and s (L, r), descending and >= 0, are float64. Dead components have s, u and v zero.
    """

    parts: tuple[Factors, ...]
    u: Tensor
    s: Tensor
    v: Tensor


def joint(parts: Sequence[Factors]) -> Joint:
    """Put adapters of equal shape into common bases."""
    mix_out, tri_out = _orthonormal(_grams([b.mT for _, b in parts]))
    mix_in, tri_in = _orthonormal(_grams([a for a, _ in parts]))
    rank = parts[0][0].shape[1]
    blocks = zip(tri_out.split(rank, dim=2), tri_in.split(rank, dim=2), strict=True)
    return Joint(tuple(parts), mix_out, mix_in, tuple(t_out @ t_in.mT for t_out, t_in in blocks))


def squares_of(core: Tensor, parent: Tensor) -> list[tuple[float, float]]:
    """|child - parent|^2 and |parent|^2 of each layer, from both cores (L, m, m) in the same orthonormal bases."""
    gaps, bases = ((part**2).sum(dim=(1, 2)).tolist() for part in (core - parent, parent))
    return list(zip(gaps, bases, strict=True))


def in_singular_bases(pair: Joint) -> Joint:
    """Write the pair in its joint singular bases, which depend on the two dW alone.

    They are the eigenvectors of dW_1 dW_1^T + dW_2 dW_2^T and of dW_1^T dW_1 + dW_2^T dW_2. A vector's sign is free,
    and flipping it flips the same entries of both cores. Source: ours.
    """
    first, second = pair.cores
    left = torch.linalg.eigh(first @ first.mT + second @ second.mT).eigenvectors.flip(-1)
    right = torch.linalg.eigh(first.mT @ first + second.mT @ second).eigenvectors.flip(-1)
    cores = (left.mT @ first @ right, left.mT @ second @ right)
    return Joint(pair.parts, pair.mix_out @ left, pair.mix_in @ right, cores)


def cut(basis: Joint, core: Tensor, rank: int) -> tuple[Spectrum, Tensor]:
    """The best rank-``rank`` approximation (Eckart and Young) of Q_out core Q_in^T for a core (L, m, m).

    Returned twice: as a decomposition with fixed signs, and as a core in the same bases.
    """
    u, s, vh = torch.linalg.svd(core)
    u, s, vh = u[:, :, :rank], s[:, :rank], vh[:, :rank]
    alive = s > DEAD_FRAC * s[:, :1]
    kept = (u * (s * alive)[:, None, :]) @ vh
    u, v = basis.mix_out @ u, basis.mix_in @ vh.mT
    sign = (alive * _signs(basis.parts, u))[:, None, :]
    u, s, v = u * sign, s * alive, v * sign
    short = rank - s.shape[1]
    pad = torch.nn.functional.pad
    return Spectrum(basis.parts, pad(u, (0, short)), pad(s, (0, short)), pad(v, (0, short))), kept


_SPARE, _ROUNDS = 16, 3
"""Extra columns (oversampling) and power iterations of the randomised decomposition."""


def cut_dense(dense: Tensor, rank: int, rng: torch.Generator) -> Factors:
    """The best rank-``rank`` approximation of one dense dW (out, in) as balanced factors (A (rank, in), B (out, rank)).

    Dead components are zero. It uses a randomised range finder with power iterations, since an exact decomposition of a
    large module takes minutes. Source: Halko, Martinsson and Tropp (2011), algorithm 4.4.
    """
    width = min(rank + _SPARE, *dense.shape)
    basis = dense @ torch.randn(dense.shape[1], width, generator=rng, dtype=dense.dtype)  # (out, width)
    for _ in range(_ROUNDS):
        basis = torch.linalg.qr(basis).Q
        basis = dense @ torch.linalg.qr(dense.mT @ basis).Q
    basis = torch.linalg.qr(basis).Q
    u, s, vh = torch.linalg.svd(basis.mT @ dense, full_matrices=False)
    root = (s * (s > DEAD_FRAC * s[:1]))[:rank].sqrt()
    a, b = root[:, None] * vh[:rank], basis @ u[:, :rank] * root
    short = rank - len(root)
    return torch.nn.functional.pad(a, (0, 0, 0, short)), torch.nn.functional.pad(b, (0, short))


def spectrum(factors: Factors) -> Spectrum:
    """The singular value decomposition of one adapter's layers."""
    basis = joint([factors])
    return cut(basis, basis.cores[0], factors[0].shape[1])[0]


def balanced(spec: Spectrum) -> Factors:
    """The balanced factors: A = sqrt(S) V^T (L, r, in), B = U sqrt(S) (L, out, r)."""
    root = spec.s.sqrt()[:, None, :]
    return rows(replace(spec, v=spec.v * root)), columns(replace(spec, u=spec.u * root))


def columns(spec: Spectrum) -> Tensor:
    """U, (L, out, r), in the factors' dtype."""
    width = spec.parts[0][1].shape[2]
    blocks = [b @ u.to(b.dtype) for (_, b), u in zip(spec.parts, spec.u.split(width, dim=1), strict=True)]
    return _sum(blocks)


def rows(spec: Spectrum) -> Tensor:
    """V^T, (L, r, in), in the factors' dtype."""
    width = spec.parts[0][0].shape[1]
    blocks = [v.mT.to(a.dtype) @ a for (a, _), v in zip(spec.parts, spec.v.split(width, dim=1), strict=True)]
    return _sum(blocks)


def _sum(blocks: list[Tensor]) -> Tensor:
    total = blocks[0]
    for block in blocks[1:]:
        total.add_(block)
    return total


def revived(a: Tensor, b: Tensor, rng: torch.Generator) -> Factors:
    """Give every dead component a fresh row of A; dW does not change.

    A component whose row of A and column of B are both zero has zero gradients at every step. Its row is drawn as in a
    new LoRA adapter, uniform in +-1 / sqrt(in), and B's column stays zero. Source: ours.
    """
    empty_rows = torch.linalg.vector_norm(a, dim=2) == 0
    if not bool(empty_rows.any()):
        return a, b
    dead = empty_rows & (torch.linalg.vector_norm(b, dim=1) == 0)
    fresh = 2 * torch.rand((int(dead.sum()), a.shape[2]), generator=rng, dtype=a.dtype) - 1
    a = a.clone()
    a[dead] = fresh / math.sqrt(a.shape[2])
    return a, b


def _grams(parts: Sequence[Tensor]) -> Tensor:
    """The Gram matrices (L, k, k) in float64 of the k rows of all ``parts`` (L, r, n)."""
    return torch.stack([gram_of_rows([part[i] for part in parts]) for i in range(parts[0].shape[0])])


def _orthonormal(gram: Tensor) -> tuple[Tensor, Tensor]:
    """``mix`` and ``tri``, both (L, k, k) in float64, of k rows X with the Gram matrices ``gram`` = X X^T.

    X^T mix has orthonormal columns (or zero ones) and X^T = (X^T mix) tri. The rows are first scaled to length one, so
    that a small row next to a large one keeps its precision, as in Householder QR.
    """
    length = gram.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
    length = torch.where(length > 0, length, 1.0)
    square, vectors = torch.linalg.eigh(gram / (length[:, :, None] * length[:, None, :]))
    kept = square > _RANK_TOLERANCE * square[:, -1:]
    size = torch.where(kept, square, 1.0).sqrt()
    mix = vectors / length[:, :, None] * (kept / size)[:, None, :]
    tri = (kept * size)[:, :, None] * vectors.mT * length[:, None, :]
    return mix, tri


def _signs(parts: Sequence[Factors], u: Tensor) -> Tensor:
    """+1 or -1 (L, r) for each column of U = [B1 B2] u, so that its product with a fixed irregular vector is positive.

    The vector (multiples of the golden ratio modulo 1, plus 0.5) is irregular because a sum is 0 for (1, -1).
    """
    index = torch.arange(parts[0][1].shape[1], dtype=torch.float64)
    weights = 0.5 + (index * 0.6180339887498949) % 1.0
    sums = torch.cat([weights.to(b.dtype) @ b for _, b in parts], dim=1).double()
    return torch.where((sums[:, None, :] @ u).squeeze(1) < 0, -1.0, 1.0).double()


MERGED = "merged"
"""The name of the students' mean as a candidate for the run's product."""


def mean_of(genotypes: Sequence[Genotype]) -> Genotype:
    """Return the mean dW of adapters, cut to their rank; for a single adapter, a copy.

    [B1 .. Bn] [A1; ..; An] / n is exact at rank n r, then cut. Source: WARP (Rame et al. 2024); the cut is ours.
    Raises ValueError unless all have the same modules, rank and alpha.
    """
    if not genotypes or not all(same_shape(genotypes[0], other) for other in genotypes[1:]):
        raise ValueError("a mean needs adapters of the same modules, shapes, rank and alpha")
    if len(genotypes) == 1:
        return clone(genotypes[0])
    rng = torch.Generator().manual_seed(0)  # for the fresh rows of dead components, which do not change dW

    def change(names: Names, stacked: list[Factors]) -> Factors:
        bases = joint(stacked)
        core = torch.stack(bases.cores).mean(dim=0)
        return revived(*balanced(cut(bases, core, stacked[0][0].shape[1])[0]), rng)

    with torch.no_grad():
        return map_stacks([on_cpu(genotype) for genotype in genotypes], change)
