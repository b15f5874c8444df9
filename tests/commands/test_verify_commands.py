"""The commands: JSON lines in, JSON lines out, in order; bad lines and bad flags."""

import io
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from redqueen.commands.verify import grade_file, protections, verify_file
from redqueen.errors import UserError
from redqueen_sandbox import Program, Sandbox
from redqueen_sandbox.guard import faults
from redqueen_sandbox.zygotes import ZygoteSettings


def write(path: Path, lines: list[object]) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def output_of(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_verify_answers_every_line_in_order_and_names_the_bad_ones(tmp_path: Path) -> None:
    path = write(
        tmp_path / "programs.jsonl",
        [
            {"id": "a", "code": "def f(x, y):\n    return {x, y}", "input": "2, 'z'"},
            "not json",
            {"id": 7, "code": "def f():\n    return '\\ud800'", "input": ""},
            "",
            {"id": "no-input", "code": "def f(x): return x"},
            "[1, 2]",
            {"id": "loop", "code": "def f(x):\n    while True: pass", "input": "1"},
            '{"id": "deep", "code": ' + "[" * 5000,
            {"code": "def f(x): return x", "input": "1"},
            {"id": "z", "code": "import os\ndef f(x): return x", "input": "1"},
        ],
    )
    out = io.StringIO()
    counts = verify_file(path, out, workers=1, cpu_ms=50)
    assert output_of(out) == [
        {"id": "a", "verdict": "ok", "output": "{'z', 2}", "detail": ""},
        {"id": None, "verdict": "invalid-input", "output": None, "detail": "line 2: not JSON"},
        {"id": 7, "verdict": "ok", "output": "'\\ud800'", "detail": ""},
        {
            "id": "no-input",
            "verdict": "invalid-input",
            "output": None,
            "detail": 'line 5: the field "input" must be a text',
        },
        {"id": None, "verdict": "invalid-input", "output": None, "detail": "line 6: not a JSON object"},
        {"id": "loop", "verdict": "timeout", "output": None, "detail": "cpu"},
        {"id": None, "verdict": "invalid-input", "output": None, "detail": "line 8: not JSON"},
        {
            "id": None,
            "verdict": "invalid-input",
            "output": None,
            "detail": 'line 9: the field "id" must be a text or a number',
        },
        {"id": "z", "verdict": "forbidden", "output": None, "detail": "import of os"},
    ]
    assert counts == Counter({"invalid-input": 5, "ok": 2, "timeout": 1, "forbidden": 1})


@pytest.mark.parametrize("name", ["[" * 990 + "]" * 990, "NaN", "1e999", '{"a": []}', "null"])
def test_a_name_that_is_none_is_not_repeated(name: str, tmp_path: Path) -> None:
    out = io.StringIO()
    verify_file(write(tmp_path / "programs.jsonl", [f'{{"id": {name}, "code": "", "input": ""}}']), out, workers=1)
    assert [(line["id"], line["verdict"]) for line in output_of(out)] == [(None, "invalid-input")]


def test_grade_answers_every_line_in_order(tmp_path: Path) -> None:
    square = "def f(x):\n    return x * x"
    hidden = [["2", "4"], ["[3][0]", "9"]]
    path = write(
        tmp_path / "answers.jsonl",
        [
            {"id": 1, "kind": "code_o", "code": square, "input": "3", "output": "9", "answer": "9"},
            {"id": 2, "kind": "code_o", "code": square, "input": "3", "output": "9", "answer": "0) or (True"},
            {"id": 3, "kind": "code_i", "code": square, "output": "9", "answer": "-3"},
            {"id": 4, "kind": "code_i", "code": square, "output": "9", "answer": "open('x')"},
            {"id": 5, "kind": "code_f", "hidden": hidden[:1], "answer": "def f(x):\n    return x ** 2"},
            {"id": 6, "kind": "code_f", "hidden": [{"input": "2", "output": "4"}], "answer": "def f(x):\n    return 5"},
            {"id": 7, "kind": "code_f", "hidden": hidden, "answer": square},
            {"id": 8, "kind": "code_x", "answer": "1"},
            {"id": 9, "kind": "code_o", "output": "9", "answer": None},
            {"id": 10, "kind": "code_f", "hidden": [], "answer": square},
        ],
    )
    out = io.StringIO()
    grade_file(path, out, workers=1)
    lines = output_of(out)
    assert [(line["id"], line["correct"], line["verdict"]) for line in lines] == [
        (1, True, "ok"),
        (2, False, "unparsable"),
        (3, True, "ok"),
        (4, False, "invalid-input"),
        (5, True, "ok"),
        (6, False, "ok"),
        (7, False, "invalid-input"),
        (8, False, "invalid-input"),
        (9, False, "unparsable"),
        (10, False, "invalid-input"),
    ]
    assert lines[6]["detail"] == "line 7: an input or output is not a plain literal"


PUZZLE, LEMMA = "order A B\nA < B", "p, p>q |- q"
OF_OTHER_DOMAINS = [
    ({"kind": "maths_formal", "code": "3 + 4", "outputs": ["7"], "answer": "7.0"}, "right"),
    ({"kind": "maths_formal", "output": "7", "answer": "8"}, "wrong"),
    (
        {"kind": "maths_word", "message": "How many?", "code": "3 + 4", "output": "sqrt(2)", "answer": "2^(1/2)"},
        "right",
    ),
    ({"kind": "maths_formal", "code": "3 + 4", "answer": "7"}, '"output"'),
    ({"kind": "maths_formal", "code": "3 + 4", "outputs": [], "answer": "7"}, '"output"'),
    ({"kind": "maths_formal", "code": "3 + 4", "output": "seven", "answer": "7"}, "'seven' is no word"),
    ({"kind": "maths_formal", "code": "3 + 4", "output": "x", "answer": "7"}, "no number"),
    ({"kind": "maths_formal", "code": "3 +", "output": "7", "answer": "7"}, "it ends where"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "outputs": ["A = 1, B = 2"], "answer": "B = 2, A = 1"}, "right"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "output": "A = 1, B = 2", "answer": "A = 2, B = 1"}, "wrong"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "answer": "A = 1, B = 2"}, '"output"'),
    ({"kind": "logic_puzzle", "code": "not a puzzle", "outputs": ["A = 1"], "answer": "A = 1"}, "the first line"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "outputs": ["A is first"], "answer": "A is first"}, "A = 1, B = 2"),
    ({"kind": "logic_puzzle", "code": PUZZLE, "outputs": ["A = 2, B = 1"], "answer": "A = 2, B = 1"}, "fit the clues"),
    ({"kind": "logic_minimal_puzzle", "outputs": ["A = 2, B = 1"], "answer": "A = 2, B = 1"}, "the first line"),
    ({"kind": "proof_lemma", "code": LEMMA, "answer": "mp 1 2"}, "right"),
    ({"kind": "proof_lemma", "code": LEMMA, "output": "mp 1 2", "answer": "mp 2 1"}, "wrong"),
    ({"kind": "proof_lemma", "code": "no lemma", "outputs": ["mp 1 2"], "answer": "mp 1 2"}, "no |-"),
    ({"kind": "proof_lemma", "code": LEMMA, "outputs": ["mp 2 1"], "answer": "mp 1 2"}, "no proof"),
    ({"kind": "proof_lemma", "code": LEMMA, "output": ["mp 1 2"], "answer": "mp 1 2"}, "must be"),
    ({"kind": "proof_lemma", "answer": "mp 1 2"}, "no |-"),
]


def test_grade_reads_the_tasks_of_every_domain_and_says_what_is_damaged(tmp_path: Path) -> None:
    faults.clear()
    lines = [{"id": number, **fields} for number, (fields, _) in enumerate(OF_OTHER_DOMAINS)]
    out = io.StringIO()
    grade_file(write(tmp_path / "answers.jsonl", lines), out, workers=1)
    for line, (fields, expected) in zip(output_of(out), OF_OTHER_DOMAINS, strict=True):
        if expected in ("right", "wrong"):
            assert (line["correct"], line["verdict"]) == (expected == "right", "ok"), fields
        else:
            assert (line["correct"], line["verdict"]) == (False, "invalid-input"), fields
            assert expected in str(line["detail"]), (fields, line)
    assert not faults


@pytest.mark.parametrize(
    ("flags", "named"),
    [({"workers": 0}, "--workers"), ({"cpu_ms": 1}, "--cpu-ms"), ({"num_seeds": 99}, "--seeds")],
)
def test_a_bad_flag_is_named_in_one_sentence(flags: dict[str, int], named: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=named):
        verify_file(write(tmp_path / "p.jsonl", []), io.StringIO(), **flags)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.jsonl"):
        grade_file(tmp_path / "missing.jsonl", io.StringIO())


def test_the_protections_are_reported_as_observed() -> None:
    report = protections()
    assert report.level != "none", report.remarks
    assert report.observed["seccomp"] and report.observed["no-new-privileges"]
    assert report.machine and report.kernel.startswith("Linux")


def test_without_the_filter_it_refuses_to_start_unless_told_to_and_then_warns() -> None:
    settings = ZygoteSettings(leave_out=frozenset({"seccomp"}))
    with pytest.raises(UserError, match="allow_weak"):
        Sandbox(workers=1, settings=settings)
    with (
        pytest.warns(RuntimeWarning, match="weak: no seccomp"),
        Sandbox(workers=1, allow_weak=True, settings=settings) as weak,
    ):
        result = weak.run([Program("a", "def f(x):\n    return x", ("1",))])[0]
    assert (result.verdict, result.protection) == ("ok", "weak: no seccomp")


def test_another_system_is_refused_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="container"):
        Sandbox()
    assert protections().level == "none"
