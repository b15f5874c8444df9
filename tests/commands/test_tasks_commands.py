"""``tasks``, ``replay`` and tables of a run: what is listed, shown and judged again."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from command_line import redqueen
from task_run import ANSWERS, HOSTILE, TASKS, write_task_run

from redqueen.commands.tasks import list_text, task_text
from redqueen.display import visible
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.report.table_file import write_table
from redqueen.report.task_list import TaskFilter, find_tasks, read_task
from redqueen.run.store import JOURNAL

IDS = [task.id for task in TASKS]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task_run(tmp_path_factory.mktemp("tasks") / "small")


def is_harmless(text: str) -> bool:
    """Tell whether a terminal would show the text and obey nothing in it."""
    return all(character == "\n" or (character.isprintable() and character not in "\u202e\u202c") for character in text)


# tasks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (TaskFilter(), IDS[::-1]),
        (TaskFilter(limit=1), IDS[:-2:-1]),
        (TaskFilter(limit=0), IDS[::-1]),
        (TaskFilter(kind="code_o"), [IDS[3], IDS[0]]),
        (TaskFilter(step=2), [IDS[3], IDS[2]]),
        (TaskFilter(teacher="T1"), [IDS[1], IDS[0]]),
        (TaskFilter(student="S9"), []),
        (TaskFilter(min_solved=0.5), [IDS[2]]),
        (TaskFilter(max_solved=0.0), [IDS[3]]),
        (TaskFilter(min_solved=0.2, max_solved=0.3), [IDS[0]]),
        (TaskFilter(contains="x * 2"), [IDS[2], IDS[1], IDS[0]]),
        (TaskFilter(contains="%"), []),
        (TaskFilter(teacher="' OR 1 --"), []),
        (TaskFilter(min_depth=99), []),
    ],
)
def test_tasks_are_found_newest_first_by_every_condition(run_dir: Path, wanted: TaskFilter, found: list[str]) -> None:
    assert [row["id"] for row in find_tasks(run_dir, wanted)] == found


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (TaskFilter(kind="code_x"), "--kind code_x is unknown: choose one of code_o"),
        (TaskFilter(min_solved=3.0), r"--min-solved 3.0: give a share"),
        (TaskFilter(max_solved=-1.0), r"--max-solved -1.0: give a share"),
        (TaskFilter(limit=-1), "--limit -1: give the number"),
    ],
)
def test_conditions_that_cannot_be_are_named(run_dir: Path, wanted: TaskFilter, said: str) -> None:
    with pytest.raises(UserError, match=said):
        find_tasks(run_dir, wanted)


def test_the_list_shows_each_task_on_one_harmless_line(run_dir: Path) -> None:
    text = list_text(find_tasks(run_dir, TaskFilter()))
    lines = text.splitlines()
    assert len(lines) == 1 + len(TASKS) and is_harmless(text)
    assert lines[-1].split()[:7] == ["1-T1-0", "1", "code_o", "T1", "S1", "1/4", "5"]


def test_the_list_as_json_is_one_object_a_line_in_plain_ascii(run_dir: Path) -> None:
    code, out, _ = redqueen("tasks", run_dir, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and out.isascii() and is_harmless(out)
    assert [row["id"] for row in rows] == IDS[::-1]
    assert rows[-1]["inputs"] == ["3"] and rows[1]["message"] == HOSTILE


# replay --------------------------------------------------------------------------------------------------------


def test_a_task_is_shown_with_its_program_its_pairs_and_every_attempt(run_dir: Path) -> None:
    text = task_text(read_task(run_dir, "2-T1.2-0"))
    assert "return x * 2" in text and "f(1) == 2\n" in text and "f(4) == 8  (hidden from the student)" in text
    assert "attempt 1 by S1: right" in text and "attempt 2 by S1: wrong" in text
    assert is_harmless(text)


def test_hostile_texts_are_shown_and_not_obeyed(run_dir: Path) -> None:
    text = task_text(read_task(run_dir, "2-T1.2-1"))
    assert is_harmless(text) and "␛" in text and "⟨U+202E⟩" in text


def test_a_text_of_a_megabyte_is_cut_on_the_screen(run_dir: Path) -> None:
    row = read_task(run_dir, "1-T1-0")
    row["code"] = row["attempts"][0]["answer"] = "x" * 1_000_000
    assert len(task_text(row)) < 20_000 and len(list_text([row])) < 500


def test_a_task_that_was_rejected_or_never_was_is_named(run_dir: Path) -> None:
    with pytest.raises(UserError, match=r"1-T1-9 is not a task of .*it was proposed, and rejected: unparsable"):
        read_task(run_dir, "1-T1-9")
    with pytest.raises(UserError, match=r"--task nothing is not a task of .*`redqueen tasks .*` lists them"):
        read_task(run_dir, "nothing")


def test_judging_again_agrees_with_what_was_judged(run_dir: Path) -> None:
    for task in TASKS[:3]:
        code, out, _ = redqueen("replay", run_dir, "--task", task.id, "--judge")
        assert code == 0 and f"judged again: the same for all {len(ANSWERS[task.id])} answers" in out


def test_judging_again_finds_what_was_judged_otherwise(tmp_path: Path) -> None:
    folder = write_task_run(tmp_path / "wrong")
    with Journal.open(folder / JOURNAL) as journal:
        journal.connection.execute("UPDATE attempt SET correct = 1 - correct WHERE seq <= 2")
    code, out, _ = redqueen("replay", folder, "--task", "1-T1-0", "--judge", "--json")
    found = json.loads(out)
    assert code == 1 and found["rejudged"] == 4
    assert found["differences"] == [
        "attempt 1 is right (ok), and was wrong (ok)",
        "attempt 2 is wrong (ok), and was right (ok)",
    ]


# Tables --------------------------------------------------------------------------------------------------------


def test_every_table_comes_out_as_csv_with_all_its_rows(run_dir: Path, tmp_path: Path) -> None:
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        tables = [row["name"] for row in journal.query("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            rows = journal.query(f"SELECT * FROM {table}")
            path = tmp_path / f"{table}.csv"
            assert write_table([run_dir], table, "csv", path) == len(rows)
            with path.open(newline="", encoding="utf-8") as file:
                read = list(csv.DictReader(file))
            assert len(read) == len(rows)
            for got, row in zip(read, rows, strict=True):
                assert set(row) <= set(got)


def test_a_cell_that_a_spreadsheet_would_calculate_gets_an_apostrophe_and_numbers_stay(
    run_dir: Path, tmp_path: Path
) -> None:
    write_table([run_dir], "task", "csv", tmp_path / "task.csv")
    write_table([run_dir], "candidate", "csv", tmp_path / "candidate.csv")
    with (tmp_path / "task.csv").open(newline="", encoding="utf-8") as file:
        messages = {row["id"]: row["message"] for row in csv.DictReader(file)}
    assert messages["2-T1.2-0"] == f"'{visible(HOSTILE)}" and messages["1-T1-0"] == ""
    with (tmp_path / "candidate.csv").open(newline="", encoding="utf-8") as file:
        rewards = {row["id"]: row["reward"] for row in csv.DictReader(file)}
    assert float(rewards["1-T1-9"]) == -1.0


def test_parquet_holds_types_and_texts_as_they_are(run_dir: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert write_table([run_dir, run_dir], "task", "parquet", tmp_path / "task.parquet") == 2 * len(TASKS)
    rows = parquet.read_table(tmp_path / "task.parquet").to_pylist()
    assert [row["id"] for row in rows] == IDS * 2 and {row["run"] for row in rows} == {"small"}
    assert rows[2]["message"] == HOSTILE and rows[0]["num_attempts"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--table", "task; DROP TABLE task"], "is unknown: choose one of run, step"),
        (["--table", "sqlite_schema"], "is unknown: choose one of run"),
        (["--table", "task", "--format", "xlsx"], "--format xlsx is unknown for a table: choose csv or parquet"),
        (["--table", "task", "--out", "/nowhere/at/all.csv"], "--out /nowhere/at/all.csv cannot be written"),
        (["--format", "csv"], "--format csv is the format of a table: name one with --table"),
        (["--table", "task", "--json"], "--json prints a summary and writes nothing: leave out --table and --out"),
    ],
)
def test_a_table_that_cannot_be_written_is_refused_with_the_remedy(run_dir: Path, words: list[str], said: str) -> None:
    before = sorted(run_dir.iterdir())
    code, _, err = redqueen("report", run_dir, *words)
    assert code == 2 and said in err and "Traceback" not in err
    assert [path for path in sorted(run_dir.iterdir()) if path.suffix in (".csv", ".parquet")] == []
    assert before


def test_a_task_that_several_students_answered_is_found_by_each(run_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(run_dir, tmp_path / "run")
    with Journal.open(tmp_path / "run" / JOURNAL) as journal:
        journal.connection.execute("UPDATE task SET student = 'S1, S12'")
    num = len(find_tasks(tmp_path / "run", TaskFilter(limit=0)))
    for student, found in (("S1", num), ("S12", num), ("S2", 0), ("S", 0)):
        assert len(find_tasks(tmp_path / "run", TaskFilter(student=student, limit=0))) == found


def test_runs_in_folders_of_one_name_are_told_apart_in_a_table(run_dir: Path, tmp_path: Path) -> None:
    folders = [shutil.copytree(run_dir, tmp_path / parent / "run") for parent in "ab"]
    write_table(folders, "task", "csv", tmp_path / "tasks.csv")
    with (tmp_path / "tasks.csv").open() as file:
        assert {row["run"] for row in csv.DictReader(file)} == {"a/run", "b/run"}
