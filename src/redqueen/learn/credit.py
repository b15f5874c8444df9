"""Phase 5, first half: outcomes become rewards, rewards become advantages, and both become rollouts for the learner.

Plain arithmetic on records: nothing here knows a tensor of the model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from redqueen.config import LearnConfig
from redqueen.learn.advantage import advantages
from redqueen.learn.baselines import Baselines
from redqueen.learn.reward import pressed_reward, student_reward, teacher_reward
from redqueen.nouns import Rejection, Rollout, Task
from redqueen.propose.proposing import Proposal
from redqueen.propose.task_memory import Pressure
from redqueen.solve.solving import Answered
from redqueen.verify import well_formed


@dataclass(frozen=True)
class Credit:
    """What was earned. ``proposal_rewards[i]`` and ``proposal_advantages[i]`` belong to proposal i (None: no sample);
    ``attempt_rewards[j][a]`` and ``attempt_advantages[j][a]`` to attempt a of ``answered[j]``. ``rollouts`` feed the
    learner; ``baselines`` are the teachers' after this step."""

    proposal_rewards: tuple[float | None, ...]
    proposal_advantages: tuple[float | None, ...]
    attempt_rewards: tuple[tuple[float | None, ...], ...]
    attempt_advantages: tuple[tuple[float | None, ...], ...]
    rollouts: tuple[Rollout, ...]
    baselines: Baselines = field(default_factory=Baselines)


def solve_fracs(answered: Sequence[Answered]) -> dict[str, float]:
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
    answered: Sequence[Answered],
    config: LearnConfig,
    pressures: Mapping[str, Pressure] | None = None,
    baselines: Baselines | None = None,
) -> Credit:
    """Reward every proposal and attempt and estimate advantages, per adapter and role.

    ``pressures`` (by task id) are what the config's counter-pressures read; without them there are none. ``baselines``
    are the teachers' as they were before the step.
    """
    rewards = _proposal_rewards(judged, answered, config, pressures or {})
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


def earned(credit: Credit, proposals: Sequence[Proposal], answered: Sequence[Answered]) -> dict[str, tuple[float, ...]]:
    """Return every reward of the step by the member that earned it; the single agent has those of both roles."""
    found: dict[str, list[float]] = defaultdict(list)
    for proposal, reward in zip(proposals, credit.proposal_rewards, strict=True):
        if reward is not None:
            found[proposal.candidate.teacher].append(reward)
    for one, rewards in zip(answered, credit.attempt_rewards, strict=True):
        found[one.student.id] += [reward for reward in rewards if reward is not None]
    return {name: tuple(rewards) for name, rewards in found.items() if rewards}


def add_latest_rewards(
    latest: Mapping[str, tuple[float, ...]], ids: Iterable[str], earned: Mapping[str, Sequence[float]], num_kept: int
) -> dict[str, tuple[float, ...]]:
    """Return each one's mean rewards of its last ``num_kept`` steps, in order, for those in ``ids``."""
    means = {name: (fmean(rewards),) for name, rewards in earned.items()}
    return {name: (*latest.get(name, ()), *means.get(name, ()))[-num_kept:] for name in ids}


def _proposal_rewards(
    judged: Sequence[Task | Rejection],
    answered: Sequence[Answered],
    config: LearnConfig,
    pressures: Mapping[str, Pressure],
) -> list[float | None]:
    solved = solve_fracs(answered)
    rewards: list[float | None] = []
    for verdict in judged:
        if isinstance(verdict, Rejection):
            infra = verdict.reason == "infra"  # the judge's own trouble: no sample
            rewards.append(None if infra else teacher_reward(None))
        elif verdict.id in solved:
            reward = teacher_reward(solved[verdict.id], config.unsolved_reward, config.certain_reward)
            if verdict.id in pressures:
                reward = pressed_reward(reward, solved[verdict.id], pressures[verdict.id], config)
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
        earned = {kind: np.array([rewards[i] for i in indices], dtype=np.float64) for kind, indices in own.items()}
        if config.teacher_baseline == "running":
            estimated = baselines.advantages(teacher, earned)
            baselines = baselines.updated(teacher, earned, config.baseline_decay_frac)
        else:
            estimated = _within_groups(earned, config)
        for kind, indices in own.items():
            for i, value in zip(indices, estimated[kind].tolist(), strict=True):
                result[i] = value
    return result, baselines


def _within_groups(earned: Mapping[str, NDArray[np.float64]], config: LearnConfig) -> dict[str, NDArray[np.float64]]:
    values = [group.tolist() for group in earned.values()]
    estimated = advantages(config.estimator, values, list(earned))
    return {kind: np.array(group) for kind, group in zip(earned, estimated, strict=True)}


def _attempt_rewards(answered: Answered) -> tuple[float | None, ...]:
    grades = [outcome.grade for outcome in answered.outcomes]
    return tuple(None if g.lost else student_reward(g, well_formed(g)) for g in grades)


def _attempt_advantages(
    answered: Sequence[Answered], rewards: Sequence[tuple[float | None, ...]], config: LearnConfig
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
    """Group the proposals that share a prompt, so that the learner reads it once; ``weight`` times their advantages."""
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


def _attempt_rollouts(answered: Sequence[Answered], advantages: Sequence[tuple[float | None, ...]]) -> list[Rollout]:
    """One rollout a task and student; groups whose advantages are all 0 teach nothing and are left out."""
    rollouts = []
    for one, row in zip(answered, advantages, strict=True):
        kept = one.kept
        values = tuple(row[a] or 0.0 for a in kept)
        if any(values):
            completions = tuple(one.completions[a] for a in kept)
            rollouts.append(Rollout(one.student.slot, one.prompt, completions, values))
    return rollouts
