"""The memory of earlier tasks: counts of their classes and sizes, from which novelty and crowding are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import PlainSerializer

from redqueen.domains.registry import kind_of
from redqueen.journal.schema import MEASURES
from redqueen.records import Crowding, Task

FORGOTTEN_WEIGHT = 1e-3
"""Counts that decay below this are dropped, to keep the memory small."""

PRIOR_TASKS = 8.0
"""Prior strength: a size's mean solve rate is shrunk to its kind's as by this many tasks."""


Names = Annotated[frozenset[str], PlainSerializer(sorted)]
"""A set of names; checkpoints store it sorted, so that equal states give equal files."""


@dataclass(frozen=True)
class TaskMemory:
    """``by_teacher[teacher][class]``: decayed count of tasks. ``ever``: all classes so far. ``sizes[size]``: decayed
    (sum of solve rates, number of tasks), also under each kind's name. Each step multiplies by ``decay_frac``, (0, 1].
    """

    decay_frac: float = 0.95
    by_teacher: dict[str, dict[str, float]] = field(default_factory=dict)
    ever: Names = field(default_factory=frozenset)
    sizes: dict[str, tuple[float, float]] = field(default_factory=dict)


def remember(memory: TaskMemory, tasks: Sequence[Task], solve_fracs: Mapping[str, float]) -> TaskMemory:
    """Return the memory after one step: everything decays once, then the step's tasks are added.

    ``solve_fracs`` are the solve rates by task id; a task without one (all attempts lost) is not added to ``sizes``.
    """
    keep = memory.decay_frac
    by_teacher = {t: _decayed(classes, keep) for t, classes in memory.by_teacher.items()}
    sizes = {s: (total * keep, n * keep) for s, (total, n) in memory.sizes.items() if n * keep >= FORGOTTEN_WEIGHT}
    for task in tasks:
        own, name = by_teacher.setdefault(task.teacher, {}), kind_of(task).behaviour_class(task)
        own[name] = own.get(name, 0.0) + 1.0
        if task.id in solve_fracs:
            for size in (task.kind, kind_of(task).size_class(task)):
                total, n = sizes.get(size, (0.0, 0.0))
                sizes[size] = (total + solve_fracs[task.id], n + 1.0)
    return TaskMemory(keep, by_teacher, memory.ever | {kind_of(task).behaviour_class(task) for task in tasks}, sizes)


def keep_only(memory: TaskMemory, teachers: Iterable[str]) -> TaskMemory:
    """Drop the counts of teachers that have left, to keep the memory small; ``ever`` is kept."""
    known = set(teachers)
    by_teacher = {name: classes for name, classes in memory.by_teacher.items() if name in known}
    return TaskMemory(memory.decay_frac, by_teacher, memory.ever, memory.sizes)


def crowding(memory: TaskMemory, tasks: Sequence[Task], solve_fracs: Mapping[str, float]) -> dict[str, Crowding]:
    """Return novelty, crowding and hardness of a step's tasks by task id; ``memory`` is from before the step."""
    classes = {task.id: kind_of(task).behaviour_class(task) for task in tasks}
    of_step = Counter(classes.values())
    recent = Counter(of_step)
    for counts in memory.by_teacher.values():
        recent.update({name: count * memory.decay_frac for name, count in counts.items()})
    total = sum(recent.values())
    result = {}
    for task in tasks:
        name = classes[task.id]
        novelty = 0.0 if name in memory.ever else 1.0 / of_step[name]
        missed = 1.0 - solve_fracs.get(task.id, 1.0)
        hardness = min(missed, _size_hardness(memory, task))
        result[task.id] = Crowding(name, novelty, recent[name] / total, hardness)
    return result


def _decayed(counts: Mapping[str, float], keep: float) -> dict[str, float]:
    return {name: count * keep for name, count in counts.items() if count * keep >= FORGOTTEN_WEIGHT}


def _size_hardness(memory: TaskMemory, task: Task) -> float:
    """How far the (shrunken) mean solve rate of this size is below that of the kind, at least 0; 0 without data."""
    total, n = memory.sizes.get(task.kind, (0.0, 0.0))
    if n == 0:
        return 0.0
    of_kind = total / n
    own_total, own_n = memory.sizes.get(kind_of(task).size_class(task), (0.0, 0.0))
    return max(0.0, of_kind - (own_total + PRIOR_TASKS * of_kind) / (own_n + PRIOR_TASKS))


STRUCTURE = {
    "curriculum/ast_depth": "ast_depth",
    "curriculum/cyclomatic": "cyclomatic",
    "curriculum/lines": "num_lines",
    "curriculum/variables": "num_variables",
}
"""Structural metrics: each is the mean of this column of the task table. Measures of other domains are added."""

NOT_DEFINED = float("nan")


def curriculum_metrics(measures: Sequence[Mapping[str, float]], num_behaviours: int) -> dict[str, float]:
    """Return the step's ``curriculum/*`` metrics: means over its valid tasks, and the coverage so far.

    ``num_behaviours`` is the number of distinct behaviour signatures of all tasks up to this step. Without a valid
    task the means are NaN, which the journal stores as "not defined".
    """
    own = {f"curriculum/{name}": name for m in measures for name in m if name not in MEASURES}
    columns = {name: [m[at] for m in measures if at in m] for name, at in (STRUCTURE | own).items()}
    means = {name: sum(values) / len(values) if values else NOT_DEFINED for name, values in columns.items()}
    return {**means, "curriculum/coverage": float(num_behaviours)}
