"""Exercises that nobody has looked at: none of the suite, none that a run posed, and right."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from task_run import TASKS, write_task_run

from experiments.fresh_exercises import fresh_exercises, main, posed
from recipes.embedded_base.exercises import is_held_out
from redqueen.domains.maths.kinds import load_suite
from redqueen.domains.maths.language import normal_form
from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import TaskQuestion
from redqueen.journal import Journal, MatchRecord, TaskRecord
from redqueen.records import Crowding, Match
from redqueen.run.store import JOURNAL

KINDS = ("maths_formal", "maths_word")


def test_they_are_of_the_held_out_share_and_of_no_form_of_the_suite_or_twice() -> None:
    suite = {normal_form(item.task.code) for item in load_suite()}
    lines = fresh_exercises(30, 1, suite)
    codes = [str(line["code"]) for line in lines]
    forms = set(map(normal_form, codes))
    assert len(codes) == len(forms)
    numbers = Counter((str(line["id"])[:8], str(line["kind"])) for line in lines)
    assert numbers["fresh/2-", "maths_formal"] == numbers["fresh/3-", "maths_formal"] == 30
    assert 0 < numbers["fresh/3-", "maths_word"] <= 30  # the suite has most of those that can be told
    assert all(map(is_held_out, codes)) and not suite & forms


def test_what_a_run_posed_is_left_out(tmp_path: Path) -> None:
    first = str(fresh_exercises(1, 1, set())[0]["code"])
    run = write_task_run(tmp_path / "run")
    with Journal.open(run / JOURNAL) as journal, journal.step(3) as writer:
        task = replace(TASKS[0], id="3-T1-0", kind="maths_formal", code=first)
        writer.add_matches([MatchRecord(Match("T1", "S1", 0.5), 1, 0.5, "draw")])
        writer.add_tasks([TaskRecord(task, None, task.id, Crowding("maths", 0.0, 0.1, 0.0))])
    assert posed(run) == {normal_form(first)}
    assert fresh_exercises(1, 1, posed(run))[0]["code"] != first


def test_the_file_is_asked_as_data_of_the_suite_and_its_answers_are_right(tmp_path: Path) -> None:
    path = tmp_path / "fresh.jsonl"
    main(["--out", str(path), "--num", "12"])
    questions = load_questions("maths", path)
    assert {question.task.kind for question in questions if isinstance(question, TaskQuestion)} == set(KINDS)
    answers = [json.loads(line)["outputs"][0] for line in path.read_text().splitlines()]
    with Judge() as judge:
        assert all(grade.correct for grade in judge.grade(list(zip(questions, answers, strict=True))))
    with pytest.raises(UserError, match="exists already"):
        main(["--out", str(path)])
