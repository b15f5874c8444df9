"""Rewards, running baselines and credit: outcomes become rewards, advantages, and rollouts for the learner.

The running baseline of a teacher: m and q are the running means of its rewards r of one kind and of their squares. A
proposal's advantage is (r - m) / s, where s^2 is the mean, over the step's kinds, of the larger of q - m^2 and the
step's own variance. Afterwards m <- d m + (1 - d) mean(r), and q likewise; a kind that is new to the teacher starts
with the means of this step. Source: REINFORCE with a moving baseline (Williams 1992); by kind: ours.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from redqueen.config import LearnConfig
from redqueen.learn.advantages import SMALLEST_STD, advantages
from redqueen.propose.proposing import Proposal
from redqueen.records import Crowding, Grade, Rejection, Rollout, Task
from redqueen.solve import GradedAttempts

INVALID_REWARD = -1.0
CORRECT_REWARD = 1.0
WRONG_REWARD = -0.5
UNPARSABLE_REWARD = -1.0

BASELINE_DECAY_FRAC = 0.9
"""Decay d of the running baselines: a memory of about ten steps (ours)."""


def teacher_reward(solve_frac: float | None, unsolved_reward: float = 0.0, certain_reward: float = 0.0) -> float:
    """Return a teacher's reward for one proposal.

    ``solve_frac`` in [0, 1] is the share of the opponents' attempts that were right, corrected for guessing
    (``beyond_chance``); None: the proposal was invalid. ``unsolved_reward`` and ``certain_reward`` are the rewards at
    0 and at 1 (the paper: 0 and 0; AZR's code: -0.5).
    """
    if solve_frac is None:
        return INVALID_REWARD
    if solve_frac <= 0:
        return unsolved_reward
    if solve_frac >= 1:
        return certain_reward
    return 1.0 - solve_frac


def diversity_reward(reward: float, solve_frac: float, crowding: Crowding, config: LearnConfig) -> float:
    """Return a valid task's reward with the diversity terms that the config enables (all ours, off by default).

    If the task was solved at least once (``solve_frac`` > 0), a new class adds ``novelty_bonus``, and hardness that
    size alone explains is subtracted. Unsolved tasks get neither: otherwise impossible tasks would be rewarded. A
    crowded class always reduces the reward, which is never below that of an invalid proposal.
    """
    if solve_frac > 0:
        reward += config.novelty_bonus * crowding.novelty - config.size_guard_frac * crowding.size_hardness
    return max(INVALID_REWARD, reward - config.crowding_penalty * crowding.crowd_frac)


_ILL_FORMED = frozenset({"unparsable", "invalid-input", "syntax", "forbidden", "infra"})


def well_formed(grade: Grade) -> bool:
    """Return whether the answer could be read and checked, right or wrong. Check ``grade.lost`` first."""
    return grade.verdict not in _ILL_FORMED


def student_reward(grade: Grade, well_formed: bool) -> float:
    """Return a student's reward for one graded attempt, which must not be lost."""
    if grade.correct:
        return CORRECT_REWARD
    return WRONG_REWARD if well_formed else UNPARSABLE_REWARD


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
        """Drop the baselines of all other teachers."""
        known = set(teachers)
        return Baselines({name: kinds for name, kinds in self.by_teacher.items() if name in known})

    def _moments(self, teacher: str, kind: str, group: NDArray[np.float64]) -> Moments:
        known = self.by_teacher.get(teacher, {}).get(kind)
        return known or (float(group.mean()), float((group**2).mean()))


@dataclass(frozen=True)
class Credit:
    """Rewards and advantages of a step: ``proposal_rewards[i]`` and ``proposal_advantages[i]`` of proposal i (None: not
    counted), ``attempt_rewards[j][a]`` and ``attempt_advantages[j][a]`` of attempt a of ``answered[j]``. ``rollouts``
    are for the learner; ``baselines`` are the teachers' after this step."""

    proposal_rewards: tuple[float | None, ...]
    proposal_advantages: tuple[float | None, ...]
    attempt_rewards: tuple[tuple[float | None, ...], ...]
    attempt_advantages: tuple[tuple[float | None, ...], ...]
    rollouts: tuple[Rollout, ...]
    baselines: Baselines = field(default_factory=Baselines)


GUESS_Z = 1.645
"""Standard errors by which a solve rate must exceed chance: a one-sided test at about 5 %, at up to 23 % where two
attempts are made."""


def beyond_chance(solve_frac: float, chance: float, num_attempts: int) -> float:
    """Return a solve rate s rescaled so that guessing gives 0 and certainty 1: (s - c) / (1 - c), with the chance c.

    It is 0 where s does not exceed c by ``GUESS_Z`` standard errors sqrt(c (1 - c) / n) of n attempts (ours).
    """
    if solve_frac - chance <= GUESS_Z * math.sqrt(chance * (1 - chance) / num_attempts):
        return 0.0
    return (solve_frac - chance) / (1 - chance)


def solve_fracs(answered: Sequence[GradedAttempts]) -> dict[str, float]:
    """Return each task's solve rate in [0, 1]: the mean over the students that attempted it.

    A task has no entry when every attempt at it was lost.
    """
    by_task: dict[str, list[float]] = defaultdict(list)
    for one in answered:
        if one.solve_frac is not None:
            by_task[one.task.id].append(one.solve_frac)
    return {task: fmean(fracs) for task, fracs in by_task.items()}


def assign_credit(
    proposals: Sequence[Proposal],
    judged: Sequence[Task | Rejection],
    answered: Sequence[GradedAttempts],
    config: LearnConfig,
    crowding: Mapping[str, Crowding] | None = None,
    baselines: Baselines | None = None,
) -> Credit:
    """Reward every proposal and attempt and estimate advantages, per adapter and role.

    ``crowding`` (by task id) is the input of the config's diversity terms; without it there are none. ``baselines`` are
    the teachers' before the step.
    """
    rewards = _proposal_rewards(judged, answered, config, crowding or {})
    proposal_advantages, baselines = _proposal_advantages(proposals, rewards, config, baselines or Baselines())
    attempt_rewards = tuple(_attempt_rewards(one) for one in answered)
    attempt_advantages = _attempt_advantages(answered, attempt_rewards, config)
    rollouts: list[Rollout] = []
    if config.train_teachers:
        rollouts += _proposal_rollouts(proposals, proposal_advantages, config.proposal_weight)
    if config.train_students:
        rollouts += _attempt_rollouts(answered, attempt_advantages)
    return Credit(
        tuple(rewards), tuple(proposal_advantages), attempt_rewards, attempt_advantages, tuple(rollouts), baselines
    )


def rewards_by_member(
    credit: Credit, proposals: Sequence[Proposal], answered: Sequence[GradedAttempts]
) -> dict[str, tuple[float, ...]]:
    """Return all rewards of the step by member id; the single agent has those of both roles."""
    found: dict[str, list[float]] = defaultdict(list)
    for proposal, reward in zip(proposals, credit.proposal_rewards, strict=True):
        if reward is not None:
            found[proposal.candidate.teacher].append(reward)
    for one, rewards in zip(answered, credit.attempt_rewards, strict=True):
        found[one.student.id] += [reward for reward in rewards if reward is not None]
    return {name: tuple(rewards) for name, rewards in found.items() if rewards}


def add_latest_rewards(
    latest: Mapping[str, tuple[float, ...]], ids: Iterable[str], new: Mapping[str, Sequence[float]], num_kept: int
) -> dict[str, tuple[float, ...]]:
    """Return the mean rewards of the last ``num_kept`` steps, in order, of each member in ``ids``."""
    means = {name: (fmean(rewards),) for name, rewards in new.items()}
    return {name: (*latest.get(name, ()), *means.get(name, ()))[-num_kept:] for name in ids}


def _proposal_rewards(
    judged: Sequence[Task | Rejection],
    answered: Sequence[GradedAttempts],
    config: LearnConfig,
    crowding: Mapping[str, Crowding],
) -> list[float | None]:
    solved = solve_fracs(answered)
    num_attempts = Counter[str]()
    for one in answered:
        num_attempts[one.task.id] += len(one.kept)
    rewards: list[float | None] = []
    for verdict in judged:
        if isinstance(verdict, Rejection):
            infra = verdict.reason == "infra"  # the verifier failed: not counted
            rewards.append(None if infra else teacher_reward(None))
        elif verdict.id in solved:
            solve_frac = beyond_chance(solved[verdict.id], verdict.chance, num_attempts[verdict.id])
            reward = teacher_reward(solve_frac, config.unsolved_reward, config.certain_reward)
            if verdict.id in crowding:
                reward = diversity_reward(reward, solve_frac, crowding[verdict.id], config)
            rewards.append(reward)
        else:
            rewards.append(None)
    return rewards


def _proposal_advantages(
    proposals: Sequence[Proposal], rewards: Sequence[float | None], config: LearnConfig, baselines: Baselines
) -> tuple[list[float | None], Baselines]:
    """A teacher's group is its proposals of one kind in this step (ours)."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, proposal in enumerate(proposals):
        if rewards[i] is not None:
            groups[proposal.candidate.teacher][proposal.candidate.kind].append(i)
    result: list[float | None] = [None] * len(proposals)
    for teacher, own in groups.items():
        by_kind = {kind: np.array([rewards[i] for i in indices], dtype=np.float64) for kind, indices in own.items()}
        if config.teacher_baseline == "running":
            estimated = baselines.advantages(teacher, by_kind)
            baselines = baselines.updated(teacher, by_kind, BASELINE_DECAY_FRAC)
        else:
            estimated = _within_groups(by_kind, config)
        for kind, indices in own.items():
            for i, value in zip(indices, estimated[kind].tolist(), strict=True):
                result[i] = value
    return result, baselines


def _within_groups(by_kind: Mapping[str, NDArray[np.float64]], config: LearnConfig) -> dict[str, NDArray[np.float64]]:
    values = [group.tolist() for group in by_kind.values()]
    estimated = advantages(config.estimator, values, list(by_kind))
    return {kind: np.array(group) for kind, group in zip(by_kind, estimated, strict=True)}


def _attempt_rewards(answered: GradedAttempts) -> tuple[float | None, ...]:
    grades = [outcome.grade for outcome in answered.outcomes]
    return tuple(None if g.lost else student_reward(g, well_formed(g)) for g in grades)


def _attempt_advantages(
    answered: Sequence[GradedAttempts], rewards: Sequence[tuple[float | None, ...]], config: LearnConfig
) -> tuple[tuple[float | None, ...], ...]:
    """A student's group is its attempts at one task."""
    result: list[list[float | None]] = [[None] * len(one.outcomes) for one in answered]
    for slot in sorted({one.student.slot for one in answered}):
        own = [j for j, one in enumerate(answered) if one.student.slot == slot]
        values = [[rewards[j][a] or 0.0 for a in answered[j].kept] for j in own]
        kinds = [answered[j].task.kind for j in own]
        estimated = advantages(config.estimator, values, kinds)
        for j, group in zip(own, estimated, strict=True):
            for a, value in zip(answered[j].kept, group, strict=True):
                result[j][a] = value
    return tuple(tuple(row) for row in result)


def _proposal_rollouts(
    proposals: Sequence[Proposal], advantages: Sequence[float | None], weight: float
) -> list[Rollout]:
    """Group the proposals that share a prompt, so that it is run once; advantages are multiplied by ``weight``."""
    shared: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for i, proposal in enumerate(proposals):
        if advantages[i] is not None:
            shared[proposal.slot, proposal.prompt].append(i)
    return [
        Rollout(
            slot,
            prompt,
            tuple(proposals[i].completion for i in indices),
            tuple(weight * (advantages[i] or 0.0) for i in indices),
        )
        for (slot, prompt), indices in shared.items()
    ]


def _attempt_rollouts(
    answered: Sequence[GradedAttempts], advantages: Sequence[tuple[float | None, ...]]
) -> list[Rollout]:
    """One rollout per task and student; groups whose advantages are all 0 have no gradient and are left out."""
    rollouts = []
    for one, row in zip(answered, advantages, strict=True):
        kept = one.kept
        values = tuple(row[a] or 0.0 for a in kept)
        if any(values):
            completions = tuple(one.completions[a] for a in kept)
            rollouts.append(Rollout(one.student.slot, one.prompt, completions, values))
    return rollouts
