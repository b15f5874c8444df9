"""The task buffer, of verified tasks that teachers see as references, and the archive, for measuring forgetting.

The buffer is bounded, free of duplicates, and first in, first out. AZR keeps the oldest tasks instead, so that after a
few hundred steps no new task is shown (a fault of the method).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from redqueen.domains.registry import domain_of, in_order, kind_of
from redqueen.records import Task

KEYS_PER_TASK = 16
"""Keys of past tasks (one or two per task) that are kept for each task of the buffer's capacity (ours)."""


def program_key(task: Task) -> str:
    """Return a digest equal for tasks with the same normal form: for programs, up to names and layout."""
    return _digest(kind_of(task).normal_form(task))


def task_key(task: Task) -> str:
    """Return a digest equal for tasks of the same kind, with the same normal form and the same inputs."""
    return _digest(task.kind, kind_of(task).normal_form(task), *task.inputs)


def duplicate_keys(task: Task) -> tuple[str, ...]:
    """Return one or two digests. A later task that shares one is a duplicate: its ``task_key`` is the same, or (if it
    has a signature) its program gives the same outputs for the same inputs and for others."""
    alike = [_digest(task.kind, task.signature, *task.inputs)] if task.signature else []
    return (task_key(task), *alike)


def behaviour_key(task: Task) -> str:
    """Return a digest equal for tasks that behave the same, however they are written."""
    return _digest(kind_of(task).behaviour(task))


@dataclass(frozen=True)
class TaskBuffer:
    """Tasks in order of arrival, oldest first; at most ``capacity`` of them.

    ``asked`` holds the duplicate keys of all tasks so far, also of those that are no longer in the buffer (at most
    ``KEYS_PER_TASK`` times ``capacity``; the oldest are dropped).
    """

    capacity: int
    tasks: tuple[Task, ...] = ()
    asked: tuple[str, ...] = ()

    def add(self, new: Iterable[Task]) -> TaskBuffer:
        """Return the buffer with the new tasks appended, except repeats of an earlier program or behaviour."""
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
        return TaskBuffer(self.capacity, tuple(kept[-self.capacity :]), tuple(asked)[-KEYS_PER_TASK * self.capacity :])


def tasks_of_domain(tasks: Iterable[Task], kind: str) -> Sequence[Task]:
    """Return the tasks of the domain of ``kind``, or its seed when there is none."""
    domain = domain_of(kind)
    names = {one.name for one in domain.kinds}
    return [task for task in tasks if task.kind in names] or [domain.seed]


@lru_cache(maxsize=8192)
def cell(task: Task) -> str:
    """Return the task's cell (as in MAP-Elites): its behaviour class and its size class."""
    kind = kind_of(task)
    return f"{kind.behaviour_class(task)} | {kind.size_class(task)}"


def draw_references(
    tasks: Sequence[Task], num: int, rng: np.random.Generator, *, over_cells: bool = False
) -> tuple[Task, ...]:
    """Draw ``num`` different tasks (fewer when there are fewer); weights rise from 1, oldest, to 2, newest (ours).

    ``over_cells``: all non-empty cells have the same total weight; within a cell newer tasks have higher weights.
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


MIN_OPENNESS = 0.05
"""Added to p (1 - p), so that tasks that all or no students solved are also drawn: otherwise no forgetting is seen."""


@dataclass(frozen=True)
class Archived:
    """A task posed at ``step``, and the share of correct attempts when it was last attempted."""

    task: Task
    step: int
    solved_frac: float

    @property
    def openness(self) -> float:
        """The weight p (1 - p) + ``MIN_OPENNESS``: how informative another attempt is."""
        return self.solved_frac * (1.0 - self.solved_frac) + MIN_OPENNESS


@dataclass(frozen=True)
class TaskArchive:
    """A random sample of at most ``capacity`` tasks (0: no archive), in the order in which they were posed."""

    capacity: int = 0
    entries: tuple[Archived, ...] = ()

    def add(self, tasks: Iterable[Task], solve_fracs: Mapping[str, float], step: int) -> TaskArchive:
        """Return the archive with the attempted tasks of a step; the excess is dropped by a hash of the task's id."""
        if not self.capacity:
            return self
        new = [Archived(task, step, solve_fracs[task.id]) for task in tasks if task.id in solve_fracs]
        entries = (*self.entries, *new)
        kept = sorted(range(len(entries)), key=lambda i: _priority(entries[i]), reverse=True)[: self.capacity]
        return TaskArchive(self.capacity, tuple(entries[i] for i in sorted(kept)))

    def with_solve_fracs(self, solve_fracs: Mapping[str, float]) -> TaskArchive:
        """Return the archive with new shares of correct attempts, by task id."""
        entries = (
            replace(one, solved_frac=solve_fracs[one.task.id]) if one.task.id in solve_fracs else one
            for one in self.entries
        )
        return replace(self, entries=tuple(entries))


def draw_of_all_ages(entries: Sequence[Archived], num: int, rng: np.random.Generator) -> list[Archived]:
    """Draw ``num`` different tasks (fewer where there are fewer): equally many of each kind, spread evenly over time.

    The tasks of a kind are divided by age into as many stretches as tasks are drawn from it; one is drawn from each,
    weighted by openness. If a kind has too few, other kinds fill up, those with the fewest draws first.
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


def _shares(num: int, available: Sequence[int]) -> list[int]:
    """Split a number into shares that differ by at most one, bounded by ``available``; others take up the rest."""
    parts = len(available)
    shares = [min(have, num * (i + 1) // parts - num * i // parts) for i, have in enumerate(available)]
    for _ in range(min(num, sum(available)) - sum(shares)):
        least = min((share, i) for i, share in enumerate(shares) if share < available[i])
        shares[least[1]] += 1
    return shares


def _priority(entry: Archived) -> bytes:
    return hashlib.sha256(entry.task.id.encode("utf-8", "backslashreplace")).digest()
