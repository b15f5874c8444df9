"""Tasks of the user's own from a file: as a suite, as seeds of the buffer, as anchors of the students."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripted import Table, Teacher, config_of, wrong

from redqueen.config import ProposeConfig
from redqueen.domains.code.kinds import CODE
from redqueen.domains.own import FORMS, read_own, rows_of_source
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import grade, kind_of, num_proposals, texts_of_a_step
from redqueen.domains.rows import Row
from redqueen.engine import Engine
from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import FunctionQuestion, TaskQuestion
from redqueen.loop import solve
from redqueen.records import Match, Task
from redqueen.run.cold_start import add_own_tasks, own_tasks
from redqueen.state import State
from redqueen.streams import Streams
from redqueen_sandbox import Sandbox

PROGRAM = {"code": "def f(x):\n    return sorted(x)[::-1]", "input": "[3, 9, 4]", "output": "[9, 4, 3]"}
FUNCTION = {
    "prompt": "Double a number.",
    "tests": ["assert double(4) == 8", "assert double(0) == 0"],
    "entry": "double",
}
QUESTION = {"question": "How many days has a leap year?", "answer": "366"}
LEMMA = {"kind": "code_i", "code": "def f(x):\n    return x + 17\n", "inputs": ["4"]}


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def task_of_row(row: dict[str, object]) -> Task:
    return read_own(Row("mine.jsonl, line 1", row), "own-0")


def test_each_form_of_a_row_becomes_a_task_that_its_grader_knows(verifier: Sandbox) -> None:
    program, function, question = map(task_of_row, (PROGRAM, FUNCTION, QUESTION))
    answers = [
        (program, "[9, 4, 3]"),
        (program, "[3, 4, 9]"),
        (function, "def double(x):\n    return x + x\n"),
        (function, "def double(x):\n    return x ** 2\n"),
        (function, "import os\ndef double(x):\n    os.system('true')\n"),
        (question, " 366. "),
        (question, "366.0"),
        (question, "365"),
    ]
    assert [one.correct for one in grade(answers, verifier)] == [True, False, True, False, False, True, True, False]
    assert (program.kind, function.kind, question.kind) == ("code_o", "own_function", "own_answer")
    assert function.inputs == ("4", "0") and function.outputs == ("8", "0")


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("1,234", "1234", True),
        ("3.50", " $3.5. ", True),
        ("Paris", "PARIS", True),
        ("9007199254740993", "9007199254740992", False),
        ("1.0000000000000001", "1", False),
        ("9" * 400, "8" * 400, False),
        ("1,2", "12", False),
        ("12", "1,,2,", False),
        ("42", "42" + " " * 5_000 + "or 43", False),
        ("x" * 5_000 + "A", "x" * 5_000 + "B", False),
    ],
)
def test_an_answer_is_the_same_text_or_exactly_the_same_number(
    gold: str, answer: str, right: bool, verifier: Sandbox
) -> None:
    question = task_of_row({"question": "?", "answer": gold})
    assert grade([(question, answer)], verifier)[0].correct == right


def test_a_function_that_is_right_under_half_of_the_hash_seeds_must_be_right_under_two(verifier: Sandbox) -> None:
    function = task_of_row(FUNCTION)
    coins = [f"def double(x):\n    return x * 2 if hash('{salt}') % 2 else 1\n" for salt in range(200)]
    num_right = sum(one.correct for one in grade([(function, coin) for coin in coins], verifier))
    assert 20 < num_right < 75  # two seeds: 50 on average; one seed: 100


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": "hello"}, "does not have a known form"),
        ({"code": "def f(x): return x", "input": "open('a')"}, "line 1"),
        ({**FUNCTION, "tests": "assert double(x=1) == 2"}, r"must all be assert double\(...\) == VALUE"),
        ({**FUNCTION, "tests": "def check(f): pass"}, "must all be assert"),
        ({**FUNCTION, "tests": "no python ("}, "must hold assertions"),
        ({"prompt": "p", "tests": ["assert f(1) == 1"]}, "entry is missing"),
        ({"kind": "code_o", "code": 3}, "must be texts"),
    ],
)
def test_a_row_that_is_no_task_is_one_sentence_with_its_line(row: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        task_of_row(row)
    assert "mine.jsonl, line 1" in str(raised.value)
    assert "answer" in FORMS


@pytest.mark.parametrize("format_name", ["chat", "fewshot", "compact"])
def test_each_format_asks_a_question_and_reads_its_answer(format_name: str) -> None:
    form = PromptFormat(FRAMES[format_name])
    function, question = task_of_row(FUNCTION), task_of_row(QUESTION)
    assert QUESTION["question"] in form.solve(question) and "366" not in form.solve(question)
    assert "Double a number." in form.solve(function) and "assert" not in form.solve(function)
    wrap = "<answer>{}</answer>" if format_name == "chat" else "{}"
    assert form.parse_answer("own_answer", wrap.format("366")).answer == "366"
    code = "def double(x):\n    return 2 * x"
    text = wrap.format(f"```python\n{code}\n```" if format_name == "chat" else code)
    assert (form.parse_answer("own_function", text).answer or "").strip() == code
    assert form.parse_proposal("own_answer", "anything", None).error


def test_the_suite_tests_reads_the_users_file_and_runs_tests_that_are_more_than_comparisons(tmp_path: Path) -> None:
    loop = {**FUNCTION, "tests": "for n in range(5):\n    assert double(n) == n + n"}
    checks = {**FUNCTION, "tests": "def check(candidate):\n    assert candidate(4) == 8"}
    questions = load_questions("tests", written(tmp_path / "mine.jsonl", PROGRAM, FUNCTION, QUESTION, loop, checks))
    assert [type(one) for one in questions] == [TaskQuestion] * 3 + [FunctionQuestion] * 2
    assert [one.gold for one in questions[:3] if isinstance(one, TaskQuestion)] == ["[9, 4, 3]", None, "366"]
    double, same = "def double(x):\n    return 2 * x", "def double(x):\n    return x"
    with Judge(workers=1) as judge:
        good = zip(questions, ["[9, 4, 3]", double, "366", double, double], strict=True)
        assert [g.correct for g in judge.grade(list(good))] == [True] * 5
        bad = zip(questions, ["1", same, "1", same, same], strict=True)
        assert [g.correct for g in judge.grade(list(bad))] == [False] * 5
    with pytest.raises(UserError, match="--data FILE"):
        load_questions("tests")
    with pytest.raises(UserError, match='"output" must hold'):
        load_questions("tests", written(tmp_path / "open.jsonl", {k: v for k, v in PROGRAM.items() if k != "output"}))


def seeded(table: Table, path: Path, anchor_frac: float = 0.0) -> tuple[State, Engine, list[str]]:
    name = f"file:{path}"
    shares = {"code": 1 - anchor_frac, name: anchor_frac} if anchor_frac else ["code", name]
    config = config_of(propose={"domains": shares})
    state, engine = table.sit(config, Teacher(), wrong)
    said: list[str] = []
    return add_own_tasks(state, engine, said.append), engine, said


def test_verified_rows_stand_in_the_buffer_and_the_others_are_counted_by_reason(table: Table, tmp_path: Path) -> None:
    hostile = {"code": "import os\ndef f(x):\n    return os.getpid()\n", "input": "1"}
    lie = {**PROGRAM, "code": "def f(x):\n    return sorted(x)\n"}
    held_out = next(item.task for item in CODE.suite() if item.task.kind == "code_o")
    copied = {"code": held_out.code, "input": held_out.inputs[0]}
    long = {"kind": "code_i", "code": "def f(x):\n    return list(range(x))\n", "inputs": ["1500"]}
    path = written(tmp_path / "mine.jsonl", PROGRAM, LEMMA, QUESTION, lie, hostile, copied, long)
    state, _, said = seeded(table, path)
    assert [t.id for t in state.buffer.tasks][1:] == ["own-0", "own-1"] and state.anchors == ()
    assert state.buffer.tasks[1].outputs == ("[9, 4, 3]",) and state.buffer.tasks[2].outputs == ("21",)
    refused = "1 other-output, 1 forbidden, 1 held-out, 1 too-long"
    assert said == [f"{path}: 3 of 7 tasks are valid, {refused}"]


def test_a_row_of_a_kind_that_the_format_cannot_ask_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.jsonl", {"kind": "maths_formal", "code": "3 + 4"})
    config = config_of(model={"prompt_format": "fewshot"}, propose={"domains": ["code", f"file:{path}"]})
    with pytest.raises(UserError, match="maths_formal have no prompts in the format fewshot"):
        own_tasks(config)


def test_a_share_of_each_students_tasks_are_anchors_of_the_file(table: Table, tmp_path: Path) -> None:
    rows = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(20)]
    state, engine, _ = seeded(table, written(tmp_path / "mine.jsonl", *rows), anchor_frac=0.5)
    teacher, student = state.teachers[0].id, state.students[0].id
    posed = [
        Task(str(n), teacher, student, "code_o", "def f(x):\n    return x\n", (str(n),), (str(n),)) for n in range(4)
    ]
    sampled = solve(state, engine, Streams(0, 1), [Match(teacher, student, 0.5)], posed)
    anchors = [one.task for one in sampled if one.task.id.startswith("own-")]
    assert len(anchors) == 4 == len({task.id for task in anchors}) and len(sampled) == 8
    later = solve(state, engine, Streams(0, 2), [Match(teacher, student, 0.5)], posed)
    assert {one.task.id for one in later} != {one.task.id for one in sampled}
    assert kind_of(anchors[0]).name == "own_answer"


def test_the_plan_of_a_step_counts_the_anchors_too() -> None:
    members: dict[str, dict[str, object]] = {
        "population": {"num_teachers": 2, "num_students": 2},
        "solve": {"num_attempts": 3},
    }
    each: dict[str, object] = {"num_proposals": {}, "num_of_each_kind": 2}  # of three kinds
    alone = config_of(**members, propose=each)
    shared = config_of(**members, propose={**each, "domains": {"code": 0.75, "file:a": 0.25}})
    assert (texts_of_a_step(alone), texts_of_a_step(shared)) == ((12, 36), (12, 48))


def test_files_without_a_valid_task_and_files_alone_are_refused(table: Table, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no task of .*lie.jsonl is valid"):
        seeded(table, written(tmp_path / "lie.jsonl", {**PROGRAM, "output": "[]"}), anchor_frac=0.2)
    with pytest.raises(UserError, match=r"there is no such file"):
        rows_of_source(str(tmp_path / "none.jsonl"), "propose.domains: file")
    with pytest.raises(ValueError, match="at least one domain for which teachers write tasks"):
        ProposeConfig(domains=("file:mine.jsonl",))


def test_the_share_of_a_file_is_of_the_students_tasks_and_not_of_the_teachers_proposals() -> None:
    config = ProposeConfig(domains={"code": 3, "maths": 3, "file:a.jsonl": 2}, num_of_each_kind=4)
    assert config.anchor_frac == 0.25 and config.files == ("a.jsonl",) and config.domains_to_import == ()
    asked = num_proposals(config)
    assert sum(asked.values()) == sum(
        num_proposals(ProposeConfig(domains=("code", "maths"), num_of_each_kind=4)).values()
    )
    assert ProposeConfig(domains=("code", "file:a.jsonl")).anchor_frac == 0.0
