"""Series over a run's steps: rolling means, means of the first and the last tenth, fewer points for a long run.

A window is a range of steps, not of defined values. When a metric is no longer defined, as the solve rate of a run
without valid tasks, the last window has no mean.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from redqueen.journal.read import Series

WINDOW_STEPS = 10
"""Collapse is decided on means over this many steps: single steps are noisy."""

ENDS_FRAC = 0.1
"""Share of the steps that count as the first, and as the last."""

MAX_POINTS = 400
"""Longest series of a figure; in a longer run a point represents several steps."""

Ends = dict[str, float | None]


def known_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are defined, None when none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def rolling(series: Series, steps: Sequence[int], num_steps: int = WINDOW_STEPS) -> list[float | None]:
    """Return the mean of every window of ``num_steps`` of a run's ``steps`` from 1 on (one window of all when there are
    fewer); None for a window without a defined value."""
    known = dict(series)
    values = [known.get(step) for step in steps if step >= 1]
    size = min(num_steps, len(values))
    return [known_mean(values[at : at + size]) for at in range(len(values) - size + 1)] if values else []


def ends(series: Series, steps: int) -> Ends:
    """Return the means over the first and the last tenth (rounded up) of steps 1 to ``steps``, where defined."""
    width = max(1, math.ceil(ENDS_FRAC * steps))
    return {
        "first": known_mean(value for step, value in series if 1 <= step <= width),
        "last": known_mean(value for step, value in series if max(0, steps - width) < step),
    }


def steps_per_point(num_steps: int) -> int:
    """Return how many steps one point of a figure represents: 1 for a run of up to ``MAX_POINTS`` steps."""
    return max(1, -(-num_steps // MAX_POINTS))


def point_of(step: int, size: int) -> int:
    """Return the number of a step's point: 0 for step 0, 1 for the steps 1 to ``size``, and so on."""
    return -(-step // size)


def mean_series(series: Series, size: int) -> Series:
    """Return, for each point, the mean of the defined values of its steps, at its last step."""
    points: dict[int, Series] = defaultdict(list)
    for step, value in series:
        points[point_of(step, size)].append((step, value))
    return [(found[-1][0], known_mean(value for _, value in found)) for _, found in sorted(points.items())]
