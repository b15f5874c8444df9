"""Reads a journal: checked queries, and the rows that the report, the terminal and analyses need."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from redqueen.errors import UserError
from redqueen.journal.schema import UNLISTED_TOKENS, RunRecord
from redqueen.journal.untrusted import Copy, Row, SqlValue, TimeLimit, check_rows, file_sizes, json_of, limited
from redqueen.records import Task

ROWS_AT_A_TIME = 100
MAX_ROWS = 2_000_000
MAX_CHARS = 256_000_000
"""Maximum rows and characters of one query: a small prepared file can return one text a million times."""

SLACK_BYTES = 1 << 20
"""Bytes that ``portions`` may yield beyond eight times the size of file and log: live runs grow, and some columns are
computed."""


class Reader:
    """Queries on an open journal. Every returned value is checked against its column."""

    def __init__(self, path: Path, connection: sqlite3.Connection, limit: TimeLimit | None, copy: Copy = None):
        self.path, self.connection = path, connection
        self._limit, self._copy = limit, copy

    def close(self) -> None:
        """Close the file, and delete the private copy if there is one."""
        self.connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    def query(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a SELECT and return its rows as plain dicts. Pass values as parameters, never in the text.

        Raises UserError for a value that no run writes, and when the result is too large.
        """
        names, rows = self._all(sql, values)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def tuples(self, sql: str, values: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        """Run a SELECT and return its rows as tuples. Raises as ``query`` does."""
        return self._all(sql, values)[1]

    def _all(self, sql: str, values: Sequence[SqlValue]) -> tuple[list[str], list[tuple[Any, ...]]]:
        found: list[tuple[Any, ...]] = []
        num_chars = 0
        with limited(self.path, self.connection, self._limit):
            cursor = self.connection.execute(sql, values)
            names = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(ROWS_AT_A_TIME):
                num_chars += check_rows(self.path, names, rows)
                found += rows
                if self._limit is not None and (len(found) > MAX_ROWS or num_chars > MAX_CHARS):
                    raise UserError(
                        f"The journal {self.path} has more rows than can be shown at once: ask for one step, one kind, "
                        "or fewer rows."
                    )
        return names, found

    def portions(self, sql: str) -> Iterator[list[tuple[Any, ...]]]:
        """Run a SELECT on one table and yield its rows a thousand at a time. Raises as ``query`` does."""
        sizes = file_sizes(self.path)
        left_bytes = 8 * (sizes[""] + sizes["-wal"]) + SLACK_BYTES
        with limited(self.path, self.connection, self._limit):
            cursor = self.connection.execute(sql)
        names = [column[0] for column in cursor.description]
        while True:
            with limited(self.path, self.connection, self._limit):
                rows = cursor.fetchmany(10 * ROWS_AT_A_TIME)
            if not rows:
                return
            left_bytes -= 4 * len(rows) + check_rows(self.path, names, rows)
            if left_bytes < 0:  # in a genuine journal each row takes its own bytes of the file
                raise UserError(f"The journal {self.path} holds more rows than its size allows: it was prepared.")
            yield rows


Series = list[tuple[int, float | None]]
"""Pairs of a step and a value; None where the number was not defined."""

TASK_COLUMNS = (
    "id", "teacher", "student", "kind", "code", "inputs", "outputs", "message", "num_shown", "protection",
)  # fmt: skip
"""The columns of a task's row that are fields of ``Task``; the others are measures of it."""

AFTER_A_STEP = ("product", "evaluate", "checkpoint")
"""Phases that do not count as a step's time: they depend on how often a run is evaluated, or run only at the end."""

MAX_MEMBERS = 50_000
"""Maximum number of members, present and past, of a run that can be shown."""


def run_record(journal: Reader) -> RunRecord:
    """Return the run's record, written when the journal was created."""
    rows = journal.query("SELECT * FROM run")
    if len(rows) != 1:
        raise UserError(f"The journal {journal.path} does not name its run; restore it from a copy.")
    row = rows[0]
    return RunRecord(row["name"], row["arm"], int(row["rng_seed"]), json_of(row, "config"), json_of(row, "versions"))


def last_step(journal: Reader) -> int | None:
    """Return the last step in the journal, None before the first."""
    [row] = journal.tuples("SELECT max(step) AS last FROM step")
    return None if row[0] is None else int(row[0])


def metric_series(journal: Reader) -> dict[str, Series]:
    """Return every metric by name as a series over the steps."""
    return _series(journal, "SELECT name, step, value FROM metric ORDER BY name, step")


def timing_series(journal: Reader) -> dict[str, Series]:
    """Return wall-clock seconds by phase as series over the steps."""
    return _series(journal, "SELECT phase, step, seconds FROM timing ORDER BY step")


def _series(journal: Reader, query: str) -> dict[str, Series]:
    series: dict[str, Series] = defaultdict(list)
    for name, step, value in journal.tuples(query):
        series[name].append((step, value))
    return dict(series)


def tokens_sampled(journal: Reader) -> int:
    """Return the tokens of all proposals and attempts of the run so far (those of evaluations are not counted)."""
    marks = ", ".join("?" * len(UNLISTED_TOKENS))
    [row] = journal.tuples(
        "SELECT (SELECT coalesce(sum(num_tokens), 0) FROM candidate)"
        " + (SELECT coalesce(sum(num_tokens), 0) FROM attempt)"
        f" + (SELECT coalesce(sum(value), 0) FROM metric WHERE name IN ({marks}))",
        UNLISTED_TOKENS,
    )
    return int(row[0])


def step_seconds(journal: Reader) -> float:
    """Return the wall-clock seconds of all steps from 1 on, without the phases ``AFTER_A_STEP``."""
    marks = ", ".join("?" * len(AFTER_A_STEP))
    [row] = journal.tuples(
        f"SELECT coalesce(sum(seconds), 0.0) FROM timing WHERE step > 0 AND phase NOT IN ({marks})", AFTER_A_STEP
    )
    return float(row[0])


def individuals(journal: Reader) -> list[Row]:
    """Return all members in the order of birth: id, role, slot, born_step, operator, left_step (None: present)."""
    rows = journal.query(
        "SELECT i.id, i.role, i.slot, i.born_step, i.operator, b.step AS left_step FROM individual i "
        "LEFT JOIN birth b ON b.replaced = i.id ORDER BY i.born_step, i.role DESC, i.slot"
    )
    if len(rows) > MAX_MEMBERS:
        raise UserError(f"The journal {journal.path} has {len(rows):,} members; at most {MAX_MEMBERS:,} are shown.")
    return rows


def with_pairs(row: Row) -> Row:
    """Return a task's row with ``inputs`` and ``outputs`` as lists. Raises UserError unless they have equal lengths."""
    inputs, outputs = json_of(row, "inputs"), json_of(row, "outputs")
    if len(inputs) != len(outputs) or not inputs:
        raise UserError("The journal has a task with inputs and outputs that do not match; restore it from a copy.")
    return row | {"inputs": inputs, "outputs": outputs}


def as_task(row: Row) -> Task:
    """Return a row from ``with_pairs`` as a task."""
    fields = {name: row[name] for name in TASK_COLUMNS}
    return Task(**fields | {"inputs": tuple(row["inputs"]), "outputs": tuple(row["outputs"])})


def births(journal: Reader) -> list[tuple[Row, list[str]]]:
    """Return all replacements in order, each with the ids of its parents."""
    parents: dict[str, list[str]] = defaultdict(list)
    for child, parent in journal.tuples("SELECT child, parent FROM parent ORDER BY child, position"):
        parents[child].append(parent)
    rows = journal.query("SELECT * FROM birth ORDER BY step, child")
    return [(row, parents[row["child"]]) for row in rows]


def health(journal: Reader) -> list[Row]:
    """Return the diagnostics of all generations in order; ``warnings`` as a list of sentences."""
    rows = journal.query("SELECT * FROM health ORDER BY step")
    return [{**row, "warnings": json_of(row, "warnings")} for row in rows]


def ratings(journal: Reader) -> list[Row]:
    """Return the ratings of all members after each step: step, individual, mu, sigma, fitness."""
    return journal.query("SELECT * FROM rating ORDER BY step, individual")


def meetings(journal: Reader) -> list[Row]:
    """Return num_matches, num_tasks, and solve_frac weighted by tasks for each pair of teacher and student."""
    return journal.query(
        "SELECT teacher, student, count(*) AS num_matches, sum(num_tasks) AS num_tasks, "
        "sum(solve_frac * num_tasks) / sum(CASE WHEN solve_frac IS NOT NULL THEN num_tasks END) AS solve_frac "
        "FROM match GROUP BY teacher, student ORDER BY teacher, student"
    )


def evaluations(journal: Reader) -> list[Row]:
    """Return all external fitness rows in the order of steps."""
    return journal.query("SELECT * FROM evaluation ORDER BY step, individual, stratum, kind, mode")


def tasks_of_step(journal: Reader, step: int) -> list[Row]:
    """Return the valid tasks of one step, in the order in which they were proposed."""
    return journal.query("SELECT * FROM task WHERE step = ? ORDER BY seq", (step,))


def attempts_of_task(journal: Reader, task_seq: int) -> list[Row]:
    """Return all attempts at one task, in order, with text, answer, thought, verdict, reward and advantage."""
    return journal.query("SELECT * FROM attempt WHERE task = ? ORDER BY seq", (task_seq,))
