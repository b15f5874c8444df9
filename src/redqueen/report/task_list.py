"""Tasks of a run: a list, and one task with its proposal and all attempts.

The SQL text consists of constants in this file only; all values are passed as parameters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from redqueen.display import visible
from redqueen.domains.registry import in_order, kinds
from redqueen.errors import UserError, command
from redqueen.journal import Journal
from redqueen.journal.read import TASK_COLUMNS, with_pairs
from redqueen.journal.untrusted import Row, SqlValue
from redqueen.run.store import JOURNAL

PAGE_TASKS, PREVIEW_CHARS = 25, 600
"""A page of the dashboard lists this many tasks, and this much of each program."""

COLUMNS = (
    "seq", "step", *TASK_COLUMNS, "ast_depth", "cyclomatic", "num_lines", "num_attempts", "num_correct",
)  # fmt: skip


@dataclass(frozen=True)
class TaskFilter:
    """A filter of tasks; None and "": no condition. Solve rates are shares (0..1) of graded attempts.

    ``contains`` is a text in the program, message, inputs or outputs (case-insensitive); ``limit`` 0: all.
    """

    kind: str = ""
    step: int | None = None
    teacher: str = ""
    student: str = ""
    min_solved: float | None = None
    max_solved: float | None = None
    min_depth: int | None = None
    contains: str = ""
    limit: int = 20

    @property
    def asked(self) -> dict[str, str]:
        """The conditions that are set, as query parameters."""
        return {k: str(v) for k, v in asdict(self).items() if v not in (None, "") and k in FIELDS}

    def condition(self) -> tuple[str, list[SqlValue]]:
        """Return the condition in SQL, and its values."""
        pattern = "%" + re.sub(r"([\\%_])", r"\\\1", self.contains) + "%"
        conditions: list[tuple[str, SqlValue]] = [
            ("kind = ?", self.kind or None),
            ("step = ?", self.step),
            ("teacher = ?", self.teacher or None),
            # with all_pairs, a task's student is a comma-separated list
            ("instr(',' || replace(student, ' ', '') || ',', ',' || ? || ',') > 0", self.student or None),
            ("num_attempts > 0 AND num_correct >= ? * num_attempts", self.min_solved),
            ("num_attempts > 0 AND num_correct <= ? * num_attempts", self.max_solved),
            ("ast_depth >= ?", self.min_depth),
            (
                "code || '\n' || message || '\n' || inputs || '\n' || outputs LIKE ? ESCAPE '\\'",
                pattern if self.contains else None,
            ),
        ]
        used = [(text, value) for text, value in conditions if value is not None]
        return " AND ".join(f"({text})" for text, _ in used) or "1", [value for _, value in used]


FIELDS = tuple(field.name for field in fields(TaskFilter) if field.name != "limit")
"""The fields of the dashboard's form."""


def find_tasks(run_dir: Path, wanted: TaskFilter) -> list[Row]:
    """Return the tasks that match, newest first, as plain values (``inputs`` and ``outputs`` as lists).

    Raises UserError when there is no journal or a condition is not valid.
    """
    for flag, share in (("--min-solved", wanted.min_solved), ("--max-solved", wanted.max_solved)):
        if share is not None and not 0 <= share <= 1:
            raise UserError(f"{flag} {share}: give a share of the attempts from 0 to 1")
    if wanted.limit < 0:
        raise UserError(f"--limit {wanted.limit}: give the number of tasks to show, or 0 for all")
    where, values = wanted.condition()
    sql = f"SELECT {', '.join(COLUMNS)} FROM task WHERE {where} ORDER BY seq DESC LIMIT ?"
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        present = in_order([*kinds(), *(row["kind"] for row in journal.query("SELECT DISTINCT kind FROM task"))])
        if wanted.kind and wanted.kind not in present:
            raise UserError(f"--kind {wanted.kind} is unknown: choose one of {', '.join(present)}")
        return [with_pairs(row) for row in journal.query(sql, [*values, wanted.limit or -1])]


def read_task(run_dir: Path, task_id: str) -> Row:
    """Return one task as :func:`task_with_attempts` does.

    Raises UserError when there is no such task; it names the reason if the proposal was rejected.
    """
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        found = task_with_attempts(journal, "id", task_id)
        rejected = journal.query("SELECT verdict FROM candidate WHERE id = ?", [task_id])
    if found is None:
        shown = visible(task_id, 80, one_line=True)
        why = f" (it was proposed, and rejected: {visible(rejected[0]['verdict'])})" if rejected else ""
        raise UserError(f"--task {shown} is not a task of {run_dir}{why}: `{command('tasks', run_dir)}` lists them")
    return found


def task_with_attempts(journal: Journal, column: Literal["id", "seq"], value: str | int) -> Row | None:
    """Return the task whose ``column`` has this value, with ``proposal`` (the teacher's text, reward, advantage) and
    ``attempts``, all plain values; None if there is none."""
    found = journal.query(f"SELECT {', '.join(COLUMNS)} FROM task WHERE {column} = ?", [value])
    if not found:
        return None
    task, names = with_pairs(found[0]), "text, verdict, detail, reward, advantage, num_tokens"
    proposal = journal.query(f"SELECT {names} FROM candidate WHERE id = ?", [task["id"]])
    attempts = journal.query(
        f"SELECT student, answer, thought, correct, lost, {names} FROM attempt WHERE task = ? ORDER BY seq",
        [task["seq"]],
    )
    return task | {"proposal": proposal[0] if proposal else None, "attempts": attempts}


# On the dashboard --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskPage:
    """A page of the list. ``num_found`` is None after a search, where counting would mean reading every task."""

    tasks: list[Row]
    num_found: int | None
    next_after: int | None


NEIGHBOURS = "SELECT (SELECT max(seq) FROM task WHERE seq < ?), (SELECT min(seq) FROM task WHERE seq > ?)"
"""The tasks before and after one."""


def read_form(asked: Mapping[str, str], present: Collection[str]) -> TaskFilter:
    """Return the filter of a form's fields; ``present`` are the run's kinds. Raises UserError that names an invalid
    field."""
    text = {name: asked.get(name, "").strip()[:200] for name in FIELDS}
    if text["kind"] and text["kind"] not in present:
        raise UserError(f"The kind is unknown; choose one of {', '.join(present)}.")
    return TaskFilter(
        kind=text["kind"],
        step=whole_number("step", text["step"]),
        teacher=text["teacher"],
        student=text["student"],
        min_solved=_share("min_solved", text["min_solved"]),
        max_solved=_share("max_solved", text["max_solved"]),
        min_depth=whole_number("min_depth", text["min_depth"]),
        contains=text["contains"],
        limit=PAGE_TASKS,
    )


def whole_number(name: str, text: str) -> int | None:
    """Return the number in a field, None when it is empty. Raises UserError for anything else."""
    if text and not re.fullmatch("[0-9]{1,12}", text):
        raise UserError(f"{name}: give a whole number, for instance 12, or leave the field empty.")
    return int(text) if text else None


def _share(name: str, text: str) -> float | None:
    if text and not re.fullmatch(r"0|1|[01]?\.[0-9]{1,6}", text):
        raise UserError(f"{name}: give a share from 0 to 1, for instance 0.5, or leave the field empty.")
    return float(text) if text else None


def task_page(journal: Journal, wanted: TaskFilter, after: int | None) -> TaskPage:
    """Return one page of the tasks that match; the next page begins after the ``seq`` of this page's last task."""
    where, values = wanted.condition()
    num_found = None
    if not wanted.contains:
        num_found = journal.tuples(f"SELECT count(*) FROM task WHERE {where}", values)[0][0]
    if after is not None:
        where, values = f"{where} AND seq < ?", [*values, after]
    rows = journal.query(
        f"SELECT seq, step, teacher, student, kind, substr(code, 1, {PREVIEW_CHARS}) AS code, "
        f"length(code) AS num_chars, cyclomatic, ast_depth, num_lines, num_attempts, num_correct "
        f"FROM task WHERE {where} ORDER BY seq DESC LIMIT {PAGE_TASKS + 1}",
        values,
    )
    tasks = rows[:PAGE_TASKS]
    return TaskPage(tasks, num_found, tasks[-1]["seq"] if len(rows) > PAGE_TASKS else None)
