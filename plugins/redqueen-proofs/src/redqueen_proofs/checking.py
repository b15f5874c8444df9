"""From a proposal to a lemma that is true and proved, and whether a student's proof is one.

All of it is bounded work on texts by our own code, with no library and nothing evaluated, so it needs no sandbox: the
reasons and the worst cases stand in ``docs/domains/proofs.md``.
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
    """Verify one candidate: its truth table decides the lemma, and a proof of it is known: the teacher's own, if it
    gave one, or one that a bounded search finds; the shorter of the two stands with the task.
    """
    try:
        text = write_lemma(read_lemma(candidate.code))
        lemma = read_lemma(text)  # the limits hold for a lemma as it is asked, blanks and all
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
    """Return why steps are no proof of a lemma, or "": they must unfold, and the result must verify."""
    try:
        verify_lines(lemma, unfold(lemma, steps))
    except ProofError as error:
        return str(error)
    return ""


def grade_proof(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a proof: any that proves the lemma is right."""
    lemma = read_lemma(task.code)
    try:
        steps = tuple(read_proof(answer, len(lemma.hypotheses)))
    except ProofError as error:
        return Grade(False, "unparsable", str(error))
    found = fault(lemma, steps)
    return Grade(not found, "ok", found)
