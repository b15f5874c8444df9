"""Distillation: a fresh adapter is fine-tuned on the verified answers of all steps.

The loss is the cross-entropy of the answer's tokens, at the solver's temperature (as for members), without KL penalty.
The answers are used in random order, ``NUM_EPOCHS`` times, at a learning rate that rises over
``distill.warmup_updates`` and then falls linearly to zero. Each distillation starts from the bare base, so that errors
do not accumulate.
Source: rejection-sampling fine-tuning (Yuan et al. 2023), restarted from the base in each round as in STaR (Zelikman et
al. 2022) and ReST-EM (Singh et al. 2023). For the students of a population: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redqueen.adapters.protocols import AdapterStore, Learner
from redqueen.config import DistillConfig
from redqueen.domains.prompt_format import PromptFormat
from redqueen.learn.answers import VerifiedAnswer
from redqueen.records import Completion, Rollout, Tuning
from redqueen.streams import Streams

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


NUM_EPOCHS = 2
"""How often each answer is used. Ours: measured (experiments/RESULTS.md), with a LoRA of rank 16."""


@dataclass(frozen=True)
class Example:
    """A verified answer as token ids: the prompt, and the answer with its end token or stop string."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Distilled:
    """The result of a distillation: ``nats`` is the mean cross-entropy per token in each epoch.

    ``num_answers`` is 0 when there were no answers or no update was finite; the adapter is then a founder.
    """

    num_answers: int
    num_tokens: int
    nats: tuple[float, ...]

    def metrics(self) -> dict[str, float]:
        """Return the metrics for the journal."""
        found = {"distill/answers": float(self.num_answers), "distill/tokens": float(self.num_tokens)}
        return found | {"distill/first_nats": self.nats[0], "distill/last_nats": self.nats[-1]} if self.nats else found


def examples_of(
    answers: Iterable[VerifiedAnswer], prompt_format: PromptFormat, tokenizer: PreTrainedTokenizerBase
) -> list[Example]:
    """Return the tokens of each answer and of its task's solving prompt.

    An answer that a stop string ended contains that string; any other is followed by the end token.
    """
    found = []
    for one in answers:
        tokens = tuple(tokenizer(one.text, add_special_tokens=False)["input_ids"])
        if not any(stop in one.text for stop in prompt_format.stops):
            tokens = (*tokens, int(tokenizer.eos_token_id))  # type: ignore[arg-type]
        found.append(Example(tuple(prompt_format.encode(tokenizer, prompt_format.solve(one.task))), tokens))
    return found


def rate_at(update: int, num_updates: int, config: DistillConfig) -> float:
    """Return the learning rate of an update, counted from 0: warm-up times linear decay."""
    warm = min(1.0, (update + 1) / config.warmup_updates) if config.warmup_updates else 1.0
    return config.learning_rate * warm * (1.0 - update / num_updates)


def fine_tune(
    examples: Sequence[Example],
    store: AdapterStore,
    learner: Learner,
    slot: int,
    config: DistillConfig,
    streams: Streams,
    on_progress: Callable[[str], None] = lambda words: None,
) -> Distilled:
    """Reset ``slot`` to a founder and fine-tune it on ``examples``; ``on_progress`` is called before each update.

    The slot's previous adapter and optimiser state are lost. An interrupted call can be repeated.
    """
    store.reset(slot, streams.rng_seed)
    rng, rollouts = streams.rng("distill"), [_rollout(slot, one) for one in examples]
    num_batches = -(-len(rollouts) // config.batch_size)
    num_updates, num_taken, nats = NUM_EPOCHS * num_batches, 0, []
    for epoch in range(NUM_EPOCHS if rollouts else 0):
        order, total = rng.permutation(len(rollouts)), 0.0
        for batch in range(num_batches):
            update = epoch * num_batches + batch
            on_progress(f"update {update + 1:,} of {num_updates:,}")
            tuning = Tuning(rate_at(update, num_updates, config), supervised=True)
            drawn = [rollouts[i] for i in order[batch * config.batch_size : (batch + 1) * config.batch_size]]
            [stats] = learner.update(drawn, {slot: tuning})
            total += stats.loss * stats.num_tokens
            num_taken += stats.ok
        nats.append(total / sum(len(one.answer) for one in examples))
    store.forget(slot)  # the adapter is not updated again, so checkpoints do not need its moments
    if not num_taken:
        return Distilled(0, 0, ())
    return Distilled(len(examples), sum(len(one.answer) for one in examples), tuple(nats))


def _rollout(slot: int, example: Example) -> Rollout:
    logprobs = (0.0,) * len(example.answer)  # a supervised update does not use the sampler's log-probabilities
    return Rollout(slot, example.prompt, (Completion(example.answer, logprobs, 0.0, True),), (1.0,))
