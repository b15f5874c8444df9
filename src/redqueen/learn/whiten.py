"""Whitening: zero mean and unit variance, with a batch that carries no information left at zero."""

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


def centred(group: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x - mean; an empty group stays empty."""
    return group - group.mean() if group.size else group.copy()
