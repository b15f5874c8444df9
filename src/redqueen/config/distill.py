"""Distillation: students that learn the verified answers of all students."""

from __future__ import annotations

from pydantic import Field

from redqueen.config.section import Section


class DistillConfig(Section):
    """How a fresh adapter is fine-tuned on verified answers, for the students and for a distilled product."""

    every_steps: int = Field(default=0, ge=0)
    """Steps between distillations, each of which resets every student to an adapter fine-tuned on all verified answers
    so far; 0: none. Ours: STaR and ReST-EM restart from the base in each round."""
    num_epochs: int = Field(default=2, ge=1)
    """Times that each answer is used. Ours: measured (experiments/RESULTS.md), with a LoRA of rank 16."""
    batch_size: int = Field(default=48, ge=1)
    """Answers of one update. Ours."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Highest learning rate; after the warm-up it falls linearly to zero. Ours: measured for the embedded base; larger
    bases need a smaller one."""
    warmup_updates: int = Field(default=20, ge=0)
    """Updates over which the rate rises. Ours."""
