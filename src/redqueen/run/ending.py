"""When a run is over: it has played its last step, or reached a limit of tokens or seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redqueen.config import Config, RunConfig
from redqueen.journal import Journal, read
from redqueen.journal.records import CHOSEN, UNLISTED_TOKENS

if TYPE_CHECKING:
    from redqueen.loop import StepReport


NOTHING_VALID = "no proposal of the run was ever valid, so nothing was learned and there is no product"


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


def is_limit_spent(run: RunConfig, spent: Spent) -> bool:
    """Tell whether a limit of tokens or seconds is reached: the run ends, if need be with one step more."""
    return 0 < run.max_tokens <= spent.tokens or 0 < run.max_seconds <= spent.seconds


def is_over(run: RunConfig, step: int, spent: Spent, has_new_members: bool) -> bool:
    """Tell whether a run that has played ``step`` is over.

    A limit that is reached in a step with new members (born or distilled) takes effect after the next step, which has
    none: a child would be evaluated before it has learned, and no later task could choose among distilled students.
    """
    return step >= run.num_steps or (is_limit_spent(run, spent) and not has_new_members)


def is_nothing_valid(journal: Journal) -> bool:
    """Tell whether a run has never had a valid task, so that nothing in it was learned from."""
    return not journal.tuples("SELECT 1 FROM task LIMIT 1")


def is_end_owed(journal: Journal, config: Config, step: int) -> bool:
    """Tell whether the journal lacks what a run that is over after ``step`` (from 1) leaves: its product, or scores.

    So it does when the run was made shorter, to end where it had been stopped.
    """
    wants_product = config.run.product != "none" and not is_nothing_valid(journal)
    if wants_product:
        found = journal.tuples("SELECT count(*) FROM metric WHERE step = ? AND name LIKE ?", (step, f"{CHOSEN}%"))
    else:
        found = journal.tuples("SELECT count(*) FROM evaluation WHERE step = ?", (step,))
    wanted = wants_product or config.evaluate.students
    return step > 0 and wanted and not found[0][0]
