"""The place of every operation of a recorded life, and what the life had shown when it came there."""

from __future__ import annotations

from collections import Counter
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
from chaos.roles import FileNames, anywhere, compile_globs


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
    others = _Others(target, profile)
    num_acknowledged = 0
    for operation in log:
        located = locator.locate(operation)
        save = locator.saves if locator.is_in_save else 0
        address = located.address or others.address(operation, save=save, tick=0 if save else locator.steps)
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


class _Others:
    """Gives addresses to operations on files that a campaign of drawn kills leaves alone."""

    def __init__(self, target: Target, profile: TargetProfile) -> None:
        """Name files as a locator does."""
        self._names = FileNames(target, profile)
        self._ignored = compile_globs(tuple(anywhere(glob) for glob in target.ignore))
        self._counts: Counter[tuple[int, int, str, str]] = Counter()

    def address(self, operation: Operation, *, save: int, tick: int) -> Address | None:
        """Return the place of an operation on a file in the folder; None for one outside, ignored, or without a name.

        The incarnation is -1: such a file's are not counted.
        """
        path = operation.new_path or operation.path
        is_inside = operation.kind is OperationKind.FILE and not path.startswith(("/", "#"))
        if not is_inside or self._ignored.fullmatch(path):
            return None
        key = self._names.name(path).key
        self._counts[save, tick, key, operation.call] += 1
        occurrence = self._counts[save, tick, key, operation.call]
        return Address(save=save, tick=tick, file=key, incarnation=-1, call=operation.call, occurrence=occurrence)
