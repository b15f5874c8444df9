"""The domain of proofs: a teacher states a lemma of propositional calculus, a student proves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from redqueen.domains.domain import Domain, Shown, TaskKind, plain_task
from redqueen.domains.rows import load_frozen
from redqueen.records import Task
from redqueen_proofs import measures, prompts_chat, prompts_compact
from redqueen_proofs.calculus import read_proof
from redqueen_proofs.checking import check_lemma, fault, grade_proof
from redqueen_proofs.formulas import read_lemma

SUITES = Path(__file__).parent / "suites"

LEMMA = TaskKind(
    name=prompts_compact.KIND,
    shown=Shown(
        "proof_lemma (prove a lemma)",
        "The student sees the hypotheses and the goal, and is asked for a proof.",
        "{}{}",
    ),
    words={"compact": prompts_compact.WORDS, "chat": prompts_chat.WORDS},
    check=check_lemma,
    grade=grade_proof,
    gold=lambda task: task.outputs[0],
    statement=lambda task: task.code,
    normal_form=lambda task: measures.form_of(task.code),
    behaviour=lambda task: measures.form_of(task.code),
    behaviour_class=measures.sort_of,
    size_class=measures.size_of,
    measure=measures.measure,
)


def read_task(name: str, kind: str, fields: Mapping[str, object]) -> Task:
    """Read a task's plain fields: ``code`` (the lemma) and, optionally, ``output`` (a proof of it).

    Raises ValueError for an invalid task.
    """
    task = plain_task(name, kind, fields)
    lemma = read_lemma(task.code)
    for proof in task.outputs:
        if fault(lemma, tuple(read_proof(proof, len(lemma.hypotheses)))):
            raise ValueError('the field "output" is no proof of the lemma')
    return task


SEED = Task("seed", "seed", "", LEMMA.name, "p, p>q |- q", ("",), ("mp 1 2",))
PROOFS = Domain("proofs", (LEMMA,), SEED, lambda: load_frozen(SUITES, LEMMA.name), read_task)
