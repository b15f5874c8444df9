"""Whatever a model writes, reading, checking and grading end with a verdict, and the judge's guard is never needed."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.records import Candidate, Task
from redqueen_proofs.checking import check_lemma, grade_proof
from redqueen_proofs.formulas import LemmaError, follows, read_lemma, write_lemma
from redqueen_proofs.kinds import LEMMA
from redqueen_proofs.metamath import MetamathError, verify
from redqueen_sandbox.programs import Rules
from redqueen_sandbox.records import Limits

RULES = Rules(Limits(), 2, "full")


def texts_of(pieces: list[str], most: int) -> st.SearchStrategy[str]:
    """Texts of pieces of a language, with other signs among them now and then."""
    return st.lists(st.sampled_from(pieces) | st.text(max_size=3), max_size=most).map("".join)


LEMMAS = texts_of(["p", "q", "r", ">", "~", "(", ")", " |- ", ", ", "p>q", "p |- "], 12)
PROOFS = texts_of(["mp 1 2", "syl 1 2", "wk 1", "id", "ax1", "ax2", "con 1", "mpd 2 3", ", ", " ", "3", "\n"], 16)
TASK = Task("1", "", "", LEMMA.name, "p>q, q>p |- p>p", ("",), ("id",))


@settings(max_examples=300, deadline=None)
@given(LEMMAS, PROOFS)
def test_a_lemma_and_its_proof_are_judged(text: str, proof: str) -> None:
    found = check_lemma(Candidate("1", "T", "S", LEMMA.name, "", text, (proof,)), RULES, None)  # type: ignore[arg-type]
    assert not isinstance(found, Task) or grade_proof(found, found.outputs[0], RULES).correct
    assert isinstance(grade_proof(TASK, proof, RULES).correct, bool)
    try:
        lemma = read_lemma(text)
    except LemmaError as refusal:
        assert str(refusal)
        return
    assert read_lemma(write_lemma(lemma)) == lemma
    assert not isinstance(found, Task) or follows(lemma)


@settings(max_examples=200, deadline=None)
@given(texts_of(["<|in|>", "<|ref|>", "<think>", "</think>", "<answer>", "```lemma\n", "```", "\n", "1 p"], 12))
def test_prompts_answers_are_read_without_an_exception(text: str) -> None:
    for prompt_format in (PromptFormat(FRAMES["compact"]), PromptFormat(FRAMES["chat"])):
        prompt_format.parse_proposal(LEMMA.name, text, None)
        prompt_format.parse_answer(LEMMA.name, text)


@settings(max_examples=200, deadline=None)
@given(
    texts_of(
        ["$c ", "$v ", "$f ", "$e ", "$a ", "$p ", "$= ", "$. ", "${ ", "$} ", "$( ", "$) ", "$d ", "a ", "b ", "x "],
        24,
    )
)
def test_a_database_is_verified_or_refused(text: str) -> None:
    with contextlib.suppress(MetamathError):
        verify(text)
