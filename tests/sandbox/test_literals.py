"""The judge's literal reader against Python's own."""

import ast
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.domains.code.values import value_of
from redqueen_sandbox.inside.encode import NotPlain, TooLarge, encode
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args, is_canonical

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=12)
)
hashables = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.tuples(inner) | st.just(()), max_leaves=4)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.sets(hashables, max_size=4)
        | st.frozensets(hashables, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
@settings(max_examples=60, deadline=None)
def test_what_a_child_encodes_is_canonical_for_the_judge_and_means_the_same_to_python(value: object) -> None:
    text = encode(value, 65_536)
    assert canonical(text) == text
    assert value_of(text) == value
    assert "frozenset" in text or ast.literal_eval(text) == value


@given(values)
@settings(max_examples=60, deadline=None)
def test_the_judge_reads_a_repr_as_the_child_encodes_the_value(value: object) -> None:
    assert canonical(repr(value)) == encode(value, 65_536)


@given(st.text(st.sampled_from("[](){},:'\"\\ \n1a0.e+-jx_#TrueNonset"), max_size=24))
@settings(max_examples=150, deadline=None)
def test_what_the_judge_reads_at_all_python_reads_to_the_same_value(text: str) -> None:
    try:
        read = canonical(text)
    except LiteralError:
        return
    value = ast.literal_eval(text.strip(" \t\r\n\f") if not text.lstrip(" \t\r\n\f").startswith("#") else f"({text})")
    assert encode(value, 65_536) == read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" [1,2 ,] ", "[1, 2]"),
        ("(1)", "1"),
        ("1,", "(1,)"),
        ("1, 2", "(1, 2)"),
        ("{'b': 1, 'a': 2}", "{'a': 2, 'b': 1}"),
        ("{2, 1, 2}", "{1, 2}"),
        ("{1: 'a', True: 'b'}", "{1: 'b'}"),
        ("{1, True, 1.0}", "{1}"),
        ("set()", "set()"),
        ("-0.0", "-0.0"),
        ("0x1F", "31"),
        ("1_000", "1000"),
        ("1e3", "1000.0"),
        ("'a' \"b\"", "'ab'"),
        (r"'\x41\n\u00e9'", r"'A\né'"),
        (r"r'\n'", r"'\\n'"),
        ("'''a'b'''", '"a\'b"'),
        ("42  # a remark", "42"),
        ("+(12)", "12"),
        ("-( (3) )", "-3"),
        ("- 0", "0"),
        ("frozenset()", "frozenset()"),
        ("frozenset([2, 1, True])", "frozenset({1, 2})"),
        ("{frozenset({2, 1}): 1, frozenset({1, 2}): 2}", "{frozenset({1, 2}): 2}"),
        ("'\\\r\na'", "'a'"),
        ("\n 1,\n", "(1,)"),
    ],
)
def test_equal_values_have_one_text(text: str, expected: str) -> None:
    assert canonical(text) == expected


def test_values_of_different_types_have_different_texts() -> None:
    assert len({canonical(text) for text in ("1", "1.0", "True", "'1'", "[1]", "(1,)", "{1}")}) == 7


@pytest.mark.parametrize(
    "text",
    [
        "", "0) or (True", "1 2", "[1 2]", "[1,,2]", "[,]", "{,}", "{1: 2, 3}", "{1, 2: 3}", "{[1]}", "{(1, [2]): 3}",
        "0777", "1abc", "--1", "+True", "1 + 1", "2j", "nan", "inf", "1e999", "-1e999", "b'x'", "f'{1}'", "x", "f(1)",
        "dict()", "lambda: 0", "[i for i in range(9)]", "'a", "'a\nb'", "...", "print(1)", "1 if True else 2",
        r"'\xZ'",
        "'''abc'", '"""abc"', "'''abc''", "''''", "0x" + "f" * 3600, "0b" + "1" * 14_286, "1,\n2", "'a'\n'b'",
        "'\r'", "'\ud800'",
        "\uff15", "\u0665", "\u00a01", "\ufeff1", "1\u2028", "+-1", "-(1,)", "+(True)", "-(-1)", "frozenset((1))",
        "frozenset({1: 2})",
        "frozenset({[]})", "frozenset(1)", "frozenset({1}, {2})", "set({1})", "set([])", "...", "[1][0]", "(1)(2)",
        "[" * 100 + "]" * 100 + ",",
        "[" * 5000, "(" * 101 + ")" * 101, "9" * 4301, "'" + "a" * 70_000 + "'",
    ],
)  # fmt: skip
def test_what_is_no_plain_literal_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        canonical(text)


def test_only_the_wide_reader_knows_bytes_and_infinities_and_none_knows_nan() -> None:
    assert canonical("[b'x', inf, -inf]", wide=True) == "[b'x', inf, -inf]"
    with pytest.raises(LiteralError):
        canonical("nan", wide=True)
    with pytest.raises(LiteralError):
        canonical_args("inf", wide=True)


def test_argument_lists_keep_the_order_of_entries_and_know_keywords() -> None:
    assert canonical_args("1, {'b': 1, 'a': 2},") == "1, {'b': 1, 'a': 2}"
    assert canonical_args("") == ""
    assert canonical_args("x=1, y = [2]") == "x=1, y=[2]"
    assert canonical_args("gr\u00f6\u00dfe=1, \ufb01=2") == "gr\u00f6\u00dfe=1, fi=2"  # names as Python spells them


@pytest.mark.parametrize(
    "text",
    ["(y := 3)", "*[1]", "**{}", "x=1, 2", "x=1, x=2", "True=1", "1)\nimport os\nprint(2", "1) or f(2", ",", "x==1"],
)
def test_what_is_no_argument_list_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        canonical_args(text)


def test_the_time_to_read_grows_with_the_text_and_no_faster() -> None:
    # Texts made to hurt: colliding hashes, long escapes, deep nesting. A tenth of the bound each, well under a second.
    hurtful = [
        "{" + ", ".join(str(i * (2**61 - 1)) for i in range(300)) + "}",
        "'" + "\\x41" * 1500 + "'",
        "[" * 90 + ", ".join(["1"] * 2000) + "]" * 90,
        "'" + "\\'" * 3000,
        "{" + "(" * 90 + "1" + ",)" * 90 + ": 1}",
    ]
    start_s = time.process_time()
    for text in hurtful:
        try:
            canonical(text)
        except LiteralError:
            continue
    assert time.process_time() - start_s < 1.0


def test_the_encoder_refuses_what_only_looks_like_a_plain_value() -> None:
    class Sly(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    holds_itself: list[object] = []
    holds_itself.append(holds_itself)
    for value in (
        Sly(1),
        [Sly(1)],
        {Sly(1): 2},
        math.nan,
        1j,
        range(3),
        holds_itself,
        ...,
        int,
        object(),
    ):
        with pytest.raises(NotPlain):
            encode(value, 65_536)


def test_the_encoder_counts_shared_structure_as_often_as_it_appears() -> None:
    shared: list[object] = ["lol"]
    for _ in range(40):
        shared = [shared, shared]
    for value in (shared, list(range(10**6)), 10**5000, "x" * 70_000):
        with pytest.raises(TooLarge):
            encode(value, 65_536)


def test_a_text_out_of_order_is_not_canonical() -> None:
    assert is_canonical("{1, 2}")
    assert not is_canonical("{2, 1}")
    assert not is_canonical("__import__('os')")
