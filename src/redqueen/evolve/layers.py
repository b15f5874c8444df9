"""Modules of equal shape, stacked: so that one batched call works on many layers and memory stays bounded.

A 7B model adapts 196 modules of seven shapes. Stacks are cut where they would pass ``MAX_STACK_NUMEL`` entries a
factor, so the working memory of an operator is some tens of megabytes beside the child itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import torch
from torch import Tensor

from redqueen.population.genotype import Factors, Genotype

MAX_STACK_NUMEL = 4_000_000
"""Entries of the larger factor in one stack; also fixes how random draws are laid out, so a seed depends on it."""

Names = tuple[str, ...]


def stacks(parents: Sequence[Genotype], only: Collection[str] | None = None) -> Iterator[tuple[Names, list[Factors]]]:
    """Walk the modules by shape: names (L of them) and, parent by parent, ``(A (L, r, in), B (L, out, r))``.

    Half-precision factors come as float32 (float64 stays). ``only`` restricts the walk to some modules.
    """
    by_shape: dict[tuple[torch.Size, torch.Size], list[str]] = {}
    for name, (a, b) in parents[0].factors.items():
        if only is None or name in only:
            by_shape.setdefault((a.shape, b.shape), []).append(name)
    for (shape_a, shape_b), names in by_shape.items():
        count = max(1, MAX_STACK_NUMEL // max(shape_a.numel(), shape_b.numel()))
        for start in range(0, len(names), count):
            chunk = tuple(names[start : start + count])
            yield chunk, [_stacked(parent, chunk) for parent in parents]


def map_stacks(
    parents: Sequence[Genotype],
    change: Callable[[Names, list[Factors]], Factors],
    only: Collection[str] | None = None,
) -> Genotype:
    """The child whose stacks are ``change(names, the parents' stacks)``; modules outside ``only`` copy parent 0.

    The child has parent 0's dtype, module order and alpha, and shares no memory with another genotype.
    """
    first = parents[0]
    child: dict[str, Factors] = {}
    for names, stacked in stacks(parents, only):
        a, b = change(names, stacked)
        for i, name in enumerate(names):
            dtype_a, dtype_b = (part.dtype for part in first.factors[name])
            child[name] = (a[i].to(dtype_a, copy=True), b[i].to(dtype_b, copy=True))
    for name, (a, b) in first.factors.items():
        if name not in child:
            child[name] = (a.detach().clone(), b.detach().clone())
    return Genotype({name: child[name] for name in first.names}, first.alpha)


def _stacked(genotype: Genotype, names: Names) -> Factors:
    """The named modules of one genotype as ``(A (L, r, in), B (L, out, r))``, at least in float32."""
    pairs = [genotype.factors[name] for name in names]
    return _wide(torch.stack([a.detach() for a, _ in pairs])), _wide(torch.stack([b.detach() for _, b in pairs]))


def _wide(stack: Tensor) -> Tensor:
    return stack if stack.dtype == torch.float64 else stack.float()
