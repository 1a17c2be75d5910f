"""Bytes of storages, read into buffers that are used again, with each checksum worked out on the way.

A new `bytes` for each chunk costs several times what the reading itself costs: the kernel has to find and clear pages.
"""

from __future__ import annotations

from typing import Protocol

from isal.isal_zlib import crc32

from chaos.checkpoints.archive import STORED, Entry
from chaos.checkpoints.damage import DamagedError
from chaos.checkpoints.tensors import PlainStorage, Storage
from chaos.checkpoints.window import CHUNK_BYTES, Window

Buffer = bytearray | memoryview


class Stream(Protocol):
    """A storage that is read piece by piece; best in the order in which it lies in the file."""

    def fill(self, start: int, buffer: Buffer) -> None:
        """Read into all of `buffer` from offset `start`; raises DamagedError, UnjudgeableError, OSError."""

    def reach(self, start: int) -> None:
        """Read what lies before `start` and was not noted yet, if there is a checksum."""

    def note(self, start: int, piece: Buffer) -> None:
        """Work what was read from `start` into the checksum, if there is one."""

    def finish(self) -> None:
        """Read what was not read yet and raise DamagedError when the checksum says no."""


class PlainStream:
    """A storage without a checksum."""

    def __init__(self, window: Window) -> None:
        """Read from `window`."""
        self._window = window

    def fill(self, start: int, buffer: Buffer) -> None:
        """Read into all of `buffer` from offset `start`."""
        self._window.fill(start, buffer)

    def reach(self, start: int) -> None:
        """Do nothing: there is no checksum."""

    def note(self, start: int, piece: Buffer) -> None:
        """Do nothing: there is no checksum."""

    def finish(self) -> None:
        """Do nothing: what nobody asked for needs no reading."""


class RecordStream:
    """A record of an archive that is stored as it is, with a CRC-32 over all of its bytes in order."""

    def __init__(self, entry: Entry) -> None:
        """Begin at the start of `entry`; raises DamagedError, UnjudgeableError."""
        self._entry = entry
        self._window = entry.raw()
        self.at = 0
        self.crc = 0

    def fill(self, start: int, buffer: Buffer) -> None:
        """Read into all of `buffer` from offset `start`."""
        self._window.fill(start, buffer)

    def note(self, start: int, piece: Buffer) -> None:
        """Work what is new of `piece` into the checksum; what lies between is read first."""
        self.reach(start)
        new = piece if start == self.at else memoryview(piece)[self.at - start :]
        if len(new):
            self.crc = crc32(new, self.crc)
            self.at += len(new)

    def reach(self, start: int) -> None:
        """Read what lies before `start` and was not noted yet, for the checksum alone."""
        if start > self.at:
            self._catch_up(start)

    def _catch_up(self, stop: int) -> None:
        """Read up to `stop` for the checksum alone."""
        buffer = bytearray(min(CHUNK_BYTES, stop - self.at))
        while self.at < stop:
            piece = memoryview(buffer)[: stop - self.at]
            self.fill(self.at, piece)
            self.crc = crc32(piece, self.crc)
            self.at += len(piece)

    def finish(self) -> None:
        """Read the rest and raise DamagedError when the checksum is not the declared one."""
        self._catch_up(self._entry.size_bytes)
        if self.crc != self._entry.crc:
            raise DamagedError(f"its record {self._entry.name} fails its CRC-32 checksum")


class SequentialStream:
    """Any other storage, such as a compressed record: verified from start to end, and again for what lies behind."""

    def __init__(self, storage: Storage) -> None:
        """Begin at the start of `storage`."""
        self._storage = storage
        self._pieces = storage.verified()
        self._piece = memoryview(b"")
        self._at = 0

    def fill(self, start: int, buffer: Buffer) -> None:
        """Read into all of `buffer` from offset `start`; raises DamagedError at an early end."""
        if start < self._at:
            self._pieces, self._piece, self._at = self._storage.verified(), memoryview(b""), 0
        filled = 0
        while filled < len(buffer):
            stop = self._at + len(self._piece)
            if stop <= start + filled:
                self._at = stop
                self._piece = self._next()
                continue
            part = self._piece[start + filled - self._at :][: len(buffer) - filled]
            buffer[filled : filled + len(part)] = part
            filled += len(part)

    def _next(self) -> memoryview:
        """Return the next piece; raises DamagedError when there is none."""
        piece = next(self._pieces, None)
        if piece is None:
            raise DamagedError("one of its tensors ends beyond its storage")
        return memoryview(piece)

    def reach(self, start: int) -> None:
        """Do nothing: the storage verifies itself."""

    def note(self, start: int, piece: Buffer) -> None:
        """Do nothing: the storage verifies itself."""

    def finish(self) -> None:
        """Read to the end, where the storage verifies itself."""
        for _ in self._pieces:
            pass


def stream_of(storage: Storage) -> Stream:
    """Return the fastest way to read a storage."""
    if isinstance(storage, PlainStorage):
        return PlainStream(storage.window)
    if isinstance(storage, Entry) and storage.method == STORED:
        return RecordStream(storage)
    return SequentialStream(storage)


def note_both(streams: tuple[Stream, Stream], starts: tuple[int, int], pieces: tuple[Buffer, Buffer]) -> None:
    """Note a piece that is the same bytes on both sides; where both checksums so far are the same it is hashed once.

    Both streams have reached their starts, so that nothing is read here.
    """
    one, two = streams
    if isinstance(one, RecordStream) and isinstance(two, RecordStream) and _stand_together(one, two, starts):
        one.note(starts[0], pieces[0])
        two.at, two.crc = two.at + len(pieces[1]), one.crc
        return
    one.note(starts[0], pieces[0])
    two.note(starts[1], pieces[1])


def _stand_together(one: RecordStream, two: RecordStream, starts: tuple[int, int]) -> bool:
    """Tell whether both have come exactly to these offsets, with the same checksum."""
    return (one.at, two.at) == starts and one.crc == two.crc
