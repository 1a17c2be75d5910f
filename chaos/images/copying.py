"""A copy of an image file as it is at one moment: what the disk held then."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import xxhash

from chaos.errors import HarnessError

_CHUNK_BYTES: Final = 1 << 18
_ATTEMPTS: Final = 20
_ZEROS: Final = bytes(_CHUNK_BYTES)


def copy_image(source: Path, target: Path) -> str:
    """Copy a (sparse) image file that may be in use; return a digest of what it held, hexadecimal.

    The copy is the image of one moment, although it takes longer: it is read a second time, and where that gives
    something else, so that a write came in between, all of it is done again. Equal images have equal digests, whatever
    is a hole in them and what zeros. Raises HarnessError where the image does not come to rest, or there is no room.
    """
    try:
        with source.open("rb", buffering=0) as file:
            for _ in range(_ATTEMPTS):
                copied = _copy(file.fileno(), target)
                if copied == _digest(file.fileno()):
                    return copied
    except OSError as error:
        hint = "free some space, or choose another folder for the images"
        raise HarnessError(f"an image cannot be copied to {target}: {error.strerror}", hint=hint) from error
    message = f"{source} was written to all the time while it was copied"
    raise HarnessError(message, hint="end what else uses its file system")


def _copy(source: int, target: Path) -> str:
    """Copy what is no hole and no zeros; return its digest."""
    state = xxhash.xxh3_128()
    with target.open("wb", buffering=0) as file:
        size = os.fstat(source).st_size
        file.truncate(size)
        for offset, data in _chunks(source, size):
            _take(state, offset, data)
            written = 0
            while written < len(data):
                written += os.pwrite(file.fileno(), memoryview(data)[written:], offset + written)
    return state.hexdigest()


def _digest(source: int) -> str:
    """Return the digest of an image."""
    state = xxhash.xxh3_128()
    for offset, data in _chunks(source, os.fstat(source).st_size):
        _take(state, offset, data)
    return state.hexdigest()


def _take(state: xxhash.xxh3_128, offset: int, data: bytes) -> None:
    """Let a digest take in a chunk and its place."""
    state.update(offset.to_bytes(8, "little"))
    state.update(data)


def _chunks(fd: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks (at fixed places) of a file that hold something else than zeros, in order."""
    offset = 0
    while (offset := _next_data(fd, offset, size)) < size:
        offset -= offset % _CHUNK_BYTES
        data = os.pread(fd, _CHUNK_BYTES, offset)
        if data != _ZEROS[: len(data)]:
            yield offset, data
        offset += _CHUNK_BYTES


def _next_data(fd: int, offset: int, size: int) -> int:
    """Return where the next byte is that is in no hole; `size` where there is none."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA) if offset < size else size
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size
        raise
