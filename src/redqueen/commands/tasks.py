"""``redqueen tasks`` and ``replay``: list a run's tasks, or show one with every attempt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from redqueen.config import Config, parse_recorded
from redqueen.display import counted, visible
from redqueen.domains.registry import check, grade, kind_of, shown_as
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.read import as_task
from redqueen.journal.untrusted import Row
from redqueen.records import Candidate, Rejection
from redqueen.report.task_list import TaskFilter, find_tasks, read_task
from redqueen.run.store import JOURNAL
from redqueen.verifying import open_sandbox

MAX_TEXT_CHARS = 2000
"""Longest text of a model on the screen; ``--json`` and the journal have the whole text."""

MAX_LINE_CHARS = 60
"""Longest first line of a program in the list."""


def list_tasks(run_dir: Path, wanted: TaskFilter, as_json: bool) -> None:
    """Print the tasks that match, newest first."""
    rows = find_tasks(run_dir, wanted)
    if not as_json:
        print(list_text(rows) if rows else "no task matches")
    for row in rows if as_json else ():
        print(json.dumps(row))


def show_task(run_dir: Path, task: str, judge: bool, as_json: bool, allow_weak: bool = False) -> None:
    """Print one task; with ``judge``, grade it again and compare: exit code 1 when the results differ."""
    row = read_task(run_dir, task)
    if not judge:
        print(json.dumps(row) if as_json else task_text(row))
        return
    again = judge_again(row, journal_config(run_dir, allow_weak))
    if as_json:
        print(json.dumps(row | {"rejudged": again.num_judged, "differences": again.differences}))
    else:
        print(task_text(row))
        print("\njudged again:", "; ".join(again.differences) or f"the same for all {again.num_judged} answers")
    if again.differences:
        raise typer.Exit(1)


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
        length, reward = counted(proposal["num_tokens"], "token"), _number(proposal["reward"])
        lines += ["", f"the teacher wrote ({length}, reward {reward}):"]
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
        f"reward {_number(attempt['reward'])}, {counted(attempt['num_tokens'], 'token')}"
    )


def _name(name: object) -> str:
    return visible(str(name), 40, one_line=True)


def _text(text: str) -> str:
    return visible(text, MAX_TEXT_CHARS)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in _text(text).rstrip().split("\n"))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


@dataclass(frozen=True)
class Rejudged:
    """The result of grading again: one sentence for each difference; ``num_judged`` answers were compared."""

    num_judged: int
    differences: tuple[str, ...]


MAX_CPU_MS = 10_000
"""Greatest limit that is accepted from a journal."""


def journal_config(run_dir: Path, allow_weak: bool = False) -> Config:
    """Return the config in a run's journal, without the sandbox settings that an untrusted file must not choose.

    To run without a system-call filter, both the journal and the user (``allow_weak``) must allow it. Raises UserError
    for limits beyond those of any run.
    """
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        config = parse_recorded(dict(read.run_record(journal).config), f"the config in {run_dir / JOURNAL}")
    verify = config.verify
    if verify.kill_cpu_ms > MAX_CPU_MS:
        raise UserError(
            f"verify.kill_cpu_ms in {run_dir / JOURNAL} is {verify.kill_cpu_ms:,} ms per program, but at most "
            f"{MAX_CPU_MS:,} are accepted from a journal"
        )
    weak = verify.allow_weak and allow_weak
    return config.model_copy(update={"verify": verify.model_copy(update={"allow_weak": weak})})


def judge_again(row: Row, config: Config) -> Rejudged:
    """Check a task (a row of ``read_task``) and grade all its answers again, with the run's own limits.

    Attempts that were lost in the run or are lost now are not compared. Raises UserError without a sandbox.
    """
    task = as_task(row)
    judged = [(at, attempt) for at, attempt in enumerate(row["attempts"], start=1) if not attempt["lost"]]
    limits = config.verify.model_copy(
        update={"accept_cpu_ms": config.verify.kill_cpu_ms, "num_inputs": len(task.inputs)}
    )  # this machine may be slower
    proposal = Candidate(task.id, task.teacher, task.student, task.kind, "", task.code, task.inputs, task.message)
    with open_sandbox(config.model_copy(update={"verify": limits}), num_workers=1) as verifier:
        result = check([proposal], verifier, limits)[0]
        grades = grade([(task, attempt["answer"]) for _, attempt in judged], verifier)
        truth_holds = (
            isinstance(result, Rejection)
            or result.outputs == task.outputs
            or grade([(result, kind_of(task).gold(task))], verifier)[0].correct  # outputs may have several spellings
        )
    differences = []
    if isinstance(result, Rejection):
        differences.append(f"the task's verdict is {result.reason}, and was ok")
    elif not truth_holds:
        differences.append("the task's outputs have changed")
    num_judged = 0
    for (at, attempt), found in zip(judged, grades, strict=True):
        if found.lost:
            continue
        num_judged += 1
        then, now = (bool(attempt["correct"]), attempt["verdict"]), (found.correct, found.verdict)
        if then != now:
            differences.append(f"attempt {at} is {_graded(now)}, and was {_graded(then)}")
    return Rejudged(num_judged, tuple(differences))


def _graded(result: tuple[bool, str]) -> str:
    return visible(f"{'right' if result[0] else 'wrong'} ({result[1]})", one_line=True)
