"""Which children are compared, and how one pair of parents has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.evolve.operators import OPERATORS, Child, apply, find
from redqueen.evolve.variation import SPACES, Space
from redqueen.population.genotype import Genotype
from redqueen.streams import Streams

COPY = "copy_parent"
LINEAR = "linear_0_5"
"""The controls: what an operator must beat."""


@dataclass(frozen=True)
class Entry:
    """One operator in one space."""

    operator: str
    space: Space

    @property
    def label(self) -> str:
        """The operator's id, with the space where it has two."""
        return f"{self.operator} ({self.space})" if find(self.operator).spaces_differ else self.operator


def lineup() -> tuple[Entry, ...]:
    """Return every operator and control in each space in which it makes another child."""
    return tuple(
        Entry(operator.id, space)
        for operator in OPERATORS.values()
        for space in (SPACES if operator.spaces_differ else SPACES[:1])
    )


def breed_all(
    entries: Sequence[Entry], parents: Sequence[Genotype], fitness: Sequence[float], streams: Streams
) -> list[Child]:
    """Make one child an entry from two parents, the fitter one first. Both spaces get the same draws."""
    children = []
    for entry in entries:
        operator = find(entry.operator)
        count = operator.num_parents
        seed = streams.seed("breed", operator.id)
        children.append(apply(operator, parents[:count], fitness[:count], seed, entry.space))
    return children
