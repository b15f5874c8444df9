"""How differently members behave: students by what they solve, teachers by what they write."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def solving_distances(solve_rates: Matrix) -> Matrix:
    """Students' behaviour distances (n, n): mean |difference| of solve rates over what both attempted, NaN if nothing.

    ``solve_rates`` is (n students, items), NaN where a student was not asked; an item is a task, or all of a teacher's.
    """
    n = solve_rates.shape[0]
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            gap = np.abs(solve_rates[i] - solve_rates[j])
            known = gap[~np.isnan(gap)]
            result[i, j] = result[j, i] = known.mean() if known.size else np.nan
    return result


def proposing_distances(class_counts: Matrix) -> Matrix:
    """Teachers' behaviour distances (n, n): total variation between the classes of tasks they write, NaN without tasks.

    ``class_counts`` is (n teachers, classes): how many tasks of each behaviour class a teacher has written.
    """
    totals = class_counts.sum(axis=1, keepdims=True)
    shares = np.divide(class_counts, totals, out=np.full(class_counts.shape, np.nan), where=totals > 0)
    result = np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2) / 2
    np.fill_diagonal(result, 0.0)
    return result
