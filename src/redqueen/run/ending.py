"""When a run is over: it has played its last step, or reached a limit of tokens or seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redqueen.config import RunConfig
from redqueen.journal import Journal, read
from redqueen.journal.records import UNLISTED_TOKENS

if TYPE_CHECKING:
    from redqueen.loop import StepReport


@dataclass(frozen=True)
class Spent:
    """What a run has cost so far: tokens sampled by its members, and seconds of its steps (evaluation apart)."""

    tokens: int
    seconds: float

    def plus(self, report: StepReport, metrics: Mapping[str, float]) -> Spent:
        """Return what has been spent after one more step; ``metrics`` are the step's."""
        proposed = sum(len(p.completion.tokens) for p in report.proposals)
        answered = sum(o.attempt.num_tokens for a in report.answered for o in a.outcomes)
        unlisted = sum(int(metrics.get(name, 0)) for name in UNLISTED_TOKENS)
        return Spent(self.tokens + proposed + answered + unlisted, self.seconds + sum(report.seconds.values()))


def spent_so_far(journal: Journal) -> Spent:
    """Return what a run has spent by its journal."""
    return Spent(read.tokens_sampled(journal), read.step_seconds(journal))


def is_over(run: RunConfig, step: int, spent: Spent, has_newborns: bool) -> bool:
    """Tell whether a run that has played ``step`` is over.

    A limit waits for a step without a birth (``has_newborns``), since a child would be evaluated before it has
    learned anything.
    """
    over = 0 < run.max_tokens <= spent.tokens or 0 < run.max_seconds <= spent.seconds
    return step >= run.num_steps or (over and not has_newborns)
