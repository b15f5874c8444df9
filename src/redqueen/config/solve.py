"""How students answer."""

from __future__ import annotations

from pydantic import Field

from redqueen.config.section import Section


class SolveConfig(Section):
    """How students answer."""

    num_attempts: int = Field(default=8, ge=1)
    """Attempts at each task: the solve rate's sample and the training group. AZR: 8."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature. AZR: 1."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus of sampling. AZR: 1."""
    max_new_tokens: int = Field(default=8096, ge=1)
    """Longest attempt, in tokens; at most half of the base's positions. AZR: 8096."""
    max_prompt_tokens: int = Field(default=6144, ge=16)
    """Longest solving prompt, in tokens; a task that needs more is rejected. AZR: 6144."""
    max_rows: int = Field(default=512, ge=1)
    """Sequences decoded at a time. Ours: affects speed and memory only."""
