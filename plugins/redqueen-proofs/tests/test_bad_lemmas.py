"""Lemmas that are none, and proofs that only look right: each is refused or graded right, in bounded work."""

import pytest

from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import check, grade
from redqueen.records import Candidate, Rejection, Task
from redqueen_proofs.kinds import LEMMA
from redqueen_sandbox import Sandbox
from redqueen_sandbox.guard import faults

FALSE = [
    "|- p",
    "|- ~p",
    "|- p>q",
    "p |- q",
    "p>q |- q",
    "p>q, q |- p",
    "p>q, ~p |- ~q",
    "~(p>q) |- q",
    "|- (p>q)>q>p",
    "|- (p>q>r)>p>r",
    "|- ((p>q)>p)>q",
    "p>q, q>r |- r>p",
    "~p>~q |- p>q",
    "p>~q, q>~p |- ~p",
    "|- ~(p>p)",
    "|- (((p>q)>r)>s)>t",
]
NO_LEMMA = [
    "",
    "p",
    "p, q",
    "|-",
    "p |- ",
    "p, |- p",
    ", p |- p",
    "p |- q |- r",
    "|- P>P",
    "|- p1>p1",
    "|- pq>pq",
    "|- p>",
    "|- >p",
    "|- p>>p",
    "|- (p>p",
    "|- p>p)",
    "|- ()",
    "|- ~",
    "|- p~",
    "|- p q",
    "|- p & q",
    "|- p -> -> p",
    "|- p>p;",
    "|- p\x00>p",
    "|- р>р",  # Cyrillic
    "|- p＞p",
    "|- 1",
    "a, b, c, d, e, f |- g>g",
    "p,p,p,p,p,p,p,p,p,p |- q>p",
    "|- " + "~" * 40 + "p>p",
    "|- " + "(" * 40 + "p" + ")" * 40,
    "|- " + "p>" * 40 + "p",
    "|- " + "p>" * 600 + "p",
    "$[ /etc/passwd $]",
    "|- __import__('os')",
    "|- p>p $. evil $a |- q $.",
    "p |- p $= mp $.",
]
TRIVIAL = ["p |- p", "p>q, p |- p>q", "~~p |- ~~p"]


def judged(texts: list[str], verifier: Sandbox, proof: str = "") -> list[str]:
    before = dict(faults)
    made = [Candidate(str(at), "T", "S", LEMMA.name, "", text, (proof,)) for at, text in enumerate(texts)]
    found = check(made, verifier)
    assert dict(faults) == before  # none of them made the judge itself fail
    return [one.reason if isinstance(one, Rejection) else "task" for one in found]


@pytest.fixture(scope="module")
def verifier():
    with Sandbox(workers=1) as opened:
        yield opened


def test_what_does_not_follow_is_refused_whatever_proof_comes_with_it(verifier):
    assert judged(FALSE, verifier) == judged(FALSE, verifier, "ax1, ax1, mp 1 2") == ["false"] * len(FALSE)


def test_what_is_no_lemma_is_refused(verifier):
    assert judged(NO_LEMMA, verifier) == ["syntax"] * len(NO_LEMMA)


def test_a_goal_that_is_assumed_is_refused(verifier):
    assert judged(TRIVIAL, verifier) == ["trivial"] * len(TRIVIAL)


LAW = "|- (p>q)>(q>r)>p>r"


def test_a_true_lemma_needs_a_proof_that_somebody_has(verifier):
    assert judged([LAW], verifier) == ["unproved"] == judged([LAW], verifier, "ax2, ax1")
    assert judged([LAW], verifier, "ax1, ax2, syl 1 2") == ["unproved"]  # (q>r)>(p>q)>p>r, the other way round
    assert judged([LAW], verifier, "ax1, ax2, syl 1 2, com 3") == ["task"]
    assert judged(["|- p>p"], verifier, "no proof at all") == ["task"]  # the search has one


def test_a_compact_proposal_that_cannot_be_read_says_so():
    compact = PromptFormat(FRAMES["compact"])
    for text in ("", "1 p", "1 p\n2 q", "mp 1 2", "? p\n1 p", "1 p\n<|ref|>", "x" * 5000, "1 p\nmp 1: 2"):
        assert compact.parse_proposal(LEMMA.name, text, None).error, text


TASK = Task("1", "", "", LEMMA.name, "p, p>q, q>r |- r", ("",), ("mp 1 2, mp 4 3",))
RIGHT = [
    "mp 1 2, mp 4 3",
    "syl 2 3, mp 1 4",
    "mp 1 2\nmp 4 3",
    " mp 1 2 ,mp 4 3 ,",
    "id, mp 1 2, mp 5 3",
    "mp 1 2, wk 4, mp 4 3",
]
WRONG = [
    "mp 2 1, mp 4 3",
    "mp 1 2",
    "mp 1 3",
    "syl 2 3",
    "syl 3 2, mp 1 4",
    "ax1, mp 1 4",
    "mp 1 2, mp 4 3, wk 5",
    "dni 1, dne 4",
    "red 2, mp 1 4",
    "ctr 2, mp 1 4",
    "id, mp 4 4, mp 5 5",
    ", ".join(["dni 1"] + [f"dni {number}" for number in range(4, 50)]),
]
UNREADABLE = [
    "",
    ",",
    "r",
    "qed",
    "mp",
    "mp 1",
    "mp 1 2 3",
    "mp 1 5",
    "mp 0 1",
    "mp -1 2",
    "mp 4 3, mp 1 2",
    "mp 1 2. mp 4 3",
    "MP 1 2, MP 4 3",
    "mp １ 2, mp 4 3",
    "mp 1 2 # mp 4 3",
    "ax4",
    "wn wi",
    "mp 1 2, mp 4 3 $.",
    "sorry",
    "mp 001 2, mp 4 3",
    ", ".join(["id"] * 61),
    "id, " * 3000,
]


def test_any_proof_of_the_lemma_is_right(verifier):
    assert [one.correct for one in grade([(TASK, answer) for answer in RIGHT], verifier)] == [True] * len(RIGHT)


def test_proofs_that_only_look_right_are_wrong(verifier):
    found = grade([(TASK, answer) for answer in WRONG], verifier)
    assert [(one.correct, one.verdict) for one in found] == [(False, "ok")] * len(WRONG)
    assert all(one.detail for one in found)


def test_what_is_no_proof_is_wrong_and_unreadable(verifier):
    found = grade([(TASK, answer) for answer in UNREADABLE], verifier)
    assert [(one.correct, one.verdict) for one in found] == [(False, "unparsable")] * len(UNREADABLE)


def test_there_are_enough_of_them():
    assert len(FALSE + NO_LEMMA + TRIVIAL + WRONG + UNREADABLE) >= 75


def test_unifying_ends_in_bounded_work_where_formulas_would_double_at_each_step(verifier):
    doubling = ["ax2", "ax2"] + [f"syl {number} {number}" for number in range(2, 40)]
    swallowing = ["id"] + [f"mp {number} {number}" for number in range(1, 40)]
    growing = ["ax1"] + [step for number in range(1, 58, 2) for step in (f"wk {number}", f"con {number + 1}")]
    theorem = Task("2", "", "", LEMMA.name, "|- p>p", ("",), ("id",))
    answers = [", ".join(steps) for steps in (doubling, swallowing, growing)]
    found = grade([(theorem, answer) for answer in answers], verifier)
    assert [(one.correct, one.verdict) for one in found] == [(False, "ok")] * 3
