"""Carrying a held call out on the target's behalf, so that it is over when the supervisor goes on.

A call that is answered with "continue" gives no sign of its end: with two writing threads it could still be under way
when the next one is struck. So whatever changes bytes or names is done here, on a copy of the target's own descriptor
or through its /proc entry, and answered with the result. Results are those of the kernel: a count, zero, or a negative
errno.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from typing import Final

from chaos.intercept.decode import Call
from chaos.intercept.memory import TargetThread, raw_syscall
from chaos.intercept.notify import Notification
from chaos.intercept.syscalls import AT_FDCWD, AT_REMOVEDIR, FICLONE, O_APPEND, O_CLOEXEC, O_PATH, Machine

_BUFFER_BYTES: Final = 1 << 20
_RWF_APPEND: Final = 0x10
_RWF_NOAPPEND: Final = 0x20
_WRITE_LIMIT: Final = 0x7FFFF000  # write(2): the most that one call transfers


class Executor:
    """Carries out decoded calls; owns one page-aligned buffer, as files opened with O_DIRECT need."""

    def __init__(self, machine: Machine) -> None:
        """Prepare for the calls of `machine`."""
        self._numbers = machine.numbers
        self._buffer = mmap.mmap(-1, _BUFFER_BYTES)

    def write(
        self,
        thread: TargetThread,
        call: Call,
        fd: int,
        limit: int | None = None,
        keep: Callable[[memoryview], None] | None = None,
    ) -> int:
        """Write the call's data, at most `limit` bytes of it, to `fd`, a copy of the target's descriptor.

        `keep` is given what was written, piece by piece.
        """
        wanted = min(call.size_bytes, _WRITE_LIMIT) if limit is None else limit
        done = 0
        for chunk in self._chunks(thread, call, wanted) if wanted else (memoryview(b""),):
            try:
                written = _write_chunk(call, fd, chunk, done)
            except OSError as error:
                return done or -(error.errno or errno.EIO)
            done += written
            if keep is not None and written:
                keep(chunk[:written])
            if written < len(chunk):
                break
        return done if done or not wanted else -errno.EFAULT

    def _chunks(self, thread: TargetThread, call: Call, wanted: int) -> Iterator[memoryview]:
        """Yield the target's data gathered into the buffer, full except for the last."""
        view = memoryview(self._buffer)
        filled = 0
        for address, length in call.segments:
            start = 0
            while start < length and wanted > 0:
                size = min(length - start, _BUFFER_BYTES - filled, wanted)
                got = thread.read_into(address + start, view[filled : filled + size])
                filled, start, wanted = filled + got, start + got, wanted - got
                if got < size:
                    if filled:
                        yield view[:filled]
                    return
                if filled == _BUFFER_BYTES:
                    yield view[:filled]
                    filled = 0
        if filled:
            yield view[:filled]

    def resize(self, call: Call, fd: int) -> int:
        """Carry out ftruncate or fallocate on `fd`."""
        if call.name == "ftruncate":
            return raw_syscall(self._numbers["ftruncate"], fd, call.size_bytes)
        return raw_syscall(self._numbers["fallocate"], fd, call.flags, call.offset or 0, call.size_bytes)

    def sync(self, call: Call, fd: int) -> int:
        """Carry out fsync or fdatasync on `fd`; it shares the target's open file, and so its pending errors."""
        return raw_syscall(self._numbers[call.name], fd)

    def transfer(
        self,
        thread: TargetThread,
        name: str,
        notification: Notification,
        source: int,
        fd: int,
        limit: int | None = None,
    ) -> int:
        """Carry out sendfile or copy_file_range from `source` to `fd`, at most `limit` bytes of it.

        Offsets passed by pointer are the target's.
        """
        a = notification.arguments
        size = a[3] if name == "sendfile" else a[4]
        size = size if limit is None else min(size, limit)
        if name == "sendfile":
            offset = _Offset(thread, a[2])
            result = raw_syscall(self._numbers["sendfile"], fd, source, offset.pointer(), size)
            offset.store()
            return result
        into, out_of = _Offset(thread, a[3]), _Offset(thread, a[1])
        result = raw_syscall(self._numbers["copy_file_range"], source, out_of.pointer(), fd, into.pointer(), size, a[5])
        into.store()
        out_of.store()
        return result

    def clone(self, thread: TargetThread, notification: Notification, source: int, fd: int) -> int:
        """Carry out FICLONE or FICLONERANGE from `source` to `fd`."""
        request = notification.arguments[1] & 0xFFFFFFFF
        if request == FICLONE:
            return raw_syscall(self._numbers["ioctl"], fd, request, source)
        ranges = thread.read(notification.arguments[2], 32)
        return raw_syscall(self._numbers["ioctl"], fd, request, source.to_bytes(8, "little") + ranges[8:])

    def change_names(self, thread: TargetThread, call: Call) -> int:  # noqa: PLR0911 - one case a line is how this is read
        """Carry out a call that makes, moves or removes names (or truncates by name)."""
        path, new = call.path or b"", call.new_path or b""
        match call.name:
            case "rename":
                return raw_syscall(self._numbers["renameat2"], AT_FDCWD, path, AT_FDCWD, new, call.flags)
            case "link":
                return raw_syscall(self._numbers["linkat"], AT_FDCWD, path, AT_FDCWD, new, call.flags)
            case "symlink":
                return raw_syscall(self._numbers["symlinkat"], path, AT_FDCWD, new)
            case "unlink":
                return raw_syscall(self._numbers["unlinkat"], AT_FDCWD, path, 0)
            case "rmdir":
                return raw_syscall(self._numbers["unlinkat"], AT_FDCWD, path, AT_REMOVEDIR)
            case "mkdir":
                os.umask(thread.umask())
                return raw_syscall(self._numbers["mkdirat"], AT_FDCWD, path, call.mode)
            case "mknod":
                os.umask(thread.umask())
                return raw_syscall(self._numbers["mknodat"], AT_FDCWD, path, call.mode, 0)
            case _:
                return raw_syscall(self._numbers["truncate"], path, call.size_bytes)

    def open(self, thread: TargetThread, call: Call) -> int:
        """Open as the target would; return our descriptor (to be handed over) or a negative errno."""
        os.umask(thread.umask())
        if call.resolve is not None:
            return self._open_by_rules(call, call.resolve)
        return raw_syscall(self._numbers["openat"], AT_FDCWD, call.path or b"", call.flags | O_CLOEXEC, call.mode)

    def _open_by_rules(self, call: Call, resolve: int) -> int:
        """Carry out openat2, whose rules for the way to the file hold from the target's own folder on."""
        how = struct.pack("=QQQ", call.flags | O_CLOEXEC, call.mode, resolve)
        if not call.base:
            return raw_syscall(self._numbers["openat2"], AT_FDCWD, call.text, how, len(how))
        folder = raw_syscall(self._numbers["openat"], AT_FDCWD, call.base, O_PATH | O_CLOEXEC)
        if folder < 0:
            return folder
        try:
            return raw_syscall(self._numbers["openat2"], folder, call.text, how, len(how))
        finally:
            os.close(folder)


def appends(call: Call, fd: int) -> bool:
    """Tell whether a write goes to the file's end wherever its descriptor stands, and whatever offset it names."""
    flags = call.flags if call.name == "pwritev" else 0
    if flags & (_RWF_APPEND | _RWF_NOAPPEND):
        return bool(flags & _RWF_APPEND)
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & O_APPEND)


def _write_chunk(call: Call, fd: int, chunk: memoryview, done: int) -> int:
    """Write the next chunk of a call, `done` bytes of which are written."""
    if call.name == "pwritev" and call.flags:
        return os.pwritev(fd, [chunk], -1 if call.offset is None else call.offset + done, call.flags)
    return os.write(fd, chunk) if call.offset is None else os.pwrite(fd, chunk, call.offset + done)


class _Offset:
    """A file offset in the target's memory, passed by pointer; a null pointer stays one."""

    def __init__(self, thread: TargetThread, address: int) -> None:
        """Read the offset at `address`."""
        self._thread, self._address = thread, address
        self._value = bytearray(thread.read(address, 8)) if address else bytearray()
        self._bytes = bytes(self._value)

    def pointer(self) -> int | bytes:
        """Return what to pass to the call."""
        return self._bytes if self._address else 0

    def store(self) -> None:
        """Write the offset that the call left back to the target."""
        if self._address:
            self._thread.write(self._address, self._bytes)
