"""Candidates become tasks or rejections; answers are graded."""

from dataclasses import replace

import pytest

from redqueen.domains import registry
from redqueen.domains.code.measures import measure
from redqueen.learn.rewards import well_formed
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen_sandbox import Program, Sandbox

PLUS_ONE = "def f(x):\n    return x + 1"
TEN = tuple(str(i) for i in range(10))


def candidate(kind: str, code: str, *inputs: str, **fields: str) -> Candidate:
    return Candidate("c", "T1", "S1", kind, "raw", code, inputs, **fields)


def check(verifier: Sandbox, *candidates: Candidate) -> list[Task | Rejection]:
    return registry.check(candidates, verifier)


def task(verifier: Sandbox, *arguments: str, message: str = "") -> Task:
    found = check(verifier, candidate(*arguments, message=message))[0]  # type: ignore[arg-type]
    assert isinstance(found, Task), found
    return found


def test_a_valid_candidate_becomes_a_task_with_canonical_texts(verifier: Sandbox) -> None:
    found = task(verifier, "code_o", "def f(x, y):\n    return {'b': x, 'a': y}", " [1,2], {'z':1,'a':2} ")
    assert found.inputs == ("[1, 2], {'z': 1, 'a': 2}",)
    assert found.outputs == ("{'a': {'a': 2, 'z': 1}, 'b': [1, 2]}",)
    assert (found.num_shown, found.protection, found.teacher, found.id) == (0, verifier.protection, "T1", "c")


def test_an_induction_task_shows_half_of_ten_distinct_pairs(verifier: Sandbox) -> None:
    found = task(verifier, "code_f", PLUS_ONE, *TEN, "1", " 2", message="add")
    assert found.inputs == TEN
    assert found.outputs == tuple(str(i + 1) for i in range(10))
    assert (found.num_shown, found.message) == (5, "add")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (candidate("code_o", "", error="no code block"), "unparsable"),
        (candidate("code_o", PLUS_ONE), "invalid-input"),
        (candidate("code_o", PLUS_ONE, "1", "2"), "invalid-input"),
        (candidate("code_o", PLUS_ONE, "range(3)"), "invalid-input"),
        (candidate("code_f", PLUS_ONE, *["1"] * 10), "invalid-input"),
        (candidate("code_f", PLUS_ONE, *TEN[:9]), "invalid-input"),
        (candidate("code_f", "def f(x):\n    return 7", *TEN), "constant"),
        (candidate("code_f", "def f(x):\n    return 1 // (x - 9)", *TEN), "error"),
        (candidate("code_o", "def f(x):\n    return float('inf')", "1"), "invalid-output"),
        (candidate("code_o", "def f(x):\n    return b'bytes'", "1"), "invalid-output"),
        (candidate("code_i", "import os\ndef f(x):\n    return 1", "1"), "forbidden"),
        (candidate("code_o", "def f(x):\n    return ''.join(set(x))", "'abcdefgh'"), "nondeterministic"),
        (candidate("code_o", "def f(x):\n    while True: pass", "1"), "timeout"),
        (candidate("code_o", "def f(x):\n    return 'a' * 9_000", "1"), "too-large"),
        (candidate("code_o", "def f(x):\n    return len(x)", repr([0] * 3_000)), "invalid-input"),
    ],
)
def test_an_invalid_candidate_is_rejected_with_one_reason(wrong: Candidate, reason: str, verifier: Sandbox) -> None:
    found = check(verifier, wrong)[0]
    assert isinstance(found, Rejection)
    assert (found.reason, found.candidate) == (reason, wrong)


def test_a_program_is_as_deep_as_its_measured_tree(verifier: Sandbox) -> None:
    codes = ["def f(x):\n    return " + "-" * num_signs + "x" for num_signs in (96, 97)]
    assert [measure(code).ast_depth for code in codes] == [100, 101]
    deepest, deeper = check(verifier, *[candidate("code_o", code, "1") for code in codes])
    assert isinstance(deepest, Task) and isinstance(deeper, Rejection) and deeper.reason == "too-large"


def test_a_candidate_near_the_cpu_limit_is_no_task(verifier: Sandbox) -> None:
    # It ends well within the kill limit of a patient verifier, yet needs more than what a task may.
    slow = candidate("code_o", "def f(x):\n    for i in range(x):\n        x ^= i\n    return 1", "1200000")
    patient = replace(verifier.rules, limits=replace(verifier.limits, cpu_ms=5000, accept_cpu_ms=5))
    kept = verifier.rules
    verifier.rules = patient
    try:
        found = check(verifier, slow)[0]
    finally:
        verifier.rules = kept
    assert isinstance(found, Rejection) and found.reason == "timeout"


def test_a_program_that_answers_run_needs_no_more_than_their_first_limit(
    verifier: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right answers to a program of 12 ms were graded right in 16 of 16 cases, and in 3 of 64 when there were more."""
    limits = replace(verifier.limits, cpu_ms=5_000, accept_cpu_ms=5_000)
    monkeypatch.setattr(verifier, "rules", replace(verifier.rules, limits=limits))
    slow = "def f(x):\n    for i in range(2_000_000):\n        x ^= 0\n    return x"
    shown, run = check(verifier, candidate("code_o", slow, "7"), candidate("code_i", slow, "7"))
    assert isinstance(shown, Task) and isinstance(run, Rejection) and run.reason == "timeout"


def grades(verifier: Sandbox, given: Task, *answers: str | None) -> list[Grade]:
    return registry.grade([(given, answer) for answer in answers], verifier)


def test_deduction_compares_values_by_type_and_value(verifier: Sandbox) -> None:
    given = task(verifier, "code_o", "def f(x):\n    return [x, 'a', {1: 2, 3: 4}]", "1")
    right = ["[1, 'a', {1: 2, 3: 4}]", '[1,"a",{3:4,1:2}]', " [ 1 , 'a' , {1:2,3:4,} ]  # yes"]
    wrong = ["[True, 'a', {1: 2, 3: 4}]", "[1.0, 'a', {1: 2, 3: 4}]", "(1, 'a', {1: 2, 3: 4})", "[1, 'a']"]
    assert [grade.correct for grade in grades(verifier, given, *right)] == [True] * 3
    assert grades(verifier, given, *wrong) == [Grade(False, "ok")] * 4


def test_an_answer_that_cannot_be_read_is_not_well_formed(verifier: Sandbox) -> None:
    given = task(verifier, "code_o", PLUS_ONE, "1")
    for grade in grades(verifier, given, None, "", "two", "1 + 1", "f(1)", "2) or (True", "[" * 999):
        assert (grade.correct, grade.verdict) == (False, "unparsable")
        assert not well_formed(grade)


def test_abduction_takes_any_input_that_gives_the_output(verifier: Sandbox) -> None:
    given = task(verifier, "code_i", "def f(x, y=0):\n    return abs(x) + y", "-3")
    found = grades(
        verifier, given, "-3", "3", "1, 2", "x=1, y=2", "4", "'a'", "1, 2, 3", "[i for i in x]", "f(3)", None
    )
    assert [grade.correct for grade in found] == [True] * 4 + [False] * 6
    assert [grade.verdict for grade in found] == ["ok"] * 7 + ["invalid-input"] * 2 + ["unparsable"]
    assert [well_formed(grade) for grade in found] == [True] * 7 + [False] * 3
    assert found[5].detail == "error TypeError"


def test_one_answer_that_never_ends_does_not_cost_the_others_their_grade(verifier: Sandbox) -> None:
    given = task(verifier, "code_i", "def f(x):\n    while x > 9:\n        x += 1\n    return x == 3", "3")
    found = grades(verifier, given, "1", "3", "10", "2", "11", "3.0", "len")
    assert [grade.correct for grade in found] == [False, True, False, False, False, True, False]
    assert [grade.detail for grade in found[2:5]] == [
        "timeout cpu or memory",
        "f(2) gives False, expected True",
        "timeout cpu or memory",
    ]


def test_which_limit_a_program_met_is_not_told(verifier: Sandbox) -> None:
    """Met in a run: 64 MiB were full after 0.3 s of CPU time, or not yet after the 0.2 s that the run allowed."""
    ends = ["while True:\n        x += 1", "return len([x] * 10**9)", "y = [x]\n    for z in y:\n        y.append(z)"]
    ends.append("s = 'ab'\n    for _ in range(60):\n        s = s + s\n    return len(s)")
    programs = [f"def f(x):\n    {end}" for end in ends]
    raw = verifier.run([Program(code, code, ("3",)) for code in programs])
    assert {"timeout", "memory"} == {result.verdict for result in raw}
    judged = check(verifier, *[candidate("code_o", code, "3") for code in programs])
    told = [(one.reason, one.detail) for one in judged if isinstance(one, Rejection)]
    given = task(verifier, "code_f", PLUS_ONE, *TEN, message="Add one.")
    told += [(one.verdict, one.detail) for one in grades(verifier, given, *programs)]
    assert told == [("timeout", "cpu or memory")] * 8


def test_an_input_that_is_right_by_chance_of_the_hash_seed_is_not_right(verifier: Sandbox) -> None:
    code = "def f(x):\n    return [str(i) for i in x] if x == 0 else ''.join({'a' + x, 'b' + x, 'c' + x, 'd' + x})[:1]"
    given = replace(task(verifier, "code_o", PLUS_ONE, "1"), kind="code_i", code=code, outputs=("'a'",))
    found = grades(verifier, given, *[f"'{i}'" for i in range(20)])
    assert sum(grade.correct for grade in found) < 10  # a quarter start with 'a' under one seed, few under both


def test_induction_must_give_every_hidden_output(verifier: Sandbox) -> None:
    given = task(verifier, "code_f", "def f(x):\n    return x * x", *TEN, message="square")
    shown_only = "def f(x):\n    return x * x if x < 5 else 0"
    found = grades(
        verifier,
        given,
        "def f(x):\n    return x ** 2",
        shown_only,
        "def f(x):\n    return x / 0",
        "def f(x):\n    while True: pass",
        "def f(x: retur",
        "def g(x):\n    return x * x",
        "import os\ndef f(x):\n    return x * x",
        "f = lambda x: x * x",
        "def f(x):\n    return x * x + 0.0",
    )
    assert [grade.correct for grade in found] == [True, False, False, False, False, False, False, True, False]
    assert [grade.verdict for grade in found] == [
        "ok", "ok", "error", "timeout", "syntax", "syntax", "forbidden", "ok", "ok",
    ]  # fmt: skip
    assert [well_formed(grade) for grade in found] == [True] * 4 + [False] * 3 + [True] * 2


def test_equal_pairs_are_graded_once_and_grades_keep_their_order(verifier: Sandbox) -> None:
    deduction, induction = task(verifier, "code_o", PLUS_ONE, "1"), task(verifier, "code_f", PLUS_ONE, *TEN)
    pairs = [(deduction, "2"), (induction, PLUS_ONE), (deduction, "3"), (induction, PLUS_ONE), (deduction, "2")]
    before = verifier.num_jobs
    assert [grade.correct for grade in registry.grade(pairs, verifier)] == [True, True, False, True, True]
    assert verifier.num_jobs - before == 2  # one program, two hash seeds


def test_nothing_to_do_is_done_at_once(verifier: Sandbox) -> None:
    assert verifier.run([]) == [] and registry.check([], verifier) == [] and registry.grade([], verifier) == []


LEAKING = {
    "decimal": """
    c = decimal.getcontext()
    was = c.prec
    if x > 50:
        c.prec = 5
    return x if was == 28 else -x""",
    "calendar": """
    was = calendar.firstweekday()
    if x > 50:
        calendar.setfirstweekday(x % 7)
    return was + x""",
    "fractions": """
    F = fractions.Fraction
    if x > 50:
        F.q = 1
    return getattr(F, 'q', 0) + x""",
}
"""Programs that leave something in a library for whatever runs after them in their process, for inputs that no check of
the task tries: it would refuse them."""


@pytest.mark.parametrize("module", LEAKING)
def test_the_grade_of_an_answer_does_not_depend_on_the_other_answers(verifier: Sandbox, module: str) -> None:
    given = task(verifier, "code_i", f"import {module}\ndef f(x):{LEAKING[module]}", "3")
    answers = ["90", "70", "3", "80", "60"]
    alone = [registry.grade([(given, answer)], verifier)[0].correct for answer in answers]
    for order in (answers, answers[::-1]):
        together = dict(zip(order, registry.grade([(given, answer) for answer in order], verifier), strict=True))
        assert [together[answer].correct for answer in answers] == alone
    assert alone[2]


def test_a_value_much_longer_than_the_expected_one_is_wrong_without_being_sent(verifier: Sandbox) -> None:
    given = task(verifier, "code_f", "def f(x):\n    return [x] * 400", *TEN)
    found = grades(verifier, given, *[f"def f(x):\n    return [x] * {num}" for num in (400, 401, 900)])
    assert [(grade.correct, grade.verdict) for grade in found] == [(True, "ok"), (False, "ok"), (False, "too-large")]
    assert all(map(well_formed, found))
    abduction = task(verifier, "code_i", "def f(x):\n    return [7] * x", "3")
    assert grades(verifier, abduction, "9000")[0].detail == "too-large output"


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_no_literal_is_read_that_is_much_longer_than_the_own_one(verifier: Sandbox, kind: str) -> None:
    short, long = (task(verifier, kind, "def f(x):\n    return x", repr([0] * num)) for num in (3, 2_000))
    padded = "[0, 0," + " " * 2_000 + "0]"
    assert [grades(verifier, given, padded)[0].verdict for given in (short, long)] == [
        "unparsable" if kind == "code_o" else "invalid-input", "ok",
    ]  # fmt: skip
    assert grades(verifier, long, repr([0] * 2_000))[0].correct


def test_an_exception_named_timeout_is_not_a_lack_of_time(verifier: Sandbox) -> None:
    given = task(verifier, "code_f", PLUS_ONE, *TEN)
    raises = "class timeout(Exception):\n    pass\ndef f(x):\n    raise timeout"
    raised, late = grades(verifier, given, raises, "def f(x):\n    while True:\n        pass")
    assert (raised.verdict, raised.detail) == ("error", "timeout") and late.verdict == "timeout"
