"""The listener's requests: receive a held call, answer it, ask whether it still stands (seccomp_unotify(2))."""

from __future__ import annotations

import errno
import fcntl
import struct
from contextlib import suppress
from typing import Final

from chaos.model import Record

_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_IS_VALID: Final = 0x40082102
_ADD_FD: Final = 0x40182103
_SET_FLAGS: Final = 0x40082104
_SYNC_WAKE_UP: Final = 1
_CONTINUE: Final = 1
_ADD_FD_AND_SEND: Final = 2
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_ID_MASK: Final = (1 << 64) - 1
_ADDITION: Final = struct.Struct("=QIIII")


class Notification(Record, kw_only=True):
    """One held call: its id, the calling thread, number, architecture and the six arguments (unsigned)."""

    id: int
    thread_id: int
    number: int
    audit_arch: int
    arguments: tuple[int, int, int, int, int, int]


class Listener:
    """The supervisor's end of the filter. Calls that are never answered stay blocked until their thread dies."""

    def __init__(self, fd: int) -> None:
        """Take over the listening descriptor `fd`."""
        self.fd = fd
        self.num_withdrawn = 0
        self._last_id: int | None = None
        # Linux 6.6: the held thread and this process hand one core to each other, which halves the cost of a call.
        with suppress(OSError):
            fcntl.ioctl(fd, _SET_FLAGS, _SYNC_WAKE_UP)

    def receive(self) -> Notification | None:
        """Return the next held call, or None where it was withdrawn (its thread died, or a signal interrupted it).

        A call that is withdrawn before it is received leaves no other trace than a gap: the kernel numbers the held
        calls one by one, and gives them out in that order (`seccomp_next_notify_id` in kernel/seccomp.c).
        `num_withdrawn` counts the gaps.
        """
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.fd, _RECEIVE, buffer)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                return None
            raise
        id_, thread_id, _flags, number, arch, _ip, *arguments = _NOTIFICATION.unpack(buffer)
        if self._last_id is not None:
            self.num_withdrawn += (id_ - self._last_id - 1) & _ID_MASK
        self._last_id = id_
        a, b, c, d, e, f = arguments
        return Notification(
            id=id_, thread_id=thread_id, number=number & 0xFFFFFFFF, audit_arch=arch, arguments=(a, b, c, d, e, f)
        )

    def let_run(self, notification: Notification) -> bool:
        """Let the kernel carry the call out; False where nobody waits for the answer any more."""
        return self._send(_RESPONSE.pack(notification.id, 0, 0, _CONTINUE))

    def answer(self, notification: Notification, result: int) -> bool:
        """Answer with `result`, or with an error where it is a negative errno."""
        value, error = (result, 0) if result >= 0 else (0, result)
        return self._send(_RESPONSE.pack(notification.id, value, error, 0))

    def answer_with_fd(self, notification: Notification, fd: int, *, close_on_exec: bool) -> int:
        """Install a copy of `fd` in the target and answer the call with its number, in one step.

        Returns the number, or a negative errno where the thread is gone or its table is full.
        """
        flags = 0o2000000 if close_on_exec else 0
        request = _ADDITION.pack(notification.id, _ADD_FD_AND_SEND, fd, 0, flags)
        try:
            return int(fcntl.ioctl(self.fd, _ADD_FD, bytearray(request)))
        except OSError as error:
            return -(error.errno or errno.EIO)

    def is_pending(self, notification: Notification) -> bool:
        """Tell whether the thread still waits in this very call."""
        try:
            fcntl.ioctl(self.fd, _IS_VALID, struct.pack("=Q", notification.id))
        except OSError:
            return False
        return True

    def _send(self, response: bytes) -> bool:
        """Send an answer; False where the call was withdrawn."""
        try:
            fcntl.ioctl(self.fd, _SEND, response)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return False
            raise
        return True
