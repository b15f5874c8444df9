"""Islands: the parts of a role within which parents are chosen and the weakest leave, and who moves between them.

Island i of n holds every n-th member of the role, from the i-th on; a child takes the slot of the one it replaces, so
islands stay what they are. Every ``migrate_every_steps`` the fittest sound member of each island goes on to the next in
a ring, as a copy: it stays where it is too. A migrant is the same player under another name, so rating, genes and
optimiser state are its donor's. Ground: island models (Cohoon et al. 1987; Tanese 1989: the best go, the worst
give way); one migrant at a time and the ring are ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from redqueen.config import EvolveConfig
from redqueen.evolve.selection import fittest_first
from redqueen.nouns import Individual

MIGRATE = "migrate"
"""Stands in the lineage as the operator of a migrant; its one parent is its donor."""


@dataclass(frozen=True)
class Island:
    """Members of one role, and who comes to them from the island before, if it is time."""

    members: Sequence[Individual]
    migrant: Individual | None = None


def islands_of(
    members: Sequence[Individual],
    fitness: Mapping[str, float],
    broken: Collection[str],
    step: int,
    rules: EvolveConfig,
) -> list[Island]:
    """Divide the members of one role, in the order of their slots. Nobody comes from an island where all are broken."""
    number = min(rules.num_islands, len(members))
    parts = [members[i::number] for i in range(number)]
    if number < 2 or not rules.migrate_every_steps or step % rules.migrate_every_steps:
        return [Island(part) for part in parts]
    best = [_fittest([member for member in part if member.id not in broken], fitness) for part in parts]
    return [Island(part, best[i - 1]) for i, part in enumerate(parts)]


def _fittest(members: Sequence[Individual], fitness: Mapping[str, float]) -> Individual | None:
    first = fittest_first([fitness[member.id] for member in members])[:1]
    return members[first[0]] if first else None
