"""Distillation: one fresh adapter learns the right answers of all students as text.

A policy gradient takes one step from a step's answers and forgets them. Here the verified answers of all steps are
read together, in random order, by an adapter that has learned nothing yet: cross-entropy on the tokens of the answer,
``distill.num_epochs`` times over, at a rate that rises over ``distill.warmup_updates`` and then falls linearly to zero.
Ground: rejection-sampling fine-tuning (Yuan et al. 2023), whose samples of several models add up because their mistakes
differ; of a population, and at the end of self-play: ours. Log-probabilities are those at the solver's temperature, as
for the members; ``learn.kl_weight`` holds those who learn by policy gradients, not this adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from redqueen.config import DistillConfig
from redqueen.nouns import Completion, Rollout, Tuning
from redqueen.policy.protocols import AdapterStore, Learner


@dataclass(frozen=True)
class Example:
    """A right answer as the tokens behind those of its prompt, the end token among them."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Distilled:
    """How it went: ``num_answers`` with ``num_tokens`` of answers, and the mean nats a token in each epoch.

    No answers: the adapter is a founder, since there were none or no update was finite.
    """

    num_answers: int
    num_tokens: int
    nats: tuple[float, ...]

    def metrics(self, of: str = "distill") -> dict[str, float]:
        """Return what the journal keeps of it, under names that begin with ``of``."""
        found = {f"{of}/answers": float(self.num_answers), f"{of}/tokens": float(self.num_tokens)}
        return found | {f"{of}/first_nats": self.nats[0], f"{of}/last_nats": self.nats[-1]} if self.nats else found


def is_restart_due(config: DistillConfig, step: int) -> bool:
    """Tell whether the students restart before the step behind ``step``."""
    return config.restart_every_steps > 0 and step > 0 and step % config.restart_every_steps == 0


def last_restart(config: DistillConfig, step: int) -> int:
    """Return the step behind which the students have last restarted, in a run that has played ``step``; 0: never."""
    every = config.restart_every_steps
    return (step - 1) // every * every if every and step else 0


def rate_at(update: int, num_updates: int, config: DistillConfig) -> float:
    """Return the learning rate of an update, counted from 0: warm-up times linear decay."""
    warm = min(1.0, (update + 1) / config.warmup_updates) if config.warmup_updates else 1.0
    return config.learning_rate * warm * (1.0 - update / num_updates)


def distil(
    examples: Sequence[Example],
    store: AdapterStore,
    learner: Learner,
    slot: int,
    config: DistillConfig,
    rng: np.random.Generator,
    rng_seed: int = 0,
    tell: Callable[[str], None] = lambda words: None,
) -> Distilled:
    """Make ``slot`` a founder and teach it ``examples``; ``tell`` hears in words which update is taken.

    What was in the slot before, and what the learner kept of it, is gone, so that a call that was cut can be repeated.
    """
    store.reset(slot, rng_seed)
    if config.max_answers and config.max_answers < len(examples):
        examples = [examples[i] for i in sorted(rng.choice(len(examples), config.max_answers, replace=False))]
    rollouts = [_rollout(slot, one) for one in examples]
    num_batches = -(-len(rollouts) // config.batch_size)
    num_updates, num_taken, nats = config.num_epochs * num_batches, 0, []
    for epoch in range(config.num_epochs if rollouts else 0):
        order, total = rng.permutation(len(rollouts)), 0.0
        for batch in range(num_batches):
            update = epoch * num_batches + batch
            tell(f"update {update + 1:,} of {num_updates:,}")
            tuning = Tuning(rate_at(update, num_updates, config), supervised=True)
            drawn = [rollouts[i] for i in order[batch * config.batch_size : (batch + 1) * config.batch_size]]
            [stats] = learner.update(drawn, {slot: tuning})
            total += stats.loss * stats.num_tokens
            num_taken += stats.ok
        nats.append(total / sum(len(one.answer) for one in examples))
    store.forget(slot)  # nobody steps it again: a checkpoint need not hold its moments
    if not num_taken:
        return Distilled(0, 0, ())
    return Distilled(len(examples), sum(len(one.answer) for one in examples), tuple(nats))


def _rollout(slot: int, example: Example) -> Rollout:
    unknown = (0.0,) * len(example.answer)  # a supervised update does not read how likely the sampler found it
    return Rollout(slot, example.prompt, (Completion(example.answer, unknown, 0.0, True),), (1.0,))
