"""Statements are read by our own parser: one form for each, a reason for what is none, and never more than that."""

from random import Random

import pytest

from redqueen.domains.maths.language import MAX_CHARS, StatementError, free_names, normal_form, parse, write

STATEMENTS = (
    "3*(17 - 5) % 7", "x where 2*x + y = 7, x - y = -2", "x where x^2 = 9, x > 0", "x where 3*x % 7 = 5, x in 0..6",
    "sum(k in 1..10, k^2)", "prod(k in 2..5, k + 1)", "count(j in 1..6, k in 1..6, j + k = 7)", "2^(-3) - (4 - 5)",
    "count(k in 1..50, prime(k), k % 4 = 1)", "a(8) where a(1) = 1, a(2) = 1, a(n) = a(n - 1) + a(n - 2)",
    "(2^3)^2/(4*5)", "-(x + 1)^2 where 0 <= x < 1, 2*x = 1", "gcd(12, 18, 30) + sqrt(2.5)", "2*(3 % 4) - 6/3/2",
)  # fmt: skip


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_is_written_as_it_was_read(text: str) -> None:
    assert write(parse(text)) == text


def test_other_spellings_of_signs_are_read_too() -> None:
    assert write(parse("x  where x**2==9,x≥0")) == "x where x^2 = 9, x >= 0"


def test_signs_bind_as_usual() -> None:
    assert parse("1 + 2*3^2")[1] == ("+", ("num", "1"), ("*", ("num", "2"), ("^", ("num", "3"), ("num", "2"))))
    assert parse("-2^2")[1] == ("neg", ("^", ("num", "2"), ("num", "2")))
    assert parse("2^3^2") == parse("2^(3^2)") != parse("(2^3)^2")
    assert parse("7*2 % 3")[1][0] == "%"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3x", "where the statement should end"),
        ("import", "no word of the language"),
        ("1 + ", "it ends where a number or a name should be"),
        ("(1 + 2", "the end where ')' should be"),
        ("x where x", "compares nothing"),
        ("sum(3)", "without a range"),
        ("max(3)", "max of 1 arguments"),
        ("1" * 13, "more than 12 digits"),
        ("(" * 30 + "1" + ")" * 30, "nested deeper"),
        ("1" * (MAX_CHARS + 1), "longer than"),
        ("x; y", "no sign of the language"),
        ("count(i in 1..2, j in 1..2, k in 1..2, m in 1..2, i = j)", "more than 3 ranges"),
    ],
)
def test_what_is_no_statement_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(StatementError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        parse(text)


def test_no_text_does_anything_but_parse_or_be_refused() -> None:
    rng = Random(0)
    pieces = [*"()+-*/%^,=<> xkan019.", "where ", "sum(", "count(", " in ", "..", "gcd(", "prime(", "\x00", "é", "__"]
    num_read = 0
    for _ in range(20_000):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 24)))
        try:
            statement = parse(text)
        except StatementError:
            continue
        num_read += 1
        assert parse(write(statement)) == statement
        assert normal_form(text) == normal_form(write(statement))
    assert num_read > 100


def test_the_normal_form_forgets_names_order_and_layout() -> None:
    same = ["x where 2*x + y = 7, x - y = 2", "b where b - c = 2, 2*b + c = 7", "x where 7 = y + x*2, x-y=2"]
    assert len({normal_form(text) for text in same}) == 1
    others = ["x where 2*x + y = 7, x - y = 3", "y where 2*x + y = 7, x - y = 2", "x where 2*x - y = 7, x - y = 2"]
    assert len({normal_form(text) for text in [same[0], *others]}) == 4
    assert normal_form("gcd(12, 18)") == normal_form("gcd(18, 12)")
    assert normal_form("no statement") == "no statement"


def test_free_names_are_those_that_no_range_binds() -> None:
    assert free_names(parse("sum(k in 1..n, k*x) where x = 2")) == {"n", "x"}
    assert free_names(parse("count(j in 1..4, k in 1..j, j = k)")) == set()
