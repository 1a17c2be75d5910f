"""Flips one bit of a weight in a checkpoint on disk, so that the file still looks whole.

Fault model: one wrong bit in the data with a checksum made over the wrong data, as when memory fails before a save. It
does not stand for a bit that rots on the disk: there the container's checksum, where it has one, tells.
"""

from __future__ import annotations

import os
import struct
import zlib
from contextlib import ExitStack
from pathlib import Path

from chaos.checkpoints.archive import DESCRIPTOR, FLAG_DESCRIPTOR, STORED, Entry
from chaos.checkpoints.compare import TensorSource
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.examine import examine
from chaos.checkpoints.tensors import FLOATING, PlainStorage, Storage, Tensor
from chaos.checkpoints.window import Window
from chaos.errors import UsageError

CRC_IN_LOCAL, CRC_IN_CENTRAL = 14, 16


def flip_bit(path: Path) -> str:
    """Flip the lowest mantissa bit of the first element of the first floating tensor, and return the tensor's name.

    Modification times are kept: a trainer must not notice by them. Raises UsageError when there is no such bit to flip.
    """
    found = examine(path)
    if not found.is_whole:
        raise UsageError(f"no bit of {path} can be flipped: {found.reason}")
    names = [leaf.name for leaf in found.leaves if leaf.is_tensor and leaf.dtype in FLOATING and 0 not in leaf.shape]
    if not names:
        raise UsageError(f"no bit of {path} can be flipped: it holds no floating tensor with an element")
    try:
        with ExitStack() as stack:
            _flip_first(TensorSource(path, stack).tensor(names[0]))
    except OSError as error:
        raise UsageError(f"no bit of {path} can be flipped: {error.strerror or error}") from error
    except (DamagedError, UnjudgeableError) as error:
        raise UsageError(f"no bit of {path} can be flipped: {error}") from error
    return names[0]


def _flip_first(tensor: Tensor) -> None:
    """Flip the lowest bit of a tensor's first byte in its file; raises UsageError, OSError."""
    window, start = _place(tensor.storage)
    status = window.path.stat()
    descriptor = os.open(window.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        at = window.start + start + tensor.offset
        os.pwrite(descriptor, bytes([os.pread(descriptor, 1, at)[0] ^ 1]), at)
        if isinstance(tensor.storage, Entry):
            _mend_checksum(tensor.storage, descriptor)
        os.fsync(descriptor)
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(descriptor)


def _place(storage: Storage) -> tuple[Window, int]:
    """Return the window that a storage lies in and its offset there; raises UsageError when it is packed."""
    if isinstance(storage, PlainStorage):
        return storage.window, 0
    if isinstance(storage, Entry) and storage.method == STORED:
        return storage.window, storage.data_at
    raise UsageError("no bit can be flipped: the first floating tensor is compressed, or lies inside a pickle")


def _mend_checksum(entry: Entry, descriptor: int) -> None:
    """Write the checksum of the record's new data wherever the archive keeps it; raises OSError."""
    crc = 0
    for piece in entry.part(0, entry.size_bytes):
        crc = zlib.crc32(piece, crc)
    data = struct.pack("<L", crc)
    base = entry.window.start
    os.pwrite(descriptor, data, base + entry.directory_at + CRC_IN_CENTRAL)
    if not entry.flags & FLAG_DESCRIPTOR:
        os.pwrite(descriptor, data, base + entry.header_at + CRC_IN_LOCAL)
        return
    behind = entry.data_at + entry.compressed_bytes
    if entry.window.read(behind, 4) == DESCRIPTOR:
        os.pwrite(descriptor, data, base + behind + 4)
