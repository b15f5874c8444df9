"""How hard a lemma is, by the search for its proof and the length of the one that is known; what sort it is."""

from __future__ import annotations

from functools import lru_cache

from redqueen.records import Task
from redqueen_proofs.calculus import read_proof
from redqueen_proofs.formulas import Formula, read_lemma, size
from redqueen_proofs.normal import normal_form
from redqueen_proofs.search import search


def measure(task: Task) -> dict[str, float]:
    """Return what the search did, whether it found a proof, and how long lemma and proof are."""
    lemma = read_lemma(task.code)
    found = search(task.code)
    return {
        "hypotheses": float(len(lemma.hypotheses)),
        "symbols": float(sum(size(formula) for formula in (*lemma.hypotheses, lemma.goal))),
        "proof_steps": float(len(read_proof(task.outputs[0], len(lemma.hypotheses)))),
        "search_lines": float(found.num_lines),
        "search_rounds": float(found.num_rounds),
        "search_failed": float(found.steps is None),
    }


def sort_of(task: Task) -> str:
    """Return the sort of a lemma: ``proof_lemma entailment implication mp+syl``, its rules those of the known proof."""
    lemma = read_lemma(task.code)
    steps = read_proof(task.outputs[0], len(lemma.hypotheses))
    form = "entailment" if lemma.hypotheses else "theorem"
    return f"{task.kind} {form} {_shape(lemma.goal)} {'+'.join(sorted({step.rule for step in steps}))}"


def size_of(task: Task) -> str:
    """Return what makes a lemma long: its hypotheses, and the octave (power of two) of its symbols."""
    lemma = read_lemma(task.code)
    symbols = sum(size(formula) for formula in (*lemma.hypotheses, lemma.goal))
    return f"{task.kind} hypotheses {len(lemma.hypotheses)} symbols {symbols.bit_length()}"


@lru_cache(maxsize=4096)
def form_of(text: str) -> str:
    """Return the normal form of a lemma's text."""
    return normal_form(read_lemma(text))


def _shape(formula: Formula) -> str:
    return {"~": "negation", ">": "implication"}.get(formula[0], "variable")
