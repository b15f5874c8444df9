"""RLOO: the reward minus the mean reward of the *other* attempts at the same prompt.

A_ij = r_ij - mean over l != j of r_il = (r_ij - mean_i r) n / (n - 1): an unbiased baseline, and no scaling at all. A
group of one attempt gets 0. Ground: REINFORCE leave-one-out (Ahmadian et al. 2024).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.learn.whiten import centred


def rloo(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return the advantages of one adapter's groups in one role; ``kinds`` plays no part."""
    return [centred(group) * (group.size / max(1, group.size - 1)) for group in groups]
