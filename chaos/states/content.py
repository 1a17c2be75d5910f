"""The bytes of recordings, each piece kept once: found by its digest, here or in the recordings before.

The file is only ever appended to: a header (digest and size) and the bytes, piece after piece. What stays in memory is
where each piece lies.
"""

# ruff: noqa: PTH123 - on the way of every recorded write

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Final, Protocol

import msgspec
import xxhash

from chaos.errors import HarnessError
from chaos.model import Record

PIECE_BYTES: Final = 1 << 20
_HEADER: Final = struct.Struct("<16sI")
_CACHED_PIECES: Final = 4
_NO_ROOM: Final = "free some space there, choose another place with --runs DIR, or bound the campaign with --max-bytes"


class Piece(Record, kw_only=True, array_like=True):
    """A run of bytes: its xxh3 digest (128 bits, hexadecimal) and its length, at most `PIECE_BYTES`."""

    digest: str
    size_bytes: int


class Content(Protocol):
    """What gives the bytes of a piece."""

    def read(self, digest: str) -> bytes:
        """Return the whole piece."""


class ContentStore:
    """One file of pieces; what is not in it is looked for in the store of the recording before."""

    def __init__(self, path: Path, parent: ContentStore | None = None, *, is_new: bool = False) -> None:
        """Open the store at `path`, or make it where it `is_new`.

        Raises HarnessError where it cannot be made or read.
        """
        self._path = path
        self._parent = parent
        self._index: dict[str, tuple[int, int]] = {}
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._buffer = bytearray()
        self._end = 0
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL if is_new else os.O_RDONLY
        try:
            self._fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise failed_to_store(error, path) if is_new else _unreadable(path) from error
        if not is_new:
            self._scan()

    def _scan(self) -> None:
        """Find where each piece lies."""
        size = os.fstat(self._fd).st_size
        while self._end + _HEADER.size <= size:
            digest, length = _HEADER.unpack(os.pread(self._fd, _HEADER.size, self._end))
            if self._end + _HEADER.size + length > size:
                break  # the writer was killed here: no change tells of this piece
            self._index[digest.hex()] = (self._end + _HEADER.size, length)
            self._end += _HEADER.size + length

    @property
    def size_bytes(self) -> int:
        """Return the length of the store's own file."""
        return self._end

    def put(self, data: memoryview | bytes) -> Piece:
        """Keep at most `PIECE_BYTES` of data, if they are not kept already; HarnessError where there is no room."""
        digest = xxhash.xxh3_128_digest(data)
        piece = Piece(digest=digest.hex(), size_bytes=len(data))
        if not self._has(piece.digest):
            self._append(digest, data)
            self._index[piece.digest] = (self._end - len(data), len(data))
        return piece

    def _append(self, digest: bytes, data: memoryview | bytes) -> None:
        """Write one piece at the end; what is left of one that does not fit is taken away again."""
        wanted = _HEADER.size + len(data)
        try:
            done = os.pwritev(self._fd, [_HEADER.pack(digest, len(data)), data], self._end)
            while done < wanted:  # a disk that is nearly full takes a part, and says why only the next time
                done += os.pwrite(self._fd, memoryview(data)[max(done - _HEADER.size, 0) :], self._end + done)
        except OSError as error:
            os.ftruncate(self._fd, self._end)
            raise failed_to_store(error, self._path) from error
        self._end += wanted

    def _has(self, digest: str) -> bool:
        """Tell whether a piece is kept here or before."""
        return digest in self._index or (self._parent is not None and self._parent._has(digest))  # noqa: SLF001 - another store

    def read(self, digest: str) -> bytes:
        """Return the bytes of a piece, which are checked; HarnessError where they are missing or changed."""
        data = self._cache.get(digest)
        if data is None:
            data = bytes(self.view(digest))
            self._cache[digest] = data
            if len(self._cache) > _CACHED_PIECES:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(digest)
        return data

    def view(self, digest: str) -> memoryview:
        """Return the bytes of a piece, which are checked, in a buffer that holds them until the next call.

        Raises HarnessError where they are missing or changed.
        """
        if digest not in self._index:
            if self._parent is None:
                message = f"a recording lacks bytes that it tells of: {self._path}"
                raise HarnessError(message, hint="something removed or cut files of this run; record it again")
            return self._parent.view(digest)
        position, size = self._index[digest]
        if len(self._buffer) < size:
            self._buffer = bytearray(max(size, 1 << 16))
        data = memoryview(self._buffer)[:size]
        try:
            got = os.preadv(self._fd, [data], position)
        except OSError as error:
            raise _unreadable(self._path) from error
        if got != size or xxhash.xxh3_128_hexdigest(data) != digest:
            message = f"bytes of a recording are no longer those that were stored: {self._path}, at {position:,}"
            raise HarnessError(message, hint="the disk may be failing, or something wrote there; record the run again")
        return data

    def close(self) -> None:
        """Close this store; the ones before are closed by whoever opened them."""
        os.close(self._fd)


class ChangeWriter:
    """Appends records to a file, one a line."""

    def __init__(self, path: Path) -> None:
        """Make the file; HarnessError where that is not possible."""
        self._path = path
        self._encoder = msgspec.json.Encoder()
        try:
            self._file = open(path, "xb", buffering=1 << 16)  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise failed_to_store(error, path) from error

    def write(self, record: msgspec.Struct) -> None:
        """Append one record; HarnessError where there is no room."""
        try:
            self._file.write(self._encoder.encode(record) + b"\n")
        except OSError as error:
            raise failed_to_store(error, self._path) from error

    def close(self) -> None:
        """Store what is still in memory and close the file; HarnessError where there is no room."""
        try:
            self._file.close()
        except OSError as error:
            raise failed_to_store(error, self._path) from error


def failed_to_store(error: OSError, path: Path) -> HarnessError:
    """Return the error for what could not be stored at `path`."""
    return HarnessError(f"no more of a recording or crash state can be stored: {error.strerror}: {path}", hint=_NO_ROOM)


def _unreadable(path: Path) -> HarnessError:
    """Return the error for a store that cannot be read."""
    return HarnessError(f"a recording cannot be read: {path}", hint="files of this run are missing; record it again")
