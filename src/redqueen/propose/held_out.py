"""Refuse what external fitness asks: a valid task that is an item of its domain's frozen suite, up to names and layout.

A small space of tasks is soon crossed: without this, one exercise in ten of the suite of mathematics was trained on
within forty steps of 96 proposals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from redqueen.domains.domain import Item
from redqueen.domains.registry import domain_of, frozen_items, kind_of
from redqueen.nouns import Candidate, Rejection, Task


def reject_held_out(candidates: Sequence[Candidate], judged: Sequence[Task | Rejection]) -> list[Task | Rejection]:
    """Turn tasks about what an item of the frozen suite is about into rejections with the reason ``held-out``.

    Whatever the kind and the inputs: of a program in the suite nothing is asked. Raises UserError when a suite cannot
    be read.
    """
    result: list[Task | Rejection] = []
    for candidate, verdict in zip(candidates, judged, strict=True):
        if isinstance(verdict, Task) and kind_of(verdict).normal_form(verdict) in _forms(domain_of(verdict.kind).suite):
            verdict = Rejection(candidate, "held-out", "an item of the frozen suite is about the same")
        result.append(verdict)
    return result


@cache
def _forms(suite: Callable[[], list[Item]]) -> frozenset[str]:
    return frozenset(kind_of(item.task).normal_form(item.task) for item in frozen_items(suite))
