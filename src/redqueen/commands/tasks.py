"""``redqueen tasks`` and ``redqueen replay``: a run's tasks as a list, or one of them with every attempt."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from redqueen.commands.replay import journal_config, judge_again
from redqueen.report.task_list import TaskFilter, find_tasks, list_text, read_task, task_text


def list_tasks(run_dir: Path, wanted: TaskFilter, as_json: bool) -> None:
    """Print the tasks that fit, newest first."""
    rows = find_tasks(run_dir, wanted)
    if not as_json:
        print(list_text(rows) if rows else "no task fits")
    for row in rows if as_json else ():
        print(json.dumps(row))


def show_task(run_dir: Path, task: str, judge: bool, as_json: bool, allow_weak: bool = False) -> None:
    """Print one task; with ``judge``, judge it again and compare: exit code 1 when the sandbox says something else."""
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
