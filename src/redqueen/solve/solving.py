"""Phase 4: the matched students attempt every valid task several times, and the verifier grades each attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redqueen.domains.prompt_format import PromptFormat
from redqueen.domains.registry import JobRunner
from redqueen.domains.registry import grade as grade_answers
from redqueen.nouns import Attempt, Completion, Individual, Outcome, Request, Task
from redqueen.policy.protocols import Sampler
from redqueen.streams import Streams

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Sampled:
    """What one student sampled for one task, not parsed yet."""

    task: Task
    student: Individual
    prompt: tuple[int, ...]
    completions: tuple[Completion, ...]


@dataclass(frozen=True)
class Answered(Sampled):
    """All attempts of one student at one task: outcomes beside the completions they were read from."""

    outcomes: tuple[Outcome, ...]

    @property
    def kept(self) -> list[int]:
        """Which attempts are samples: a lost one (the infrastructure's fault) is neither right nor wrong."""
        return [i for i, outcome in enumerate(self.outcomes) if not outcome.grade.lost]

    @property
    def solve_frac(self) -> float | None:
        """Share of right attempts in [0, 1]; None when all were lost."""
        kept = self.kept
        return sum(self.outcomes[i].grade.correct for i in kept) / len(kept) if kept else None


def solve(
    pairs: Sequence[tuple[Task, Individual]],
    num_attempts: int,
    sampler: Sampler,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    streams: Streams,
) -> list[Sampled]:
    """Sample ``num_attempts`` attempts of every student at its task, in one call."""
    prompts = [prompt_format.encode(tokenizer, prompt_format.solve(task)) for task, _ in pairs]
    requests = [
        Request(
            student.slot, prompt, num_attempts, streams.seed("solve", task.id, student.id), student.genes.temperature
        )
        for (task, student), prompt in zip(pairs, prompts, strict=True)
    ]
    groups = sampler.sample(requests)
    return [
        Sampled(task, student, prompt, tuple(group))
        for (task, student), prompt, group in zip(pairs, prompts, groups, strict=True)
    ]


def grade(
    sampled: Sequence[Sampled],
    verifier: JobRunner,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
) -> list[Answered]:
    """Read the answers and have them graded, all in one call of the verifier."""
    read = [[_read(one.task, one.student, c, prompt_format, tokenizer) for c in one.completions] for one in sampled]
    asked = [(one.task, attempt.answer) for one, row in zip(sampled, read, strict=True) for attempt in row]
    grades = iter(grade_answers(asked, verifier))
    answered = []
    for one, attempts in zip(sampled, read, strict=True):
        outcomes = tuple(Outcome(attempt, next(grades)) for attempt in attempts)
        answered.append(Answered(one.task, one.student, one.prompt, one.completions, outcomes))
    return answered


def _read(
    task: Task,
    student: Individual,
    completion: Completion,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
) -> Attempt:
    text, parsed = prompt_format.read_attempt(task.kind, tokenizer, completion)
    return Attempt(task.id, student.id, text, parsed.answer, parsed.thought, len(completion.tokens))
