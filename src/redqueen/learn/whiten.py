"""Whitening: zero mean and unit variance, with what carries no information left at exactly zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SMALLEST_STD = 1e-6
"""Below this spread (rewards are of order 1) differences are rounding, and dividing by it would blow them up."""


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
    """Tell whether a group says nothing: all its rewards are equal (all right, all wrong), or it is empty."""
    return group.size == 0 or float(group.max() - group.min()) == 0.0


def centred(group: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x - mean; values that are all equal give zeros, which their rounded mean would not. Empty stays empty."""
    return np.zeros_like(group) if is_dead(group) else group - group.mean()


def scaled(groups: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return the values of centred ``groups`` divided by the population std of all of them, whose mean is 0.

    The mean is not taken off again: what rounding has left of it would make a gradient of every group without one.
    """
    values = np.concatenate(groups) if groups else np.zeros(0)
    std = float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
    return [group / std if std >= SMALLEST_STD else np.zeros_like(group) for group in groups]
