"""A task's trace: what is carried out leaves one, what is only written does not; retold at length it is the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from redqueen.experiment.program_traces import TRACES, Posed, Trace, instrument, open_tracer, trace, trace_once
from redqueen.verify import Verifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with open_tracer() as opened:
        yield opened


def traced(verifier: Verifier, code: str, *inputs: str) -> Trace:
    found = trace([Posed(code, inputs)], verifier)[0]
    assert found is not None, instrument(code)
    return found


def test_operations_are_noted_with_the_type_of_their_result(verifier: Verifier) -> None:
    found = traced(verifier, "def f(x, y):\n    return [x + y, x / y, x < y]", "3, 4")
    assert found.operations == ("add int", "div float", "lt bool")
    assert found.io == ("int, int -> list[bool|float|int]",)


def test_the_same_text_on_other_types_is_another_behaviour(verifier: Verifier) -> None:
    code = "def f(x):\n    return x + x"
    assert traced(verifier, code, "3").operations == ("add int",)
    assert traced(verifier, code, "'a'").operations == ("add str",)


def test_a_branch_that_no_input_takes_leaves_no_trace(verifier: Verifier) -> None:
    code = "def f(x):\n    if x > 0:\n        return x * 2\n    return sorted(str(x))"
    assert traced(verifier, code, "3").operations == ("gt bool", "if bool", "mult int")
    both = traced(verifier, code, "3", "-3")
    assert both.operations == ("call sorted list", "call str str", "gt bool", "if bool", "mult int")
    assert both.io == ("int -> int larger", "int -> list[str]")


def test_the_same_told_at_greater_length_is_the_same_behaviour(verifier: Verifier) -> None:
    short = "def f(xs):\n    t = 0\n    for x in xs:\n        t += x * 2\n    return t"
    long = (
        "def f(values):\n    '''Says more.'''\n    total = 0\n    unused = 7\n    for value in values:\n"
        "        part = value * 3\n        total += part * 5\n        total += 1\n    result = total\n    return result"
    )
    assert traced(verifier, short, "[1, 2]") == traced(verifier, long, "[4, 5, 6]")


def test_all_inputs_of_an_induction_task_count(verifier: Verifier) -> None:
    code = "def f(x):\n    return x if x else x + 1"
    assert "add int" not in traced(verifier, code, "2").operations
    assert "add int" in traced(verifier, code, "2", "0").operations


@pytest.mark.parametrize(
    ("code", "given", "io"),
    [
        ("def f(x):\n    return x", "[1, 2]", "list[int] -> list[int] same"),
        ("def f(x):\n    x.reverse()\n    return x", "[1, 2]", "list[int] -> list[int] reordered"),
        ("def f(x):\n    x.append(0)\n    return x", "[1, 2]", "list[int] -> list[int] longer"),
        ("def f(x):\n    return x[1:]", "'abc'", "str -> str shorter"),
        ("def f(x):\n    return {k: 1.5 for k in x}", "(1, 'a')", "tuple[int|str] -> dict[int|str:float] as long"),
        ("def f(x, *, y=1):\n    return None", "2, y=True", "int, bool -> NoneType"),
        ("def f():\n    return 7", "", " -> int"),
    ],
)
def test_an_io_class_says_types_and_how_the_result_relates_to_the_argument(
    verifier: Verifier, code: str, given: str, io: str
) -> None:
    assert traced(verifier, code, given).io == (io,)


AWKWARD = {
    "recursion": ("def f(n):\n    return 1 if n < 2 else n * f(n - 1)", "5"),
    "f as an argument": ("def g(f, x):\n    return f(x)\ndef f(x):\n    return g(f=len, x=x)", "'abc'"),
    "future and docstring": ("'''d'''\nfrom __future__ import annotations\ndef f(x: int) -> int:\n    return -x", "1"),
    "match": ("def f(x):\n    match x:\n        case -1:\n            return 'm'\n        case [a, *_]:\n"
              "            return a\n        case _:\n            return 0", "-1"),
    "format": ("def f(x):\n    w = 5\n    return f'{x + 1:>{w}} {x!r}'", "3"),
    "class": ("import math\nclass P:\n    def __init__(self, v):\n        super().__init__()\n        self.v = v\n"
              "    @property\n    def twice(self):\n        return self.v * 2\n"
              "def f(x):\n    return P(x).twice + math.pi", "3"),
    "builtins bound anew": ("def len(x):\n    return 9\ntype = 3\ndef f(x):\n    return len(x)", "'a'"),
    "the helper's name": ("def f(seen):\n    seen_note = seen + 1\n    return seen_note", "1"),
    "walrus, lambda and star": ("def f(*xs):\n    return [y for x in xs if (y := (lambda z: z + 1)(x)) > 2]", "1, 2"),
    "generator": ("def g(n):\n    while n:\n        yield n\n        n -= 1\ndef f(n):\n    return list(g(n))", "3"),
    "try": ("def f(x):\n    try:\n        return x[9]\n    except IndexError as f:\n        return 'none'", "[1]"),
    "set": ("def f(x):\n    return {a for a in x} | set()", "[1, 2]"),
    "annotation": ("def f(x: list[int]) -> dict[str, int]:\n    y: list[int] = x[:]\n    return {'a': sum(y)}", "[1]"),
}  # fmt: skip


@pytest.mark.parametrize("name", AWKWARD)
def test_rewriting_survives(verifier: Verifier, name: str) -> None:
    code, given = AWKWARD[name]
    assert traced(verifier, code, given).io


def test_calls_of_own_functions_and_of_builtins_are_told_apart(verifier: Verifier) -> None:
    code = "def h(x):\n    return x\ndef f(x):\n    return h(abs(x)).bit_length()"
    assert traced(verifier, code, "-4").operations == ("call .bit_length int", "call abs int", "call own int")


def test_what_cannot_be_parsed_or_run_has_no_trace(verifier: Verifier) -> None:
    tasks = [
        Posed("def f(x:", ("1",)),
        Posed("def f(x):\n    while True: x += 1", ("1",)),
        Posed("def f(): return 1", ("",)),
    ]
    assert [found is None for found in trace(tasks, verifier)] == [True, True, False]


def test_the_traces_of_a_run_are_taken_once(tmp_path: Path) -> None:
    tasks = [Posed("def f(x):\n    return x + 1", ("1",)), Posed("def f(x:", ("1",))]
    first = trace_once(tmp_path, ["a", "b"], tasks)
    kept = (tmp_path / TRACES).stat().st_mtime_ns
    assert trace_once(tmp_path, ["a", "b"], tasks) == first == [Trace(("add int",), ("int -> int larger",)), None]
    assert (tmp_path / TRACES).stat().st_mtime_ns == kept
    (tmp_path / TRACES).write_text("[1")
    assert trace_once(tmp_path, ["a", "b"], tasks) == first
