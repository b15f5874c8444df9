"""Writing what belongs to one step: each kind of record becomes rows of its table."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from redqueen.journal.records import (
    MEASURES,
    AttemptRecord,
    CandidateRecord,
    EvaluationRecord,
    MatchRecord,
    TaskRecord,
)
from redqueen.records import Birth, Individual

SqlValue = str | int | float | None

COUNT_ATTEMPTS = """
UPDATE task SET
    num_attempts = (SELECT count(*) FROM attempt WHERE attempt.task = task.seq AND NOT lost),
    num_correct = (SELECT count(*) FROM attempt WHERE attempt.task = task.seq AND NOT lost AND correct)
WHERE step = ?
"""


@dataclass(frozen=True)
class StepWriter:
    """The open transaction of one step. The order of calls is free, but tasks go before their attempts."""

    connection: sqlite3.Connection
    step: int

    def add_metrics(self, metrics: Mapping[str, float | None]) -> None:
        """Store the step's numbers by name; what is not finite is stored as NULL (not defined)."""
        self._insert("metric", [(self.step, name, finite(value)) for name, value in metrics.items()])

    def add_timings(self, seconds: Mapping[str, float]) -> None:
        """Store wall-clock seconds by phase."""
        self._insert("timing", [(self.step, phase, value) for phase, value in seconds.items()])

    def add_individuals(self, individuals: Iterable[Individual]) -> None:
        """Store members that are new in this step: the founders in step 0, later the newly born."""
        self._insert("individual", [(i.id, self.step, i.role, i.slot, i.born_step, i.operator) for i in individuals])

    def add_births(self, births: Iterable[Birth]) -> None:
        """Store replacements with their parents; the children go in with ``add_individuals`` as well."""
        births = list(births)
        self._insert(
            "birth",
            [
                (
                    b.child,
                    self.step,
                    b.replaced,
                    b.operator,
                    json_text(b.constants),
                    str(b.rng_seed),
                    finite(b.relative_change),
                    "delta" if b.parents else "none",
                    json_text(b.layer_changes),
                )
                for b in births
            ],
        )
        self._insert("parent", [(b.child, at, parent) for b in births for at, parent in enumerate(b.parents)])

    def add_hall_entries(self, entries: Iterable[tuple[str, str, int]]) -> None:
        """Store who entered the hall of fame: the entry's id, the member's id, the entry's slot."""
        self._insert("hall", [(name, self.step, member, slot) for name, member, slot in entries])

    def add_health(self, numbers: Mapping[str, float | None], warnings: Sequence[str]) -> None:
        """Store the check-up of a generation: numbers by column (None: nothing to measure it on) and the warnings."""
        columns = ", ".join(("step", *numbers, "warnings"))
        values = (self.step, *(finite(value) for value in numbers.values()), json_text(list(warnings)))
        self._insert(f"health ({columns})", [values])

    def add_matches(self, records: Iterable[MatchRecord]) -> None:
        self._insert(
            "match",
            [
                (
                    self.step,
                    r.match.teacher,
                    r.match.student,
                    finite(r.match.expected_win_frac),
                    r.num_tasks,
                    finite(r.solve_frac),
                    r.winner,
                )
                for r in records
            ],
        )

    def add_candidates(self, records: Iterable[CandidateRecord]) -> None:
        self._insert(
            "candidate (id, step, teacher, student, kind, text, verdict, detail, reward, advantage, num_tokens)",
            [
                (
                    r.candidate.id,
                    self.step,
                    r.candidate.teacher,
                    r.candidate.student,
                    r.candidate.kind,
                    plain(r.candidate.text),
                    r.verdict,
                    plain(r.detail),
                    finite(r.reward),
                    finite(r.advantage),
                    r.num_tokens,
                )
                for r in records
            ],
        )

    def add_tasks(self, records: Iterable[TaskRecord]) -> None:
        self._insert(
            "task (id, step, teacher, student, kind, code, inputs, outputs, message, num_shown, protection,"
            " ast_depth, cyclomatic, num_lines, num_variables, halstead_volume, behaviour, behaviour_class, novelty,"
            " crowd_frac, size_hardness)",
            [_task_row(self.step, r) for r in records],
        )

    def add_attempts(self, records: Iterable[AttemptRecord]) -> None:
        """Store graded attempts, in order, and count them at their tasks.

        Raises ValueError when one belongs to no task of this step.
        """
        rows = self.connection.execute("SELECT id, seq FROM task WHERE step = ?", (self.step,))
        task_seq: dict[str, int] = dict(rows.fetchall())
        self._insert(
            "attempt (task, student, text, answer_at, answer_chars, answer_apart, thought_at, thought_chars,"
            " thought_apart, verdict, detail, correct, lost, reward, advantage, num_tokens)",
            [_attempt_row(task_seq, r) for r in records],
        )
        self.connection.execute(COUNT_ATTEMPTS, (self.step,))

    def add_ratings(self, rated: Iterable[tuple[Individual, float]]) -> None:
        """Store the ratings after the step: pairs of a member and its fitness (rating points)."""
        self._insert("rating", [(self.step, i.id, i.rating.mu, i.rating.sigma, fitness) for i, fitness in rated])

    def add_evaluations(self, records: Iterable[EvaluationRecord]) -> None:
        self._insert(
            "evaluation",
            [
                (
                    self.step,
                    r.individual,
                    r.suite,
                    r.stratum,
                    r.kind,
                    r.mode,
                    r.num_items,
                    finite(r.mean_frac),
                    finite(r.low_frac),
                    finite(r.high_frac),
                    finite(r.thought_frac),
                    finite(r.mean_tokens),
                )
                for r in records
            ],
        )

    def _insert(self, into: str, rows: list[tuple[SqlValue, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self.connection.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)


def finite(value: float | None) -> float | None:
    """Return the value, or None when it is NaN or infinite: those are "not defined" in the journal."""
    return value if value is not None and math.isfinite(value) else None


def plain(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot hold, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def place(part: str | None, text: str) -> tuple[int | None, int | None, str | None]:
    """Return where ``part`` stands in ``text``: (first character counted from 1, characters, None); or, when it does
    not stand there, (None, None, part). SQLite ends a substring at a NUL, so text with one is not referred to."""
    at = -1 if not part or "\0" in text else text.find(part)
    return (None, None, part) if part is None or at < 0 else (at + 1, len(part), None)


def _task_row(step: int, record: TaskRecord) -> tuple[SqlValue, ...]:
    task, measures = record.task, record.measures or {}
    numbers = tuple(finite(measures.get(name)) for name in MEASURES)
    texts = (plain(task.code), json_text(task.inputs), json_text(task.outputs), plain(task.message))
    head = (task.id, step, task.teacher, task.student, task.kind)
    pressure = record.pressure
    sort: tuple[SqlValue, ...] = ("", None, None, None)
    if pressure is not None:
        pressed = (pressure.novelty, pressure.crowd_frac, pressure.size_hardness)
        sort = (plain(pressure.behaviour_class), *map(finite, pressed))
    return (*head, *texts, task.num_shown, task.protection, *numbers, plain(record.behaviour), *sort)


def _attempt_row(task_seq: Mapping[str, int], record: AttemptRecord) -> tuple[SqlValue, ...]:
    attempt, grade = record.outcome.attempt, record.outcome.grade
    if attempt.task_id not in task_seq:
        raise ValueError(f"an attempt names the task {attempt.task_id!r}, which is not among this step's tasks")
    text = plain(attempt.text)
    answer = None if attempt.answer is None else plain(attempt.answer)
    return (
        task_seq[attempt.task_id],
        attempt.student,
        text,
        *place(answer, text),
        *place(plain(attempt.thought) or None, text),
        grade.verdict,
        plain(grade.detail),
        int(grade.correct),
        int(grade.lost),
        finite(record.reward),
        finite(record.advantage),
        attempt.num_tokens,
    )


def json_text(value: object) -> str:
    """Return JSON text with sorted keys and ASCII only, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, default=dict)
