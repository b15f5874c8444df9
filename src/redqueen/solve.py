"""Phase 4: the matched students attempt every valid task several times, and the verifier grades each attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from redqueen.adapters.protocols import Sampler
from redqueen.domains.prompt_format import PromptFormat
from redqueen.domains.registry import JobRunner
from redqueen.domains.registry import grade as grade_answers
from redqueen.match import STANDARD, Winner, decide
from redqueen.records import Attempt, Completion, Individual, Match, Outcome, Rejection, Request, Task
from redqueen.streams import Streams

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class SampledAttempts:
    """The completions that one student sampled for one task, not parsed yet."""

    task: Task
    student: Individual
    prompt: tuple[int, ...]
    completions: tuple[Completion, ...]


@dataclass(frozen=True)
class GradedAttempts(SampledAttempts):
    """All attempts of one student at one task: the outcomes, and the completions they were parsed from."""

    outcomes: tuple[Outcome, ...]

    @property
    def is_anchor(self) -> bool:
        """Whether the task is from the user's files: it has no teacher, and no rows in the journal."""
        return not self.task.student

    @property
    def kept(self) -> list[int]:
        """Indices of the attempts that count. A lost one (infrastructure failure) is neither right nor wrong."""
        return [i for i, outcome in enumerate(self.outcomes) if not outcome.grade.lost]

    @property
    def solve_frac(self) -> float | None:
        """Share of correct attempts in [0, 1]; None when all were lost."""
        kept = self.kept
        return sum(self.outcomes[i].grade.correct for i in kept) / len(kept) if kept else None


def draw_anchors(
    pairs: Sequence[tuple[Task, Individual]], anchors: Sequence[Task], anchor_frac: float, streams: Streams
) -> list[tuple[Task, Individual]]:
    """Draw anchors for every student in ``pairs``: a share ``anchor_frac`` in [0, 1) of all tasks of that student."""
    students = {student.id: student for _, student in pairs}
    drawn = []
    for name, num_tasks in Counter(student.id for _, student in pairs).items():
        num = min(round(num_tasks * anchor_frac / (1 - anchor_frac)), len(anchors))
        indices = streams.rng("anchors", name).choice(len(anchors), num, replace=False) if num else ()
        drawn += [(anchors[i], students[name]) for i in indices]
    return drawn


def sample_attempts(
    pairs: Sequence[tuple[Task, Individual]],
    num_attempts: int,
    sampler: Sampler,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    streams: Streams,
) -> list[SampledAttempts]:
    """Sample ``num_attempts`` attempts for every (task, student) pair, in one call of the sampler."""
    prompts = [prompt_format.encode(tokenizer, prompt_format.solve(task)) for task, _ in pairs]
    requests = [
        Request(
            student.slot, prompt, num_attempts, streams.seed("solve", task.id, student.id), student.genes.temperature
        )
        for (task, student), prompt in zip(pairs, prompts, strict=True)
    ]
    groups = sampler.sample(requests)
    return [
        SampledAttempts(task, student, prompt, tuple(group))
        for (task, student), prompt, group in zip(pairs, prompts, groups, strict=True)
    ]


def grade(
    sampled: Sequence[SampledAttempts],
    verifier: JobRunner,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
) -> list[GradedAttempts]:
    """Parse the answers and grade them all in one call of the verifier."""
    parsed = [[_parse(one.task, one.student, c, prompt_format, tokenizer) for c in one.completions] for one in sampled]
    pairs = [(one.task, attempt.answer) for one, row in zip(sampled, parsed, strict=True) for attempt in row]
    grades = iter(grade_answers(pairs, verifier))
    graded = []
    for one, attempts in zip(sampled, parsed, strict=True):
        outcomes = tuple(Outcome(attempt, next(grades)) for attempt in attempts)
        graded.append(GradedAttempts(one.task, one.student, one.prompt, one.completions, outcomes))
    return graded


def _parse(
    task: Task,
    student: Individual,
    completion: Completion,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
) -> Attempt:
    text, parsed = prompt_format.read_attempt(task.kind, tokenizer, completion)
    return Attempt(task.id, student.id, text, parsed.answer, parsed.thought, len(completion.tokens))


@dataclass(frozen=True)
class Game:
    """The result of a match. ``solve_frac`` is the unweighted mean over tasks of the share of correct attempts; None
    when the teacher made no valid task or all attempts were lost. ``winner`` is "none" for a match without a result."""

    match: Match
    num_tasks: int
    solve_frac: float | None
    winner: Winner | Literal["none"]


def score_games(
    matches: Sequence[Match], judged: Sequence[Task | Rejection], answered: Sequence[GradedAttempts]
) -> list[Game]:
    """Score each match: the student wins if it solved a larger share than the ratings predict."""
    return [_score(match, judged, answered) for match in matches]


def _score(match: Match, judged: Sequence[Task | Rejection], answered: Sequence[GradedAttempts]) -> Game:
    """Score one match. Lost attempts do not count: if all were lost, the match has no result.

    A single agent that solves its own tasks has no result either.
    """
    tasks = [v for v in judged if isinstance(v, Task) and v.teacher == match.teacher]
    rejections = [v for v in judged if isinstance(v, Rejection) and v.candidate.teacher == match.teacher]
    own = [a for a in answered if (a.task.teacher, a.student.id) == (match.teacher, match.student)]
    shares = [share for a in own if (share := a.solve_frac) is not None]
    solve_frac = fmean(shares) if shares else None
    counts = bool(shares) if tasks else any(v.reason != "infra" for v in rejections)
    if not counts or match.teacher == match.student:
        return Game(match, len(tasks), solve_frac, "none")
    return Game(match, len(tasks), solve_frac, decide(solve_frac, match.expected_win_frac))


def rated(members: Sequence[Individual], past: Sequence[Individual], games: Sequence[Game]) -> tuple[Individual, ...]:
    """Return the members with their ratings after the games, in order. Ratings of past members are frozen."""
    frozen = {member.id: member.rating for member in past}
    ratings = {member.id: member.rating for member in members} | frozen
    for game in games:
        teacher, student = game.match.teacher, game.match.student
        if game.winner != "none":
            ratings[teacher], ratings[student] = STANDARD.update(ratings[teacher], ratings[student], game.winner)
            ratings |= frozen
    return tuple(replace(member, rating=ratings[member.id]) for member in members)
