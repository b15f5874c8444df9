"""Runs of the domains logic and proofs, played with scripted members who write what the lessons write."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from scripted import BASIC, Scripted

from recipes.embedded_base.lessons import LESSONS
from redqueen.commands.tasks import judge_again, question_text, task_text
from redqueen.config import Config, parse_config
from redqueen.domains.compact import ASK, BOS, EOS, NEW
from redqueen.domains.logic.deduction import solve as solve_puzzle
from redqueen.domains.logic.language import read_puzzle, write_answer
from redqueen.domains.proofs.calculus import write_proof
from redqueen.domains.proofs.search import search
from redqueen.domains.registry import DOMAINS
from redqueen.engine import Adapters, load_adapters
from redqueen.journal import Journal
from redqueen.report.pages import write_report
from redqueen.report.task_list import TaskFilter, find_tasks, read_task
from redqueen.run.lifecycle import start
from redqueen.run.store import JOURNAL


def solve_logic(question: str) -> str:
    puzzle = read_puzzle(question)
    return write_answer(puzzle, solve_puzzle(puzzle).solutions[0])


def solve_proofs(question: str) -> str:
    *hypotheses, goal = question.split("\n")
    lemma = ", ".join(line.split(" ")[1] for line in hypotheses) + " |- " + goal.removeprefix("? ")
    return write_proof(search(lemma.strip()).steps or ())


SOLVERS = {"logic": solve_logic, "proofs": solve_proofs}


class Pupil:
    """Proposes what lessons propose, and every fifth time nothing; solves every other time with the right answer."""

    def __init__(self, name: str) -> None:
        rng = Random("played")
        branches = [lesson.completions[0] for _ in range(300) for lesson in LESSONS[name](rng)]
        proposing = [branch for branch in branches if any(text.startswith(NEW) for text, _ in branch)]
        self.proposals = [branch[-1][0].removesuffix(EOS) for branch in proposing]
        self.num_written = 0
        self.name = name

    def teach(self, prompt: str, slot: int, sample: int) -> str:
        self.num_written += 1
        return "nothing" if self.num_written % 5 == 0 else self.proposals[self.num_written % len(self.proposals)]

    def solve(self, prompt: str, slot: int, sample: int) -> str:
        question = prompt.removeprefix(BOS).split(ASK)[0]
        return "wk 99" if sample % 2 else SOLVERS[self.name](question)


def fields(name: str) -> dict[str, object]:
    return {
        **BASIC,
        "run": {"num_steps": 2, "num_threads": 1, "device": "cpu"},
        "propose": {"domains": [name], "num_of_each_kind": 8, "num_seed_proposals": 4},
    }


def played(name: str, folder: Path) -> Path:
    pupil = Pupil(name)

    def load(config: Config) -> Adapters:
        adapters = load_adapters(config)
        proposer, solver = (Scripted(adapters.tokenizer, reply) for reply in (pupil.teach, pupil.solve))
        return replace(adapters, proposer=proposer, solver=solver, sampler=lambda temperature: solver)

    assert start(parse_config(fields(name), "test"), folder, load)
    return folder


@pytest.fixture(scope="module", params=["logic", "proofs"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    yield request.param, played(request.param, tmp_path_factory.mktemp(request.param) / "run")


def test_a_run_checks_grades_measures_and_reports_them(run: tuple[str, Path], tmp_path: Path) -> None:
    name, folder = run
    (kind,) = DOMAINS[name].kinds
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        verdicts = {row["verdict"] for row in journal.query("SELECT DISTINCT verdict FROM candidate")}
        tasks = journal.query("SELECT * FROM task")
        metrics = {row["name"] for row in journal.query("SELECT DISTINCT name FROM metric")}
        scores = journal.query("SELECT DISTINCT kind, stratum FROM evaluation")
    assert {task["kind"] for task in tasks} == {kind.name} and len(tasks) >= 8
    assert {(task["num_correct"], task["num_attempts"]) for task in tasks if task["num_attempts"]} == {(2, 4)}
    assert "ok" in verdicts and verdicts <= {"ok", "syntax", "unparsable", "duplicate"}
    assert {"logic": "curriculum/deductions", "proofs": "curriculum/proof_steps"}[name] in metrics
    assert {row["stratum"] for row in scores} >= {"all", "puzzles/1" if name == "logic" else "lemmas/1"}
    assert kind.name in write_report([folder], tmp_path / "report.html").read_text(encoding="utf-8")


def test_its_tasks_can_be_shown_and_judged_again(run: tuple[str, Path]) -> None:
    name, folder = run
    row = find_tasks(folder, TaskFilter(kind=DOMAINS[name].kinds[0].name))[0]
    shown = read_task(folder, row["id"])
    assert row["code"].split("\n")[0] in question_text(row) and row["outputs"][0] in task_text(shown)
    judged = judge_again(shown, parse_config(fields(name), "test"))
    assert (judged.num_judged, judged.differences) == (4, ())
