"""Follow one life's operations: where each is, what it acknowledges, and whether it is the one to strike at."""

from __future__ import annotations

from collections.abc import Callable

from chaos.address import EXIT, Locator
from chaos.faults.torn_write import within
from chaos.lines import LineReader
from chaos.lives.request import LifeRequest
from chaos.model import (
    Acknowledgement,
    Address,
    CrashPoint,
    FaultKind,
    FileRole,
    FileState,
    Operation,
    OperationKind,
    Phase,
)
from chaos.unwatched import NOT_COUNTED, Unwatched

_LOOKS_AT_NEW_FILES = 100


class Watch:
    """The place of a life on the one clock. `see` is called with each operation before it happens."""

    def __init__(self, request: LifeRequest, checkpoints: Callable[[], tuple[FileState, ...]]) -> None:
        """Follow the life of `request`; `checkpoints` looks at the output folder, called at acknowledgements."""
        self.locator = Locator(request.target, request.profile, is_first_life=request.number == 1)
        self.acknowledgements: list[Acknowledgement] = []
        self.struck_phase: Phase | None = None
        self.last_address: Address | None = None
        self.has_probe = False
        self._point = request.crash_point
        self._checkpoints = checkpoints
        self._learner = _Learner(request, checkpoints) if request.is_learning else None
        is_unwatched = self._point is not None and self._point.address.incarnation == NOT_COUNTED
        self._unwatched = Unwatched(request.target, request.profile) if is_unwatched else None

    def see(self, operation: Operation) -> bool:
        """Take the next operation; True where it is the crash point."""
        if operation.kind is OperationKind.TICK or operation.call == "interpreter":
            self.has_probe = True
        located = self.locator.locate(operation)
        self.last_address = located.address
        address = located.address
        if address is None and self._unwatched is not None:
            address = self._unwatched.address(operation, self.locator)
        is_struck = _is_at(self._point, address)
        if self._learner is not None:
            self.acknowledgements.extend(self._learner.look(operation, located.role))
        elif located.acknowledges is not None and not (is_struck and located.acknowledges.is_printed):
            # What is struck is not printed any more; but that the thread came to it shows that it had gone on.
            self.acknowledgements.append(
                Acknowledgement(
                    save=located.acknowledges.save,
                    step=located.acknowledges.step,
                    is_printed=located.acknowledges.is_printed,
                    files=self._checkpoints(),
                )
            )
        if is_struck:
            self.struck_phase = located.phase
        return is_struck


class _Learner:
    """Looks at the checkpoints at every operation that may turn out to acknowledge a save, if one changed since.

    That a save ends where the next one begins is only learnt of a target without any clock: such a one is looked at
    when a file is made, too, but only so many times, since a save may make thousands.
    """

    def __init__(self, request: LifeRequest, checkpoints: Callable[[], tuple[FileState, ...]]) -> None:
        """Look through `checkpoints` at ticks, step lines, acknowledgements, the exit, and when a file is made anew."""
        self._checkpoints = checkpoints
        self._lines = LineReader(request.target)
        self._is_changed = False
        self._looks_at_new_files = _LOOKS_AT_NEW_FILES

    def look(self, operation: Operation, role: FileRole | None) -> tuple[Acknowledgement, ...]:
        """Return what was seen, numbered by the operation; nothing where no checkpoint changed."""
        if operation.kind is OperationKind.FILE:
            is_next = self._is_changed and operation.creates and self._looks_at_new_files > 0
            self._looks_at_new_files -= is_next
            self._is_changed |= role is FileRole.CHECKPOINT
            return self._photograph(operation) if is_next else ()
        if not self._is_candidate(operation) or not self._is_changed:
            return ()
        self._is_changed = False
        self._looks_at_new_files = 0  # it has a clock
        return self._photograph(operation)

    def _is_candidate(self, operation: Operation) -> bool:
        """Tell whether an operation that changes no file may acknowledge a save."""
        if operation.kind is OperationKind.OUTPUT:
            reading = self._lines.read(operation.stream, operation.text, thread=operation.thread)
            return bool(reading.steps or reading.acknowledged)
        return operation.kind is OperationKind.TICK or operation.call == EXIT

    def _photograph(self, operation: Operation) -> tuple[Acknowledgement, ...]:
        """Look at the checkpoints now."""
        return (Acknowledgement(save=operation.index, step=None, is_printed=False, files=self._checkpoints()),)


def _is_at(point: CrashPoint | None, address: Address | None) -> bool:
    """Tell whether an operation is the crash point."""
    return point is not None and address is not None and address == point.address


def tear_within(point: CrashPoint, operation: Operation) -> int | None:
    """Return the file offset at which a kill tears the write, None where it is not to be torn.

    Sizes may differ a little between runs: an offset outside of this write becomes the nearest possible one strictly
    inside it, if there is one: a multiple of 4096, or any for `torn_write`.
    """
    if point.fault is FaultKind.TORN_WRITE:
        return within(point, operation)
    if point.tear_offset is None:
        return None
    first = (operation.offset // 4096 + 1) * 4096
    last = (operation.offset + operation.size_bytes - 1) // 4096 * 4096
    return min(max(point.tear_offset, first), last) if first <= last else None
