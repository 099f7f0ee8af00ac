"""What a difference between two runs is worth: paired tests, intervals, corrections.

Everything is seeded and gives the same bytes again, whatever the number of threads. Random bits
come from ``PCG64.random_raw``, because numpy promises the stream of a bit generator across its
versions and not that of ``Generator.integers``; sums avoid BLAS, whose order depends on the
threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

FLIPS = 100_000
RESAMPLES = 2_000
_CELLS = 2_000_000  # bootstrap weights held at once: 16 MB
_GROUP = 8  # queries whose 256 sign patterns are summed beforehand


def randomisation_test(differences: ArrayLike, *, flips: int = FLIPS, seed: int = 0) -> float:
    """Return the two-sided p-value of paired differences under random flips of their signs.

    Exact, over all 2^n sign patterns of the n differences that are not 0, when these are no more
    than ``flips``; otherwise (count + 1) / (flips + 1) over seeded random ones. Never 0. Without
    any difference (identical runs, or no query at all) the p-value is 1.

    Args:
        differences: float64, (n,), candidate minus baseline of each query that both runs scored.
        flips: how many sign patterns at most.
        seed: of the random patterns.

    Returns:
        p in (0, 1].

    Source: Fisher 1935; Smucker, Allan & Carterette 2007.
    """
    values = np.asarray(differences, dtype=np.float64).ravel()
    # A difference of 0 stays 0 under either sign: it only repeats every pattern.
    values = values[values != 0.0]
    n = len(values)
    if n == 0:
        return 1.0
    # Sums of one size that were added in different orders must count as equal.
    observed = abs(math.fsum(values.tolist())) - 1e-12 * float(np.abs(values).sum())
    if 2**n <= flips:
        sums = np.zeros(1)
        for value in values.tolist():
            sums = np.concatenate((sums + value, sums - value))
        return int(np.count_nonzero(np.abs(sums) >= observed)) / len(sums)
    sums = _flipped_sums(values, flips, seed)
    return (int(np.count_nonzero(np.abs(sums) >= observed)) + 1) / (flips + 1)


def _flipped_sums(values: FloatArray, flips: int, seed: int) -> FloatArray:
    """Return the sum of the values under each random sign pattern; float64, (flips,).

    Eight queries share a byte of random bits, and a table holds their sum for each of its 256
    values: one look-up takes the place of eight multiplications.
    """
    n_groups = -(-len(values) // _GROUP)
    padded = np.zeros(n_groups * _GROUP)
    padded[: len(values)] = values
    bits = (np.arange(256)[:, None] >> np.arange(_GROUP)) & 1
    tables = np.zeros((n_groups, 256))
    for place in range(_GROUP):
        column = padded.reshape(n_groups, _GROUP)[:, place]
        tables += column[:, None] * (1.0 - 2.0 * bits[:, place])
    source = np.random.PCG64(seed)
    words = -(-flips // 8)
    sums, found = np.zeros(flips), np.empty(flips)
    for table in tables:
        pattern = np.asarray(source.random_raw(words), dtype="<u8").view(np.uint8)[:flips]
        # A byte is always a place of the table; "clip" only spares the check, half of the time.
        np.take(table, pattern, out=found, mode="clip")
        sums += found
    return sums


def mean_intervals(values: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES) -> FloatArray:
    """Return the bootstrap 95 % percentile interval of each column's mean.

    Every column is resampled with the same weights, after sorting it: the interval of one mean does
    not depend on the order of its queries, and sixty metrics cost little more than one.

    Args:
        values: float64, (n, n_metrics), without NaN.
        seed: of the resamples.
        resamples: how many.

    Returns:
        float64, (n_metrics, 2), the 2.5 % and 97.5 % points. NaN where n is below 2: one value says
        nothing of its spread.

    Source: Efron & Tibshirani 1993.
    """
    n, n_metrics = values.shape
    if n < 2:
        return np.full((n_metrics, 2), np.nan)
    ordered = np.sort(values, axis=0)
    places = np.flatnonzero(ordered.any(axis=1))
    means = np.empty((resamples, n_metrics))
    source = np.random.PCG64(seed)
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        weight = _weights(source, rows, n)
        total = np.zeros((rows, n_metrics))
        for place in places:
            total += weight[place][:, None] * ordered[place]
        means[start : start + rows] = total / n
    intervals: FloatArray = np.quantile(means, (0.025, 0.975), axis=0).T
    return intervals


def _weights(source: np.random.PCG64, rows: int, n: int) -> FloatArray:
    """Return how often each of n queries is drawn in each resample; float64, (n, rows)."""
    words = np.asarray(source.random_raw((rows * n + 1) // 2), dtype="<u8")
    draws = words.view("<u4")[: rows * n].astype(np.uint64)
    # Multiply and shift: an index below n from 32 random bits, with a bias of n / 2^32.
    index = (draws * np.uint64(n) >> np.uint64(32)).astype(np.int64)
    index += np.repeat(np.arange(rows, dtype=np.int64) * n, n)
    counts = np.bincount(index, minlength=rows * n).reshape(rows, n)
    return np.ascontiguousarray(counts.T, dtype=np.float64)


def mean_interval(
    values: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """Return the bootstrap 95 % percentile interval of a mean (of a difference), None below n = 2.

    Args:
        values: float64, (n,), without NaN.
        seed: of the resamples.
        resamples: how many.

    Source: Efron & Tibshirani 1993.
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    if len(column) < 2:
        return None
    low, high = mean_intervals(column, seed=seed, resamples=resamples)[0].tolist()
    return low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the order given: the family-wise error is held.

    Source: Holm 1979.
    """
    n = len(p_values)
    adjusted = [1.0] * n
    largest = 0.0
    for step, index in enumerate(sorted(range(n), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (n - step) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return Benjamini and Hochberg's adjusted p-values, in the order given.

    They hold the rate of false discoveries. Source: Benjamini & Hochberg 1995.
    """
    n = len(p_values)
    adjusted = [1.0] * n
    smallest = 1.0
    for step, index in enumerate(sorted(range(n), key=p_values.__getitem__, reverse=True)):
        smallest = min(smallest, p_values[index] * n / (n - step))
        adjusted[index] = smallest
    return adjusted


def detectable_difference(
    differences: ArrayLike, *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the smallest mean difference that so many queries could have shown, None below n = 2.

    (z(1 - alpha / 2) + z(power)) · s / sqrt(n), s being the standard deviation of the differences:
    on 50 queries a drop of 3 points is usually noise.

    Args:
        differences: float64, (n,), of each query that both runs scored.
        power: the chance of finding a difference of that size.
        alpha: two-sided significance level.

    Source: Cohen 1988, in the normal approximation.
    """
    values = np.asarray(differences, dtype=np.float64).ravel()
    if len(values) < 2:
        return None
    from statistics import NormalDist  # 8 ms to import, and seldom asked for

    normal = NormalDist()
    spread = float(np.std(values, ddof=1))
    return (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * spread / math.sqrt(len(values))
