"""What the report knows of one run, read from its journal once: plain values, nothing computed twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from redqueen.errors import UserError
from redqueen.journal import Journal, RunRecord, read
from redqueen.journal.connection import Patience
from redqueen.journal.read import Series
from redqueen.journal.values import naming_contradictions
from redqueen.journal.write import Row
from redqueen.report.curriculum import CurriculumStep, curriculum_steps
from redqueen.run.store import JOURNAL

NUM_EXAMPLE_ATTEMPTS = 3
"""Attempts shown with an example task."""


@dataclass(frozen=True)
class Example:
    """A task with some of its attempts (a right one, a wrong one, one that thought first, as far as there are)."""

    task: Row
    attempts: list[Row]


@dataclass(frozen=True)
class RunView:
    """One run. Rows are those of the journal's tables (see ``redqueen.journal.schema``)."""

    label: str
    run: RunRecord
    steps: list[int]
    metrics: dict[str, Series]
    timings: dict[str, Series]
    step_seconds: float
    individuals: list[Row]
    births: list[tuple[Row, list[str]]]
    ratings: list[Row]
    health: list[Row]
    meetings: list[Row]
    evaluations: list[Row]
    rejections: list[Row]
    curriculum: list[CurriculumStep]
    first_examples: list[Example]
    last_examples: list[Example]
    rejected_examples: list[Row]
    num_candidates: int
    num_tasks: int
    num_attempts: int
    num_sessions: int

    @property
    def last_step(self) -> int:
        return self.steps[-1] if self.steps else 0

    @property
    def is_nothing_valid(self) -> bool:
        """Whether no proposal of the steps played was a valid task, so that nothing was learned from."""
        return self.last_step > 0 and self.num_candidates > 0 and not self.num_tasks

    @property
    def is_single(self) -> bool:
        """Whether one adapter plays both roles: no ratings, no matches between members."""
        return any(member["role"] == "both" for member in self.individuals)

    @cached_property
    def scores(self) -> dict[tuple[str, str, str, str], list[Row]]:
        """The evaluations by suite, stratum, kind and mode."""
        found: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
        for row in self.evaluations:
            found[row["suite"], row["stratum"], row["kind"], row["mode"]].append(row)
        return dict(found)

    def series(self, name: str) -> Series:
        """Return a metric as a series over the steps, empty when the run has none of that name."""
        return self.metrics.get(name, [])

    def values(self, name: str) -> list[float]:
        """Return the defined values of a metric in the order of the steps."""
        return [value for _, value in self.series(name) if value is not None]


def read_run(run_dir: Path, label: str | None = None, patience: Patience | None = None) -> RunView:
    """Read the journal in ``run_dir``. Raises UserError when there is none, when it has no step yet, or when its rows
    are none that a run writes."""
    path = Path(run_dir) / JOURNAL
    if not path.is_file():
        raise UserError(f"There is no journal at {path}; give the run directory of a run that was started.")
    with naming_contradictions(run_dir), Journal.open(path, read_only=True, patience=patience) as journal:
        steps = [row["step"] for row in journal.query("SELECT step FROM step ORDER BY step")]
        if not steps:
            raise UserError(f"The run {run_dir} has no finished step yet; wait for the first one.")
        return _view(journal, steps, label or Path(run_dir).resolve().name)


def _view(journal: Journal, steps: list[int], label: str) -> RunView:
    counts = journal.query(
        "SELECT (SELECT count(*) FROM candidate) AS num_candidates, (SELECT count(*) FROM task) AS num_tasks, "
        "(SELECT count(*) FROM attempt) AS num_attempts, "
        "(SELECT count(*) FROM session) AS num_sessions"
    )[0]
    with_tasks = [row["step"] for row in journal.query("SELECT DISTINCT step FROM task ORDER BY step")]
    return RunView(
        label=label,
        run=read.run_record(journal),
        steps=steps,
        metrics=read.metric_series(journal),
        timings=read.timing_series(journal),
        step_seconds=read.step_seconds(journal),
        individuals=read.individuals(journal),
        births=read.births(journal),
        ratings=read.ratings(journal),
        health=read.health(journal),
        meetings=read.meetings(journal),
        evaluations=read.evaluations(journal),
        rejections=read.rejections(journal),
        curriculum=curriculum_steps(journal),
        first_examples=_examples(journal, with_tasks[0]) if with_tasks else [],
        last_examples=_examples(journal, with_tasks[-1]) if len(with_tasks) > 1 else [],
        rejected_examples=_rejected_examples(journal),
        **counts,
    )


def _examples(journal: Journal, step: int) -> list[Example]:
    """Return one task of each kind in this step: the one with the most middling solve rate, for those teach most."""
    tasks = read.tasks_of_step(journal, step)
    chosen: dict[str, Row] = {}
    for task in sorted(tasks, key=lambda task: (abs(_solve_frac(task) - 0.5), task["seq"])):
        chosen.setdefault(task["kind"], task)
    in_order = sorted(chosen.values(), key=lambda task: task["seq"])
    return [Example(task, _telling(read.attempts_of_task(journal, task["seq"]))) for task in in_order]


def _solve_frac(task: Row) -> float:
    return task["num_correct"] / task["num_attempts"] if task["num_attempts"] else 0.0


def _telling(attempts: Sequence[Row]) -> list[Row]:
    """Return the first right, the first wrong and the first thoughtful attempt, then others, in their order."""
    first_of = [
        next((a for a in attempts if a["correct"] and not a["lost"]), None),
        next((a for a in attempts if not a["correct"] and not a["lost"]), None),
        next((a for a in attempts if a["thought"]), None),
    ]
    chosen = {a["seq"]: a for a in [*(a for a in first_of if a is not None), *attempts]}
    return sorted(list(chosen.values())[:NUM_EXAMPLE_ATTEMPTS], key=lambda attempt: attempt["seq"])


def _rejected_examples(journal: Journal) -> list[Row]:
    """Return the latest proposal that was rejected for each of the three most frequent reasons."""
    return journal.query(
        "SELECT c.*, r.num FROM candidate c JOIN (SELECT verdict, count(*) AS num, max(seq) AS seq FROM candidate "
        "WHERE verdict != 'ok' GROUP BY verdict ORDER BY num DESC, verdict LIMIT 3) r ON r.seq = c.seq "
        "ORDER BY r.num DESC, c.verdict"
    )
