"""A run's tasks as a dataset for other trainers, and as a package for verifiers."""

import ast
import json
import tomllib
from pathlib import Path

import pytest
from task_run import TASKS, write_task_run

import redqueen
from redqueen.commands.task_rows import write_environment, write_rows
from redqueen.errors import UserError
from redqueen.report.task_list import TaskFilter

ALL = TaskFilter(limit=0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task_run(tmp_path_factory.mktemp("tasks") / "run")


def test_the_rows_of_a_file_are_those_of_task_rows_and_its_reward_knows_them(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.jsonl"
    assert write_rows(run, ALL, "chat", out) == f"{len(TASKS)} tasks in {out}"
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows == redqueen.task_rows(redqueen.Run(run).tasks()[::-1])
    assert rows[0]["prompt"][0]["role"] == "user"
    easy = next(row for row in rows if row["kind"] == "code_o" and row["outputs"] == ["6"])
    columns = {name: [value] * 2 for name, value in easy.items()}
    reward = redqueen.reward_fn("chat")
    assert reward(completions=["<answer>6</answer>", "<answer>7</answer>"], **columns) == [1.0, -0.5]


def test_a_file_of_fewer_tasks_than_fit_is_said_to_be_one(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write_rows(run, TaskFilter(limit=1), "chat", tmp_path / "one.jsonl").startswith("1 task in")
    assert capsys.readouterr().err == "more tasks match than the newest 1 written here: --limit 0 writes all\n"
    for at, wanted in enumerate([ALL, TaskFilter(limit=len(TASKS))]):
        write_rows(run, wanted, "chat", tmp_path / f"all{at}.jsonl")
    assert capsys.readouterr().err == ""


def test_a_parquet_file_holds_the_same_rows(run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_rows(run, ALL, "compact", tmp_path / "tasks.parquet")
    write_rows(run, ALL, "compact", tmp_path / "tasks.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert parquet.read_table(tmp_path / "tasks.parquet").to_pylist() == lines


def test_an_environment_is_a_package_with_the_rows_that_fit(run: Path, tmp_path: Path) -> None:
    said = write_environment(run, TaskFilter(kind="code_o", limit=0), "chat", tmp_path / "Hard-Tasks")
    assert said.startswith("2 tasks in") and "taskset hard-tasks" in said
    project = tomllib.loads((tmp_path / "Hard-Tasks" / "pyproject.toml").read_text())
    assert project["project"]["name"] == "hard-tasks" and "redqueen" in project["project"]["dependencies"]
    package = tmp_path / "Hard-Tasks" / "hard_tasks"
    assert len((package / "tasks.jsonl").read_text().splitlines()) == 2
    tree = ast.parse((package / "__init__.py").read_text())
    assert {"RedqueenTasks", "OneAnswer"} <= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert "PROMPT_FORMAT" not in (package / "__init__.py").read_text()


@pytest.mark.parametrize("name", ["tasks.csv", "there.jsonl"])
def test_a_file_of_another_kind_or_that_exists_is_refused(run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(UserError, match=r"ends with .jsonl or .parquet|exists already"):
        write_rows(run, ALL, "chat", tmp_path / name)
    assert (tmp_path / "there.jsonl").read_text() == "mine"
    with pytest.raises(UserError, match="no task of"):
        write_rows(run, TaskFilter(step=99), "chat", tmp_path / "none.jsonl")
    with pytest.raises(UserError, match="begin with a letter"):
        write_environment(run, ALL, "chat", tmp_path / "42")


def test_a_place_that_cannot_be_written_and_an_unknown_format_are_refused_by_their_flags(
    run: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match=r"--out .*nowhere/t.jsonl cannot be written \(No such file.*: choose another"):
        write_rows(run, ALL, "chat", tmp_path / "nowhere" / "t.jsonl")
    with pytest.raises(UserError, match=r"--as-environment .*file/env cannot be made \(Not a directory\)"):
        write_environment(run, ALL, "chat", tmp_path / "file" / "env")
    with pytest.raises(UserError, match="--prompts 'talk' is unknown: choose one of compact"):
        write_rows(run, ALL, "talk", tmp_path / "t.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
