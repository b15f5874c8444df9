"""A program that ignores its input, or only hands it back, is refused where that is asked for; others are not."""

import ast
import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.config import VerifyConfig
from redqueen.domains.code import checking
from redqueen.domains.code.checking import guess_chance, without_arguments
from redqueen.domains.code.other_inputs import MAX_BOLD, MAX_GENTLE, other_inputs, simple_inputs
from redqueen.domains.registry import answer_ms, check, grade
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Sandbox
from redqueen_sandbox.literals import canonical_args
from redqueen_sandbox.records import Limits
from redqueen_sandbox.runs import Job, Run
from redqueen_sandbox.zygotes import ZygoteSettings

STRICT = VerifyConfig(refuse_constant=True)


def judged(verifier: Sandbox, body: str, given: str, kind: str = "code_i", terms: VerifyConfig = STRICT) -> str:
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
        # a guard that only an odd input would meet
        ("if a < 0:\n        return 'Invalid input'\n    return 42", "5"),
        ("if len(a) < 2:\n        return []\n    return [1, 2, 3]", "[4, 5, 6]"),
        ("return 'ok' if all(isinstance(one, str) for one in a) else 'error'", "('a', 'b')"),
    ],
)
def test_a_program_that_ignores_its_input_is_refused(verifier: Sandbox, body: str, given: str, kind: str) -> None:
    assert judged(verifier, body, given, kind) == "constant"
    assert judged(verifier, body, given, kind, VerifyConfig()) == "ok", "not unless it is asked for"


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_program_without_input_ignores_it(verifier: Sandbox, kind: str) -> None:
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
        ("return max(a, key=a.get)", "{'x': 3, 'y': 7, 'z': 1}"),
        ("return len(a)", "(4, 5, 6)"),
        ("return len(a)", "{4, 5, 6}"),
        ("return a == b", "3, 3"),
        ("return a == b", "3, 4"),
        ("return a and not b", "True, True"),
        ("return a > 0", "5"),
        ("return any(one.startswith('a') for one in sorted(a))", "{'a', 'b'}"),
        ("return max(len(one) for one in a)", "{'apple', 'fig'}"),
        ("assert a > 0\n    return a", "5"),
        ("return a", "None"),
    ],
)
def test_a_program_that_reads_its_input_is_valid(verifier: Sandbox, body: str, given: str) -> None:
    assert judged(verifier, body, given) == "ok"


def test_a_judgement_that_was_lost_is_said_to_be_lost(verifier: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
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
    gentle, bold = other_inputs(given)
    others = [*gentle, *bold]
    assert 0 < len(gentle) <= MAX_GENTLE and len(bold) <= MAX_BOLD
    assert given not in others and len(set(others)) == len(others)
    assert all(canonical_args(text) == text for text in others)


def test_numbers_that_python_does_not_write_have_fewer_others() -> None:
    assert other_inputs("{" + "9" * 4300 + "}, 1") != other_inputs("")


def test_arguments_by_name_keep_their_names() -> None:
    gentle, bold = other_inputs("1, key='x'")
    assert gentle[:9] == [
        "2, key='xx'", "8, key='Q'", "3, key='XXa'",
        "2, key='x'", "1, key='xx'", "8, key='x'", "1, key='Q'", "3, key='x'", "1, key='XXa'",
    ]  # fmt: skip
    assert gentle[9:12] == ["3, key='xxx'", "3, key='xx'", "4, key='xxxx'"], "both once more, the other, and both"
    assert bold == ["-4, key='x Z'", "-4, key='x'"]
    assert other_inputs("") == ([], [])


@pytest.mark.parametrize("given", ["5, 7", "4, 9", "3, 5, 8"])
def test_a_sum_of_several_arguments_is_not_always_even_or_odd(given: str) -> None:
    sums = [str(sum(ast.literal_eval(f"({text})")) % 2) for text in [given, *other_inputs(given)[0]]]
    assert guess_chance(sums[0], sums[1:]) == 0.5, "of 5 and 7 nearly all sums were even, and it was 0"


@pytest.mark.parametrize("given", ["3, 6", "8, 15", "30, 1"])
def test_two_values_are_seen_where_one_of_them_is_rare(given: str) -> None:
    found = [str((a * b + a) % 2) for a, b in map(ast.literal_eval, [given, *other_inputs(given)[0]])]
    assert guess_chance(found[0], found[1:]) == 0.5, "more than three in four were 0, and a guess of it paid"


@pytest.mark.parametrize("given", ["[1, 2]", "[5, 5, 1, 2]", "{4, 9}", "(3, 1, 2)", "[2, 2, 2, 2, 2, 2, 2, 2]"])
def test_a_sum_of_members_is_not_always_even_or_odd(given: str) -> None:
    sums = [str(sum(ast.literal_eval(text)) % 2) for text in [given, *other_inputs(given)[0]]]
    assert guess_chance(sums[0], sums[1:]) == 0.5, "members only changed together"


def test_deeply_nested_sets_are_changed_in_linear_time() -> None:
    nested = functools.reduce(lambda inner, _: f"frozenset({{{inner}}})", range(40), "1")
    began = time.process_time()
    assert len(other_inputs(nested)[0]) == MAX_GENTLE
    assert time.process_time() - began < 5, "each level's members were written twice: 16 s at a depth of 18"


def test_a_gently_changed_value_is_what_a_program_for_the_given_one_mostly_takes() -> None:
    assert other_inputs("'12'")[0][:4] == ["'122'", "'2'", "'2112'", "'21'"]
    assert other_inputs("[4]")[0][:4] == ["[5]", "[11]", "[6, 4]", "[3]"]
    assert other_inputs("[4, 6]")[0][:4] == ["[5, 7]", "[6]", "[8, 6, 4]", "[3, 6]"]
    assert other_inputs("-5")[0][:4] == ["-6", "-12", "-7", "-4"]
    assert other_inputs("20")[0][:4] == ["21", "47", "62", "19"], "a large number is also doubled"
    assert other_inputs("{'name': 'Bob'}")[0][:4] == [
        "{'name': 'Bobb'}", "{'name': 'ob'}", "{'name': 'BObba'}", "{'name': 'oBb'}",
    ]  # fmt: skip
    assert other_inputs("(1, 2)")[0][:4] == ["(2, 3)", "(2,)", "(4, 3, 1)", "(2, 2)"]
    assert other_inputs("None")[0][:4] == ["1", "'a'", "2.5", "2"]


@pytest.mark.parametrize("brackets", ["[]", "()", "{:}"])
def test_other_inputs_of_what_is_deep_or_long_are_found_in_no_time(brackets: str) -> None:
    opening, closing = {"[]": ("[", "]"), "()": ("(", ",)"), "{:}": ("{1: ", "}")}[brackets]
    deep = canonical_args(opening * 100 + "1" + closing * 100)
    long = canonical_args(", ".join([opening + "1" + closing] * 2000))
    began = time.process_time()
    assert other_inputs(deep)[0] and other_inputs(long)[0]
    assert time.process_time() - began < 10, "a hang, or work that grows with the square"


def test_other_inputs_of_a_set_do_not_depend_on_the_hash_seed() -> None:
    given = "{'a', 'b', 'c'}, frozenset({'d', 'e'})"
    command = f"from redqueen.domains.code.other_inputs import other_inputs; print(other_inputs({given!r}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("body", "given", "chance"),
    [
        ("return a > 3", "3", 0.5),
        ("return a % 2", "4", 0.5),
        ("return 'odd' if a % 2 else 'even'", "4", 0.5),
        ("return None if a % 2 else [True]", "4", 0.5),
        ("return 'the answer is ' + ('odd' if a % 2 else 'even')", "4", 0.5),
        ("return 12345678 if a % 2 else 87654321", "4", 0.5),
        ("return 'no' if a < 10**9 else 'yes'", "4", 0.5),
        ("return [617 * 2, 331 * 7, 911 * 3, 123 * 9][a * a // 7 % 4]", "4", 0.25),
        ("return ('a' * 41, 'b' * 41)[a * a // 7 % 2]", "4", 0.5),
        ("return (a, a % 2)", "4", 0.5),
        ("return {'x': 712, 'yes': 41}[a]", "'yes'", 0.5),
        ("return a * 7 if a < 400 else 1 // 0", "4", 0.0),
        ("return {'value': a, 'ok': len(a) % 2 == 0}", "[3, 1]", 0.5),
        ("return f'{a} is ' + ('long' if len(a) % 2 else 'short')", "'yes'", 0.5),
        ("return (a, a * 7)", "4", 0.0),
        ("return a if a < 2 else f(a - 1) + f(a - 2)", "10", 0.0),  # of twice as many it would need too much
        ("while 750 < a < 753:\n        pass\n    return a * 3", "750", 0.0),  # some other inputs kill it, not all
        ("while a != 750:\n        pass\n    return a * 3", "750", 0.5),
        ("return sum({'I': 1, 'V': 5, 'X': 10}[c] for c in a)", "'XVI'", 0.0),  # takes its own letters alone
        ("assert len(a) == 4\n    return a[::-1]", "'1234'", 0.0),
        ("return max(set(a), key=a.count) + a", "'hello'", 0.0),  # of others it depends on the hash seed
        ("return a + '!'", "'ab'", 0.0),
        ("return a.count('l') * 7", "'hello world'", 0.0),
        ("return a + 1", "4", 0.0),
        ("return min(a)", "[4, 2, 3]", 0.0),
        ("return a[::-1]", "'ab'", 0.0),
    ],
)
def test_a_task_says_with_what_chance_its_answer_is_guessed(
    verifier: Sandbox, body: str, given: str, chance: float
) -> None:
    code = f"def f(a):\n    {body}\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_o", code, code, (given,))], verifier, VerifyConfig())
    assert isinstance(verdict, Task) and verdict.chance == chance


@pytest.mark.parametrize(
    ("body", "given", "least", "most"),
    [
        ("return 7 if a % 4 else a", "501", 0.6, 0.8),  # any input does
        ("return 10 * 'yes' if len(a) % 2 else a", "'xyz'", 0.3, 0.7),
        # loops on what is like the given input hide nothing
        ("while a in (51, 48, 50, 52, 57):\n        pass\n    return 0 if a < 50 else a * 7", "49", 0.9, 1.0),
        ("return a.count('l') * 7", "'hello world'", 0, 0),  # similar ones do, but no student sees it
        ("return a + 1", "4", 0, 0),
    ],
)
def test_an_abduction_is_guessed_with_the_chance_that_a_simple_input_solves_it(
    verifier: Sandbox, body: str, given: str, least: float, most: float
) -> None:
    code = f"def f(a):\n    {body}\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_i", code, code, (given,))], verifier, VerifyConfig())
    assert isinstance(verdict, Task) and least <= verdict.chance <= most


def test_simple_inputs_have_the_types_of_the_given_one_and_nothing_else_of_it() -> None:
    assert simple_inputs("501")[:4] == ["0", "1", "7", "2"]
    assert simple_inputs("'xyz', [5]")[:2] == ["'', []", "'a', [1]"]
    assert simple_inputs("") == [""] and len(simple_inputs("{'a': 1}, key=(2.5, None)")) == MAX_GENTLE


def test_a_program_is_the_same_under_all_hash_seeds_for_other_inputs_too(verifier: Sandbox) -> None:
    code = "def f(x):\n    return x if x == 750 else hash(str(x))\n"
    plain = code.replace("hash(str(x))", "len(set(str(x)))")
    asked = [Candidate(name, "T1", "S1", "code_i", text, text, ("750",)) for name, text in (("a", code), ("b", plain))]
    refused, kept = check(asked, verifier, VerifyConfig())
    assert isinstance(refused, Rejection) and refused.reason == "nondeterministic"
    assert isinstance(kept, Task)


@pytest.mark.parametrize("hash_seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))])
def test_a_program_that_needs_too_much_under_some_hash_seeds_alone_is_refused_or_a_guess(hash_seed: int) -> None:
    code = "def f(x):\n    if x == 750:\n        return 5\n    while hash('a') % 2:\n        pass\n    return 3 * x\n"
    with Sandbox(workers=1, settings=ZygoteSettings(hash_seed=hash_seed)) as fixed:
        [verdict] = check([Candidate("c", "T1", "S1", "code_i", code, code, ("750",))], fixed, VerifyConfig())
    assert verdict.chance == 0.5 if isinstance(verdict, Task) else verdict.reason == "nondeterministic"


def test_what_a_slow_program_gives_for_other_inputs_does_not_depend_on_the_machine() -> None:
    code = "def f(n):\n    total = 0\n    for i in range(n):\n        total += i * i % 7\n    return total\n"
    found = []
    for workers in (1, 2, 1):
        with Sandbox(workers=workers) as fresh:
            found += check([Candidate("c", "T1", "S1", "code_o", code, code, ("100000",))], fresh, VerifyConfig())
    signatures = {task.signature for task in found if isinstance(task, Task)}
    assert len(found) == 3 and len(signatures) == 1 and "" not in signatures, "together they need more than one may"


def test_a_program_that_loops_on_all_other_inputs_is_run_a_few_times_for_them(verifier: Sandbox) -> None:
    code = "def f(x):\n    while x != 750:\n        x = x\n    return 3\n"
    before = verifier.num_jobs
    [verdict] = check([Candidate("c", "T1", "S1", "code_o", code, code, ("750",))], verifier, VerifyConfig())
    assert isinstance(verdict, Task) and verifier.num_jobs - before == 2 + checking.MAX_RUNS


def test_where_an_input_is_sought_the_processes_for_other_inputs_are_bounded(
    verifier: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def f(x):\n    return x * len({x, 'a'}) + x % 7\n"
    sought = Candidate("c", "T1", "S1", "code_i", code, code, ("750",))
    assert isinstance(check([sought], verifier, VerifyConfig())[0], Task)
    monkeypatch.setattr(checking, "MAX_RUNS", 1)  # the second seed alone has a process for each of fifteen inputs
    [verdict] = check([sought], verifier, VerifyConfig())
    assert isinstance(verdict, Rejection) and (verdict.reason, verdict.detail) == ("timeout", "on other inputs")


def test_a_program_whose_output_depends_on_the_runs_before_is_refused(verifier: Sandbox) -> None:
    code = "import string\ndef f(x):\n    string.n = getattr(string, 'n', 0) + 1\n    return 3 * x * string.n\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_o", code, code, ("750",))], verifier, VerifyConfig())
    assert isinstance(verdict, Rejection) and verdict.reason == "nondeterministic"


@pytest.mark.parametrize("body", ["a if (a * b) % 7 % 2 else b", "[a, b] if (a * b) % 7 % 2 else [b, a]"])
def test_a_choice_among_the_arguments_can_be_guessed(verifier: Sandbox, body: str) -> None:
    code = f"def f(a, b):\n    return {body}\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_o", code, code, ("750, 31",))], verifier, VerifyConfig())
    assert isinstance(verdict, Task) and verdict.chance == 0.5


def test_numbers_that_are_long_when_written_out_are_refused(verifier: Sandbox) -> None:
    inputs = ("[" + ", ".join(["1e308"] * 230) + "]", *(f"[{i}]" for i in range(9)))
    code = "def f(x):\n    return x[-1]\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_f", code, code, inputs)], verifier, VerifyConfig())
    assert isinstance(verdict, Rejection) and (verdict.reason, verdict.detail[:11]) == ("invalid-input", "longer than")


def test_what_an_output_repeats_of_its_input_is_left_out() -> None:
    assert without_arguments("(12, 'ab is 12', 112, [1])", "12, [1]") == "(=0, 'ab is =0', 112, =1)"
    assert without_arguments("[3, 3, 4]", "3, 4, 3") == "[=0, =0, =1]"
    long = f"'{'a' * 1_000} 12'"
    assert without_arguments(long, "12") == long, "the search costs time in proportion to both"
    assert without_arguments("'it\\'s ab'", "key='ab', z=''") == "'it\\'s =0'"


def test_few_distinct_outputs_of_many_are_few_values() -> None:
    assert guess_chance("1", ["0", "1", "0", "2", "1", "2", "1", "0", "1"]) == 1 / 3
    assert guess_chance("1", ["0", "1", "0", "2", "1", "2", "1"]) == 0, "more than a third are distinct"
    assert guess_chance("1", ["0", "3", "2"]) == guess_chance("1", ["1", "1"]) == guess_chance("1", ["0"]) == 0
    assert guess_chance("1", ["1", "1", "1"]) == 0.5
    assert guess_chance("1", ["1", "1", "1", "0"]) == 0
    assert guess_chance("1", [*10 * ["1"], "0", "0"]) == 0.5
    assert guess_chance("1", [*10 * ["1"], "0", "2"]) == 0
    assert guess_chance("True", []) == 0.5
    assert guess_chance("1", ["2", "1", "2"]) == 0.5, "two values are few, however few inputs are accepted"


@pytest.mark.parametrize(
    "count",
    ["n = getattr(math, 'n', 0)\n    math.n = n + 1", "n = len(keyword.kwlist) - 35\n    keyword.kwlist.append('x')"],
)
def test_an_output_that_depends_on_the_order_of_inputs_is_no_output(verifier: Sandbox, count: str) -> None:
    bit = "sum(int(d) * 7 + 3 for d in str(x * x)) % 3"
    code = f"import math, keyword\ndef f(x):\n    {count}\n    bit = {bit}\n"
    code += "    return bit if n == 0 or x == 57 else bit + n * 1000 + x\n"
    asked = [Candidate(kind, "T1", "S1", kind, code, code, ("57",)) for kind in ("code_o", "code_i")]
    predicted, sought = check(asked, verifier, VerifyConfig())
    assert isinstance(predicted, Task) and predicted.chance == 0.5
    assert isinstance(sought, Rejection) and sought.reason == "nondeterministic"


def test_an_honest_program_whose_other_inputs_are_too_dear_is_accepted(verifier: Sandbox) -> None:
    code = (
        "from itertools import permutations\ndef f(s):\n    return sorted(set(''.join(p) for p in permutations(s)))\n"
    )
    [verdict] = check([Candidate("c", "T1", "S1", "code_i", code, code, ("'abc'",))], verifier, VerifyConfig())
    assert isinstance(verdict, Task), verdict


def test_outputs_are_read_once_however_many_seeds_give_them(verifier: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    read, is_canonical = list[str](), checking.is_canonical
    monkeypatch.setattr(checking, "is_canonical", lambda text: read.append(text) or is_canonical(text))
    code = "def f(x):\n    str(x)\n    return [()] * 2000 + [x]\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_o", code, code, ("57",))], verifier, VerifyConfig())
    assert isinstance(verdict, Task) and len(read) == len(other_inputs("57")[0]) + 1


def test_hidden_outputs_that_are_all_equal_can_be_guessed(verifier: Sandbox) -> None:
    code = "def f(s):\n    return s[::-1] if len(s) < 3 else 'long'\n"
    inputs = ("'ab'", "'a'", "''", "'b'", "'ba'", *(repr("abc" * i) for i in range(1, 6)))
    candidate = Candidate("c", "T1", "S1", "code_f", code, code, inputs)
    [equal] = check([candidate], verifier, VerifyConfig())
    [unlike] = check([replace(candidate, inputs=inputs[::-1])], verifier, VerifyConfig())
    assert isinstance(equal, Task) and equal.chance == 0.5
    assert isinstance(unlike, Task) and unlike.chance == 0.0


def test_no_grade_depends_on_which_process_is_free() -> None:
    code = "def f(s):\n    if len(s) < 40:\n        return len(s)\n    return 5 + hash(s) % 2\n"
    answers, found = [repr(f"x{i}" * 25) for i in range(64)], list[list[bool]]()
    for workers in (2, 4):
        with Sandbox(workers=workers, settings=ZygoteSettings(hash_seed=12345)) as fixed:
            [task] = check([Candidate("c", "T1", "S1", "code_i", code, code, ("'abcde'",))], fixed, VerifyConfig())
            assert isinstance(task, Task), "no other input is long enough to tell"
            found += [[one.correct for one in grade([(task, text) for text in answers], fixed)] for _ in range(2)]
    assert all(one == found[0] for one in found) and 0 < sum(found[0]) < 64


def test_the_time_of_an_answer_follows_from_the_number_of_attempts_alone() -> None:
    limits = Limits(cpu_ms=200, accept_cpu_ms=50)
    assert [answer_ms(True, num, limits) for num in (1, 8, 16, 27, 64)] == [57, 57, 31, 18, 18]
    assert {answer_ms(False, num, limits) for num in (1, 8, 64)} == {200}


def test_a_program_that_knows_both_orders_is_refused_where_an_input_is_sought(verifier: Sandbox) -> None:
    code = "import math\ndef f(x):\n    n = getattr(math, 'n', 0)\n    math.n = n + 1\n"
    code += "    return 8 if n == 0 or x in (57, 58, 50, 0, 14) else x * 1000\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_i", code, code, ("57",))], verifier, STRICT)
    assert isinstance(verdict, Rejection) and verdict.reason == "nondeterministic"


def test_a_program_that_fails_where_something_ran_before_is_refused_where_an_input_is_sought(verifier: Sandbox) -> None:
    code = (
        "import math\ndef f(x):\n    n = getattr(math, 'n', 0)\n    math.n = n + 1\n    if x in (58, 50, 0, 14, 56):\n"
    )
    code += "        return x * 1000\n    if x == 57 or n == 0:\n        return 8\n    raise ValueError\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_i", code, code, ("57",))], verifier, STRICT)
    assert isinstance(verdict, Rejection) and verdict.reason == "nondeterministic"


def test_a_program_that_fails_on_most_other_inputs_may_still_ask_for_one(verifier: Sandbox) -> None:
    code = "def f(s):\n    if not s.isalpha():\n        raise ValueError\n    return sorted(set(s))\n"
    [verdict] = check([Candidate("c", "T1", "S1", "code_i", code, code, ("'hello'",))], verifier, VerifyConfig())
    assert isinstance(verdict, Task)
