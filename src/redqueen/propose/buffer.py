"""The task buffer: verified tasks that teachers are shown as references. Bounded, without doubles, oldest leave first.

AZR keeps the oldest instead, so that after a few hundred steps nothing new is shown; ours forgets (method: a fault).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from redqueen.domains.registry import domain_of, kind_of
from redqueen.nouns import Task

ASKED_PER_PLACE = 16
"""Past tasks remembered per task that the buffer can hold, to refuse repetitions (ours)."""


def program_key(task: Task) -> str:
    """Return a digest equal for tasks that are about the same (a program: up to names and layout)."""
    return _digest(kind_of(task).normal_form(task))


def task_key(task: Task) -> str:
    """Return a digest equal for tasks that ask the same: same kind, about the same, with the same inputs."""
    return _digest(task.kind, kind_of(task).normal_form(task), *task.inputs)


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
        asked = dict.fromkeys([*self.asked, *map(task_key, new)])
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
