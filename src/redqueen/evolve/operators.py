"""Every variation operator in one dict: id, name, family, formula, source and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from pydantic import ValidationError

from redqueen.adapters.genotype import Genotype, RelativeChange, change_of, on_cpu, relative_change, same_shape
from redqueen.domains.registry import import_as
from redqueen.errors import UserError, first_fault
from redqueen.evolve import crossover as cross
from redqueen.evolve import mutation as mutate
from redqueen.evolve.variation import Breeding, Variation

Family = Literal["mutation", "crossover", "control"]


@dataclass(frozen=True)
class Operator:
    """One way to make a child. ``apply(breeding, constants)``; ``constants`` are its defaults."""

    id: str
    name: str
    family: Family
    num_parents: int
    formula: str
    source: str
    apply: Callable[[Breeding, Any], Variation]
    constants: Any


@dataclass(frozen=True)
class Offspring:
    """A child with the constants that made it and its distance from its first parent."""

    genotype: Genotype
    constants: dict[str, float]
    change: RelativeChange


_LIST = (
    Operator(
        "M1", "spectral", "mutation", num_parents=1,
        formula="S_i <- S_i exp(e z_i); U, V turned by small Cayley rotations",
        source="paper; rotation's scale ours",
        apply=mutate.spectral, constants=mutate.SpectralConstants(),
    ),
    Operator(
        "M2", "layer-selective Gaussian", "mutation", num_parents=1,
        formula="in a random third of the modules: factor += e std(factor) z",
        source="paper",
        apply=mutate.layer_noise, constants=mutate.LayerNoiseConstants(),
    ),
    Operator(
        "M3", "component masking", "mutation", num_parents=1,
        formula="zero ceil(rho r) random singular components, each module its own",
        source="paper; revival ours",
        apply=mutate.mask_components, constants=mutate.MaskConstants(),
    ),
    Operator(
        "M4", "full Gaussian", "mutation", num_parents=1,
        formula="every factor += e std(factor) z",
        source="paper",
        apply=mutate.full_noise, constants=mutate.NoiseConstants(),
    ),
    Operator(
        "M5", "NEFTune-style", "mutation", num_parents=1,
        formula="A += e std(A) sqrt(3) U(-1, 1)",
        source="paper names it; scale ours",
        apply=mutate.input_noise, constants=mutate.NoiseConstants(),
    ),
    Operator(
        "M6", "rank perturbation", "mutation", num_parents=1,
        formula="the weakest ceil(rho r) components get random directions, S kept",
        source="paper names it; definition ours",
        apply=mutate.redraw_weakest, constants=mutate.RedrawConstants(),
    ),
    Operator(
        "X1", "DARE", "crossover", num_parents=2,
        formula="drop entries with p, rescale by 1 / (1 - p), mean of the parents, cut to rank r",
        source="paper; mean from re-implementations",
        apply=cross.dare, constants=cross.DareConstants(),
    ),
    Operator(
        "X2", "layer-wise", "crossover", num_parents=2,
        formula="each module whole from one random parent",
        source="paper",
        apply=cross.layerwise, constants=cross.ShareConstants(),
    ),
    Operator(
        "X3", "SVD subspace", "crossover", num_parents=2,
        formula="components 1..k of parent 1, k+1..r of parent 2; k ~ U{1..r-1}",
        source="paper",
        apply=cross.svd_subspace, constants=cross.SubspaceConstants(),
    ),
    Operator(
        "X4", "extrapolative", "crossover", num_parents=2,
        formula="worse + eta (better - worse); eta ~ U[1, 1.5]",
        source="paper; eta from re-implementations",
        apply=cross.extrapolative, constants=cross.ExtrapolativeConstants(),
    ),
    Operator(
        "X5", "linear", "crossover", num_parents=2,
        formula="(1 - w) dW1 + w dW2; w ~ U[0, 1]",
        source="paper names it; w ours",
        apply=cross.linear, constants=cross.LinearConstants(),
    ),
    Operator(
        "X6", "TIES", "crossover", num_parents=2,
        formula="trim to the largest 20 %, elect signs, mean of the agreeing entries",
        source="paper names it; Yadav et al. 2023; coordinates ours",
        apply=cross.ties, constants=cross.TiesConstants(),
    ),
    Operator(
        "X7", "DELLA", "crossover", num_parents=2,
        formula="drop by magnitude rank, rescale, elect signs, mean of the agreeing entries",
        source="paper names it; Deep et al. 2024; numbers and coordinates ours",
        apply=cross.della, constants=cross.DellaConstants(),
    ),
    Operator(
        "X8", "SLERP", "crossover", num_parents=2,
        formula="half way along the arc between the parents, module by module",
        source="paper names it; Shoemake 1985; half ours",
        apply=cross.slerp, constants=cross.ShareConstants(),
    ),
    Operator(
        "X9", "Fisher", "crossover", num_parents=2,
        formula="sum w x^3 / sum w x^2, entry by entry: importance is the squared entry",
        source="paper names it; Matena and Raffel 2022; importance and coordinates ours",
        apply=cross.fisher, constants=cross.ShareConstants(),
    ),
    Operator(
        "copy_parent", "copy of parent 1", "control", num_parents=1,
        formula="dW1",
        source="control",
        apply=cross.copy_parent, constants=cross.NoConstants(),
    ),
    Operator(
        "linear_0_5", "mean of the parents", "control", num_parents=2,
        formula="(dW1 + dW2) / 2, cut to rank r",
        source="control",
        apply=cross.linear_half, constants=cross.NoConstants(),
    ),
)  # fmt: skip

OPERATORS: dict[str, Operator] = {operator.id: operator for operator in _LIST}


def find(operator_id: str) -> Operator:
    """Return the operator with this id, or import a user's ``Operator`` named as ``module:NAME``.

    Raises UserError with the list of ids for any other name.
    """
    if ":" in operator_id:
        own = import_as(operator_id, Operator, "an operator (redqueen.evolve.operators.Operator)")
        if own.num_parents not in (1, 2):
            raise UserError(f"{operator_id} takes {own.num_parents} parents: name an operator that takes one or two")
        return own
    if operator_id not in OPERATORS:
        raise UserError(f"unknown operator {operator_id!r}: choose one of {', '.join(OPERATORS)}, or module:NAME")
    return OPERATORS[operator_id]


def tuned(operator: Operator, overrides: Mapping[str, float]) -> Operator:
    """Return the operator with constants replaced. Raises UserError for an unknown name or a value out of range."""
    known = asdict(operator.constants)
    for name in overrides:
        if name not in known:
            choices = ", ".join(known) or "none"
            raise UserError(f"operator {operator.id} has no constant {name!r}; it has: {choices}")
    try:
        return replace(operator, constants=replace(operator.constants, **overrides))
    except ValidationError as error:
        raise UserError(f"operator {operator.id}: {first_fault(error)}") from None


def apply(operator: Operator, parents: Sequence[Genotype], fitness: Sequence[float], rng_seed: int) -> Offspring:
    """Make one child; the same seed gives the same child.

    The child is made on the CPU, wherever the parents are, so that a seed gives the same child on every device.
    ``fitness`` has one number per parent; only X4 reads it. Raises ValueError for the wrong number of parents, or
    parents of different shape.
    """
    if len(parents) != operator.num_parents or len(fitness) != len(parents):
        raise ValueError(f"{operator.id} takes {operator.num_parents} parent(s), each with its fitness")
    if not all(same_shape(parents[0], other) for other in parents[1:]):
        raise ValueError("the parents differ in modules, shapes, rank or alpha")
    parents = [on_cpu(parent) for parent in parents]
    rng = torch.Generator().manual_seed(rng_seed)
    with torch.no_grad():
        made = operator.apply(Breeding(parents, fitness, rng), operator.constants)
    return Offspring(made.genotype, made.constants, _change(made, parents[0]))


def _change(made: Variation, parent: Genotype) -> RelativeChange:
    """The child's change, from the operator's own ``squares`` unless storing the child in half precision rounded it."""
    child, known = made.genotype, made.squares.keys() == parent.factors.keys()
    if known and all(part.dtype in (torch.float32, torch.float64) for pair in child.factors.values() for part in pair):
        return change_of({name: made.squares[name] for name in parent.names})
    return relative_change(child, parent)
