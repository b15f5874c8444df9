"""The trace of a program written by hand, event by event."""

import pytest

from recipes.embedded_base.traces import (
    MAX_EVENTS,
    MAX_INT,
    MAX_ITEMS,
    MAX_TEXT_CHARS,
    Run,
    TooMuch,
    bounded_repr,
    instrument,
    run,
)


def trace(code: str, *arguments: object) -> Run:
    return run(instrument(code), arguments)


def test_arguments_bindings_and_the_result_are_written_down_in_order() -> None:
    code = "def f(a, s):\n    b = s + 'x'\n    return b"
    assert trace(code, 3, "y") == Run("'yx'", "a=3;s='y';b='yx';r='yx'")


def test_arithmetic_is_written_with_the_values_of_its_names_before_its_result() -> None:
    code = "def f(a):\n    b = a + 1\n    b -= a\n    return b * 2"
    assert trace(code, -3) == Run("2", "a=-3;b=(-3) + 1=-2;b=(-2) - (-3)=1;r=1 * 2=2")


def test_what_is_more_than_arithmetic_on_integers_is_written_by_its_result_alone() -> None:
    code = "def f(a, s):\n    b = max(a, 2) + 1\n    t = s * 2\n    return t * b"
    assert trace(code, 1, "z").trace == "a=1;s='z';b=3;t='zz';r='zzzzzz'"


def test_a_loop_writes_its_variable_and_a_comparison_both_values_and_T_or_F() -> None:
    code = "def f(xs):\n    total = 0\n    for x in xs:\n        if x > 1:\n            total += x\n    return total"
    assert trace(code, [1, 2]) == Run("2", "xs=[1, 2];total=0;x=1;1 > 1:F;x=2;2 > 1:T;total=0 + 2=2;r=2")


def test_a_while_loop_writes_its_test_each_time() -> None:
    code = "def f(n):\n    while n > 0:\n        n -= 1\n    return n"
    assert trace(code, 2) == Run("0", "n=2;2 > 0:T;n=2 - 1=1;1 > 0:T;n=1 - 1=0;0 > 0:F;r=0")


def test_a_test_that_is_no_single_comparison_writes_T_or_F_alone() -> None:
    code = "def f(s):\n    if s.isdigit() or len(s) > 3:\n        return 1\n    return 0"
    assert trace(code, "ab").trace == "s='ab';F;r=0"


def test_membership_is_written_with_both_values() -> None:
    code = "def f(x, xs):\n    if x not in xs:\n        return x\n    return 0"
    assert trace(code, 5, [1]).trace == "x=5;xs=[1];5 not in [1]:T;r=5"


def test_elif_and_else_write_the_tests_on_the_way() -> None:
    tests = "    if a > 5:\n        b = 1\n    elif a > 3:\n        b = 2\n    else:\n        b = 3\n"
    code = f"def f(a):\n{tests}    return b"
    assert trace(code, 9).trace == "a=9;9 > 5:T;b=1;r=1"
    assert trace(code, 4).trace == "a=4;4 > 5:F;4 > 3:T;b=2;r=2"
    assert trace(code, 0).trace == "a=0;0 > 5:F;0 > 3:F;b=3;r=3"


def test_unpacking_writes_every_name_and_a_changed_element_the_whole_list_once() -> None:
    code = "def f(xs):\n    a, b = xs\n    xs[0], xs[-1] = b, a\n    return xs"
    assert trace(code, [1, 2]).trace == "xs=[1, 2];a=1;b=2;xs=[2, 1];r=[2, 1]"


def test_a_method_call_writes_its_object() -> None:
    code = "def f(d):\n    d.update({'k': 1})\n    return d"
    assert trace(code, {}).trace == "d={};d={'k': 1};r={'k': 1}"


def test_a_helper_writes_its_parameters_and_what_it_returns() -> None:
    code = "def g(x):\n    return x * 2\ndef f(a):\n    b = g(a)\n    return b"
    assert trace(code, 2).trace == "a=2;x=2;r=2 * 2=4;b=4;r=4"


def test_enumerating_writes_index_and_element() -> None:
    code = "def f(s):\n    n = 0\n    for i, c in enumerate(s):\n        n += i\n    return n"
    assert trace(code, "ab").trace == "s='ab';n=0;i=0;c='a';n=0 + 0=0;i=1;c='b';n=0 + 1=1;r=1"


def test_what_the_program_raises_comes_out() -> None:
    with pytest.raises(IndexError):
        trace("def f(xs):\n    return xs[3]", [1])


def test_a_run_of_too_many_events_is_too_much() -> None:
    code = "def f(n):\n    for i in range(n):\n        pass\n    return n"
    assert trace(code, MAX_EVENTS).trace.count("i=") == MAX_EVENTS
    with pytest.raises(TooMuch):
        trace(code, MAX_EVENTS + 1)
    with pytest.raises(TooMuch):
        trace("def f(n):\n    while True:\n        pass\n    return n", 1)


def test_a_trace_of_too_many_characters_is_too_much() -> None:
    code = "def f(s):\n    t = s\n" + "    t = s\n" * 9 + "    return s"
    assert trace(code, "a" * 10).result == repr("a" * 10)
    with pytest.raises(TooMuch):
        trace(code, "a" * 28)


@pytest.mark.parametrize(
    "value",
    [MAX_INT, -MAX_INT, True, None, "é", [1, [2]], (1,), {"a": (1, 2)}, [0] * MAX_ITEMS, "a" * (MAX_TEXT_CHARS - 2)],
)
def test_small_plain_values_are_written_as_python_writes_them(value: object) -> None:
    assert bounded_repr(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    [MAX_INT + 1, 1.5, {1}, b"x", len, "a" * MAX_TEXT_CHARS, [0] * (MAX_ITEMS + 1), [[1000]], {1000: 1}],
)
def test_large_and_other_values_are_too_much(value: object) -> None:
    with pytest.raises(TooMuch):
        bounded_repr(value)
