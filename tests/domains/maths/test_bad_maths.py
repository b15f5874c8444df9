"""Everything in the corpus of bad statements, texts and answers gets the verdict it deserves, from the real sandbox."""

import pytest
from bad_maths import ANSWERS, STATEMENTS, WORD_PROBLEMS

from redqueen.domains.registry import check, grade
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Sandbox


def candidate(name: str, kind: str, code: str, message: str = "") -> Candidate:
    return Candidate(name, "T1", "S1", kind, "", code, message=message)


def task(gold: str) -> Task:
    return Task("t", "T1", "S1", "maths_formal", "1 + 1", ("",), (gold,))


def test_no_bad_statement_becomes_a_task(verifier: Sandbox) -> None:
    judged = check([candidate(str(n), "maths_formal", code) for n, (code, _) in enumerate(STATEMENTS)], verifier)
    wrong = {
        code: verdict
        for (code, reason), verdict in zip(STATEMENTS, judged, strict=True)
        if not (isinstance(verdict, Rejection) and verdict.reason == reason and verdict.detail)
    }
    assert wrong == {}


def test_the_bound_of_a_range_may_be_the_answer(verifier: Sandbox) -> None:
    (found,) = check([candidate("bound", "maths_formal", "x where x in 5..9, x > 8")], verifier)
    assert isinstance(found, Task) and found.outputs == ("9",)


def test_no_text_that_disagrees_with_its_twin_becomes_a_task(verifier: Sandbox) -> None:
    proposals = [candidate(str(n), "maths_word", code, text) for n, (text, code) in enumerate(WORD_PROBLEMS)]
    judged = check(proposals, verifier)
    wrong = {
        text: verdict
        for (text, _), verdict in zip(WORD_PROBLEMS, judged, strict=True)
        if not (isinstance(verdict, Rejection) and verdict.reason == "disagreement" and verdict.detail)
    }
    assert wrong == {}


def test_answers_that_only_look_equal_are_wrong_and_equal_ones_are_right(verifier: Sandbox) -> None:
    grades = grade([(task(gold), answer) for gold, answer, _ in ANSWERS], verifier)
    wrong = [
        (gold, answer, one)
        for (gold, answer, right), one in zip(ANSWERS, grades, strict=True)
        if one.correct is not right or one.lost
    ]
    assert wrong == []


def test_what_only_the_limits_stop_is_stopped(verifier: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redqueen.domains.maths.checking.KILL_CPU_MS", 25)
    (verdict,) = check([candidate("slow", "maths_formal", "sum(j in 1..1000, sum(k in 1..1000, j*k))")], verifier)
    assert isinstance(verdict, Rejection) and (verdict.reason, verdict.detail) == ("timeout", "cpu or memory")


def test_the_corpus_is_as_large_as_it_claims() -> None:
    assert len(STATEMENTS) + len(WORD_PROBLEMS) + len(ANSWERS) >= 150
