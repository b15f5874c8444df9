"""The interface of a variation operator, shared by mutation and crossover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from redqueen.adapters.genotype import Genotype, Squares


@dataclass(frozen=True)
class Breeding:
    """What every operator is given: the parents with their fitness, the fitter or first one first; dice."""

    parents: Sequence[Genotype]
    fitness: Sequence[float]
    rng: torch.Generator


@dataclass(frozen=True)
class Variation:
    """A child and the constants that made it, those that were drawn among them (for the lineage).

    ``squares``: of each module |dW_child - dW_1|^2 and |dW_1|^2, alpha / rank aside, dW_1 the first parent's, where the
    operator knows them from its small matrices; else empty.
    """

    genotype: Genotype
    constants: dict[str, float]
    squares: Squares = field(default_factory=dict)


Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
"""Ranges of an operator's constants: its dataclass, one of pydantic's, checks them."""


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raise ValueError unless low <= value <= high; NaN is never within."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value} and must be in [{low:g}, {high:g}]")


def uniform(rng: torch.Generator, low: float, high: float) -> float:
    """One number from U[low, high)."""
    return low + (high - low) * float(torch.rand((), generator=rng, dtype=torch.float64))


def normal_like(part: Tensor, rng: torch.Generator) -> Tensor:
    """Standard normal noise in the shape and dtype of ``part``."""
    return torch.randn(part.shape, generator=rng, dtype=part.dtype)
