"""Running baselines of teachers: what each has earned with each kind of task over its latest steps.

With m and q the running means of a teacher's rewards r of one kind and of their squares, a proposal's advantage is
(r - m) / s, where s^2 is the mean over the kinds of the step of q - m^2, or of the step's own variance where that is
larger: the first success after nothing but failures then counts, and by no more than the spread that it makes. A group
that is wholly invalid has a gradient, away from what was written, as long as the teacher has done better; the group's
own mean would leave none.
Afterwards m <- d m + (1 - d) mean(r), and q likewise; a kind that a teacher has not written before takes this step's
own, so its first group is centred on itself. Ground: REINFORCE with a moving baseline (Williams 1992); by kind: ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from redqueen.learn.whiten import SMALLEST_STD

Moments = tuple[float, float]
"""Running means of rewards and of their squares."""


@dataclass(frozen=True)
class Baselines:
    """``by_teacher[teacher][kind]``: the running moments."""

    by_teacher: dict[str, dict[str, Moments]] = field(default_factory=dict)

    def advantages(self, teacher: str, groups: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
        """Return the advantages of one teacher's rewards by kind, each group of at least one."""
        moments = {kind: self._moments(teacher, kind, group) for kind, group in groups.items()}
        variance = fmean(max(q - m * m, float(groups[kind].var())) for kind, (m, q) in moments.items())
        if variance < SMALLEST_STD**2:
            return {kind: np.zeros_like(group) for kind, group in groups.items()}
        return {kind: (group - moments[kind][0]) / math.sqrt(variance) for kind, group in groups.items()}

    def updated(self, teacher: str, groups: Mapping[str, NDArray[np.float64]], keep_frac: float) -> Baselines:
        """Return the baselines after one teacher's step."""
        own = dict(self.by_teacher.get(teacher, {}))
        for kind, group in groups.items():
            m, q = self._moments(teacher, kind, group)
            own[kind] = (
                keep_frac * m + (1 - keep_frac) * float(group.mean()),
                keep_frac * q + (1 - keep_frac) * float((group**2).mean()),
            )
        return Baselines({**self.by_teacher, teacher: own})

    def keep_only(self, teachers: Iterable[str]) -> Baselines:
        """Drop those of teachers that have left."""
        known = set(teachers)
        return Baselines({name: kinds for name, kinds in self.by_teacher.items() if name in known})

    def _moments(self, teacher: str, kind: str, group: NDArray[np.float64]) -> Moments:
        known = self.by_teacher.get(teacher, {}).get(kind)
        return known or (float(group.mean()), float((group**2).mean()))
