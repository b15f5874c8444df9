"""Advantages without what the length of a completion explains.

Where longer answers are more often wrong, because each token drawn is a further chance of a slip, the policy gradient
shortens them, also those that need their length. With d the length of a completion less the mean of its group, and A
its advantage, the slope over the groups of one kind is b = sum(d A) / sum(d^2), and A - b d is left: what makes one
answer better than the others of its group, but for being longer or shorter. The groups of one kind then do not pull at
the length: sum(d (A - b d)) = 0. The mean of a group stays what it was. Ground: ours; regression on a nuisance
variable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from redqueen.learn.whiten import is_dead


def length_neutral(
    advantages: Sequence[Sequence[float]], lengths: Sequence[Sequence[int]], kinds: Sequence[str]
) -> list[tuple[float, ...]]:
    """Return advantages of the same shape; ``lengths`` are in tokens, ``kinds[i]`` is the kind of group i.

    Groups of equal advantages say nothing about length and stay as they are.
    """
    result = [np.asarray(group, dtype=np.float64) for group in advantages]
    speaking = [i for i, group in enumerate(result) if not is_dead(group)]
    for kind in sorted({kinds[i] for i in speaking}):
        own = [i for i in speaking if kinds[i] == kind]
        apart = [np.asarray(lengths[i], dtype=np.float64) - np.mean(lengths[i]) for i in own]
        spread = sum(float(d @ d) for d in apart)
        if spread == 0.0:
            continue
        slope = sum(float(d @ result[i]) for d, i in zip(apart, own, strict=True)) / spread
        for d, i in zip(apart, own, strict=True):
            result[i] = result[i] - slope * d
    return [tuple(group.tolist()) for group in result]
