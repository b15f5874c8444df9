"""Refuse what was asked before: a valid task whose program (up to names) and inputs are already known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redqueen.nouns import Candidate, Rejection, Task
from redqueen.propose.buffer import task_key


def reject_duplicates(
    candidates: Sequence[Candidate], judged: Sequence[Task | Rejection], asked: Iterable[str]
) -> list[Task | Rejection]:
    """Turn repeated tasks into rejections with the reason ``duplicate``; the first of equal ones stays.

    ``asked`` are the keys of earlier tasks (``TaskBuffer.asked``).
    """
    seen = set(asked)
    result: list[Task | Rejection] = []
    for candidate, verdict in zip(candidates, judged, strict=True):
        if isinstance(verdict, Task):
            key = task_key(verdict)
            if key in seen:
                verdict = Rejection(candidate, "duplicate", "the same program and inputs were asked before")
            else:
                seen.add(key)
        result.append(verdict)
    return result
