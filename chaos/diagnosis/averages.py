"""Whether weights are an average of the reference's: told by a few values at fixed places, and only where it is plain.

Tried are the mean of some steps' weights, up to the newest, and an exponential moving average from the first or second
step on, with one decay, or one that warms up as (1 + t) / (10 + t). A fit must leave at most a hundredth of the
distance to the newest weights, in at least four values that move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from chaos.diagnosis.sketches import LEAST_VALUES, distance

_MOST_VALUES = 8
_MOST_STEPS = 4096
_MOST_APART = 64
_SHARE_LEFT = 0.01
_SINGLE_PRECISION = 5e-7  # relative: a few roundings of 32-bit floats
_FROM_EXPONENT, _TO_EXPONENT, _NUM_TRIED = 0.05, 4.0, 48  # decays tried: 1 - 10 ** -exponent
_NUM_REFINED = 30
_GOLDEN = (math.sqrt(5) - 1) / 2

Values: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """What the weights may be an average of, and the largest difference that is left."""

    left: float
    words: str


def fitted_average(life: Sequence[float], steps: Sequence[Values]) -> str | None:
    """Say which average of the steps' values the life's are; `steps` are those after 0, 1, … updates, to the newest.

    Returns None where no average fits, or where a fit would say nothing.
    """
    places = _moving(life, steps)
    if len(places) < LEAST_VALUES or len(steps) > _MOST_STEPS:
        return None
    target = tuple(life[place] for place in places)
    series = [tuple(step[place] for place in places) for step in steps]
    apart = distance(target, series[-1]) or 0.0
    noise = _SINGLE_PRECISION * max(map(abs, target))
    if apart * _SHARE_LEFT < noise and apart < 20 * noise:
        return None
    tolerance = max(apart * _SHARE_LEFT, noise)
    for kind in (_plain_averages, _warmed_up):
        best = min(kind(target, series), key=lambda fit: fit.left, default=None)
        if best is not None and best.left <= tolerance:
            return best.words
    return None


def lies_between(life: Sequence[float], steps: Sequence[Values]) -> bool:
    """Tell whether each value that moves lies between the smallest and the largest that it ever had."""
    places = _moving(life, steps)
    if len(places) < LEAST_VALUES:
        return False
    return all(min(step[at] for step in steps) < life[at] < max(step[at] for step in steps) for at in places)


def _moving(life: Sequence[float], steps: Sequence[Values]) -> list[int]:
    """Return the first places whose values move over the steps; none where these are not all known."""
    if not steps or any(len(step) != len(life) for step in steps):
        return []
    places = (at for at in range(len(life)) if any(step[at] != steps[0][at] for step in steps))
    return [place for place, _ in zip(places, range(_MOST_VALUES), strict=False)]


def _means(target: Values, series: Sequence[Values]) -> Iterator[_Fit]:
    """Yield the means of the last steps, of each one or of some that lie evenly apart."""
    for apart in range(1, min(_MOST_APART, len(series) - 1) + 1):
        total = [0.0] * len(target)
        for number, step in enumerate(reversed(series[(len(series) - 1) % apart :: apart]), start=1):
            total = [value + more for value, more in zip(total, step, strict=True)]
            if number > 1:
                mean = tuple(value / number for value in total)
                yield _Fit(left=distance(target, mean) or 0.0, words=_mean_in_words(number, apart))


def _mean_in_words(number: int, apart: int) -> str:
    """Say what a mean is of."""
    return f"the mean of those after the last {number} steps" + (f", {apart} apart" if apart > 1 else "")


def _plain_averages(target: Values, series: Sequence[Values]) -> Iterator[_Fit]:
    """Yield all means, and the best moving averages with one decay."""
    yield from _means(target, series)
    for begin in (0, 1):
        yield _best_decay(target, series[begin:], warms_up=False)


def _warmed_up(target: Values, series: Sequence[Values]) -> Iterator[_Fit]:
    """Yield the best moving averages whose decay warms up."""
    for begin in (0, 1):
        yield _best_decay(target, series[begin:], warms_up=True)


def _best_decay(target: Values, series: Sequence[Values], *, warms_up: bool) -> _Fit:
    """Return the moving average with the decay that leaves least."""

    def left(exponent: float) -> float:
        average = _moving_average(series, 1 - 10**-exponent, warms_up=warms_up)
        return distance(target, average) or 0.0

    width = (_TO_EXPONENT - _FROM_EXPONENT) / (_NUM_TRIED - 1)
    coarse = min((_FROM_EXPONENT + number * width for number in range(_NUM_TRIED)), key=left)
    exponent = _narrowed(left, coarse - width, coarse + width)
    words = f"an exponential moving average of those of the steps before, with a decay of {1 - 10**-exponent:.5g}"
    return _Fit(left=left(exponent), words=words + (" that warmed up" if warms_up else ""))


def _moving_average(series: Sequence[Values], decay: float, *, warms_up: bool) -> Values:
    """Return the exponential moving average at the end of a series; it begins as its first element."""
    average = series[0]
    for number, step in enumerate(series[1:], start=1):
        kept = min(decay, (1 + number) / (10 + number)) if warms_up else decay
        average = tuple(kept * old + (1 - kept) * new for old, new in zip(average, step, strict=True))
    return average


def _narrowed(left: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one valley is least, by golden section."""
    for _ in range(_NUM_REFINED):
        span = (high - low) * _GOLDEN
        if left(high - span) <= left(low + span):
            high = low + span
        else:
            low = high - span
    return (low + high) / 2
