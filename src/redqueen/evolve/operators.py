"""Every variation operator in one dict: id, name, family, formula, ground and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import torch

from redqueen.errors import UserError
from redqueen.evolve import crossover as cross
from redqueen.evolve import crossover_entries as entries
from redqueen.evolve import mutation as mutate
from redqueen.evolve.variation import SPACES, Space, Variation
from redqueen.population.genotype import Genotype, RelativeChange, layer_norms, relative_change, same_shape

Family = Literal["mutation", "crossover", "control"]


@dataclass(frozen=True)
class Operator:
    """One way to make a child. ``apply(parents, fitness, rng, space, constants)``; ``constants`` are its defaults."""

    id: str
    name: str
    family: Family
    num_parents: int
    formula: str
    ground: str
    spaces_differ: bool
    apply: Callable[[Sequence[Genotype], Sequence[float], torch.Generator, Space, Any], Variation]
    constants: Any


@dataclass(frozen=True)
class Child:
    """A child with the constants that made it and its distance from its first parent."""

    genotype: Genotype
    constants: dict[str, float]
    change: RelativeChange


_LIST = (
    Operator(
        "M1", "spectral", "mutation", 1, "S_i <- S_i exp(e z_i); U, V turned by small Cayley rotations",
        "paper; rotation's scale ours", False, mutate.spectral, mutate.SpectralConstants(),
    ),
    Operator(
        "M2", "layer-selective Gaussian", "mutation", 1, "in a random third of the modules: factor += e std(factor) z",
        "paper", True, mutate.layer_noise, mutate.LayerNoiseConstants(),
    ),
    Operator(
        "M3", "component masking", "mutation", 1, "zero ceil(rho r) random singular components, each module its own",
        "paper; revival ours", True, mutate.mask_components, mutate.MaskConstants(),
    ),
    Operator(
        "M4", "full Gaussian", "mutation", 1, "every factor += e std(factor) z",
        "paper", True, mutate.full_noise, mutate.NoiseConstants(),
    ),
    Operator(
        "M5", "NEFTune-style", "mutation", 1, "A += e std(A) sqrt(3) U(-1, 1)",
        "paper names it; scale ours", True, mutate.input_noise, mutate.InputNoiseConstants(),
    ),
    Operator(
        "M6", "rank perturbation", "mutation", 1, "the weakest ceil(rho r) components get random directions, S kept",
        "paper names it; definition ours", False, mutate.redraw_weakest, mutate.RedrawConstants(),
    ),
    Operator(
        "X1", "DARE", "crossover", 2, "drop entries with p, rescale by 1 / (1 - p), mean of the parents, cut to rank r",
        "paper; mean from re-implementations; coordinates ours", True, entries.dare, entries.DareConstants(),
    ),
    Operator(
        "X2", "layer-wise", "crossover", 2, "each module whole from one random parent",
        "paper", False, cross.layerwise, cross.LayerwiseConstants(),
    ),
    Operator(
        "X3", "SVD subspace", "crossover", 2, "components 1..k of parent 1, k+1..r of parent 2; k ~ U{1..r-1}",
        "paper", False, cross.svd_subspace, cross.SubspaceConstants(),
    ),
    Operator(
        "X4", "extrapolative", "crossover", 2, "worse + eta (better - worse); eta ~ U[1, 1.5]",
        "paper; eta from re-implementations", True, cross.extrapolative, cross.ExtrapolativeConstants(),
    ),
    Operator(
        "X5", "linear", "crossover", 2, "(1 - w) dW1 + w dW2; w ~ U[0, 1]",
        "paper names it; w ours", True, cross.linear, cross.LinearConstants(),
    ),
    Operator(
        "X6", "TIES", "crossover", 2, "trim to the largest 20 %, elect signs, mean of the agreeing entries",
        "paper names it; Yadav et al. 2023; coordinates ours", True, entries.ties, entries.TiesConstants(),
    ),
    Operator(
        "X7", "DELLA", "crossover", 2, "drop by magnitude rank, rescale, elect signs, mean of the agreeing entries",
        "paper names it; Deep et al. 2024; numbers and coordinates ours", True, entries.della,
        entries.DellaConstants(),
    ),
    Operator(
        "X8", "SLERP", "crossover", 2, "half way along the arc between the parents, module by module",
        "paper names it; Shoemake 1985; half ours", True, cross.slerp, cross.SlerpConstants(),
    ),
    Operator(
        "X9", "Fisher", "crossover", 2, "sum w x^3 / sum w x^2, entry by entry: importance is the squared entry",
        "paper names it; Matena and Raffel 2022; importance and coordinates ours", True, entries.fisher,
        entries.FisherConstants(),
    ),
    Operator(
        "copy_parent", "copy of parent 1", "control", 1, "dW1",
        "control", False, cross.copy_parent, cross.NoConstants(),
    ),
    Operator(
        "linear_0_5", "mean of the parents", "control", 2, "(dW1 + dW2) / 2, cut to rank r",
        "control", True, cross.linear_half, cross.NoConstants(),
    ),
)  # fmt: skip

OPERATORS: dict[str, Operator] = {operator.id: operator for operator in _LIST}

FINAL_EIGHT: tuple[str, ...] = ("M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4")
"""The operators of the paper's main run, enabled by default."""


def find(operator_id: str) -> Operator:
    """The operator of that id. Raises UserError with the list of ids for any other."""
    if operator_id not in OPERATORS:
        raise UserError(f"unknown operator {operator_id!r}: choose one of {', '.join(OPERATORS)}")
    return OPERATORS[operator_id]


def in_family(enabled: Sequence[str], family: Family) -> tuple[str, ...]:
    """The enabled operators of one family, in the order of ``enabled``. Raises UserError for an unknown id."""
    return tuple(operator_id for operator_id in enabled if find(operator_id).family == family)


def tuned(operator: Operator, overrides: Mapping[str, float]) -> Operator:
    """The operator with some constants replaced. Raises UserError for a constant it does not have."""
    known = {field.name for field in fields(operator.constants)}
    for name in overrides:
        if name not in known:
            raise UserError(
                f"operator {operator.id} has no constant {name!r}; it has: {', '.join(sorted(known)) or 'none'}"
            )
    kept_types = {name: type(getattr(operator.constants, name))(value) for name, value in overrides.items()}
    return replace(operator, constants=replace(operator.constants, **kept_types))


def apply(
    operator: Operator,
    parents: Sequence[Genotype],
    fitness: Sequence[float],
    rng_seed: int,
    space: Space = "delta",
    preserve_norm: bool = False,
) -> Child:
    """Make one child; the same seed gives the same child.

    ``fitness`` has one number a parent and only X4 reads it. ``preserve_norm`` rescales each module to the mean |dW| of
    the parents. Raises ValueError for the wrong number of parents, parents of different shape, or an unknown space.
    """
    if len(parents) != operator.num_parents or len(fitness) != len(parents):
        raise ValueError(f"{operator.id} takes {operator.num_parents} parent(s), each with its fitness")
    if space not in SPACES:
        raise ValueError(f"unknown space {space!r}: choose one of {', '.join(SPACES)}")
    if not all(same_shape(parents[0], other) for other in parents[1:]):
        raise ValueError("the parents differ in modules, shapes, rank or alpha")
    rng = torch.Generator().manual_seed(rng_seed)
    with torch.no_grad():
        made = operator.apply(parents, fitness, rng, space, operator.constants)
        genotype = rescaled(made.genotype, parents) if preserve_norm else made.genotype
    return Child(genotype, made.constants, relative_change(genotype, parents[0]))


def rescaled(child: Genotype, parents: Sequence[Genotype]) -> Genotype:
    """The child with each module's |dW| set to the mean of its parents'; an empty one stays empty. Ground: ours."""
    targets = [layer_norms(parent) for parent in parents]
    norms = layer_norms(child)
    factors = {}
    for name, (a, b) in child.factors.items():
        target = sum(norms_of[name] for norms_of in targets) / len(targets)
        root = (target / norms[name]) ** 0.5 if norms[name] > 0 and target > 0 else 1.0
        factors[name] = (a * root, b * root)
    return Genotype(factors, child.alpha)


def constants_of(operator: Operator) -> dict[str, float]:
    """The operator's constants by name, as the table shows them."""
    return asdict(operator.constants)
