"""One program for each verdict, and what a result carries."""

from collections.abc import Callable

import pytest

from redqueen_sandbox import Limits, Program, Result, Sandbox


@pytest.mark.parametrize(
    ("code", "given", "verdict", "detail"),
    [
        ("def f(x):\n    return x + 1", "3", "ok", ""),
        ("def f(x):\n    retur x", "3", "syntax", "SyntaxError"),
        ("return 1", "3", "syntax", "SyntaxError"),
        ("import socket\ndef f(x):\n    return 1", "3", "forbidden", "import of socket"),
        ("def f(x):\n    raise KeyError('x' * 10**6)", "3", "error", "KeyError"),
        ("def f(x):\n    raise SystemExit(0)", "3", "error", "SystemExit"),
        ("def f(x):\n    return f(x)", "3", "error", "RecursionError"),
        ("def f(x, y):\n    return x", "3", "error", "TypeError"),
        ("def g(x):\n    return x", "3", "error", "NameError"),
        ("1 / 0\ndef f(x):\n    return x", "3", "error", "ZeroDivisionError"),
        ("def f(x):\n    while True:\n        pass", "3", "timeout", "cpu"),
        ("def f(x):\n    return sum(range(10**13))", "3", "timeout", "cpu"),
        ("def f(x):\n    return len('a' * 10**10)", "3", "memory", "MemoryError"),
        ("def f(x):\n    return list(range(10**5))", "3", "too-large", "output"),
        ("def f(x):\n    return 10**5000", "3", "too-large", "output"),
        ("x = '" + "a" * 70_000 + "'", "3", "too-large", "source"),
        ("def f(x):\n    return x", "[i for i in range(9)]", "invalid-input", ""),
        ("def f(x):\n    return x", "lambda: 0", "invalid-input", ""),
        ("def f(x):\n    return x", "1)\nimport os\nprint(2", "invalid-input", ""),
        ("def f(x):\n    return f", "3", "invalid-output", "function"),
        ("def f(x):\n    return float('nan')", "3", "invalid-output", "float"),
        ("def f(x):\n    return ''.join(set('abcdefgh'))", "3", "nondeterministic", "hash seeds disagree"),
        ("def f(x):\n    return str(object())", "3", "nondeterministic", "hash seeds disagree"),
    ],
)
def test_each_program_gets_its_verdict_and_its_detail(
    code: str, given: str, verdict: str, detail: str, run_one: Callable[..., Result]
) -> None:
    result = run_one(code, given)
    assert (result.verdict, result.detail) == (verdict, detail)
    assert bool(result.outputs) == (verdict == "ok")


def test_results_come_in_the_order_of_the_programs_and_carry_the_protection(verifier: Sandbox) -> None:
    programs = [Program(str(i), f"def f(x):\n    return x * {i}", ("1", "2")) for i in range(40)]
    programs[7] = Program("7", "def f(x):\n    while True: pass", ("1",))
    results = verifier.run(programs)
    assert [result.id for result in results] == [str(i) for i in range(40)]
    assert [result.outputs for result in results] == [(str(i), str(2 * i)) if i != 7 else () for i in range(40)]
    assert {result.protection for result in results} == {verifier.protection}


def test_every_input_gets_a_fresh_namespace(verifier: Sandbox) -> None:
    code = "seen = []\ndef f(x, acc=[]):\n    seen.append(x)\n    acc.append(x)\n    return seen, acc"
    result = verifier.run([Program("a", code, ("3", "4", "3"))])[0]
    assert result.outputs == ("([3], [3])", "([4], [4])", "([3], [3])")


def test_nothing_of_one_program_is_there_for_the_next(verifier: Sandbox) -> None:
    writer = "import calendar\ndef f(x):\n    calendar.setfirstweekday(3)\n    return 1"
    reader = "import calendar\ndef f(x):\n    return calendar.firstweekday() == 3"
    results = verifier.run([Program("w", writer, ("1",)), Program("r", reader, ("1",))] * 3)
    assert [result.outputs for result in results] == [("1",), ("False",)] * 3


def test_outputs_are_never_cut(run_one: Callable[..., Result]) -> None:
    assert run_one("def f(x):\n    return 'a' * 30_000").outputs == ("'" + "a" * 30_000 + "'",)
    assert run_one("def f(x):\n    return 10**4000").outputs == (str(10**4000),)


def test_a_program_gets_a_thousand_frames_for_itself(run_one: Callable[..., Result]) -> None:
    code = "def g(n):\n    return 0 if n == 0 else 1 + g(n - 1)\ndef f(x):\n    return g(x)"
    assert run_one(code, "990").outputs == ("990",)
    assert run_one(code, "1010").detail == "RecursionError"


def test_the_cpu_limit_is_kept_and_can_be_set() -> None:
    busy = "def f(x):\n    n = 0\n    while n < 10**9:\n        n += 1\n    return n"
    with Sandbox(workers=1, limits=Limits(cpu_ms=40)) as short:
        result = short.run([Program("a", busy, ("1",))])[0]
    assert result.verdict == "timeout"
    assert 30 < result.cpu_ms < 120


def test_infinities_are_a_result_but_no_task(verifier: Sandbox, run_one: Callable[..., Result]) -> None:
    assert run_one("def f(x):\n    return [float('inf'), -0.0]").outputs == ("[inf, -0.0]",)


def test_constructor_calls_that_stand_for_literals_are_inputs(run_one: Callable[..., Result]) -> None:
    for given, expected in [
        ("dict(a=1)", "{'a': 1}"),
        ("list((1, 2))", "[1, 2]"),
        ("'a b'.split()", "['a', 'b']"),
        ("'a' + 'b'", "'ab'"),
        ("'-'.join(['a'] * 3)", "'a-a-a'"),
        ("[dict(), {1: set()}]", "[{}, {1: set()}]"),
    ]:
        assert run_one("def f(x):\n    return x", given).outputs == (expected,)
    assert run_one("def f(x):\n    return list(x)", "range(2, 4)").outputs == ("[2, 3]",)


@pytest.mark.parametrize(
    "given",
    [
        "open('x')", "print(1)", "list(range(10**9))", "list(range(1000000000))", "[0] * 10**9", "[0] * 1000000000",
        "'a' * 10**9", "2 ** 99", "inf", "nan", "float('nan')", "f(1)", "x", "(lambda: 1)()", "{}.__class__",
        "1 if 1 else 2",
        "f'{1}'", "*[1]", "**{}", "(yield)", "''.format(1)", "'a'.ljust(999999999)", "1e999", "dict(**{'a': 1})",
        "...",
        "[" * 3000, "-" * 3000 + "1", "'\ud800", "'a\0b'", "[[]] * 3", "__import__('os')", "await x", "x := 1",
        "not 1",
    ],
)  # fmt: skip
def test_anything_else_that_computes_is_no_input(given: str, run_one: Callable[..., Result]) -> None:
    assert run_one("def f(x):\n    return 1", given).verdict == "invalid-input"


def test_more_hash_seeds_are_tried_where_sets_appear(verifier: Sandbox) -> None:
    # Two seeds agree by chance half the time on the order of two strings, eight once in a hundred times.
    programs = [Program(str(i), f"def f(x):\n    return list({{'left{i}', 'right{i}'}})", ("1",)) for i in range(24)]
    verdicts = [result.verdict for result in verifier.run(programs)]
    assert verdicts.count("nondeterministic") >= 22
