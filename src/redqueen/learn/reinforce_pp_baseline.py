"""REINFORCE++-baseline: the reward centred within its prompt's group, then whitened over the batch.

A_ij = (r_ij - mean_i r) / std over the batch of all (r_kl - mean_k r). Dividing by one number for the whole batch, and
not by each group's own spread, keeps a nearly solved prompt from outweighing an open one. A group of one
attempt has nothing to be compared with and gets 0. Ground: the paper; REINFORCE++ (Hu 2025).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.learn.whiten import centred, scaled


def reinforce_pp_baseline(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return the advantages of one adapter's groups in one role; ``kinds`` plays no part."""
    return scaled([centred(group) for group in groups])
