"""Check proposals: a lemma must be true and have a known proof. Grade students' proofs.

All of this is bounded work on text by our own code, without libraries or evaluation, so it needs no sandbox; the
reasons and the worst cases are in ``docs/domains/proofs.md``.
"""

from __future__ import annotations

from redqueen.config import VerifyConfig
from redqueen.domains.domain import task_of
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen_proofs.calculus import ProofError, Step, read_proof, unfold, write_proof
from redqueen_proofs.database import verify_lines
from redqueen_proofs.formulas import Lemma, LemmaError, follows, read_lemma, write_lemma
from redqueen_proofs.search import search
from redqueen_sandbox.programs import Rules


def check_lemma(candidate: Candidate, rules: Rules, terms: VerifyConfig) -> Task | Rejection:
    """Verify one candidate: the lemma must be true by its truth table and have a known proof, the teacher's or one that
    a bounded search finds. The task gets the shorter of the two.
    """
    try:
        text = write_lemma(read_lemma(candidate.code))
        lemma = read_lemma(text)  # the limits apply to the text that students see
    except LemmaError as error:
        return Rejection(candidate, "syntax", str(error))
    if lemma.goal in lemma.hypotheses:
        return Rejection(candidate, "trivial", "the goal is a hypothesis")
    if not follows(lemma):
        return Rejection(candidate, "false", "the goal does not follow")
    proofs = [steps for steps in (_given(lemma, candidate.inputs), search(text).steps) if steps]
    proofs = [steps for steps in proofs if not fault(lemma, steps)]
    if not proofs:
        return Rejection(candidate, "unproved", "true, but no proof is given that is right, and none was found")
    return task_of(
        candidate,
        code=text,
        outputs=(write_proof(min(proofs, key=len)),),
        protection=rules.protection,
    )


def _given(lemma: Lemma, inputs: tuple[str, ...]) -> tuple[Step, ...] | None:
    try:
        return tuple(read_proof(inputs[0] if inputs else "", len(lemma.hypotheses)))
    except ProofError:
        return None


def fault(lemma: Lemma, steps: tuple[Step, ...]) -> str:
    """Return why the steps are not a proof of the lemma, or "": they must unfold, and the result must verify."""
    try:
        verify_lines(lemma, unfold(lemma, steps))
    except ProofError as error:
        return str(error)
    return ""


def grade_proof(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a proof: any proof of the lemma is right."""
    lemma = read_lemma(task.code)
    try:
        steps = tuple(read_proof(answer, len(lemma.hypotheses)))
    except ProofError as error:
        return Grade(False, "unparsable", str(error))
    found = fault(lemma, steps)
    return Grade(not found, "ok", found)
