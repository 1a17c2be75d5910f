"""Reading a held thread: its memory, its paths, its descriptors. Valid only while its call is still pending."""

# ruff: noqa: PTH115, PTH123 - on the way of every held call, where a Path costs more than the work

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Final

from chaos.intercept.syscalls import AT_FDCWD, this_machine

_PATH_LIMIT: Final = 4096
_VECTOR_LIMIT: Final = 1024
_STREAMS: Final = (b"/dev/stdin", b"/dev/stdout", b"/dev/stderr")
_libc = ctypes.CDLL(None, use_errno=True)


def raw_syscall(number: int, *arguments: int | bytes) -> int:
    """Make a system call; return its result, or a negative errno."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *converted))
    return result if result >= 0 else -ctypes.get_errno()


_libc.syscall.restype = ctypes.c_long
_libc.process_vm_readv.restype = ctypes.c_ssize_t
_ONE: Final = ctypes.c_ulong(1)
_NO_FLAGS: Final = ctypes.c_ulong(0)
_ADDRESS_MASK: Final = (1 << 64) - 1


class TargetGoneError(Exception):
    """The thread died while its call was being read; the caller drops the notification."""


class TargetThread:
    """One thread of the target, by its id, while it is held."""

    def __init__(self, thread_id: int) -> None:
        """Look at thread `thread_id`; its process is found when it is first needed."""
        self.thread_id = thread_id

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes of the target's memory at `address`."""
        buffer = bytearray(size)
        return bytes(buffer[: self.read_into(address, memoryview(buffer))])

    def read_into(self, address: int, buffer: memoryview) -> int:
        """Fill `buffer` from `address`; return how many bytes were readable."""
        if self._read_at_once(address, buffer):
            return len(buffer)
        try:
            fd = os.open(f"/proc/{self.thread_id}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise TargetGoneError from error
        try:
            return os.preadv(fd, [buffer], address)
        except OSError as error:
            if error.errno in (errno.EIO, errno.EFAULT):
                return 0
            raise TargetGoneError from error
        finally:
            os.close(fd)

    def _read_at_once(self, address: int, buffer: memoryview) -> bool:
        """Fill `buffer` in one go, which is faster; False where that is denied, or not all of it is readable."""
        if not buffer:
            return True
        local = struct.pack("=QQ", ctypes.addressof(ctypes.c_char.from_buffer(buffer)), len(buffer))
        remote = struct.pack("=QQ", address & _ADDRESS_MASK, len(buffer))
        return bool(_libc.process_vm_readv(self.thread_id, local, _ONE, remote, _ONE, _NO_FLAGS) == len(buffer))

    def write(self, address: int, data: bytes) -> None:
        """Store `data` in the target's memory (an updated file offset)."""
        try:
            fd = os.open(f"/proc/{self.thread_id}/mem", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise TargetGoneError from error
        try:
            os.pwrite(fd, data, address)
        except OSError:
            return  # unwritable memory: the kernel itself would have failed with EFAULT after the transfer
        finally:
            os.close(fd)

    def read_string(self, address: int) -> bytes | None:
        """Return the zero-terminated string at `address`, None where it is not readable or longer than 4096 bytes."""
        collected = b""
        while len(collected) < _PATH_LIMIT:
            chunk = self.read(address + len(collected), 256 - (address + len(collected)) % 256)
            head, zero, _ = chunk.partition(b"\0")
            collected += head
            if zero:
                return collected
            if not chunk:
                return None
        return None

    def read_vector(self, address: int, count: int) -> tuple[tuple[int, int], ...] | None:
        """Return the `struct iovec` array at `address` as (base, length) pairs; None where writev(2) refuses it."""
        if count > _VECTOR_LIMIT:
            return None
        data = self.read(address, 16 * count)
        return tuple(struct.iter_unpack("=QQ", data)) if len(data) == 16 * count else None

    def read_segments(self, segments: tuple[tuple[int, int], ...], limit_bytes: int) -> bytes:
        """Return the data at (address, length) pairs, at most `limit_bytes` of it."""
        data = bytearray()
        for address, length in segments:
            if len(data) >= limit_bytes:
                break
            data += self.read(address, min(length, limit_bytes - len(data)))
        return bytes(data)

    def process_id(self) -> int:
        """Return the id of the process that the thread belongs to."""
        return int(self._status("Tgid:")[0])

    def umask(self) -> int:
        """Return the process's file mode creation mask."""
        return int(self._status("Umask:")[0], 8)

    def credentials(self) -> tuple[int, int]:
        """Return the user and group with whose rights the thread touches files."""
        return int(self._status("Uid:")[3]), int(self._status("Gid:")[3])

    def _status(self, field: str) -> list[str]:
        """Return the values of one field of /proc/<id>/status."""
        try:
            with open(f"/proc/{self.thread_id}/status", encoding="ascii", errors="replace") as status:
                for line in status:
                    if line.startswith(field):
                        return line.split()[1:]
        except OSError as error:
            raise TargetGoneError from error
        raise TargetGoneError

    def link(self, name: str) -> str:
        """Return what /proc/<id>/`name` points at (`fd/3`, `cwd`, `root`, `ns/mnt`), or an empty string."""
        try:
            return os.readlink(f"/proc/{self.thread_id}/{name}")
        except OSError:
            return ""

    def folder(self, directory_fd: int) -> bytes | None:
        """Return a path to the folder that relative names start from; None where there is no such descriptor."""
        if directory_fd == AT_FDCWD:
            return b"/proc/%d/cwd" % self.thread_id
        path = b"/proc/%d/fd/%d" % (self.thread_id, directory_fd)
        return path if os.path.lexists(path) else None

    def path_argument(self, directory_fd: int, address: int, *, may_be_empty: bool = False) -> bytes | None:
        """Return the path at `address` in a form that this process can use, without changing what it names.

        Relative paths go through /proc/<id>/cwd or /proc/<id>/fd/N, so that symbolic links and renamed folders mean the
        same; /proc/self is the target's. None for what the kernel refuses without looking at any file: memory that is
        not readable, an empty path, a descriptor that is none.
        """
        text = self.read_string(address)
        if text is None or (not text and not may_be_empty):
            return None
        if text.startswith(b"/"):
            return self._absolute(text)
        start = self.folder(directory_fd)
        if start is None or not text:
            return start
        return start + b"/" + text

    def _absolute(self, text: bytes) -> bytes:
        """Return an absolute path with its aliases of the target's own entries in /proc replaced."""
        for alias, own in ((b"/proc/self", self.process_id), (b"/proc/thread-self", lambda: self.thread_id)):
            if text == alias or text.startswith(alias + b"/"):
                return b"/proc/%d" % own() + text[len(alias) :]
        if text in _STREAMS:
            return b"/proc/%d/fd/%d" % (self.thread_id, _STREAMS.index(text))
        if text.startswith(b"/dev/fd/"):
            return b"/proc/%d/fd/" % self.thread_id + text[len(b"/dev/fd/") :]
        return text


class Descriptors:
    """Copies of the target's descriptors: they share the offset and flags of the original (pidfd_getfd(2))."""

    def __init__(self) -> None:
        """Start with no process known."""
        self._pidfds: dict[int, int] = {}
        self._number = this_machine().numbers["pidfd_getfd"]

    def copy(self, thread: TargetThread, fd: int) -> int:
        """Return a new descriptor of this process for the target's `fd`; a negative errno where it cannot be had."""
        for _ in range(2):
            try:
                pidfd = self._pidfd(thread)
            except OSError as error:
                return -(error.errno or errno.EIO)
            result = raw_syscall(self._number, pidfd, fd, 0)
            if result != -errno.ESRCH:
                return result
            self._forget(thread.thread_id)
        return -errno.ESRCH

    def _pidfd(self, thread: TargetThread) -> int:
        """Return the cached pidfd of the thread's process."""
        if thread.thread_id not in self._pidfds:
            self._pidfds[thread.thread_id] = os.pidfd_open(thread.process_id())
        return self._pidfds[thread.thread_id]

    def _forget(self, thread_id: int) -> None:
        """Drop a pidfd whose process is gone (the number may be another process's by now)."""
        os.close(self._pidfds.pop(thread_id))

    def close(self) -> None:
        """Close all pidfds."""
        for thread_id in list(self._pidfds):
            self._forget(thread_id)
