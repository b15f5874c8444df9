"""Who lives."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from redqueen.config.section import Section


class PopulationConfig(Section):
    """Who lives."""

    num_teachers: int = Field(default=4, ge=0)
    """Teachers. Paper: 4 (ablations 1 and 8)."""
    num_students: int = Field(default=4, ge=0)
    """Students. Paper: 4 (ablations 1 and 8)."""
    single: bool = False
    """One adapter plays both roles; then both numbers must be 1. Paper: its baseline, AZR."""
    lora_rank: int = Field(default=32, ge=1)
    """Rank of every adapter. Paper: 32."""
    lora_alpha: float = Field(default=64.0, gt=0)
    """Adapter scale is lora_alpha / lora_rank. Paper: 64."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """Adapted modules. Ours: all linear projections, consistent with the reported adapter size."""

    @field_validator("lora_targets")
    @classmethod
    def _something_adapted(cls, targets: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not targets or "" in (targets if isinstance(targets, tuple) else ()):
            raise ValueError('name at least one kind of module, as ["q_proj", "v_proj"], or "all-linear"')
        return targets

    @model_validator(mode="after")
    def _somebody_on_each_side(self) -> PopulationConfig:
        if self.single and (self.num_teachers, self.num_students) != (1, 1):
            raise ValueError("single = true is one adapter in both roles: set num_teachers = 1 and num_students = 1")
        if self.num_teachers < 1:
            raise ValueError("num_teachers must be at least 1: a teacher has to write the tasks")
        if self.num_students < 1:
            raise ValueError("num_students must be at least 1: a student has to solve the tasks")
        return self

    @property
    def arm(self) -> str:
        """``single`` or ``4T+4S``."""
        return "single" if self.single else f"{self.num_teachers}T+{self.num_students}S"

    @property
    def num_members(self) -> int:
        """Members that live at a time."""
        return 1 if self.single else self.num_teachers + self.num_students
