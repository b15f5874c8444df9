"""Replacement of the weakest."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from redqueen.config.section import Section

OPERATORS = (*(f"M{i}" for i in range(1, 7)), *(f"X{i}" for i in range(1, 10)), "copy_parent", "linear_0_5")
"""Ids of the evolutionary operators (``redqueen operators`` lists them); a test holds them to those of ``evolve``."""


class EvolveConfig(Section):
    """Replacement of the weakest by children bred in weight space."""

    enabled: bool = True
    """False: no replacement at all. Ours: the ablation that the paper lacks."""
    every_steps: int = Field(default=10, ge=1)
    """Steps between generations. Paper: 10."""
    replaced_frac: float = Field(default=0.25, ge=0, lt=1)
    """Share of each role replaced. Paper: 25 %."""
    operators: tuple[str, ...] = ("M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4")
    """Enabled operators. Paper: these eight."""
    crossover_frac: float = Field(default=0.5, ge=0, le=1)
    """Chance of crossover against mutation. Re-implementation: a fair coin."""
    selection: Literal["truncation", "tournament", "rank"] = "truncation"
    """Parent selection. Paper: the fittest survivors. The other rules are ours."""
    fitness: Literal["rating", "payoff", "reward", "probe"] = "rating"
    """What selection reads. Paper: the rating's lower confidence bound. ``payoff`` and ``reward``, the means over the
    last ``every_steps`` games or steps, are ours: a payoff counts a task that nobody solves as the teacher's win, its
    reward does not. Under ``probe`` all students answer the same archived tasks, and teachers are judged by reward."""
    probe_tasks: int = Field(default=64, ge=1)
    """Archived tasks that all students answer at the end of a generation under ``fitness = "probe"``. Ours: a tenth of
    what they answer in a generation."""
    protected_steps: int = Field(default=0, ge=0)
    """A member younger than this many steps counts at least as its role's median; 0: no protection. Ours."""
    num_elite: int = Field(default=1, ge=1)
    """Fittest members of a role that stay under every rule. Ours: a generation must not lose the best."""
    genes: tuple[Literal["learning_rate", "temperature"], ...] = ()
    """Settings of which each member has a factor of its own, inherited and mutated. Ours: population-based training; a
    population can tune itself while it runs."""
    constants: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Operators' constants other than the defaults: ``constants.M4 = {mutation_std = 0.1}``. Ours."""
    child_rating: Literal["reset", "inherit"] = "reset"
    """A newborn's rating; ``inherit``: the parents' mean mu, their sigma doubled but at most a newcomer's.
    Re-implementation: reset."""

    @model_validator(mode="after")
    def _known_operators(self) -> EvolveConfig:
        unknown = [name for name in self.operators if name not in OPERATORS]
        if unknown:
            raise ValueError(f"operators names {unknown[0]!r}, which is none; choose from {', '.join(OPERATORS)}")
        if self.enabled and not self.operators:
            raise ValueError("operators is empty: name at least one, or set enabled = false")
        if 0 < self.protected_steps <= self.every_steps:
            raise ValueError(
                f"protected_steps must be above every_steps ({self.every_steps}), or 0: a newborn is as old as that "
                "when the next generation is chosen, so a shorter shelter has no effect"
            )
        strange = [name for name in self.constants if name not in OPERATORS]
        if strange:
            raise ValueError(
                f"constants names {strange[0]!r}, which is no operator; choose from {', '.join(OPERATORS)}"
            )
        return self
