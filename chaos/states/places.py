"""The place of every operation of a recorded life, and what the life had shown when it came there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.address import Located, Locator
from chaos.model import (
    Address,
    FaultKind,
    FoundState,
    Loss,
    Operation,
    OperationKind,
    Record,
    Target,
    TargetProfile,
)
from chaos.unwatched import Unwatched


class Place(Record, kw_only=True):
    """Where an operation is, and what a watcher has counted when it is struck there."""

    located: Located
    address: Address | None
    num_acknowledged: int
    steps: int
    first_step: int | None
    last_step: int | None
    saves: int
    is_change: bool


def state_at(
    place: Place,
    index: int,
    digest: str,
    *,
    fault: FaultKind = FaultKind.KILL,
    tear_offset: int | None = None,
    variant: int = 0,
    loss: Loss | None = None,
) -> FoundState:
    """Return a crash state at a place that has an address; states of different faults have different digests."""
    assert place.address is not None  # noqa: S101 - the caller has looked
    return FoundState(
        index=index,
        tear_offset=tear_offset,
        fault=fault,
        variant=variant,
        loss=loss,
        digest=digest if fault is FaultKind.KILL else f"{fault}:{digest}",
        address=place.address,
        phase=place.located.phase,
        num_acknowledged=place.num_acknowledged,
        steps=place.steps,
        first_step=place.first_step,
        last_step=place.last_step,
        saves=place.saves,
        is_change=place.is_change,
    )


def places_of(
    log: Sequence[Operation], target: Target, profile: TargetProfile, *, is_first_life: bool
) -> Iterator[Place]:
    """Yield each operation's place in a life, counted as a life that is struck there counts."""
    locator = Locator(target, profile, is_first_life=is_first_life)
    others = Unwatched(target, profile)
    num_acknowledged = 0
    for operation in log:
        located = locator.locate(operation)
        address = located.address or others.address(operation, locator)
        said = located.acknowledges
        # What is struck is not printed any more; but that the thread came to it shows that it had gone on.
        shown = num_acknowledged + (said is not None and not said.is_printed)
        yield Place(
            located=located,
            address=address,
            num_acknowledged=shown,
            steps=locator.steps,
            first_step=locator.first_step,
            last_step=locator.last_step,
            saves=locator.saves,
            is_change=operation.kind is OperationKind.FILE,
        )
        num_acknowledged += said is not None
