"""The distillation that ends a run whose product is distilled."""

from __future__ import annotations

from pydantic import Field

from redqueen.config.section import Section


class DistillConfig(Section):
    """How one fresh adapter learns the right answers of all students, where ``run.product`` is distilled."""

    num_epochs: int = Field(default=2, ge=1)
    """Times that each answer is read. Ours: measured (experiments/RESULTS.md), with a LoRA of rank 16."""
    batch_size: int = Field(default=48, ge=1)
    """Answers of one update. Ours."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Highest learning rate; after the warm-up it falls linearly to zero. Ours: for the embedded base, measured; larger
    bases want less."""
    warmup_updates: int = Field(default=20, ge=0)
    """Updates over which the rate rises. Ours."""
    restart_every_steps: int = Field(default=0, ge=0)
    """Steps after which all students become an adapter distilled from all right answers so far; 0: never. Ours."""
