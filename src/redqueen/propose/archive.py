"""The archive: tasks of all ages with how they were solved, drawn from again to judge students.

It holds a uniform sample of all tasks ever posed: each has a number that a digest of its id fixes, and those with the
largest numbers stay. So it needs no dice, and no age is favoured (the buffer, which shows teachers what is new, is
another thing). A look is an attempt of students at an archived task, and renews the share of them that solved it.
Ground: ours; reservoir sampling by priorities (Efraimidis and Spirakis 2006); the score
p (1 - p) after SFL (Rutherford et al. 2024).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from redqueen.domains.registry import in_order
from redqueen.nouns import Task

LEAST_OPENNESS = 0.05
"""Added to p (1 - p): a task that all or none solved is seldom drawn, but drawn, or forgetting would not show."""


@dataclass(frozen=True)
class Archived:
    """A task posed at ``step``, and the share of right attempts when it was last attempted."""

    task: Task
    step: int
    solved_frac: float

    @property
    def openness(self) -> float:
        """p (1 - p) and a little: how much an attempt at it says."""
        return self.solved_frac * (1.0 - self.solved_frac) + LEAST_OPENNESS


@dataclass(frozen=True)
class TaskArchive:
    """At most ``capacity`` tasks (0: there is no archive), in the order in which they were posed."""

    capacity: int = 0
    entries: tuple[Archived, ...] = ()

    def add(self, tasks: Iterable[Task], solve_fracs: Mapping[str, float], step: int) -> TaskArchive:
        """Return the archive with the tasks of a step that were attempted."""
        if not self.capacity:
            return self
        new = [Archived(task, step, solve_fracs[task.id]) for task in tasks if task.id in solve_fracs]
        entries = (*self.entries, *new)
        kept = sorted(range(len(entries)), key=lambda i: _priority(entries[i]), reverse=True)[: self.capacity]
        return TaskArchive(self.capacity, tuple(entries[i] for i in sorted(kept)))

    def looked_at(self, solve_fracs: Mapping[str, float]) -> TaskArchive:
        """Return the archive after a look at some of its tasks, by their ids."""
        entries = (
            replace(one, solved_frac=solve_fracs[one.task.id]) if one.task.id in solve_fracs else one
            for one in self.entries
        )
        return replace(self, entries=tuple(entries))


def draw_of_all_ages(entries: Sequence[Archived], num: int, rng: np.random.Generator) -> list[Archived]:
    """Draw ``num`` different tasks (fewer where there are fewer): as many of each kind, spread evenly over time.

    The tasks of a kind are cut by age into as many stretches as are wanted of it, and one is drawn from each, with its
    openness as weight. What a kind lacks, the others give, those first that gave least.
    """
    by_kind = {
        kind: [one for one in entries if one.task.kind == kind] for kind in in_order(one.task.kind for one in entries)
    }
    drawn: list[Archived] = []
    for own, wanted in zip(by_kind.values(), _shares(num, list(map(len, by_kind.values()))), strict=True):
        for k in range(wanted):
            stretch = own[k * len(own) // wanted : (k + 1) * len(own) // wanted]
            weights = np.array([one.openness for one in stretch])
            drawn.append(stretch[int(rng.choice(len(stretch), p=weights / weights.sum()))])
    return drawn


def _shares(num: int, there_are: Sequence[int]) -> list[int]:
    """Split a number into shares that differ by one at most, but where there are fewer; others take up what is left."""
    parts = len(there_are)
    shares = [min(have, num * (i + 1) // parts - num * i // parts) for i, have in enumerate(there_are)]
    for _ in range(min(num, sum(there_are)) - sum(shares)):
        least = min((share, i) for i, share in enumerate(shares) if share < there_are[i])
        shares[least[1]] += 1
    return shares


def _priority(entry: Archived) -> bytes:
    return hashlib.sha256(entry.task.id.encode("utf-8", "backslashreplace")).digest()
