"""The data of one run for report and dashboard, read from its journal once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from redqueen.config.load import without_folders
from redqueen.domains.registry import in_order
from redqueen.errors import UserError
from redqueen.journal import Journal, RunRecord, read
from redqueen.journal.read import Series
from redqueen.journal.schema import ALL
from redqueen.journal.untrusted import Row, TimeLimit, naming_contradictions
from redqueen.report.series import known_mean, mean_series, point_of
from redqueen.run.store import JOURNAL

NO_TASK: Row = {"num_tasks": 0, "ast_depth": None, "cyclomatic": None, "num_lines": None, "num_variables": None}

NUM_EXAMPLE_ATTEMPTS = 3
"""Attempts shown with an example task."""


@dataclass(frozen=True)
class Example:
    """A task with some of its attempts (if present: a right one, a wrong one, one with thinking before the answer)."""

    task: Row
    attempts: list[Row]


@dataclass(frozen=True)
class RunView:
    """One run. Rows are those of the journal's tables (see ``redqueen.journal.schema``).

    ``curriculum`` has a row for every ``step`` of each ``kind``, ``all`` first: ``num_tasks``, the mean measures of its
    valid tasks (None without one), and ``coverage``, the distinct tasks so far.
    """

    label: str
    run: RunRecord
    steps: list[int]
    metrics: dict[str, Series]
    timings: dict[str, Series]
    step_seconds: float
    tokens: int
    individuals: list[Row]
    births: list[tuple[Row, list[str]]]
    ratings: list[Row]
    health: list[Row]
    meetings: list[Row]
    evaluations: list[Row]
    curriculum: list[Row]
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
        """Whether no proposal so far was a valid task, so that nothing was learned."""
        return self.last_step > 0 and self.num_candidates > 0 and not self.num_tasks

    @property
    def is_single(self) -> bool:
        """Whether one adapter has both roles: no ratings, no matches between members."""
        return any(member["role"] == "both" for member in self.individuals)

    @property
    def living(self) -> list[str]:
        """The members that are in the population at the last step."""
        return [member["id"] for member in self.individuals if member["left_step"] is None]

    @property
    def slot_names(self) -> dict[int, str]:
        """The name of each slot of the bank: the id of its founder, because children take slots over."""
        return {member["slot"]: member["id"] for member in reversed(self.individuals)}

    @cached_property
    def scores(self) -> dict[tuple[str, str], list[Row]]:
        """The evaluations over all strata, by mode and kind."""
        found: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.evaluations:
            if row["stratum"] == ALL:
                found[row["mode"], row["kind"]].append(row)
        return dict(found)

    def series(self, name: str) -> Series:
        """Return a metric as a series over the steps, empty when the run has none of that name."""
        return self.metrics.get(name, [])

    def values(self, name: str) -> list[float]:
        """Return the defined values of a metric in the order of the steps."""
        return [value for _, value in self.series(name) if value is not None]


def read_run(run_dir: Path, label: str | None = None, limit: TimeLimit | None = None) -> RunView:
    """Read the journal in ``run_dir``. Raises UserError when there is none, when it has no step yet, or when a run
    cannot have written its rows."""
    path = Path(run_dir) / JOURNAL
    with naming_contradictions(run_dir), Journal.open(path, read_only=True, limit=limit) as journal:
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
    run = read.run_record(journal)
    with_tasks = [row["step"] for row in journal.query("SELECT DISTINCT step FROM task ORDER BY step")]
    return RunView(
        label=label,
        run=replace(run, config=without_folders(run.config)),
        steps=steps,
        metrics=read.metric_series(journal),
        timings=read.timing_series(journal),
        step_seconds=read.step_seconds(journal),
        tokens=read.tokens_sampled(journal),
        individuals=read.individuals(journal),
        births=read.births(journal),
        ratings=read.ratings(journal),
        health=read.health(journal),
        meetings=read.meetings(journal),
        evaluations=read.evaluations(journal),
        curriculum=_curriculum(journal),
        first_examples=_examples(journal, with_tasks[0]) if with_tasks else [],
        last_examples=_examples(journal, with_tasks[-1]) if len(with_tasks) > 1 else [],
        rejected_examples=_rejected_examples(journal),
        **counts,
    )


def _examples(journal: Journal, step: int) -> list[Example]:
    """Return one task of each kind in this step: the one whose solve rate is nearest to 0.5, which trains most."""
    tasks = read.tasks_of_step(journal, step)
    chosen: dict[str, Row] = {}
    for task in sorted(
        tasks, key=lambda task: (abs(task["num_correct"] / (task["num_attempts"] or 1) - 0.5), task["seq"])
    ):
        chosen.setdefault(task["kind"], task)
    ordered = sorted(chosen.values(), key=lambda task: task["seq"])
    return [Example(read.with_pairs(task), _chosen(read.attempts_of_task(journal, task["seq"]))) for task in ordered]


def _chosen(attempts: Sequence[Row]) -> list[Row]:
    """Return at most ``NUM_EXAMPLE_ATTEMPTS``, in their order: the first right one, the first wrong one and the first
    with thinking before the answer, then others."""
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


def _curriculum(journal: Journal) -> list[Row]:
    present = {row["kind"] for row in journal.query("SELECT DISTINCT kind FROM task")}
    steps = [row["step"] for row in journal.query("SELECT step FROM step WHERE step > 0 ORDER BY step")]
    points = []
    for kind in ("all", *in_order(present)):
        wanted, values = ("1", ()) if kind == "all" else ("kind = ?", (kind,))
        means = journal.query(
            "SELECT step, count(*) AS num_tasks, avg(ast_depth) AS ast_depth, avg(cyclomatic) AS cyclomatic, "
            f"avg(num_lines) AS num_lines, avg(num_variables) AS num_variables FROM task WHERE {wanted} GROUP BY step",
            values,
        )
        firsts = journal.tuples(
            "SELECT first, count(*) FROM "
            f"(SELECT min(step) AS first FROM task WHERE {wanted} GROUP BY behaviour) GROUP BY first",
            values,
        )
        mean_of, num_new, coverage = {row["step"]: row for row in means}, dict(firsts), 0
        for step in steps:
            coverage += num_new.get(step, 0)
            points.append(NO_TASK | mean_of.get(step, {}) | {"step": step, "kind": kind, "coverage": coverage})
    return points


def thinned(view: RunView, size: int) -> RunView:
    """Return the view for figures with one point for each ``size`` steps; step 0 has its own point.

    Metrics, times, the curriculum and health become means; of the ratings, only the last of each point is kept.
    """
    if size == 1:
        return view
    ends = {size * point_of(step, size) for step in view.steps} | {view.last_step}
    return replace(
        view,
        steps=[step for step in view.steps if step in ends],
        metrics={name: mean_series(series, size) for name, series in view.metrics.items()},
        timings={phase: mean_series(series, size) for phase, series in view.timings.items()},
        ratings=[row for row in view.ratings if row["step"] in ends],
        curriculum=_joined(view.curriculum, size),
        health=_joined(view.health, size),
    )


JOINED: dict[str, Callable[[list[Any]], Any]] = {
    "step": lambda steps: steps[-1],
    "kind": lambda kinds: kinds[-1],
    "num_tasks": sum,
    "coverage": lambda counts: counts[-1],
    "warnings": lambda lists: list(chain.from_iterable(lists)),
}
"""How a point combines a column's values, if not by their mean."""


def _joined(rows: list[Row], size: int) -> list[Row]:
    groups: dict[tuple[object, int], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.get("kind"), point_of(row["step"], size)].append(row)
    return [
        {name: JOINED.get(name, known_mean)([row[name] for row in group]) for name in group[0]}
        for group in groups.values()
    ]
