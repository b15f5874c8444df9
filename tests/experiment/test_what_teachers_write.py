"""The table of what a run's teachers write, on a run whose shares are counted by hand."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from task_run import TASKS, write_task_run

from redqueen.journal import AttemptRecord, Journal, MatchRecord, TaskRecord
from redqueen.nouns import Attempt, Grade, Match, Outcome
from redqueen.propose.task_memory import Pressure
from redqueen.run.store import JOURNAL

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from what_teachers_write import HEAD, main, table

CLASSES = ("code_o int,int->int plain", "code_o int->int loop", "code_o str,int->str plain", "code_o list->int plain")
MARKS = ([True], [True, False], [False], [False, False])


def test_shares_are_of_the_tasks_of_a_fifth_of_the_run(tmp_path: Path) -> None:
    run = write_task_run(tmp_path / "run")
    with Journal.open(run / JOURNAL) as journal, journal.step(3) as writer:
        tasks = [replace(TASKS[0], id=f"3-T1-{i}") for i in range(4)]
        writer.add_matches([MatchRecord(Match("T1", "S1", 0.5), 4, 0.5, "draw")])
        writer.add_tasks(
            TaskRecord(task, None, task.id, Pressure(name, 0.0, 0.1, 0.0))
            for task, name in zip(tasks, CLASSES, strict=True)
        )
        writer.add_attempts(
            AttemptRecord(Outcome(Attempt(task.id, "S1", "", "6", "", 1), Grade(right, "ok")))
            for task, marks in zip(tasks, MARKS, strict=True)
            for right in marks
        )
    head, *lines = table(run)
    assert head == HEAD
    assert lines[-1].split() == ["3", "to", "3", "4", "50%", "75%", "25%", "50%", "1.00"]


def test_a_folder_without_a_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["what_teachers_write.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"journal\.sqlite"):
        main()
