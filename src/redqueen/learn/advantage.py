"""Advantages: how much better each attempt was than what was to be expected, by one of four estimators.

An estimator sees one adapter's attempts in one role of one step, as groups: the rewards of the attempts at one prompt.
It is a pure function from arrays to arrays. Attempts that the infrastructure lost are no samples and must be left out
by the caller; a group may therefore be of any size, and a group that lost all is simply empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.errors import UserError
from redqueen.learn.grpo import grpo
from redqueen.learn.reinforce_pp_baseline import reinforce_pp_baseline
from redqueen.learn.rloo import rloo
from redqueen.learn.trr_pp import trr_pp

Estimator = Callable[[Sequence[NDArray[np.float64]], Sequence[str]], list[NDArray[np.float64]]]
"""(rewards of each group, kind of each group) -> advantages, shaped like the rewards."""

ESTIMATORS: dict[str, Estimator] = {
    "reinforce_pp_baseline": reinforce_pp_baseline,
    "trr_pp": trr_pp,
    "grpo": grpo,
    "rloo": rloo,
}


def advantages(estimator: str, rewards: Sequence[Sequence[float]], kinds: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the advantages of one adapter's groups in one role, shaped like ``rewards``.

    ``kinds[i]`` is the kind of task of group i. Raises UserError for an unknown estimator and ValueError for
    a reward that is not finite.
    """
    if estimator not in ESTIMATORS:
        raise UserError(f"learn.estimator {estimator!r} is unknown; choose one of {', '.join(ESTIMATORS)}")
    groups = [np.asarray(group, dtype=np.float64) for group in rewards]
    if not all(np.isfinite(group).all() for group in groups):
        raise ValueError("a reward is not finite")
    return [tuple(group.tolist()) for group in ESTIMATORS[estimator](groups, kinds)]
