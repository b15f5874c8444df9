"""LiveCodeBench's form: programs that read and print, and methods; packed cases; no cheat gets through."""

import base64
import json
import pickle
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.livecode import CONTEST_LIMITS, ContestJudge, same_output, same_value
from redqueen.evaluate.questions import ContestQuestion, Question
from redqueen_sandbox.guard import faults


def packed(cases: list[dict[str, str]]) -> str:
    """Private cases as the publisher packs them."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()


SUM = {
    "question_id": "sum",
    "question_content": "Read n, then n numbers; print their sum.",
    "starter_code": "",
    "metadata": "{}",
    "public_test_cases": json.dumps([{"input": "2\n1 2\n", "output": "3\n", "testtype": "stdin"}]),
    "private_test_cases": packed([{"input": "3\n1 2 3", "output": "6", "testtype": "stdin"}]),
}
PAIRS = {
    "question_id": "pairs",
    "question_content": "Return the pairs of neighbours.",
    "starter_code": "class Solution:\n    def pairs(self, xs: List[int], k: int) -> List[List[int]]:\n        ",
    "metadata": '{"func_name": "pairs"}',
    "public_test_cases": json.dumps(
        [{"input": "[1, 2, 3]\n1", "output": "[[1, 2], [2, 3]]", "testtype": "functional"}]
    ),
    "private_test_cases": packed([{"input": "[5]\n2", "output": "[]", "testtype": "functional"}]),
}


def load(row: dict[str, str], folder: Path) -> ContestQuestion:
    path = folder / "items.jsonl"
    path.write_text(json.dumps(row) + "\n")
    question = load_questions("livecodebench", path)[0]
    assert isinstance(question, ContestQuestion)
    return question


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """One that gives a program a second of CPU, where a contest gives six."""
    limits = replace(CONTEST_LIMITS, cpu_ms=1_000, accept_cpu_ms=1_000)
    with Judge() as opened, ContestJudge(limits=limits) as quick:
        opened._contest = quick
        yield opened


def verdicts(judge: Judge, question: Question, *answers: str) -> list[tuple[bool, str]]:
    return [(grade.correct, grade.verdict) for grade in judge.grade([(question, answer) for answer in answers])]


def test_programs_that_read_and_print_are_judged_by_what_they_print(judge: Judge, tmp_path: Path) -> None:
    question = load(SUM, tmp_path)
    assert [case.expected for case in question.cases] == ["3\n", "6"]
    right = [
        "n = int(input())\nprint(sum(map(int, input().split())))",
        "import sys\ndata = sys.stdin.read().split()\nprint(float(sum(map(int, data[1:]))))\nsys.exit(0)",
        "import sys\ninput = sys.stdin.readline\ninput()\nsys.stdout.write(f'{sum(map(int, input().split()))}\\n\\n')",
        "import sys\nx = sys.stdin.buffer.read().split()\nif __name__ == '__main__':\n    print(sum(map(int, x[1:])))",
        "def main():\n    input()\n    print(sum(map(int, input().split())))\n    exit()\nmain()\nprint('no')",
        "x = open(0).read().split()\nprint(sum(map(int, x[1:])))",
        "from collections import deque\nimport heapq, math, bisect, itertools, time, threading\ninput()\n"
        "print(sum(map(int, input().split())))",
        "```python\ninput()\nprint(sum(int(x) for x in input().split()))\n```",
        "```\ninput()\nprint(sum(int(x) for x in input().split()))\n```\nOutput:\n```\n3\n```",
        "import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split()[1:])))",
        "import io, os, sys\nx = io.BytesIO(os.read(sys.stdin.fileno(), 9999)).read().split()\n"
        "os.write(1, b'%d' % sum(map(int, x[1:])))",
        "import fileinput\nlines = list(fileinput.input())\nprint(sum(map(int, lines[1].split())))",
        "import os\nx = os.fdopen(0).read().split()\nprint(sum(map(int, x[1:])), flush=True)\nos._exit(0)",
        "import io, sys\nx = sys.__stdin__.read().split()\nsys.stdout = io.StringIO()\n"
        "sys.__stdout__.write(str(sum(map(int, x[1:]))))",
        "```python\ninput()\nprint(sum(int(x) for x in input().split()))",  # without the fence's end
        "\ufeffinput()\nprint(sum(int(x) for x in input().split()))",
        "import threading\ndef main():\n    input()\n    print(sum(map(int, input().split())))\n"
        "threading.stack_size(2**26)\nt = threading.Thread(target=main)\nt.start()\nt.join()",
        "x = open(0, 'rb').read().split()\nopen(1, 'wb').write(b'%d' % sum(map(int, x[1:])))",
    ]
    assert verdicts(judge, question, *right) == [(True, "ok")] * len(right)


def test_wrong_programs_and_cheats_get_nothing(judge: Judge, tmp_path: Path) -> None:
    question = load(SUM, tmp_path)
    found = verdicts(
        judge,
        question,
        "print(3)",  # right on the public case alone
        "print('3 6')",
        "print(1 / 0)",
        "while True: pass",
        "def f(x:",
        "import os\nos._exit(0)",
        "import os\nos.system('echo 3')",
        "def f(text):\n    return '3'",
        "class S(str):\n    def __eq__(self, o): return True\nimport sys\nsys.stdout = S()",
        "print(open('/etc/passwd').read())",
        "",
    )
    assert [correct for correct, _ in found] == [False] * len(found)
    assert found[3][1] == "timeout" and found[4][1] == "error" and found[9][1] != "ok"
    assert "infra" not in {verdict for _, verdict in found}


def test_methods_are_judged_by_what_they_return(judge: Judge, tmp_path: Path) -> None:
    question = load(PAIRS, tmp_path)
    assert question.entry == "pairs" and len(question.cases) == 2
    right = "class Solution:\n    def pairs(self, xs: List[int], k: int):\n        return [*zip(xs, xs[1:])]"
    always_equal = (
        "class E(list):\n    def __eq__(self, o): return True\n"
        "class Solution:\n    def pairs(self, xs, k):\n        return E()"
    )
    answers = [right, right.replace("xs[1:]", "xs[2:]"), "def pairs(xs, k):\n    return []", always_equal]
    assert [correct for correct, _ in verdicts(judge, question, *answers)] == [True, False, False, False]


def test_values_are_compared_as_json_knows_them() -> None:
    assert same_value((1, [2.0]), [1, [2]]) and same_value({1: (2,)}, {"1": [2]})
    assert not same_value([1], [1, 2]) and not same_value("1", 1) and not same_value({1: 2}, {"1": 3})


def test_outputs_are_compared_line_by_line_as_text_or_numbers() -> None:
    assert same_output("YES \n1.0  2\n\n", "YES\n1 2.00")
    assert not same_output("1 2", "1\n2") and not same_output("yes", "YES") and not same_output("1.0001", "1")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("0_5", "5"), ("\uff15", "5"), ("\u0665", "5"), ("5\u00a06", "5 6"), ("\u30005", "5"), ("nan", "NaN"),
        ("snan", "5"),
        ("sNaN", "5"), ("inf", "Infinity"), ("-nan", "nan"), ("1e1000000000", "5"), ("1e99999999999999999999", "1e5"),
        ("1e-999999999", "0"), ("0x5", "5"), ("5L", "5"), ("5j", "5j0"), ("--5", "5"), ("+-5", "-5"), ("5.5.",
        "5.5"), (".", "0"),
        ("e5", "0"), ("1e", "1"), ("5\x005", "55"), ("5\u2028", "5"), ("5\x1c6", "5 6"), ("1,000", "1000"), ("True",
        "1"),
        ("1/2", "0.5"), ("\ud800", "5"), ("", "0"), ("-1", "1"), ("10", "1"), ("0.1", "0.01"), ("1" * 5000,
        "1" * 4999 + "2"),
    ],
)  # fmt: skip
def test_no_other_word_is_taken_for_a_number(said: str, expected: str) -> None:
    assert not same_output(said, expected) and not same_output(expected, said)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("5.0", "5"), ("+5", "5"), ("05", "5"), ("5.", "5"), (".5", "0.50"), ("1e3", "1000"), ("1E+3", "1000.0"),
        ("-0.0", "0"),
        ("1e999999999", "10e999999998"), ("0e5", "0"), ("12e-1\t3", "1.2   3.0"), ("5\r\n6\r\n", "5\n6"), ("nan",
        "nan"),
        ("0" * 9000 + "7", "7"), ("1" * 9000, "1" * 9000 + ".0"), ("\n 5 \n\n", "5"),
    ],
)  # fmt: skip
def test_one_number_in_two_forms_is_one_number(said: str, expected: str) -> None:
    assert same_output(said, expected) and same_output(expected, said)


def test_returned_values_are_compared_as_plain_data() -> None:
    inf = float("inf")
    assert same_value(inf, inf) and same_value(True, 1) and same_value({True: 1}, {"True": 1})
    unequal = [(inf, 5), (inf, -inf), (float("nan"), float("nan")), ({1: 2, "1": 2}, {"1": 2}), ({5}, [5]), ("5", 5)]
    unequal += [(b"5", "5"), ([], [0]), ([5], 5), (frozenset({5}), [5]), (None, False), ({}, [])]
    assert [pair for pair in unequal if same_value(*pair)] == []


def test_what_a_program_prints_or_returns_never_stops_the_judge(judge: Judge, tmp_path: Path) -> None:
    five = {**SUM, "public_test_cases": json.dumps([{"input": "5", "output": "5"}]), "private_test_cases": "[]"}
    printed = [
        "snan",
        "nan",
        "inf",
        "0_5",
        "\uff15",
        "\u0665",
        "1e1000000000",
        "9" * 100_000,
        "5\x00",
        "\x00",
        "5 5",
        "",
    ]
    programs = [f"print({text!r})" for text in printed]
    programs += ["import sys\nsys.stdout.buffer.write(b'\\xff5')", "print('\\ud800')", "print('5' * 10**6)"]
    programs += ["import sys\nsys._getframe(1).f_globals['f'] = None", "import io\nio.TextIOWrapper = None"]
    found = verdicts(judge, load(five, tmp_path), *programs, "print(5)")
    assert [correct for correct, _ in found] == [False] * len(programs) + [True]
    five |= {"metadata": '{"func_name": "g"}'}
    returned = [
        "float('inf')", "-float('inf')", "float('nan')", "[float('inf')]", "{5}", "frozenset({5})", "(5,)", "'5'",
        "b'5'",
        "10**4000", "10**5000", "{1: {2: {3: 4}}}", "print", "range(5)", "'\\ud800'", "5j", "...",
        "__import__('decimal').Decimal(5)",
    ]  # fmt: skip
    methods = [f"class Solution:\n    def g(self, x):\n        return {text}" for text in [*returned, "5", "5.0"]]
    found = verdicts(judge, load(five, tmp_path), *methods)
    assert [correct for correct, _ in found] == [False] * len(returned) + [True, True]
    assert "infra" not in {verdict for _, verdict in found} and not faults


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('ran')",)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(Bomb()))).decode()},
            "more than a packed text",
        ),
        (
            {"private_test_cases": base64.b64encode(zlib.compress(b"\x80\x04r\xff\xff\xff\x1f.")).decode()},
            "not a packed",
        ),
        ({"private_test_cases": base64.b64encode(zlib.compress(b"\x8c\x01a}b.")).decode()}, "more than a packed text"),
        ({"private_test_cases": base64.b64encode(zlib.compress(b"I1\n.")).decode()}, "more than a packed text"),
        ({"metadata": "[" * 100_000}, "cannot be read as an item"),
        ({"private_test_cases": "not base64!"}, "private_test_cases cannot be read"),
        ({"private_test_cases": "", "public_test_cases": "[{}]"}, "public_test_cases cannot be read"),
        ({"private_test_cases": "[]", "public_test_cases": "[]"}, "no test cases"),
        ({"metadata": "[]"}, "metadata is not a JSON object"),
        ({"question_content": None}, "question_content is missing"),
    ],
)
def test_a_damaged_item_is_refused_in_one_sentence(changed: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said) as refused:
        load({**SUM, **changed}, tmp_path)
    assert "items.jsonl, line 1" in str(refused.value)
