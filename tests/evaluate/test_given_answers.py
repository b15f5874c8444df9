"""Grading answers without a model: by id or in order, with one verdict an item, and mistakes named."""

import json
from pathlib import Path

import pytest
from command_line import redqueen, redqueen_afresh

from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.given_answers import grade_file, read_answers, refuse_useless, summary_of
from redqueen.records import Grade

ITEMS = [
    {
        "id": f"sample_{i}",
        "code": "def f(x):\n    return [x, {'a': x}]",
        "input": str(i),
        "output": f"[{i}, {{'a': {i}}}]",
    }
    for i in range(4)
]
RIGHT = [item["output"] for item in ITEMS]


def write(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return write(tmp_path / "items.jsonl", list(ITEMS))


def grade(items: Path, rows: list[object], suite: str = "cruxeval-o", limit: int | None = None) -> dict[str, object]:
    return json.loads(grade_file(suite, items, limit, write(items.parent / "answers.jsonl", rows)))


def test_answers_by_id_may_come_in_any_order_and_one_that_is_missing_is_wrong(items: Path) -> None:
    found = grade(items, [{"id": "sample_2", "answer": RIGHT[2]}, {"id": "sample_0", "answer": "[0, {'a': 1}]"}])
    assert (found["suite"], found["num_items"], found["num_correct"], found["score"]) == ("cruxeval-o", 4, 1, 0.25)
    low, high = found["interval"]  # type: ignore[misc]
    assert 0 < low < 0.25 < high < 1
    assert found["items"] == [
        {"id": "sample_0", "correct": False, "verdict": "ok", "detail": ""},
        {"id": "sample_1", "correct": False, "verdict": "unparsable", "detail": "no answer"},
        {"id": "sample_2", "correct": True, "verdict": "ok", "detail": ""},
        {"id": "sample_3", "correct": False, "verdict": "unparsable", "detail": "no answer"},
    ]


@pytest.mark.parametrize("name", [None, "row"])
def test_answers_without_the_suites_ids_are_taken_in_order(items: Path, name: str | None) -> None:
    rows: list[object] = [
        {"answer": text} if name is None else {"id": f"{name}-{i}", "answer": text} for i, text in enumerate(RIGHT)
    ]
    assert grade(items, rows)["score"] == 1.0
    assert grade(items, rows[::-1])["score"] == 0.0


@pytest.mark.parametrize(
    ("ids", "complaint"),
    [
        (["sample_3", "sample_2", "sample_1", "sample_1"], r"line 4: the id 'sample_1' occurs twice"),
        (["sample_3", "sample_2", "sample_1 ", "sample_0"], r"line 3: the id 'sample_1 ' is none of the 4 items'"),
    ],
)
def test_one_wrong_id_does_not_let_the_others_be_ignored(items: Path, ids: list[str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        grade(items, [{"id": name, "answer": text} for name, text in zip(ids, RIGHT[::-1], strict=True)])


def test_the_interval_of_items_about_one_function_is_that_of_as_many_functions() -> None:
    right, wrong = (Grade(correct, "ok") for correct in (True, False))
    alone = summary_of([right, wrong] * 50, [str(i) for i in range(100)])
    together = summary_of([right, right, right, wrong, wrong, wrong] * 50, [str(i // 3) for i in range(300)])
    widths = [high - low for low, high in (one["interval"] for one in (alone, together))]  # type: ignore[misc]
    assert widths[1] == pytest.approx(widths[0], rel=0.1) and alone["score"] == together["score"] == 0.5


def test_a_limit_grades_the_first_items(items: Path) -> None:
    found = grade(items, [{"answer": RIGHT[0]}, {"answer": "0"}], limit=2)
    assert (found["num_items"], found["score"]) == (2, 0.5)


def test_a_null_answer_is_none_and_a_number_is_its_text(items: Path) -> None:
    found = grade(items, [{"answer": None}, {"answer": 1}, {"answer": 2.0}, {"answer": RIGHT[3]}])
    assert [item["verdict"] for item in found["items"]] == ["unparsable", "ok", "ok", "ok"]  # type: ignore[attr-defined]
    assert found["num_correct"] == 1


def test_cheats_get_nothing(items: Path) -> None:
    cheats = ["0) or (True", "type('E', (), {'__eq__': lambda s, o: True})()", "__import__('os')", "[0, {'a': 0}] or 1"]
    found = grade(items, [{"answer": cheat} for cheat in cheats])
    assert (found["score"], found["num_graded"]) == (0.0, 4)


def test_any_input_that_gives_the_output_is_right_and_expressions_of_literals_are_inputs(tmp_path: Path) -> None:
    length = {"id": "len", "code": "def f(x):\n    return len(x)", "input": "'abcd'", "output": "4"}
    for answer, right in (
        ("'ab' * 2", True),
        ("x=[0, 1, 2, 3]", True),
        ("'abc'", False),
        ("open('/etc/passwd')", False),
    ):
        found = grade(write(tmp_path / "items.jsonl", [length]), [{"answer": answer}], "cruxeval-i")
        assert found["score"] == float(right), answer


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": "sample_9", "answer": "1"}], "line 1: the id 'sample_9' is none of the 4 items'"),
        ([{"answer": "1"}], "has 1 answers and the suite 4 items"),
        (
            [{"id": "sample_1", "answer": "1"}] * 2,
            "line 2: the id 'sample_1' occurs twice; give every item one answer",
        ),
        ([{"id": "sample_0"}], 'line 1: the field "answer" is missing'),
        ([{"id": "sample_0", "answer": [1]}], "line 1: the field answer is missing or not a text"),
        (["{"], "line 1: not JSON"),
        (["[]"], "has 0 answers and the suite 4 items"),
    ],
)
def test_answers_that_belong_to_nothing_are_refused(items: Path, rows: list[object], said: str) -> None:
    with pytest.raises(UserError) as refused:
        read_answers(write(items.parent / "answers.jsonl", rows), load_questions("cruxeval-o", items))
    assert said in str(refused.value)


def test_a_file_of_answers_that_is_absent_is_named(items: Path) -> None:
    with pytest.raises(UserError, match=r"--answers .*none\.jsonl: there is no such file"):
        grade_file("cruxeval-o", items, None, items.parent / "none.jsonl")


def test_the_command_prints_one_json_object_and_needs_no_model(items: Path) -> None:
    answers = write(items.parent / "answers.jsonl", [{"answer": text} for text in RIGHT])
    (told,) = redqueen_afresh(["evaluate", "--suite", "cruxeval-o", "--data", str(items), "--answers", str(answers)])
    assert (told.code, told.heavy) == (0, [])
    assert json.loads(told.out)["score"] == 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--suite", "nonsense", "--answers", "x"], "--suite nonsense is unknown"),
        (["base", "--suite", "mini", "--answers", "x"], "leave out base, or --answers"),
        (["--suite", "mini"], "nothing to evaluate"),
        (["--suite", "mini", "--limit", "0", "--answers", "x"], "--limit 0"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(words: list[str], said: str) -> None:
    code, out, err = redqueen("evaluate", *words)
    assert (code, out) == (2, "")
    assert said in err and err.count("\n") == 1


def test_a_flag_that_grading_does_not_read_is_refused() -> None:
    refuse_useless({"--out": None, "--samples": 0, "--set": None})
    with pytest.raises(UserError, match="leave out --samples, or --answers"):
        refuse_useless({"--out": None, "--samples": 2, "--set": ["solve.max_rows=1"]})
