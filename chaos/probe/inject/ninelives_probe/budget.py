"""Which steps are digested, so that the probe stays within its share of the time that steps take.

A record has a light part (data, generators, settings) and a full one (all tensors). Each is made every so many steps, a
power of two, counted from the last step that was forced (the first one, and each right after a save). So the steps that
are digested in a life that resumed from a save are, by and large, those that are digested in the reference, too.
"""

from __future__ import annotations

import time

DEFAULT_PERCENT = 5.0
_ALL = 100.0
_MEMORY = 0.3  # how much the newest time counts in what the next one is expected to be
_LONGEST_STRIDE = 1 << 20
_LEAST_FORCED_S = 2.0  # of processor time, however short the training is


class Budget:
    """Knows what the parts of a record cost, and how long a step takes; forced ones cost what they cost."""

    def __init__(self, percent: float) -> None:
        """Allow `percent` of a step's time: 100 and more allows everything, 0 nothing at all."""
        self._percent = percent
        self._light_s = 0.0
        self._full_s = 0.0
        self._step_s = 0.0
        self._last_s = 0.0
        self._spent_s = 0.0
        self._offset = 0
        self._first_s = 0.0
        self._forced_s = 0.0

    @property
    def is_off(self) -> bool:
        """Tell whether nothing is digested, not even next to a save."""
        return self._percent <= 0

    def begin_step(self, *, is_forced: bool) -> None:
        """Count a step that is about to be done; its own time is that since the last one, without our part of it."""
        now_s = time.perf_counter()
        if self._last_s:
            self._step_s = _moved(self._step_s, now_s - self._last_s - self._spent_s)
        self._last_s, self._spent_s = now_s, 0.0
        self._offset = 0 if is_forced else self._offset + 1

    def can_force(self) -> bool:
        """Tell whether something that may be a save, or not, may force one more record: such ones are bounded, too."""
        elapsed_s = time.perf_counter() - self._first_s if self._first_s else 0.0
        return self._forced_s <= max(_LEAST_FORCED_S, elapsed_s * self._percent / 100)

    def charge(self, light_s: float, full_s: float | None, spent_s: float, *, is_forced: bool) -> None:
        """Take what the parts of this step's record cost, in seconds (None: it had no full part), and all of it."""
        self._first_s = self._first_s or time.perf_counter()
        self._forced_s += spent_s if is_forced else 0.0
        self._light_s = _moved(self._light_s, light_s)
        if full_s is not None:
            self._full_s = _moved(self._full_s, full_s)
        self._spent_s = spent_s

    def allows_light(self) -> bool:
        """Tell whether this step has the light part."""
        return self._percent >= _ALL or self._offset % self._light_stride() == 0

    def allows_full(self) -> bool:
        """Tell whether this step, which has the light part, has the full one too."""
        if self._percent >= _ALL or self._offset == 0:
            return True
        left_s = self._step_s * self._percent / 100 - self._light_s / self._light_stride()
        return self._offset % max(self._light_stride(), _stride(self._full_s, left_s)) == 0

    def _light_stride(self) -> int:
        """Return every how many steps there is a light part."""
        return _stride(self._light_s, self._step_s * self._percent / 100)


def _stride(cost_s: float, allowed_s: float) -> int:
    """Return the smallest power of two of steps over which a cost is not more than what is allowed for each."""
    stride = 1
    while cost_s > allowed_s * stride and stride < _LONGEST_STRIDE:
        stride *= 2
    return stride


def _moved(before_s: float, newest_s: float) -> float:
    """Return an average in which what is new counts most."""
    return before_s + (newest_s - before_s) * _MEMORY if before_s else newest_s
