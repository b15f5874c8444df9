"""The table of what a run's teachers write, on a run whose shares are counted by hand."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from task_run import DOUBLE, TASKS, write_task_run

from redqueen.errors import UserError
from redqueen.journal import AttemptRecord, Journal, MatchRecord, TaskRecord
from redqueen.records import Attempt, Crowding, Grade, Match, Outcome
from redqueen.run.store import JOURNAL

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from what_teachers_write import main, overlap, tables

CLASSES = ("code_o int,int->int plain", "code_o int->int loop", "code_o str,int->str plain", "code_o list->int plain")
SUMS = ("maths remainder", "maths remainder", "maths system", "maths count")
MARKS = ([True], [True, False], [False], [False, False])
CONSTANT = "def f(x):\n    return 6\n"


def write_step(run: Path, classes: tuple[str, ...], codes: tuple[str, ...]) -> None:
    with Journal.open(run / JOURNAL) as journal, journal.step(3) as writer:
        tasks = [replace(TASKS[0], id=f"3-T1-{i}", code=code) for i, code in enumerate(codes)]
        writer.add_matches([MatchRecord(Match("T1", "S1", 0.5), 4, 0.5, "draw")])
        writer.add_tasks(
            TaskRecord(task, None, task.id, Crowding(name, 0.0, 0.1, 0.0))
            for task, name in zip(tasks, classes, strict=True)
        )
        writer.add_attempts(
            AttemptRecord(Outcome(Attempt(task.id, "S1", "", "6", "", 1), Grade(right, "ok")))
            for task, marks in zip(tasks, MARKS, strict=True)
            for right in marks
        )


def columns(head: str, line: str) -> dict[str, str]:
    """Return a row by the names of its columns (two spaces between names, one inside of them)."""
    names = re.split(r"\s{2,}", head.removeprefix("steps").strip())
    return dict(zip(names, line.split()[3:], strict=True))


def test_shares_are_of_the_tasks_of_a_fifth_of_the_run(tmp_path: Path) -> None:
    run = write_task_run(tmp_path / "run")
    write_step(run, CLASSES, (CONSTANT, DOUBLE, DOUBLE, DOUBLE))
    head, line = tables(run)[:2]
    assert columns(head, line) == {
        "tasks": "4",
        "only integers": "50%",
        "plain": "75%",
        "read nothing": "25%",
        "all solved": "25%",
        "none solved": "50%",
        "classes per task": "1.00",
        "classes": "4",
        "largest three": "75%",
    }


def test_tasks_that_are_no_programs_have_a_table_of_their_own(tmp_path: Path) -> None:
    run = write_task_run(tmp_path / "run")
    write_step(run, SUMS, ("", "", "", ""))
    head, *_, line = tables(run)
    assert columns(head, line) == {
        "tasks": "4",
        "all solved": "25%",
        "none solved": "50%",
        "classes per task": "0.75",
        "classes": "3",
        "largest three": "100%",
    }


def test_a_folder_without_a_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["what_teachers_write.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"journal\.sqlite"):
        main()


def test_programs_of_a_benchmark_are_found_under_other_names(tmp_path: Path) -> None:
    run, data = write_task_run(tmp_path / "run"), tmp_path / "items.jsonl"
    write_step(run, CLASSES, (CONSTANT, DOUBLE, DOUBLE, DOUBLE))
    codes = "def f(number):\n    return number * 2", "def f(a):\n    return -a"
    rows = [{"id": str(at), "code": code, "input": "3", "output": "6"} for at, code in enumerate(codes)]
    data.write_text("\n".join(map(json.dumps, rows)))
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        [(num_doubling, num_tasks)] = journal.tuples("SELECT sum(code = ?), count(*) FROM task", [DOUBLE])
    expected = f"{num_doubling} of {num_tasks} tasks have a program of 1 of 2 items of cruxeval-o"
    assert overlap(run, "cruxeval-o", data) == expected and num_doubling > 3
    with pytest.raises(UserError, match="--suite maths500"):
        overlap(run, "maths500", data)
