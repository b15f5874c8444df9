"""EvalPlus items: types read off the assertions, comparisons as published, and the tests they become in the cage."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmark_data import benchmark_file, read_lines

from redqueen.domains.rows import Row
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.evalplus import (
    NUMPY_STAND_IN,
    comparison,
    example_arguments,
    extended_test,
    typed_arguments,
)
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import FunctionQuestion
from redqueen_sandbox.unit_tests import UnitTester


def typed(given: list[object], assertion: str) -> list[object]:
    return typed_arguments(given, example_arguments(assertion, "f"))


@pytest.mark.parametrize(
    ("given", "assertion", "expected"),
    [
        ([[1, 2], 3], "assert f((3, 4, 5), 1) == 2", [(1, 2), 3]),
        ([[[1, 2], [3, 4]]], "assert f([(6, 24)]) == 2", [[(1, 2), (3, 4)]]),
        ([[[1], [2]], "a"], "assert f(({1}, {2}), 'a')", [({1}, {2}), "a"]),
        ([[1, [2, [3]]]], "assert f((1, (2, 3))) == 1", [(1, (2, (3,)))]),  # deeper than any example
        ([["a", [1]]], "assert f(('b', [2])) == 1", [("a", [1])]),  # each place has its own type
        ([{"x": [1]}], "assert f({'y': (1, 2)}) == 1", [{"x": (1,)}]),
        (["0", "1j"], "assert f(0, 1j) == 1.5", [0, 1j]),
        ([[1, 2]], "assert f([1]) == 1", [[1, 2]]),
        (["12"], "assert f(12) == 1", ["12"]),
        ([[]], "assert f(()) == 1", [()]),
    ],
)
def test_arguments_get_the_types_that_the_assertions_show(
    given: list[object], assertion: str, expected: list[object]
) -> None:
    assert repr(typed(given, assertion)) == repr(expected)


def test_text_becomes_a_complex_number_where_the_contract_allows_one() -> None:
    assert typed_arguments(["(-0-2.5j)"], [[1]], takes_complex=True) == [-2.5j]
    assert typed_arguments(["(-0-2.5j)"], [[1]]) == ["(-0-2.5j)"]


def test_infinity_among_the_inputs_is_a_number_in_the_tests() -> None:
    fields = {
        "task_id": "Mbpp/0", "prompt": '"""\nassert f(1, 2) == 1\n"""', "entry_point": "f", "base_input": [[1, 2]],
        "plus_input": [[-float("inf"), 3.5]], "contract": "\n  assert isinstance(a, (int, float))\n",
    }  # fmt: skip
    test = extended_test(Row("a row", fields), "def f(a, b):\n    return min(a, b)\n", "", "assert f(1, 2) == 1")
    with UnitTester(workers=1) as tester:
        right, wrong = (
            tester.grade([replace(test, code=f"def f(a, b):\n    return {body}\n")])[0]
            for body in ("min(a, b)", "a if a > -9e99 else b")
        )
    assert right.correct and not wrong.correct


def test_arguments_that_are_no_literals_are_no_examples() -> None:
    assert example_arguments("assert f(14 * 14)\nassert f(g(1))\nassert f(2) == g(3)", "f") == [[2]]


@pytest.mark.parametrize(
    ("assertions", "expected"),
    [
        ("assert f(1) == 2", "value"),
        ("assert set(f([1])) == set([1])\nassert f([2]) == (2,)", "set"),
        ("assert f('a')\nassert not f('b')", "truth"),
        ("assert f('a')\nassert f('b') == False", "value"),
        ("import math\nassert math.isclose(f(1), 0.5, rel_tol=0.001)", "value"),
    ],
)
def test_values_are_compared_as_the_assertions_compare_them(assertions: str, expected: str) -> None:
    assert comparison(assertions, "f") == expected


def test_the_stand_in_for_numpy_agrees_with_numpy_on_plain_numbers() -> None:
    import numpy

    space: dict[str, object] = {}
    exec(NUMPY_STAND_IN, space)
    stand_in = space["np"]
    cases = [(1.0, 1.0 + 1e-9), (1.0, 1.1), ([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], [1.0, 2.5])]
    cases += [(float("inf"), float("inf")), (1e9, 1e9 + 1), ([[1.0], [2.0]], [[1.0], [2.0]]), (0, 0.0)]
    for a, b in cases:
        assert stand_in.allclose(a, b) == numpy.allclose(a, b), (a, b)  # type: ignore[attr-defined]


def test_a_list_is_close_only_to_a_list_of_its_own_length() -> None:
    space: dict[str, object] = {}
    exec(NUMPY_STAND_IN, space)
    close = space["np"].allclose  # type: ignore[attr-defined]
    pairs = [([], [1.0]), ([1.0], []), ([1.0], 1.0), (1.0, [1.0]), ([1.0, 1.0], [1.0]), ((1.0,), [1.0]), ([], 0.0)]
    pairs += [([], ()), (True, 1.5), ("a", 1.0), (None, 1.0), ([None], [1.0]), (float("nan"), float("nan"))]
    assert [pair for pair in pairs if close(*pair, rtol=1e-07, atol=1e-6)] == []
    assert close(True, 1) and close([1.0, 2], [1, 2.0000001]) and not close(1, float("inf"))


# Items of our own making, in each published form -----------------------------------------------------------------

PAIRS = {
    "task_id": "Mbpp/9001",
    "prompt": '"""\nWrite a function for the common elements.\nassert set(common((1, 2), (2, 3))) == set((2,))\n"""\n',
    "entry_point": "common",
    "canonical_solution": "def common(a, b):\n    return tuple(set(a) & set(b))\n",
    "base_input": [[[1, 2], [2, 3]]],
    "plus_input": [[["a", "b", "c", "d"], ["d", "c", "b", "a"]], [[], []]],
    "atol": 0,
    "contract": "",
    "assertion": "assert set(common((1, 2), (2, 3))) == set((2,))\n",
}
THIRD = {
    "task_id": "Mbpp/9002",
    "prompt": '"""\nWrite a function for a third.\nassert third(3) == 1\n"""\n',
    "entry_point": "third",
    "canonical_solution": "def third(x):\n    return x / 3 if x < 9 else third(x - 9) + 3\n",
    "base_input": [[3]],
    "plus_input": [[1], [10], [100]],
    "atol": 0,
    "contract": "",
    "assertion": "assert math.isclose(third(3), 1)\n",
}
FROM_THE_HUB = {
    "task_id": 9003,
    "code": "def helper(x):\n    return x\n\ndef double(x):\n    return 2 * helper(x)\n",
    "prompt": "Write a function to double a number.",
    "test_imports": [],
    "test_list": ["assert double(2) == 4", "assert double(0.1) == 0.2"],
    "test": (
        "import numpy as np\n\ndef close(a, b):\n    assert not isinstance(a, np.ndarray)\n"
        "    assert a == b or np.allclose(a, b, rtol=1e-07, atol=1e-6)\n\n"
        "for given, expected in zip([[2], [0.1], [[1]]], [4, 0.2, [1, 1]]):\n    close(double(*given), expected)\n"
    ),
}
HUMAN_EVAL = {
    "task_id": "HumanEval/9002",
    "prompt": 'def twice(x):\n    return [x, x]\n\n\ndef total(xs):\n    """The sum."""\n',
    "entry_point": "total",
    "canonical_solution": "    return sum(xs)\n",
    "test": "import numpy as np\n\ndef check(candidate):\n    assert np.allclose(candidate(twice(4)), 8)\n",
}
EVAL_PLUS = {
    "task_id": "HumanEval/9001",
    "prompt": (
        "from typing import List\n\n\ndef twice(x):\n    return [x, x]\n\n\n"
        'def largest(xs: List[int]) -> int:\n    """The largest."""\n'
    ),
    "entry_point": "largest",
    "canonical_solution": "    return max(xs)\n",
    "base_input": [[[1, 3, 2]]],
    "plus_input": [[[-1, -3]], [[7]]],
    "atol": 0,
    "assertion": "assert largest(twice(5)) == 5\n",
}


def load(suite: str, row: dict[str, object], folder: Path) -> FunctionQuestion:
    path = folder / "items.jsonl"
    path.write_text(json.dumps(row) + "\n")
    question = load_questions(suite, path)[0]
    assert isinstance(question, FunctionQuestion)
    return question


@pytest.mark.parametrize(
    ("suite", "row", "right", "wrong"),
    [
        (
            "mbpp+",
            PAIRS,
            ["def common(a, b):\n    return [x for x in a if x in b]"],
            ["def common(a, b):\n    return (2,)", "def common(a, b):\n    return None"],
        ),
        (
            "mbpp+",
            THIRD,
            ["def third(x):\n    return x * (1 / 3)"],
            ["def third(x):\n    return x / 3 if x < 50 else 0.0", "def third(x):\n    return 1"],
        ),
        (
            "mbpp+",
            FROM_THE_HUB,
            ["def double(x):\n    return x + x", "```python\ndef double(x):\n    return x + x\n```"],
            ["def double(x):\n    return 4", "double = None", "def double(x): retur"],
        ),
        (
            "humaneval+",
            EVAL_PLUS,
            ["    return sorted(xs)[-1]\n", "def largest(xs: List[int]) -> int:\n    return max(xs)"],
            [
                "    return 3\n",
                "    return max(abs(x) for x in xs)\n",
                "    return max(xs) if xs != [5, 5] else 0\n",
                "def other(xs):\n    return max(xs)",
            ],
        ),
        ("humaneval", HUMAN_EVAL, ["    return xs[0] + xs[1]\n"], ["    return 9\n", "    return None\n"]),
    ],
)
def test_right_programs_pass_and_wrong_ones_do_not(
    judge: Judge, suite: str, row: dict[str, object], right: list[str], wrong: list[str], tmp_path: Path
) -> None:
    question = load(suite, row, tmp_path)
    grades = judge.grade([(question, answer) for answer in [question.gold, *right, *wrong]])
    assert [grade.correct for grade in grades] == [True] * (1 + len(right)) + [False] * len(wrong)
    assert not any(grade.lost for grade in grades)


def test_an_item_of_mbpp_shows_its_tests_and_has_the_same_id_in_both_forms(tmp_path: Path) -> None:
    question = load("mbpp+", FROM_THE_HUB, tmp_path)
    assert (question.id, question.test.entry) == ("Mbpp/9003", "double")
    assert question.text == f"{FROM_THE_HUB['prompt']}\nassert double(2) == 4\nassert double(0.1) == 0.2"
    named = {**FROM_THE_HUB, "task_id": "Mbpp/9003", "test_list": None, "entry_point": "helper"}
    assert (load("mbpp+", named, tmp_path).id, load("mbpp+", named, tmp_path).test.entry) == ("Mbpp/9003", "helper")


# The published inputs --------------------------------------------------------------------------------------------

WITHOUT_TYPES = {
    "Mbpp/301": "its dictionaries have numbers for keys, which JSON cannot write",
    "Mbpp/87": "its assertions have other arguments than its inputs",
    "Mbpp/737": "its assertions stand in another order than its inputs",
    "Mbpp/781": "the same",
    "Mbpp/787": "the same",
    "Mbpp/803": "the same, and two are products",
}
"""Items of MBPP+ whose inputs are not those of its assertions, and why."""


def test_the_inputs_of_mbpp_plus_become_the_arguments_of_its_assertions() -> None:
    different = []
    for item in read_lines(benchmark_file("mbpp+")):
        shown = example_arguments(str(item["assertion"]), str(item["entry_point"]))
        inputs = [typed_arguments(given, shown) for given in item["base_input"]]  # type: ignore[attr-defined]
        if repr(inputs) != repr(shown):
            different.append(item["task_id"])
    assert set(different) == set(WITHOUT_TYPES)
