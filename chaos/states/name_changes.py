"""Calls on names, written down after they were carried out: what appeared, moved or went away in the folder."""

# ruff: noqa: PTH116 - names are bytes

from __future__ import annotations

import os
from typing import Final

from chaos.intercept.pending import Pending
from chaos.intercept.syscalls import O_TRUNC
from chaos.states.book import Book
from chaos.states.changes import Linked, NodeKind, Renamed, Resized, Unlinked
from chaos.states.reading import descriptor_path, kind_of, link_text, open_to_read, stamp
from chaos.states.tree import UnknownNodeError

_EXCHANGE: Final = 2


class NameChanges:
    """Writes down opens that make or empty a file, and the calls that make, move or remove names.

    All methods raise OSError or UnknownNodeError where the folder is not as the book says.
    """

    def __init__(self, book: Book) -> None:
        """Write into `book`."""
        self._book = book

    def opened(self, pending: Pending, fd: int) -> None:
        """Write down an open that made or emptied a file."""
        path, state = raw(pending.path), os.fstat(fd)
        node = self._book.at(path)
        if node is None:
            self._book.make(state, descriptor_path(fd), place=self._book.place(path))
            self._book.stamp_folders(path)
        elif self._book.number_of(state) != node.number:
            raise UnknownNodeError(pending.operation.path)
        elif pending.call.flags & O_TRUNC:
            self._book.emit(Resized(node=node.number, size_bytes=state.st_size, stamps=(stamp(node.number, state),)))

    def made(self, pending: Pending) -> None:
        """Write down a new folder, link or FIFO, or a file made by mknod."""
        path = raw(pending.path)
        full = self._book.full(path)
        state = os.stat(full, follow_symlinks=False)
        if kind_of(state) is None:
            return
        text = link_text(full) if pending.call.name == "symlink" else ""
        self._book.make(state, full, place=self._book.place(path), text=text)
        self._book.stamp_folders(path)

    def unlinked(self, pending: Pending) -> None:
        """Write down a name that was removed; that of a socket or device was never told of, so it is lost."""
        path = raw(pending.path)
        if self._book.at(path) is not None:
            self._remove(path)
        else:
            self._book.lost.add(pending.operation.path)  # states in between cannot be built as they were

    def _remove(self, path: bytes) -> None:
        """Write down that a name is gone."""
        parent, name = self._book.place(path)
        self._book.emit(Unlinked(parent=parent, name=name, stamps=(self._book.folder_stamp(path),)))

    def linked(self, pending: Pending) -> None:
        """Write down a further name, or the first one of a file that had none; from outside, with what it holds."""
        if pending.new_path is None:
            return  # a further name outside of the folder
        path = raw(pending.new_path)
        state = os.stat(self._book.full(path), follow_symlinks=False)
        number = self._book.number_of(state)
        if number is None and pending.path is not None and kind_of(state) is NodeKind.FILE:
            number = self._nameless(path)
        if number is None:
            self._book.arrive(path)
            self._book.stamp_folders(path)
            return
        parent, name = self._book.place(path)
        stamps = (stamp(number, state), self._book.folder_stamp(path))
        self._book.emit(Linked(node=number, parent=parent, name=name, stamps=stamps))

    def _nameless(self, path: bytes) -> int:
        """Return the node of a file that had no name until now."""
        fd = open_to_read(self._book.full(path))
        try:
            return self._book.of_descriptor(fd)
        finally:
            os.close(fd)

    def renamed(self, pending: Pending) -> None:
        """Write down a rename within the folder, out of it, or into it."""
        is_exchange = bool(pending.call.flags & _EXCHANGE)
        if pending.path is not None and pending.new_path is not None:
            self._move(raw(pending.path), raw(pending.new_path), is_exchange=is_exchange)
            return
        path = raw(pending.new_path if pending.path is None else pending.path)
        if self._book.at(path) is not None:
            self._remove(path)
        if pending.path is None or is_exchange:
            self._book.arrive(path)
            self._book.stamp_folders(path)

    def _move(self, path: bytes, new_path: bytes, *, is_exchange: bool) -> None:
        """Write down a rename within the folder."""
        (parent, name), (new_parent, new_name) = self._book.place(path), self._book.place(new_path)
        change = Renamed(parent=parent, name=name, new_parent=new_parent, new_name=new_name, is_exchange=is_exchange)
        self._book.emit(change)
        self._book.stamp_folders(path, new_path)


def raw(path: str | None) -> bytes:
    """Return the bytes of a path in the folder; UnknownNodeError for one that is outside."""
    if path is None:
        raise UnknownNodeError
    return os.fsencode(path)
