"""Formulas of propositional calculus and lemmas: parsing, writing, and the truth table that decides them.

``~p`` is negation and ``p>q`` implication, to the right: ``p>q>r`` is ``p>(q>r)``. A lemma is written
``p, p>q |- q``, or without hypotheses ``|- p>p``. A formula is a variable (its letter), ("~", a) or (">", a, b).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARS, MAX_HYPOTHESES, MAX_VARIABLES, MAX_DEPTH = 1_000, 9, 6, 24
"""Longest lemma, most hypotheses, most variables (64 rows of a truth table), deepest nesting (ours)."""

Formula = str | tuple
_TOKEN = re.compile(r"\s*([a-z]|[~>()])", re.ASCII)


class LemmaError(ValueError):
    """The text is not a lemma; the message is one short reason."""


@dataclass(frozen=True)
class Lemma:
    """Hypotheses, and the goal to prove from them."""

    hypotheses: tuple[Formula, ...]
    goal: Formula

    def variables(self) -> list[str]:
        """Return the letters of the lemma, in order."""
        return sorted(set().union(*(letters(formula) for formula in (*self.hypotheses, self.goal))))


def read_lemma(text: str) -> Lemma:
    """Read ``p, p>q |- q``. Raises LemmaError."""
    if len(text) > MAX_CHARS:
        raise LemmaError(f"longer than {MAX_CHARS} characters")
    before, mark, goal = text.partition("|-")
    if not mark:
        raise LemmaError("no |- before what is to be proved")
    hypotheses = tuple(read_formula(part) for part in before.split(",")) if before.strip() else ()
    if len(hypotheses) > MAX_HYPOTHESES:
        raise LemmaError(f"more than {MAX_HYPOTHESES} hypotheses")
    lemma = Lemma(hypotheses, read_formula(goal))
    if len(lemma.variables()) > MAX_VARIABLES:
        raise LemmaError(f"more than {MAX_VARIABLES} variables")
    return lemma


def write_lemma(lemma: Lemma) -> str:
    """Return the canonical text of a lemma, as in tasks."""
    before = ", ".join(map(write_formula, lemma.hypotheses))
    return f"{before} |- {write_formula(lemma.goal)}".lstrip()


def read_formula(text: str) -> Formula:
    """Read one formula. Raises LemmaError; evaluates nothing."""
    if len(text) > MAX_CHARS:
        raise LemmaError(f"longer than {MAX_CHARS} characters")
    tokens, place = [], 0
    text = text.strip().replace("->", ">")
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise LemmaError("a sign that is not of the language")
        tokens.append(found.group(1))
        place = found.end()
    formula, end = _read(tokens, 0, 0)
    if end != len(tokens):
        raise LemmaError("a formula goes on where it should end")
    return formula


def _read(tokens: list[str], at: int, depth: int) -> tuple[Formula, int]:
    if depth > MAX_DEPTH:
        raise LemmaError(f"nested deeper than {MAX_DEPTH}")
    left, at = _read_unit(tokens, at, depth)
    if at < len(tokens) and tokens[at] == ">":
        right, at = _read(tokens, at + 1, depth + 1)
        return (">", left, right), at
    return left, at


def _read_unit(tokens: list[str], at: int, depth: int) -> tuple[Formula, int]:
    if depth > MAX_DEPTH:
        raise LemmaError(f"nested deeper than {MAX_DEPTH}")
    if at >= len(tokens):
        raise LemmaError("a formula ends too early")
    if tokens[at] == "~":
        inner, at = _read_unit(tokens, at + 1, depth + 1)
        return ("~", inner), at
    if tokens[at] == "(":
        inner, at = _read(tokens, at + 1, depth + 1)
        if at >= len(tokens) or tokens[at] != ")":
            raise LemmaError("a bracket is not closed")
        return inner, at + 1
    if not tokens[at].isalpha():
        raise LemmaError("a variable is missing")
    return tokens[at], at + 1


def write_formula(formula: Formula) -> str:
    """Return the text of a formula, with brackets only where they are needed."""
    if isinstance(formula, str):
        return formula
    if formula[0] == "~":
        inner = write_formula(formula[1])
        return f"~({inner})" if formula[1][0] == ">" else f"~{inner}"
    left = write_formula(formula[1])
    return (f"({left})" if formula[1][0] == ">" else left) + ">" + write_formula(formula[2])


def letters(formula: Formula) -> set[str]:
    """Return the variables of a formula."""
    if isinstance(formula, str):
        return {formula}
    return set().union(*(letters(part) for part in formula[1:]))


def size(formula: Formula) -> int:
    """Return the number of occurrences of variables and connectives in a formula."""
    return 1 if isinstance(formula, str) else 1 + sum(size(part) for part in formula[1:])


def follows(lemma: Lemma) -> bool:
    """Return whether the goal is true in every row of the truth table (one bit each) in which all hypotheses are."""
    names = lemma.variables()
    rows = 1 << len(names)
    full = (1 << rows) - 1
    truth = {name: sum(1 << row for row in range(rows) if row >> place & 1) for place, name in enumerate(names)}
    where = full
    for hypothesis in lemma.hypotheses:
        where &= _table(hypothesis, truth, full)
    return where & ~_table(lemma.goal, truth, full) == 0


def _table(formula: Formula, truth: dict[str, int], full: int) -> int:
    if isinstance(formula, str):
        return truth[formula]
    left = _table(formula[1], truth, full)
    return full & ~left if formula[0] == "~" else full & ~left | _table(formula[2], truth, full)
