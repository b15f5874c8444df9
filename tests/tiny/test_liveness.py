"""Which variables can reach a program's result, on programs small enough to see it."""

import ast

import pytest

from redqueen.tiny.liveness import dead_names


def dead(*lines: str, parameters: str = "a, b") -> set[str]:
    return dead_names(ast.parse("\n".join([f"def f({parameters}):", *(f"    {line}" for line in lines)])))


def test_what_is_returned_is_alive_and_a_parameter_nobody_reads_is_dead() -> None:
    assert dead("return a") == {"b"}
    assert dead("return a + b") == set()


def test_life_runs_through_assignments() -> None:
    assert dead("c = a + 1", "d = c * b", "return d") == set()
    assert dead("c = a + b", "return a") == {"b", "c"}


def test_order_is_ignored_so_that_doubt_speaks_for_life() -> None:
    assert dead("c = b", "c = a", "return c") == set()


def test_a_test_keeps_alive_what_it_reads_when_it_decides_over_something_alive() -> None:
    assert dead("if b:", "    a = 1", "return a") == set()
    assert dead("if b:", "    c = 1", "return a") == {"b", "c"}
    assert dead("if b > 2:", "    return 0", "return a") == set()
    assert dead("if a:", "    return 1", "else:", "    return 2") == {"b"}


def test_a_loop_keeps_its_source_alive_and_its_variable_only_when_it_is_read() -> None:
    assert dead("n = 0", "for x in a:", "    n += x", "return n") == {"b"}
    assert dead("n = 0", "for x in a:", "    n += 1", "return n") == {"b", "x"}


def test_a_while_loop_lives_by_its_test() -> None:
    assert dead("n = 0", "while a > 0:", "    a -= b", "    n += 1", "return n") == set()


@pytest.mark.parametrize("way_out", ["break", "continue"])
def test_what_guards_the_way_out_of_a_loop_is_alive(way_out: str) -> None:
    assert dead("n = 0", "for x in a:", "    if x == b:", f"        {way_out}", "    n += 1", "return n") == set()


def test_a_method_call_changes_its_object() -> None:
    assert dead("c = []", "c.append(a)", "return c") == {"b"}
    assert dead("c = []", "c.append(b)", "return a") == {"b", "c"}


def test_writing_into_an_element_changes_the_whole_and_reads_its_index() -> None:
    assert dead("a[b] = 1", "return a") == set()
    assert dead("a[0], a[-1] = a[-1], b", "return a") == set()


def test_unpacking_binds_every_name() -> None:
    assert dead("c, d = a, b", "return c") == {"d"}


def test_only_f_is_looked_at() -> None:
    code = "def g(unused):\n    return 1\n\n\ndef f(a):\n    return g(a)\n"
    assert dead_names(ast.parse(code)) == set()
