"""Writes a journal: creates or opens the file, stores each step in one transaction, truncates it for a resume."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from redqueen.errors import UserError
from redqueen.journal.read import Reader
from redqueen.journal.schema import (
    APPLICATION_ID,
    MEASURES,
    SCHEMA_VERSION,
    TABLES,
    AttemptRecord,
    CandidateRecord,
    EvaluationRecord,
    MatchRecord,
    RunRecord,
    TaskRecord,
)  # fmt: skip
from redqueen.journal.untrusted import SIDE_FILES, SqlValue, TimeLimit, open_checked, sqlite_errors, writing_here
from redqueen.records import Birth, Individual


class Journal(Reader):
    """An open journal, from ``create`` or ``open``; closed by ``close`` or at the end of a ``with`` block.

    SQLite runs with a write-ahead log and ``synchronous = FULL``: a committed step survives a power failure, and
    readers do not block the writer. There is one commit (one fsync) per step.
    """

    @classmethod
    def create(cls, path: Path, run: RunRecord) -> Journal:
        """Create a journal at ``path`` with the run's row. Raises UserError when a file exists there."""
        path = Path(path)
        for ending in ("", *SIDE_FILES):
            if os.path.lexists(f"{path}{ending}"):
                raise UserError(f"{path}{ending} exists already; choose another run directory, or resume this one.")
        with sqlite_errors(path):
            connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_mode = WAL")
            marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
            connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {marks}")
            connection.execute(
                "INSERT INTO run VALUES (1, ?, ?, ?, ?, ?)",
                (run.name, run.arm, str(run.rng_seed), json_text(run.config), json_text(run.versions)),
            )
            connection.execute("COMMIT")
        return cls(path, connection, None)._to_write()

    @classmethod
    def open(cls, path: Path, read_only: bool = False, limit: TimeLimit | None = None) -> Journal:
        """Open an existing journal, to write or (``read_only``) to read while another process writes.

        Reading changes nothing in the folder. ``limit`` bounds the time of a reader's queries. Raises UserError when
        there is no journal, when it is not safe to open, and when its schema is of another version or was changed.
        """
        path, limit = Path(path), limit or TimeLimit()
        connection, folder = open_checked(path, read_only, limit)
        return cls(path, connection, limit, folder) if read_only else cls(path, connection, None)._to_write()

    def _to_write(self) -> Journal:
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        writing_here[self.path.resolve()] += 1
        return self

    def close(self) -> None:
        """Close the file; a writer first moves its log into it, so that all data is in one file."""
        if self._limit is None:
            with suppress(sqlite3.Error):  # if another process is reading, the log stays; readers use it
                self.connection.execute("PRAGMA busy_timeout = 500")
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            writing_here[self.path.resolve()] -= 1
            self._limit = TimeLimit()  # a second call does not repeat this
        super().close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def step(self, step: int) -> Iterator[StepWriter]:
        """Open the transaction of one step (0: the state before the first), which is stored completely or not at all.

        Raises ValueError when the journal already has the step: a resume must truncate it first.
        """
        with self._transaction():
            if self.connection.execute("SELECT 1 FROM step WHERE step = ?", (step,)).fetchone() is not None:
                raise ValueError(f"step {step} is in {self.path} already; truncate_after({step - 1}) first")
            self.connection.execute("INSERT INTO step VALUES (?)", (step,))
            yield StepWriter(self.connection, step)

    def truncate_after(self, step: int) -> int:
        """Delete every step after ``step`` with all its rows, and return how many steps were deleted.

        A resume calls this: steps after the checkpoint run again and get the same row numbers.
        """
        with self._transaction():
            return self.connection.execute("DELETE FROM step WHERE step > ?", (step,)).rowcount

    def add_session(self, started_at_s: float, after_step: int | None) -> None:
        """Record that a process starts to write (Unix seconds); ``after_step`` is None for a run's first process."""
        sql = "INSERT INTO session (started_at_s, after_step) VALUES (?, ?)"
        with self._transaction():
            self.connection.execute(sql, (started_at_s, after_step))

    def add_timings(self, step: int, seconds: Mapping[str, float]) -> None:
        """Add seconds by phase to a stored step: its checkpoint is written after its commit."""
        with self._transaction():
            StepWriter(self.connection, step).add_timings(seconds)

    def set_evaluations(
        self, step: int, records: Iterable[EvaluationRecord], metrics: Mapping[str, float] | None = None
    ) -> None:
        """Replace the evaluations and the given metrics of a stored step whose evaluation was interrupted.

        The metrics replace all with the same prefix (``product/``): a process that was killed between this call and its
        checkpoint may have stored some.
        """
        metrics = metrics or {}
        with self._transaction():
            self.connection.execute("DELETE FROM evaluation WHERE step = ?", (step,))
            for prefix in sorted({f"{name.partition('/')[0]}/%" for name in metrics}):
                self.connection.execute("DELETE FROM metric WHERE step = ? AND name LIKE ?", (step, prefix))
            StepWriter(self.connection, step).add_evaluations(records)
            StepWriter(self.connection, step).add_metrics(metrics)

    def lengthen(self, config: Mapping[str, object], metrics: Mapping[str, float], step: int) -> None:
        """Replace the config in the run's record and store the changes as metrics of ``step``, in one transaction."""
        with self._transaction():
            self.connection.execute("UPDATE run SET config = ?", (json_text(config),))
            names = [(step, name) for name in metrics]
            self.connection.executemany("DELETE FROM metric WHERE step = ? AND name = ?", names)
            StepWriter(self.connection, step).add_metrics(metrics)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with sqlite_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")


COUNT_ATTEMPTS = """
UPDATE task SET
    num_attempts = (SELECT count(*) FROM attempt WHERE attempt.task = task.seq AND NOT lost),
    num_correct = (SELECT count(*) FROM attempt WHERE attempt.task = task.seq AND NOT lost AND correct)
WHERE step = ?
"""


@dataclass(frozen=True)
class StepWriter:
    """The open transaction of one step. Add tasks before their attempts; the order is free otherwise.

    Numbers that are not finite are stored as NULL, which means "not defined".
    """

    connection: sqlite3.Connection
    step: int

    def add_metrics(self, metrics: Mapping[str, float | None]) -> None:
        """Store the step's numbers by name."""
        self._insert("metric", ((self.step, name, value) for name, value in metrics.items()))

    def add_timings(self, seconds: Mapping[str, float]) -> None:
        """Store wall-clock seconds by phase."""
        self._insert("timing", ((self.step, phase, value) for phase, value in seconds.items()))

    def add_individuals(self, individuals: Iterable[Individual]) -> None:
        """Store members that are new in this step: the founders in step 0, later the children."""
        self._insert("individual", ((i.id, self.step, i.role, i.slot, i.born_step, i.operator) for i in individuals))

    def add_births(self, births: Iterable[Birth]) -> None:
        """Store replacements with their parents; add the children with ``add_individuals`` too."""
        for b in births:
            head = (b.child, self.step, b.replaced, b.operator, json_text(b.constants), str(b.rng_seed))
            space = "delta" if b.parents else "none"
            self._insert("birth", [(*head, b.relative_change, space, json_text(b.layer_changes))])
            self._insert("parent", ((b.child, at, parent) for at, parent in enumerate(b.parents)))

    def add_hall_entries(self, entries: Iterable[tuple[str, str, int]]) -> None:
        """Store members that entered the hall of fame: the entry's id, the member's id, the entry's slot."""
        self._insert("hall", ((name, self.step, member, slot) for name, member, slot in entries))

    def add_health(self, numbers: Mapping[str, float | None], warnings: Sequence[str]) -> None:
        """Store the diagnostics of a generation: numbers by column (None: no data to measure it on) and warnings."""
        columns = ", ".join(("step", *numbers, "warnings"))
        self._insert(f"health ({columns})", [(self.step, *numbers.values(), json_text(list(warnings)))])

    def add_matches(self, records: Iterable[MatchRecord]) -> None:
        for r in records:
            pair = (self.step, r.match.teacher, r.match.student, r.match.expected_win_frac)
            self._insert("match", [(*pair, r.num_tasks, r.solve_frac, r.winner)])

    def add_candidates(self, records: Iterable[CandidateRecord]) -> None:
        columns = "id, step, teacher, student, kind, text, verdict, detail, reward, advantage, num_tokens"
        self._insert(f"candidate ({columns})", (_candidate_row(self.step, r) for r in records))

    def add_tasks(self, records: Iterable[TaskRecord]) -> None:
        columns = (
            "id, step, teacher, student, kind, code, inputs, outputs, message, num_shown, protection, ast_depth, "
            "cyclomatic, num_lines, num_variables, behaviour, behaviour_class, novelty, crowd_frac, "
            "size_hardness"
        )
        self._insert(f"task ({columns})", (_task_row(self.step, r) for r in records))

    def add_attempts(self, records: Iterable[AttemptRecord]) -> None:
        """Store graded attempts, in order, and update the counts of their tasks.

        Raises ValueError for an attempt at a task that is not one of this step's.
        """
        rows = self.connection.execute("SELECT id, seq FROM task WHERE step = ?", (self.step,))
        task_seq: dict[str, int] = dict(rows.fetchall())
        columns = (
            "task, student, text, answer_at, answer_chars, answer_apart, thought_at, thought_chars, thought_apart, "
            "verdict, detail, correct, lost, reward, advantage, num_tokens"
        )
        self._insert(f"attempt ({columns})", (_attempt_row(task_seq, r) for r in records))
        self.connection.execute(COUNT_ATTEMPTS, (self.step,))

    def add_ratings(self, rated: Iterable[tuple[Individual, float]]) -> None:
        """Store the ratings after the step: pairs of a member and its fitness (rating points)."""
        self._insert("rating", ((self.step, i.id, i.rating.mu, i.rating.sigma, fitness) for i, fitness in rated))

    def add_evaluations(self, records: Iterable[EvaluationRecord]) -> None:
        rows = (astuple(record) for record in records)
        self._insert("evaluation", ((self.step, name, "held-out", *rest) for name, *rest in rows))

    def _insert(self, into: str, rows: Iterable[tuple[SqlValue, ...]]) -> None:
        if stored := [tuple(map(_stored, row)) for row in rows]:
            marks = ", ".join("?" * len(stored[0]))
            self.connection.executemany(f"INSERT INTO {into} VALUES ({marks})", stored)


def _stored(value: SqlValue) -> SqlValue:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return plain(value) if isinstance(value, str) else value


def plain(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot hold, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def place(part: str | None, text: str) -> tuple[int | None, int | None, str | None]:
    """Return the position of ``part`` in ``text``: (first character counted from 1, characters, None).

    Returns (None, None, part) when it is not a substring, or ``text`` has a NUL, at which SQLite ends a substring.
    """
    at = -1 if not part or "\0" in text else text.find(part)
    return (None, None, part) if part is None or at < 0 else (at + 1, len(part), None)


def _candidate_row(step: int, record: CandidateRecord) -> tuple[SqlValue, ...]:
    c = record.candidate
    head = (c.id, step, c.teacher, c.student, c.kind, c.text)
    return (*head, record.verdict, record.detail, record.reward, record.advantage, record.num_tokens)


def _task_row(step: int, record: TaskRecord) -> tuple[SqlValue, ...]:
    task, measures, crowding = record.task, record.measures or {}, record.crowding
    head = (task.id, step, task.teacher, task.student, task.kind)
    texts = (task.code, json_text(task.inputs), json_text(task.outputs), task.message)
    numbers = (task.num_shown, task.protection, *(measures.get(name) for name in MEASURES))
    classed = ("", None, None, None) if crowding is None else astuple(crowding)
    return (*head, *texts, *numbers, record.behaviour, *classed)


def _attempt_row(task_seq: Mapping[str, int], record: AttemptRecord) -> tuple[SqlValue, ...]:
    attempt, grade = record.outcome.attempt, record.outcome.grade
    if attempt.task_id not in task_seq:
        raise ValueError(f"an attempt names the task {attempt.task_id!r}, which is not among this step's tasks")
    text = plain(attempt.text)
    answer = place(None if attempt.answer is None else plain(attempt.answer), text)
    head = (task_seq[attempt.task_id], attempt.student, text, *answer, *place(plain(attempt.thought) or None, text))
    graded = (grade.verdict, grade.detail, int(grade.correct), int(grade.lost))
    return (*head, *graded, record.reward, record.advantage, attempt.num_tokens)


def json_text(value: object) -> str:
    """Return JSON text with sorted keys and ASCII only, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, default=dict)
