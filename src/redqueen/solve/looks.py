"""Two looks: a few attempts first, and the rest only where they disagree.

A task that the first attempts all solve, or none, is mostly one that all or none of the rest would; it teaches nothing,
and its tokens are better spent elsewhere. Its solve rate is then that of the first look, 0 or 1. Ground: dynamic
sampling (DAPO, Yu et al. 2025), which samples and throws away; asking in two looks is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from redqueen.solve.solving import Answered


def undecided(answered: Sequence[Answered]) -> list[Answered]:
    """Return those of whose attempts some were right and some were not."""
    return [one for one in answered if one.solve_frac not in (None, 0.0, 1.0)]


def joined(first: Sequence[Answered], second: Sequence[Answered]) -> list[Answered]:
    """Return the first look with the attempts of the second behind its own, in the order of the first."""
    more = {(one.task.id, one.student.id): one for one in second}
    result = []
    for one in first:
        again = more.get((one.task.id, one.student.id))
        if again is not None:
            one = replace(
                one, completions=(*one.completions, *again.completions), outcomes=(*one.outcomes, *again.outcomes)
            )
        result.append(one)
    return result
