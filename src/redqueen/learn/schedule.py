"""The learning rate of each member at each step: decay times the factor of its genes.

At step s of the run, counted from 1: decay is 1 up to ``decay_from_step`` and the floor f from ``decay_to_step`` on;
between them, with t the share of the way, linear 1 - (1 - f) t and cosine f + (1 - f) (1 + cos(pi t)) / 2.
Source: ours (common practice). Nothing is stored, so a resumed run has the same rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from redqueen.config import Config, LearnConfig
from redqueen.records import Individual, Tuning

FLOOR_FRAC = 0.05
"""Share of the learning rate that is left at the end of a decay (ours): members still follow their opponents."""


def rate_frac(step: int, config: LearnConfig, num_steps: int) -> float:
    """Return the share in [0, 1] of the learning rate that holds at ``step`` (from 1) of a run of ``num_steps``."""
    if config.decay == "constant":
        return 1.0
    start, end = config.decay_from_step, config.decay_to_step or num_steps
    way = min(1.0, max(0.0, (step - start) / max(1, end - start)))
    left = 1.0 - way if config.decay == "linear" else (1.0 + math.cos(math.pi * way)) / 2.0
    return FLOOR_FRAC + (1.0 - FLOOR_FRAC) * left


def tunings(individuals: Sequence[Individual], step: int, config: Config) -> dict[int, Tuning]:
    """Return what each member is stepped with at ``step``, by slot. The learner's own temperature is the solver's."""
    rate = config.learn.learning_rate * rate_frac(step, config.learn, config.run.num_steps)
    heat = config.propose_temperature / config.solve.temperature
    return {
        i.slot: Tuning(
            rate * i.genes.learning_rate,
            i.genes.temperature * (heat if i.role == "teacher" else 1.0),
            num_updates=config.learn.updates_per_step,
        )
        for i in individuals
    }
