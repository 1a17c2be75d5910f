"""Addresses of operations that a campaign of drawn kills leaves alone: on other files, and on folders.

Explorations count them: nobody knows what a resume reads, and fsync of a folder can fail.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from chaos.address import Locator
from chaos.model import Address, Operation, OperationKind, Target, TargetProfile
from chaos.roles import FileNames, anywhere, compile_globs

NOT_COUNTED: Final = -1


class Unwatched:
    """Gives addresses to the operations of one life that its locator has none for, in clock order."""

    def __init__(self, target: Target, profile: TargetProfile) -> None:
        """Name files as a locator does."""
        self._names = FileNames(target, profile)
        self._ignored = compile_globs(tuple(anywhere(glob) for glob in target.ignore))
        self._counts: Counter[tuple[int, int, str, str]] = Counter()

    def address(self, operation: Operation, locator: Locator) -> Address | None:
        """Return the place of an operation on a file in the folder; None for one outside, ignored, or without a name.

        `locator` has just located the operation. The incarnation is `NOT_COUNTED`: such a file's are not.
        """
        path = operation.new_path or operation.path
        is_inside = operation.kind is OperationKind.FILE and not path.startswith(("/", "#"))
        if not is_inside or self._ignored.fullmatch(path):
            return None
        save = locator.saves if locator.is_in_save else 0
        tick = 0 if save else locator.steps
        key = self._names.name(path).key
        self._counts[save, tick, key, operation.call] += 1
        occurrence = self._counts[save, tick, key, operation.call]
        return Address(
            save=save, tick=tick, file=key, incarnation=NOT_COUNTED, call=operation.call, occurrence=occurrence
        )
