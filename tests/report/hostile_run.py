"""A run in which every text that a model can write is an attack: each hostile text once in every place, and 1 MB."""

from __future__ import annotations

from pathlib import Path

from synthetic_run import HOSTILE, founders, measured

from redqueen.journal import AttemptRecord, CandidateRecord, Journal, RunRecord, TaskRecord
from redqueen.records import Attempt, Candidate, Grade, Outcome, Task
from redqueen.run.store import JOURNAL

TEXTS = (*HOSTILE, "<b>" + "long line " * 100_000)


def build_hostile_run(run_dir: Path) -> Path:
    """Write one step with one code_f task for each hostile text, which stands in all its texts."""
    run_dir.mkdir(parents=True)
    run = RunRecord(HOSTILE[0], HOSTILE[5], 0, {"note": HOSTILE[1]}, {HOSTILE[0]: HOSTILE[2]})
    with Journal.create(run_dir / JOURNAL, run) as journal:
        with journal.step(0) as tx:
            tx.add_individuals(founders(1, 1))
        with journal.step(1) as tx:
            for number, text in enumerate(TEXTS):
                name = f"1.T1.{number}"
                candidate = Candidate(name, "T1", "S1", "code_f", text)
                tx.add_candidates([CandidateRecord(candidate, "ok", text, 0.5, 0.1, 9)])
                task = Task(name, "T1", "S1", "code_f", text, (text, "2"), (text, text), text, 1, "rlimit")
                tx.add_tasks([TaskRecord(task, measured(3, 1, 2, 1), text)])
                attempt = Attempt(name, "S1", f"<think>{text}</think>{text}", text, text, 5)
                tx.add_attempts([AttemptRecord(Outcome(attempt, Grade(False, text[:50], text)), -0.5, None)])
    return run_dir
