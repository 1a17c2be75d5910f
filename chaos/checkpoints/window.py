"""A window on an open file: the only way in which readers touch bytes, in bounded chunks, never by mmap.

A mapping would count against the memory limit with the whole file, and a file cut short meanwhile would end the process
by SIGBUS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from chaos.checkpoints.damage import DamagedError

# Small enough to stay in a core's cache between the checksum and the digest, large enough to hide the cost of a call.
CHUNK_BYTES = 1 << 20


class Window:
    """The bytes `start` to `start + size` of an open file; offsets are relative to the window."""

    __slots__ = ("descriptor", "path", "size", "start")

    def __init__(self, path: Path, descriptor: int, start: int, size: int) -> None:
        """Look at `size` bytes of `descriptor` from `start`; `path` is for messages and for writing."""
        self.path = path
        self.descriptor = descriptor
        self.start = start
        self.size = size

    def part(self, start: int, size: int) -> Window:
        """Return the window on a part of this one; raises DamagedError when it reaches beyond the end."""
        if start < 0 or size < 0 or start + size > self.size:
            raise DamagedError(f"it ends at byte {self.size}, but {size} bytes are expected at byte {start}")
        return Window(self.path, self.descriptor, self.start + start, size)

    def read(self, start: int, size: int) -> bytes:
        """Return exactly `size` bytes from `start`; raises DamagedError when they are not there."""
        wanted = self.part(start, size)
        return b"".join(wanted.chunks())

    def chunks(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from `start` to `stop` in pieces of at most CHUNK_BYTES."""
        end = self.size if stop is None else stop
        while start < end:
            piece = os.pread(self.descriptor, min(CHUNK_BYTES, end - start), self.start + start)
            if not piece:
                raise DamagedError(f"it ended at byte {start} while it was read")
            start += len(piece)
            yield piece

    def fill(self, start: int, buffer: bytearray | memoryview) -> None:
        """Read into all of `buffer` from `start`; raises DamagedError when the bytes are not there."""
        rest = memoryview(buffer)
        at = self.part(start, len(rest)).start
        while rest:
            count = os.preadv(self.descriptor, [rest], at)
            if not count:
                raise DamagedError(f"it ended at byte {at - self.start} while it was read")
            rest, at = rest[count:], at + count


class OpenFile(AbstractContextManager[Window]):
    """Opens a plain file for reading as a window on all of it, and closes it."""

    def __init__(self, path: Path) -> None:
        """Remember `path`; nothing is opened before the `with`."""
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> Window:
        """Open the file (never blocking on a pipe put in its place); raises OSError."""
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        return Window(self._path, self._descriptor, 0, os.fstat(self._descriptor).st_size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close the file."""
        os.close(self._descriptor)
