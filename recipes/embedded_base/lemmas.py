"""Random lemmas with a proof each, for the lessons of the embedded base and the frozen suite.

Most are built backwards from a goal: a rule that gives it, then its premises, until they are taken as hypotheses. The
others are theorems without hypotheses, built forwards from the axioms by the most general unifier.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random

from redqueen_proofs.calculus import RULES, Line, ProofError, Step, conclude, unfold
from redqueen_proofs.formulas import Formula, Lemma, letters, size
from redqueen_proofs.normal import normal_form

THEOREM_FRAC = 0.2
NUM_STEPS, STEP_WEIGHTS = (1, 2, 3, 4, 5), (2, 5, 6, 5, 3)
MAX_SIZE, MAX_LINES = 11, 12
"""Largest goal or hypothesis, and most lines, of a drawn lemma; theorems and steps may be larger (ours)."""
MAX_LINE_SIZE = 15
HELD_OUT_SHARE = 16
"""One lemma in this many is held out of all lessons, by the digest of its normal form (ours)."""
_WEIGHTS = {"mp": 5, "syl": 5, "mpd": 3, "wk": 3, "com": 2, "red": 1, "con": 4, "ctr": 3, "mt": 3, "dne": 1, "dni": 3}
_AXIOMS = ("ax1", "ax2", "ax3", "id", "efq")


@dataclass(frozen=True)
class Drawn:
    """A lemma and a proof of it, unfolded."""

    lemma: Lemma
    steps: tuple[Step, ...]
    lines: tuple[Line, ...]


def draw(rng: Random, held_out: bool = False) -> Drawn:
    """Draw one lemma from the training share or, with ``held_out``, from the held-out share."""
    while True:
        found = _theorem(rng) if rng.random() < THEOREM_FRAC else _entailment(rng)
        if found is not None and is_held_out(found.lemma) == held_out:
            return found


def is_held_out(lemma: Lemma) -> bool:
    """Return whether a lemma belongs to the held-out share, from which only the frozen suite is drawn."""
    return hashlib.sha256(normal_form(lemma).encode()).digest()[0] % HELD_OUT_SHARE == 0


@dataclass(frozen=True)
class _Node:
    """A formula, the rule that gives it ("" where it is a hypothesis), and its premises."""

    formula: Formula
    rule: str = ""
    premises: tuple[_Node, ...] = ()


def _entailment(rng: Random) -> Drawn | None:
    names = "pqrs"[: rng.choices((2, 3, 4), (2, 5, 3))[0]]
    goal = _small(rng, names) if rng.random() < 0.5 else (">", _small(rng, names), _small(rng, names))
    root = _grow(rng, goal, names, rng.choices(NUM_STEPS, STEP_WEIGHTS)[0])
    if root is None or not root.rule:
        return None
    hypotheses: list[Formula] = []
    _collect(root, hypotheses)
    if rng.random() < 0.3:
        other: Formula = (">", _small(rng, names), _small(rng, names))
        hypotheses += [other] if other not in hypotheses else []
    if goal in hypotheses or len(hypotheses) > 6 or (any(map(_is_trivial, hypotheses)) and rng.random() < 0.9):
        return None
    rng.shuffle(hypotheses)
    steps: list[Step] = []
    _write(root, {formula: at for at, formula in enumerate(hypotheses, start=1)}, steps)
    return _finished(Lemma(tuple(hypotheses), goal), steps)


def _is_trivial(formula: Formula) -> bool:
    return formula[0] == ">" and formula[1] == formula[2]


def _finished(lemma: Lemma, steps: list[Step]) -> Drawn | None:
    if len(lemma.hypotheses) + len(steps) > MAX_LINES:
        return None
    try:
        lines = unfold(lemma, steps)
    except ProofError:
        return None
    if max(size(line.formula) for line in lines) > MAX_LINE_SIZE:
        return None
    if any(line.formula == lemma.goal for line in lines[:-1]):  # the lines after it are not needed
        return None
    return Drawn(lemma, tuple(steps), tuple(lines))


def _small(rng: Random, names: str) -> Formula:
    roll = rng.random()
    letter = rng.choice(names)
    if roll < 0.6:
        return letter
    return ("~", letter) if roll < 0.88 else (">", letter, rng.choice(names))


def _grow(rng: Random, goal: Formula, names: str, num_steps: int) -> _Node | None:
    """Return a proof of the goal in about ``num_steps`` steps, with hypotheses as leaves; None if it gets too long."""
    if size(goal) > MAX_SIZE:
        return None
    if num_steps == 0:
        return _Node(goal)
    choices = {rule: premises for rule, premises in _ways(rng, goal, names).items() if rng.random() < 0.9}
    if not choices:
        return _Node(goal)
    rule = rng.choices(list(choices), [_WEIGHTS.get(name, 6) for name in choices])[0]
    left = num_steps - 1
    premises = []
    for number, premise in enumerate(choices[rule], start=1):
        share = left if number == len(choices[rule]) else rng.randint(0, left)
        left -= share
        grown = _grow(rng, premise, names, share)
        if grown is None:
            return None
        premises.append(grown)
    return _Node(goal, rule, tuple(premises))


def _ways(rng: Random, goal: Formula, names: str) -> dict[str, tuple[Formula, ...]]:
    """Return, by rule, premises that give the goal; free letters of a rule become a small random formula."""
    some = _small(rng, names)
    ways: dict[str, tuple[Formula, ...]] = {"mp": (some, (">", some, goal))}
    if isinstance(goal, str):
        return ways
    if goal[0] == "~":
        inner = goal[1]
        ways["mt"] = (("~", some), (">", inner, some))
        if not isinstance(inner, str) and inner[0] == "~":
            ways["dni"] = (inner[1],)
        return ways
    left, right = goal[1], goal[2]
    ways["syl"] = ((">", left, some), (">", some, right))
    ways["mpd"] = ((">", left, some), (">", left, (">", some, right)))
    ways["wk"] = (right,)
    ways["red"] = ((">", left, goal),)
    if right[0] == ">":
        ways["com"] = ((">", right[1], (">", left, right[2])),)
    if left[0] == "~" and right[0] == "~":
        ways["con"] = ((">", right[1], left[1]),)
    ways["ctr"] = ((">", ("~", right), ("~", left)),)
    if left == right:
        ways["id"] = ()
    if left[0] == "~" and right[0] == ">" and left[1] == right[1]:
        ways["efq"] = ()
    if right[0] == ">" and right[2] == left:
        ways["ax1"] = ()
    return ways


def _collect(node: _Node, hypotheses: list[Formula]) -> None:
    if not node.rule and node.formula not in hypotheses:
        hypotheses.append(node.formula)
    for premise in node.premises:
        _collect(premise, hypotheses)


def _write(node: _Node, places: dict[Formula, int], steps: list[Step]) -> int:
    """Append the steps of a tree, each formula once; return the line number of its root."""
    if node.formula in places:
        return places[node.formula]
    uses = tuple(_write(premise, places, steps) for premise in node.premises)
    steps.append(Step(node.rule, uses))
    places[node.formula] = len(places) + 1
    return places[node.formula]


def _theorem(rng: Random) -> Drawn | None:
    steps: list[Step] = [Step(rng.choice(_AXIOMS), ())]
    for _ in range(rng.choices((0, 1, 2, 3), (2, 4, 4, 2))[0]):
        last = len(steps)
        rule = rng.choice(list(RULES))
        needed = len(RULES[rule].premises)
        if needed == 0:
            steps.append(Step(rule, ()))
            continue
        if needed == 2 and last == 1 and rng.random() < 0.7:
            steps.append(Step(rng.choice(_AXIOMS), ()))
            last += 1
        uses = [last] if needed == 1 else rng.sample((last, rng.randint(1, last)), 2)
        steps.append(Step(rule, tuple(uses)))
    if _unused(steps) or (len(steps) == 1 and rng.random() < 0.7):
        return None
    try:
        goal = conclude(steps)[-1].formula
    except ProofError:
        return None
    names = sorted(letters(goal))
    if len(names) > 4:
        return None
    if rng.random() < 0.7:  # an instance with other letters
        goal = _instance(goal, {name: _small(rng, "pqrs") for name in names})
    return _finished(Lemma((), goal), steps)


def _instance(formula: Formula, substitution: dict[str, Formula]) -> Formula:
    if isinstance(formula, str):
        return substitution[formula]
    return (formula[0], *(_instance(part, substitution) for part in formula[1:]))


def _unused(steps: list[Step]) -> bool:
    used = {use for step in steps for use in step.uses}
    return any(number not in used for number in range(1, len(steps)))
