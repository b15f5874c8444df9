"""The task buffer: verified tasks that are shown to teachers as references. Bounded, without duplicates, first in first
out.

AZR keeps the oldest instead, so that after a few hundred steps nothing new is shown; ours forgets (method: a fault).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from redqueen.domains.registry import domain_of, in_order, kind_of
from redqueen.records import Task

ASKED_PER_PLACE = 16
"""Keys of past tasks, one or two a task, that are remembered per task that the buffer can hold (ours)."""


def program_key(task: Task) -> str:
    """Return a digest equal for tasks that are about the same (a program: up to names and layout)."""
    return _digest(kind_of(task).normal_form(task))


def task_key(task: Task) -> str:
    """Return a digest equal for tasks that ask the same: same kind, about the same, with the same inputs."""
    return _digest(task.kind, kind_of(task).normal_form(task), *task.inputs)


def duplicate_keys(task: Task) -> tuple[str, ...]:
    """Return digests; of two tasks that share one, the later is a duplicate: it asks the same, or (if it has a
    signature) its program gives the same for the same inputs and for others."""
    alike = [_digest(task.kind, task.signature, *task.inputs)] if task.signature else []
    return (task_key(task), *alike)


def behaviour_key(task: Task) -> str:
    """Return a digest equal for tasks that behave the same, however they are written."""
    return _digest(kind_of(task).behaviour(task))


@dataclass(frozen=True)
class TaskBuffer:
    """Tasks in order of arrival, oldest first; at most ``capacity`` of them.

    ``asked`` holds the keys of what was asked so far, also of tasks that are not kept (at most ``ASKED_PER_PLACE``
    times ``capacity``; the oldest are forgotten).
    """

    capacity: int
    tasks: tuple[Task, ...] = ()
    asked: tuple[str, ...] = ()

    def add(self, new: Iterable[Task]) -> TaskBuffer:
        """Return the buffer with the new tasks at its end: none alike in program or in behaviour to one before it."""
        programs = {program_key(t) for t in self.tasks}
        behaviours = {behaviour_key(t) for t in self.tasks}
        kept, new = list(self.tasks), list(new)
        for task in new:
            program, behaviour = program_key(task), behaviour_key(task)
            if program in programs or behaviour in behaviours:
                continue
            programs.add(program)
            behaviours.add(behaviour)
            kept.append(task)
        asked = dict.fromkeys([*self.asked, *(key for task in new for key in duplicate_keys(task))])
        return TaskBuffer(
            self.capacity, tuple(kept[-self.capacity :]), tuple(asked)[-ASKED_PER_PLACE * self.capacity :]
        )


def of_domain(tasks: Iterable[Task], kind: str) -> Sequence[Task]:
    """Return the tasks of the domain that a kind belongs to; its seed when there is none."""
    domain = domain_of(kind)
    names = {one.name for one in domain.kinds}
    return [task for task in tasks if task.kind in names] or [domain.seed]


@lru_cache(maxsize=8192)
def cell(task: Task) -> str:
    """Return the cell of the archive that a task lies in: its behaviour class and its size, in coarse steps."""
    kind = kind_of(task)
    return f"{kind.behaviour_class(task)} | {kind.size_class(task)}"


def draw_references(
    tasks: Sequence[Task], num: int, rng: np.random.Generator, *, over_cells: bool = False
) -> tuple[Task, ...]:
    """Draw ``num`` different tasks (fewer when there are fewer), newer ones twice as often as the oldest (ours).

    ``over_cells``: every cell that is not empty has the same chance; within it, newer tasks rather.
    """
    if not tasks or num < 1:
        return ()
    weights = np.linspace(1.0, 2.0, len(tasks))
    if over_cells:
        cells = [cell(task) for task in tasks]
        total = dict.fromkeys(cells, 0.0)
        for name, weight in zip(cells, weights, strict=True):
            total[name] += weight
        weights = weights / np.array([total[name] for name in cells])
    chosen = rng.choice(len(tasks), size=min(num, len(tasks)), replace=False, p=weights / weights.sum())
    return tuple(tasks[i] for i in chosen)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:24]


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

    def with_solve_fracs(self, solve_fracs: Mapping[str, float]) -> TaskArchive:
        """Return the archive after a probe of some of its tasks, by their ids."""
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
