"""Replacement (survivor selection): who leaves. Worst fraction, steady state, crowding by behaviour.

Small roles: one member is never replaced for its fitness; from two on at least one leaves, and at least one stays.
A broken member (its last update was not finite) leaves first, whatever the rule and even when it is the only one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from redqueen.evolve.selection import fittest_first

Replacement = Literal["worst_fraction", "steady_state", "crowding"]


def num_leaving(num_members: int, replaced_frac: float) -> int:
    """How many of a role leave: the fraction rounded down, at least 1 of 2 or more, never all; 0 for a fraction 0."""
    if not 0 <= replaced_frac <= 1:
        raise ValueError("replaced_frac must be in [0, 1]")
    if num_members < 2 or replaced_frac == 0:
        return 0
    return min(max(1, int(replaced_frac * num_members + 1e-9)), num_members - 1)


def choose_leaving(
    rule: Replacement,
    fitness: Sequence[float],
    replaced_frac: float = 0.25,
    broken: Collection[int] = (),
    num_elite: int = 1,
    behaviour_distances: NDArray[np.float64] | None = None,
) -> list[int]:
    """The indices of those who leave, the broken first.

    ``worst_fraction``: the least fit fraction (paper: 25 %). ``steady_state``: only the least fit one.
    ``crowding``: as many as the fraction says; each time, of the two whose behaviour is closest, the less fit one,
    by ``behaviour_distances`` (n, n), so that what is rare is kept (De Jong 1975, ours in form). The fittest
    ``num_elite`` stay under every rule. Raises ValueError for crowding without distances.
    """
    quota = num_leaving(len(fitness), replaced_frac)
    if rule == "steady_state":
        quota = min(quota, 1)
    leaving = sorted(broken)
    sound = [i for i in fittest_first(fitness) if i not in leaving]
    elite = sound[: max(1, num_elite)]
    candidates = [i for i in sound if i not in elite]
    num_more = min(max(0, quota - len(leaving)), len(candidates))
    if rule != "crowding":
        return leaving + candidates[len(candidates) - num_more :][::-1]
    if behaviour_distances is None:
        raise ValueError("crowding needs the members' behaviour distances")
    return leaving + _crowded(sound, set(elite), num_more, behaviour_distances)


def _crowded(ranking: list[int], elite: set[int], num_more: int, distances: NDArray[np.float64]) -> list[int]:
    """Again and again, the less fit of the closest pair; ``ranking`` is fittest first, and the elite stays."""
    left, leaving = list(ranking), []
    for _ in range(num_more):
        pairs = [(distances[i, j], p, j) for p, j in enumerate(left) for i in left[:p] if j not in elite]
        # Of equally close pairs the one whose less fit member is the least fit of all.
        _, _, loser = min(pairs, key=lambda pair: (pair[0], -pair[1]))
        left.remove(loser)
        leaving.append(loser)
    return leaving
