"""The probe: all students answer the same archived tasks, so that they can be compared pair by pair.

A rating moves with the opponents, and a payoff depends on the opponents; the probe gives all students the same tasks.
Attempts at one task are drawn from equal random numbers for all students, which takes part of the noise out of their
differences. Its tasks were all posed inside the run: nothing here reads a held-out suite. Source: ours.
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
"""Attempts of each student at each task: more tasks are more informative than more attempts (ours)."""


@dataclass(frozen=True)
class Look:
    """What ``members`` solved of ``tasks``: ``shares`` (members, tasks) in [0, 1], NaN where all attempts were lost.

    ``num_tokens`` were sampled for it.
    """

    members: tuple[str, ...]
    tasks: tuple[Task, ...]
    shares: NDArray[np.float64]
    num_tokens: int = 0

    def beside(self, other: Look) -> Look:
        """Return both probes of the same tasks as one."""
        if not self.members or not other.members:
            return self if self.members else other
        shares = np.concatenate([self.shares, other.shares])
        return Look((*self.members, *other.members), self.tasks, shares, self.num_tokens + other.num_tokens)

    def means(self) -> dict[str, float]:
        """Return each member's mean share over the tasks that all members have a share of; empty without any."""
        known = ~np.isnan(self.shares).any(axis=0)
        if not known.any():
            return {}
        return dict(zip(self.members, self.shares[:, known].mean(axis=1).tolist(), strict=True))

    def solve_fracs(self) -> dict[str, float]:
        """Return the mean share of the members by task id, of the tasks that all have a share of."""
        means = self.shares.mean(axis=0) if self.members else np.full(len(self.tasks), np.nan)
        return {task.id: float(mean) for task, mean in zip(self.tasks, means, strict=True) if not np.isnan(mean)}


@dataclass(frozen=True)
class Prober:
    """Asks members; ``num_attempts`` of each at each task. The random numbers are those of ``streams``."""

    sampler: Sampler
    verifier: JobRunner
    prompt_format: PromptFormat
    tokenizer: PreTrainedTokenizerBase
    streams: Streams
    num_attempts: int

    def look(self, tasks: Sequence[Task], members: Sequence[Individual]) -> Look:
        """Return what ``members`` solve of ``tasks``."""
        if not members or not tasks:
            return Look((), (), np.zeros((0, 0)))
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
        return Look(tuple(m.id for m in members), tuple(tasks), shares, num_tokens)


def probe_students(
    archive: TaskArchive, students: Sequence[Individual], prober: Prober, rules: EvolveConfig, rng: np.random.Generator
) -> Look:
    """Return what the students solve of archived tasks of all ages.

    Empty where the config asks for no probe, the archive is empty, or there are no members to compare.
    """
    comparing = rules.fitness == "probe" and rules.enabled and len(students) > 1
    drawn = draw_of_all_ages(archive.entries, rules.probe_tasks, rng) if comparing else []
    return prober.look([one.task for one in drawn], students)


def probe_figures(look: Look) -> dict[str, float]:
    """Return the metrics of a probe; none of an empty one."""
    means = look.means()
    if not means:
        return {}
    return {"evolve/probe_rate": fmean(means.values()), "evolve/probe_tokens": float(look.num_tokens)}
