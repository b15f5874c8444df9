"""Wrong programs fail: every way of comparing a value, against what only looks like the value."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from benchmark_data import benchmark_file
from wrong_programs import CONSTANTS, constant, mutants

from redqueen.domains.rows import Row
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.evalplus import extended_test
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import FunctionQuestion
from redqueen_sandbox import guard
from redqueen_sandbox.unit_tests import UnitTest, UnitTester


def item(
    entry: str, reference: str, base: list[object], plus: list[object], assertion: str, atol: float = 0
) -> UnitTest:
    fields = {"task_id": "x", "prompt": f'"""\n{assertion}\n"""', "entry_point": entry, "base_input": base}
    fields |= {"plus_input": plus, "atol": atol, "contract": ""}
    return extended_test(Row("a row", fields), reference, "", assertion)


WRONG = {
    "floats": (
        item("f", "def f(x):\n    return [v/3 for v in x]\n", [[[3]]], [[[1, 2]], [[]]], "assert f([3]) == [1.0]"),
        [
            "[v/3 for v in x][:1] if x else []",
            "[] if x==[1,2] else [v/3 for v in x]",
            "tuple(v/3 for v in x)",
            "[v/3+1e-3 for v in x]",
            "[[v/3 for v in x]]",
            "[float('nan')]*len(x) if x==[1,2] else [v/3 for v in x]",
            "[v/3 for v in x]+[0.0]*(x==[])",
            "[True]*len(x)",
            "{0:1.0}",
            "[v/3+0j+1e-3 for v in x]",
            "(v/3 for v in x)",
            "[float('inf')]*len(x) if x==[1,2] else [v/3 for v in x]",
            "None if x==[] else [v/3 for v in x]",
            "0.0 if x==[] else [v/3 for v in x]",
            "() if x==[] else [v/3 for v in x]",
            "'' if x==[] else [v/3 for v in x]",
        ],
    ),
    "bool": (
        item("f", "def f(x):\n    return x>0\n", [[1]], [[0], [-1], [2]], "assert f(1) == True"),
        [
            "print if x>0 else range(0)",
            "[1] if x>0 else []",
            "'a' if x>0 else ''",
            "object() if x>0 else None",
            "...",
            "lambda: 0",
            "x>0 and 2",
            "str(x>0)",
            "(x>0,)",
            "float('nan')",
            "re.match('a','a') if x>0 else None".replace("re.", "__import__('re')."),
        ],
    ),
    "truth": (
        item(
            "f",
            "import re\ndef f(x):\n    return re.match('a',x)\n",
            [["a"]],
            [["b"], ["ab"]],
            "assert f('a')\nassert not f('b')",
        ),
        [
            "print",
            "range(0)",
            "object()",
            "True",
            "None",
            "(i for i in x)",
            "type('E',(),{'__bool__':lambda s: x[0]=='a'})()",
            "float('nan')",
        ],
    ),
    "set": (
        item(
            "f",
            "def f(x):\n    return tuple(set(x))\n",
            [[[1, 2]]],
            [[[2, 2, 3]], [["a"]], [[]]],
            "assert set(f([1,2])) == set((1,2))",
        ),
        [
            "dict.fromkeys(x)",
            "''.join(map(str,x))",
            "(i for i in x)",
            "range(1,3)",
            "{i:i for i in x}.keys()",
            "[*x,0]",
            "x[:1]",
            "[[i] for i in x]",
            "type('S',(set,),{'__eq__':lambda a,b:True})()",
            "None",
            "bytes([1,2])",
            "frozenset([1])",
        ],
    ),
    "root": (
        item(
            "find_zero",
            "def poly(xs, x):\n    return sum(c * x**i for i, c in enumerate(xs))\n"
            "def find_zero(xs):\n    return -xs[0] / xs[1]\n",
            [[[1, 2]]],
            [[[4, 2]]],
            "assert abs(find_zero([1,2])+0.5)<1e-4",
            1e-4,
        ),
        [
            "0",
            "None",
            "True",
            "float('nan')",
            "float('inf')",
            "-xs[0]/xs[1]+1j",
            "'a'",
            "[0]",
            "-xs[0]/xs[1]+1",
            "type('N',(float,),{'__rmul__':lambda s,o:0,'__pow__':lambda s,o:0})(0)",
            "10**400",
            "1e308",
        ],
    ),
}
"""For each way of comparing: an item, and values that are wrong for it (``x`` or ``xs`` is the argument)."""

HONEST = {
    "floats": ["[v*(1/3) for v in x]", "list(map(lambda v: v/3, x))"],
    "bool": ["not x<=0", "int(x>0)"],
    "truth": [
        "__import__('re').match('a',x)",
        "x[0]=='a'",
        "x if x[0]=='a' else ''",
        "print if x[0]=='a' else range(0)",  # true and false, which is all that the test asks
        "[object()] if x[0]=='a' else None",
    ],
    "set": ["list(dict.fromkeys(x))", "set(x)", "frozenset(x)", "x*2"],
    "root": ["-xs[0]/xs[1]"],
}
"""Values that are right, written in another way."""


def program(test: UnitTest, value: str) -> UnitTest:
    name = "xs" if test.entry == "find_zero" else "x"
    return replace(test, code=f"def {test.entry}({name}):\n    return {value}\n")


@pytest.fixture(scope="module")
def tester() -> Iterator[UnitTester]:
    with UnitTester(workers=1) as opened:
        yield opened


@pytest.mark.parametrize("way", list(WRONG))
def test_what_is_no_equal_plain_value_fails_and_what_is_one_passes(way: str, tester: UnitTester) -> None:
    test, wrong = WRONG[way]
    grades = tester.grade([program(test, value) for value in wrong])
    honest = tester.grade([program(test, value) for value in HONEST[way]])
    assert [value for value, grade in zip(wrong, grades, strict=True) if grade.correct or grade.lost] == []
    assert [value for value, grade in zip(HONEST[way], honest, strict=True) if not grade.correct] == []


SLOW_ITEMS = {"Mbpp/255", "Mbpp/271", "Mbpp/392", "Mbpp/599", "Mbpp/603", "Mbpp/630"}
"""Items whose references compute for many seconds."""


def items_of(suite: str) -> list[FunctionQuestion]:
    found = [q for q in load_questions(suite, benchmark_file(suite)) if q.id not in SLOW_ITEMS]
    return [q for q in found if isinstance(q, FunctionQuestion)]


@pytest.mark.parametrize(
    ("suite", "every"),
    [
        ("humaneval", 40),
        ("mbpp+", 190),
        pytest.param("humaneval", 1, marks=pytest.mark.slow),
        pytest.param("mbpp+", 1, marks=pytest.mark.slow),
    ],
)
def test_no_constant_passes_any_item(suite: str, every: int, judge: Judge) -> None:
    guard.faults.clear()
    pairs = [(q, constant(q.test.entry, value)) for q in items_of(suite)[::every] for value in CONSTANTS.values()]
    grades = judge.grade(pairs)
    assert [pair for pair, grade in zip(pairs, grades, strict=True) if grade.correct or grade.lost] == []
    assert not guard.faults


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["humaneval", "mbpp+"])
def test_most_programs_with_one_thing_changed_fail(suite: str, judge: Judge) -> None:
    pairs = [(q, code) for q in items_of(suite) for code in list(mutants(q.stub + str(q.gold)))[:4]]
    grades = judge.grade(pairs)
    assert not any(grade.lost for grade in grades)
    assert sum(grade.correct for grade in grades) / len(grades) < 0.2
