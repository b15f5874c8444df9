"""Reading a journal: plain rows for the report, the terminal and whoever writes an analysis."""

from __future__ import annotations

from collections import defaultdict

from redqueen.errors import UserError
from redqueen.journal.records import UNLISTED_TOKENS, RunRecord
from redqueen.journal.values import json_of, json_pairs
from redqueen.journal.write import Journal, Row
from redqueen.records import Task

Series = list[tuple[int, float | None]]
"""Pairs of a step and a value; None where the number was not defined."""

TASK_COLUMNS = (
    "id", "teacher", "student", "kind", "code", "inputs", "outputs", "message", "num_shown", "protection",
)  # fmt: skip
"""What of a task's row makes it a task; the rest are measures of it."""

AFTER_A_STEP = ("product", "evaluate", "checkpoint")
"""Phases that are no part of a step's time: they come as often as one wants to look, or once, at the end."""

MAX_MEMBERS = 50_000
"""The most members, present and past, of a run that can be shown."""


def run_record(journal: Journal) -> RunRecord:
    """Return what the run said about itself when it was created."""
    rows = journal.query("SELECT * FROM run")
    if len(rows) != 1:
        raise UserError(f"The journal {journal.path} does not say which run it is of; restore it from a copy.")
    row = rows[0]
    return RunRecord(row["name"], row["arm"], int(row["rng_seed"]), json_of(row, "config"), json_of(row, "versions"))


def last_step(journal: Journal) -> int | None:
    """Return the last step in the journal, or None when it has none yet."""
    [row] = journal.tuples("SELECT max(step) AS last FROM step")
    return None if row[0] is None else int(row[0])


def metric_series(journal: Journal) -> dict[str, Series]:
    """Return every metric by name as a series over the steps."""
    series: dict[str, Series] = defaultdict(list)
    for name, step, value in journal.tuples("SELECT name, step, value FROM metric ORDER BY name, step"):
        series[name].append((step, value))
    return dict(series)


def timing_series(journal: Journal) -> dict[str, Series]:
    """Return wall-clock seconds by phase as series over the steps."""
    series: dict[str, Series] = defaultdict(list)
    for phase, step, seconds in journal.tuples("SELECT phase, step, seconds FROM timing ORDER BY step"):
        series[phase].append((step, seconds))
    return dict(series)


def tokens_sampled(journal: Journal) -> int:
    """Return how many tokens all proposals and attempts of the run took so far (the suite's are not counted)."""
    marks = ", ".join("?" * len(UNLISTED_TOKENS))
    [row] = journal.tuples(
        "SELECT (SELECT coalesce(sum(num_tokens), 0) FROM candidate)"
        " + (SELECT coalesce(sum(num_tokens), 0) FROM attempt)"
        f" + (SELECT coalesce(sum(value), 0) FROM metric WHERE name IN ({marks}))",
        UNLISTED_TOKENS,
    )
    return int(row[0])


def step_seconds(journal: Journal) -> float:
    """Return the wall-clock seconds of all steps from 1 on, without what comes behind a step: ``AFTER_A_STEP``."""
    marks = ", ".join("?" * len(AFTER_A_STEP))
    [row] = journal.tuples(
        f"SELECT coalesce(sum(seconds), 0.0) FROM timing WHERE step > 0 AND phase NOT IN ({marks})", AFTER_A_STEP
    )
    return float(row[0])


def individuals(journal: Journal) -> list[Row]:
    """Return all members in the order of birth: id, role, slot, born_step, operator, left_step (None: still there)."""
    rows = journal.query(
        "SELECT i.id, i.role, i.slot, i.born_step, i.operator, b.step AS left_step FROM individual i "
        "LEFT JOIN birth b ON b.replaced = i.id ORDER BY i.born_step, i.role DESC, i.slot"
    )
    if len(rows) > MAX_MEMBERS:
        raise UserError(f"The journal {journal.path} has {len(rows):,} members; at most {MAX_MEMBERS:,} are shown.")
    return rows


def with_pairs(row: Row) -> Row:
    """Return a task's row with ``inputs`` and ``outputs`` as lists. Raises UserError when they do not match."""
    inputs, outputs = json_pairs(row)
    return row | {"inputs": inputs, "outputs": outputs}


def as_task(row: Row) -> Task:
    """Return a row that ``with_pairs`` made as the verifier knows it."""
    fields = {name: row[name] for name in TASK_COLUMNS}
    return Task(**fields | {"inputs": tuple(row["inputs"]), "outputs": tuple(row["outputs"])})


def births(journal: Journal) -> list[tuple[Row, list[str]]]:
    """Return all replacements in order, each with the ids of its parents."""
    parents: dict[str, list[str]] = defaultdict(list)
    for child, parent in journal.tuples("SELECT child, parent FROM parent ORDER BY child, position"):
        parents[child].append(parent)
    rows = journal.query("SELECT * FROM birth ORDER BY step, child")
    return [(row, parents[row["child"]]) for row in rows]


def health(journal: Journal) -> list[Row]:
    """Return the check-ups of all generations in order; ``warnings`` as a list of sentences."""
    rows = journal.query("SELECT * FROM health ORDER BY step")
    return [{**row, "warnings": json_of(row, "warnings")} for row in rows]


def hall(journal: Journal) -> list[Row]:
    """Return who entered the hall of fame, in order: id, step, member, slot."""
    return journal.query("SELECT * FROM hall ORDER BY step, slot")


def ratings(journal: Journal) -> list[Row]:
    """Return the ratings of all members after each step: step, individual, mu, sigma, fitness."""
    return journal.query("SELECT * FROM rating ORDER BY step, individual")


def meetings(journal: Journal) -> list[Row]:
    """Return, for each teacher and student that played: num_matches, num_tasks, and solve_frac weighted by tasks."""
    return journal.query(
        "SELECT teacher, student, count(*) AS num_matches, sum(num_tasks) AS num_tasks, "
        "sum(solve_frac * num_tasks) / sum(CASE WHEN solve_frac IS NOT NULL THEN num_tasks END) AS solve_frac "
        "FROM match GROUP BY teacher, student ORDER BY teacher, student"
    )


def evaluations(journal: Journal) -> list[Row]:
    """Return all external fitness rows in the order of steps."""
    return journal.query("SELECT * FROM evaluation ORDER BY step, individual, suite, stratum, kind, mode")


def rejections(journal: Journal) -> list[Row]:
    """Return how many proposals of each step got which reason of rejection: step, reason, num."""
    return journal.query(
        "SELECT step, verdict AS reason, count(*) AS num FROM candidate WHERE verdict != 'ok' "
        "GROUP BY step, verdict ORDER BY step, verdict"
    )


def tasks_of_step(journal: Journal, step: int) -> list[Row]:
    """Return the valid tasks of one step, in the order in which they were proposed."""
    return journal.query("SELECT * FROM task WHERE step = ? ORDER BY seq", (step,))


def attempts_of_task(journal: Journal, task_seq: int) -> list[Row]:
    """Return all attempts at one task, in order, with text, answer, thought, verdict, reward and advantage."""
    return journal.query("SELECT * FROM attempt WHERE task = ? ORDER BY seq", (task_seq,))
