"""Difficulty measures and classes of a lemma, from the search for a proof and the known proof."""

from __future__ import annotations

from functools import lru_cache

from redqueen.records import Task
from redqueen_proofs.calculus import read_proof
from redqueen_proofs.formulas import Formula, read_lemma, size
from redqueen_proofs.normal import normal_form
from redqueen_proofs.search import search


def measure(task: Task) -> dict[str, float]:
    """Return the work and success of the search, and the lengths of lemma and proof."""
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
    """Return the class of a lemma, with the rules of its known proof: ``proof_lemma entailment implication mp+syl``."""
    lemma = read_lemma(task.code)
    steps = read_proof(task.outputs[0], len(lemma.hypotheses))
    form = "entailment" if lemma.hypotheses else "theorem"
    return f"{task.kind} {form} {_shape(lemma.goal)} {'+'.join(sorted({step.rule for step in steps}))}"


def size_of(task: Task) -> str:
    """Return the size class of a lemma: its number of hypotheses, and the bit length of its number of symbols."""
    lemma = read_lemma(task.code)
    symbols = sum(size(formula) for formula in (*lemma.hypotheses, lemma.goal))
    return f"{task.kind} hypotheses {len(lemma.hypotheses)} symbols {symbols.bit_length()}"


@lru_cache(maxsize=4096)
def form_of(text: str) -> str:
    """Return the normal form of a lemma's text."""
    return normal_form(read_lemma(text))


def _shape(formula: Formula) -> str:
    return {"~": "negation", ">": "implication"}.get(formula[0], "variable")
