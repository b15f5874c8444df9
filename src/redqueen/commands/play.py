"""A person as the student: tasks of a run, answered at the keyboard and judged by the run's own verifier."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from redqueen.commands.replay import journal_config
from redqueen.display import visible
from redqueen.domains.registry import grade as grade_answers
from redqueen.domains.registry import kind_of
from redqueen.errors import UserError
from redqueen.journal.read import as_task
from redqueen.journal.write import Row
from redqueen.report.task_list import TaskFilter, find_tasks
from redqueen.verify import Verifier
from redqueen.verify.opening import open_verifier

END_OF_PROGRAM = "."
MAX_SHOWN_CHARS = 4000


def play(
    run_dir: Path,
    wanted: TaskFilter,
    num_tasks: int,
    seed: int | None,
    given: TextIO,
    out: TextIO,
    allow_weak: bool = False,
) -> int:
    """Ask ``num_tasks`` tasks that fit, in random order, and return how many were answered rightly.

    Reads answers from ``given``; an empty answer or its end stops. Raises UserError when no task fits.
    """
    if num_tasks < 1:
        raise UserError(f"--num {num_tasks}: give a number of tasks of at least 1")
    rows = find_tasks(run_dir, replace(wanted, limit=0))
    if not rows:
        raise UserError(f"{run_dir} has no task that fits: loosen --kind, --min-solved or --max-solved")
    chosen = random.Random(seed).sample(rows, min(num_tasks, len(rows)))
    with open_verifier(journal_config(run_dir, allow_weak), num_workers=1) as verifier:
        num_right, num_asked = _ask_all(chosen, verifier, given, out)
    print(f"\n{num_right} of {num_asked} right", file=out)
    return num_right


def question_text(row: Row) -> str:
    """Return what a student is shown of a task: nothing that gives the answer away. Safe for a terminal."""
    solved = f"the students solved it {row['num_correct']} of {row['num_attempts']} times"
    task, kind = as_task(row), kind_of(as_task(row))
    head = f"{row['kind']}, step {row['step']}, by {visible(str(row['teacher']), 40, one_line=True)} ({solved})"
    return "\n".join([head, "", _shown(kind.statement(task)), "", kind.shown.question])


def _ask_all(rows: Sequence[Row], verifier: Verifier, given: TextIO, out: TextIO) -> tuple[int, int]:
    num_right = num_asked = 0
    for row in rows:
        print(f"\n{question_text(row)}\n> ", end="", file=out, flush=True)
        answer = _read_answer(kind_of(as_task(row)).is_multiline, given)
        if not answer.strip():
            break
        grade = grade_answers([(as_task(row), answer)], verifier)[0]
        num_asked += not grade.lost
        num_right += grade.correct
        word = "lost: the sandbox failed, this does not count" if grade.lost else "right" if grade.correct else "wrong"
        reason = " ".join(part for part in (grade.verdict if grade.verdict != "ok" else "", grade.detail) if part)
        print(f"{word}{f' ({visible(reason, 200, one_line=True)})' if reason else ''}", file=out)
        if not grade.correct:
            print(f"{_solution(row)}", file=out)
    return num_right, num_asked


def _solution(row: Row) -> str:
    task = as_task(row)
    return kind_of(task).shown.solution.format(_shown(kind_of(task).gold(task)).rstrip())


def _read_answer(is_multiline: bool, given: TextIO) -> str:
    if not is_multiline:
        return given.readline().strip()
    lines: list[str] = []
    for line in given:
        if line.strip() == END_OF_PROGRAM or (not lines and not line.strip()):
            break
        lines.append(line)
    return "".join(lines)


def _shown(text: str) -> str:
    return visible(text, MAX_SHOWN_CHARS)
