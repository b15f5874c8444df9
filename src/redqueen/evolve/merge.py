"""Merging: the mean of several adapters in delta space, what only a population has.

Students of one run are several draws of noise around one direction, and a mean takes the noise out. It is that of dW:
the factors of all are stacked, [B1 .. Bn] [A1; ..; An] / n, which is exact at rank n r, and cut back to rank r by
singular value decomposition in common bases. It depends on the adapters alone and not on how they are written.
Ground: WARP (Rame et al. 2024) merges policies so; the cut is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from redqueen.evolve.spectrum import Names, balanced, cut, joint, map_stacks, revived
from redqueen.population.genotype import Factors, Genotype, clone, on_cpu, same_shape

MERGED = "merged"
"""The name of the students' mean, as a candidate for the run's product."""


def mean_of(genotypes: Sequence[Genotype]) -> Genotype:
    """Return the mean dW of one or more adapters, cut to their rank; of one its copy.

    Raises ValueError unless all have the same modules, rank and alpha.
    """
    if not genotypes or not all(same_shape(genotypes[0], other) for other in genotypes[1:]):
        raise ValueError("a mean needs adapters of the same modules, shapes, rank and alpha")
    if len(genotypes) == 1:
        return clone(genotypes[0])
    rng = torch.Generator().manual_seed(0)  # for the rows of dead components, which leave dW as it is

    def change(names: Names, stacked: list[Factors]) -> Factors:
        bases = joint(stacked)
        core = torch.stack(bases.cores).mean(dim=0)
        return revived(*balanced(cut(bases, core, stacked[0][0].shape[1])[0]), rng)

    with torch.no_grad():
        return map_stacks([on_cpu(genotype) for genotype in genotypes], change)
