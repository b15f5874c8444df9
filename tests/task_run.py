"""A run directory with three real tasks and hostile ones in its journal, written through the journal's own API."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from redqueen.config import Config
from redqueen.domains.code.measures import measure
from redqueen.journal import AttemptRecord, CandidateRecord, Journal, MatchRecord, RunRecord, TaskRecord
from redqueen.records import Attempt, Birth, Candidate, Grade, Individual, Match, Outcome, Rating, Task
from redqueen.run.store import JOURNAL

DOUBLE = "def f(x):\n    return x * 2\n"
HOSTILE = "=1+1 \x1b]0;owned\x07\x1b[31m \u202eevil\u202c <script>"

TASKS = (
    Task("1-T1-0", "T1", "S1", "code_o", DOUBLE, ("3",), ("6",)),
    Task("1-T1-1", "T1", "S1", "code_i", DOUBLE, ("5",), ("10",)),
    Task("2-T1.2-0", "T1.2", "S1", "code_f", DOUBLE, ("1", "2", "3", "4"), ("2", "4", "6", "8"), HOSTILE, 2),
    Task("2-T1.2-1", "T1.2", "S1", "code_o", f"def f(s):\n    return {HOSTILE!r}  # {HOSTILE}\n", ("'a'",), ("'b'",)),
)
ANSWERS = {
    "1-T1-0": ["6", "7", None, "2 + 4"],
    "1-T1-1": ["5", "5.0", "4"],
    "2-T1.2-0": ["def f(y):\n    return y + y\n", "def f(y):\n    return y + 1\n"],
    "2-T1.2-1": [HOSTILE],
}
RIGHT = {("1-T1-0", "6"), ("1-T1-1", "5"), ("2-T1.2-0", "def f(y):\n    return y + y\n")}
UNREADABLE = {None, "2 + 4", HOSTILE}


def write_task_run(folder: Path) -> Path:
    """Write the run directory (a journal alone, no checkpoints) and return it."""
    folder.mkdir(parents=True)
    config = Config()
    record = RunRecord("small", "1T+1S", 0, config.model_dump(mode="json"), {"redqueen": "0.1.0"})
    with Journal.create(folder / JOURNAL, record) as journal:
        with journal.step(0) as writer:
            people = [Individual("T1", "teacher", 0, Rating(25, 8)), Individual("S1", "student", 1, Rating(25, 8))]
            writer.add_individuals(people)
            writer.add_ratings((i, 1.0) for i in people)
        for step in (1, 2):
            with journal.step(step) as writer:
                mine = [task for task in TASKS if task.id.startswith(f"{step}-")]
                writer.add_matches([MatchRecord(Match(mine[0].teacher, "S1", 0.5), len(mine), 0.5, "draw")])
                writer.add_candidates([_proposal(task) for task in mine] + _rejected(step))
                writer.add_tasks(TaskRecord(task, asdict(measure(task.code)), task.id) for task in mine)
                writer.add_attempts(_attempt(task, answer) for task in mine for answer in ANSWERS[task.id])
                writer.add_metrics({"solve/rate": 0.5, "propose/valid_frac": float("nan")})
                if step == 1:
                    writer.add_individuals([Individual("T1.2", "teacher", 0, Rating(25, 8), 1, ("T1",), "M4")])
                    writer.add_births([Birth(1, "T1.2", "T1", ("T1",), "M4", {"mutation_std": 0.1}, 7, 0.25)])
    return folder


def _proposal(task: Task) -> CandidateRecord:
    candidate = Candidate(task.id, task.teacher, task.student, task.kind, task.code, task.code, task.inputs)
    return CandidateRecord(candidate, "ok", "", 0.5, 0.1, 12)


def _rejected(step: int) -> list[CandidateRecord]:
    candidate = Candidate(f"{step}-T1-9", "T1", "S1", "code_o", HOSTILE, error="no input")
    return [CandidateRecord(candidate, "unparsable", "no input", -1.0, -0.2, 4)]


def _attempt(task: Task, answer: str | None) -> AttemptRecord:
    attempt = Attempt(task.id, "S1", f"I say {answer}", answer, "I think", 5)
    grade = Grade((task.id, answer) in RIGHT, "unparsable" if answer in UNREADABLE else "ok")
    return AttemptRecord(Outcome(attempt, grade), 1.0 if grade.correct else -0.5, 0.0)
