"""A program that ignores its input, or only hands it back, is refused where that is asked for; others are not."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.config import VerifyConfig
from redqueen.domains.code import checking
from redqueen.domains.code.other_inputs import MAX_OTHERS, other_inputs
from redqueen.domains.registry import check
from redqueen.nouns import Candidate, Rejection, Task
from redqueen.verify import Verifier
from redqueen.verify.literals import canonical_args
from redqueen.verify.runs import Job, Run

STRICT = VerifyConfig(refuse_constant=True)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(1) as judge:
        yield judge


def judged(verifier: Verifier, body: str, given: str, kind: str = "code_i", terms: VerifyConfig = STRICT) -> str:
    names = "a, b" if given.count(",") == 1 and given[0].isalnum() else "a"
    code = f"def f({names}):\n    {body}\n"
    [verdict] = check([Candidate("c", "T1", "S1", kind, code, code, (given,))], verifier, terms)
    assert isinstance(verdict, Task | Rejection)
    return verdict.reason if isinstance(verdict, Rejection) else "ok"


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return 5", "3"),
        ("return [1, 2, 3]", "[1, 2, 3]"),
        ("return 10\n    return a", "10"),
        ("return 'a is {a}'", "'x'"),
        ("return 0 * a + 7", "2"),
        ("return 1 if a == a else 2", "{'k': [1]}"),
        ("return {2, 1}", "(1, 2)"),
        ("return [1]", "{1}"),
        ("return [1]", "{'a', (2, 'b')}"),
        ("return isinstance(a, int) and not isinstance(b, str)", "4, 5"),
        ("return 0 if a == 0 else f(a - 1)", "5"),
        ("while a != 0:\n        a -= 1\n    return a", "5"),
        ("a = max(a)\n    return 'done'", "[4]"),
        ("a = a['name']\n    return 'Hello'", "{'name': 'Bob'}"),
        ("a = int(a)\n    return 'ok'", "'12'"),
        ("assert a == 5\n    return 1", "5"),
        ("return 7 if a == 5 else object()", "5"),
        ("return 7 if a == 5 else 'a' * 10**6", "5"),
        ("return {1: 'one'}[a]", "1"),
        *[("return 7", value) for value in ("None", "()", "(None,)", "{}", "set()", "{None}", "[frozenset({1})]")],
        *[("return 7", value) for value in ("frozenset()", "frozenset({1})", "[]", "''", "9" * 4300)],
        ("return 7", "5, frozenset()"),
    ],
)
def test_a_program_that_ignores_its_input_is_refused(verifier: Verifier, body: str, given: str, kind: str) -> None:
    assert judged(verifier, body, given, kind) == "constant"
    assert judged(verifier, body, given, kind, VerifyConfig()) == "ok", "not unless it is asked for"


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_program_without_input_ignores_it(verifier: Verifier, kind: str) -> None:
    for terms, expected in ((STRICT, Rejection), (VerifyConfig(), Task)):
        [verdict] = check([Candidate("c", "T1", "S1", kind, "", "def f():\n    return 11", ("",))], verifier, terms)
        assert isinstance(verdict, expected)


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return a + 1", "3"),
        ("return max(a)", "{1, 2}"),
        ("return a * b", "0, 5"),
        ("return a == 3", "3"),
        ("return a[0]", "[1, 2]"),
        ("return 'a' in a", "'hello'"),
        ("return sorted(a)", "[3, 1, 2]"),
        ("return 10 // (a - 3 + 3)", "3"),
        ("return {1: 'one', 2: 'two'}[a]", "1"),
        ("return list(a.values())", "{'k': 1}"),
        ("return len(a)", "(4, 5, 6)"),
        ("return len(a)", "{4, 5, 6}"),
        ("return a == b", "3, 3"),
        ("return a == b", "3, 4"),
        ("return a and not b", "True, True"),
        ("assert a > 0\n    return a", "5"),
        ("return a", "None"),
    ],
)
def test_a_program_that_reads_its_input_is_valid(verifier: Verifier, body: str, given: str) -> None:
    assert judged(verifier, body, given) == "ok"


COPYLESS = VerifyConfig(refuse_copy=True)


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return a", "'x'"),
        ("return a[:2] + a[2:]", "'word'"),
        ("return list(a)", "[1, 2]"),
        ("return b", "4, 5"),
        ("return b + 0 * a", "4, 5"),
        ("return a.strip()", "'no spaces'"),
        ("return a", "{'k': [1]}"),
        ("assert a > 0\n    return a", "5"),
        ("a[0]\n    return a", "[4]"),
        ("int(a)\n    return a", "'12'"),
        *[("return a", value) for value in ("None", "()", "{}", "set()", "frozenset()")],
    ],
)
def test_a_program_that_hands_an_argument_back_is_refused(verifier: Verifier, body: str, given: str, kind: str) -> None:
    assert judged(verifier, body, given, kind, COPYLESS) == "copy"
    assert judged(verifier, body, given, kind) == "ok", "not unless it is asked for"


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return max(a, b)", "7, 5"),
        ("return sorted(a)", "[1, 2]"),
        ("return a.lower()", "'low'"),
        ("return a[::-1]", "'level'"),
        ("return [a]", "'x'"),
        ("return a[0]", "['x']"),
        ("return a * 1.0", "2"),
        ("return 5", "5"),
    ],
)
def test_a_program_that_makes_something_of_its_arguments_is_no_copy(verifier: Verifier, body: str, given: str) -> None:
    assert judged(verifier, body, given, terms=COPYLESS) == "ok"


def test_an_argument_by_name_may_be_what_is_handed_back(verifier: Verifier) -> None:
    code = "def f(text, key=None):\n    return key\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_o", code, code, ("1, key='x'",))], verifier, COPYLESS)
    assert isinstance(verdict, Rejection) and verdict.reason == "copy"


def test_a_judgement_that_was_lost_is_said_to_be_lost(verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(job: Job) -> Iterator[Job]:
        yield job
        return Run("infra", "the worker died")

    monkeypatch.setattr(checking, "run_once", dead)
    assert judged(verifier, "return 7", "5") == "infra"


values = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(values, min_size=1, max_size=3))
def test_other_inputs_are_canonical_and_unlike_the_given_one(arguments: list[object]) -> None:
    given = canonical_args(", ".join(map(repr, arguments)))
    others = other_inputs(given)
    assert 0 < len(others) <= MAX_OTHERS and given not in others and len(set(others)) == len(others)
    assert all(canonical_args(text) == text for text in others)


def test_arguments_by_name_keep_their_names() -> None:
    assert other_inputs("1, key='x'") == [
        "2, key='xa'", "9, key='Q'", "-4, key='x Z'",
        "2, key='x'", "1, key='xa'", "9, key='x'", "1, key='Q'", "-4, key='x'",
    ]  # fmt: skip
    assert other_inputs("") == []


def test_a_changed_value_is_what_a_program_for_the_given_one_mostly_takes() -> None:
    assert other_inputs("'12'") == ["'122'", "'2'", "'212'"]
    assert other_inputs("[4]") == ["[4, 4]", "[15]", "[-7]"]
    assert other_inputs("{'name': 'Bob'}")[:2] == ["{'name': 'Boba'}", "{'name': 'ob'}"]
    assert other_inputs("(1, 2)")[:2] == ["(2, 3)", "(2,)"]
    assert other_inputs("None") == ["1", "'a'", "(1,)"]
