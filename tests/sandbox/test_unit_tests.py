# ruff: noqa: E501 (tables of one-line programs)
"""Unit-test problems: right programs pass, cheats do not, and tests that test nothing are refused."""

import time
from collections.abc import Iterator

import pytest

from redqueen.errors import UserError
from redqueen.records import Grade
from redqueen_sandbox import Limits, unit_tests
from redqueen_sandbox.literals import canonical
from redqueen_sandbox.unit_tests import UnitTest, UnitTester
from redqueen_sandbox.zygotes import ZygoteSettings

TESTS = """
def check(candidate):
    assert candidate(2) == 4, "GOLD-7f3a91"
    assert candidate([1, 2]) == [1, 2, 1, 2]
    assert abs(candidate(0.5) - 1.0) < 1e-6
check(candidate)
"""
RIGHT = UnitTest("right", "def double(x):\n    return x * 2 if not isinstance(x, list) else x + x", TESTS, "double")


@pytest.fixture(scope="module")
def tester() -> Iterator[UnitTester]:
    limits = Limits(cpu_ms=1_000, wall_ms=20_000, memory_bytes=256 << 20, max_output_chars=1 << 18)
    with UnitTester(workers=1, limits=limits) as running:
        yield running


def test_a_right_program_passes_and_a_wrong_one_does_not(tester: UnitTester) -> None:
    grades = tester.grade(
        [
            RIGHT,
            UnitTest("wrong", "def double(x):\n    return 4", TESTS, "double"),
            UnitTest("raises", "def double(x):\n    raise ValueError", TESTS, "double"),
        ]
    )
    assert [(grade.correct, grade.verdict, grade.detail) for grade in grades] == [
        (True, "ok", ""),
        (False, "ok", "AssertionError"),
        (False, "ok", "ValueError"),
    ]


def test_a_right_program_that_seemed_to_sleep_is_played_again(
    tester: UnitTester, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Grade] = []
    grade_of = unit_tests._Session.grade

    def starved_once(session: unit_tests._Session) -> Grade:
        seen.append(grade_of(session))
        return seen[-1] if len(seen) > 1 else Grade(False, "timeout", "asleep")

    monkeypatch.setattr(unit_tests._Session, "grade", starved_once)
    assert tester.grade([RIGHT])[0].correct
    assert len(seen) == 2


@pytest.mark.parametrize(
    "code",
    [
        "class E:\n    def __eq__(self, o): return True\n    def __sub__(self, o): return 0\ndef f(x):\n    return E()",
        "class L(list):\n    def __eq__(self, o): return True\ndef f(x):\n    return L()",
        "import builtins\nbuiltins.AssertionError = type('A', (), {})\ndef f(x):\n    return None",
        "import sys\ndef f(x):\n    sys.exit(0)",
        "import os\ndef f(x):\n    os._exit(0)",
        "import os\ndef f(x):\n    os._exit(97)",
        "import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.SIGUSR1)",
        "import os\ndef f(x):\n    os.write(3, b'0' * 16 + b' passed - 0\\n\\n')\n    os._exit(0)",
        "def f(x):\n    import sys\n    fr = sys._getframe()\n    while fr:\n        for v in fr.f_locals.values():\n"
        "            if hasattr(v, 'send') and hasattr(v, 'nonce'):\n                v.send('passed')\n"
        "        fr = fr.f_back\n    return 0",
        "import sys\ndef f(x):\n    sys.settrace(lambda *a: None)\n    return True",
        "def f(x):\n    while True: pass",
        "def f(x):\n    return 'a' * 10**10",
        "def g(x):\n    return x",
        "def f(x: retur",
        "import unittest.mock\ndef f(x):\n    return unittest.mock.ANY",
    ],
)
def test_no_cheat_passes(code: str, tester: UnitTester) -> None:
    grade = tester.grade([UnitTest("cheat", code, TESTS, "f")])[0]
    assert not grade.correct and not grade.lost


FLOOD = """
import sys
def f(x):
    frame = sys._getframe()
    while "replies" not in frame.f_locals:
        frame = frame.f_back
    replies = frame.f_locals["replies"]
    for _ in range(60):
        replies.send("ok", "", "([" + "1, " * 80_000 + "],)")
    return x
"""


def test_of_answers_without_a_call_none_is_read(tester: UnitTester, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(unit_tests, "canonical", lambda text, **how: read.append(text) or canonical(text, **how))
    flood = UnitTest("flood", FLOOD, "assert f(1) == 1\nassert f(2) == 3", "f")
    assert tester.grade([flood]) == [Grade(False, "bad-frame", "an answer without a call")]
    assert len(read) == 1


MUST_RAISE = """
try:
    f(1)
except {}:
    pass
else:
    raise ValueError("it should have raised")
"""


@pytest.mark.parametrize("value", ["object()", "print", "'a' * 10**7", "float('nan')", "(i for i in [1])"])
def test_a_value_that_is_not_plain_is_no_exception_that_tests_wait_for(value: str, tester: UnitTester) -> None:
    grade = tester.grade([UnitTest("no raise", f"def f(x):\n    return {value}", MUST_RAISE.format("TypeError"), "f")])[
        0
    ]
    assert not grade.correct and grade.verdict == "ok"


HONEST = {
    "sorted in place": ("def f(x): x.sort()", "x = [3, 1, 2]\nassert f(x) is None and x == [1, 2, 3]"),
    "rows in place": ("def f(x):\n    for row in x: row.reverse()", "x = [[1, 2], [3]]\nf(x=x)\nassert x == [[2, 1], [3]]"),
    "a dict in place": ("def f(x, y): x.pop(y)", "x = {'a': 1, 'b': 2}\nf(x, 'a')\nassert x == {'b': 2}"),
    "a set in place": ("def f(x): x |= {1}", "x = {2}\nf(x)\nassert x == {1, 2}"),
    "a generator": ("def f(x):\n    yield x\n    yield [x]", "g = f(1)\nassert next(g) == 1 and list(g) == [[1]]"),
    "one without end": ("def f():\n    n = 0\n    while True:\n        yield n\n        n += 1",
                        "assert [n for n, _ in zip(f(), range(4))] == [0, 1, 2, 3]"),
    "an iterator": ("def f(x): return map(str, x)", "assert list(f([1, 2])) == ['1', '2']"),
    "keys": ("def f(x): return x.keys()", "assert sorted(f({'b': 1, 'a': 2})) == ['a', 'b']"),
    "pairs of iterators": ("def f(x): return iter(x), reversed(x)", "a, b = f([1, 2])\nassert [*a, *b] == [1, 2, 2, 1]"),
    "a function": ("def f(x): return lambda y: x + y", "assert f(2)(3) == 5 and f('a')(y='b') == 'ab'"),
    "an iterable": ("class A:\n    def __iter__(self): return iter([1, 2])\ndef f(): return A()", "assert list(f()) == [1, 2]"),
    "a decimal": ("from decimal import Decimal\ndef f(x): return Decimal(x) / 4",
                  "from decimal import Decimal\nassert f('3') == Decimal('0.75') and f(Decimal(1)) == 0.25"),
    "a fraction": ("from fractions import Fraction\ndef f(x): return [Fraction(x, 6)]",
                   "from fractions import Fraction\nassert f(4) == [Fraction(2, 3)]"),
    "dates": ("def f(x): return (x.date(), x - x, x.time())",
              "from datetime import *\nd = datetime(2020, 1, 2, 3)\nassert f(d) == (date(2020, 1, 2), timedelta(0), time(3))"),
    "a range": ("def f(x): return range(x)", "assert f(3) == range(3) and len(f(3)) == 3"),
    "not a number": ("def f(x): return {x: float('nan')}", "import math\nassert math.isnan(f(1)[1])"),
    "a complex number": ("def f(x): return (x + 1j) * -1", "assert f(2) == complex(-2, -1) and f(1j).imag == -2"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_a_function_may_give_or_change_is_compared(name: str, tester: UnitTester) -> None:
    code, tests = HONEST[name]
    wrong = "def f(*given, **named): return 7"
    right, other = tester.grade([UnitTest("right", code, tests, "f"), UnitTest("wrong", wrong, tests, "f")])
    assert right.correct, right
    assert not other.correct and not other.lost, other


SLY = {
    "an argument emptied beside a value": ("def f(x):\n    x.clear()\n    return x", "x = [2, 1]\nassert f(x) == sorted(x)"),
    "methods that always agree": ("class A:\n    def __getattr__(self, name): return lambda *_: True\ndef f(x): return A()",
                                  "assert f('a').startswith('b')"),
    "a container of everything": ("class A:\n    def __contains__(self, item): return True\n    def __eq__(self, o): return True\n"
                                  "def f(x): return A()", "assert 3 in f(x=1)"),
    "a class of the same name": ("class Decimal:\n    def __eq__(self, o): return True\ndef f(x): return Decimal()",
                                 "from decimal import Decimal\nassert f(1) == Decimal(2)"),
    "a subclass": ("from fractions import Fraction\nclass F(Fraction):\n    def __eq__(self, o): return True\ndef f(x): return F(1)",
                   "assert f(1) == 2"),
    "a changed class": ("import fractions\nfractions.Fraction.__reduce__ = lambda self: (0, (E(),))\nclass E:\n"
                        "    def __eq__(self, o): return True\ndef f(x): return fractions.Fraction(1)", "assert f(1) == 2"),
    "a reply of one's own": ("import sys\ndef f(x):\n    v = [f.f_locals['replies'] for f in [sys._getframe(1)]][0]\n"
                             "    v.send('ok', '', '([], [])')\n    return 1", "x = [2, 1]\nassert f(x) == sorted(x)"),
}  # fmt: skip


@pytest.mark.parametrize("name", SLY)
def test_no_value_forges_an_equality_or_changes_what_it_is_compared_with(name: str, tester: UnitTester) -> None:
    code, tests = SLY[name]
    grade = tester.grade([UnitTest(name, code, tests, "f")])[0]
    assert not grade.correct and not grade.lost, grade


WAITING = {
    "until a value": "n = 0\nwhile f(n) != 3: n += 1",
    "in an expression": "import itertools\nassert next(n for n in itertools.count() if f(n) == 3) == 2",
    "for a callback": "for _ in iter(lambda: f(2), 3): pass\nassert f(1) == 2",
}


@pytest.mark.parametrize("name", WAITING)
def test_tests_that_wait_for_a_value_cost_no_time_with_a_stand_in(name: str, tester: UnitTester) -> None:
    start_s = time.monotonic()
    assert tester.grade([UnitTest(name, "def f(x): return x + 1", WAITING[name], "f")])[0].correct
    assert time.monotonic() - start_s < 5


def test_a_program_that_has_the_tests_run_for_ever_is_wrong_and_not_lost() -> None:
    greedy = "def f(x): return 'a' * 200_000"
    cases = [
        ("def f(x): return 0", WAITING["until a value"]),
        (greedy, "held = []\nwhile f(1) != 3: held.append(f(2) * 9)"),
        (greedy, "assert f(f(1) + f(2)) == 3"),
        ("v = [[1.5] * 3 for i in range(15_000)]\ndef f(x): return v", WAITING["until a value"]),
    ]
    limits = Limits(cpu_ms=500, wall_ms=1_000, memory_bytes=256 << 20, max_output_chars=1 << 18)
    with UnitTester(workers=1, limits=limits) as short:
        assert short.grade([RIGHT])[0].correct
        start_s = time.monotonic()
        for grade in short.grade([UnitTest("a", code, tests, "f") for code, tests in cases]):
            assert not grade.correct and not grade.lost, grade
        assert short.grade([UnitTest("own", "def f(x): return x", "while True: pass", "f")])[0].lost
        assert time.monotonic() - start_s < 20


def test_an_argument_that_cannot_be_passed_is_told(tester: UnitTester) -> None:
    with pytest.raises(UserError, match="call the function with a value that is not plain"):
        tester.grade([UnitTest("a", "def f(x): return x(1)", "assert f(lambda n: n) == 1", "f")])


def test_an_exception_that_ends_iteration_does_not_end_the_tests(tester: UnitTester) -> None:
    tests = "assert all(map(lambda x: f(x) == 2 * x, [1, 2]))"
    assert not tester.grade([UnitTest("stops", "def f(x):\n    raise StopIteration", tests, "f")])[0].correct


def test_an_exception_counts_as_the_builtin_class_that_it_derives_from(tester: UnitTester) -> None:
    derived = "class Bad(ValueError):\n    def __init__(self, a): pass\ndef f(x):\n    raise Bad(1)"
    feigned = "class ValueError(Exception):\n    pass\ndef f(x):\n    raise ValueError"
    tests = MUST_RAISE.format("ValueError")
    grades = tester.grade([UnitTest("derived", derived, tests, "f"), UnitTest("feigned", feigned, tests, "f")])
    assert [grade.correct for grade in grades] == [True, False]


def test_the_program_never_sees_an_expected_value(tester: UnitTester) -> None:
    hunt = (
        "import gc, sys\n"
        "def f(x):\n"
        "    gold = ''.join(['GO', 'LD-', '7f3a91'])\n"
        "    fr = sys._getframe().f_back\n"
        "    while fr:\n"
        "        if gold in repr((fr.f_locals, fr.f_code.co_consts)): return 'found'\n"
        "        fr = fr.f_back\n"
        "    seen = [o for o in gc.get_objects() if type(o) in (dict, list, tuple)]\n"
        "    texts = [s for o in seen for s in (o.values() if type(o) is dict else o) if type(s) is str]\n"
        "    found = [s for s in texts if gold in s]\n"
        "    return 'found' if [s for s in found if s is not gold] else 'not found'\n"
    )
    tests = "def check(candidate):\n    assert candidate(1) == 'not found', 'GOLD-7f3a91'\ncheck(candidate)"
    assert tester.grade([UnitTest("hunt", hunt, tests, "f")])[0].correct


def test_without_a_system_call_filter_nothing_is_run_unless_every_program_is_trusted() -> None:
    settings = ZygoteSettings(leave_out=frozenset({"seccomp"}))
    with UnitTester(workers=1, settings=settings) as careful:
        for _ in range(3):  # a refusal does not wear off
            with pytest.raises(UserError, match="no system-call filter"):
                careful.grade([RIGHT])
    with UnitTester(workers=1, settings=settings, allow_weak=True) as trusting:
        assert trusting.grade([RIGHT])[0].correct


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("def check(:", r"broken: the tests cannot run \(SyntaxError\)"),
        ("assert g(1) == 1", r"broken: the tests cannot run \(NameError\)"),
        ("def check(candidate):\n    assert candidate(1) == 1", "broken: the tests pass whatever the function returns"),
    ],
)
def test_tests_that_test_nothing_are_refused(tests: str, said: str, tester: UnitTester) -> None:
    with pytest.raises(UserError, match=said):
        tester.grade([UnitTest("broken", "def f(x):\n    return x", tests, "f")])
    assert tester.grade([RIGHT])[0].correct


def test_a_unit_test_without_a_text_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="tests of the unit test t is None: give a text"):
        UnitTest("t", "", None, "f")  # type: ignore[arg-type]
