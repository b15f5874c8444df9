"""The probe: all students answer the same archived tasks, so that they can be compared pair by pair.

Ratings and payoffs depend on the opponents; the probe gives all students the same tasks. All students sample their
attempts at a task from the same random numbers, which reduces the noise of the differences between them. All tasks were
proposed in the run: nothing here reads a held-out suite. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from redqueen.adapters.protocols import Sampler
from redqueen.config import EvolveConfig
from redqueen.domains.prompt_format import PromptFormat
from redqueen.domains.registry import JobRunner
from redqueen.propose.buffer import TaskArchive, draw_of_all_ages
from redqueen.records import Individual, Request, Task
from redqueen.solve import SampledAttempts, grade
from redqueen.streams import Streams

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


NUM_ATTEMPTS = 2
"""Attempts of each student at each task. Ours: more tasks are more informative than more attempts."""


@dataclass(frozen=True)
class ProbeResult:
    """Solve rates of ``members`` on ``tasks``: ``shares`` (members, tasks) in [0, 1], NaN where all attempts were lost.

    ``num_tokens`` were sampled for the attempts.
    """

    members: tuple[str, ...]
    tasks: tuple[Task, ...]
    shares: NDArray[np.float64]
    num_tokens: int = 0

    def joined(self, other: ProbeResult) -> ProbeResult:
        """Return one result for the members of both; their tasks are the same."""
        if not self.members or not other.members:
            return self if self.members else other
        shares = np.concatenate([self.shares, other.shares])
        return ProbeResult((*self.members, *other.members), self.tasks, shares, self.num_tokens + other.num_tokens)

    def means(self) -> dict[str, float]:
        """Return each member's mean share over the tasks for which every member has one; empty without such tasks."""
        known = ~np.isnan(self.shares).any(axis=0)
        if not known.any():
            return {}
        return dict(zip(self.members, self.shares[:, known].mean(axis=1).tolist(), strict=True))

    def solve_fracs(self) -> dict[str, float]:
        """Return the members' mean share by task id, for the tasks for which every member has one."""
        means = self.shares.mean(axis=0) if self.members else np.full(len(self.tasks), np.nan)
        return {task.id: float(mean) for task, mean in zip(self.tasks, means, strict=True) if not np.isnan(mean)}


@dataclass(frozen=True)
class Prober:
    """Lets members attempt tasks, ``num_attempts`` times each, with random numbers from ``streams``."""

    sampler: Sampler
    verifier: JobRunner
    prompt_format: PromptFormat
    tokenizer: PreTrainedTokenizerBase
    streams: Streams
    num_attempts: int

    def attempt(self, tasks: Sequence[Task], members: Sequence[Individual]) -> ProbeResult:
        """Let every member attempt every task and grade the attempts."""
        if not members or not tasks:
            return ProbeResult((), (), np.zeros((0, 0)))
        pairs = [(member, task) for member in members for task in tasks]
        prompts = {t.id: self.prompt_format.encode(self.tokenizer, self.prompt_format.solve(t)) for t in tasks}
        requests = [
            Request(member.slot, prompts[task.id], self.num_attempts, self.streams.seed("probe", task.id))
            for member, task in pairs
        ]
        groups = self.sampler.sample(requests)
        sampled = [
            SampledAttempts(task, member, prompts[task.id], tuple(group))
            for (member, task), group in zip(pairs, groups, strict=True)
        ]
        graded = grade(sampled, self.verifier, self.prompt_format, self.tokenizer)
        fracs = [np.nan if one.solve_frac is None else one.solve_frac for one in graded]
        shares = np.array(fracs, dtype=np.float64).reshape(len(members), len(tasks))
        num_tokens = sum(len(c.tokens) for one in sampled for c in one.completions)
        return ProbeResult(tuple(m.id for m in members), tuple(tasks), shares, num_tokens)


def probe_students(
    archive: TaskArchive, students: Sequence[Individual], prober: Prober, rules: EvolveConfig, rng: np.random.Generator
) -> ProbeResult:
    """Let the students attempt archived tasks of all ages.

    The result is empty where the config has no probe, the archive is empty, or there are fewer than two students.
    """
    comparing = rules.fitness == "probe" and rules.enabled and len(students) > 1
    drawn = draw_of_all_ages(archive.entries, rules.probe_tasks, rng) if comparing else []
    return prober.attempt([one.task for one in drawn], students)


def probe_figures(result: ProbeResult) -> dict[str, float]:
    """Return the metrics of a probe; an empty result has none."""
    means = result.means()
    if not means:
        return {}
    return {"evolve/probe_rate": fmean(means.values()), "evolve/probe_tokens": float(result.num_tokens)}
