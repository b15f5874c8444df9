"""The length of a run: when it is over, and how a resume extends it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redqueen.config import Config, RunConfig, parse_config
from redqueen.display import counted
from redqueen.errors import UserError, command
from redqueen.files import apply_override, write_whole
from redqueen.journal import Journal, read
from redqueen.journal.schema import CHOSEN, UNLISTED_TOKENS
from redqueen.run.store import CONFIG

if TYPE_CHECKING:
    from redqueen.loop import StepReport

NOTHING_VALID = "no proposal of the run was ever valid, so nothing was learned and there is no product"


@dataclass(frozen=True)
class Spent:
    """The cost of a run so far: tokens sampled by its members, and seconds of its steps (without evaluation)."""

    tokens: int
    seconds: float

    def plus(self, report: StepReport, metrics: Mapping[str, float]) -> Spent:
        """Return the cost after one more step with these ``metrics``."""
        proposed = sum(len(p.completion.tokens) for p in report.proposals)
        answered = sum(o.attempt.num_tokens for a in report.graded if not a.is_anchor for o in a.outcomes)
        unlisted = sum(int(metrics.get(name, 0)) for name in UNLISTED_TOKENS)
        return Spent(self.tokens + proposed + answered + unlisted, self.seconds + sum(report.seconds.values()))


NOTHING_SPENT = Spent(0, 0.0)


def spent_so_far(journal: Journal) -> Spent:
    """Return the cost of a run according to its journal."""
    return Spent(read.tokens_sampled(journal), read.step_seconds(journal))


def is_limit_spent(run: RunConfig, spent: Spent) -> bool:
    """Return whether a limit of tokens or seconds is reached. The run ends then, possibly after one more step."""
    return 0 < run.max_tokens <= spent.tokens or 0 < run.max_seconds <= spent.seconds


def is_over(run: RunConfig, step: int, spent: Spent, has_new_members: bool) -> bool:
    """Return whether a run is over after ``step``.

    A limit that is reached in a step with new members (born or distilled) takes effect after the next step, which has
    none: otherwise a child would be evaluated before it has learned.
    """
    return step >= run.num_steps or (is_limit_spent(run, spent) and not has_new_members)


def has_ended(journal: Journal, run: RunConfig) -> bool:
    """Return whether the run in ``journal`` is over. Students that were distilled in its last step count as new; the
    distillation of the product, in the step that ends a run, does not."""
    last = read.last_step(journal)
    if last is None:
        return False
    new = journal.tuples(
        "SELECT 1 FROM birth WHERE step = ? UNION SELECT 1 FROM metric WHERE step = ? AND name = 'distill/answers' AND "
        "value > 0 AND NOT EXISTS (SELECT 1 FROM metric WHERE step = ? AND name LIKE ?)",
        (last, last, last, f"{CHOSEN}%"),
    )
    limited = run.max_tokens or run.max_seconds  # otherwise skip the slow sum over all attempts
    return is_over(run, last, spent_so_far(journal) if limited else NOTHING_SPENT, bool(new))


def remaining_work(run: RunConfig, step: int, spent: Spent, has_new_members: bool) -> tuple[int, float]:
    """Return the steps that a run has left after ``step``, and the seconds left under its limit (inf: no limit).

    A limit of tokens is turned into steps by the mean cost of a step so far.
    """
    if is_over(run, step, spent, has_new_members):
        return 0, 0.0
    steps = run.num_steps - step
    if run.max_tokens and spent.tokens:
        steps = min(steps, max(1, math.ceil(step * run.max_tokens / spent.tokens) - step))
    return steps, max(0.0, run.max_seconds - spent.seconds) if run.max_seconds else math.inf


def is_nothing_valid(journal: Journal) -> bool:
    """Return whether a run has never had a valid task, so that nothing was learned."""
    return not journal.tuples("SELECT 1 FROM task LIMIT 1")


def lacks_final_scores(journal: Journal, config: Config, step: int) -> bool:
    """Return whether the journal lacks the product or the scores of a run that is over after ``step`` (from 1).

    This happens when a stopped run is shortened to end at its last step.
    """
    wants_product = config.run.product != "none" and not is_nothing_valid(journal)
    if wants_product:
        found = journal.tuples("SELECT count(*) FROM metric WHERE step = ? AND name LIKE ?", (step, f"{CHOSEN}%"))
    else:
        found = journal.tuples("SELECT count(*) FROM evaluation WHERE step = ?", (step,))
    wanted = wants_product or config.evaluate.students
    return step > 0 and wanted and not found[0][0]


LENGTHS = ("num_steps", "max_tokens", "max_seconds")
CHANGEABLE = (*(f"run.{field}" for field in LENGTHS), "sampler.urls", "sampler.adapter_folder")
"""The fields of the config that a resume may change."""


def lengthened(config: Config, overrides: Sequence[str]) -> Config:
    """Return a run's config with overrides such as ``run.num_steps=400``; only CHANGEABLE fields are allowed."""
    asked: dict[str, Any] = {}
    for override in overrides:
        apply_override(asked, override)
        name = override.partition("=")[0].strip()
        if name not in CHANGEABLE:
            raise UserError(
                f"--set {override}: a resumed run keeps its config; only {', '.join(CHANGEABLE)} may change; start a "
                "new run to change anything else"
            )
    data = config.model_dump(mode="json")
    for section in asked:
        data[section] |= asked[section]
    return parse_config(data, "--set")


def write_lengths(folder: Path, config: Config, step: int, has_new_members: bool) -> None:
    """Write the config, with the run's new length, of a run whose newest checkpoint is of ``step``.

    Raises UserError when ``step`` is after the new end, or is the new end and has new members.
    """
    if config.run.num_steps < step + has_new_members:
        born = f", and members that are new in step {step} have not been in a match" if has_new_members else ""
        raise UserError(
            f"--set run.num_steps={config.run.num_steps}: {folder} has {step} finished steps{born}: "
            f"give at least {step + has_new_members}"
        )
    write_whole(folder / CONFIG, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")


def record_lengths(journal: Journal, config: Config, step: int) -> None:
    """Store in the journal, at ``step``, every length that differs between the config and the run's record.

    Each becomes a metric of that step (``run/num_steps``), and the record gets the new config. Every resume calls this,
    since a process may have been killed between ``write_lengths`` and this call.
    """
    recorded = read.run_record(journal).config
    before, now = dict(recorded.get("run", {})), config.run.model_dump(mode="json")  # type: ignore[call-overload]
    changed = {f"run/{name}": float(now[name]) for name in LENGTHS if before.get(name, now[name]) != now[name]}
    if changed:
        journal.lengthen({**recorded, "run": before | {name: now[name] for name in LENGTHS}}, changed, step)


def keep_lengths(journal: Journal, step: int) -> None:
    """Move the metrics that ``record_lengths`` stored at later steps to ``step``, before the journal is truncated."""
    rows = journal.tuples("SELECT name, value FROM metric WHERE step > ? AND name LIKE 'run/%' ORDER BY step", (step,))
    names = [f"run/{name}" for name in LENGTHS]
    if later := {name: value for name, value in rows if name in names and value is not None}:
        journal.lengthen(read.run_record(journal).config, later, step)


def refuse_older(journal: Journal, step: int) -> None:
    """Raise UserError where the journal ends before ``step``, the newest checkpoint's."""
    last = read.last_step(journal) or 0
    if last < step:
        raise UserError(
            f"{journal.path} ends with step {last}, but the newest checkpoint is of step {step}: it was copied without "
            f"its log ({journal.path.name}-wal) or is an older copy. Restore a later copy, or delete the checkpoints "
            f"after step {last}"
        )


def rate_change(before: Config, after: Config, step: int) -> str:
    """Return a sentence on how a new length changes the learning rate after ``step``; "" when it does not.

    It does when the rate decays to the run's last step (``learn.decay_to_step`` 0).
    """
    was, now = (after.learn.rate_frac(step + 1, config.run.num_steps) for config in (before, after))
    if was == now:
        return ""
    return (
        f"the learning rate decays to the run's last step: with {counted(after.run.num_steps, 'step')} its factor at "
        f"step {step + 1} is {now:.2f}, with {counted(before.run.num_steps, 'step')} {was:.2f}"
    )


def how_to_go_on(folder: Path, config: Config, step: int, spent: Spent) -> str:
    """Return the command that extends a run that is over after ``step``, and its effect on the learning rate.

    The command doubles the number of steps, or the tokens or seconds ``spent`` if their limit ended the run.
    """
    run = config.run
    twice: dict[str, float] = {}
    if 0 < run.max_tokens <= spent.tokens:
        twice["max_tokens"] = 2 * spent.tokens
    if 0 < run.max_seconds <= spent.seconds:
        twice["max_seconds"] = math.ceil(2 * spent.seconds)
    if step >= run.num_steps or not twice:
        twice["num_steps"] = 2 * run.num_steps
    longer = config.model_copy(update={"run": run.model_copy(update=twice)})
    words = [word for name, value in twice.items() for word in ("--set", f"run.{name}={value}")]
    way = f"{folder} is finished after {counted(step, 'step')}; to continue it: {command('resume', folder, *words)}"
    return "\n".join(filter(None, (way, rate_change(config, longer, step))))
