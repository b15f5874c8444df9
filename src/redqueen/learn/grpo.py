"""GRPO: the reward centred within its prompt's group and divided by the group's own spread.

A_ij = (r_ij - mean_i r) / std_i r; a group whose rewards are all equal gets 0. Ground: GRPO (Shao et al. 2024), with
the population standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.learn.whiten import whiten


def grpo(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return the advantages of one adapter's groups in one role; ``kinds`` plays no part."""
    return [whiten([group])[0] for group in groups]
