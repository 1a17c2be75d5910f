"""Calls on a file's bytes and length, written down after they were carried out."""

# ruff: noqa: PTH116 - names are bytes

from __future__ import annotations

import fcntl
import os
from typing import Final

from chaos.intercept.execute import appends
from chaos.intercept.pending import Pending
from chaos.states.book import Book
from chaos.states.changes import Allocated, Durability, Resized, Wrote, Zeroed
from chaos.states.content import Piece
from chaos.states.name_changes import raw
from chaos.states.reading import descriptor_path, open_to_read, stamp, stored_range
from chaos.states.tree import UnknownNodeError

_KEEP_SIZE: Final = 0x01
_PUNCH: Final = 0x02
_ZERO: Final = 0x10
_UNSHARE: Final = 0x40
_RWF_DSYNC: Final = 2
_RWF_SYNC: Final = 4


class ByteChanges:
    """Keeps what a call writes while it is carried out, and writes down what it did.

    Methods but `keep` and `forget` raise OSError or UnknownNodeError where the folder is not as the book says.
    """

    def __init__(self, book: Book) -> None:
        """Write into `book`."""
        self._book = book
        self._offset = 0
        self._pieces: list[Piece] = []

    def keep(self, pending: Pending, data: memoryview) -> None:
        """Keep bytes that a call has just written to its descriptor; HarnessError where there is no room."""
        call, fd = pending.call, pending.fd
        if not self._pieces:
            if appends(call, fd):
                self._offset = os.fstat(fd).st_size - len(data)
            else:
                self._offset = os.lseek(fd, 0, os.SEEK_CUR) - len(data) if call.offset is None else call.offset
        self._pieces.append(self._book.store.put(data))

    def forget(self) -> None:
        """Be ready for the next call."""
        self._pieces.clear()

    def wrote(self, pending: Pending, *, can_tear: bool = True) -> None:
        """Write down what was kept."""
        if self._pieces:
            node = self._book.of_descriptor(pending.fd)
            change = Wrote(
                node=node,
                offset=self._offset,
                pieces=tuple(self._pieces),
                can_tear=can_tear,
                durability=_durability(pending),
                stamps=(stamp(node, os.fstat(pending.fd)),),
            )
            self._book.emit(change)

    def transferred(self, pending: Pending, result: int) -> None:
        """Write down what came from another descriptor: it is read back."""
        call, fd, pointer = pending.call, pending.fd, pending.notification.arguments[3]
        if call.name == "clone_range":
            self._book.import_again(self._book.of_descriptor(fd), fd)
            return
        if result == 0:
            return
        if call.name == "copy_file_range" and pointer:
            end = int.from_bytes(pending.thread.read(pointer, 8), "little")
        else:
            end = os.fstat(fd).st_size if appends(call, fd) else os.lseek(fd, 0, os.SEEK_CUR)
        self._offset = end - result
        reading = open_to_read(descriptor_path(fd))
        try:
            self._pieces.extend(stored_range(self._book.store, reading, end - result, end))
        finally:
            os.close(reading)
        self.wrote(pending)

    def resized(self, pending: Pending) -> None:
        """Write down ftruncate."""
        self._resize(self._book.of_descriptor(pending.fd), os.fstat(pending.fd))

    def truncated(self, pending: Pending) -> None:
        """Write down truncate by name."""
        path = raw(pending.path)
        node = self._book.at(path)
        if node is None:
            raise UnknownNodeError(pending.operation.path)
        self._resize(node.number, os.stat(self._book.full(path)))

    def _resize(self, node: int, state: os.stat_result) -> None:
        """Write down the length that a file has now."""
        self._book.emit(Resized(node=node, size_bytes=state.st_size, stamps=(stamp(node, state),)))

    def allocated(self, pending: Pending) -> None:
        """Write down fallocate; after the rare kinds that move bytes the whole file is read."""
        mode, state, node = pending.call.flags, os.fstat(pending.fd), self._book.of_descriptor(pending.fd)
        if mode & ~(_KEEP_SIZE | _PUNCH | _ZERO | _UNSHARE):
            self._book.import_again(node, pending.fd)
            return
        kind = Zeroed if mode & (_PUNCH | _ZERO) else Allocated
        change = kind(
            node=node,
            offset=pending.call.offset or 0,
            length_bytes=pending.call.size_bytes,
            size_bytes=state.st_size,
            stamps=(stamp(node, state),),
        )
        self._book.emit(change)


def _durability(pending: Pending) -> Durability:
    """Return what of a write is on the disk when it returns."""
    flags = fcntl.fcntl(pending.fd, fcntl.F_GETFL)
    each = pending.call.flags if pending.call.name == "pwritev" else 0
    if flags & os.O_SYNC == os.O_SYNC or each & _RWF_SYNC:
        return Durability.ALL
    return Durability.DATA if flags & os.O_DSYNC or each & _RWF_DSYNC else Durability.NONE
