"""The policy-gradient step."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from redqueen.config.section import Section


class LearnConfig(Section):
    """The policy-gradient step."""

    estimator: Literal["reinforce_pp_baseline", "trr_pp", "grpo", "rloo"] = "reinforce_pp_baseline"
    """How rewards become advantages. Paper: REINFORCE++ with a group baseline. ``trr_pp`` is AZR's."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Of AdamW. Ours: unknown in the paper; AZR has 1e-6 for full fine-tuning, LoRA wants 10 to 100 times that."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps over which the learning rate rises from 0 to its full size; 0: at once. Ours: moments of the first steps
    rest on little."""
    decay: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls between ``decay_from_step`` and ``decay_to_step``. Ours: readers name no schedule; a
    constant one lost over 300 steps what it had taught."""
    decay_from_step: int = Field(default=0, ge=0)
    """The last step with the full learning rate. Ours."""
    decay_to_step: int = Field(default=0, ge=0)
    """The step from which on the learning rate stays at its floor; 0: the run's last. Ours: a run that ends by tokens
    has to name it."""
    decay_floor_frac: float = Field(default=0.05, ge=0, le=1)
    """Share of the learning rate that is left at the end of the decay. Ours: a twentieth, so that nobody stands still
    while its opponents move."""
    teacher_rate_factor: float = Field(default=1.0, ge=0)
    """Times the learning rate for teachers; the single agent takes 1. Ours: a teacher's step rests on fewer samples
    than a student's, and AdamW makes it as large."""
    student_rate_factor: float = Field(default=1.0, ge=0)
    """Times the learning rate for students; the single agent takes 1. Ours: as above."""
    proposal_weight: float = Field(default=1.0, gt=0)
    """Times the advantages of proposals in the loss. Of the single agent it says how much a step is about proposing; a
    lone teacher's AdamW hardly heeds it (see ``teacher_rate_factor``). Ours: one step serves both roles, and to write
    short tasks is learned faster than to solve long ones."""
    kl_weight: float = Field(default=0.0, ge=0)
    """Weight of the divergence from the base in the loss, per nat and token; 0: none. Paper: none."""
    teacher_baseline: Literal["group", "running"] = "group"
    """What a teacher's reward is compared with: its proposals of the kind in this step, or a running mean of them over
    its steps. Ours: a group that is wholly invalid has no gradient under the first, and nothing leads out of it."""
    baseline_decay_frac: float = Field(default=0.9, ge=0, lt=1)
    """Share of a running baseline kept each step. Ours: ten steps' memory."""
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

    @model_validator(mode="after")
    def _consistent(self) -> LearnConfig:
        if 0 < self.decay_to_step <= self.decay_from_step:
            raise ValueError("decay_to_step must be above decay_from_step, or 0 for the run's last step")
        return self
