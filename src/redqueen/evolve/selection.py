"""Parent selection: who breeds. Truncation, tournament, rank-weighted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

Selection = Literal["truncation", "tournament", "rank"]


def select_parents(
    rule: Selection,
    fitness: Sequence[float],
    num_parents: int,
    rng: np.random.Generator,
    tournament_size: int = 2,
) -> list[int]:
    """The indices of ``num_parents`` distinct parents, the fittest of them first.

    ``truncation`` takes the fittest (paper). ``tournament`` takes the best of ``tournament_size`` drawn at random,
    again for each parent among those left. ``rank`` draws with weight n for the best down to 1 for the worst
    (both ours). Raises ValueError for too few candidates.
    """
    if not 1 <= num_parents <= len(fitness):
        raise ValueError(f"cannot select {num_parents} parents from {len(fitness)}")
    ranking = fittest_first(fitness)
    if rule == "truncation":
        return ranking[:num_parents]
    left, chosen = list(ranking), []
    for _ in range(num_parents):
        if rule == "tournament":
            place = int(rng.choice(len(left), size=min(tournament_size, len(left)), replace=False).min())
        else:
            weights = np.arange(len(left), 0, -1, dtype=np.float64)
            place = int(rng.choice(len(left), p=weights / weights.sum()))
        chosen.append(left.pop(place))
    return sorted(chosen, key=ranking.index)


def fittest_first(fitness: Sequence[float]) -> list[int]:
    """Indices from the fittest to the least fit; equals keep their order, NaN counts as the worst."""
    return sorted(range(len(fitness)), key=lambda i: (np.isnan(fitness[i]), -fitness[i]))
