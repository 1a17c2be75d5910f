"""The one clock of a life: every watched call in one order, carried out and logged, or left hanging for ever.

The caller polls `Session.fd`, takes a `Pending` from `receive`, and commits it (it happens, and is logged), refuses or
shortens it (an error, or a part of it, happens in its place), tears it, or does none of this: then it never happens,
which is what a strike is.
"""

# ruff: noqa: PTH113, PTH115, PTH116 - on the way of every held call, where a Path costs more than the work

from __future__ import annotations

import dataclasses
import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from chaos.intercept.decode import Call, Effect, decode, follows_links, will_change
from chaos.intercept.execute import appends
from chaos.intercept.ledger import Ledger
from chaos.intercept.memory import Descriptors, TargetGoneError, TargetThread
from chaos.intercept.notify import Listener, Notification
from chaos.intercept.pending import Pending, Sinks
from chaos.intercept.perform import Performer
from chaos.intercept.places import Places
from chaos.intercept.recorder import Recorder
from chaos.intercept.spelling import spell
from chaos.intercept.syscalls import X32_BIT, this_machine
from chaos.model import TEXT_LIMIT_CHARACTERS, Operation, OperationKind

_MAKERS: Final = ("openat", "rename", "link", "symlink", "mkdir", "mknod")
_TEXT_IN_LOG_CHARACTERS: Final = 64 << 20  # beyond that, the log keeps only the text of short writes: lines, no flood
_SHORT_TEXT_CHARACTERS: Final = 256
_WORD_BYTES: Final = 64
NO_DIGEST: Final = "-"  # of a tick with a record in which not everything is digested


class Session:
    """One life's calls, from the first to the strike or the end."""

    def __init__(
        self,
        listener_fd: int,
        *,
        root_pid: int,
        out: Path,
        sinks: Sinks,
        private: tuple[Path, ...],
        is_killable_only: bool,
        recorder: Recorder | None = None,
        without_fsync: bool = False,
    ) -> None:
        """Watch `out`; changes below `private` folders (ours) are not reported as outside.

        `is_killable_only`: a call that was received is withdrawn by its thread's death alone, never by a signal handler
        (Linux 5.19). `recorder` is told what each call does. With `without_fsync` syncs are answered, not carried out.
        """
        self.fd = listener_fd
        self.log: list[Operation] = []
        self.foreign_calls = 0
        self.interrupted_calls = 0
        self._machine = this_machine()
        self._listener = Listener(listener_fd)
        self._descriptors = Descriptors()
        self._ledger = Ledger(out)
        self._places = Places(out, private)
        self._performer = Performer(
            self._machine,
            self._listener,
            self._descriptors,
            self._ledger,
            recorder,
            without_fsync=without_fsync,
        )
        self._recorder = recorder
        self._root_pid = root_pid
        self._is_killable_only = is_killable_only
        self._is_exiting = False
        self._namespace = os.readlink("/proc/self/ns/mnt")
        self._threads: dict[int, int] = {}
        self._copies: set[int] = set()
        self._text_left = _TEXT_IN_LOG_CHARACTERS
        self._sinks = {
            _identity(os.stat(path)): name
            for name, path in (("stdout", sinks.stdout), ("stderr", sinks.stderr), ("ticks", sinks.ticks))
        }

    @property
    def outside_writes(self) -> tuple[str, ...]:
        """Return the paths outside of the folder that the target wrote to."""
        return tuple(self._places.outside_writes)

    # --- taking the next call ---------------------------------------------------------------------

    def receive(self) -> Pending | None:
        """Take one notification; return it if the log is about it, else let it run and return None."""
        notification = self._listener.receive()
        self._count_interrupted()
        if notification is None:
            return None
        thread = TargetThread(notification.thread_id)
        try:
            pending = self._examine(notification, thread)
        except TargetGoneError:
            # It may also be one that we may not look into: then it waits for an answer, and nobody knows what it did.
            self.foreign_calls += self._listener.let_run(notification)
            return None
        if pending is None:
            self._listener.let_run(notification)
            return None
        if not self.is_pending(pending):
            self.withdraw(pending)
            return None
        return pending

    def _count_interrupted(self) -> None:
        """Count the calls that signals took away unseen; threads that end with the root withdraw theirs, too."""
        if not self._is_exiting:
            self.interrupted_calls += self._listener.num_withdrawn
        self._listener.num_withdrawn = 0

    def _examine(self, notification: Notification, thread: TargetThread) -> Pending | None:
        """Decode a call and build the operation that it would be; None where the log is not about it."""
        if notification.audit_arch != self._machine.audit_arch or notification.number >= X32_BIT:
            self.foreign_calls += 1
            return None
        call = decode(self._machine, thread, notification)
        if call.effect is Effect.NONE:
            return None
        if call.effect is Effect.EXIT:
            return self._examine_exit(notification, thread, call)
        if call.fd >= 0:
            return self._examine_descriptor(notification, thread, call)
        if call.path is not None:
            return self._examine_path(notification, thread, call, call.path)
        if call.name == "sync" and self._recorder is not None:
            self._recorder.note_sync(len(self.log))
        return None

    def _examine_exit(self, notification: Notification, thread: TargetThread, call: Call) -> Pending | None:
        """Make a mark of the end of the root process; other processes come and go."""
        if thread.process_id() != self._root_pid:
            return None
        operation = self._operation(thread, OperationKind.MARK, call.name)
        return Pending(notification=notification, thread=thread, call=call, operation=operation)

    def _examine_descriptor(self, notification: Notification, thread: TargetThread, call: Call) -> Pending | None:
        """Build the operation of a call on a descriptor, which itself says which file it is, in any namespace."""
        fd = self._descriptors.copy(thread, call.fd)
        if fd < 0:
            self.foreign_calls += fd == -errno.EPERM
            return None
        self._copies.add(fd)
        try:
            operation = self._descriptor_operation(thread, call, fd)
        except BaseException:
            self._close_copy(fd)
            raise
        if operation is None:
            self._close_copy(fd)
            return None
        return Pending(notification=notification, thread=thread, call=call, operation=operation, fd=fd)

    def _descriptor_operation(self, thread: TargetThread, call: Call, fd: int) -> Operation | None:
        """Tell sinks, the output folder and the rest apart; the rest is only listed."""
        state = os.fstat(fd)
        sink = self._sinks.get(_identity(state))
        if sink is not None and call.effect is Effect.DATA:
            return self._sink_operation(thread, call, sink)
        if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
            return None
        if call.effect is Effect.SHARED_MAPPING:
            if _open_flags(fd) & os.O_ACCMODE == os.O_RDWR:
                self._ledger.map(state)  # one that is outside may come in later, still mapped
            return None
        name = self._places.of_descriptor(fd)
        path = self._places.inside(name)
        if path is None:
            if call.effect is Effect.DATA:
                self._places.list_outside(name)
            if self._recorder is not None and call.effect in {Effect.DATA, Effect.SYNC}:
                self._recorder.note_outside(state, is_sync=call.effect is Effect.SYNC)
            return None
        offset = _write_offset(call, fd, state)
        return self._operation(
            thread, OperationKind.FILE, call.name, path=path, offset=offset, size_bytes=call.size_bytes
        )

    def _sink_operation(self, thread: TargetThread, call: Call, sink: str) -> Operation | None:
        """Build the operation of a write to the output or the ticks; nothing else done to them is on the clock."""
        if not call.segments and not call.is_transfer:
            return None
        if sink == "ticks":
            word = thread.read_segments(call.segments, _WORD_BYTES).decode("utf-8", "replace")
            kind = OperationKind.TICK if word.startswith("tick") else OperationKind.MARK
            name, digest, *_ = (*word.split(), "", "")
            return self._operation(thread, kind, name or "mark", text=digest.removeprefix(NO_DIGEST))
        text = thread.read_segments(call.segments, TEXT_LIMIT_CHARACTERS).decode("utf-8", "replace")
        return self._operation(
            thread, OperationKind.OUTPUT, "write", stream=sink, text=text, size_bytes=call.size_bytes
        )

    def _examine_path(
        self, notification: Notification, thread: TargetThread, call: Call, path: bytes
    ) -> Pending | None:
        """Build the operation of a call on names."""
        if self._is_elsewhere(thread):
            self.foreign_calls += 1
            return None
        if call.effect is Effect.OPEN and not will_change(call):
            self._note_plain_open(path)
            return None
        old, new = self._names(call, path)
        inside_old, inside_new = self._places.inside(old), self._places.inside(new)
        if inside_old is None and inside_new is None:
            for name in (old, new):
                self._places.list_outside(name)
            if call.name in _MAKERS:
                self._places.note_new(new or old)
            return None
        if thread.credentials() != self._credentials():
            self.foreign_calls += 1
            return None
        operation = self._operation(
            thread,
            OperationKind.FILE,
            call.name,
            path=old if inside_old is None else inside_old,
            new_path=new if inside_new is None else inside_new,
            creates=call.name in _MAKERS,
        )
        return Pending(
            notification=notification,
            thread=thread,
            call=call,
            operation=operation,
            path=inside_old,
            new_path=inside_new,
        )

    def _names(self, call: Call, path: bytes) -> tuple[str, str]:
        """Return the real names that a call is about; what a symbolic link says is none of them."""
        if call.name == "symlink":
            return self._places.resolve(call.new_path or b"", follows=False), ""
        new = "" if call.new_path is None else self._places.resolve(call.new_path, follows=False)
        return self._places.resolve(path, follows=follows_links(call)), new

    def _is_elsewhere(self, thread: TargetThread) -> bool:
        """Tell whether the thread sees other files under the same names (a mount namespace or root of its own), now."""
        return thread.link("ns/mnt") != self._namespace or thread.link("root") != "/"

    def _credentials(self) -> tuple[int, int]:
        """Return whom this process acts for: calls on names of another user must not be made with our rights."""
        return os.geteuid(), os.getegid()

    def _note_plain_open(self, path: bytes) -> None:
        """List a file outside of the folder that is opened for writing."""
        name = self._places.resolve(path, follows=True)
        if self._places.inside(name) is None and os.path.isfile(name):
            self._places.list_outside(name)

    # --- what a strike or the caller does with it ---------------------------------------------------

    def commit(self, pending: Pending) -> bool:
        """Carry the call out, answer it and log it; False where the target was no longer waiting."""
        self._is_exiting |= pending.call.effect is Effect.EXIT
        try:
            is_answered = self._performer.perform(pending)
        except TargetGoneError:
            return False
        finally:
            self.abandon(pending)
        return self._log(pending.operation, is_answered=is_answered)

    def refuse(self, pending: Pending, error: int) -> bool:
        """Answer a call with the errno `error` in place of carrying it out, and log that; False as for `commit`."""
        try:
            is_answered = self._performer.refuse(pending, error)
        finally:
            self.abandon(pending)
        return self._log(msgspec.structs.replace(pending.operation, error=error), is_answered=is_answered)

    def shorten(self, pending: Pending, file_offset: int) -> bool:
        """Carry out a write up to `file_offset`, answer the count and log what was written; False as for `commit`."""
        try:
            done, is_answered = self._performer.shorten(pending, file_offset - pending.operation.offset)
        except TargetGoneError:
            return False
        finally:
            self.abandon(pending)
        return self._log(msgspec.structs.replace(pending.operation, size_bytes=max(done, 0)), is_answered=is_answered)

    def _log(self, operation: Operation, *, is_answered: bool) -> bool:
        """Log an operation that was answered, and return whether somebody waited for the answer."""
        if not is_answered and not self._is_killable_only:
            self.interrupted_calls += 1
        self.log.append(self._bounded(operation))
        return is_answered

    def _bounded(self, operation: Operation) -> Operation:
        """Return what the log keeps of an operation: where output floods, not the text of its long writes."""
        self._text_left -= len(operation.text)
        if self._text_left >= 0 or len(operation.text) <= _SHORT_TEXT_CHARACTERS:
            return operation
        return msgspec.structs.replace(operation, text="")

    def tear(self, pending: Pending, file_offset: int) -> int:
        """Carry out a write only up to `file_offset` and leave the call unanswered; return the bytes written."""
        try:
            return self._performer.write_part(pending, file_offset - pending.operation.offset)
        except TargetGoneError:
            return 0
        finally:
            self.abandon(pending)

    def is_pending(self, pending: Pending) -> bool:
        """Tell whether the target still waits in this call, and so is alive."""
        return self._listener.is_pending(pending.notification)

    def withdraw(self, pending: Pending) -> None:
        """Drop a call that nobody waits for any more."""
        self.interrupted_calls += not self._is_killable_only
        self.abandon(pending)

    def abandon(self, pending: Pending) -> None:
        """Give up our copy of the descriptor; the call itself stays as it is."""
        if pending.fd in self._copies:
            self._close_copy(pending.fd)

    def renumbered(self, pending: Pending) -> Pending:
        """Return a call that was held back, with the number that it would be logged under now."""
        if pending.operation.index == len(self.log):
            return pending
        operation = msgspec.structs.replace(pending.operation, index=len(self.log))
        return dataclasses.replace(pending, operation=operation)

    def unexplained(self) -> tuple[str, ...]:
        """Return the files in the folder that the log does not explain; call it when nothing runs any more."""
        return tuple(spell(name) for name in self._ledger.unexplained())

    def sweep_shared_memory(self) -> None:
        """Remove what the life left in shared memory; call it when nothing of it runs any more."""
        self._places.sweep_shared_memory()

    def close(self) -> None:
        """Give up the listener, the pidfds and the copies of descriptors."""
        for fd in list(self._copies):
            self._close_copy(fd)
        self._descriptors.close()
        os.close(self.fd)

    def _close_copy(self, fd: int) -> None:
        """Close one copy of a target's descriptor."""
        self._copies.discard(fd)
        os.close(fd)

    def _operation(  # noqa: PLR0913 - the fields of an operation
        self,
        thread: TargetThread,
        kind: OperationKind,
        call: str,
        *,
        path: str = "",
        new_path: str = "",
        creates: bool = False,
        offset: int = 0,
        size_bytes: int = 0,
        stream: str = "",
        text: str = "",
    ) -> Operation:
        """Return an operation with its number and that of its thread."""
        ordinal = self._threads.setdefault(thread.thread_id, len(self._threads))
        return Operation(
            index=len(self.log),
            kind=kind,
            call=call,
            thread=ordinal,
            path=spell(path),
            new_path=spell(new_path),
            creates=creates,
            offset=offset,
            size_bytes=size_bytes,
            stream=stream,
            text=text,
        )


def _identity(state: os.stat_result) -> tuple[int, int]:
    """Return what a file is known by, whatever its name."""
    return state.st_dev, state.st_ino


def _open_flags(fd: int) -> int:
    """Return the flags of the open file behind one of our descriptors, which is the target's."""
    return fcntl.fcntl(fd, fcntl.F_GETFL)


def _write_offset(call: Call, fd: int, state: os.stat_result) -> int:
    """Return the file offset at which a call would write: in a file opened for appending, its end."""
    if call.effect is not Effect.DATA or stat.S_ISDIR(state.st_mode):
        return 0
    if call.name in ("ftruncate", "fallocate"):
        return call.offset or 0
    if appends(call, fd):
        return state.st_size
    return call.offset if call.offset is not None else os.lseek(fd, 0, os.SEEK_CUR)
