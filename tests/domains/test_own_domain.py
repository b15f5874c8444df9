"""A domain in one file, that of the cookbook, plays a real run: tasks, journal, report and dashboard know it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scripted import BASIC, Scripted
from starlette.testclient import TestClient

from redqueen.commands.examinees import open_examination
from redqueen.commands.tasks import judge_again, task_text
from redqueen.commands.validate import validate
from redqueen.config import Config, parse_config
from redqueen.domains.registry import DOMAINS, grade, open_domain
from redqueen.engine import Adapters, load_adapters
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.records import Task
from redqueen.report.pages import write_report
from redqueen.report.site import create_app
from redqueen.report.task_list import TaskFilter, find_tasks, read_task
from redqueen.run.lifecycle import start
from redqueen.run.store import JOURNAL
from redqueen_sandbox import Sandbox
from redqueen_sandbox.pool import Answer, Jobs
from redqueen_sandbox.programs import Rules

PAGE = Path(__file__).parents[2] / "docs" / "own-domain.md"
SMALL = {
    **BASIC,
    "run": {"num_steps": 3, "num_threads": 1, "device": "cpu"},
    "propose": {"domains": ["own_sums:DOMAIN"], "num_of_each_kind": 4, "num_seed_proposals": 2, "max_new_tokens": 64},
    "solve": {"num_attempts": 4, "max_new_tokens": 64},
}


def block_with(words: str) -> str:
    """The page's block of Python that has these words."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if words in block)


class Adder:
    """Writes sums, a new one each time, and one text that is none; ``solve`` adds up, and every other time wrongly."""

    def __init__(self) -> None:
        self.num_written = 0

    def teach(self, prompt: str, slot: int, sample: int) -> str:
        self.num_written += 1
        return "no sum" if self.num_written % 5 == 0 else f"{self.num_written} + {sample + 1}"

    def solve(self, prompt: str, slot: int, sample: int) -> str:
        total = sum(int(number) for number in re.findall("[0-9]+", prompt))
        return str(total + sample % 2)


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of the cookbook's domain, as a user would start it, but for who writes."""
    folder = tmp_path_factory.mktemp("own")
    source = block_with("DOMAIN = Domain(")
    assert source.count("\n") <= 100
    (folder / "own_sums.py").write_text(source, encoding="utf-8")
    script = Adder()

    def load(config: Config) -> Adapters:
        adapters = load_adapters(config)
        proposer, solver = (Scripted(adapters.tokenizer, reply) for reply in (script.teach, script.solve))
        return replace(adapters, proposer=proposer, solver=solver, sampler=lambda *wishes: solver)

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        assert start(parse_config(SMALL, "test"), folder / "run", load)
        yield folder / "run"
    DOMAINS.pop("own_sums:DOMAIN", None)
    sys.modules.pop("own_sums", None)


def test_its_tasks_are_checked_graded_and_measured_by_its_own_rules(own_run: Path) -> None:
    with Journal.open(own_run / JOURNAL, read_only=True) as journal:
        tasks = journal.query("SELECT * FROM task")
        reasons = journal.query("SELECT DISTINCT verdict FROM candidate ORDER BY verdict")
        rates = journal.query("SELECT DISTINCT num_correct, num_attempts FROM task")
        means = journal.query("SELECT name, value FROM metric WHERE name = 'curriculum/addends'")
        scores = journal.query("SELECT DISTINCT kind, stratum FROM evaluation")
    assert len(tasks) >= 12 and {task["kind"] for task in tasks} == {"sum"}
    assert all(eval(task["code"]) == int(task["outputs"][2:-2]) for task in tasks)  # our own script's sums
    assert [row["verdict"] for row in reasons] == ["no-sum", "ok"]
    assert [tuple(row.values()) for row in rates] == [(2, 4)]
    assert [row["value"] for row in means] == [2.0] * 3
    assert {(row["kind"], row["stratum"]) for row in scores} >= {("sum", "all"), ("all", "sums/1"), ("sum", "sums/2")}


def test_its_members_are_examined_without_importing_it(own_run: Path) -> None:
    with open_examination(str(own_run), ["run.device=cpu"]) as examination:
        assert [one.name for one in examination.examinees][:2] == ["base", "T1"]


def test_a_run_of_it_is_listed_shown_and_judged_again(own_run: Path) -> None:
    row = find_tasks(own_run, TaskFilter(kind="sum"))[0]
    shown = read_task(own_run, row["id"])
    assert f"= {row['outputs'][0]}" in task_text(shown)
    judged = judge_again(shown, parse_config(SMALL, "test"))
    assert (judged.num_judged, judged.differences) == (4, ())


@pytest.mark.parametrize("known", [True, False], ids=["with its domain", "where its domain is not installed"])
def test_report_and_dashboard_show_it(own_run: Path, tmp_path: Path, known: bool) -> None:
    domain = DOMAINS.pop("own_sums:DOMAIN")
    try:
        if known:
            DOMAINS["own_sums:DOMAIN"] = domain
        page = write_report([own_run], tmp_path / "report.html").read_text(encoding="utf-8")
        assert '"sum"' in page and "curriculum" in page
        with TestClient(create_app(own_run.parent), base_url="http://127.0.0.1:8470") as client:
            listed = client.get("/run/run/tasks?kind=sum")
            assert listed.status_code == 200 and "/run/run/task/1" in listed.text
            assert client.get("/run/run/tasks?kind=code_o").status_code == 400
            task = client.get("/run/run/task/1").text
    finally:
        DOMAINS["own_sums:DOMAIN"] = domain
    assert ("sum (add up)" in task) == known and ("asked for the number" in task) == known


def test_the_console_script_finds_the_pages_files_in_the_folder_where_it_is_started(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(block_with("DOMAIN = Domain("), encoding="utf-8")
    elsewhere = '[model]\nbase = "someone/base"\n'  # a plan for a base that is not here needs no torch
    (tmp_path / "my.toml").write_text(elsewhere + '[propose]\ndomains = ["sums:DOMAIN"]\nnum_proposals = { sum = 8 }\n')
    script = Path(sys.executable).with_name("redqueen")
    line = [script, "train", "my.toml", "--dry-run"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 2 and "model.base someone/base is not a folder" in done.stderr
    assert "a step: 32 proposals (8 a teacher)" in done.stdout, "the plan comes first"


@pytest.mark.parametrize(
    ("good", "bad"),
    [("(SUMS,)", "(SUMS)"), ('SEED = Task("seed", "seed", "", "sum"', 'SEED = Task("seed", "seed", "", "sun"')],
)
def test_kinds_that_are_no_tuple_and_a_seed_of_another_kind_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: str, bad: str
) -> None:
    source = block_with("DOMAIN = Domain(")
    assert good in source
    (tmp_path / "bad_sums.py").write_text(source.replace(good, bad), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bad_sums", raising=False)
    with pytest.raises(UserError, match=r"bad_sums:DOMAIN must have a tuple of kinds, \(KIND,\), and a seed of one"):
        open_domain("bad_sums:DOMAIN")


def test_validate_says_what_a_domain_without_tasks_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = block_with("DOMAIN = Domain(").replace(", suite=suite)", ")").replace('"sum"', '"lone_sum"')
    (tmp_path / "lone_sums.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert not validate("lone_sums:DOMAIN", num_tasks=2)
    finally:
        del DOMAINS["lone_sums:DOMAIN"]
    assert "no task: give the domain a suite with this kind, or the kind proposals" in capsys.readouterr().out


class Limits:
    """A verifier, and the limits of CPU time under which it was asked to grade, round by round."""

    def __init__(self, verifier: Sandbox) -> None:
        self.verifier, self.rounds = verifier, list[list[int]]()

    def judge(self, work: Sequence[Callable[[Rules], Jobs[Answer]]]) -> list[Answer]:
        self.rounds.append([part.args[2] for part in work])  # type: ignore[attr-defined]
        return self.verifier.judge(work)


def test_answers_to_a_kind_of_ones_own_that_runs_programs_have_the_time_of_the_packages_kinds(
    verifier: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = DOMAINS["code"]
    own = replace(next(kind for kind in code.kinds if kind.name == "code_f"), name="own_program")
    monkeypatch.setitem(DOMAINS, "own_programs", replace(code, name="own_programs", kinds=(own,)))
    rounds = []
    for kind in ("code_f", own.name):
        asked, task = Limits(verifier), Task("t", "T", "S", kind, "", ("1", "2"), ("1", "2"))
        grade([(task, f"def f(x):\n    while True:\n        x = {number}") for number in (1, 2)], asked)
        rounds.append(asked.rounds)
    assert rounds[0] == rounds[1] and max(rounds[0][-1]) < verifier.limits.cpu_ms
