"""Means over stretches of a run's steps: windows that roll, and its first and last tenth.

A stretch is one of steps, whatever is defined in it: where a measure stops being defined, as the solve rate of a run
that poses no valid task any more, its last stretch has none, and not the mean of what was defined last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from redqueen.journal.read import Series

WINDOW_STEPS = 10
"""Collapse is judged on means over this many steps: single steps are noisy."""
ENDS_FRAC = 0.1
"""Share of the steps that count as the first, and as the last."""

Ends = dict[str, float | None]


def rolling(series: Series, steps: Sequence[int], num_steps: int = WINDOW_STEPS) -> list[float | None]:
    """Return the mean of every stretch of ``num_steps`` of a run's ``steps`` from 1 on, of all when there are fewer;
    None where nothing is defined in one."""
    known = dict(series)
    values = [known.get(step) for step in steps if step >= 1]
    size = min(num_steps, len(values))
    return [_mean(values[at : at + size]) for at in range(len(values) - size + 1)] if values else []


def ends(series: Series, steps: int, width: int | None = None) -> Ends:
    """Return the means over the first and the last ``width`` of steps 1 to ``steps``, where defined; by default over a
    tenth, rounded up."""
    width = width or max(1, math.ceil(ENDS_FRAC * steps))
    return {
        "first": _mean([value for step, value in series if 1 <= step <= width]),
        "last": _mean([value for step, value in series if max(0, steps - width) < step]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
