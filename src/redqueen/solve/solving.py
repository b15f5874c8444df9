"""Phase 4: the matched students attempt every valid task several times, and the verifier grades each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redqueen.config import SolveConfig
from redqueen.domains.prompt_format import PromptFormat, completion_text
from redqueen.domains.registry import grade as grade_answers
from redqueen.nouns import Attempt, Completion, Individual, Outcome, Request, Task
from redqueen.policy.protocols import Sampler
from redqueen.streams import Streams
from redqueen.verify import Verifier

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Answered:
    """All attempts of one student at one task: outcomes beside the completions they were read from."""

    task: Task
    student: Individual
    prompt: tuple[int, ...]
    completions: tuple[Completion, ...]
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
    tasks: Sequence[Task],
    opponents: Mapping[str, tuple[str, ...]],
    students: Mapping[str, Individual],
    config: SolveConfig,
    sampler: Sampler,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    streams: Streams,
) -> list[tuple[Task, Individual, tuple[int, ...], list[Completion]]]:
    """Sample ``num_attempts`` attempts at every task by every student its teacher meets, in one call."""
    pairs = [(task, students[name]) for task in tasks for name in opponents[task.teacher]]
    prompts = [prompt_format.encode(tokenizer, prompt_format.solve(task)) for task, _ in pairs]
    requests = [
        Request(student.slot, prompt, config.num_attempts, streams.seed("solve", task.id, student.id))
        for (task, student), prompt in zip(pairs, prompts, strict=True)
    ]
    groups = sampler.sample(requests)
    return [
        (task, student, prompt, group) for (task, student), prompt, group in zip(pairs, prompts, groups, strict=True)
    ]


def grade(
    sampled: Sequence[tuple[Task, Individual, tuple[int, ...], list[Completion]]],
    verifier: Verifier,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
) -> list[Answered]:
    """Read the answers and have them graded, all in one call of the verifier."""
    read = [
        [_read(task, student, completion, prompt_format, tokenizer) for completion in group]
        for task, student, _, group in sampled
    ]
    grades = iter(
        grade_answers(
            [(task, a.answer) for (task, *_), group in zip(sampled, read, strict=True) for a in group], verifier
        )
    )
    answered = []
    for (task, student, prompt, completions), attempts in zip(sampled, read, strict=True):
        outcomes = tuple(Outcome(attempt, next(grades)) for attempt in attempts)
        answered.append(Answered(task, student, prompt, tuple(completions), outcomes))
    return answered


def _read(
    task: Task,
    student: Individual,
    completion: Completion,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
) -> Attempt:
    text = completion_text(tokenizer, completion)
    parsed = prompt_format.parse_answer(task.kind, text)
    answer = parsed.answer if completion.finished else None
    return Attempt(task.id, student.id, text, answer, parsed.thought, len(completion.tokens))
