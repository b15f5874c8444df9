"""Grading answers without a model: by id or in order, with one verdict an item, and mistakes named."""

import json
import re
from pathlib import Path

import pytest
from command_line import redqueen, redqueen_afresh

from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.given_answers import grade_file, read_answers, refuse_useless, summary_of
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import Question
from redqueen.records import Grade
from redqueen_sandbox.guard import faults

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
    return grade_file(suite, items, limit, write(items.parent / "answers.jsonl", rows))


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
        (["sample_3", "sample_2", "sample_1 ", "sample_0"], r"line 3: none of the 4 items has the id 'sample_1 '"),
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


SQUARE, PUZZLE, LEMMA = "def f(x):\n    return x * x", "order A B\nA < B", "p, p>q |- q"
OF_DOMAINS = [
    ({"kind": "code_o", "code": SQUARE, "inputs": [" 3"], "output": "9 ", "answer": "9"}, "right"),
    ({"kind": "code_o", "code": SQUARE, "inputs": ["3"], "output": "9", "answer": "0) or (True"}, "unparsable"),
    ({"kind": "code_i", "code": SQUARE, "inputs": ["3"], "output": "9", "answer": "-3"}, "right"),
    ({"kind": "code_i", "code": SQUARE, "inputs": ["3"], "output": "9", "answer": "open('x')"}, "invalid-input"),
    ({"kind": "code_f", "inputs": ["2"], "outputs": ["4"], "answer": "def f(x):\n    return x ** 2"}, "right"),
    ({"kind": "code_f", "inputs": ["2"], "outputs": ["4"], "answer": "def f(x):\n    return 5"}, "wrong"),
    ({"kind": "code_f", "inputs": ["2", "[3][0]"], "outputs": ["4", "9"], "answer": SQUARE}, "not a plain literal"),
    ({"kind": "code_f", "inputs": [], "answer": SQUARE}, '"inputs" and "outputs"'),
    ({"kind": "code_i", "code": SQUARE, "output": "9", "answer": "3"}, "right"),
    ({"kind": "code_o", "code": SQUARE, "inputs": ["3"], "output": 9, "answer": "9"}, '"output" must be texts'),
    ({"kind": "code_x", "answer": "1"}, "of the kind code_x"),
    ({"kind": "maths_formal", "code": "3 + 4", "outputs": ["7"], "answer": "7.0"}, "right"),
    ({"kind": "maths_formal", "output": "7", "answer": "8"}, "wrong"),
    (
        {"kind": "maths_word", "message": "How many?", "code": "3 + 4", "output": "sqrt(2)", "answer": "2^(1/2)"},
        "right",
    ),
    ({"kind": "maths_formal", "code": "3 + 4", "answer": "7"}, '"output"'),
    ({"kind": "maths_formal", "code": "3 + 4", "outputs": [], "answer": "7"}, '"output"'),
    ({"kind": "maths_formal", "code": "3 + 4", "output": "seven", "answer": "7"}, "'seven' is no word"),
    ({"kind": "maths_formal", "code": "3 + 4", "output": "x", "answer": "7"}, "is not a number"),
    ({"kind": "maths_formal", "code": "3 +", "output": "7", "answer": "7"}, "it ends where"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "outputs": ["A = 1, B = 2"], "answer": "B = 2, A = 1"}, "right"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "output": "A = 1, B = 2", "answer": "A = 2, B = 1"}, "wrong"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "answer": "A = 1, B = 2"}, '"output"'),
    ({"kind": "logic_puzzle", "code": "not a puzzle", "outputs": ["A = 1"], "answer": "A = 1"}, "the first line"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "outputs": ["A is first"], "answer": "A is first"}, "A = 1, B = 2"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "outputs": ["A = 2, B = 1"], "answer": "A = 2, B = 1"}, "fit the clues"),
    ({"kind": "proof_lemma", "code": LEMMA, "output": "mp 1 2", "answer": "mp 1 2"}, "right"),
    ({"kind": "proof_lemma", "code": LEMMA, "output": "mp 1 2", "answer": "mp 2 1"}, "wrong"),
    ({"kind": "proof_lemma", "code": "no lemma", "outputs": ["mp 1 2"], "answer": "mp 1 2"}, "no |-"),
    ({"kind": "proof_lemma", "code": LEMMA, "outputs": ["mp 2 1"], "answer": "mp 1 2"}, "no proof"),
    ({"kind": "proof_lemma", "code": LEMMA, "output": ["mp 1 2"], "answer": "mp 1 2"}, "must be"),
    ({"kind": "proof_lemma", "answer": "mp 1 2"}, "no |-"),
]


def test_tasks_of_every_domain_are_graded_and_a_damaged_one_is_named(tmp_path: Path, judge: Judge) -> None:
    faults.clear()
    graded: list[tuple[Question, str]] = []
    expectations: list[str] = []
    for fields, expected in OF_DOMAINS:
        data = write(tmp_path / "tasks.jsonl", [fields])
        suite = "proofs" if fields["kind"] == "proof_lemma" else "tests"
        if expected in ("right", "wrong", "unparsable", "invalid-input"):
            (question,) = load_questions(suite, data)
            graded.append((question, str(fields["answer"])))
            expectations.append(expected)
        else:
            with pytest.raises(UserError, match=re.escape(expected)):
                load_questions(suite, data)
    grades = judge.grade(graded)
    verdicts = ["right" if one.correct else "wrong" if one.verdict == "ok" else one.verdict for one in grades]
    assert verdicts == expectations
    assert not faults


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": "sample_9", "answer": "1"}], "line 1: none of the 4 items has the id 'sample_9'"),
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


def test_answers_beside_their_tasks_are_graded_a_line_each(tmp_path: Path) -> None:
    task = {"id": "t", "kind": "code_o", "code": "def f(x):\n    return [x, x]", "input": "3", "output": "[3,3]"}
    find, write_it = {"kind": "code_i", "code": task["code"], "output": "[3, 3]"}, {"kind": "code_f"}
    rows = [
        (task, "[3, 3]", True),
        (task, "```python\n[3, 3]\n```", True),
        (task, "<think>[3]</think><answer>[3, 3]</answer>", True),
        (task, "`[3, 3]`", True),
        (task, "[3]", False),
        (task, "<think>[3, 3]", False),
        (find, "3", True),
        (find, "4", False),
        (write_it | {"hidden": [["3", "[3, 3]"]]}, task["code"], True),
        (write_it | {"hidden": [["3", "[3]"]]}, task["code"], False),
        (write_it, task["code"], False),
        ({"kind": "riddle"}, "3", False),
    ]
    path = write(
        tmp_path / "tasks.jsonl", [one | {"id": str(i), "answer": said} for i, (one, said, _) in enumerate(rows)]
    )
    code, out, _ = redqueen("grade", str(path))
    graded = [json.loads(line) for line in out.splitlines()]
    assert (code, [one["correct"] for one in graded]) == (0, [right for *_, right in rows])
    assert [one["verdict"] for one in graded[-2:]] == ["invalid-input"] * 2 and "equally many" in graded[-2]["detail"]


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
