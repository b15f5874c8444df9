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
    """The input of every operator: parents (selection puts the fitter one first), their fitness, a random generator."""

    parents: Sequence[Genotype]
    fitness: Sequence[float]
    rng: torch.Generator


@dataclass(frozen=True)
class Variation:
    """A child and the constants that made it, including those that were drawn (for the lineage).

    ``squares``: |dW_child - dW_1|^2 and |dW_1|^2 of each module, without alpha / rank; dW_1 is the first parent's.
    Empty unless the operator can compute them cheaply from its small matrices.
    """

    genotype: Genotype
    constants: dict[str, float]
    squares: Squares = field(default_factory=dict)


Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
"""Ranges of an operator's constants; the operator's pydantic dataclass checks them."""


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raise ValueError unless low <= value <= high; NaN raises too."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value} and must be in [{low:g}, {high:g}]")


def uniform(rng: torch.Generator, low: float, high: float) -> float:
    """One number from U[low, high)."""
    return low + (high - low) * float(torch.rand((), generator=rng, dtype=torch.float64))


def normal_like(part: Tensor, rng: torch.Generator) -> Tensor:
    """Standard normal noise in the shape and dtype of ``part``."""
    return torch.randn(part.shape, generator=rng, dtype=part.dtype)
