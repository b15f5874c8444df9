"""The domain of proofs: a teacher states a lemma of propositional calculus, a student proves it."""

from __future__ import annotations

from redqueen.config import VerifyConfig
from redqueen.domains.domain import Domain, Shown, TaskKind
from redqueen.domains.proofs import prompts_compact
from redqueen.domains.proofs.calculus import ProofError, read_proof, unfold, write_proof
from redqueen.domains.proofs.formulas import LemmaError, follows, read_lemma, write_lemma
from redqueen.domains.proofs.lessons import SEED_LEMMA, SEED_PROOF, lessons
from redqueen.domains.proofs.normal import normal_form
from redqueen.nouns import Candidate, Grade, Rejection, Task
from redqueen.verify.programs import Rules


def check(candidate: Candidate, rules: Rules, terms: VerifyConfig) -> Task | Rejection:
    """Read a lemma and decide it by its truth table; a task has a proof that is known."""
    try:
        lemma = read_lemma(candidate.code)
    except LemmaError as error:
        return Rejection(candidate, "unparsable", str(error))
    if not follows(lemma):
        return Rejection(candidate, "false", "the goal does not follow")
    try:
        steps = read_proof(candidate.inputs[0] if candidate.inputs else "", len(lemma.hypotheses))
        unfold(lemma, steps)
    except ProofError as error:
        return Rejection(candidate, "unproved", str(error))
    head = (candidate.id, candidate.teacher, candidate.student, candidate.kind)
    return Task(*head, write_lemma(lemma), inputs=("",), outputs=(write_proof(steps),))


def grade(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a proof: any that proves the lemma is right."""
    lemma = read_lemma(task.code)
    try:
        steps = read_proof(answer, len(lemma.hypotheses))
    except ProofError as error:
        return Grade(False, "unparsable", str(error))
    try:
        unfold(lemma, steps)
    except ProofError as error:
        return Grade(False, "ok", str(error))
    return Grade(True, "ok")


PROOF = TaskKind(
    name=prompts_compact.KIND,
    shown=Shown(
        "proof_lemma (prove a lemma)",
        "The student sees the hypotheses and the goal, and is asked for a proof.",
        "How is it proved? (rules and the lines that they are used on: mp 1 2, syl 3 4)",
        "{}{}",
        "for example {}",
    ),
    words={"compact": prompts_compact.WORDS},
    check=check,
    grade=grade,
    gold=lambda task: task.outputs[0],
    statement=lambda task: task.code,
    normal_form=lambda task: normal_form(read_lemma(task.code)),
    behaviour=lambda task: normal_form(read_lemma(task.code)),
)

SEED = Task("seed", "seed", "", PROOF.name, SEED_LEMMA, ("",), (SEED_PROOF,))
PROOFS = Domain("proofs", (PROOF,), SEED, lessons=lessons)
