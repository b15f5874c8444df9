"""A run of the domain logic, with scripted members who write what the lessons write."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from scripted import BASIC, Scripted

from recipes.embedded_base.lessons import LESSONS
from redqueen.commands.tasks import judge_again, question_text, task_text
from redqueen.config import Config, parse_config
from redqueen.domains.frames import ASK, BOS, EOS, NEW
from redqueen.domains.logic.deduction import solve
from redqueen.domains.logic.language import read_puzzle, write_answer
from redqueen.engine import Adapters, load_adapters
from redqueen.journal import Journal
from redqueen.report.pages import write_report
from redqueen.report.task_list import TaskFilter, find_tasks, read_task
from redqueen.run.lifecycle import start
from redqueen.run.store import JOURNAL


def solve_puzzle_of(question: str) -> str:
    puzzle = read_puzzle(question)
    return write_answer(puzzle, solve(puzzle).solutions[0])


class Pupil:
    """Proposes what lessons propose, and every fifth time nothing; solves every other time with the right answer."""

    def __init__(self) -> None:
        rng = Random("played")
        branches = [lesson.completions[0] for _ in range(300) for lesson in LESSONS["logic"](rng)]
        proposing = [branch for branch in branches if any(text.startswith(NEW) for text, _ in branch)]
        self.proposals = [branch[-1][0].removesuffix(EOS) for branch in proposing]
        self.num_written = 0

    def teach(self, prompt: str, slot: int, sample: int) -> str:
        self.num_written += 1
        return "nothing" if self.num_written % 5 == 0 else self.proposals[self.num_written % len(self.proposals)]

    def solve(self, prompt: str, slot: int, sample: int) -> str:
        return "A = 99" if sample % 2 else solve_puzzle_of(prompt.removeprefix(BOS).split(ASK)[0])


FIELDS: dict[str, object] = {
    **BASIC,
    "run": {"num_steps": 2, "num_threads": 1, "device": "cpu"},
    "propose": {"domains": ["logic"], "num_of_each_kind": 8, "num_seed_proposals": 4},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pupil, folder = Pupil(), tmp_path_factory.mktemp("logic") / "run"

    def load(config: Config) -> Adapters:
        adapters = load_adapters(config)
        proposer, solver = (Scripted(adapters.tokenizer, reply) for reply in (pupil.teach, pupil.solve))
        return replace(adapters, proposer=proposer, solver=solver, sampler=lambda temperature: solver)

    assert start(parse_config(FIELDS, "test"), folder, load)
    return folder


def test_a_run_checks_grades_measures_and_reports_them(run: Path, tmp_path: Path) -> None:
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        verdicts = {row["verdict"] for row in journal.query("SELECT DISTINCT verdict FROM candidate")}
        tasks = journal.query("SELECT * FROM task")
        metrics = {row["name"] for row in journal.query("SELECT DISTINCT name FROM metric")}
        scores = journal.query("SELECT DISTINCT kind, stratum FROM evaluation")
    assert {task["kind"] for task in tasks} == {"logic_puzzle"} and len(tasks) >= 8
    assert {(task["num_correct"], task["num_attempts"]) for task in tasks if task["num_attempts"]} == {(2, 4)}
    assert "ok" in verdicts and verdicts <= {"ok", "syntax", "unparsable", "duplicate"}
    assert "curriculum/deductions" in metrics
    assert {row["stratum"] for row in scores} >= {"all", "puzzles/1"}
    assert "logic_puzzle" in write_report([run], tmp_path / "report.html").read_text(encoding="utf-8")


def test_its_tasks_can_be_shown_and_judged_again(run: Path) -> None:
    row = find_tasks(run, TaskFilter(kind="logic_puzzle"))[0]
    shown = read_task(run, row["id"])
    assert row["code"].split("\n")[0] in question_text(row) and row["outputs"][0] in task_text(shown)
    judged = judge_again(shown, parse_config(FIELDS, "test"))
    assert (judged.num_judged, judged.differences) == (4, ())
