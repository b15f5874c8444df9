"""The rules of proofs, and the unfolding of a student's proof into lines with formulas.

A proof is a list of steps, ``mp 1 2, syl 3 4``: a rule and the lines that it is used on. The hypotheses are lines
1, 2, ... and each step gives the next line; the last line must be the goal. A step does not state its formula: the most
general unifier determines it, over the whole proof at once (each line is one formula, as in condensed detachment
without copies). Every rule is a theorem of Łukasiewicz's three axioms and detachment; ``database.py`` proves them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from redqueen_proofs.formulas import Formula, Lemma, read_formula, size

MAX_PROOF_CHARS, MAX_STEPS, MAX_SIZE, MAX_WORK = 2_000, 60, 200, 20_000
"""Longest proof, most steps, largest formula of a line, and comparisons in unifying a proof (ours)."""
_STEP = re.compile(r"([a-z]+[0-9]?)((?: [0-9]{1,2})*)", re.ASCII)


@dataclass(frozen=True)
class Rule:
    """Premises and a conclusion in the letters x, y, z, which can be any formulas."""

    premises: tuple[Formula, ...]
    conclusion: Formula


def _rule(text: str) -> Rule:
    before, conclusion = text.split("=")
    return Rule(tuple(map(read_formula, before.split(","))) if before.strip() else (), read_formula(conclusion))


RULES: dict[str, Rule] = {
    name: _rule(text)
    for name, text in {
        "ax1": "= x>(y>x)",
        "ax2": "= (x>(y>z))>((x>y)>(x>z))",
        "ax3": "= (~x>~y)>(y>x)",
        "mp": "x, x>y = y",
        "id": "= x>x",
        "wk": "x = y>x",
        "syl": "x>y, y>z = x>z",
        "mpd": "x>y, x>(y>z) = x>z",
        "com": "x>(y>z) = y>(x>z)",
        "red": "x>(x>y) = x>y",
        "efq": "= ~x>(x>y)",
        "con": "x>y = ~y>~x",
        "ctr": "~x>~y = y>x",
        "mt": "~y, x>y = ~x",
        "dne": "~~x = x",
        "dni": "x = ~~x",
    }.items()
}
"""The axioms, detachment, and derived rules; each rule has its own letters."""


class ProofError(ValueError):
    """The text is not a proof of the lemma; the message is one short reason."""


@dataclass(frozen=True)
class Step:
    """A rule and the numbers of the lines that it is used on."""

    rule: str
    uses: tuple[int, ...]


@dataclass(frozen=True)
class Line:
    """A line of an unfolded proof: its formula, and the step that gave it (None: a hypothesis)."""

    formula: Formula
    step: Step | None = None
    substitution: tuple[tuple[str, Formula], ...] = ()
    """The formulas of the letters of the step's rule."""


def read_proof(text: str, num_hypotheses: int) -> list[Step]:
    """Read ``mp 1 2, syl 3 4``. Raises ProofError."""
    if len(text) > MAX_PROOF_CHARS:
        raise ProofError(f"longer than {MAX_PROOF_CHARS} characters")
    parts = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    if not 1 <= len(parts) <= MAX_STEPS:
        raise ProofError(f"1 to {MAX_STEPS} steps are needed")
    steps = []
    for number, part in enumerate(parts, start=num_hypotheses + 1):
        found = _STEP.fullmatch(part)
        if found is None or found.group(1) not in RULES:
            raise ProofError("a step is a rule and the lines that it is used on")
        uses = tuple(map(int, found.group(2).split()))
        if len(uses) != len(RULES[found.group(1)].premises):
            raise ProofError(f"{found.group(1)} is used on {len(RULES[found.group(1)].premises)} lines")
        if not all(1 <= use < number for use in uses):
            raise ProofError("a step uses a line that is not before it")
        steps.append(Step(found.group(1), uses))
    return steps


def write_proof(steps: Sequence[Step]) -> str:
    """Return the text of a proof."""
    return ", ".join(" ".join((step.rule, *map(str, step.uses))) for step in steps)


def unfold(lemma: Lemma, steps: Sequence[Step]) -> list[Line]:
    """Return every line with its formula, the last one the goal. Raises ProofError when the steps do not fit."""
    return _unfold(lemma.hypotheses, steps, lemma.goal)


def conclude(steps: Sequence[Step], hypotheses: tuple[Formula, ...] = ()) -> list[Line]:
    """Return the most general lines of a proof; formulas that the steps leave open are letters p, q, ... in order."""
    return _unfold(hypotheses, steps, None)


def _unfold(hypotheses: tuple[Formula, ...], steps: Sequence[Step], goal: Formula | None) -> list[Line]:
    unifier = _Unifier(is_general=goal is None)
    lines: list[Formula] = list(hypotheses)
    letters: list[dict[str, Formula]] = []
    for number, step in enumerate(steps):
        rule = RULES[step.rule]
        own: dict[str, Formula] = {letter: (number, letter) for letter in "xyz"}
        for premise, use in zip(rule.premises, step.uses, strict=True):
            unifier.equate(_placed(premise, own), lines[use - 1])
        lines.append(_placed(rule.conclusion, own))
        letters.append(own)
    if goal is not None:
        unifier.equate(lines[-1], goal)
    unifier.resolve(lines[-1])
    result = [Line(formula) for formula in hypotheses]
    for step, formula, own in zip(steps, lines[len(hypotheses) :], letters, strict=True):
        substitution = tuple((letter, unifier.resolve(value)) for letter, value in own.items())
        result.append(Line(unifier.resolve(formula), step, substitution))
    return result


def _placed(formula: Formula, own: dict[str, Formula]) -> Formula:
    if isinstance(formula, str):
        return own[formula]
    return (formula[0], *(_placed(part, own) for part in formula[1:]))


class _Unifier:
    """Unification with bounded work. A letter of a rule is a pair (step, letter); everything else is constant."""

    def __init__(self, is_general: bool) -> None:
        self.bound: dict[Formula, Formula] = {}
        self.work = self.num_letters = 0
        self.is_general = is_general

    def equate(self, left: Formula, right: Formula) -> None:
        self.work += 1
        if self.work > MAX_WORK:
            raise ProofError("too much work")
        left, right = self._walk(left), self._walk(right)
        if left == right:
            return
        if _is_open(left):
            self._bind(left, right)
        elif _is_open(right):
            self._bind(right, left)
        elif isinstance(left, str) or isinstance(right, str) or left[0] != right[0]:
            raise ProofError("a line is not what the rule needs, or the last one not the goal")
        else:
            for a, b in zip(left[1:], right[1:], strict=True):
                self.equate(a, b)

    def _bind(self, letter: Formula, formula: Formula) -> None:
        if self._occurs(letter, formula):
            raise ProofError("a line would stand inside itself")
        self.bound[letter] = formula

    def _occurs(self, letter: Formula, formula: Formula) -> bool:
        self.work += 1
        if self.work > MAX_WORK:
            raise ProofError("too much work")
        formula = self._walk(formula)
        if isinstance(formula, str) or _is_open(formula):
            return formula == letter
        return any(self._occurs(letter, part) for part in formula[1:])

    def _walk(self, formula: Formula) -> Formula:
        while _is_open(formula) and formula in self.bound:
            formula = self.bound[formula]
        return formula

    def resolve(self, formula: Formula) -> Formula:
        """Return a formula with all letters replaced; an unbound letter becomes a new variable if general, else p."""
        resolved = self._resolve(formula)
        if size(resolved) > MAX_SIZE:
            raise ProofError("a line is too long")
        return resolved

    def _resolve(self, formula: Formula) -> Formula:
        self.work += 1
        if self.work > MAX_WORK:
            raise ProofError("too much work")
        formula = self._walk(formula)
        if isinstance(formula, str):
            return formula
        if _is_open(formula):
            self.bound[formula] = chr(ord("p") + min(self.num_letters, 10)) if self.is_general else "p"
            self.num_letters += 1
            return self.bound[formula]
        return (formula[0], *(self._resolve(part) for part in formula[1:]))


def _is_open(formula: Formula) -> bool:
    return isinstance(formula, tuple) and isinstance(formula[0], int)
