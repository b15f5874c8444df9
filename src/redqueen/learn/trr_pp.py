"""Task-relative REINFORCE++: the reward whitened over all attempts at one kind of task, whatever the prompt.

A = (r - mean of its kind) / std of its kind, for each role on its own. With one kind it is REINFORCE++ without a
baseline per prompt; prompts of unequal difficulty then push each other's attempts up or down. Ground: AZR (Zhao et al.
2025), which calls it TRR++; the population (not sample) standard deviation is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redqueen.learn.whiten import whiten


def trr_pp(groups: Sequence[NDArray[np.float64]], kinds: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return the advantages of one adapter's groups in one role, ``kinds[i]`` being the kind of group i."""
    result = [group.copy() for group in groups]
    for kind in sorted(set(kinds)):
        index = [i for i, k in enumerate(kinds) if k == kind]
        for i, whitened in zip(index, whiten([groups[i] for i in index]), strict=True):
            result[i] = whitened
    return result
