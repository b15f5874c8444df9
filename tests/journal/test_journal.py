"""The journal: one transaction a step, exact after a cut, open to plain SQL, and clear about what went wrong."""

import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from rights import without_root_rights

from redqueen.errors import UserError
from redqueen.journal import (
    AttemptRecord,
    CandidateRecord,
    EvaluationRecord,
    Journal,
    MatchRecord,
    RunRecord,
    TaskRecord,
    diff,
    read,
)
from redqueen.records import Attempt, Birth, Candidate, Grade, Individual, Match, Outcome, Rating, Task

RUN = RunRecord("first", "1T+1S", 7, {"match": {"pairing": "pfsp"}, "seed": 7}, {"redqueen": "0.1.0"})
TEACHER = Individual("T1", "teacher", 0, Rating(25.0, 8.0))
STUDENT = Individual("S1", "student", 1, Rating(25.0, 8.0))


MEASURED = {"ast_depth": 4, "cyclomatic": 2, "num_lines": 3, "num_variables": 1}


def attempt(
    task_id: str, text: str, answer: str | None, correct: bool, thought: str = "", lost: bool = False
) -> AttemptRecord:
    grade = Grade(correct, "ok" if answer is not None else "unparsable", lost=lost)
    return AttemptRecord(Outcome(Attempt(task_id, "S1", text, answer, thought, len(text)), grade), 1.0, 0.5)


def write_step(journal: Journal, step: int, text: str = "<answer>3</answer>", seconds: float = 1.0) -> None:
    """Write a small but complete step: one rejected and one valid proposal, three attempts, ratings, times."""
    match = Match("T1", "S1", 0.5)
    written = [
        Candidate(f"{step}.a", "T1", "S1", "code_o", "no program"),
        Candidate(f"{step}.b", "T1", "S1", "code_o", "ok"),
    ]
    task = Task(f"{step}.b", "T1", "S1", "code_o", "def f(x):\n    return x", ("3",), ("3",))
    with journal.step(step) as tx:
        tx.add_matches([MatchRecord(match, 1, 2 / 3, "student")])
        verdicts = ("unparsable", "ok")
        tx.add_candidates(CandidateRecord(c, v, reward=-1.0) for c, v in zip(written, verdicts, strict=True))
        tx.add_tasks([TaskRecord(task, MEASURED, f"behaviour {step}")])
        tx.add_attempts(
            [
                attempt(task.id, text, "3", True),
                attempt(task.id, "<think>x=3</think><answer>3</answer>", "3", True, thought="x=3"),
                attempt(task.id, "hm", None, False),
                attempt(task.id, "<answer>3</answer>", "3", True, lost=True),
            ]
        )
        tx.add_ratings([(TEACHER, 1.0), (STUDENT, 0.1 + 0.2)])
        tx.add_metrics({"solve/rate": 2 / 3, "learn/student/loss": float("nan")})
        tx.add_timings({"solve": seconds})


def new_journal(path: Path, num_steps: int) -> Journal:
    journal = Journal.create(path, RUN)
    with journal.step(0) as tx:
        tx.add_individuals([TEACHER, STUDENT])
        tx.add_evaluations([EvaluationRecord("base", "all", "all", "sampled", 400, 0.41, 0.36, 0.46)])
    for step in range(1, num_steps + 1):
        write_step(journal, step)
    return journal


def test_a_step_is_stored_as_rows_that_plain_sql_can_ask_for(tmp_path: Path) -> None:
    new_journal(tmp_path / "j.sqlite", 2).close()
    with sqlite3.connect(tmp_path / "j.sqlite") as plain:
        solved = plain.execute(
            "SELECT id, kind, num_attempts, num_correct, ast_depth FROM task WHERE step = 2"
        ).fetchall()
        reasons = plain.execute("SELECT verdict, count(*) FROM candidate GROUP BY verdict ORDER BY verdict").fetchall()
        rated = plain.execute("SELECT individual, fitness FROM rating WHERE step = 1 ORDER BY individual").fetchall()
    assert solved == [("2.b", "code_o", 3, 2, 4)]  # the lost attempt is no sample
    assert reasons == [("ok", 2), ("unparsable", 2)]
    assert rated == [("S1", 0.1 + 0.2), ("T1", 1.0)]


def test_answers_and_thoughts_come_back_although_only_their_place_is_stored(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 0) as journal:
        with journal.step(1) as tx:
            tx.add_tasks([TaskRecord(Task("t", "T1", "S1", "code_i", "def f(x): return x", ("1",), ("1",)), None, "b")])
            texts = ["<think>né 3</think><answer>(3,)</answer>", "a\0b", "empty answer", "nothing", "½ \ud800 end"]
            answers = ["(3,)", "b", "", None, "\ud800"]
            thoughts = ["né 3", "", "not in the text", "", ""]
            records = [
                replace(
                    attempt("t", text, answer, False),
                    outcome=Outcome(Attempt("t", "S1", text, answer, thought), Grade(False, "ok")),
                )
                for text, answer, thought in zip(texts, answers, thoughts, strict=True)
            ]
            tx.add_attempts(records)
        rows = read.attempts_of_task(journal, 1)
    assert [row["answer"] for row in rows] == ["(3,)", "b", "", None, "\\ud800"]
    assert [row["thought"] for row in rows] == thoughts
    assert [row["text"] for row in rows] == [*texts[:4], "½ \\ud800 end"]
    assert rows[0]["answer_apart"] is None and rows[0]["thought_apart"] is None


def test_a_number_that_is_not_finite_is_stored_as_not_defined(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 1) as journal:
        assert read.metric_series(journal) == {"learn/student/loss": [(1, None)], "solve/rate": [(1, 2 / 3)]}


def test_a_step_that_fails_leaves_nothing_and_can_be_written_again(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 1) as journal:
        with pytest.raises(ValueError, match="names the task 'elsewhere'"), journal.step(2) as tx:
            tx.add_metrics({"solve/rate": 0.5})
            tx.add_attempts([attempt("elsewhere", "x", "x", True)])
        assert read.last_step(journal) == 1
        write_step(journal, 2)
        assert read.last_step(journal) == 2


def test_a_step_cannot_be_written_twice(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 1) as journal:
        with pytest.raises(ValueError, match=r"step 1 is in .* already; truncate_after\(0\) first"):
            write_step(journal, 1)
        assert len(read.tasks_of_step(journal, 1)) == 1


def test_a_journal_that_was_cut_back_and_continued_equals_one_that_never_was(tmp_path: Path) -> None:
    new_journal(tmp_path / "straight.sqlite", 4).close()
    new_journal(tmp_path / "resumed.sqlite", 2).close()
    with Journal.open(tmp_path / "resumed.sqlite") as resumed:
        write_step(resumed, 3, text="<answer>otherwise</answer>")
        write_step(resumed, 4, text="and longer, to move rows")
        assert resumed.truncate_after(2) == 2
        assert read.last_step(resumed) == 2
        assert resumed.query("SELECT count(*) AS num FROM attempt") == [{"num": 8}]
        resumed.add_session(1_700_000_000.0, 2)
        write_step(resumed, 3, seconds=9.0)
        write_step(resumed, 4)
    assert diff(tmp_path / "straight.sqlite", tmp_path / "resumed.sqlite") is None


def test_cutting_back_removes_members_born_later_and_revives_whom_they_replaced(tmp_path: Path) -> None:
    child = Individual("S1.2", "student", 1, Rating(25.0, 8.0), 2, ("S1",), "M4")
    birth = Birth(2, "S1.2", "S1", ("S1", "T1"), "M4", {"e": 0.15}, 2**64 - 1, 0.15)
    with new_journal(tmp_path / "j.sqlite", 1) as journal:
        with journal.step(2) as tx:
            tx.add_births([birth])
            tx.add_individuals([child])
        [(row, parents)] = read.births(journal)
        assert (row["operator"], row["constants"], row["rng_seed"]) == ("M4", '{"e": 0.15}', str(2**64 - 1))
        assert parents == ["S1", "T1"]
        assert [(i["id"], i["left_step"]) for i in read.individuals(journal)] == [
            ("T1", None),
            ("S1", 2),
            ("S1.2", None),
        ]
        journal.truncate_after(1)
        assert [(i["id"], i["left_step"]) for i in read.individuals(journal)] == [("T1", None), ("S1", None)]
        assert read.births(journal) == []


def test_a_birth_of_a_child_that_is_not_recorded_is_refused(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 1) as journal:
        with pytest.raises(sqlite3.IntegrityError), journal.step(2) as tx:
            tx.add_births([Birth(2, "S1.2", "S1", ("S1",), "M1")])
        assert read.last_step(journal) == 1


def test_the_first_difference_is_named_with_its_row_and_column(tmp_path: Path) -> None:
    for name, text in (("one", "<answer>3</answer>"), ("two", "<answer>4</answer>")):
        with new_journal(tmp_path / name, 1) as journal:
            write_step(journal, 2, text=text)
    said = diff(tmp_path / "one", tmp_path / "two")
    assert said is not None
    assert said.startswith("table attempt, row seq=5: text is '<answer>3</answer>' in the first journal and ")


def test_times_may_come_after_the_step_and_are_no_part_of_a_comparison(tmp_path: Path) -> None:
    new_journal(tmp_path / "one", 1).close()
    with new_journal(tmp_path / "two", 1) as journal:
        journal.add_timings(1, {"checkpoint": 0.25})
        assert read.timing_series(journal) == {"solve": [(1, 1.0)], "checkpoint": [(1, 0.25)]}
    assert diff(tmp_path / "one", tmp_path / "two") is None


def test_an_evaluation_that_is_made_up_for_twice_stands_there_once_with_its_metrics(tmp_path: Path) -> None:
    """As when a process dies behind the journal's evaluation, before the checkpoint that says that it is made."""
    with new_journal(tmp_path / "j.sqlite", 1) as journal:
        before = read.metric_series(journal)
        for chosen, score in (("S1", 0.4), ("merged", 0.5)):
            records = [EvaluationRecord("product", "all", "all", "greedy", 12, score, 0.3, 0.6)]
            metrics = {"product/share/S1": score, f"product/chosen/{chosen}": 1.0}
            journal.set_evaluations(1, records, metrics)
        assert [row["mean_frac"] for row in read.evaluations(journal) if row["step"] == 1] == [0.5]
        told = {"product/share/S1": [(1, 0.5)], "product/chosen/merged": [(1, 1.0)]}
        assert read.metric_series(journal) == before | told


def test_a_missing_row_is_named_with_the_journal_that_has_it(tmp_path: Path) -> None:
    new_journal(tmp_path / "long", 3).close()
    new_journal(tmp_path / "short", 2).close()
    assert diff(tmp_path / "long", tmp_path / "short") == "table step, row step=3 is in the first journal only"
    assert diff(tmp_path / "short", tmp_path / "long") == "table step, row step=3 is in the second journal only"


def test_the_smallest_difference_of_a_float_counts(tmp_path: Path) -> None:
    for name, value in (("one", 0.3), ("two", 0.1 + 0.2)):
        with Journal.create(tmp_path / name, replace(RUN, name=name)) as journal, journal.step(0) as tx:
            tx.add_metrics({"solve/rate": value})
    assert "0.30000000000000004" in str(diff(tmp_path / "one", tmp_path / "two"))


def test_the_run_says_what_it_is(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 0) as journal:
        assert read.run_record(journal) == RUN


def test_meetings_weigh_solve_rates_by_the_number_of_tasks(tmp_path: Path) -> None:
    match = Match("T1", "S1", 0.5)
    with new_journal(tmp_path / "j.sqlite", 0) as journal:
        for step, (num_tasks, solve_frac) in enumerate([(3, 0.5), (1, 0.9), (0, None)], start=1):
            with journal.step(step) as tx:
                tx.add_matches([MatchRecord(match, num_tasks, solve_frac, "draw")])
        [row] = read.meetings(journal)
    assert (row["num_matches"], row["num_tasks"]) == (3, 4)
    assert row["solve_frac"] == pytest.approx((3 * 0.5 + 0.9) / 4)


def test_one_may_read_while_another_writes(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 1) as writer, Journal.open(tmp_path / "j.sqlite", read_only=True) as reader:
        with writer.step(2) as tx:
            tx.add_metrics({"solve/rate": 0.1})
            assert read.last_step(reader) == 1
        assert read.last_step(reader) == 2


def test_a_reader_leaves_nothing_beside_the_journal(tmp_path: Path) -> None:
    new_journal(tmp_path / "j.sqlite", 1).close()
    with Journal.open(tmp_path / "j.sqlite", read_only=True) as reader:
        assert read.last_step(reader) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["j.sqlite"]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    new_journal(tmp_path / "j.sqlite", 1).close()
    with (
        Journal.open(tmp_path / "j.sqlite", read_only=True) as reader,
        pytest.raises(UserError, match="it is read-only"),
    ):
        reader.truncate_after(0)


def test_a_finished_journal_opens_in_a_folder_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        new_journal(folder / "j.sqlite", 1).close()
        folder.chmod(0o555)
        try:
            with without_root_rights(), Journal.open(folder / "j.sqlite", read_only=True) as journal:
                assert read.last_step(journal) == 1
        finally:
            folder.chmod(0o755)


def test_a_full_disk_is_told_in_a_sentence_and_the_step_is_left_out_whole(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 1) as journal:
        num_pages = journal.connection.execute("PRAGMA page_count").fetchone()[0]
        journal.connection.execute(f"PRAGMA max_page_count = {num_pages + 1}")  # SQLite then reports a full disk
        with pytest.raises(UserError, match=r"j\.sqlite: the disk is full; free some space"):
            write_step(journal, 2, text="x" * 100_000)
        assert read.last_step(journal) == 1


def test_a_second_writer_is_told_to_wait(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 0) as first, Journal.open(tmp_path / "j.sqlite") as second:
        second.connection.execute("PRAGMA busy_timeout = 10")
        with first.step(1), pytest.raises(UserError, match="another process is writing"):
            write_step(second, 1)


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    new_journal(tmp_path / "j.sqlite", 0).close()
    with pytest.raises(UserError, match="exists already"):
        Journal.create(tmp_path / "j.sqlite", RUN)


def test_what_is_no_journal_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, and long enough to look like a header of one " * 3)
    sqlite3.connect(tmp_path / "other").execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(UserError, match=r"There is no journal at .*nowhere"):
        Journal.open(tmp_path / "nowhere")
    with pytest.raises(UserError, match="text: it is not a journal"):
        Journal.open(tmp_path / "text")
    with pytest.raises(UserError, match="not a journal of redqueen"):
        Journal.open(tmp_path / "other", read_only=True)


def test_a_journal_of_another_schema_version_is_refused_by_number(tmp_path: Path) -> None:
    with new_journal(tmp_path / "j.sqlite", 0) as journal:
        journal.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="journal schema 99, and this redqueen reads schema 2"):
        Journal.open(tmp_path / "j.sqlite")


def test_a_writer_killed_inside_a_step_leaves_the_steps_before(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from redqueen.journal import Journal, RunRecord
journal = Journal.create(Path(sys.argv[1]), RunRecord("killed", "1T+1S", 0))
for step in (0, 1):
    with journal.step(step) as tx:
        tx.add_metrics({f"m{n}": float(n) for n in range(20_000)})
        if step == 1:
            os.kill(os.getpid(), 9)
"""
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / "j.sqlite")], check=False)
    assert killed.returncode == -9
    with Journal.open(tmp_path / "j.sqlite") as journal:
        assert read.last_step(journal) == 0
        assert journal.query("SELECT count(*) AS num FROM metric") == [{"num": 20_000}]


def test_a_hundred_steps_of_a_thousand_attempts_stay_modest(tmp_path: Path) -> None:
    """Four steps are written and scaled up: at most 60 MB for a hundred, with every third attempt thinking aloud."""
    thought = "a=-2 9;a=-11 i=7 a=0 r=[7,8];" * 8
    with new_journal(tmp_path / "j.sqlite", 0) as journal:
        for step in range(1, 5):
            tasks = [
                Task(f"{step}.{n}", "T1", "S1", "code_o", "def f(x):\n    return x\n" * 4, ("3",), ("3",))
                for n in range(128)
            ]
            with journal.step(step) as tx:
                tx.add_tasks(TaskRecord(task, MEASURED, f"digest {task.id}") for task in tasks)
                tx.add_attempts(
                    attempt(task.id, f"<think>{thought}</think>[1, 2, 3]", "[1, 2, 3]", True, thought)
                    if n % 3 == 0
                    else attempt(task.id, "[1, 2, 3]", "[1, 2, 3]", True)
                    for task in tasks
                    for n in range(8)
                )
    assert (tmp_path / "j.sqlite").stat().st_size * 25 < 60_000_000


def test_a_table_is_read_in_portions_while_all_of_it_is_still_in_the_log(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "journal.sqlite", RUN) as journal:
        with journal.step(0) as tx:
            tx.add_individuals([TEACHER, STUDENT])
        with journal.step(1) as tx:
            texts = (Candidate(f"1.{i}", "T1", "S1", "code_o", "x" * 20_000) for i in range(110))
            tx.add_candidates(CandidateRecord(one, "syntax", "") for one in texts)
        assert journal.path.stat().st_size < 100_000 < 2_200_000  # the rows' text
        with Journal.open(journal.path, read_only=True) as reader:
            assert sum(len(rows) for rows in reader.portions("SELECT text FROM candidate")) == 110


def test_the_first_difference_of_two_configs_is_named_by_its_field(tmp_path: Path) -> None:
    for name, rate in (("one", 0.1), ("two", 0.2)):
        config = {"run": {"num_steps": 4}, "learn": {"batch_size": 8, "learning_rate": rate}}
        Journal.create(tmp_path / name, replace(RUN, config=config)).close()
    said = str(diff(tmp_path / "one", tmp_path / "two"))
    assert said.endswith(": config.learn.learning_rate is 0.1 in the first journal and 0.2 in the second")
