"""Lemmas in the compact format of the embedded base: hypotheses as numbered lines, the goal behind a question mark.

::

    solve      BOS 1 p \\n 2 p>q \\n ? q ASK proof_lemma OUT  ->  [THINK mp 1 2: 3 q /THINK] mp 1 2 EOS
    propose    BOS REF lines ... NEW proof_lemma OUT         ->  1 p \\n 2 p>q \\n mp 1 2: 3 q EOS

A teacher writes a derivation. Its longest valid beginning counts, whose last line is the lemma's goal. Like a program's
output, the goal is computed from the steps; the written formula only fills in what they leave open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from redqueen.config import VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import REF, asked, has_mark, new
from redqueen.records import Task
from redqueen_proofs.calculus import Line, ProofError, Step, conclude, read_proof, unfold
from redqueen_proofs.formulas import Formula, Lemma, LemmaError, read_formula, read_lemma, write_formula

KIND = "proof_lemma"
MAX_STEPS_SHORTENED = 12
"""A longer derivation, which the embedded base is not trained to write, is used unchanged (ours)."""
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
    return "".join(REF + _derivation(task) for task in references) + new(KIND)


def _derivation(task: Task) -> str:
    lemma = read_lemma(task.code)
    return derivation(lemma, unfold(lemma, read_proof(task.outputs[0], len(lemma.hypotheses))))


def _solve(task: Task) -> str:
    return question(read_lemma(task.code)) + asked(KIND)


def _read_proposal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read numbered hypotheses, then steps or the goal behind a question mark."""
    if has_mark(text):
        return ParsedProposal(error="a mark where text should be")
    hypotheses: list[str] = []
    steps: list[str] = []
    goals: list[str] = []
    for line in text.strip().split("\n"):
        found = _LINE.fullmatch(line.strip())
        if found is None:
            return ParsedProposal(error="a line that is neither a hypothesis nor a step")
        step, asks, formula = found.groups()
        if step or asks:
            goals.append(formula)
            steps += [step] if step else []
        elif goals:
            return ParsedProposal(error="a hypothesis behind a step")
        else:
            hypotheses.append(formula)
    if not goals:
        return ParsedProposal(error="nothing to prove")
    goal, num_steps = goals[-1], len(steps)
    if len(goals) == len(steps):
        goal, num_steps = _longest_valid_part(hypotheses, steps, goals)
    return ParsedProposal(f"{', '.join(hypotheses)} |- {goal}".strip(), (", ".join(steps[:num_steps]),))


def _longest_valid_part(hypotheses: list[str], steps: list[str], goals: list[str]) -> tuple[str, int]:
    """Return the goal and the number of steps of the longest beginning of a derivation that proves something new;
    without one, or with too many steps, the formula of the last line and all steps."""
    if len(steps) > MAX_STEPS_SHORTENED:
        return goals[-1], len(steps)
    try:
        given = tuple(map(read_formula, hypotheses))
    except LemmaError:
        return goals[-1], len(steps)
    for num in range(len(steps), 0, -1):
        try:
            read = read_proof(", ".join(steps[:num]), len(given))
            formula = _conclusion(given, read, goals[num - 1])
        except (LemmaError, ProofError):
            continue
        if formula not in given:
            return write_formula(formula), num
    return goals[-1], len(steps)


def _conclusion(hypotheses: tuple[Formula, ...], steps: list[Step], written: str) -> Formula:
    """Return the written formula if it is an instance of the steps' conclusion, else their most general conclusion."""
    try:
        return unfold(Lemma(hypotheses, read_formula(written)), steps)[-1].formula
    except (LemmaError, ProofError):
        return conclude(steps, hypotheses)[-1].formula


WORDS = Words(_propose, _solve, _read_proposal, str.strip)
