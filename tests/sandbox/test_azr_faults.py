"""The known faults of another verifier of this method, each of which once paid a reward it should not have."""

import time
from pathlib import Path

import pytest

from redqueen.domains.registry import check, grade
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Program, Sandbox

OUTPUT = "def f(x):\n    return x + 1"


@pytest.fixture
def deduction() -> Task:
    return Task("t", "T", "S", "code_o", OUTPUT, ("1",), ("2",))


def test_a_program_found_nondeterministic_is_no_task(verifier: Sandbox) -> None:
    code = "def f(x):\n    return [c for c in set(x)]"
    found = check([Candidate("c", "T", "S", "code_o", "", code, ("'abcdefgh'",))], verifier)[0]
    assert isinstance(found, Rejection) and found.reason == "nondeterministic"


def test_an_answer_that_breaks_out_of_the_comparison_earns_nothing(verifier: Sandbox, deduction: Task) -> None:
    answers = ["0) or (True", "2 if True else 3", "(lambda: 2)()", "True or 2", "2 == 2", "eval('2')", "2;2", "2\n2"]
    assert not any(grade.correct for grade in grade([(deduction, answer) for answer in answers], verifier))


def test_an_object_that_equals_everything_earns_nothing(verifier: Sandbox) -> None:
    task = Task("t", "T", "S", "code_f", OUTPUT, ("1", "2"), ("2", "3"))
    equal_to_all = "class E:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef f(x):\n    return E()"
    equal_int = (
        "class I(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\ndef f(x):\n    return I(0)"
    )
    found = grade([(task, equal_to_all), (task, equal_int)], verifier)
    assert [(grade.correct, grade.verdict) for grade in found] == [(False, "invalid-output")] * 2


def test_a_long_output_stays_whole_and_can_be_answered(verifier: Sandbox) -> None:
    found = check([Candidate("c", "T", "S", "code_o", "", "def f(x):\n    return 'ab' * x", ("1500",))], verifier)[0]
    assert isinstance(found, Task)
    whole = repr("ab" * 1500)
    assert found.outputs == (whole,)
    assert [grade.correct for grade in grade([(found, whole), (found, whole[:400] + "'")], verifier)] == [True, False]


@pytest.mark.parametrize("module", ["os", "subprocess", "socket"])
def test_programs_that_import_the_outside_are_no_tasks(module: str, verifier: Sandbox) -> None:
    code = f"import {module}\ndef f(x):\n    return x"
    found = check([Candidate("c", "T", "S", "code_o", "", code, ("1",))], verifier)[0]
    assert isinstance(found, Rejection) and found.reason == "forbidden"


def test_state_does_not_leak_from_one_program_into_the_next(verifier: Sandbox) -> None:
    first = (
        "import string\ndef f(x):\n    global LEAK\n    LEAK = 1\n    S = string\n    vars(S)['LEAK'] = 1\n    return 0"
    )
    second = "import string\ndef f(x):\n    return hasattr(string, 'LEAK')"
    results = verifier.run([Program("a", first, ("1",)), Program("b", second, ("1",))] * 4)
    assert {result.outputs for result in results if result.id == "b"} == {("False",)}


def test_thirty_endless_loops_do_not_hold_up_the_rest(verifier: Sandbox) -> None:
    endless = [Program(f"l{i}", "def f(x):\n    while True: pass", ("1",)) for i in range(30)]
    start_s = time.process_time()
    results = verifier.run([*endless, Program("last", OUTPUT, ("1",))])
    assert [result.verdict for result in results] == ["timeout"] * 30 + ["ok"]
    # The loops' own CPU time is what they cost: 30 x 0.1 s, once each.
    assert sum(result.cpu_ms for result in results) < 30 * 2 * verifier.limits.cpu_ms
    assert time.process_time() - start_s < 5


def test_answers_are_never_evaluated_in_the_process_that_grades(
    verifier: Sandbox, deduction: Task, tmp_path: Path
) -> None:
    marker = tmp_path / "pwned"
    touch = f"open({str(marker)!r}, 'w')"
    abduction = Task("i", "T", "S", "code_i", OUTPUT, ("1",), ("2",))
    induction = Task("f", "T", "S", "code_f", OUTPUT, ("1",), ("2",))
    pairs = [
        (deduction, touch),
        (deduction, f"[{touch}]"),
        (abduction, touch),
        (abduction, f"__import__('os').system('touch {marker}')"),
        (induction, f"{touch}\n{OUTPUT}"),
        (induction, f"f = {touch}"),
    ]
    assert not any(grade.correct for grade in grade(pairs, verifier))
    assert not marker.exists()
