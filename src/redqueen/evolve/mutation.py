"""Mutation: a child from one parent. M1 to M6.

Noise acts on the balanced factors U sqrt(S), sqrt(S) V^T with fixed signs, so the child depends on dW alone. M1 and M6
are defined on singular components. At strength zero the dW of every mutated child is its parent's.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from redqueen.adapters.genotype import Factors, Genotype
from redqueen.evolve.spectrum import Names, balanced, map_stacks, revived, spectrum
from redqueen.evolve.variation import Breeding, NotNegative, Share, Variation, normal_like


@dataclass(frozen=True)
class SpectralConstants:
    """M1. ``mutation_std`` in [0, 2]: log singular values and, in radians, singular vectors move by about this much."""

    mutation_std: Annotated[float, Field(ge=0, le=2)] = 0.1


@dataclass(frozen=True)
class LayerNoiseConstants:
    """M2. ``layer_frac`` in [0, 1] of the modules get noise of ``mutation_std`` times each factor's own std."""

    layer_frac: Share = 0.33
    mutation_std: NotNegative = 0.1


@dataclass(frozen=True)
class MaskConstants:
    """M3. ``mask_frac`` in [0, 1] of the components are zeroed."""

    mask_frac: Share = 0.3


@dataclass(frozen=True)
class NoiseConstants:
    """M4, M5. Noise of ``mutation_std`` times a factor's own standard deviation."""

    mutation_std: NotNegative = 0.15


@dataclass(frozen=True)
class RedrawConstants:
    """M6. ``redraw_frac`` in [0, 1] of the components, the weakest, get fresh random directions."""

    redraw_frac: Share = 0.25


def spectral(breeding: Breeding, constants: SpectralConstants) -> Variation:
    """M1: S_i <- S_i exp(e z_i), and a small random Cayley rotation for the live columns of U, another for those of V.

    The rotation is (I - e K / 2)^-1 (I + e K / 2), K random and skew-symmetric with columns of length about 1: each
    singular vector turns by about e. The spans of B and A stay. Source: paper (name), ours (K's scale).
    """

    def change(names: Names, stacked: list[Factors]) -> Factors:
        spec = spectrum(stacked[0])
        scaled = spec.s * torch.exp(constants.mutation_std * normal_like(spec.s, breeding.rng))
        turn_u, turn_v = (_cayley(spec.s, constants.mutation_std, breeding.rng) for _ in range(2))
        return revived(*balanced(replace(spec, u=spec.u @ turn_u, s=scaled, v=spec.v @ turn_v)), breeding.rng)

    return Variation(map_stacks(breeding.parents, change), asdict(constants))


def layer_noise(breeding: Breeding, constants: LayerNoiseConstants) -> Variation:
    """M2: in a random third of the modules, factor += e std(factor) z; the others are the parent's. Source: paper."""
    names = breeding.parents[0].names
    num_chosen = math.ceil(constants.layer_frac * len(names) - 1e-9)
    order = torch.randperm(len(names), generator=breeding.rng)[:num_chosen].tolist()
    chosen = {names[i] for i in order}
    child = _noisy(breeding, constants.mutation_std, chosen)
    return Variation(child, {**asdict(constants), "num_modules": float(num_chosen)})


def full_noise(breeding: Breeding, constants: NoiseConstants) -> Variation:
    """M4: every factor += e std(factor) z. Source: paper."""
    return Variation(_noisy(breeding, constants.mutation_std, None), asdict(constants))


def input_noise(breeding: Breeding, constants: NoiseConstants) -> Variation:
    """M5: A += e std(A) sqrt(3) w with w ~ U(-1, 1), B untouched: NEFTune's uniform noise, moved from embeddings to A.

    sqrt(3) gives the noise the standard deviation e std(A). Source: paper (name), ours (scale).
    """

    def change(names: Names, stacked: list[Factors]) -> Factors:
        a, b = balanced(spectrum(stacked[0]))
        noise = 2 * torch.rand(a.shape, generator=breeding.rng, dtype=a.dtype) - 1
        return revived(a + constants.mutation_std * math.sqrt(3) * _std(a) * noise, b, breeding.rng)

    return Variation(map_stacks(breeding.parents, change), asdict(constants))


def mask_components(breeding: Breeding, constants: MaskConstants) -> Variation:
    """M3: remove ceil(rho r) random components of dW, drawn anew for each module. Source: paper; keeping A's row: ours.

    Only B's column is zeroed: if A's row were zero too, neither would have a gradient again.
    """
    num_masked = math.ceil(constants.mask_frac * breeding.parents[0].rank - 1e-9)

    def change(names: Names, stacked: list[Factors]) -> Factors:
        a, b = balanced(spectrum(stacked[0]))
        order = torch.rand(b.shape[0], b.shape[2], generator=breeding.rng).argsort(dim=1)
        kept = torch.ones(b.shape[0], b.shape[2], dtype=b.dtype).scatter(1, order[:, :num_masked], 0.0)
        return revived(a, b * kept[:, None, :], breeding.rng)

    return Variation(map_stacks(breeding.parents, change), {**asdict(constants), "num_components": float(num_masked)})


def redraw_weakest(breeding: Breeding, constants: RedrawConstants) -> Variation:
    """M6: the weakest ceil(rho r) live components keep their singular values and get fresh random unit directions.

    Unlike M1 and M3 it explores outside the parent's subspaces. If no more components are live, all are redrawn.
    Source: ours; the paper names a rank perturbation, but its definition is not known.
    """
    num_redrawn = math.ceil(constants.redraw_frac * breeding.parents[0].rank - 1e-9)

    def change(names: Names, stacked: list[Factors]) -> Factors:
        spec = spectrum(stacked[0])
        a, b = balanced(spec)
        new_a, new_b = normal_like(a[:, :num_redrawn], breeding.rng), normal_like(b[:, :, :num_redrawn], breeding.rng)
        # The weakest live ones: redrawing a dead component would change nothing.
        first = ((spec.s > 0).sum(dim=1, keepdim=True) - num_redrawn).clamp(min=0)
        where = first + torch.arange(num_redrawn)
        root = spec.s.gather(1, where).sqrt().to(a.dtype)
        new_a = new_a * (root / new_a.norm(dim=2))[:, :, None]
        new_b = new_b * (root / new_b.norm(dim=1))[:, None, :]
        a = a.scatter(1, where[:, :, None].expand_as(new_a), new_a)
        return revived(a, b.scatter(2, where[:, None, :].expand_as(new_b), new_b), breeding.rng)

    return Variation(map_stacks(breeding.parents, change), {**asdict(constants), "num_components": float(num_redrawn)})


def _noisy(breeding: Breeding, mutation_std: float, only: set[str] | None) -> Genotype:
    """Gaussian noise on both factors of the chosen modules (None: all), relative to each factor's own std."""

    def change(names: Names, stacked: list[Factors]) -> Factors:
        a, b = balanced(spectrum(stacked[0]))
        noisy_a = a + mutation_std * _std(a) * normal_like(a, breeding.rng)
        return revived(noisy_a, b + mutation_std * _std(b) * normal_like(b, breeding.rng), breeding.rng)

    return map_stacks(breeding.parents, change, only)


def _std(part: Tensor) -> Tensor:
    """The standard deviation of each layer's factor, (L, 1, 1)."""
    flat = part.flatten(1)
    mean_square = torch.linalg.vector_norm(flat, dim=1).square() / flat.shape[1]
    return (mean_square - flat.mean(dim=1).square()).clamp(min=0).sqrt()[:, None, None]


def _cayley(s: Tensor, mutation_std: float, rng: torch.Generator) -> Tensor:
    """Random rotations (L, r, r) close to the identity that leave the dead components (s = 0) where they are."""
    alive = (s > 0).to(s.dtype)
    noise = torch.randn((*s.shape, s.shape[1]), generator=rng, dtype=s.dtype)
    skew = (noise - noise.mT) * alive[:, :, None] * alive[:, None, :]
    skew = skew / (2 * alive.sum(dim=1).clamp(min=1)).sqrt()[:, None, None]
    eye = torch.eye(s.shape[1], dtype=s.dtype)
    return torch.linalg.solve(eye - mutation_std / 2 * skew, eye + mutation_std / 2 * skew)
