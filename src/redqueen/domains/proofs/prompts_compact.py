"""Lemmas in the compact format of the embedded base: hypotheses as numbered lines, the goal behind a question mark.

::

    solve      BOS 1 p \\n 2 p>q \\n ? q ASK proof_lemma OUT  ->  [THINK mp 1 2: 3 q /THINK] mp 1 2 EOS
    propose    BOS REF lines ... NEW proof_lemma OUT         ->  1 p \\n 2 p>q \\n mp 1 2: 3 q EOS

A teacher writes a derivation; its last line is the lemma's goal, and its steps are the proof that it has in mind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from redqueen.config import VerifyConfig
from redqueen.domains.compact import REF, asked, has_mark, new, without_marks
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.proofs.calculus import Line, read_proof, unfold
from redqueen.domains.proofs.formulas import Lemma, read_lemma, write_formula
from redqueen.nouns import Task

KIND = "proof_lemma"
_LINE = re.compile(r"(?:([a-z]+[0-9]?(?: [0-9]{1,2})*): )?(?:[0-9]{1,2}|(\?)) (.+)", re.ASCII)


def question(lemma: Lemma) -> str:
    """Return a lemma as a student sees it."""
    return "\n".join([*hypothesis_lines(lemma), f"? {write_formula(lemma.goal)}"])


def hypothesis_lines(lemma: Lemma) -> list[str]:
    """Return the numbered hypotheses."""
    return [f"{number} {write_formula(formula)}" for number, formula in enumerate(lemma.hypotheses, start=1)]


def step_lines(lines: Sequence[Line]) -> list[str]:
    """Return the lines of an unfolded proof that are steps: rule, lines used, number and formula."""
    return [
        f"{' '.join((line.step.rule, *map(str, line.step.uses)))}: {number} {write_formula(line.formula)}"
        for number, line in enumerate(lines, start=1)
        if line.step
    ]


def derivation(lemma: Lemma, lines: Sequence[Line]) -> str:
    """Return a lemma with its proof, as a teacher writes it."""
    return "\n".join([*hypothesis_lines(lemma), *step_lines(lines)])


def _propose(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    return "".join(REF + without_marks(_derivation(task)) for task in references) + new(KIND)


def _derivation(task: Task) -> str:
    lemma = read_lemma(task.code)
    return derivation(lemma, unfold(lemma, read_proof(task.outputs[0], len(lemma.hypotheses))))


def _solve(task: Task) -> str:
    return without_marks(question(read_lemma(task.code))) + asked(KIND)


def _read_proposal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read numbered hypotheses, steps, and the goal: behind a question mark, else the last step's formula."""
    if has_mark(text):
        return ParsedProposal(error="a mark where text should be")
    hypotheses: list[str] = []
    steps: list[str] = []
    goal = ""
    for line in text.strip().split("\n"):
        found = _LINE.fullmatch(line.strip())
        if found is None:
            return ParsedProposal(error="a line that is neither a hypothesis nor a step")
        step, asks, formula = found.groups()
        if step or asks:
            goal = formula
            steps += [step] if step else []
        elif goal:
            return ParsedProposal(error="a hypothesis behind a step")
        else:
            hypotheses.append(formula)
    if not goal:
        return ParsedProposal(error="nothing to prove")
    return ParsedProposal(f"{', '.join(hypotheses)} |- {goal}".strip(), (", ".join(steps),))


WORDS = Words(_propose, _solve, _read_proposal, str.strip)
