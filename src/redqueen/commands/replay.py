"""Judging a task of the journal again, now: does the sandbox still say what it said?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from redqueen.config import Config, parse_recorded
from redqueen.display import visible
from redqueen.domains.registry import check, grade, kind_of
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.read import as_task
from redqueen.journal.write import Row
from redqueen.nouns import Candidate, Rejection, Task
from redqueen.run.store import JOURNAL
from redqueen.verify import Verifier
from redqueen.verify.opening import open_verifier


@dataclass(frozen=True)
class Rejudged:
    """What judging again found: one sentence for each difference; ``num_judged`` answers were compared."""

    num_judged: int
    differences: tuple[str, ...]


MAX_CPU_MS, MAX_HASH_SEEDS = 10_000, 64
"""Greatest limits that are taken over from a journal."""


def journal_config(run_dir: Path, allow_weak: bool = False) -> Config:
    """Return the config in a run's journal, without those sandbox settings that an untrusted file must not choose.

    Its word is not enough to do without a system-call filter: the user has to ``allow_weak`` too. Raises UserError for
    limits beyond those of any run.
    """
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        config = parse_recorded(dict(read.run_record(journal).config), f"the config in {run_dir / JOURNAL}")
    verify = config.verify
    if verify.kill_cpu_ms > MAX_CPU_MS or verify.num_hash_seeds > MAX_HASH_SEEDS:
        raise UserError(
            f"{run_dir / JOURNAL} asks for {verify.kill_cpu_ms:,} ms a program and {verify.num_hash_seeds} hash seeds; "
            f"at most {MAX_CPU_MS:,} and {MAX_HASH_SEEDS} are taken over from a journal"
        )
    weak = verify.allow_weak and allow_weak
    return config.model_copy(update={"verify": verify.model_copy(update={"allow_weak": weak})})


def judge_again(row: Row, config: Config) -> Rejudged:
    """Check a task and grade all answers to it again (a row of ``read_task``), under the run's own limits.

    Attempts that were lost, and judgements that are lost now, are not compared. Raises UserError without a sandbox.
    """
    task = as_task(row)
    judged = [(at, attempt) for at, attempt in enumerate(row["attempts"], start=1) if not attempt["lost"]]
    terms = config.verify.model_copy(
        update={"accept_cpu_ms": config.verify.kill_cpu_ms, "num_inputs": len(task.inputs)}
    )  # slower today is no matter
    written = Candidate(task.id, task.teacher, task.student, task.kind, "", task.code, task.inputs, task.message)
    with open_verifier(config.model_copy(update={"verify": terms}), num_workers=1) as verifier:
        result = check([written], verifier, terms)[0]
        grades = grade([(task, attempt["answer"]) for _, attempt in judged], verifier)
        truth_holds = isinstance(result, Rejection) or _still_true(task, result, verifier)
    differences = []
    if isinstance(result, Rejection):
        differences.append(f"the task's verdict is {result.reason}, and was ok")
    elif not truth_holds:
        differences.append("the task's outputs are others than they were")
    num_judged = 0
    for (at, attempt), found in zip(judged, grades, strict=True):
        if found.lost:
            continue
        num_judged += 1
        then, now = (bool(attempt["correct"]), attempt["verdict"]), (found.correct, found.verdict)
        if then != now:
            differences.append(f"attempt {at} is {_word(now)}, and was {_word(then)}")
    return Rejudged(num_judged, tuple(differences))


def _still_true(task: Task, again: Task, verifier: Verifier) -> bool:
    """Tell whether what was right then is right now: the same outputs, or others where a truth has several writings."""
    return again.outputs == task.outputs or grade([(again, kind_of(task).gold(task))], verifier)[0].correct


def _word(grade: tuple[bool, str]) -> str:
    return visible(f"{'right' if grade[0] else 'wrong'} ({grade[1]})", one_line=True)
