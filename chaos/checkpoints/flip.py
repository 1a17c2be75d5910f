"""Flips one bit of a weight in a checkpoint on disk.

`flip_bit` plants a bug: one wrong bit with a checksum made over the wrong data, so that the file still looks whole, as
when memory fails before a save. `rot_bit` is a bit that rots on the disk: the container's checksum, where it has one,
is left as it was and tells.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from chaos.checkpoints.archive import DESCRIPTOR, FLAG_DESCRIPTOR, STORED, Entry
from chaos.checkpoints.compare import TensorSource
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.examine import examine
from chaos.checkpoints.tensors import FLOATING, PlainStorage, Storage, Tensor
from chaos.checkpoints.window import Window
from chaos.errors import UsageError

CRC_IN_LOCAL, CRC_IN_CENTRAL = 14, 16
# Odd numbers: by their multiples, any count of places is gone through in an order that looks like none.
_STEP_OF_ELEMENTS: Final = 2_654_435_761
_EXPONENT_BITS: Final = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11, "float8_e5m2": 5}
_EXPONENT_BITS_OF_OTHERS: Final = 4


def flip_bit(path: Path) -> str:
    """Flip the lowest mantissa bit of the first element of the first floating tensor, and return the tensor's name.

    Modification times are kept: a trainer must not notice by them. Raises UsageError when there is no such bit to flip.
    """
    names = _floating_tensors(path)
    with _told_as_usage(path), ExitStack() as stack:
        _flip(TensorSource(path, stack).tensor(names[0]), 0, bit=0, mends_checksum=True)
    return names[0]


def rot_bit(path: Path, variant: int) -> str:
    """Flip a bit that means something, chosen by `variant`, and return in words which one.

    Another tensor, element and bit for each variant: one of the highest of the mantissa or of the exponent, so that the
    number is another one by far. Padding and headers are never touched, checksums and times are left as they are.
    Raises UsageError when there is no such bit.
    """
    names = _floating_tensors(path)
    turn, which = divmod(variant, len(names))
    name = names[which]
    with _told_as_usage(path), ExitStack() as stack:
        tensor = TensorSource(path, stack).tensor(name)
        element = turn * _STEP_OF_ELEMENTS % math.prod(tensor.shape)
        bits = _telling_bits(tensor)
        bit = bits[0] if not any(_stored(tensor, element)) else bits[turn % len(bits)]
        _flip(tensor, element, bit=bit, mends_checksum=False)
    return f"bit {bit} of element {element:,} of {name}"


def _floating_tensors(path: Path) -> list[str]:
    """Return the names of the tensors with a bit to flip, in order; raises UsageError when there is none."""
    found = examine(path)
    if not found.is_whole:
        raise UsageError(f"no bit of {path} can be flipped: {found.reason}")
    names = [leaf.name for leaf in found.leaves if leaf.is_tensor and leaf.dtype in FLOATING and 0 not in leaf.shape]
    if not names:
        raise UsageError(f"no bit of {path} can be flipped: it holds no floating tensor with an element")
    return names


@contextmanager
def _told_as_usage(path: Path) -> Iterator[None]:
    """Turn what a damaged or unreadable file raises into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"no bit of {path} can be flipped: {error.strerror or error}") from error
    except (DamagedError, UnjudgeableError) as error:
        raise UsageError(f"no bit of {path} can be flipped: {error}") from error


def _telling_bits(tensor: Tensor) -> tuple[int, ...]:
    """Return bits of an element whose value matters, from 0: highest and lowest of the exponent, highest of the rest.

    The first makes another number even of a zero.
    """
    sign = tensor.item_bytes * 8 - 1
    lowest = max(sign - _EXPONENT_BITS.get(tensor.dtype, _EXPONENT_BITS_OF_OTHERS), 0)
    return tuple(dict.fromkeys((sign - 1, lowest, max(lowest - 1, 0))))


def _position(tensor: Tensor, element: int) -> int:
    """Return the byte in the storage at which an element begins; elements are counted in row-major order."""
    position = tensor.offset
    for length, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        element, index = divmod(element, length)
        position += index * stride
    return position


def _stored(tensor: Tensor, element: int) -> bytes:
    """Return the bytes of an element."""
    start = _position(tensor, element)
    return b"".join(tensor.storage.part(start, start + tensor.item_bytes))


def _flip(tensor: Tensor, element: int, *, bit: int, mends_checksum: bool) -> None:
    """Flip a bit of an element in its file, numbers being little-endian; raises UsageError, OSError."""
    window, start = _place(tensor.storage)
    status = window.path.stat()
    descriptor = os.open(window.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        at = window.start + start + _position(tensor, element) + bit // 8
        os.pwrite(descriptor, bytes([os.pread(descriptor, 1, at)[0] ^ (1 << bit % 8)]), at)
        if mends_checksum and isinstance(tensor.storage, Entry):
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
    raise UsageError("no bit can be flipped: the floating tensor is compressed, or lies inside a pickle")


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
