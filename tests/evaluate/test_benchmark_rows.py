"""Reading suites from files: formats, ids, limits, and one clear sentence for whatever does not fit."""

import contextlib
import gzip
import importlib.util
import json
from pathlib import Path
from random import Random

import pytest

from redqueen.domains.registry import DOMAINS
from redqueen.domains.rows import rows_of_file
from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import BENCHMARKS, SUITES, load_questions
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import MathsQuestion, TaskQuestion, clusters_of

SQUARE = {"code": "def f(x):\n    return x * x", "input": "3", "output": "9", "id": "one"}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def test_lines_gzipped_lines_and_one_json_list_hold_the_same_items(tmp_path: Path) -> None:
    rows = [SQUARE, {**SQUARE, "id": "two"}]
    plain = write(tmp_path / "a.jsonl", *rows)
    packed, listed = tmp_path / "a.jsonl.gz", tmp_path / "a.json"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    listed.write_text(json.dumps(rows))
    found = [load_questions("cruxeval-o", path) for path in (plain, packed, listed)]
    zipped, upper = tmp_path / "b.json.gz", tmp_path / "C.JSONL.GZ"
    zipped.write_bytes(gzip.compress(listed.read_bytes()))
    upper.write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain.read_bytes()))
    marked, misnamed, one = tmp_path / "bom.jsonl", tmp_path / "list.jsonl", tmp_path / "one.JSON"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    misnamed.write_text(json.dumps(rows, indent=2))
    one.write_text(json.dumps(SQUARE, indent=2))
    found += [load_questions("cruxeval-o", path) for path in (zipped, upper, marked, misnamed)]
    assert all(questions == found[0] for questions in found)
    assert load_questions("cruxeval-o", one) == found[0][:1]
    assert [question.id for question in found[0]] == ["one", "two"]
    assert load_questions("cruxeval-o", plain, limit=1) == found[0][:1]


def test_a_program_is_asked_for_its_output_or_for_an_input(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", SQUARE, {**SQUARE, "id": "bytes", "output": "b'9'"})
    for suite, kind, gold in (("cruxeval-o", "code_o", "9"), ("cruxeval-i", "code_i", "3")):
        question, other = load_questions(suite, path)
        assert isinstance(question, TaskQuestion) and isinstance(other, TaskQuestion)
        assert other.task.outputs == ("b'9'",)  # a value that a task of a run may not have
        assert (question.task.kind, question.gold, question.task.outputs) == (kind, gold, ("9",))


@pytest.mark.parametrize(
    ("suite", "row", "text", "gold"),
    [
        ("gsm8k", {"question": "How many?", "answer": "1 + 1 = <<1+1=2>>2\n#### 1,002"}, "How many?", "1,002"),
        ("math500", {"problem": "Find x.", "answer": "\\frac12", "unique_id": "a/1.json"}, "Find x.", "\\frac12"),
        ("amc23", {"id": 0, "question": "Find x.", "answer": 27.0}, "Find x.", "27"),
        ("aime25", {"id": "I-1", "problem": "Find x.", "answer": 70}, "Find x.", "70"),
        ("minerva", {"problem": "Find x.", "solution": "So $x = \\boxed{2.5e3}$."}, "Find x.", "2.5e3"),
        (
            "olympiadbench",
            {"id": 1, "question": "Find x.", "final_answer": ["$4$"], "solution": ["..."]},
            "Find x.",
            "$4$",
        ),
        ("olympiadbench", {"id": 1, "question": "Find x.", "final_answer": ["1", "$2$"]}, "Find x.", "1, $2$"),
    ],
)
def test_problems_in_mathematics_are_read_in_each_published_form(
    suite: str, row: dict[str, object], text: str, gold: str, tmp_path: Path
) -> None:
    question = load_questions(suite, write(tmp_path / "a.jsonl", row))[0]
    assert isinstance(question, MathsQuestion)
    assert (question.text, question.gold) == (text, gold)


def test_items_without_an_id_are_numbered(tmp_path: Path) -> None:
    rows = [{"question": "?", "answer": "#### 1"}] * 2
    assert [question.id for question in load_questions("gsm8k", write(tmp_path / "a.jsonl", *rows))] == ["0", "1"]


def test_an_id_is_read_from_the_first_field_that_holds_one(tmp_path: Path) -> None:
    fields = ["id", "task_id", "unique_id", "question_id", "idx"]
    rows = [{"question": "?", "answer": "1", **dict.fromkeys(fields[at:], name)} for at, name in enumerate("abcde")]
    for row, at in zip(rows, range(5), strict=True):
        row[fields[at]] = f"own-{at}"
    questions = load_questions("gsm8k", write(tmp_path / "a.jsonl", *rows))
    assert [question.id for question in questions] == [f"own-{at}" for at in range(5)]


def test_the_embedded_suite_needs_no_file_and_reads_one_of_its_kind(tmp_path: Path) -> None:
    questions = load_questions("mini")
    assert load_questions("mini", limit=2) == questions[:2]
    assert len(set(clusters_of(questions).values())) * 3 == len(questions)  # three questions of each function
    with pytest.raises(UserError, match="there is no such file"):
        load_questions("mini", tmp_path / "none.jsonl")


def test_the_suites_are_those_that_the_manual_lists() -> None:
    assert set(SUITES) == {
        "mini", "maths", "logic", "cruxeval-o", "cruxeval-i", "humaneval", "humaneval+",
        "mbpp+", "livecodebench", "aime24", "aime25", "amc23", "math500", "minerva", "gsm8k", "olympiadbench", "tests",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("suite", "lines", "said"),
    [
        ("cruxeval", [SQUARE], "--suite cruxeval is unknown: choose one of mini, maths"),
        ("", [SQUARE], "--suite is missing: choose one of mini"),
        ("cruxeval-o", ["{"], "line 1: not JSON"),
        ("cruxeval-o", [SQUARE, [1]], "line 2: expected an object"),
        ("cruxeval-o", [SQUARE, SQUARE], "line 2: the id one was used before"),
        ("cruxeval-o", [{**SQUARE, "output": "f(1)"}], "line 1: the output is not a plain literal"),
        ("cruxeval-o", [{"id": "a", "code": "x"}], "line 1: the field input is missing"),
        ("gsm8k", [{"question": "?"}], "line 1: the field answer or final_answer or solution is missing"),
        ("gsm8k", [{"question": "?", "answer": "#### "}], "line 1: the answer is empty"),
        ("humaneval", [{"task_id": "a", "prompt": "p"}], "line 1: the field entry_point is missing"),
        ("mbpp+", [{"task_id": 1, "prompt": "p", "code": "def f(: "}], "line 1: the reference or its tests"),
        ("mbpp+", [{"task_id": 1, "prompt": "p", "code": "x = 1", "test": ""}], "line 1: no function of the reference"),
        ("tests", [{"text": "hello"}], "line 1 does not have a known form of a task"),
        ("gsm8k", [], "holds no items"),
        ("gsm8k", [{"id": int("9" * 401), "question": "?", "answer": "1"}], "line 1: the field id is missing"),
        (
            "mbpp+",
            [{"task_id": 1, "prompt": "p", "code": "x = 1", "test": "", "test_list": 5}],
            "line 1: cannot be read",
        ),
        ("mbpp+", [{"task_id": 1, "prompt": "p", "code": "(" * 5_000, "test": "", "test_list": []}], "line 1: "),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(suite: str, lines: list[object], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        load_questions(suite, write(tmp_path / "items.jsonl", *lines))
    assert said in str(refused.value)


def test_a_gzipped_file_that_is_damaged_anywhere_is_named(tmp_path: Path) -> None:
    rng = Random(1)
    whole = gzip.compress("".join(f'{{"a": {rng.randrange(10**9)}}}\n' for _ in range(500)).encode())
    path = tmp_path / "a.jsonl.gz"
    for at in range(0, len(whole), len(whole) // 60):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with contextlib.suppress(UserError):  # a bit of the header may say nothing of the content
            rows_of_file(path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
@pytest.mark.parametrize("text", [" " * 2_000, "{}\n" * 700], ids=["one line", "many"])
def test_a_file_that_unpacks_without_end_is_left(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redqueen.domains.rows.MAX_CHARS", 1_000)
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(UserError, match="holds more than 1,000 characters"):
        rows_of_file(tmp_path / name)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
def test_a_file_that_is_absent_or_damaged_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        load_questions("gsm8k", tmp_path / name)
    (tmp_path / name).write_bytes(b"\x1f\x8b\xff\x00damaged")
    with pytest.raises(UserError, match=name):
        load_questions("gsm8k", tmp_path / name)


def test_a_limit_must_leave_something() -> None:
    with pytest.raises(UserError, match="--limit 0"):
        load_questions("mini", limit=0)


@pytest.mark.skipif(importlib.util.find_spec("datasets") is not None, reason="the package datasets is installed")
@pytest.mark.parametrize("suite", sorted(BENCHMARKS))
def test_without_the_extra_a_suite_from_the_hub_names_the_remedy(suite: str) -> None:
    remedy = (
        r"a file of your own: name it by --data" if suite == "tests" else r"'redqueen\[suites\]', or give a file .* by"
    )
    with pytest.raises(UserError, match=remedy):
        load_questions(suite)


@pytest.mark.parametrize("name", ["maths", "logic"])
def test_a_domains_frozen_suite_is_asked_by_the_domains_name(name: str, judge: Judge) -> None:
    questions = load_questions(name)
    items = DOMAINS[name].suite()
    assert list(clusters_of(questions).items()) == [(item.id, item.cluster) for item in items]
    assert load_questions(name, limit=3) == questions[:3]
    grades = judge.grade([pair for q in questions[::40] for pair in ((q, q.gold or ""), (q, "no such answer"))])
    assert [grade.correct for grade in grades] == [True, False] * len(questions[::40])


SUM = {"id": "sum", "kind": "maths_formal", "code": "3 + 4", "outputs": ["7"]}


def test_a_domains_tasks_can_be_asked_from_a_file(tmp_path: Path, judge: Judge) -> None:
    told = {
        "id": "told",
        "kind": "maths_word",
        "code": "x where x = 3 + 4",
        "message": "Three and four?",
        "outputs": ["7"],
    }
    path = write(tmp_path / "a.jsonl", SUM, told)
    questions = load_questions("maths", path)
    assert clusters_of(questions) == {"sum": "sum", "told": "told"}
    assert load_questions("maths", path, limit=1) == questions[:1]
    grades = judge.grade([pair for q in questions for pair in ((q, "7"), (q, "8"))])
    assert [grade.correct for grade in grades] == [True, False, True, False]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**SUM, "id": "other", "kind": "code_o"}, 'line 2: the field "kind" must be one of maths_formal, maths_word'),
        (SUM, "line 2: the id sum was used before"),
        ({**SUM, "id": "other", "code": 5}, 'line 2: the fields "code", "message", "input" and'),
        ({**SUM, "id": "other", "outputs": []}, 'line 2: the field "output" must hold the right answer'),
    ],
)
def test_a_line_that_is_no_task_of_the_domain_is_named(tmp_path: Path, row: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_questions("maths", write(tmp_path / "a.jsonl", SUM, row))
