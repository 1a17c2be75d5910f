"""What follows from the figures: rates, multiples, the median and the spread of ratios. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from .records import Spread

HOUR_S = 3600.0


def per_hour(number: int, elapsed_s: float) -> float | None:
    """Return the rate an hour; None where no time has passed."""
    return number * HOUR_S / elapsed_s if elapsed_s > 0 else None


def worker_seconds_each(number: int, elapsed_s: float, jobs: int) -> float | None:
    """Return the seconds of one worker that each of `number` took, `jobs` being at work; None where there was none."""
    return elapsed_s * jobs / number if number > 0 else None


def multiple(value: float | None, unit: float | None) -> float | None:
    """Return `value` as a multiple of `unit`; None where either is unknown or the unit is not positive."""
    return value / unit if value is not None and unit is not None and unit > 0 else None


def ratios(changed: Sequence[float], plain: Sequence[float]) -> tuple[float, ...]:
    """Return the ratio of each pair; raises ValueError where the two are not of one length."""
    return tuple(one / other for one, other in zip(changed, plain, strict=True))


def neighbours(values: Sequence[float]) -> tuple[float, ...]:
    """Return by which share each value differs from the one before it: the noise between runs that should be alike."""
    return tuple(abs(later / earlier - 1) for earlier, later in pairwise(values))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return lower quartile, median and upper quartile, interpolated; a single value is all three.

    Raises `statistics.StatisticsError` where there is none.
    """
    if len(values) == 1:
        return values[0], values[0], values[0]
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, median, upper


def spread(values: Sequence[float]) -> Spread:
    """Return median and spread of ratios."""
    lower, median, upper = quartiles(values)
    return Spread(median=median, lowest=min(values), lower_quartile=lower, upper_quartile=upper, highest=max(values))
