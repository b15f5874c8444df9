"""The truth of statements against values worked out by hand, and against trying everything out."""

import itertools
import re
from fractions import Fraction
from random import Random

import pytest

from recipes.embedded_base.exercises import FAMILIES, LEVELS
from recipes.embedded_base.word_problems import draw_words
from redqueen.domains.maths.solver import solve

TRUTHS = {
    "3*(17 - 5) % 7": "1",
    "17 % (-5)": "-3",
    "0.1 + 0.2": "3/10",
    "2^(-3)": "1/8",
    "8^(1/3)": "2",
    "sqrt(50)/sqrt(2)": "5",
    "floor(sqrt(50)) + ceil(7/2)": "11",
    "floor(3 + sqrt(2)) + ceil(-sqrt(1/3))": "4",
    "abs(3 - 8) + max(1, 2.5, 1/3)": "15/2",
    "max(sqrt(8), 3) + abs(1 - sqrt(2))": "sqrt(2) + 2",
    "fact(5)/choose(5, 2)": "12",
    "divisors(24) + sigma(24) + phi(24)": "76",
    "digitsum(2^10)": "7",
    "gcd(84, 36) + lcm(4, 6)": "24",
    "sum(k in 1..100, k)": "5050",
    "prod(k in 1..5, k)": "120",
    "sum(i in 1..3, j in i..3, i*j)": "25",
    "count(k in 1..20, prime(k))": "8",
    "count(j in 1..6, k in 1..6, j + k = 7)": "6",
    "sum(k in 5..4, k)": "0",
    "x where 3*x + 5 = 20": "5",
    "x where 3*x = 5": "5/3",
    "x where 2*x + y = 7, x - y = 2": "3",
    "x*y where x + y = 5, x^2 + y^2 = 13": "6",
    "x where x^2 = 9, x > 0": "3",
    "x where x^2 = 2, x > 0": "sqrt(2)",
    "x where x^2 - x = 1, x > 0": "1/2 + sqrt(5)/2",
    "x where x^3 = 2": "2^(1/3)",
    "x where x^2 = 1, x^3 = 1": "1",
    "x where 1/x + 1/3 = 1/2": "6",
    "x where x + y + z = 6, x - y = 1, y - z = 1": "3",
    "x where x % 3 = 2, x % 5 = 1, x in 0..14": "11",
    "x where sqrt(x) = 3, x in 0..20": "9",
    "n where sum(k in 1..n, k) = 55, n in 1..20": "10",
    "x where x*y = 12, x + y = 7, x > y, x in 1..12, y in 1..12": "4",
    "y where x in 1..4, y in x..5, x*y = 20": "5",
    "sum(k in 1..3, k*x) where x = 2": "12",
    "a(8) where a(1) = 1, a(2) = 1, a(n) = a(n - 1) + a(n - 2)": "21",
    "a(5) where a(n) = n^2": "25",
    "a(4) where a(1) = 3, a(n) = b(n) + a(n - 1), b(n) = 2*n": "21",
    "a(100) where a(1) = 1, a(n) = (3*a(n - 1) + 1) % 10": "0",
}


@pytest.mark.parametrize(("statement", "truth"), TRUTHS.items())
def test_the_truth_is_what_one_works_out_by_hand(statement: str, truth: str) -> None:
    assert solve(statement) == ("ok", truth)


def test_every_exercise_has_the_answer_that_its_author_says_and_steps_that_end_with_it() -> None:
    rng = Random(7)
    for family, level, _ in itertools.product(FAMILIES, LEVELS, range(12)):
        exercise = family(rng, level)
        assert solve(exercise.code) == ("ok", exercise.answer), exercise


def test_every_word_problem_has_the_answer_that_its_author_says() -> None:
    rng = Random(8)
    for level, _ in itertools.product(LEVELS, range(40)):
        exercise = draw_words(rng, level, held_out=False)
        assert solve(exercise.code) == ("ok", exercise.answer), exercise


def test_searched_systems_agree_with_trying_everything() -> None:
    rng = Random(9)
    seen = set()
    for _ in range(60):
        a, b, c, m = (rng.randint(1, 9) for _ in range(4))
        code = f"x where {a}*x + {b}*y = {c + 9}, x + y < {m + 2}, x in 0..9, y in 0..9"
        found = {x for x, y in itertools.product(range(10), repeat=2) if a * x + b * y == c + 9 and x + y < m + 2}
        verdict, value = solve(code)
        expected = "contradiction" if not found else "ok" if len(found) == 1 else "not-unique"
        assert verdict == expected and (verdict != "ok" or {int(value)} == found)
        seen.add(verdict)
    assert seen == {"ok", "contradiction", "not-unique"}


def test_linear_systems_agree_with_cramers_rule() -> None:
    rng = Random(10)
    for _ in range(40):
        a, b, c, d, e, f = (rng.randint(-9, 9) for _ in range(6))
        below, above = a * e - b * d, c * e - b * f
        verdict, value = solve(f"x where {a}*x + {b}*y = {c}, {d}*x + {e}*y = {f}")
        if below:
            assert (verdict, Fraction(value)) == ("ok", Fraction(above, below))
        else:
            assert verdict in ("contradiction", "unbounded")


def test_the_same_answers_come_in_another_hash_order() -> None:
    assert [solve(text) for text in reversed(TRUTHS)] == [("ok", truth) for truth in reversed(TRUTHS.values())]


SEQUENCES = {
    "b(0 - 1) where b(n) = n^2, a(1) = 1, a(n) = b(n) + a(n - 1)": ("ok", "1"),
    "b(0) + a(2) where a(1) = 1, a(n) = b(n) + a(n - 1), b(n) = n^2": ("ok", "5"),
    "a(5) where b(n) = a(n - 1) + n, a(1) = 1, a(n) = b(n) + 1, b(1) = 3": ("contradiction", ""),
    "a(5) where b(n) = a(n - 1) + n, a(1) = 1, a(n) = b(n) + 1": ("ok", "19"),
    "a(9) where a(n) = n - b(n), b(n) = n, b(7) = 7, a(8) = 0": ("ok", "0"),
    "a(3) where a(1) = 1, a(2) = b(2), a(n) = a(n - 1) + 1, b(n) = n": ("unbounded", ""),
    "a(4) where a(1) = 1, a(3) = 6, a(n) = a(n - 1) + b(n), b(n) = n": ("ok", "10"),
    "a(4) where a(1) = 1, a(3) = 5, a(n) = a(n - 1) + b(n), b(n) = n": ("contradiction", ""),
    "a(4) where a(1) = 1, a(n) = a(n - 1) + b(n), b(n) = c(n - 1), c(1) = 2, c(n) = 1": ("contradiction", ""),
    "b(1) where a(2) = 1, a(n) = a(n - 1) + b(n), b(3) = 3, b(n) = n": ("unbounded", ""),
}
"""Statements with several sequences, of which each part may need another."""


@pytest.mark.parametrize("text", [*SEQUENCES, *(text for text in TRUTHS if "a(n) =" in text)])
def test_the_order_of_the_conditions_of_sequences_does_not_matter(text: str) -> None:
    asked, _, listed = text.partition(" where ")
    orders = [", ".join(order) for order in itertools.permutations(re.split(r", (?=[a-z]\([0-9n])", listed))]
    found = {solve(f"{asked} where {order}") for order in orders[:: max(1, len(orders) // 120)]}
    assert len({verdict for verdict, _ in found}) == 1, found
    expected = SEQUENCES.get(text) or ("ok", TRUTHS[text])
    assert all((verdict, value if verdict == "ok" else "") == expected for verdict, value in found), found
