"""Where an exploration lets a life meet an error: at every operation that can fail so, once and from there on; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chaos.address import DATA_WRITES
from chaos.faults import PLANS
from chaos.model import CrashPoint, FaultKind, Operation, OperationKind, PlannablePoint
from chaos.planners.exhaustive import save_asked_for
from chaos.states.places import Place


def error_points(
    log: Sequence[Operation], places: Sequence[Place], kinds: Iterable[FaultKind], saves: str, num_saves: int
) -> Iterator[CrashPoint]:
    """Yield the crash points of all errors among `kinds`, in the saves asked for, in the order of a recorded life.

    A write that is cut short is cut in its middle.
    """
    wanted = save_asked_for(saves, num_saves)
    points = [
        _point(operation, place)
        for operation, place in zip(log, places, strict=True)
        if place.address is not None and wanted in {0, place.address.save}
    ]
    for kind in kinds:
        for point in points if kind.is_error else ():
            if PLANS[kind].can_strike(point, None):
                yield from _at(point, kind)


def _point(operation: Operation, place: Place) -> PlannablePoint:
    """Return an operation as planners see it."""
    assert place.address is not None  # noqa: S101 - the caller has looked
    has_inside = operation.kind is OperationKind.FILE and operation.call in DATA_WRITES
    return PlannablePoint(
        address=place.address,
        phase=place.located.phase,
        position=place.steps,
        start=operation.offset if has_inside else 0,
        end=operation.offset + operation.size_bytes if has_inside else 0,
    )


def _at(point: PlannablePoint, kind: FaultKind) -> Iterator[CrashPoint]:
    """Yield what can be at one point."""
    at = CrashPoint(address=point.address, expected_phase=point.phase, fault=kind)
    if kind is FaultKind.SHORT_WRITE:
        middle = (point.start + point.end) // 2
        yield CrashPoint(address=point.address, expected_phase=point.phase, fault=kind, tear_offset=middle)
        return
    yield at
    yield CrashPoint(address=point.address, expected_phase=point.phase, fault=kind, is_sticky=True)
