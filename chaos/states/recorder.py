"""Keeps what the calls of a life change in the output folder, as they are carried out: the operation log with data."""

# ruff: noqa: PTH116 - names are bytes

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from chaos.intercept.decode import Effect
from chaos.intercept.memory import TargetGoneError
from chaos.intercept.pending import Pending
from chaos.model import OperationKind
from chaos.states.book import Book
from chaos.states.byte_changes import ByteChanges
from chaos.states.changes import Synced
from chaos.states.comparing import differences
from chaos.states.log import StateAt
from chaos.states.loose import LooseEnds
from chaos.states.name_changes import NameChanges
from chaos.states.reading import identity
from chaos.states.recording import Recording
from chaos.states.tree import UnknownNodeError

_SYNCS: Final = frozenset({"fsync", "fdatasync", "syncfs", "sync_file_range"})
_UNLIKE_THE_BOOK: Final = (OSError, UnknownNodeError, TargetGoneError)


class FolderRecorder:
    """Records one life in a folder of its own; `finish` says what the record does not explain.

    Give it to the life's `Session`. Use as a context manager, or close it; without `finish` the recording is not whole.
    """

    def __init__(self, folder: Path, out: Path, *, base: tuple[Path, StateAt] | None = None) -> None:
        """Record into `folder` what happens in `out`, where nothing runs yet.

        `base`: the folder of another recording and the state of it that `out` is; without it, what is in `out` is
        stored. Raises HarnessError where there is no room, or `out` is not that state.
        """
        self._folder = folder
        self._out = out
        self._book = Book(folder, out, base)
        self._loose = LooseEnds(self._book)
        self._bytes = ByteChanges(self._book)
        self._names = NameChanges(self._book)
        self._pending: Pending | None = None
        self._num_operations = 0
        self._is_closed = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self.close()

    def begin(self, pending: Pending) -> None:
        """Take the call that is about to be carried out: what came before it is over."""
        self._put_cut_write_down()
        self._book.index = pending.operation.index - 1
        self._settle(pending.thread.thread_id)
        self._pending = pending
        if pending.call.effect is Effect.DATA and pending.operation.kind is OperationKind.FILE:
            try:
                self._book.of_descriptor(pending.fd)  # a file that is new to us is taken in as it is before the call
            except _UNLIKE_THE_BOOK:
                self._book.lost.add(pending.operation.path)

    def keep(self, data: memoryview) -> None:
        """Keep bytes that the call has just written; HarnessError where there is no room."""
        assert self._pending is not None  # noqa: S101 - `begin` came before
        self._bytes.keep(self._pending, data)

    def done(self, pending: Pending, result: int, fd: int = -1) -> None:
        """Take the result of a call (let run: 0); `fd` is what an open gave."""
        operation = pending.operation
        if operation.kind is OperationKind.FILE:
            self._book.index, self._book.call = operation.index, pending.call.name
            try:
                if result >= 0:
                    self._write_down(pending, result, fd)
                elif pending.call.name in _SYNCS:
                    self._book.emit(Synced(node=self._book.of_descriptor(pending.fd), has_failed=True))
                if pending.call.effect is Effect.DATA:
                    self._book.stamp_again(pending.fd)  # some that fail, or move no byte, set the time all the same
            except _UNLIKE_THE_BOOK:
                self._book.lost.add(operation.new_path or operation.path)
        self._num_operations = operation.index + 1
        self._bytes.forget()
        self._pending = None

    def skip(self, pending: Pending) -> None:
        """Take it that a call was answered as if it had been carried out, and was not."""
        self._num_operations = pending.operation.index + 1
        self._pending = None

    def note_outside(self, state: os.stat_result, *, is_sync: bool) -> None:
        """Take it that a file outside of the folder is about to be synced, or else written: it may come in later."""
        if is_sync:
            self._book.synced_outside.add(identity(state))
        else:
            self._book.synced_outside.discard(identity(state))

    def note_sync(self, index: int) -> None:
        """Take it that everything is made durable before operation `index`."""
        self._book.index, self._book.call = index - 1, "sync"
        self._book.emit(Synced())

    def finish(self) -> tuple[str, ...]:
        """End the recording when nothing runs any more; return the names that it does not explain.

        The whole log is read back and replayed, and compared with the real folder: every name, content, permission,
        time and hard link. Raises HarnessError where there is no room.
        """
        self._put_cut_write_down()
        self._book.index = self._num_operations - 1
        self._settle(None)
        self._close(self._num_operations)
        with Recording(self._folder) as recording:
            found = differences(recording.tree_at(recording.end), self._out)
        return tuple(sorted({*found, *self._book.lost}))

    def close(self) -> None:
        """Close the files; a recording that was not finished is not whole."""
        self._close(None)

    def _close(self, num_operations: int | None) -> None:
        """Close the files, once."""
        if not self._is_closed:
            self._is_closed = True
            self._loose.close()
            self._book.close(num_operations)

    def _settle(self, thread_id: int | None) -> None:
        """Look again at what calls touch that run by themselves."""
        try:
            self._loose.settle(thread_id)
        except UnknownNodeError as error:
            self._book.lost.add(str(error))

    def _put_cut_write_down(self) -> None:
        """Write down what a write had done whose thread died in the middle: it is no operation of the log."""
        if self._pending is not None:
            self._book.index, self._book.call = self._pending.operation.index - 1, self._pending.call.name
            with suppress(UnknownNodeError):  # told by its name when the write began
                self._bytes.wrote(self._pending, can_tear=False)
            self._bytes.forget()
            self._pending = None

    def _write_down(self, pending: Pending, result: int, fd: int) -> None:  # noqa: C901, PLR0912 - one case a line is how this is read
        """Write down what a call did."""
        match pending.call.name:
            case "openat":
                self._names.opened(pending, fd)
            case "mkdir" | "mknod" | "symlink" if pending.call.effect is Effect.NAMES:
                self._names.made(pending)
            case "unlink" | "rmdir":
                self._names.unlinked(pending)
            case "link":
                self._names.linked(pending)
            case "rename":
                self._names.renamed(pending)
            case "sendfile" | "copy_file_range" | "clone_range":
                self._bytes.transferred(pending, result)
            case "splice":
                self._touch(pending, has_bytes=True)
            case "ftruncate":
                self._bytes.resized(pending)
            case "truncate":
                self._bytes.truncated(pending)
            case "fallocate":
                self._bytes.allocated(pending)
            case name if name in _SYNCS:
                self._book.emit(Synced(node=self._book.of_descriptor(pending.fd)))
            case _ if pending.call.effect is Effect.DATA:
                self._bytes.wrote(pending)
            case _:
                self._touch(pending)

    def _touch(self, pending: Pending, *, has_bytes: bool = False) -> None:
        """Look later at what a call touches that runs by itself, by descriptor or by name."""
        thread_id, call = pending.thread.thread_id, pending.call
        if pending.fd >= 0:
            node = self._book.of_descriptor(pending.fd)
            self._loose.add(thread_id, node, call.name, fd=pending.fd, has_bytes=has_bytes)
            return
        for follows in (True, False):
            with suppress(OSError):  # what is not there is not changed
                number = self._book.number_of(os.stat(call.path or b"", follow_symlinks=follows))
                if number is not None:
                    self._loose.add(thread_id, number, call.name)
