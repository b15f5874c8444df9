"""A bounded forward search for proofs: round by round, it derives relevant formulas from the hypotheses.

A formula is relevant if it is a part of the lemma, the negation of a part, or an implication between two of them. The
search is not complete. Its work is bounded, and the work that a lemma needs measures its difficulty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from redqueen_proofs.calculus import Step
from redqueen_proofs.formulas import Formula, Lemma, read_lemma, size

MAX_SYMBOLS, MAX_PARTS, MAX_LINES, MAX_ROUNDS, MAX_TRIED = 120, 16, 500, 8, 40_000
"""Limits (ours): symbols of the lemma, parts for which implications are formed, derived lines, rounds, and tried
rules."""


@dataclass(frozen=True)
class Found:
    """The result of a search: a proof (None: none found), the number of derived lines, and the number of rounds."""

    steps: tuple[Step, ...] | None
    num_lines: int
    num_rounds: int


@lru_cache(maxsize=4096)
def search(text: str) -> Found:
    """Search for a proof of the lemma that this text states."""
    lemma = read_lemma(text)
    if sum(size(formula) for formula in (*lemma.hypotheses, lemma.goal)) > MAX_SYMBOLS:
        return Found(None, 0, 0)
    return _Search(lemma).run()


Reason = tuple[str, tuple[Formula, ...]]


class _Search:
    def __init__(self, lemma: Lemma) -> None:
        self.lemma = lemma
        self.parts = list(dict.fromkeys(part for whole in (lemma.goal, *lemma.hypotheses) for part in _parts(whole)))
        letter = lemma.variables()[0]
        absurd: Formula = ("~", (">", letter, letter))  # a contradiction: it follows from a formula and its negation
        self.parts = [*self.parts[:MAX_PARTS], absurd[1]]
        units = [*self.parts, *(("~", part) for part in self.parts if part[0] != "~")]
        self.wanted: set[Formula] = {*units, *((">", a, b) for a in units for b in units), *_parts(lemma.goal)}
        for part in self.parts:  # implications of three units, for rules with two steps
            if part[0] == ">":
                self.wanted.update((">", unit, part) for unit in units)
        self.wanted.update((">", ("~", part), (">", part, absurd)) for part in self.parts)
        self.reasons: dict[Formula, Reason] = {formula: ("", ()) for formula in lemma.hypotheses}
        self.tried = 0

    def run(self) -> Found:
        self._add_theorems()
        new = set(self.reasons)
        for number in range(1, MAX_ROUNDS + 1):
            if self.lemma.goal in self.reasons and self.reasons[self.lemma.goal][0]:
                return Found(self._proof(), len(self.reasons), number - 1)
            found: dict[Formula, Reason] = {}
            for formula, reason in self._round(new):
                self.tried += 1
                if formula in self.wanted and formula not in self.reasons:
                    found.setdefault(formula, reason)
                if self.tried > MAX_TRIED or len(self.reasons) + len(found) >= MAX_LINES:
                    break
            self.reasons.update(found)
            new = set(found)
            if not new or self.tried > MAX_TRIED:
                break
        is_proved = self.reasons.get(self.lemma.goal, ("", ()))[0] != ""
        return Found(self._proof() if is_proved else None, len(self.reasons), number)

    def _add_theorems(self) -> None:
        """Add the relevant instances of rules without premises."""
        for formula in self._in_order(self.wanted):
            rule = _theorem(formula)
            if rule and formula not in self.reasons:
                self.reasons[formula] = (rule, ())

    def _in_order(self, formulas: set[Formula]) -> list[Formula]:
        return sorted(formulas, key=repr)  # independent of the hash seed

    def _round(self, new: set[Formula]) -> Iterator[tuple[Formula, Reason]]:
        """Yield the conclusions of rules from known lines, of which at least one is new."""
        known = list(self.reasons)
        by_left: dict[Formula, list[Formula]] = {}
        by_right: dict[Formula, list[Formula]] = {}
        for formula in known:
            if formula[0] == ">":
                by_left.setdefault(formula[1], []).append(formula)
                by_right.setdefault(formula[2], []).append(formula)
        for formula in known:
            is_new = formula in new
            if is_new:
                yield from self._from_one(formula)
            for implication in by_left.get(formula, ()):
                if is_new or implication in new:
                    yield implication[2], ("mp", (formula, implication))
            if formula[0] == "~":
                for implication in by_right.get(formula[1], ()):
                    if is_new or implication in new:
                        yield ("~", implication[1]), ("mt", (formula, implication))
            if formula[0] == ">":
                for other in by_left.get(formula[2], ()):
                    if is_new or other in new:
                        yield (">", formula[1], other[2]), ("syl", (formula, other))
                for other in by_left.get(formula[1], ()):
                    fits = other[2][0] == ">" and other[2][1] == formula[2]
                    if fits and (is_new or other in new):
                        yield (">", formula[1], other[2][2]), ("mpd", (formula, other))

    def _from_one(self, formula: Formula) -> Iterator[tuple[Formula, Reason]]:
        one = (formula,)
        for part in self.parts:
            yield (">", part, formula), ("wk", one)
            yield (">", ("~", part), formula), ("wk", one)
        yield ("~", ("~", formula)), ("dni", one)
        if formula[0] == "~" and formula[1][0] == "~":
            yield formula[1][1], ("dne", one)
        if formula[0] != ">":
            return
        left, right = formula[1], formula[2]
        yield (">", ("~", right), ("~", left)), ("con", one)
        if left[0] == "~" and right[0] == "~":
            yield (">", right[1], left[1]), ("ctr", one)
        if right[0] == ">":
            yield (">", right[1], (">", left, right[2])), ("com", one)
            if right[1] == left:
                yield right, ("red", one)

    def _proof(self) -> tuple[Step, ...]:
        places: dict[Formula, int] = {}
        for number, formula in enumerate(self.lemma.hypotheses, start=1):
            places.setdefault(formula, number)
        steps: list[Step] = []
        next_line = len(self.lemma.hypotheses) + 1
        stack = [self.lemma.goal]
        if self.lemma.goal in places:
            del places[self.lemma.goal]
        while stack:
            formula = stack[-1]
            rule, uses = self.reasons[formula]
            missing = [use for use in uses if use not in places]
            if formula in places:
                stack.pop()
            elif missing:
                stack.append(missing[0])
            else:
                steps.append(Step(rule, tuple(places[use] for use in uses)))
                places[formula] = next_line
                next_line += 1
                stack.pop()
        return tuple(steps)


def _parts(formula: Formula) -> Iterator[Formula]:
    yield formula
    if not isinstance(formula, str):
        for part in formula[1:]:
            yield from _parts(part)


def _theorem(formula: Formula) -> str:
    """Return the rule without premises that gives a formula, or ""."""
    if formula[0] != ">":
        return ""
    left, right = formula[1], formula[2]
    if left == right:
        return "id"
    if right[0] == ">":
        if right[2] == left:
            return "ax1"
        if left == ("~", right[1]):
            return "efq"
    negated = left[0] == ">" and left[1][0] == "~" and left[2][0] == "~"
    if negated and right == (">", left[2][1], left[1][1]):
        return "ax3"
    if left[0] == ">" and left[2][0] == ">" and right[0] == ">" and right[1][0] == ">" and right[2][0] == ">":
        x, y, z = left[1], left[2][1], left[2][2]
        if right == (">", (">", x, y), (">", x, z)):
            return "ax2"
    return ""
