"""Rewards: what a teacher earns for a proposal and a student for an attempt.

Grounds (method): invalid -1 (re-implementations, AZR); valid 1 - s with 0 at s = 0 (paper); student +1 / -0.5 / -1 for
right, wrong and unparsable (re-implementations, AZR).
"""

from __future__ import annotations

from redqueen.config import LearnConfig
from redqueen.nouns import Grade
from redqueen.propose.task_memory import Pressure

INVALID_REWARD = -1.0
CORRECT_REWARD = 1.0
WRONG_REWARD = -0.5
UNPARSABLE_REWARD = -1.0


def teacher_reward(solve_frac: float | None, unsolved_reward: float = 0.0, certain_reward: float = 0.0) -> float:
    """Return a teacher's reward for one proposal.

    ``solve_frac`` in [0, 1] is the share of the opponents' attempts that were right; None: the proposal was invalid.
    ``unsolved_reward`` and ``certain_reward`` are paid at 0 and at 1 (the paper: 0 and 0; AZR's code: -0.5).
    """
    if solve_frac is None:
        return INVALID_REWARD
    if solve_frac <= 0:
        return unsolved_reward
    if solve_frac >= 1:
        return certain_reward
    return 1.0 - solve_frac


def pressed_reward(reward: float, solve_frac: float, pressure: Pressure, config: LearnConfig) -> float:
    """Return a valid task's reward under the counter-pressures that the config switches on (all ours, off by default).

    For a task solved at least once (``solve_frac`` > 0), a new class adds ``novelty_bonus``, and hardness that
    size alone explains is not rewarded. Unsolved tasks get neither: otherwise impossible tasks would pay. A crowded
    class always costs. Never less than for an invalid proposal.
    """
    if solve_frac > 0:
        reward += config.novelty_bonus * pressure.novelty - config.size_guard_frac * pressure.size_hardness
    return max(INVALID_REWARD, reward - config.crowding_penalty * pressure.crowd_frac)


def student_reward(grade: Grade, well_formed: bool) -> float:
    """Return a student's reward for one graded attempt (never ask for a lost one)."""
    if grade.correct:
        return CORRECT_REWARD
    return WRONG_REWARD if well_formed else UNPARSABLE_REWARD
