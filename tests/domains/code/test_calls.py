"""One call is one input, however its arguments are written down."""

from dataclasses import replace
from itertools import permutations

import pytest

from redqueen.domains.code.calls import distinct_calls, distinct_pairs
from redqueen.domains.registry import check as check_all
from redqueen.domains.registry import grade
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Sandbox

THREE = "def f(a, b=2, *, c=3):\n    return [a, b, c]\n"


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "1, 2", "a=1", "b=2, a=1", "1, c=3", "1, 2, c=3", "c=3, a=1", "a=0x1, b=+(2), c=3", "1, # one\n b=2"],
        [f"{x}, {y}, {z}" for x, y, z in permutations(("a=1", "b='a=b'", "c={1: 2, 3: 4}"))],
        ["{'x=1': 1, 'y': 2}", "{'y': 2, 'x=1': 1}", "a={'y': 2, 'x=1': 1}, b=2"],
        ["{1, 2}", "{2, 1, 2}", "a={1, 2}"],
        ["1, 2, d=4, e=5", "1, 2, e=5, d=4", "e=5, d=4, a=1"],  # not what it takes, but the same failure
    ],
)
def test_the_same_values_for_the_same_parameters_are_one_call(texts: list[str]) -> None:
    assert distinct_calls(THREE, texts) == texts[:1]


def test_other_values_and_other_types_are_other_calls() -> None:
    texts = ["1", "2", "1.0", "True", "'1'", "1, 3", "1, c=4", "b=1, a=2", "a=1, b=1", "[1]", "(1,)", "{1}"]
    assert distinct_calls(THREE, texts) == texts
    assert distinct_calls("def f(*a):\n    return a\n", ["1", "1, 2", "2, 1"]) == ["1", "1, 2", "2, 1"]
    assert distinct_calls("f = lambda a, b=2: a + b\n", ["1", "1, b=2", "b=3, a=1"]) == ["1", "b=3, a=1"]
    assert distinct_calls("def f(a, b=K):\n    return a + b\n", ["1", "1, 2"]) == ["1", "1, 2"]


@pytest.mark.parametrize("code", ["f = print", "def f(a, b:\n", "class f: pass", "", "0x" + "f" * 3600, "\ud800"])
def test_without_a_signature_the_order_of_names_still_does_not_count(code: str) -> None:
    assert distinct_calls(code, ["a=1, b=2", "b=2, a=1", "1, 2"]) == ["a=1, b=2", "1, 2"]


def test_one_call_in_nine_orders_of_its_names_is_no_induction_task(verifier: Sandbox) -> None:
    code = "def f(a, b, c, d):\n    return [a, b, c, d]\n"
    orders = [", ".join(order) for order in permutations(("a=1", "b=2", "c=3", "d=4"))][:9]
    several = (*orders, "5, 6, 7, 8")
    candidate = Candidate("p", "T", "S", "code_f", text="", code=code, inputs=several, message="m")
    refused = check_all([candidate], verifier)[0]
    assert isinstance(refused, Rejection) and (refused.reason, refused.detail[:2]) == ("invalid-input", "2 ")


def test_an_input_that_equals_another_in_python_tells_something_only_by_another_output() -> None:
    code = "def f(a):\n    return a\n"
    assert distinct_pairs(code, ["1", "1.0", "True", "a=1.0"], ["'x'"] * 4) == 1
    assert distinct_pairs(code, ["0", "-0.0", "False", "0.0"], ["0"] * 4) == 1
    assert distinct_pairs(code, ["[1, {2: True}]", "[1.0, {2.0: 1}]", "[True, {2: 1.0}]"], ["None"] * 3) == 1
    assert distinct_pairs(code, ["1", "1.0", "True"], ["1", "1.0", "True"]) == 3
    texts = ["1", "'1'", "'1.0'", '"True"', "1.5", "-1", "[1]", "(1,)", "{1}", "1e+16"]
    assert distinct_pairs(code, texts, ["0"] * len(texts)) == len(texts)


def test_a_parameter_that_the_program_never_reads_makes_no_other_call() -> None:
    texts = ["1, 2", "1, 3", "1, b=4", "2, 2"]
    for code in ("def f(a, b):\n    return a\n", "f = lambda a, b=g(): a\n", "def f(a, b):\n    return g(b=a)\n"):
        assert distinct_calls(code, texts) == ["1, 2", "2, 2"]
    read = [
        "def f(a, b):\n    return a + b\n",
        "def f(a, b):\n    return locals()\n",
        "@wrapped\ndef f(a, b):\n    return a\n",
        "def f(a, b):\n    return a\nf = wrapped(f)\n",
        "def f(a, b):\n    return lambda: a + b\n",
        "def f(a, b):\n    return f'{a}{b}'\n",
        "def f(a, *b):\n    return b\n",
    ]
    assert [distinct_calls(code, texts) for code in read] == [texts] * len(read)
    assert distinct_calls("def f(a):\n    return 0\n", ["1, 2", "1, 3"]) == ["1, 2", "1, 3"]  # too many: each fails


def test_shown_pairs_in_another_writing_are_no_hidden_ones(verifier: Sandbox) -> None:
    code = "def f(x):\n    return 'abcdefgh'[int(x)]\n"
    shown = ("1", "2", "3", "4", "5")
    again = Candidate("p", "T", "S", "code_f", "", code, (*shown, "1.0", "2.0", "True", "3.0", "0"), "m")
    honest = replace(again, inputs=(*shown, "6", "7", "0", "1.5", "2.5"))
    table = "def f(x):\n    return {1: 'b', 2: 'c', 3: 'd', 4: 'e', 5: 'f', 0: 'a'}[x]\n"
    refused, task = check_all([again, honest], verifier)
    assert isinstance(refused, Rejection) and (refused.reason, refused.detail[:2]) == ("invalid-input", "6 ")
    assert isinstance(task, Task)
    assert not grade([(task, table)], verifier)[0].correct
