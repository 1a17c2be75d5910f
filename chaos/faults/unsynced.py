"""Files whose sync failed and that were not written anew: what a target may not count as saved.

After an fsync that failed, a later one that succeeds proves nothing of the bytes: the kernel takes them for clean. So
only new bytes, under the same name or another one, make up for it. A folder's names are looked at again by the next
fsync of the folder.
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.address import DATA_WRITES
from chaos.faults.answers import SYNCS
from chaos.model import FileRole, Operation, OperationKind

_WRITTEN_ANEW = DATA_WRITES | {"unlink", "truncate", "ftruncate"}
_PUBLISHED = frozenset({FileRole.CHECKPOINT, FileRole.FINAL})


class UnsyncedFiles:
    """Follows the operations of one life; `ignored` are the published files that were acknowledged all the same."""

    def __init__(self, role_of: Callable[[str], FileRole]) -> None:
        """Tell by `role_of` what a path is to the target."""
        self.ignored: tuple[str, ...] = ()
        self._role_of = role_of
        self._written: set[str] = set()
        self._failed: set[str] = set()

    def refuse(self, operation: Operation) -> None:
        """Take an operation that was answered with an error."""
        if operation.kind is OperationKind.FILE and operation.call in SYNCS:
            self._failed.add(operation.path)

    def take(self, operation: Operation) -> None:
        """Take an operation that was carried out."""
        if operation.kind is not OperationKind.FILE:
            return
        path, new = operation.path, operation.new_path
        if operation.call == "rename":
            self._rename(path, new)
        elif operation.call in _WRITTEN_ANEW or operation.creates:
            self._written.add(new or path)
            self._failed.discard(new or path)
        elif operation.call in SYNCS and path not in self._written:  # a folder: its names are written again
            self._failed.discard(path)

    def _rename(self, path: str, new: str) -> None:
        """Let a name take along what is known of it."""
        for known in (self._failed, self._written):
            if path in known:
                known.discard(path)
                known.add(new)
            else:
                known.discard(new)

    def acknowledge(self) -> None:
        """Take it that the target says or shows that a save is done."""
        published = {path for path in self._failed if path not in self._written or self._role_of(path) in _PUBLISHED}
        self.ignored = tuple(sorted({*self.ignored, *published}))
