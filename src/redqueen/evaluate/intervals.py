"""Confidence intervals for rates and means: Wilson, the cluster bootstrap, paired differences; and pass@k.

Attempts at the same item are not independent, and neither are the three tasks made from one function; the bootstrap
therefore resamples whole clusters, and where the items were drawn by strata of fixed size, it keeps those sizes. All
intervals are two-sided.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Interval(NamedTuple):
    """A closed interval, ``low <= high``; both nan when there was nothing to estimate from."""

    low: float
    high: float


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval of a rate from ``n`` independent trials, within [0, 1].

    With p = successes / n and z the normal quantile: (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)
    (Wilson 1927). ``n`` = 0 gives [0, 1]. Raises ValueError unless 0 <= successes <= n and 0 < confidence < 1.
    """
    _check_confidence(confidence)
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n, got {successes} of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
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


def bootstrap_mean(
    values: ArrayLike,
    rng: np.random.Generator,
    clusters: Sequence[object] | None = None,
    num_resamples: int = 2000,
    confidence: float = 0.95,
    strata: Sequence[object] | None = None,
) -> Interval:
    """Return the percentile bootstrap interval of the mean of ``values`` (Efron 1979), resampling whole clusters.

    ``values``: shape (n,), one mean an item. ``clusters``: n labels; items with equal labels are drawn together
    (default: every item by itself). ``strata``: n labels; as many clusters are drawn from each stratum as it has, since
    a design that fixes them leaves no chance in their shares (default: one stratum). A resample's mean is the sum over
    the drawn clusters divided by the number of items in them. No values give (nan, nan). Raises ValueError on other
    shapes, a non-finite value or a cluster that lies in two strata.
    """
    _check_confidence(confidence)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError("values must be one row of finite numbers")
    if array.size == 0:
        return Interval(float("nan"), float("nan"))
    sums, counts, stratum = _cluster_totals(array, clusters, strata)
    totals, numbers = np.zeros(num_resamples), np.zeros(num_resamples)
    for label in np.unique(stratum):
        own = np.flatnonzero(stratum == label)
        drawn = own[rng.integers(0, len(own), size=(num_resamples, len(own)))]
        totals += sums[drawn].sum(axis=1)
        numbers += counts[drawn].sum(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(totals / numbers, [tail, 1 - tail])
    return Interval(float(low), float(high))


def bootstrap_difference(
    a: ArrayLike,
    b: ArrayLike,
    rng: np.random.Generator,
    clusters: Sequence[object] | None = None,
    num_resamples: int = 2000,
    confidence: float = 0.95,
    strata: Sequence[object] | None = None,
) -> Interval:
    """Return the bootstrap interval of mean(a - b) over the same items, paired item by item.

    ``a``, ``b``: shape (n,), in the same order; the rest as in :func:`bootstrap_mean`. Pairing removes the spread that
    comes from some items being harder than others. Raises ValueError when the shapes differ.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"paired values need equal shapes, got {first.shape} and {second.shape}")
    return bootstrap_mean(first - second, rng, clusters, num_resamples, confidence, strata)


def non_overlapping(a: Interval, b: Interval) -> bool:
    """Tell whether two intervals share no point (False when either is nan)."""
    return a.high < b.low or b.high < a.low


def _cluster_totals(
    values: NDArray[np.float64], clusters: Sequence[object] | None, strata: Sequence[object] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the sum of values, the number of items and the stratum's number of every cluster."""
    index = _numbered(clusters, len(values)) if clusters is not None else np.arange(len(values))
    stratum = _numbered(strata, len(values)) if strata is not None else np.zeros(len(values), dtype=np.int64)
    size = int(index.max()) + 1
    sums, counts = np.zeros(size), np.zeros(size)
    np.add.at(sums, index, values)
    np.add.at(counts, index, 1.0)
    of_cluster = np.zeros(size, dtype=np.int64)
    of_cluster[index] = stratum
    if (of_cluster[index] != stratum).any():
        raise ValueError("the items of one cluster must lie in one stratum")
    return sums, counts, of_cluster


def _numbered(labels: Sequence[object], num_values: int) -> NDArray[np.int64]:
    if len(labels) != num_values:
        raise ValueError(f"{num_values} values need as many labels, got {len(labels)}")
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
