"""The one clock of a life: every watched call in one order, one at a time, carried out and logged or left hanging for ever.

The caller polls `Session.fd`, takes a `Pending` from `receive`, and either commits it (it happens, and is logged) or tears it, or does neither: then it never
happens, which is what a strike is.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.intercept.decode import Call, Effect, decode, will_change
from chaos.intercept.execute import Executor
from chaos.intercept.ledger import Ledger
from chaos.intercept.memory import Descriptors, TargetGoneError, TargetThread
from chaos.intercept.notify import Listener, Notification
from chaos.intercept.syscalls import FICLONE, O_APPEND, O_CLOEXEC, this_machine
from chaos.model import TEXT_LIMIT_CHARACTERS, Operation, OperationKind, Record

_OUTPUT_LIMIT_BYTES: Final = 64 << 20
_OUTSIDE_LIMIT: Final = 200
_QUIET_OUTSIDE: Final = ("/dev/", "/proc/", "/sys/")


class Sinks(Record, kw_only=True):
    """The files that stand for the target's standard output and error and the probe's ticks; paths made before the life."""

    stdout: Path
    stderr: Path
    ticks: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A held call that would change something the log is about; `operation` is what it would be logged as."""

    notification: Notification
    thread: TargetThread
    call: Call
    operation: Operation
    fd: int = -1


class Session:
    """One life's calls, from the first to the strike or the end."""

    def __init__(self, listener_fd: int, *, root_pid: int, out: Path, sinks: Sinks, private: tuple[Path, ...]) -> None:
        """Watch `out`; changes below `private` folders (ours) are not reported as outside."""
        self.fd = listener_fd
        self.log: list[Operation] = []
        self.outside_writes: dict[str, None] = {}
        self.foreign_calls = 0
        self.interrupted_calls = 0
        self._machine = this_machine()
        self._listener = Listener(listener_fd)
        self._descriptors = Descriptors()
        self._executor = Executor(self._machine)
        self._ledger = Ledger(out)
        self._out = os.path.realpath(out)
        self._private = tuple(os.path.realpath(path) + "/" for path in private)
        self._root_pid = root_pid
        self._namespace = os.readlink("/proc/self/ns/mnt")
        self._threads: dict[int, int] = {}
        self._foreign_threads: dict[int, bool] = {}
        self._sinks = {
            _identity(os.stat(path)): name
            for name, path in (("stdout", sinks.stdout), ("stderr", sinks.stderr), ("ticks", sinks.ticks))
        }

    # --- taking the next call ---------------------------------------------------------------------

    def receive(self) -> Pending | None:
        """Take one notification; return it if the log is about it, else let it run and return None."""
        notification = self._listener.receive()
        if notification is None:
            self.interrupted_calls += 1
            return None
        thread = TargetThread(notification.thread_id)
        try:
            pending = self._examine(notification, thread)
        except TargetGoneError:
            return None
        if pending is None:
            self._listener.let_run(notification)
            return None
        if not self._listener.is_pending(notification):
            self._release(pending)
            self.interrupted_calls += 1
            return None
        return pending

    def _examine(self, notification: Notification, thread: TargetThread) -> Pending | None:
        """Decode a call and build the operation that it would be; None where the log is not about it."""
        if notification.audit_arch != self._machine.audit_arch or notification.number >= 0x40000000:
            self.foreign_calls += 1
            return None
        call = decode(self._machine, thread, notification)
        if call.effect is Effect.NONE:
            return None
        if self._is_foreign(thread):
            self.foreign_calls += 1
            return None
        if call.effect is Effect.EXIT:
            return self._examine_exit(notification, thread, call)
        if call.fd >= 0:
            return self._examine_descriptor(notification, thread, call)
        return self._examine_path(notification, thread, call)

    def _is_foreign(self, thread: TargetThread) -> bool:
        """Tell whether the thread sees other files under the same names (a mount namespace or root of its own)."""
        known = self._foreign_threads.get(thread.thread_id)
        if known is None:
            known = thread.link("ns/mnt") != self._namespace or thread.link("root") != "/"
            self._foreign_threads[thread.thread_id] = known
        return known

    def _examine_exit(self, notification: Notification, thread: TargetThread, call: Call) -> Pending | None:
        """The end of the root process is a mark; other processes come and go."""
        if thread.process_id() != self._root_pid:
            return None
        operation = self._operation(thread, OperationKind.MARK, call.name)
        return Pending(notification=notification, thread=thread, call=call, operation=operation)

    def _examine_descriptor(self, notification: Notification, thread: TargetThread, call: Call) -> Pending | None:
        """Build the operation of a call on a descriptor."""
        fd = self._descriptors.copy(thread, call.fd)
        if fd < 0:
            return None
        try:
            operation = self._descriptor_operation(thread, call, fd)
        except BaseException:
            os.close(fd)
            raise
        if operation is None:
            os.close(fd)
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
        name = os.readlink(f"/proc/self/fd/{fd}").removesuffix(" (deleted)")
        path = self._inside(name)
        if path is None:
            if call.effect is Effect.DATA:
                self._list_outside(name)
            return None
        if call.effect is Effect.SHARED_MAPPING:
            if _is_writable(fd):
                self._ledger.map(state)
            return None
        offset = _write_offset(call, fd, state)
        return self._operation(
            thread, OperationKind.FILE, call.name, path=path, offset=offset, size_bytes=call.size_bytes
        )

    def _sink_operation(self, thread: TargetThread, call: Call, sink: str) -> Operation | None:
        """Build the operation of a write to standard output, standard error or the ticks."""
        data = b"".join(
            thread.read(address, min(length, TEXT_LIMIT_CHARACTERS)) for address, length in call.segments[:64]
        )
        text = data.decode("utf-8", "replace")
        if sink == "ticks":
            kind = OperationKind.TICK if text.startswith("tick") else OperationKind.MARK
            return self._operation(thread, kind, text.strip().partition(" ")[0] or "mark")
        return self._operation(
            thread, OperationKind.OUTPUT, "write", stream=sink, text=text[:TEXT_LIMIT_CHARACTERS], size_bytes=call.size_bytes
        )

    def _examine_path(self, notification: Notification, thread: TargetThread, call: Call) -> Pending | None:
        """Build the operation of a call on names."""
        if call.effect is Effect.OPEN and not will_change(call):
            self._note_plain_open(call)
            return None
        named = call.new_path if call.name == "symlink" else call.path
        old = self._resolve(named)
        new = self._resolve(call.new_path) if call.name in ("rename", "link") else ""
        inside_old, inside_new = self._inside(old), self._inside(new)
        if inside_old is None and inside_new is None:
            for name in (old, new):
                self._list_outside(name)
            return None
        operation = self._operation(
            thread,
            OperationKind.FILE,
            call.name,
            path=old if inside_old is None else inside_old,
            new_path=new if inside_new is None else inside_new,
            creates=call.name in ("openat", "rename", "link", "symlink", "mkdir", "mknod"),
        )
        return Pending(notification=notification, thread=thread, call=call, operation=operation)

    def _note_plain_open(self, call: Call) -> None:
        """List a file outside of the folder that is opened for writing."""
        name = self._resolve(call.path)
        if self._inside(name) is None and os.path.isfile(name):
            self._list_outside(name)

    # --- what a strike or the caller does with it ---------------------------------------------------

    def commit(self, pending: Pending) -> bool:
        """Carry the call out, answer it and log it; False where the target was no longer waiting."""
        try:
            is_answered = self._carry_out(pending)
        except TargetGoneError:
            return False
        finally:
            self._release(pending)
        if not is_answered:
            self.interrupted_calls += 1
        self.log.append(pending.operation)
        return is_answered

    def tear(self, pending: Pending, file_offset: int) -> int:
        """Carry out a write only up to `file_offset` and leave the call unanswered; return the bytes written."""
        limit = file_offset - pending.operation.offset
        done = self._executor.write(pending.thread, pending.call, pending.fd, limit)
        self._ledger.note(os.fstat(pending.fd))
        self._release(pending)
        return max(done, 0)

    def is_pending(self, pending: Pending) -> bool:
        """Tell whether the target still waits in this call, and so is alive."""
        return self._listener.is_pending(pending.notification)

    def unexplained(self) -> tuple[str, ...]:
        """Return the files in the folder that the log does not explain; call it when nothing runs any more."""
        return self._ledger.unexplained()

    def close(self) -> None:
        """Give up the listener and the pidfds."""
        self._descriptors.close()
        os.close(self.fd)

    def _carry_out(self, pending: Pending) -> bool:
        """Do what the call does and answer it."""
        call, notification, thread = pending.call, pending.notification, pending.thread
        if pending.operation.kind is not OperationKind.FILE:
            return self._carry_out_sink(pending)
        match call.effect:
            case Effect.DATA:
                return self._carry_out_data(pending)
            case Effect.SYNC:
                return self._listener.answer(notification, self._executor.sync(call, pending.fd))
            case Effect.NAMES:
                return self._carry_out_names(pending)
            case Effect.OPEN:
                fd = self._executor.open(thread, call)
                if fd < 0:
                    return self._listener.answer(notification, fd)
                self._ledger.note(os.fstat(fd))
                handed = self._listener.answer_with_fd(
                    notification, fd, close_on_exec=bool(call.flags & O_CLOEXEC)
                )
                os.close(fd)
                return handed >= 0 or self._listener.answer(notification, handed)
            case _:
                return self._let_run(pending)

    def _carry_out_sink(self, pending: Pending) -> bool:
        """Store output in its log, up to a limit; marks of the process's end just run."""
        if pending.fd < 0:
            return self._listener.let_run(pending.notification)
        size = pending.call.size_bytes
        if os.fstat(pending.fd).st_size < _OUTPUT_LIMIT_BYTES:
            size = self._executor.write(pending.thread, pending.call, pending.fd)
        return self._listener.answer(pending.notification, size)

    def _carry_out_data(self, pending: Pending) -> bool:
        """Change a file's bytes or size."""
        call, notification, thread = pending.call, pending.notification, pending.thread
        if call.name == "splice" or call.flags and call.name == "pwritev":
            return self._let_run(pending)
        if call.name in ("ftruncate", "fallocate"):
            result = self._executor.resize(call, pending.fd)
        elif call.name in ("sendfile", "copy_file_range", "clone_range"):
            result = self._transfer(pending)
        else:
            result = self._executor.write(thread, call, pending.fd)
        self._ledger.note(os.fstat(pending.fd))
        return self._listener.answer(notification, result)

    def _transfer(self, pending: Pending) -> int:
        """Move bytes between two of the target's descriptors."""
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
            return self._executor.transfer(thread, call.name, notification, source, pending.fd)
        finally:
            os.close(source)

    def _carry_out_names(self, pending: Pending) -> bool:
        """Make, move or remove a name."""
        result = self._executor.change_names(pending.thread, pending.call)
        touched = pending.call.new_path or pending.call.path
        if result >= 0 and touched is not None and pending.call.name in ("mkdir", "symlink", "truncate", "link"):
            self._ledger.note_path(touched)
        return self._listener.answer(pending.notification, result)

    def _let_run(self, pending: Pending) -> bool:
        """Let the kernel do it: calls that change neither bytes nor names, and the few that cannot be done for another."""
        if pending.fd >= 0:
            self._ledger.loosen(os.fstat(pending.fd))
        elif pending.call.path is not None:
            try:
                self._ledger.loosen(os.stat(pending.call.path))
            except OSError:
                pass
        return self._listener.let_run(pending.notification)

    def _release(self, pending: Pending) -> None:
        """Close our copy of the descriptor."""
        if pending.fd >= 0:
            os.close(pending.fd)

    # --- names ------------------------------------------------------------------------------------------

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
        """Number the operation and its thread."""
        ordinal = self._threads.setdefault(thread.thread_id, len(self._threads))
        return Operation(
            index=len(self.log),
            kind=kind,
            call=call,
            thread=ordinal,
            path=path,
            new_path=new_path,
            creates=creates,
            offset=offset,
            size_bytes=size_bytes,
            stream=stream,
            text=text,
        )

    def _resolve(self, path: bytes | None) -> str:
        """Return the real path of a name that need not exist: its folder resolved, its last part as it is."""
        if not path:
            return ""
        folder, name = os.path.split(os.fsdecode(path).rstrip("/"))
        if name in ("", ".", ".."):
            return os.path.realpath(os.fsdecode(path))
        real = os.path.join(os.path.realpath(folder), name)
        return os.path.realpath(real) if folder.startswith("/proc/") and folder.endswith("/fd") else real

    def _inside(self, name: str) -> str | None:
        """Return `name` relative to the output folder, None where it is outside of it."""
        if name == self._out:
            return "."
        return name[len(self._out) + 1 :] if name.startswith(self._out + "/") else None

    def _list_outside(self, name: str) -> None:
        """Remember a path outside of the folder that the target writes to, within a limit."""
        is_quiet = not name or name.startswith((*_QUIET_OUTSIDE, *self._private)) or "__pycache__" in name
        if not is_quiet and len(self.outside_writes) < _OUTSIDE_LIMIT:
            self.outside_writes[name] = None


def _identity(state: os.stat_result) -> tuple[int, int]:
    """Return what a file is known by, whatever its name."""
    return state.st_dev, state.st_ino


def _is_writable(fd: int) -> bool:
    """Tell whether a descriptor allows writing, and so a shared mapping of it to become writable."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as info:
        flags = next(int(line.split()[1], 8) for line in info if line.startswith("flags:"))
    return flags & 3 == os.O_RDWR


def _write_offset(call: Call, fd: int, state: os.stat_result) -> int:
    """Return the file offset at which a call would write."""
    if call.effect is not Effect.DATA or stat.S_ISDIR(state.st_mode):
        return 0
    if call.offset is not None:
        return call.offset
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as info:
        flags = next(int(line.split()[1], 8) for line in info if line.startswith("flags:"))
    return state.st_size if flags & O_APPEND else os.lseek(fd, 0, os.SEEK_CUR)
