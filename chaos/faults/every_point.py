"""Where an exploration lets a life meet an error: at every operation that can fail so, once and from there on; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chaos.faults import PLANS
from chaos.model import CrashPoint, FaultKind, PlannablePoint
from chaos.planners.exhaustive import save_asked_for


def error_points(
    points: Iterable[PlannablePoint], kinds: Iterable[FaultKind], saves: str, num_saves: int
) -> Iterator[CrashPoint]:
    """Yield the crash points of all errors among `kinds`, in the saves asked for, in the order of the reference.

    A write that is cut short is cut in its middle.
    """
    known, wanted = tuple(points), save_asked_for(saves, num_saves)
    for kind in kinds:
        for point in known if kind.is_error else ():
            if wanted in {0, point.address.save} and PLANS[kind].can_strike(point, None):
                yield from _at(point, kind)


def _at(point: PlannablePoint, kind: FaultKind) -> Iterator[CrashPoint]:
    """Yield what can be at one point."""
    at = CrashPoint(address=point.address, expected_phase=point.phase, fault=kind)
    if kind is FaultKind.SHORT_WRITE:
        middle = (point.start + point.end) // 2
        yield CrashPoint(address=point.address, expected_phase=point.phase, fault=kind, tear_offset=middle)
        return
    yield at
    yield CrashPoint(address=point.address, expected_phase=point.phase, fault=kind, is_sticky=True)
