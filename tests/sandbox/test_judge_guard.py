"""Whatever the text, the judge gives a verdict: no exception leaves it, and its guard is not even needed."""

import contextlib
from collections.abc import Generator, Iterator
from unittest import TestCase

import pytest
from fuzzing import ATOMS
from verify_data import DATA, read_lines

from redqueen.domains.code.measures import measure
from redqueen.domains.code.normalise import normalise
from redqueen.domains.code.suite import KINDS
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import check as check_all
from redqueen.domains.registry import grade as grade_all
from redqueen.errors import UserError
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Program, Sandbox, guard
from redqueen_sandbox.literals import LiteralError, canonical
from redqueen_sandbox.records import VERDICTS
from redqueen_sandbox.runs import Job, Run
from redqueen_sandbox.unit_tests import UnitTest, UnitTester

SAME = "def f(x):\n    return x\n"
HOSTILE = (
    *ATOMS,
    "0x" + "f" * 65_000,
    "-0x" + "f" * 3_600,
    "[" + "0x" + "f" * 3_600 + "]",
    "{" + "0b" + "1" * 20_000 + ": 1}",
    "x=0x" + "f" * 3_600,
    "9" * 65_000,
    "1e" + "9" * 60_000,
    "0." + "0" * 60_000 + "1",
    "'" + "\\" * 65_001 + "'",
    "'" * 65_001,
    "(" * 65_001,
    "-" * 65_001,
    "#" * 65_001,
    "[" + "(" * 99 + ")" * 99 + "],",
    "\ud800" * 100,
    "\x00" * 100,
    "\u202e'\u202e'",
    "{" + ", ".join(f"({i},)" for i in range(5_000)) + "}",
)


@pytest.fixture(autouse=True)
def faults() -> Iterator[None]:
    guard.faults.clear()
    yield
    assert not guard.faults


def task(kind: str, code: str = SAME) -> Task:
    pairs = tuple(str(i) for i in range(10)) if kind == "code_f" else ("1",)
    return Task("t", "T", "S", kind, code, pairs, pairs, num_shown=5 if kind == "code_f" else 0)  # type: ignore[arg-type]


def test_no_answer_makes_the_judge_raise(verifier: Sandbox) -> None:
    pairs = [(task(kind), text) for kind in KINDS for text in HOSTILE]
    grades = grade_all(pairs, verifier)
    assert {grade.verdict for grade in grades} <= {"unparsable", *VERDICTS} - {"infra"}
    assert not any(grade.lost for grade in grades)
    right = {text for (t, text), grade in zip(pairs, grades, strict=True) if grade.correct and t.kind == "code_o"}
    assert right == {text for text in HOSTILE if text in ("1", "(1)", "# a\n1", "1 # a", "\t1", "\f1")}


def test_no_proposal_makes_the_judge_raise(verifier: Sandbox) -> None:
    several = tuple(str(i) for i in range(9))
    proposals = [
        Candidate("p", "T", "S", kind, text, SAME, inputs=(*several, text) if kind == "code_f" else (text,))
        for kind in ("code_o", "code_f")
        for text in HOSTILE
    ]
    proposals += [Candidate("p", "T", "S", "code_i", text, text, inputs=("1",)) for text in HOSTILE]
    found = check_all(proposals, verifier)
    assert len(found) == len(proposals)
    assert "infra" not in {one.reason for one in found if isinstance(one, Rejection)}


def test_no_program_makes_the_judge_raise(verifier: Sandbox) -> None:
    results = verifier.run([Program("p", f"def f(x):\n    return {text}\n", (text,)) for text in HOSTILE])
    assert "infra" not in {result.verdict for result in results}
    for text in HOSTILE:
        normalise(f"def f(x):\n    return {text}\n")
        with contextlib.suppress(ValueError):  # it does not parse
            measure(f"def f(x):\n    return {text}\n")


def test_no_text_makes_a_prompt_format_raise() -> None:
    marks = (
        "",
        "<answer>",
        "</answer>",
        "<think>",
        "</think>",
        "```",
        "```input\n",
        "```python\n",
        "<|in|>",
        "<|out|>",
    )
    given = task("code_o")
    for text in HOSTILE:
        for before in marks:
            for prompts in (PromptFormat(FRAMES["chat"]), PromptFormat(FRAMES["compact"])):
                for kind in KINDS:
                    prompts.parse_answer(kind, f"{before}{text}\n```</answer>")
                    prompts.parse_proposal(kind, f"{before}{text}\n```\n```message\nm\n```", given)


def test_no_value_of_a_program_makes_the_unit_tests_raise() -> None:
    tests = "assert candidate(1) == 1\nassert candidate(1.0) == 1\n"
    with UnitTester(workers=1) as tester:
        grades = tester.grade([UnitTest("u", f"def f(x):\n    return {text}\n", tests, "f") for text in ATOMS])
    assert not any(grade.lost for grade in grades)


@pytest.mark.parametrize("part", ["not ", "- ", "~", "+"])
def test_every_task_can_be_measured_from_however_deep_a_stack(verifier: Sandbox, part: str) -> None:
    def deeper(num_frames: int, code: str) -> object:
        return deeper(num_frames - 1, code) if num_frames else measure(code)

    lengths = [80, 96, 990, 2_000, *range(2_700, 3_000, 20)]
    codes = [f"def f(x):\n    return {part * length}x\n" for length in lengths]
    found = check_all([Candidate("p", "T", "S", "code_o", "", code, ("1",)) for code in codes], verifier)
    tasks = [one for one in found if isinstance(one, Task)]
    assert 0 < len(tasks) < len(lengths)
    for one in tasks:
        deeper(400, one.code)


def test_an_integer_is_bounded_by_its_value_in_whatever_base_it_is_written() -> None:
    largest = 10**4300 - 1
    for written in (str(largest), hex(largest), oct(largest), bin(largest), "0x" + "0" * 5_000 + hex(largest)[2:]):
        assert canonical(written) == str(largest)
        assert canonical("-" + written) == str(-largest)
    for beyond in (hex(largest + 1), oct(largest + 1), bin(largest + 1), "1" + "0" * 4300, "0x" + "f" * 3600):
        for text in (beyond, f"-{beyond}", f"[{beyond}]", f"{{{beyond}: 1}}", f"+({beyond})"):
            with pytest.raises(LiteralError) as refused:
                canonical(text)
            assert refused.value.too_large


def test_a_fault_of_ours_becomes_one_verdict_and_is_counted() -> None:
    def broken() -> str:
        raise ZeroDivisionError

    def broken_jobs() -> Generator[Job, Run, str]:
        yield from ()
        raise ZeroDivisionError

    with TestCase().assertLogs(level="ERROR") as logs:
        found = [guard.guarded("here", broken, lambda detail: detail) for _ in range(3)]
        with pytest.raises(StopIteration) as stopped:
            next(guard.guarded_jobs("there", broken_jobs(), lambda detail: detail))
    assert found == ["the judge failed on it (ZeroDivisionError)"] * 3
    assert stopped.value.value == found[0]
    assert guard.faults == {"here: ZeroDivisionError": 3, "there: ZeroDivisionError": 1}
    assert len(logs.records) == 2  # each kind once
    guard.faults.clear()


@pytest.mark.parametrize("error", [UserError("the user's"), OSError("the machine's")])
def test_what_is_no_fault_of_the_judge_passes_the_guard(error: Exception) -> None:
    def raise_it() -> str:
        raise error

    with pytest.raises(type(error)):
        guard.guarded("here", raise_it, lambda detail: detail)


@pytest.mark.slow
def test_no_program_of_the_hostile_corpus_needs_the_guard(bare_verifier: Sandbox) -> None:
    rows = read_lines(DATA / "hostile" / "programs.jsonl")
    bare_verifier.run([Program(str(r["id"]), str(r["code"]), (str(r.get("input", "")),)) for r in rows])
