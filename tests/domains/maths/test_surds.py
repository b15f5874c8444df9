"""Roots: the truth of a statement that has one is exact, and its own statement or any equal form is right."""

import re
from dataclasses import replace
from random import Random

import mpmath
import pytest
from test_maths_solver import TRUTHS

from redqueen.domains.maths.answers import grade_number
from redqueen.domains.maths.language import parse, write
from redqueen.domains.maths.solver import solve
from redqueen.domains.registry import grade
from redqueen.records import Task
from redqueen_sandbox import Limits, Sandbox
from redqueen_sandbox.programs import Rules

DIGITS = 60


def task(gold: str) -> Task:
    return Task("t", "T1", "S1", "maths_formal", "1 + 1", ("",), (gold,))


def wrong_ones(cases: list[tuple[str, str]], verifier: Sandbox) -> list[tuple[str, str]]:
    """Return the (gold, answer) that are not graded right."""
    grades = grade([(task(gold), answer) for gold, answer in cases], verifier)
    return [case for case, one in zip(cases, grades, strict=True) if not one.correct]


def value_of(text: str) -> mpmath.mpf:
    """Return the value of an expression of ours of numbers, signs and roots, to ``DIGITS`` digits."""
    assert re.fullmatch(r"(?:sqrt|[-+*/^() ]|[0-9]+)+", text), text
    python = re.sub(r"([0-9]+)", r"mpf('\1')", text.replace("^", "**"))
    return eval(python, {"mpf": mpmath.mpf, "sqrt": mpmath.sqrt})  # a text of this file's own


def statements_with_roots(rng: Random, number: int) -> list[str]:
    found = ["90 + sqrt(11)", "33 + sqrt(27)", "sqrt(6)/8 - 10", "sqrt(2) + sqrt(3)", "2^(1/3) + 4^(1/3)"]
    while len(found) < number:
        a, b, c, d = (rng.randint(1, rng.choice((20, 99, 999))) for _ in range(4))
        found.append(rng.choice((f"{a} + {b}*sqrt({c})", f"sqrt({a})/{b} - {c}", f"sqrt({a}) + sqrt({b})",
                                 f"{a}*sqrt({b}) - {c}*sqrt({d})", f"1/(sqrt({a}) + {b})")))  # fmt: skip
    return found


def test_the_truth_of_a_statement_with_roots_is_its_value_to_sixty_digits() -> None:
    with mpmath.workdps(DIGITS):
        for text in statements_with_roots(Random(11), 150):
            verdict, truth = solve(text)
            assert verdict == "ok", (text, truth)
            assert abs(value_of(truth) - value_of(text)) <= mpmath.mpf(10) ** (8 - DIGITS), (text, truth)


def test_a_statement_with_roots_states_its_own_truth(verifier: Sandbox) -> None:
    cases = [(solve(text)[1], write(parse(text))) for text in statements_with_roots(Random(12), 40)]
    assert wrong_ones([case for case in cases if "sqrt" in case[0]], verifier) == []


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("1/(2^(1/3) - 1) - 2^(1/3) - 4^(1/3)", "1"),
        ("sqrt(2) - (sqrt(2) + 1/999999999999^3)", f"-1/{999999999999**3}"),
        ("(sqrt(2) + sqrt(3))^2 - 2*sqrt(6)", "5"),
        ("1 where sqrt(2) + 1/999999999999^9 > sqrt(2)", "1"),
        ("1 where sqrt(2)*sqrt(3) = sqrt(6), (sqrt(2) + sqrt(3))^2 = 5 + 2*sqrt(6)", "1"),
        ("x where x^2 = 3 + 2*x, x > sqrt(8)", "3"),
        ("x where x^2 + y^2 = 5, x*y = 1, x > y, y > 0", "sqrt(3)/2 + sqrt(7)/2"),
    ],
)
def test_whether_a_difference_is_zero_is_decided_exactly(text: str, truth: str) -> None:
    assert solve(text) == ("ok", truth)


def test_a_number_that_lies_very_near_the_truth_is_wrong(verifier: Sandbox) -> None:
    near = ["sqrt(2) + 1/999999999999^3", "sqrt(2) + 10^(-20)", "sqrt(2)*(1 - 10^(-18))", "886731088897/627013566048"]
    assert wrong_ones([("sqrt(2)", answer) for answer in near], verifier) == [("sqrt(2)", answer) for answer in near]


def rearranged(gold: str) -> list[str]:
    """Return other writings of a sum, a difference or a product."""
    match parse(gold)[1]:
        case ("+", a, b):
            return [f"{write(b)} + {write(a)}", f"({gold})*1"]
        case ("-", a, b):
            return [f"-({write(b)}) + {write(a)}", f"({gold})*1"]
        case ("*", a, b):
            return [f"({write(b)})*({write(a)})", f"2*({gold})/2"]
    return [f"0 + {gold}", f"({gold})*1"]


EQUATIONS_WITH_ROOTS = [
    *(text for text, truth in TRUTHS.items() if "sqrt" in truth or "^" in truth),
    "x where x^2 - 6*x + 7 = 0, x > 3", "x where 3*x^2 - x = 5, x < 0", "x + y where x^2 = 2, y^2 = 3, x > 0, y > 0",
    "x where x^4 - 10*x^2 + 1 = 0, x > 3", "x where x^4 - 4*x^2 + 2 = 0, x > 1", "x where x^3 + 3*x = 2",
    "x where x^4 = 5, x > 0", "x where x^3 = 5/4", "x where x^2 + y^2 = 5, x*y = 1, x > y, y > 0",
    "x where x^4 - 2*x^2 = 1, x > 0", "sqrt(2) + sqrt(5) + 1", "x where x^3 - 3*x^2 + 3*x = 3",
    "x where x^6 - 6*x^3 + 7 = 0, x > 3/2",
]  # fmt: skip


def test_a_truth_with_roots_is_right_in_another_order_too_or_there_is_no_task(verifier: Sandbox) -> None:
    golds = {text: solve(text) for text in EQUATIONS_WITH_ROOTS}
    assert {verdict for verdict, _ in golds.values()} <= {"ok", "not-closed", "too-large"}
    assert sum(verdict == "ok" for verdict, _ in golds.values()) > 12
    cases = [(gold, answer) for verdict, gold in golds.values() if verdict == "ok" for answer in rearranged(gold)]
    assert wrong_ones(cases, verifier) == []


def test_a_root_of_a_root_is_a_form_of_the_sum_that_it_is(verifier: Sandbox) -> None:
    cases = [("sqrt(2) + sqrt(3)", "sqrt(5 + 2*sqrt(6))"), ("2^(1/4)", "sqrt(sqrt(2))")]
    assert solve("x where x^4 - 10*x^2 + 1 = 0, x > 3") == ("ok", "sqrt(2) + sqrt(3)")
    assert wrong_ones(cases, verifier) == []


def test_a_comparison_in_a_group_has_the_time_of_the_group() -> None:
    limits = Limits(cpu_ms=80, accept_cpu_ms=80)
    for given, asked in ((limits, 80), (replace(limits, cpu_ms=10, accept_cpu_ms=10), 50)):
        job = next(grade_number(task("sqrt(2)"), "(x+y+z+1)^{60}", Rules(given, 8, "")))
        assert job.cpu_ms == asked


def test_a_hard_comparison_has_more_time_than_a_program_of_a_few(verifier: Sandbox) -> None:
    case = ("19/15880 - sqrt(11)/174680", "1/(sqrt(176) + 836)")  # some 45 ms, so that half of the runs ran out at 55
    assert wrong_ones([case] * 12, verifier) == []


def test_slow_wrong_answers_take_no_time_from_a_slow_right_one() -> None:
    gold, right = task("sqrt(2) + sqrt(3)"), "\\sqrt{5+2\\sqrt{6}}"
    slow = [f"\\exp{{\\exp{{\\exp{{{i}}}}}}}+\\sqrt{{2}}" for i in range(100, 112)]
    with Sandbox(workers=2, limits=Limits(cpu_ms=200)) as verifier:
        grades = grade([(gold, text) for text in (*slow, right)], verifier)
    assert [one.verdict for one in grades] == ["timeout"] * len(slow) + ["ok"]
    assert grades[-1].correct
