"""Crossover and the controls.

X2 takes whole modules of either parent, X3 singular components of both. X4, X5, X8 and the mean combine dW: they write
both parents in common bases, combine the cores, and cut the result, of rank 2r, back to r by SVD. X1, X6, X7 and X9
work on single entries. The entries of A and B depend on the factorisation, so X1 uses the entries of dW itself, and X6,
X7 and X9 use those of both parents in the joint singular bases of the pair (cores of at most 2r x 2r).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from redqueen.adapters.genotype import Factors, Genotype, Squares, clone
from redqueen.evolve.spectrum import (
    Names,
    balanced,
    cut,
    cut_dense,
    in_singular_bases,
    joint,
    map_stacks,
    revived,
    spectrum,
    squares_of,
)
from redqueen.evolve.variation import Breeding, NotNegative, Share, Variation, check_range, uniform

Weights = tuple[float, float]


@dataclass(frozen=True)
class NoConstants:
    """An operator without constants."""


@dataclass(frozen=True)
class ShareConstants:
    """``share_frac`` in [0, 1], the share of parent 2: its chance for each module (X2), the position on the arc from
    parent 1 (0) to parent 2 (1) (X8), or its weight in the mean (X9)."""

    share_frac: Share = 0.5


@dataclass(frozen=True)
class SubspaceConstants:
    """X3. ``num_leading``: components taken from parent 1, at most r; 0 draws it from U{1..r-1}."""

    num_leading: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True)
class ExtrapolativeConstants:
    """X4. eta is drawn from U[``eta_low``, ``eta_high``]; eta = 1 gives the better parent itself."""

    eta_low: float = 1.0
    eta_high: NotNegative = 1.5

    def __post_init__(self) -> None:
        check_range("eta_low", self.eta_low, 0, self.eta_high)


@dataclass(frozen=True)
class LinearConstants:
    """X5. Parent 2's share is drawn from U[``share_low_frac``, ``share_high_frac``], within [0, 1]."""

    share_low_frac: float = 0.0
    share_high_frac: Share = 1.0

    def __post_init__(self) -> None:
        check_range("share_low_frac", self.share_low_frac, 0, self.share_high_frac)


def copy_parent(breeding: Breeding, constants: NoConstants) -> Variation:
    """Control: an exact copy of the first parent. An operator that does not beat it adds nothing to more training."""
    return Variation(clone(breeding.parents[0]), {})


def linear_half(breeding: Breeding, constants: NoConstants) -> Variation:
    """Control: (dW1 + dW2) / 2, cut to rank r. An operator that does not beat it is no better than averaging."""
    return combined(breeding, (0.5, 0.5), {"share_frac": 0.5})


def layerwise(breeding: Breeding, constants: ShareConstants) -> Variation:
    """X2: each whole module is copied from a random parent. Source: paper; a module as the unit is ours."""
    names = breeding.parents[0].names
    from_second = torch.rand(len(names), generator=breeding.rng, dtype=torch.float64) < constants.share_frac
    picked = {}
    for name, second in zip(names, from_second, strict=True):
        like, source = breeding.parents[0].factors[name], breeding.parents[int(second)].factors[name]
        picked[name] = (source[0].to(like[0].dtype), source[1].to(like[1].dtype))
    child = clone(Genotype(picked, breeding.parents[0].alpha))
    return Variation(child, {**asdict(constants), "num_from_second": float(from_second.sum())})


def svd_subspace(breeding: Breeding, constants: SubspaceConstants) -> Variation:
    """X3: singular components 1..k of parent 1, the fitter, and k+1..r of parent 2; one k for all modules.

    Each part of dW = U S V^T is factored as A = sqrt(S) V^T, B = U sqrt(S) (``balanced``), and the two are concatenated
    along r. A component that is zero gets a fresh row of A (``revived``). At rank 1: parent 1. Source: paper.
    """
    rank = breeding.parents[0].rank
    drawn = int(torch.randint(1, max(2, rank), (), generator=breeding.rng))
    k = constants.num_leading or drawn
    if not 1 <= k <= rank:
        raise ValueError(f"num_leading {k} is not in 1..{rank}")

    def change(names: Names, stacked: list[Factors]) -> Factors:
        first, second = (spectrum(factors) for factors in stacked)
        a1, b1 = balanced(replace(first, u=first.u[:, :, :k], s=first.s[:, :k], v=first.v[:, :, :k]))
        a2, b2 = balanced(replace(second, u=second.u[:, :, k:], s=second.s[:, k:], v=second.v[:, :, k:]))
        return revived(torch.cat([a1, a2], dim=1), torch.cat([b1, b2], dim=2), breeding.rng)

    return Variation(map_stacks(breeding.parents, change), {"num_leading": float(k)})


def extrapolative(breeding: Breeding, constants: ExtrapolativeConstants) -> Variation:
    """X4: worse + eta (better - worse), eta from U[1, 1.5]; at equal fitness parent 1 counts as the better.

    Source: paper, re-implementations (eta).
    """
    eta = uniform(breeding.rng, constants.eta_low, constants.eta_high)
    weights = (1 - eta, eta) if breeding.fitness[1] > breeding.fitness[0] else (eta, 1 - eta)
    return combined(breeding, weights, {"eta": eta})


def linear(breeding: Breeding, constants: LinearConstants) -> Variation:
    """X5: (1 - w) dW1 + w dW2 with w from U[0, 1], one for all modules. Source: paper (name), ours (w)."""
    share = uniform(breeding.rng, constants.share_low_frac, constants.share_high_frac)
    return combined(breeding, (1 - share, share), {"share_frac": share})


def slerp(breeding: Breeding, constants: ShareConstants) -> Variation:
    """X8: spherical interpolation, module by module. Unlike a mean, it does not shrink dissimilar parents.

    Weights: sin((1 - t) omega) / sin omega and sin(t omega) / sin omega, with omega the angle between the two dW;
    linear where a module is zero or both are parallel. Source: paper (name), Shoemake (1985) (formula), ours (t = 1/2).
    """
    return merged(breeding, lambda x, y: _on_arc(x, y, constants.share_frac), asdict(constants))


def combined(breeding: Breeding, weights: Weights, constants: dict[str, float]) -> Variation:
    """c1 dW1 + c2 dW2 cut to the parents' rank."""
    return merged(breeding, lambda x, y: weights[0] * x + weights[1] * y, constants)


def merged(
    breeding: Breeding,
    merge: Callable[[Tensor, Tensor], Tensor],
    constants: dict[str, float],
    singular_bases: bool = False,
) -> Variation:
    """Merge two parents by a rule on their cores (L, m, m), and cut the result to their rank.

    A rule that works on single entries needs ``singular_bases``; otherwise the entries depend on how a parent is
    factored.
    """
    squares: Squares = {}

    def change(names: Names, stacked: list[Factors]) -> Factors:
        pair = joint(stacked)
        if singular_bases:
            pair = in_singular_bases(pair)
        child, core = cut(pair, merge(*pair.cores), stacked[0][0].shape[1])
        squares.update(zip(names, squares_of(core, pair.cores[0]), strict=True))
        return revived(*balanced(child), breeding.rng)

    return Variation(map_stacks(breeding.parents, change), constants, squares)


def slerp_weights(product: float, square_one: float, square_two: float, t: float) -> Weights:
    """The two weights on the arc, from <x, y>, |x|^2 and |y|^2; (1 - t, t) where the arc is not defined."""
    if square_one <= 0 or square_two <= 0:
        return 1 - t, t
    cosine = max(-1.0, min(1.0, product / math.sqrt(square_one * square_two)))
    omega = math.acos(cosine)
    if math.sin(omega) < 1e-4:
        return 1 - t, t
    return math.sin((1 - t) * omega) / math.sin(omega), math.sin(t * omega) / math.sin(omega)


def _on_arc(one: Tensor, other: Tensor, t: float) -> Tensor:
    """The point at ``t`` on the arc between each layer's two matrices, (L, m, n) and (L, m, n) to (L, m, n)."""
    product, square_one, square_two = ((x * y).sum(dim=(1, 2)) for x, y in ((one, other), (one, one), (other, other)))
    rows = zip(product.tolist(), square_one.tolist(), square_two.tolist(), strict=True)
    pairs = [slerp_weights(p, x, y, t) for p, x, y in rows]
    c1, c2 = torch.tensor(pairs, dtype=one.dtype).T[:, :, None, None]
    return c1 * one + c2 * other


@dataclass(frozen=True)
class DareConstants:
    """X1. ``drop_frac`` in [0, 0.99] of the entries are dropped; ``share_frac`` in [0, 1] is parent 2's weight."""

    drop_frac: Annotated[float, Field(ge=0, le=0.99)] = 0.7
    share_frac: Share = 0.5


@dataclass(frozen=True)
class TiesConstants:
    """X6. The largest ``keep_frac`` in [0.001, 1] of the entries are kept; ``share_frac``: as in X1."""

    keep_frac: Annotated[float, Field(ge=0.001, le=1)] = 0.2
    share_frac: Share = 0.5


@dataclass(frozen=True)
class DellaConstants:
    """X7. Drop probability ``drop_frac`` -+ ``spread_frac`` / 2, lowest for the largest entries; ``share_frac``: X1."""

    drop_frac: float = 0.5
    spread_frac: Share = 0.4
    share_frac: Share = 0.5

    def __post_init__(self) -> None:
        check_range("drop_frac", self.drop_frac, self.spread_frac / 2, 0.99 - self.spread_frac / 2)


def dare(breeding: Breeding, constants: DareConstants) -> Variation:
    """X1: drop each entry of a parent's dW with probability p, rescale the rest by 1 / (1 - p), take the weighted mean.

    The mean is dense and is cut to rank r. Before the cut its expectation is the mean of the parents. The noise of the
    mask is spread over all directions, so the cut removes most of it. A mask on fewer coordinates, such as U^T dW
    (r, in), would put all noise into the r directions that are kept: cosine 0.5 to the parents' mean instead of 0.9.
    Source: paper (rule, p), Yu et al. (2024) (drop and rescale), re-implementations (mean, not sum), ours (the cut).
    """

    def change(names: Names, stacked: list[Factors]) -> Factors:
        cuts = []
        for i in range(len(names)):  # one module at a time: a dense dW is out x in
            dense = dare_dense([(a[i], b[i]) for a, b in stacked], breeding.rng, constants)
            cuts.append(cut_dense(dense, stacked[0][0].shape[1], breeding.rng))
        return revived(torch.stack([a for a, _ in cuts]), torch.stack([b for _, b in cuts]), breeding.rng)

    return Variation(map_stacks(breeding.parents, change), asdict(constants))


def dare_dense(parents: Sequence[Factors], rng: torch.Generator, constants: DareConstants) -> Tensor:
    """X1 before the cut, (out, in), from two parents' (A (r, in), B (out, r)); alpha / rank is left out."""
    scale = 1 / _kept_frac(constants.drop_frac)
    dense: Tensor | None = None
    for (a, b), share in zip(parents, (1 - constants.share_frac, constants.share_frac), strict=True):
        part = (share * scale * b) @ a
        part.masked_fill_(_drop_mask(part.shape, constants.drop_frac, rng), 0.0)
        dense = part if dense is None else dense.add_(part)
    assert dense is not None
    return dense


def ties(breeding: Breeding, constants: TiesConstants) -> Variation:
    """X6: trim each parent to its largest entries, elect each entry's sign, and average the entries that agree with it.

    Source: paper (name), Yadav et al. (2023) (rule and keep 20 %), ours (the coordinates).
    """

    def merge(one: Tensor, other: Tensor) -> Tensor:
        keep = constants.keep_frac
        return _elected_mean(_trimmed(one, keep), _trimmed(other, keep), constants.share_frac)

    return merged(breeding, merge, asdict(constants), singular_bases=True)


def della(breeding: Breeding, constants: DellaConstants) -> Variation:
    """X7: drop entries at random, small ones more often; rescale the others by 1 / (1 - p_i); then elect signs as X6.

    p_i falls linearly with the magnitude's rank in its row from p + spread / 2 to p - spread / 2.
    Source: paper (name), Deep et al. (2024) (rule), ours (numbers, coordinates).
    """
    low, high = constants.drop_frac - constants.spread_frac / 2, constants.drop_frac + constants.spread_frac / 2

    def merge(one: Tensor, other: Tensor) -> Tensor:
        first, second = (_dropped(part, _drop_by_rank(part, low, high), breeding.rng) for part in (one, other))
        return _elected_mean(first, second, constants.share_frac)

    return merged(breeding, merge, asdict(constants), singular_bases=True)


def fisher(breeding: Breeding, constants: ShareConstants) -> Variation:
    """X9: the mean weighted entry by entry with an importance, here the squared entry: sum w x^3 / sum w x^2.

    A diagonal Fisher matrix needs gradients on data, which breeding does not have; an entry that training moved far is
    taken as important. Source: paper (name), Matena and Raffel (2022) (weighted mean), ours (the importance).
    """

    def merge(one: Tensor, other: Tensor) -> Tensor:
        weight_one, weight_other = (1 - constants.share_frac) * one**2, constants.share_frac * other**2
        total = weight_one + weight_other
        return torch.where(total > 0, (weight_one * one + weight_other * other) / total, torch.zeros_like(one))

    return merged(breeding, merge, asdict(constants), singular_bases=True)


_NUM_LEVELS = 1 << 16
"""A 16-bit random number decides whether an entry is dropped: cheaper to draw than a float, and exact to 1e-5."""


def _kept_frac(drop_frac: float) -> float:
    """The probability, a multiple of 1 / 65536, that ``_drop_mask`` keeps an entry."""
    return 1 - round(drop_frac * _NUM_LEVELS) / _NUM_LEVELS


def _drop_mask(shape: torch.Size, drop_frac: float, rng: torch.Generator) -> Tensor:
    """A bool mask of the entries to drop, each independently with probability ``drop_frac``."""
    size = shape.numel()
    words = torch.empty(-(-size // 4), dtype=torch.int64).random_(-(1 << 63), None, generator=rng)
    return words.view(torch.int16)[:size].view(shape) < round(drop_frac * _NUM_LEVELS) - _NUM_LEVELS // 2


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
    """The last two steps of TIES: take the sign of the weighted sum, and the weighted mean of the entries with it.

    A dropped entry does not count in the mean, so an entry that only one parent has kept keeps its full size.
    """
    weighted = (1 - share_frac) * one, share_frac * other
    sign = torch.sign(weighted[0] + weighted[1])
    total, mass = torch.zeros_like(one), torch.zeros_like(one)
    for part, weight in zip(weighted, (1 - share_frac, share_frac), strict=True):
        agrees = (part * sign > 0).to(one.dtype)
        total += part * agrees
        mass += weight * agrees
    return torch.where(mass > 0, total / mass, torch.zeros_like(total))
