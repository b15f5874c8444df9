"""Advantages: how much better each attempt was than expected, by one of four estimators.

The input of an estimator is one adapter's rewards in one role of one step, in groups: the rewards of the attempts at
one prompt. It is a pure function from arrays to arrays. The caller must leave out attempts that the infrastructure
lost, so groups may have any size and may be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.errors import UserError

SMALLEST_STD = 1e-6
"""Below this standard deviation (rewards are of order 1) differences are rounding errors, inflated by division."""


def whiten(groups: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return (x - mean) / std over all values of ``groups`` together (population std), in the groups' shape."""
    values = np.concatenate(groups) if groups else np.zeros(0)
    if values.size == 0:
        return [group.copy() for group in groups]
    mean, std = float(values.mean()), float(values.std())
    if std < SMALLEST_STD:
        return [np.zeros_like(group) for group in groups]
    return [(group - mean) / std for group in groups]


def is_dead(group: NDArray[np.float64]) -> bool:
    """Return whether a group gives no signal: all its rewards are equal (all right, all wrong), or it is empty."""
    return group.size == 0 or float(group.max() - group.min()) == 0.0


def centred(group: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x - mean; exactly 0 if all values are equal, in spite of rounding. An empty group stays empty."""
    return np.zeros_like(group) if is_dead(group) else group - group.mean()


def scaled(groups: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return the values of centred ``groups`` divided by the population std of all of them, whose mean is 0.

    The mean is not subtracted again: its rounding error would give groups without a signal a gradient.
    """
    values = np.concatenate(groups) if groups else np.zeros(0)
    std = float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
    return [group / std if std >= SMALLEST_STD else np.zeros_like(group) for group in groups]


def grpo(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return A_ij = (r_ij - mean_i r) / std_i r for sample j of group i; ``kinds`` is not used.

    A group whose rewards are equal gets 0. Source: GRPO (Shao et al. 2024), with the population standard deviation.
    """
    return [whiten([group])[0] for group in groups]


def rloo(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return A_ij = r_ij - mean over l != j of r_il = (r_ij - mean_i r) n / (n - 1); ``kinds`` is not used.

    A group of one attempt gets 0. Source: REINFORCE leave-one-out (Ahmadian et al. 2024).
    """
    return [centred(group) * (group.size / max(1, group.size - 1)) for group in groups]


def reinforce_pp_baseline(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return A_ij = (r_ij - mean_i r) / std over all (r_kl - mean_k r); ``kinds`` is not used.

    One standard deviation for the whole batch prevents a nearly solved prompt from outweighing an uncertain one. A
    group of one attempt gets 0. Source: the paper; REINFORCE++ (Hu 2025).
    """
    return scaled([centred(group) for group in groups])


def trr_pp(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return A = (r - mean of its kind) / std of its kind; ``kinds[i]`` is the kind of group i.

    Source: TRR++ of AZR (Zhao et al. 2025); the population standard deviation is ours.
    """
    result = [group.copy() for group in groups]
    for kind in sorted(set(kinds)):
        index = [i for i, k in enumerate(kinds) if k == kind]
        for i, whitened in zip(index, whiten([groups[i] for i in index]), strict=True):
            result[i] = whitened
    return result


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
