"""Which calls of a life are answered with an error, or carried out in part, in place of being carried out.

The fault begins at the crash point: the operation there is the first that may meet it. One that cannot fail so in
truth (a name that is there already needs no room) is carried out, and the next one that can meets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from chaos.faults import disk_full, io_error, short_write
from chaos.faults.answers import Answer
from chaos.model import CrashPoint, FaultKind, Operation, OperationKind


class _Rule(Protocol):
    """What one kind of error answers to an operation; None where that operation does not meet it.

    `is_first`: no answer was given yet. `is_there` tells whether the name that the call would make is there already.
    """

    def __call__(
        self, point: CrashPoint, operation: Operation, *, is_first: bool, is_there: Callable[[], bool]
    ) -> Answer | None: ...


_RULES: Final[Mapping[FaultKind, _Rule]] = MappingProxyType(
    {
        FaultKind.DISK_FULL: disk_full.answer_to,
        FaultKind.IO_ERROR: io_error.answer_to,
        FaultKind.SHORT_WRITE: short_write.answer_to,
    }
)


class Injector:
    """The errors of one life; `num_injected` and `first_index` are what it gives as evidence."""

    def __init__(self, point: CrashPoint) -> None:
        """Inject what `point` says, from there on; its kind must be an error."""
        self._point = point
        self._rule = _RULES[point.fault]
        self.is_reached = False
        self.num_injected = 0
        self.first_index = -1

    def answer_to(self, operation: Operation, *, is_point: bool, is_there: Callable[[], bool]) -> Answer | None:
        """Return what to answer in place of carrying out the next operation (None: carry it out)."""
        self.is_reached |= is_point
        is_over = self.num_injected > 0 and not self._point.is_sticky
        if not self.is_reached or is_over or operation.kind is not OperationKind.FILE:
            return None
        return self._rule(self._point, operation, is_first=not self.num_injected, is_there=is_there)

    def count(self, operation: Operation) -> None:
        """Count an answer that was given."""
        if not self.num_injected:
            self.first_index = operation.index
        self.num_injected += 1
