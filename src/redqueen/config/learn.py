"""The policy-gradient step."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from redqueen.config.section import Section


class LearnConfig(Section):
    """The policy-gradient step."""

    estimator: Literal["reinforce_pp_baseline", "trr_pp", "grpo", "rloo"] = "reinforce_pp_baseline"
    """How rewards become advantages. Paper: REINFORCE++ with a group baseline. ``trr_pp`` is AZR's."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Of AdamW. Ours: unknown in the paper; AZR has 1e-6 for full fine-tuning, LoRA wants 10 to 100 times that."""
    train_teachers: bool = True
    """False freezes the proposing role. Ours: a control."""
    train_students: bool = True
    """False freezes the solving role. Ours: a control."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """AdamW. Ours: the common default."""
    beta2: float = Field(default=0.99, ge=0, lt=1)
    """AdamW. Ours: runs of a few hundred steps want a shorter memory than 0.999."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW. Ours: decay would pull an adapter back to the base for no stated reason."""
    clip: float = Field(default=0.2, gt=0)
    """Range of the importance ratio. AZR: 0.2. It never acts while ``old_logprobs`` is
    ``recompute``: a batch is used once, by the weights that sampled it."""
    old_logprobs: Literal["recompute", "sampler"] = "recompute"
    """Whose log-probabilities count as those of the policy that sampled: ``recompute`` takes those of the training
    pass itself, right where sampler and learner share the weights, since rounding then cannot clip anything;
    ``sampler`` takes those that came with the samples, for a sampler elsewhere. Ours."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradient clipping, per member. Ours: one member's outlier does not slow the others."""
    micro_batch_tokens: int = Field(default=8192, ge=64)
    """Tokens of one forward and backward pass. Ours: affects speed and memory only."""
    gradient_checkpointing: bool = False
    """Trade time for memory on large models. Ours: a small base does not need it."""
    unsolved_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when no attempt solved the task. Paper: 0 (AZR's code: -0.5)."""
    certain_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when every attempt solved it. Paper: 1 - s = 0 (AZR's code: -0.5)."""
    novelty_bonus: float = Field(default=0.0, ge=0, le=1)
    """Added to a teacher's reward for a solved task of a class never seen before. Ours: a
    counter-pressure, off, since the paper pays 1 - s alone."""
    crowding_penalty: float = Field(default=0.0, ge=0, le=1)
    """Times the share of a task's class among recent tasks, taken off the teacher's reward. Ours: as above."""
    size_guard_frac: float = Field(default=0.0, ge=0, le=1)
    """Share of the hardness explained by size alone that a teacher is not paid for. Ours: as above."""
