"""Where the canary is killed; pure."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.model import CrashPoint, PlannablePoint, TargetProfile


def canary_points(profile: TargetProfile, points: Iterable[PlannablePoint]) -> tuple[CrashPoint, ...]:
    """Return the canary's crash point: where the second save begins, or else the last one after the first.

    The first save was acknowledged by then, whatever acknowledges it, and the second has not changed anything yet.
    Without any save there is no such point.
    """
    if not profile.saves:
        return ()
    found = tuple(points)
    inside = [point for point in found if point.address.save == profile.saves[0].ordinal + 1]
    outside = [point for point in found if not point.address.save]
    return tuple(CrashPoint(address=point.address, expected_phase=point.phase) for point in inside[:1] or outside[-1:])
