"""External fitness."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from redqueen.config.section import Section


class EvaluateConfig(Section):
    """External fitness on the frozen suite: reported, never selected on."""

    every_steps: int = Field(default=0, ge=0)
    """Steps between evaluations; 0: only before the first step and after the last. Ours: selection ignores it."""
    num_samples: int = Field(default=2, ge=1)
    """Sampled attempts an item; greedy takes one more. Ours: items are many, so few attempts each suffice."""
    part: Literal["all", "development", "decision"] = "all"
    """Items that are scored: all, the quarter on which settings may be tried, or the rest, on which nothing is tuned.
    Ours: the split was made once, by a digest of the names of functions."""
    control: bool = True
    """Score once, before the first step, the bare base with every thought begun in the prompt, where the prompt format
    has thoughts. Ours: what is reached by being told to think was not learned."""
    max_items: int = Field(default=0, ge=0)
    """Items scored, spread over the suite; 0: all. Ours."""
    students: bool = True
    """Score students at looks. False: the base, its control and the run's product alone. Ours."""
    max_members: int = Field(default=0, ge=0)
    """Students scored at a look, drawn anew each time; 0: all. Ours: the mean of five hundred is known from a few."""
