"""Crossover entry by entry: X1 DARE, X6 TIES, X7 DELLA, X9 Fisher.

The literature's rules look at single entries. A dense dW of a 7B layer has too many, and those of A and B change with
the writing, so the entries are coordinates that dW itself defines: for X1 those of dW in its own output
directions (U^T dW, r x in), for X6, X7 and X9 those of both parents in the joint singular bases of the pair (cores of
at most 2r x 2r).
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from redqueen.evolve.crossover import merged
from redqueen.evolve.layers import Names, map_stacks
from redqueen.evolve.spectrum import Joint, Outputs, balanced, cut, output_bases, revived, squares_beside, with_rows
from redqueen.evolve.variation import Breeding, Share, Variation, check_range
from redqueen.population.genotype import Factors, Squares


@dataclass(frozen=True)
class DareConstants:
    """X1. ``drop_frac`` in [0, 0.99] of the entries fall; ``share_frac`` in [0, 1] is parent 2's weight."""

    drop_frac: Annotated[float, Field(ge=0, le=0.99)] = 0.7
    share_frac: Share = 0.5


@dataclass(frozen=True)
class TiesConstants:
    """X6. ``keep_frac`` in [0.001, 1] of the entries, the largest, survive; ``share_frac``: as in X1."""

    keep_frac: Annotated[float, Field(ge=0.001, le=1)] = 0.2
    share_frac: Share = 0.5


@dataclass(frozen=True)
class DellaConstants:
    """X7. Entries fall with ``drop_frac`` -+ ``spread_frac`` / 2, the largest least; ``share_frac``: as in X1."""

    drop_frac: float = 0.5
    spread_frac: Share = 0.4
    share_frac: Share = 0.5

    def __post_init__(self) -> None:
        check_range("drop_frac", self.drop_frac, self.spread_frac / 2, 0.99 - self.spread_frac / 2)


@dataclass(frozen=True)
class FisherConstants:
    """X9. ``share_frac`` in [0, 1]: parent 2's weight."""

    share_frac: Share = 0.5


def dare(breeding: Breeding, constants: DareConstants) -> Variation:
    """X1: drop each parent's entries with probability p, rescale the rest by 1 / (1 - p), take the weighted mean.

    Before the cut back to rank r the expected child is the mean of the parents. Ground: paper (rule, p), Yu et al.
    (2024) (drop and rescale), re-implementations (mean, not sum), ours (the coordinates).
    """

    squares: Squares = {}

    def change(names: Names, stacked: list[Factors]) -> Factors:
        rank = stacked[0][0].shape[1]
        outputs = output_bases(stacked)
        wide = dare_wide(outputs, breeding.rng, constants)
        child, core = cut(wide, wide.cores[0] + wide.cores[1], rank)
        squares.update(zip(names, squares_beside(outputs, wide, core), strict=True))
        return revived(*balanced(child), breeding.rng)

    return Variation(map_stacks(breeding.parents, change), asdict(constants), squares)


def dare_wide(outputs: Outputs, rng: torch.Generator, constants: DareConstants) -> Joint:
    """X1 before the cut: the parents, weighted, dropped and rescaled; their sum is the child."""
    new_rows = []
    for (a, _), turn, weight in zip(
        outputs.parts, outputs.turns, (1 - constants.share_frac, constants.share_frac), strict=True
    ):
        coordinates = (weight / _kept_frac(constants.drop_frac) * turn).to(a.dtype) @ a
        new_rows.append(coordinates.masked_fill_(_fallen(a.shape, constants.drop_frac, rng), 0.0))
    return with_rows(outputs, new_rows)


def ties(breeding: Breeding, constants: TiesConstants) -> Variation:
    """X6: trim each parent to its largest entries, elect each entry's sign, mean of those that agree.

    Ground: paper (name), Yadav et al. (2023) (rule and keep 20 %), ours (the coordinates).
    """

    def merge(one: Tensor, other: Tensor) -> Tensor:
        keep = constants.keep_frac
        return _elected_mean(_trimmed(one, keep), _trimmed(other, keep), constants.share_frac)

    return merged(breeding, merge, asdict(constants), singular_bases=True)


def della(breeding: Breeding, constants: DellaConstants) -> Variation:
    """X7: drop entries at random, small ones more often; rescale each by its own 1 / (1 - p_i); then X6's election.

    p_i falls linearly with the magnitude's rank in its row from p + spread / 2 to p - spread / 2.
    Ground: paper (name), Deep et al. (2024) (rule), ours (numbers, coordinates).
    """
    low, high = constants.drop_frac - constants.spread_frac / 2, constants.drop_frac + constants.spread_frac / 2

    def merge(one: Tensor, other: Tensor) -> Tensor:
        first, second = (_dropped(part, _drop_by_rank(part, low, high), breeding.rng) for part in (one, other))
        return _elected_mean(first, second, constants.share_frac)

    return merged(breeding, merge, asdict(constants), singular_bases=True)


def fisher(breeding: Breeding, constants: FisherConstants) -> Variation:
    """X9: the mean weighted entry by entry with an importance, here the squared entry: sum w x^3 / sum w x^2.

    A diagonal Fisher needs gradients on data and a breeding has none; an entry that training moved far stands for one
    that mattered. Ground: paper (name), Matena and Raffel (2022) (weighted mean), ours (the importance).
    """

    def merge(one: Tensor, other: Tensor) -> Tensor:
        weight_one, weight_other = (1 - constants.share_frac) * one**2, constants.share_frac * other**2
        total = weight_one + weight_other
        return torch.where(total > 0, (weight_one * one + weight_other * other) / total, torch.zeros_like(one))

    return merged(breeding, merge, asdict(constants), singular_bases=True)


_STEPS = 1 << 16
"""One 16-bit number decides over an entry: cheaper to draw than a float, and exact to 1e-5."""


def _kept_frac(drop_frac: float) -> float:
    """The probability, a multiple of 1 / 65536, that ``_fallen`` leaves an entry standing."""
    return 1 - round(drop_frac * _STEPS) / _STEPS


def _fallen(shape: torch.Size, drop_frac: float, rng: torch.Generator) -> Tensor:
    """Which entries fall, each with ``drop_frac`` on its own: bool."""
    size = shape.numel()
    words = torch.empty(-(-size // 4), dtype=torch.int64).random_(-(1 << 63), None, generator=rng)
    return words.view(torch.int16)[:size].view(shape) < round(drop_frac * _STEPS) - _STEPS // 2


def _dropped(part: Tensor, drop_fracs: Tensor, rng: torch.Generator) -> Tensor:
    """Zero entries, each with its own probability, and rescale the others to match."""
    kept = (torch.rand(part.shape, generator=rng) >= drop_fracs).to(part.dtype)
    return part * kept.div_(1 - drop_fracs)


def _trimmed(part: Tensor, keep_frac: float) -> Tensor:
    """Each layer's largest ceil(keep_frac m n) entries by magnitude; the rest zero."""
    flat = part.abs().flatten(1)
    num_small = flat.shape[1] - math.ceil(keep_frac * flat.shape[1] - 1e-9)
    if num_small == 0:
        return part
    threshold = flat.kthvalue(num_small, dim=1).values
    return part * (part.abs() > threshold[:, None, None])


def _drop_by_rank(part: Tensor, low: float, high: float) -> Tensor:
    """Drop probabilities from ``high`` for a row's smallest magnitude to ``low`` for its largest."""
    ranks = part.abs().argsort(dim=2).argsort(dim=2)
    return high - (high - low) * ranks / max(1, part.shape[2] - 1)


def _elected_mean(one: Tensor, other: Tensor, share_frac: float) -> Tensor:
    """TIES' last two steps: the sign of the weighted sum wins, and the weighted mean is over entries that have it.

    An entry that one parent has dropped does not count, so what only one parent has keeps its full size.
    """
    weighted = (1 - share_frac) * one, share_frac * other
    sign = torch.sign(weighted[0] + weighted[1])
    total, mass = torch.zeros_like(one), torch.zeros_like(one)
    for part, weight in zip(weighted, (1 - share_frac, share_frac), strict=True):
        agrees = (part * sign > 0).to(one.dtype)
        total += part * agrees
        mass += weight * agrees
    return torch.where(mass > 0, total / mass, torch.zeros_like(total))
