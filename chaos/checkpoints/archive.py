"""Zip archives, read strictly and without trust: the container of torch.save and of npz.

A reader of its own and not `zipfile`, because it works on a window, in chunks, and knows where each checksum stands, so
that one can be mended after a bit was flipped on purpose. Format: PKWARE's APPNOTE, sections 4.3 and 4.5.3 (zip64).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from isal.isal_zlib import crc32

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.window import CHUNK_BYTES, Window

LOCAL = b"PK\x03\x04"
CENTRAL = b"PK\x01\x02"
END = b"PK\x05\x06"
END_64 = b"PK\x06\x06"
LOCATOR_64 = b"PK\x06\x07"
DESCRIPTOR = b"PK\x07\x08"
STORED, DEFLATED = 0, 8
FLAG_ENCRYPTED, FLAG_DESCRIPTOR = 0x1, 0x8
FULL_16, FULL_32 = 0xFFFF, 0xFFFFFFFF
END_BYTES, LOCATOR_BYTES, END_64_BYTES, CENTRAL_BYTES, LOCAL_BYTES = 22, 20, 56, 46, 30
MAX_ENTRIES = 1_000_000


class Entry:
    """One record of an archive, as the central directory describes it; it is a `Storage`."""

    __slots__ = (
        "compressed_bytes",
        "crc",
        "directory_at",
        "flags",
        "header_at",
        "method",
        "name",
        "size_bytes",
        "window",
    )

    def __init__(self, window: Window, directory: bytes, at: int, directory_at: int) -> None:
        """Decode the directory's entry at offset `at` of `directory`, which stands at `directory_at` in the archive."""
        fields = struct.unpack_from("<4s6H3L5H2L", directory, at)
        if fields[0] != CENTRAL:
            raise DamagedError("its directory is damaged")
        name_at = at + CENTRAL_BYTES
        extra_at = name_at + fields[10]
        self.window = window
        self.flags: int = fields[3]
        self.method: int = fields[4]
        self.crc: int = fields[7]
        self.name = directory[name_at:extra_at].decode("utf-8", "surrogateescape")
        self.directory_at = directory_at + at
        self.compressed_bytes, self.size_bytes, self.header_at = _wide(
            directory[extra_at : extra_at + fields[11]], fields[8], fields[9], fields[16]
        )

    @property
    def data_at(self) -> int:
        """The offset of the data, behind the local header; raises DamagedError when that is not there."""
        header = self.window.read(self.header_at, LOCAL_BYTES)
        name_bytes, extra_bytes = struct.unpack_from("<2H", header, 26)
        name = self.window.read(self.header_at + LOCAL_BYTES, name_bytes)
        if header[:4] != LOCAL or name.decode("utf-8", "surrogateescape") != self.name:
            raise DamagedError(f"the header of its record {self.name} is damaged")
        return self.header_at + LOCAL_BYTES + int(name_bytes) + int(extra_bytes)

    def raw(self) -> Window:
        """Return the window on the data as stored; raises DamagedError, UnjudgeableError."""
        if self.flags & FLAG_ENCRYPTED or self.method not in {STORED, DEFLATED}:
            raise UnjudgeableError(f"its record {self.name} is encrypted or compressed in a way that is not read here")
        if self.method == STORED and self.compressed_bytes != self.size_bytes:
            raise DamagedError(f"the sizes of its record {self.name} contradict each other")
        return self.window.part(self.data_at, self.compressed_bytes)

    def _chunks(self) -> Iterator[bytes]:
        """Yield the data, decompressed, never more than the declared size."""
        raw = self.raw()
        if self.method == STORED:
            yield from raw.chunks()
            return
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            for piece in raw.chunks():
                waiting = piece
                while waiting and not inflater.eof:
                    yield inflater.decompress(waiting, CHUNK_BYTES)
                    waiting = inflater.unconsumed_tail
            yield inflater.flush()
        except zlib.error as error:
            raise DamagedError(f"its record {self.name} cannot be decompressed") from error
        if not inflater.eof or inflater.unused_data:
            raise DamagedError(f"its record {self.name} does not end where it should")

    def verified(self) -> Iterator[bytes]:
        """Yield all data in chunks; raises DamagedError when its length or its CRC-32 is not the declared one."""
        crc = size = 0
        for piece in self._chunks():
            crc = crc32(piece, crc)
            size += len(piece)
            if size > self.size_bytes:
                break
            yield piece
        if size != self.size_bytes:
            raise DamagedError(f"its record {self.name} has another length than declared")
        if crc != self.crc:
            raise DamagedError(f"its record {self.name} fails its CRC-32 checksum")

    def part(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `stop` in chunks, unverified."""
        if self.method == STORED:
            yield from self.raw().chunks(start, stop)
            return
        at = 0
        for piece in self._chunks():
            yield piece[max(0, start - at) : max(0, stop - at)]
            at += len(piece)
            if at >= stop:
                return

    def read(self, most_bytes: int) -> bytes:
        """Return all data, verified; raises UnjudgeableError when it is larger than `most_bytes`."""
        if self.size_bytes > most_bytes:
            raise UnjudgeableError(f"its record {self.name} has {self.size_bytes} bytes, more than are read at once")
        return b"".join(self.verified())


class Archive:
    """The records of a zip archive by name; a repeated name means the last, as for every reader of zip files."""

    def __init__(self, window: Window) -> None:
        """Read the directory; raises DamagedError when it is missing, cut or inconsistent."""
        self.window = window
        start, size, count = _directory_place(window)
        if count > MAX_ENTRIES:
            raise UnjudgeableError(f"it has {count} records, more than are read here")
        directory = window.read(start, size)
        self.entries: list[Entry] = []
        at = 0
        for _ in range(count):
            if at + CENTRAL_BYTES > size:
                raise DamagedError("its directory is cut short")
            self.entries.append(Entry(window, directory, at, start))
            at += CENTRAL_BYTES + sum(struct.unpack_from("<3H", directory, at + 28))
        if at != size:
            raise DamagedError("its directory has another length than declared")
        self.by_name = {entry.name: entry for entry in self.entries}


def _wide(extra: bytes, compressed: int, size: int, offset: int) -> tuple[int, int, int]:
    """Return compressed size, size and header offset, each from the zip64 extra field where the short one is full."""
    at = 0
    wide = b""
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = extra[at + 4 : at + 4 + length]
        at += 4 + length
    numbers = iter(struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8]))
    try:
        # The field holds only those that are full, in this order.
        size = next(numbers) if size == FULL_32 else size
        compressed = next(numbers) if compressed == FULL_32 else compressed
        offset = next(numbers) if offset == FULL_32 else offset
    except StopIteration:
        raise DamagedError("its directory is damaged") from None
    return compressed, size, offset


def _directory_place(window: Window) -> tuple[int, int, int]:
    """Return offset, size and number of entries of the central directory.

    A few bytes behind the archive's end are tolerated, as torch and `zipfile` do; a directory that does not end exactly
    where the end record begins is not.
    """
    tail_at = max(0, window.size - END_BYTES - FULL_16)
    tail = window.read(tail_at, window.size - tail_at)
    found = len(tail)
    while (found := tail.rfind(END, 0, found)) >= 0:
        record = tail[found : found + END_BYTES]
        if len(record) == END_BYTES and found + END_BYTES + int.from_bytes(record[-2:], "little") <= len(tail):
            place = _place_at(window, tail_at + found, record)
            if place is not None:
                return place
    raise DamagedError("it is cut short: the directory at its end is missing")


def _place_at(window: Window, end_at: int, record: bytes) -> tuple[int, int, int] | None:
    """Return the place that the end record at `end_at` gives, or None when it is not a true one."""
    count, size, start = struct.unpack_from("<H2L", record, 10)
    stop = end_at
    if count == FULL_16 or FULL_32 in {size, start}:
        locator_at = end_at - LOCATOR_BYTES
        if locator_at < 0 or window.read(locator_at, 4) != LOCATOR_64:
            return None
        (stop,) = struct.unpack("<Q", window.read(locator_at + 8, 8))
        if stop + END_64_BYTES > locator_at or window.read(stop, 4) != END_64:
            return None
        count, size, start = struct.unpack_from("<3Q", window.read(stop, END_64_BYTES), 32)
    elif end_at >= LOCATOR_BYTES and window.read(end_at - LOCATOR_BYTES, 4) == LOCATOR_64:
        # torch writes the zip64 records always; the short end record then holds the same numbers.
        (stop,) = struct.unpack("<Q", window.read(end_at - LOCATOR_BYTES + 8, 8))
    return (start, size, count) if start + size == stop else None
