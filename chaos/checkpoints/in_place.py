"""Where in its file a tensor's bytes lie, so that they can be changed there; times are kept, checksums mended."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from isal.isal_zlib import crc32

from chaos.checkpoints.archive import DESCRIPTOR, FLAG_DESCRIPTOR, STORED, Entry
from chaos.checkpoints.pickles import MAX_PICKLE_BYTES
from chaos.checkpoints.tensors import MemoryStorage, PlainStorage, Storage

_CRC_IN_LOCAL, _CRC_IN_CENTRAL = 14, 16
# Fewer bytes may stand somewhere else in the file, too.
_LEAST_BYTES_FOUND: Final = 8


@contextmanager
def kept_times(path: Path) -> Iterator[int]:
    """Open a file to be changed, make it durable, and keep its times; raises OSError."""
    status = path.stat()
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield descriptor
        os.fsync(descriptor)
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(descriptor)


def place_of(storage: Storage, path: Path | None) -> tuple[Path, int] | None:
    """Return the file that a storage lies in and its offset there; None when it is packed.

    What was read out of a pickle is looked for in the file at `path`, if that is given.
    """
    if isinstance(storage, PlainStorage):
        return storage.window.path, storage.window.start
    if isinstance(storage, Entry) and storage.method == STORED:
        return storage.window.path, storage.window.start + storage.data_at
    if path is None or not isinstance(storage, MemoryStorage) or storage.size_bytes < _LEAST_BYTES_FOUND:
        return None
    if not path.is_file() or path.stat().st_size > MAX_PICKLE_BYTES:
        return None
    data = path.read_bytes()
    at = data.find(storage.data)
    return None if at < 0 or data.find(storage.data, at + 1) >= 0 else (path, at)


def mend_checksum(entry: Entry, descriptor: int) -> None:
    """Write the checksum of the record's new data wherever the archive keeps it; raises OSError."""
    crc = 0
    for piece in entry.part(0, entry.size_bytes):
        crc = crc32(piece, crc)
    data = struct.pack("<L", crc)
    base = entry.window.start
    os.pwrite(descriptor, data, base + entry.directory_at + _CRC_IN_CENTRAL)
    if not entry.flags & FLAG_DESCRIPTOR:
        os.pwrite(descriptor, data, base + entry.header_at + _CRC_IN_LOCAL)
        return
    behind = entry.data_at + entry.compressed_bytes
    if entry.window.read(behind, 4) == DESCRIPTOR:
        os.pwrite(descriptor, data, base + behind + 4)
