"""Do what a held call does and answer it with the result: the one place where the supervisor acts for the target."""

# ruff: noqa: PTH108 - the target's paths are bytes

from __future__ import annotations

import errno
import os
from typing import Final

from chaos.intercept.decode import Effect, follows_links
from chaos.intercept.execute import Executor
from chaos.intercept.ledger import Ledger
from chaos.intercept.memory import Descriptors
from chaos.intercept.notify import Listener
from chaos.intercept.pending import Pending
from chaos.intercept.recorder import Recorder
from chaos.intercept.syscalls import FICLONE, O_CLOEXEC, Machine
from chaos.model import OperationKind

_OUTPUT_LIMIT_BYTES: Final = 64 << 20
_MAKERS: Final = ("mkdir", "symlink", "mknod")
_CHANGERS: Final = ("truncate", "link")
_RENAME_EXCHANGE: Final = 2


class Performer:
    """Carries held calls out, one at a time, and keeps the ledger of what it did."""

    def __init__(
        self,
        machine: Machine,
        listener: Listener,
        descriptors: Descriptors,
        ledger: Ledger,
        recorder: Recorder | None = None,
        *,
        without_fsync: bool = False,
    ) -> None:
        """Answer through `listener`; note in `ledger` how each touched file is afterwards; tell `recorder` all."""
        self._listener = listener
        self._descriptors = descriptors
        self._ledger = ledger
        self._recorder = recorder
        self._without_fsync = without_fsync
        self._executor = Executor(machine)

    def perform(self, pending: Pending) -> bool:  # noqa: PLR0911 - one case a line is how this is read
        """Do what the call does and answer it; False where nobody waited for the answer.

        Raises TargetGoneError where the target died before all of its memory was read.
        """
        if self._recorder is not None:
            self._recorder.begin(pending)
        match pending.call.effect:
            case Effect.DATA if pending.operation.kind is not OperationKind.FILE and pending.call.segments:
                return self._answer(pending, self._store_output(pending))
            case Effect.DATA if pending.call.name == "splice":
                return self._splice(pending)
            case Effect.DATA:
                return self._answer(pending, self._change_data(pending))
            case Effect.SYNC if self._without_fsync:
                if self._recorder is not None:
                    self._recorder.skip(pending)
                return self._listener.answer(pending.notification, 0)
            case Effect.SYNC:
                return self._answer(pending, self._executor.sync(pending.call, pending.fd))
            case Effect.NAMES:
                return self._answer(pending, self._change_names(pending))
            case Effect.OPEN:
                return self._open(pending)
            case _:
                return self._let_run(pending)

    def _answer(self, pending: Pending, result: int) -> bool:
        """Answer with the result of a call that was carried out."""
        self._record(pending, result)
        return self._listener.answer(pending.notification, result)

    def _record(self, pending: Pending, result: int, fd: int = -1) -> None:
        """Tell the recorder, if there is one, what came of a call."""
        if self._recorder is not None:
            self._recorder.done(pending, result, fd)

    def write_part(self, pending: Pending, limit_bytes: int) -> int:
        """Carry out the first `limit_bytes` of a write and answer nothing; return the bytes written."""
        return max(self._write_part(pending, limit_bytes), 0)

    def shorten(self, pending: Pending, limit_bytes: int) -> tuple[int, bool]:
        """Carry out the first `limit_bytes` of a write and answer their number; return it, and if somebody waited."""
        result = self._write_part(pending, limit_bytes)
        return result, self._listener.answer(pending.notification, result)

    def refuse(self, pending: Pending, error: int) -> bool:
        """Answer with the errno `error` and carry nothing out; False where nobody waited for the answer."""
        if self._recorder is not None:
            self._recorder.begin(pending)
        return self._answer(pending, -error)

    def _write_part(self, pending: Pending, limit_bytes: int) -> int:
        """Carry out the first `limit_bytes` of a write; return the bytes written, or a negative errno."""
        if self._recorder is not None:
            self._recorder.begin(pending)
        keep = None if self._recorder is None else self._recorder.keep
        try:
            if pending.call.is_transfer:
                result = self._transfer(pending, limit_bytes)
            else:
                result = self._executor.write(pending.thread, pending.call, pending.fd, limit_bytes, keep)
            self._record(pending, result)
            return result
        finally:
            self._ledger.note(os.fstat(pending.fd))

    def _store_output(self, pending: Pending) -> int:
        """Store output in its log, up to a limit; what is above it counts as written."""
        if os.fstat(pending.fd).st_size < _OUTPUT_LIMIT_BYTES:
            return self._executor.write(pending.thread, pending.call, pending.fd)
        return pending.call.size_bytes

    def _change_data(self, pending: Pending) -> int:
        """Change a file's bytes or size; the file is noted also where the target dies in the middle."""
        try:
            if pending.call.name in ("ftruncate", "fallocate"):
                return self._executor.resize(pending.call, pending.fd)
            if pending.call.segments or not pending.call.is_transfer:
                keep = None if self._recorder is None else self._recorder.keep
                return self._executor.write(pending.thread, pending.call, pending.fd, keep=keep)
            return self._transfer(pending)
        finally:
            self._ledger.note(os.fstat(pending.fd))

    def _transfer(self, pending: Pending, limit_bytes: int | None = None) -> int:
        """Move bytes between two of the target's descriptors, at most so many."""
        call, notification, thread = pending.call, pending.notification, pending.thread
        a = notification.arguments
        if call.name == "clone_range":
            is_whole = a[1] & 0xFFFFFFFF == FICLONE
            number = a[2] if is_whole else int.from_bytes(thread.read(a[2], 8), "little")
        else:
            number = a[1] if call.name == "sendfile" else a[0]
        source = self._descriptors.copy(thread, number & 0xFFFFFFFF)
        if source < 0:
            return -errno.EBADF
        try:
            if call.name == "clone_range":
                return self._executor.clone(thread, notification, source, pending.fd)
            return self._executor.transfer(thread, call.name, notification, source, pending.fd, limit_bytes)
        finally:
            os.close(source)

    def _splice(self, pending: Pending) -> bool:
        """Let the kernel do it: the pipe may be empty, and waiting for it here would stop the one who fills it."""
        self._ledger.excuse(os.fstat(pending.fd))
        self._record(pending, 0)
        return self._listener.let_run(pending.notification)

    def _change_names(self, pending: Pending) -> int:
        """Make, move or remove a name; what comes in from outside is explained as it was right before."""
        for entering in _entering(pending):
            self._ledger.note_entering(entering)
        result = self._executor.change_names(pending.thread, pending.call)
        touched = pending.call.new_path or pending.call.path
        name = pending.call.name
        is_old = name == "link" and pending.path is None
        if result >= 0 and touched is not None and name in (*_MAKERS, *_CHANGERS) and not is_old:
            self._ledger.note_path(touched, is_new=name in _MAKERS)
        return result

    def _open(self, pending: Pending) -> bool:
        """Open as the target would, for its own table; where that is full, take a new file away again."""
        path = pending.call.path or b""
        is_new = not os.path.lexists(path)
        fd = self._executor.open(pending.thread, pending.call)
        if fd < 0:
            return self._answer(pending, fd)
        try:
            self._ledger.note_new(os.fstat(fd)) if is_new else self._ledger.note(os.fstat(fd))
            is_cloexec = bool(pending.call.flags & O_CLOEXEC)
            handed = self._listener.answer_with_fd(pending.notification, fd, close_on_exec=is_cloexec)
            if handed == -errno.EMFILE and is_new:
                os.unlink(path)
                self._record(pending, handed)
            else:
                self._record(pending, 0, fd)
        finally:
            os.close(fd)
        return handed >= 0 or self._listener.answer(pending.notification, handed)

    def _let_run(self, pending: Pending) -> bool:
        """Let the kernel do it: calls that change neither bytes nor names."""
        self._record(pending, 0)
        if pending.fd >= 0:
            self._ledger.loosen(os.fstat(pending.fd))
        elif pending.call.path is not None:
            self._ledger.loosen_path(pending.call.path)
        return self._listener.let_run(pending.notification)


def _entering(pending: Pending) -> list[bytes]:
    """Return what a rename or a link is about to bring into the folder from outside of it."""
    call = pending.call
    if call.name not in ("rename", "link") or call.path is None or call.new_path is None:
        return []
    entering = []
    if pending.path is None and pending.new_path is not None:
        # Where a link follows symbolic links, what they lead to gets the name.
        entering.append(os.path.realpath(call.path) if follows_links(call) else call.path)
    if call.flags & _RENAME_EXCHANGE and call.name == "rename" and pending.new_path is None:
        entering.append(call.new_path)
    return entering
