"""A million texts: the judge reads what Python reads, to the same value, and never raises (see ``fuzzing.py``)."""

import ast
import contextlib
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from fuzzing import a_text, mutated, seeds
from verify_data import honest_programs

from redqueen.domains import own
from redqueen.domains.code.calls import distinct_calls
from redqueen.domains.code.values import value_of
from redqueen.domains.maths.answers import compare_texts
from redqueen.domains.maths.notation import final_answer, states_answer
from redqueen.domains.registry import grade as grade_all
from redqueen.evaluate.livecode import same_output
from redqueen.records import Task
from redqueen_sandbox import Program, Sandbox, guard
from redqueen_sandbox.inside.encode import NotPlain, TooLarge, encode
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args
from redqueen_sandbox.records import VERDICTS

NUM_TEXTS = 1_000_000
NUM_PROGRAMS = 20_000
_ROUND_IT = re.compile(r"\A(?:[ \t\r\n\f]|#[^\r\n]*[\r\n])+|[ \t\r\n\f]+\Z")
_REFUSED = re.compile(r"[0-9.][jJ]|\.\.\.|\\[\r\n]")
_REASONS = {"a float that is not finite", "a string escape that is not read here", "bytes are no part of a task"}
"""What Python reads and the judge refuses, beside what is too large: the first lines of ``literals.py`` list it."""


def read_by_python(text: str) -> object:
    text.encode()  # ValueError for half a character, wherever it stands, as in Python's own reader
    return ast.literal_eval(_ROUND_IT.sub("", text) if "\0" not in text else text)


def check_text(text: str) -> str:
    """Compare the two readers on one text. Returns how it went; raises AssertionError where they differ."""
    ours, why = None, LiteralError("")
    try:
        ours = canonical(text)
    except LiteralError as error:
        why = error
    try:
        theirs = encode(read_by_python(text), 1 << 22)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if ours is None:
            return "refused by both"
        assert "frozenset" in text, text
        return "a frozen set"
    except (NotPlain, TooLarge):
        assert ours is None, text
        return "no plain value"
    if ours is None:
        assert why.too_large or str(why) in _REASONS or _REFUSED.search(text), text
        return "refused by the judge"
    assert ours == theirs, text
    assert encode(value_of(ours), 1 << 22) == ours, text
    return "read by both"


def check_the_rest(text: str, other: str) -> None:
    """Everything else that the judge does with a text; none of it may raise."""
    for read in (canonical, canonical_args):
        for wide, loose in ((True, False), (True, True)):
            try:
                said = read(text, wide=wide, loose=loose)
                assert len(said) > 65_536 or read(said, wide=wide, loose=loose) == said, text
            except LiteralError:
                continue
    same_output(text, other)
    compare_texts(other, final_answer(text))
    compare_texts(text, other)
    try:
        distinct_calls(f"def f({text}):\n    pass\n", [text, other])
    except LiteralError:
        return


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
@pytest.mark.parametrize("num_texts", [2_000, pytest.param(NUM_TEXTS, marks=pytest.mark.slow)])
def test_the_judge_reads_what_python_reads_and_never_raises(num_texts: int) -> None:
    guard.faults.clear()
    rng = Random(num_texts)
    known = seeds()
    other = "5"
    how: Counter[str] = Counter(check_text(text) for text in known)
    for number in range(num_texts):
        text = a_text(rng, known)
        how[check_text(text)] += 1
        if number % 10 == 0:
            check_the_rest(text, other)
            other = text
    assert not guard.faults
    assert how["read by both"] > num_texts / 10 and len(how) == 5


UNITS = ("x", "#", "####", "#### 5", "\\boxed{", "answer: ", "so ", "<think>", "</answer>", "```\n", "(", "[1,", "'")


@pytest.mark.parametrize("unit", UNITS)
def test_the_judge_does_not_read_a_repeated_text_in_quadratic_time(unit: str) -> None:
    text = unit * (60_000 // len(unit))
    readers: list[Callable[[str], object]] = [final_answer, canonical, canonical_args, own.comparable]
    readers.append(lambda text: states_answer(text, finished=True))
    began_s = time.process_time()
    for read in readers:
        with contextlib.suppress(LiteralError):
            read(text)
    assert time.process_time() - began_s < 1  # in quadratic time: 2 to 3 s


@pytest.mark.slow
def test_mutated_programs_and_answers_get_a_verdict_each() -> None:
    guard.faults.clear()
    rng = Random(4)
    known = seeds()
    codes = [code for _, code, _ in honest_programs()]
    pairs = tuple(str(i) for i in range(10))
    task = Task("t", "T", "S", "code_f", "", pairs, pairs, num_shown=5)
    with Sandbox(workers=2) as verifier, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(NUM_PROGRAMS // 200):
            texts = [mutated(rng, rng.choice(codes)) for _ in range(200)]
            results = verifier.run([Program("p", text, (a_text(rng, known),)) for text in texts])
            assert {result.verdict for result in results} <= set(VERDICTS) - {"infra"}
            assert not any(grade.lost for grade in grade_all([(task, text) for text in texts[:50]], verifier))
    assert not guard.faults
