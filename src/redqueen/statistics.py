"""Statistics: intervals of rates and means, differences over items and over runs, and a permutation test.

Attempts at the same item are not independent, and neither are the three tasks made from one function; the bootstrap
therefore resamples whole clusters, and where the items were drawn by strata of fixed size, it keeps those sizes. Each
run is one observation: its steps, members and items share everything that the seed determines. No resample leaves the
range of three runs, so the 95 % percentile bootstrap over three runs covers the mean in only three cases of four.
Intervals over runs are therefore Student's t. They assume that results of runs are roughly normal, which few runs
cannot confirm; the permutation test does not assume it. All intervals and tests are two-sided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, sqrt
from statistics import NormalDist, fmean, variance
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Labels = Sequence[object]

PERMUTATION_SEED = 20_260_501
"""Seed of the random labellings, the same for every table, so that equal results give equal reports."""

MAX_LABELLINGS = 200_000
"""With more labellings of the runs than this (more than 10 against 10), a random subset of them is tried."""

_TOLERANCE = 1e-9
"""Relative tolerance: differences within this share of the largest absolute value count as equal, and runs whose
results differ by no more than this share have no spread."""

# fmt: off
_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)
# fmt: on
"""The 0.975 quantile of Student's t for 1 to 30 degrees of freedom."""


class Interval(NamedTuple):
    """A closed interval, ``low <= high``; both are nan when there were no data to estimate it from."""

    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there were data to estimate the interval from."""
        return self.low <= self.high


_UNKNOWN = Interval(float("nan"), float("nan"))


@dataclass(frozen=True)
class Difference:
    """Arm minus reference. ``estimate`` is the difference of means, ``interval`` its 95 % interval over seeds (Welch).

    ``p`` is from the permutation test; ``least_p`` is the smallest p that the test can give for these numbers of runs.
    """

    estimate: float
    interval: Interval
    p: float
    least_p: float


# Rates -------------------------------------------------------------------------------------------------------------


def wilson(successes: int, n: int) -> Interval:
    """Return Wilson's 95 % score interval of a rate from ``n`` independent trials, within [0, 1].

    With p = successes / n and z the normal quantile: (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)
    (Wilson 1927). ``n`` = 0 gives [0, 1]. Raises ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n, got {successes} of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.975)
    rate = successes / n
    centre = rate + z * z / (2 * n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return Interval(max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale))


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the unbiased estimate of the chance that one of ``k`` attempts is right, from ``correct`` of ``n``.

    1 - C(n - correct, k) / C(n, k), in [0, 1] (Chen et al. 2021). Raises ValueError unless 1 <= k <= n and
    0 <= correct <= n.
    """
    if not 1 <= k <= n or not 0 <= correct <= n:
        raise ValueError(f"pass@k needs 1 <= k <= n and 0 <= correct <= n, got k = {k}, {correct} of {n}")
    return 1.0 - comb(n - correct, k) / comb(n, k)


# The bootstrap -----------------------------------------------------------------------------------------------------


def percentile_interval(draws: Array) -> Interval:
    """Return the 95 % percentile bootstrap interval (Efron 1979) from resamples; nan values are ignored."""
    known = draws[np.isfinite(draws)]
    low, high = np.quantile(known, [0.025, 0.975]) if known.size else (float("nan"), float("nan"))
    return Interval(float(low), float(high))


def resampled_means(
    values: ArrayLike,
    rng: np.random.Generator,
    num_resamples: int,
    clusters: Labels | None = None,
    strata: Labels | None = None,
) -> Array:
    """Return the means (num_resamples,) of resamples of ``values`` (n,), drawn in whole clusters.

    ``clusters``: n labels; items with equal labels are drawn together (default: every item by itself). ``strata``: n
    labels; each stratum is resampled to its own number of clusters, because the design fixes that number (default: one
    stratum). Strata of one cluster have no spread of their own and are drawn as one stratum (collapsed strata, Cochran
    1977, 5A.12). A resample's mean is the sum over the drawn clusters divided by the number of items in them. Empty
    ``values`` give an empty array. Raises ValueError on other shapes, a non-finite value or a cluster that lies in two
    strata.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError("values must be one row of finite numbers")
    if array.size == 0:
        return np.empty(0)
    index = np.arange(array.size) if clusters is None else _label_indices(clusters, array.size)
    stratum = np.zeros(array.size, dtype=np.int64) if strata is None else _label_indices(strata, array.size)
    sums, counts = np.bincount(index, weights=array), np.bincount(index)
    stratum_of = np.zeros(len(counts), dtype=np.int64)
    stratum_of[index] = stratum
    if (stratum_of[index] != stratum).any():
        raise ValueError("the items of one cluster must lie in one stratum")
    single = np.bincount(stratum_of)[stratum_of] == 1
    stratum_of[single] = stratum_of[single].min(initial=len(counts))
    totals, numbers = np.zeros(num_resamples), np.zeros(num_resamples)
    for label in np.unique(stratum_of):
        own = np.flatnonzero(stratum_of == label)
        drawn = own[rng.integers(0, len(own), size=(num_resamples, len(own)))]
        totals += sums[drawn].sum(axis=1)
        numbers += counts[drawn].sum(axis=1)
    return totals / numbers


def bootstrap_mean(
    values: ArrayLike,
    rng: np.random.Generator,
    clusters: Labels | None = None,
    num_resamples: int = 2000,
    strata: Labels | None = None,
) -> Interval:
    """Return the 95 % percentile bootstrap interval of the mean; arguments and errors as in :func:`resampled_means`.

    For the differences of two results on the same items it is the interval of the paired comparison, which excludes
    the spread of the items' difficulty.
    """
    return percentile_interval(resampled_means(values, rng, num_resamples, clusters, strata))


# Over runs ---------------------------------------------------------------------------------------------------------


def t_quantile(dof: int) -> float:
    """Return the 0.975 quantile of Student's t with ``dof`` degrees of freedom, at least 1, to three decimals.

    From a table up to 30, then z + (z^3 + z) / 4n + (5 z^5 + 16 z^3 + 3 z) / 96n^2 (Abramowitz & Stegun 26.7.5).
    """
    if dof <= len(_T):
        return _T[dof - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * dof) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * dof**2)


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the 95 % interval of the mean over runs: mean -+ t s / sqrt(n), n - 1 degrees of freedom (Student 1908).

    It may exceed [0, 1] for a share. Unknown (nan) with one run, and where all runs have the same value, because these
    do not show how other runs would vary.
    """
    return _t_interval(fmean(values), [_squared_error(values)]) if values else _UNKNOWN


def difference(arm: Sequence[float], reference: Sequence[float]) -> Difference:
    """Compare two arms, one number per run. Raises ValueError when either has no run.

    The interval is the difference of means -+ t sqrt(v1 + v2), v = s^2 / n, with
    (v1 + v2)^2 / (v1^2 / (n1 - 1) + v2^2 / (n2 - 1)) degrees of freedom (Welch 1947; Satterthwaite 1946), rounded down,
    which is conservative. Unknown (nan) when an arm has one run, and when neither varies.
    """
    if not arm or not reference:
        raise ValueError("a difference needs at least one run of each arm")
    estimate = fmean(arm) - fmean(reference)
    return Difference(
        estimate,
        _t_interval(estimate, [_squared_error(arm), _squared_error(reference)]),
        permutation_p(arm, reference),
        least_p(len(arm), len(reference)),
    )


def permutation_p(arm: Sequence[float], reference: Sequence[float]) -> float:
    """Return the two-sided p of the exact permutation test of the difference of means (Fisher; Pitman 1937).

    Every way to label n1 of the n1 + n2 runs as the arm is tried; p is the share of them whose means differ at least as
    much as the observed ones. The only assumption is that labels are exchangeable if the arm has no effect. Above
    ``MAX_LABELLINGS`` labellings, a random subset is tried that includes the true one.
    """
    values, n1 = np.array([*arm, *reference], dtype=np.float64), len(arm)
    n2 = len(values) - n1
    sums = values[_labellings(len(values), n1)].sum(axis=1)
    differences = np.abs(sums / n1 - (values.sum() - sums) / n2)
    observed = abs(fmean(arm) - fmean(reference))
    slack = _TOLERANCE * max(1e-300, float(np.abs(values).max()))
    return float(np.mean(differences >= observed - slack))


def least_p(n1: int, n2: int) -> float:
    """Return the smallest p that the permutation test can give: 1 / C(n1 + n2, n1), twice that for equal numbers.

    For equal numbers every labelling has a mirror image with the same difference.
    """
    return min(1.0, (2 if n1 == n2 else 1) / comb(n1 + n2, n1))


def _squared_error(values: Sequence[float]) -> tuple[float, int]:
    """Return the squared standard error of the mean, and its degrees of freedom."""
    dof = len(values) - 1
    if dof < 1 or max(values) - min(values) <= _TOLERANCE * max(map(abs, values)):
        return 0.0, dof
    return variance(values) / len(values), dof


def _t_interval(centre: float, errors: Sequence[tuple[float, int]]) -> Interval:
    """Return centre -+ t sqrt(sum of squared errors), with Welch-Satterthwaite degrees of freedom, rounded down."""
    total = sum(error for error, _ in errors)
    if total <= 0 or any(dof < 1 for _, dof in errors):
        return _UNKNOWN
    dof = int(total**2 / sum(error**2 / dof for error, dof in errors) + _TOLERANCE)
    half = t_quantile(dof) * sqrt(total)
    return Interval(centre - half, centre + half)


def _labellings(n: int, n1: int) -> NDArray[np.intp]:
    if comb(n, n1) <= MAX_LABELLINGS:
        return np.array(list(combinations(range(n), n1)), dtype=np.intp)
    drawn = np.argsort(np.random.default_rng(PERMUTATION_SEED).random((MAX_LABELLINGS - 1, n)), axis=1)[:, :n1]
    return np.vstack([np.arange(n1), drawn])


def _label_indices(labels: Labels, num_values: int) -> NDArray[np.int64]:
    if len(labels) != num_values:
        raise ValueError(f"{num_values} values need as many labels, got {len(labels)}")
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
