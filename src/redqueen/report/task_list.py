"""Tasks in the terminal: which there are, and one of them with everything that was done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redqueen.display import visible
from redqueen.domains.registry import in_order, kinds, shown_as
from redqueen.errors import UserError, command
from redqueen.journal import Journal
from redqueen.journal.read import TASK_COLUMNS, with_pairs
from redqueen.journal.write import Row
from redqueen.run.store import JOURNAL

MAX_TEXT_CHARS = 2000
"""Longest piece of a model's text on the screen; ``--json`` and the journal have all of it."""

MAX_LINE_CHARS = 60
"""Longest first line of a program in the list."""

COLUMNS = (
    "seq", "step", *TASK_COLUMNS, "ast_depth", "cyclomatic", "num_lines", "num_attempts", "num_correct",
)  # fmt: skip


BY_STUDENT = "instr(',' || replace(student, ' ', '') || ',', ',' || ? || ',') > 0"
"""Condition on a task's student in SQL: under ``all_pairs`` the column is a list with commas."""


@dataclass(frozen=True)
class TaskFilter:
    """Which tasks are meant; None and "": no condition. Solve rates are shares (0..1) of judged attempts."""

    kind: str = ""
    step: int | None = None
    teacher: str = ""
    student: str = ""
    min_solved: float | None = None
    max_solved: float | None = None
    min_depth: int | None = None
    contains: str = ""
    limit: int = 20


def find_tasks(run_dir: Path, wanted: TaskFilter) -> list[Row]:
    """Return the newest tasks that fit, newest first, as plain values (``inputs`` and ``outputs`` as lists).

    Raises UserError when there is no journal or a condition cannot be.
    """
    for flag, share in (("--min-solved", wanted.min_solved), ("--max-solved", wanted.max_solved)):
        if share is not None and not 0 <= share <= 1:
            raise UserError(f"{flag} {share}: give a share of the attempts from 0 to 1")
    if wanted.limit < 0:
        raise UserError(f"--limit {wanted.limit}: give the number of tasks to show, or 0 for all")
    conditions: list[tuple[str, str | int | float | None]] = [
        ("kind = ?", wanted.kind or None),
        ("step = ?", wanted.step),
        ("teacher = ?", wanted.teacher or None),
        (BY_STUDENT, wanted.student or None),
        ("num_attempts > 0 AND num_correct >= ? * num_attempts", wanted.min_solved),
        ("num_attempts > 0 AND num_correct <= ? * num_attempts", wanted.max_solved),
        ("ast_depth >= ?", wanted.min_depth),
        ("instr(code, ?) > 0", wanted.contains or None),
    ]
    used = [(text, value) for text, value in conditions if value is not None]
    where = " AND ".join(f"({text})" for text, _ in used) or "1"
    sql = f"SELECT {', '.join(COLUMNS)} FROM task WHERE {where} ORDER BY seq DESC LIMIT ?"
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        present = in_order([*kinds(), *(row["kind"] for row in journal.query("SELECT DISTINCT kind FROM task"))])
        if wanted.kind and wanted.kind not in present:
            raise UserError(f"--kind {wanted.kind} is unknown: choose one of {', '.join(present)}")
        return [with_pairs(row) for row in journal.query(sql, [*(value for _, value in used), wanted.limit or -1])]


def read_task(run_dir: Path, task_id: str) -> Row:
    """Return one task with ``proposal`` (the teacher's text, reward, advantage) and ``attempts``, all plain values.

    Raises UserError when there is no such task: then it names the reason of the rejection if it was proposed at all.
    """
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        found = journal.query(f"SELECT {', '.join(COLUMNS)} FROM task WHERE id = ?", [task_id])
        fields = "text, verdict, detail, reward, advantage, num_tokens"
        proposal = journal.query(f"SELECT {fields} FROM candidate WHERE id = ?", [task_id])
        if not found:
            shown = visible(task_id, 80, one_line=True)
            why = f" (it was proposed, and rejected: {visible(proposal[0]['verdict'])})" if proposal else ""
            raise UserError(f"--task {shown} is no task of {run_dir}{why}: `{command('tasks', run_dir)}` lists them")
        attempts = journal.query(
            "SELECT student, text, answer, thought, verdict, detail, correct, lost, reward, advantage, num_tokens "
            "FROM attempt WHERE task = ? ORDER BY seq",
            [found[0]["seq"]],
        )
    return with_pairs(found[0]) | {"proposal": proposal[0] if proposal else None, "attempts": attempts}


def list_text(rows: Sequence[Row]) -> str:
    """Return the tasks as a table of plain lines, safe for a terminal."""
    head = ["task", "step", "kind", "teacher", "student", "solved", "depth", "program"]
    cells = [
        [
            visible(str(row["id"]), 40, one_line=True),
            str(row["step"]),
            str(row["kind"]),
            visible(str(row["teacher"]), 20, one_line=True),
            visible(str(row["student"]), 20, one_line=True),
            f"{row['num_correct']}/{row['num_attempts']}",
            "" if row["ast_depth"] is None else str(row["ast_depth"]),
            visible(str(row["code"]).strip()[:MAX_LINE_CHARS], one_line=True),
        ]
        for row in rows
    ]
    widths = [max(len(line[i]) for line in (head, *cells)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *cells)
    )


def task_text(row: Row) -> str:
    """Return a task with its proposal and all attempts as text, safe for a terminal."""
    lines = [
        f"task {visible(str(row['id']), one_line=True)}: {row['kind']}, step {row['step']}, "
        f"by {_name(row['teacher'])} for {_name(row['student'])}, solved {row['num_correct']}/{row['num_attempts']}"
    ]
    if row["message"]:
        lines.append(f"message: {_text(row['message'])}")
    lines += ["", _text(row["code"]).rstrip(), ""]
    for at, (given, result) in enumerate(zip(row["inputs"], row["outputs"], strict=True)):
        hidden = "  (hidden from the student)" if 0 < row["num_shown"] <= at else ""
        lines.append(f"{shown_as(row['kind']).pair.format(_text(given), _text(result))}{hidden}")
    if row["proposal"] is not None:
        proposal = row["proposal"]
        lines += ["", f"the teacher wrote ({proposal['num_tokens']} tokens, reward {_number(proposal['reward'])}):"]
        lines.append(_indented(proposal["text"]))
    for at, attempt in enumerate(row["attempts"], start=1):
        lines += ["", _attempt_head(at, attempt)]
        if attempt["thought"]:
            lines += ["  thought:", _indented(attempt["thought"])]
        text = attempt["text"] if attempt["answer"] is None else attempt["answer"]
        lines += ["  could not be read:" if attempt["answer"] is None else "  answer:", _indented(text)]
    return "\n".join(lines)


def _attempt_head(at: int, attempt: Row) -> str:
    result = "lost" if attempt["lost"] else "right" if attempt["correct"] else "wrong"
    verdict = "" if attempt["verdict"] == "ok" else f", {visible(attempt['verdict'], one_line=True)}"
    detail = f" ({visible(attempt['detail'], 200, one_line=True)})" if attempt["detail"] else ""
    return (
        f"attempt {at} by {_name(attempt['student'])}: {result}{verdict}{detail}, "
        f"reward {_number(attempt['reward'])}, {attempt['num_tokens']} tokens"
    )


def _name(name: object) -> str:
    return visible(str(name), 40, one_line=True)


def _text(text: str) -> str:
    return visible(text, MAX_TEXT_CHARS)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in _text(text).rstrip().split("\n"))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
