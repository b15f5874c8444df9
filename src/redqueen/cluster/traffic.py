"""How many bytes a step of a divided population moves, computed from what its members read and write.

Calls travel pickled: a token is 3 bytes (5 in a vocabulary beyond 65,536), a log-probability 9. A completion travels
twice, from the shard that sampled it and back to be learned from; a prompt twice, to be continued and to be learned
from. A backup holds the factors of every adapter and the two moments of every member, 4 bytes each.
"""

from __future__ import annotations

from dataclasses import dataclass

LOGPROB_BYTES = 9
REQUEST_BYTES, COMPLETION_BYTES, ROLLOUT_BYTES, STATS_BYTES = 55, 30, 23, 60
"""What a record of each kind weighs beside its tokens, log-probabilities and advantages."""
FACTOR_BYTES = 4


@dataclass(frozen=True)
class Texts:
    """Prompts, their tokens, completions and their tokens: of all members in one step, or its mean."""

    num_prompts: float = 0.0
    prompt_tokens: float = 0.0
    num_completions: float = 0.0
    completion_tokens: float = 0.0

    def __mul__(self, factor: float) -> Texts:
        """Return so many times as much of everything."""
        return Texts(
            self.num_prompts * factor,
            self.prompt_tokens * factor,
            self.num_completions * factor,
            self.completion_tokens * factor,
        )


@dataclass(frozen=True)
class Work:
    """What a population does in one step: texts ``sampled`` and ``learned`` from, and what its adapters weigh.

    ``num_adapters`` counts members and those that rest beside them (a hall of fame, references); ``num_parameters`` are
    those of one adapter.
    """

    num_members: int
    num_adapters: int
    num_parameters: int
    vocabulary: int
    sampled: Texts
    learned: Texts

    def scaled(self, num_members: int) -> Work:
        """Return the work of another number of such members."""
        factor = num_members / self.num_members
        adapters = round(self.num_adapters * factor)
        return Work(
            num_members, adapters, self.num_parameters, self.vocabulary, self.sampled * factor, self.learned * factor
        )


@dataclass(frozen=True)
class Traffic:
    """Bytes of one step by purpose: what is sampled and learned, asked and answered, and the backups."""

    sample_asked: float
    sample_answered: float
    learn_asked: float
    learn_answered: float
    backup: float

    def by_purpose(self) -> dict[str, float]:
        """Return the bytes under the names that a run's log has for them."""
        asked, answered = self.sample_asked + self.learn_asked, self.sample_answered + self.learn_answered
        return {"asked": asked, "answered": answered, "backup": self.backup}


def planned(work: Work) -> Traffic:
    """Return the bytes that a step moves, births and checkpoints apart."""
    token = 3 if work.vocabulary <= 65_536 else 5
    sampled, learned = work.sampled, work.learned

    def written(texts: Texts) -> float:
        return COMPLETION_BYTES * texts.num_completions + (token + LOGPROB_BYTES) * texts.completion_tokens

    return Traffic(
        sample_asked=REQUEST_BYTES * sampled.num_prompts + token * sampled.prompt_tokens,
        sample_answered=written(sampled),
        learn_asked=ROLLOUT_BYTES * learned.num_prompts
        + token * learned.prompt_tokens
        + written(learned)
        + LOGPROB_BYTES * learned.num_completions,
        learn_answered=STATS_BYTES * work.num_members,
        backup=FACTOR_BYTES * work.num_parameters * (work.num_adapters + 2 * work.num_members),
    )
