"""The lineage: who descends from whom, read from the births of a run.

Ids are unique in a run, so a birth is found by its child. Whoever has no birth among ``births`` is a founder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from redqueen.nouns import Birth

MAX_INDENT = 60
"""Deepest indentation of the family tree as text."""

MAX_MIXED = 20_000_000
"""Most shares that are mixed: a run of 10,000 births has some 200,000."""


@dataclass(frozen=True)
class OperatorRecord:
    """The record of an operator: children born, those among present members and their ancestors, their mean change.

    ``num_lasting`` counts children that are present or have a present descendant; ``mean_relative_change`` is the mean
    of
    |child - parent| / |parent| in dW.
    """

    num_births: int
    num_lasting: int
    mean_relative_change: float


def ancestors(births: Sequence[Birth], name: str) -> set[str]:
    """Every individual that ``name`` descends from, without itself."""
    parents_of = {birth.child: birth.parents for birth in births}
    found: set[str] = set()
    waiting = list(parents_of.get(name, ()))
    while waiting:
        parent = waiting.pop()
        if parent not in found:
            found.add(parent)
            waiting.extend(parents_of.get(parent, ()))
    return found


def generations(births: Sequence[Birth]) -> dict[str, int]:
    """How many births lie between each child and its farthest founder; a founder is not in it."""
    depth: dict[str, int] = {}
    for birth in sorted(births, key=lambda b: b.step):
        depth[birth.child] = 1 + max((depth.get(parent, 0) for parent in birth.parents), default=-1)
    return depth


def founder_shares(births: Sequence[Birth], living: Iterable[str]) -> dict[str, float]:
    """Each founder's share in the ancestry of present members, adding up to 1; two parents count half each.

    One founder at 1.0 is a population that descends from a single individual: what the others knew is gone. Raises
    ValueError for births that would take hours, as only a prepared file has them.
    """
    born = {birth.child for birth in births}
    named = {parent for birth in births for parent in birth.parents}
    if len(named - born) * sum(len(birth.parents) for birth in births) > MAX_MIXED:
        raise ValueError("more founders and births than any run has")
    shares: dict[str, dict[str, float]] = {}

    def ancestry(name: str) -> dict[str, float]:
        return shares.get(name, {name: 1.0})

    for birth in sorted(births, key=lambda b: b.step):
        mixed: dict[str, float] = {}
        for parent in birth.parents:
            for founder, share in ancestry(parent).items():
                mixed[founder] = mixed.get(founder, 0.0) + share / len(birth.parents)
        shares[birth.child] = mixed or {birth.child: 1.0}
    total: dict[str, float] = {}
    names = list(living)
    for name in names:
        for founder, share in ancestry(name).items():
            total[founder] = total.get(founder, 0.0) + share / len(names)
    return total


def operator_records(births: Sequence[Birth], living: Iterable[str]) -> dict[str, OperatorRecord]:
    """By operator: births, how many of them last, and how far the children stood from their first parent."""
    parents_of = {birth.child: birth.parents for birth in births}
    lasting, waiting = set[str](), list(living)
    while waiting:
        name = waiting.pop()
        if name not in lasting:
            lasting.add(name)
            waiting.extend(parents_of.get(name, ()))
    records = {}
    for operator in sorted({birth.operator for birth in births}):
        own = [birth for birth in births if birth.operator == operator]
        change = fmean(birth.relative_change for birth in own)
        records[operator] = OperatorRecord(len(own), sum(birth.child in lasting for birth in own), change)
    return records


def tree_lines(births: Sequence[Birth], founders: Sequence[str], living: Iterable[str]) -> list[str]:
    """The family tree as text: each child under its first parent, with step, operator, second parent; ``*``: present.

    A founder born in the run (its slot was reset to the base) has no parent and gets a root of its own. Everybody
    stands once, and no deeper than ``MAX_INDENT``: births from a file may run in a circle.
    """
    alive, told = set(living), set[str]()
    children: dict[str, list[Birth]] = {}
    roots = list(founders)
    for birth in sorted(births, key=lambda b: b.step):
        if birth.parents:
            children.setdefault(birth.parents[0], []).append(birth)
        else:
            roots.append(birth.child)
    lines: list[str] = []
    waiting = [(root, 0, "") for root in reversed(roots)]
    while waiting:
        name, depth, story = waiting.pop()
        if name in told:
            continue
        told.add(name)
        lines.append(f"{'  ' * min(depth, MAX_INDENT)}{name}{' *' if name in alive else ''}{story}")
        for birth in reversed(children.get(name, [])):
            others = f" with {', '.join(birth.parents[1:])}" if len(birth.parents) > 1 else ""
            story = f"  step {birth.step}, {birth.operator}{others}, changed {birth.relative_change:.0%}"
            waiting.append((birth.child, depth + 1, story))
    return lines
