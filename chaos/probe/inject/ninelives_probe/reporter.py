"""Appends words to the file of ticks; a target that closed, lost or reused its descriptor is not disturbed."""

from __future__ import annotations

import os

_HIGH_FD = 200


class Reporter:
    """One open file, by whatever number it has."""

    def __init__(self, path: str) -> None:
        """Report to `path`, whatever becomes of the environment and of the working folder later."""
        self._path = path
        self._fd = -1
        self._identity: tuple[int, int] | None = None

    def go_to(self, path: str) -> None:
        """Report to another file from now on."""
        if self._identity is not None and self._is_open():
            os.close(self._fd)
        self._path, self._identity = path, None

    def report(self, word: bytes) -> None:
        """Append one word, through the descriptor that was kept if it is still the file's."""
        try:
            if not self._is_open():
                self._open()
            os.write(self._fd, word)
        except OSError:
            return

    def _is_open(self) -> bool:
        """Tell whether the number that was kept still means the file: the target may have closed and reused it."""
        if self._identity is None:
            return False
        try:
            state = os.fstat(self._fd)
        except OSError:
            return False
        return (state.st_dev, state.st_ino) == self._identity

    def _open(self) -> None:
        """Open the file under a high number, so that the target's own numbers stay as they are."""
        import fcntl

        self._identity = None
        low = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            self._fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
            os.close(low)
        except OSError:
            self._fd = low  # so few descriptors are allowed that there is no high number
        state = os.fstat(self._fd)
        self._identity = (state.st_dev, state.st_ino)
