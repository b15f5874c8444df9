"""Replacement (survivor selection): who leaves. Worst fraction or steady state.

Small roles: one member is never replaced for its fitness; from two on at least one leaves, and at least one stays.
A broken member (its last update was not finite) leaves first, whatever the rule and even when it is the only one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from redqueen.evolve.selection import fittest_first

Replacement = Literal["worst_fraction", "steady_state"]


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
) -> list[int]:
    """The indices of those who leave, the broken first.

    ``worst_fraction``: the least fit fraction (paper: 25 %). ``steady_state``: only the least fit one.
    The fittest ``num_elite`` stay under either rule.
    """
    quota = num_leaving(len(fitness), replaced_frac)
    if rule == "steady_state":
        quota = min(quota, 1)
    leaving = sorted(broken)
    sound = [i for i in fittest_first(fitness) if i not in leaving]
    candidates = sound[max(1, num_elite) :]
    num_more = min(max(0, quota - len(leaving)), len(candidates))
    return leaving + candidates[len(candidates) - num_more :][::-1]
