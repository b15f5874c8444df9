"""The singular value decomposition of dW = B A from its factors, batched over layers; no dense dW.

QR of both factors, then the SVD of the small product of the two triangles: dW = Q_B (R_B R_A^T) Q_A^T. The balanced
writing B = U sqrt(S), A = sqrt(S) V^T with fixed signs is the same for every writing (B R, R^-1 A) of one adapter, so
noise that acts on it depends on dW alone. (Where singular values are equal the directions among them are free, and
so is the noise on them.) The scale alpha / rank is left out: every operator is homogeneous in dW. Ground: method 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.population.genotype import Factors

DEAD_FRAC = 1e-5
"""Singular values below this share of the layer's largest are rounding, not adaptation: they are set to 0."""


@dataclass(frozen=True)
class Spectrum:
    """dW = U diag(S) V^T of L layers with U = q_out u and V^T = vh q_in^T, kept apart because u and vh are small.

    q_out (L, out, m) and q_in (L, in, n) have orthonormal columns; u (L, m, r), s (L, r) descending, vh (L, r, n).
    """

    q_out: Tensor
    u: Tensor
    s: Tensor
    vh: Tensor
    q_in: Tensor

    @property
    def left(self) -> Tensor:
        """U, (L, out, r)."""
        return self.q_out @ self.u

    @property
    def right(self) -> Tensor:
        """V^T, (L, r, in)."""
        return self.vh @ self.q_in.mT


@dataclass(frozen=True)
class JointCores:
    """Two adapters in one pair of bases: dW_i = q_out core_i q_in^T.

    ``q_out`` (L, out, m) and ``q_in`` (L, in, n) are orthonormal; each core is (L, m, n) with m, n <= 2 r.
    """

    q_out: Tensor
    cores: tuple[Tensor, Tensor]
    q_in: Tensor


def spectrum(a: Tensor, b: Tensor, rank: int) -> Spectrum:
    """The best rank-``rank`` part of B A (Eckart and Young) for a (L, k, in) and b (L, out, k), signs fixed.

    Where B A has fewer than ``rank`` live components, the rest of U, S and V is zero.
    """
    q_out, r_out = torch.linalg.qr(b)
    q_in, r_in = torch.linalg.qr(a.mT)
    return _from_core(q_out, r_out @ r_in.mT, q_in, rank)


def balanced(parts: Spectrum) -> Factors:
    """The balanced writing: A = sqrt(S) V^T (L, r, in), B = U sqrt(S) (L, out, r)."""
    root = parts.s.sqrt()
    return (root[:, :, None] * parts.vh) @ parts.q_in.mT, parts.q_out @ (parts.u * root[:, None, :])


def truncated(a: Tensor, b: Tensor, rank: int) -> Factors:
    """Wide factors, a (L, k, in) and b (L, out, k), cut to ``rank`` and balanced."""
    return balanced(spectrum(a, b, rank))


def joint_cores(one: Factors, other: Factors) -> JointCores:
    """Both adapters in the joint singular bases of the pair.

    The bases are the eigenvectors of dW_1 dW_1^T + dW_2 dW_2^T and of dW_1^T dW_1 + dW_2^T dW_2: they depend on the two
    dW alone up to the sign of each vector, and a flipped sign flips the same entries of both cores. Ground: ours.
    """
    rank = one[0].shape[1]
    q_out, r_out = torch.linalg.qr(torch.cat([one[1], other[1]], dim=2))
    q_in, r_in = torch.linalg.qr(torch.cat([one[0], other[0]], dim=1).mT)
    first = (r_out[:, :, :rank] @ r_in[:, :, :rank].mT).double()
    second = (r_out[:, :, rank:] @ r_in[:, :, rank:].mT).double()
    left = torch.linalg.eigh(first @ first.mT + second @ second.mT).eigenvectors.flip(-1)
    right = torch.linalg.eigh(first.mT @ first + second.mT @ second).eigenvectors.flip(-1)
    cores = (left.mT @ first @ right, left.mT @ second @ right)
    return JointCores(q_out @ left.to(q_out.dtype), cores, q_in @ right.to(q_in.dtype))


def from_core(joint: JointCores, core: Tensor, rank: int) -> Factors:
    """The balanced rank-``rank`` writing of q_out core q_in^T for a core (L, m, n)."""
    return balanced(_from_core(joint.q_out, core, joint.q_in, rank))


def revived(a: Tensor, b: Tensor, rng: torch.Generator) -> Factors:
    """Give every dead component a fresh row of A, dW unchanged.

    A component whose row of A and column of B are both zero has zero gradients for ever. Its row is drawn as a new LoRA
    adapter draws it, uniform in +-1 / sqrt(in), and B's column stays zero. Ground: ours, against method section 7's
    fault of dead components.
    """
    dead = (torch.linalg.vector_norm(a, torch.inf, dim=2) == 0) & (torch.linalg.vector_norm(b, torch.inf, dim=1) == 0)
    if not bool(dead.any()):
        return a, b
    bound = 1 / math.sqrt(a.shape[2])
    fresh = (2 * torch.rand((int(dead.sum()), a.shape[2]), generator=rng, dtype=a.dtype) - 1) * bound
    a = a.clone()
    a[dead] = fresh
    return a, b


def _from_core(q_out: Tensor, core: Tensor, q_in: Tensor, rank: int) -> Spectrum:
    """The rank-``rank`` SVD of q_out core q_in^T, padded with zeros and with its signs fixed."""
    u, s, vh = torch.linalg.svd(core.double(), full_matrices=False)
    keep = min(rank, s.shape[1])
    u, s, vh = u[:, :, :keep], s[:, :keep], vh[:, :keep]
    alive = s > DEAD_FRAC * s[:, :1]
    sign = alive * _signs(q_out, u)
    u, s, vh = u * sign[:, None, :], s * alive, vh * sign[:, :, None]
    pad = torch.nn.functional.pad
    return Spectrum(
        q_out,
        pad(u, (0, rank - keep)).to(q_out.dtype),
        pad(s, (0, rank - keep)).to(q_out.dtype),
        pad(vh, (0, 0, 0, rank - keep)).to(q_in.dtype),
        q_in,
    )


def _signs(q_out: Tensor, u: Tensor) -> Tensor:
    """+1 or -1 for each column of q_out u (L, r), so that its product with a fixed irregular vector becomes positive.

    Irregular (multiples of the golden ratio modulo 1, plus 0.5), because a plain sum is 0 for columns like (1, -1).
    """
    index = torch.arange(q_out.shape[1], dtype=torch.float64)
    weights = (0.5 + (index * 0.6180339887498949) % 1.0).to(q_out.dtype)
    return torch.where(((weights @ q_out).unsqueeze(1).double() @ u).squeeze(1) < 0, -1.0, 1.0).double()
