"""Genes beside weights: factors on the learning rate and the temperature, inherited and mutated.

So a population can tune itself while it runs. A founder's factor is g^z with z standard normal; a child has its first
parent's, times g or 1/g by a fair coin, for each enabled gene by itself. Ground: population-based training (Jaderberg
et al. 2017); which genes, and g, are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from redqueen.nouns import Genes

SMALLEST, LARGEST = 0.1, 10.0
"""Bounds of a factor: what drifts further is no tuning (ours)."""


def founder_genes(enabled: Sequence[str], factor: float, rng: np.random.Generator) -> Genes:
    """Return a founder's genes; those that are not enabled are 1."""
    return replace(Genes(), **{name: _bounded(factor ** float(rng.normal())) for name in enabled})


def mutated(genes: Genes, enabled: Sequence[str], factor: float, rng: np.random.Generator) -> Genes:
    """Return a child's genes."""
    steps = {name: factor if rng.random() < 0.5 else 1.0 / factor for name in enabled}
    return replace(genes, **{name: _bounded(getattr(genes, name) * step) for name, step in steps.items()})


def _bounded(value: float) -> float:
    return min(LARGEST, max(SMALLEST, value))
