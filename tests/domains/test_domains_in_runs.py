"""Runs of the domain logic and of the plug-in's domain proofs: scripted members write what the lessons write."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from scripted import BASIC, Scripted, either

from recipes.embedded_base.lessons import LESSONS
from redqueen.commands.tasks import judge_again, task_text
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
from redqueen_proofs.calculus import write_proof
from redqueen_proofs.search import search


def solve_puzzle(question: str) -> str:
    puzzle = read_puzzle(question)
    return write_answer(puzzle, solve(puzzle).solutions[0])


def prove_lemma(question: str) -> str:
    *hypotheses, goal = question.split("\n")
    lemma = ", ".join(line.split(" ")[1] for line in hypotheses) + " |- " + goal.removeprefix("? ")
    return write_proof(search(lemma.strip()).steps or ())


@dataclass
class Pupil:
    """Proposes what lessons propose, and every fifth time nothing; solves every other time with the right answer."""

    name: str
    """Of the domain, as a config has it."""
    kind: str
    difficulty: str
    """The domain's own metric."""
    stratum: str
    right: Callable[[str], str]
    wrong: str
    num_written: int = 0
    proposals: list[str] = field(default_factory=list)

    def learn(self, lessons: str) -> None:
        rng = Random("played")
        branches = [lesson.completions[0] for _ in range(60) for lesson in LESSONS[lessons](rng)]
        proposing = [branch for branch in branches if any(text.startswith(NEW) for text, _ in branch)]
        self.proposals = [branch[-1][0].removesuffix(EOS) for branch in proposing]

    def teach(self, prompt: str, slot: int, sample: int) -> str:
        self.num_written += 1
        return "nothing" if self.num_written % 5 == 0 else self.proposals[self.num_written % len(self.proposals)]

    def solve(self, prompt: str, slot: int, sample: int) -> str:
        return self.wrong if sample % 2 else self.right(prompt.removeprefix(BOS).split(ASK)[0])

    @property
    def config(self) -> Config:
        fields = {
            **BASIC,
            "run": {"num_steps": 2, "num_threads": 1, "device": "cpu"},
            "propose": {"domains": [self.name], "num_of_each_kind": 8, "num_seed_proposals": 4},
            "evaluate": {"max_items": 40, "num_samples": 1, "control": False},
        }
        return parse_config(fields, "test")

    def load(self, config: Config) -> Adapters:
        adapters = load_adapters(config)
        writer = Scripted(adapters.tokenizer, either(self.teach, self.solve))
        return replace(adapters, proposer=writer, solver=writer, sampler=lambda *wishes: writer)


def pupil_of(domain: str) -> Pupil:
    if domain == "logic":
        pupil = Pupil("logic", "logic_puzzle", "curriculum/deductions", "puzzles/1", solve_puzzle, "A = 99")
    else:  # named as a module's object, the domain needs no installation
        name = "redqueen_proofs.kinds:PROOFS"
        pupil = Pupil(name, "proof_lemma", "curriculum/proof_steps", "lemmas/1", prove_lemma, "wk 99")
    pupil.learn(domain)
    return pupil


@pytest.fixture(scope="module", params=["logic", "proofs"])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pupil, Path]:
    pupil, folder = pupil_of(request.param), tmp_path_factory.mktemp(request.param) / "run"
    assert start(pupil.config, folder, pupil.load)
    return pupil, folder


def test_a_run_checks_grades_measures_and_reports_them(finished: tuple[Pupil, Path], tmp_path: Path) -> None:
    pupil, run = finished
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        verdicts = {row["verdict"] for row in journal.query("SELECT DISTINCT verdict FROM candidate")}
        tasks = journal.query("SELECT * FROM task")
        metrics = {row["name"] for row in journal.query("SELECT DISTINCT name FROM metric")}
        scores = journal.query("SELECT DISTINCT kind, stratum FROM evaluation")
    assert {task["kind"] for task in tasks} == {pupil.kind} and len(tasks) >= 8
    assert {(task["num_correct"], task["num_attempts"]) for task in tasks if task["num_attempts"]} == {(2, 4)}
    assert "ok" in verdicts and verdicts <= {"ok", "syntax", "unparsable", "duplicate"}
    assert pupil.difficulty in metrics
    assert {row["stratum"] for row in scores} >= {"all", pupil.stratum}
    assert pupil.kind in write_report([run], tmp_path / "report.html").read_text(encoding="utf-8")


def test_its_tasks_can_be_shown_and_judged_again(finished: tuple[Pupil, Path]) -> None:
    pupil, run = finished
    row = find_tasks(run, TaskFilter(kind=pupil.kind))[0]
    shown = read_task(run, row["id"])
    assert row["code"].split("\n")[0] in task_text(shown) and row["outputs"][0] in task_text(shown)
    judged = judge_again(shown, pupil.config)
    assert (judged.num_judged, judged.differences) == (4, ())
