"""Tensors as they lie in a file: a dtype's name, a shape, and a strided view of a storage's bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.window import CHUNK_BYTES, Window

# A view may repeat its bytes without end: one that is larger than this, and than so many times its bytes, is given up.
MOST_REPEATED_BYTES = 1 << 30
MOST_REPEATS = 64
ITEM_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "uint16": 2,
    "int16": 2,
    "uint32": 4,
    "int32": 4,
    "uint64": 8,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
    "qint8": 1,
    "quint8": 1,
    "qint32": 4,
}
# Elements of these are numbers with a mantissa, whose lowest bit is the lowest of their first byte.
FLOATING = frozenset(
    name for name in ITEM_BYTES if name.startswith(("float16", "bfloat16", "float32", "float64", "float8"))
)


class Storage(Protocol):
    """Bytes that one or more tensors look at."""

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""

    def verified(self) -> Iterator[bytes]:
        """Yield all bytes in chunks; raises DamagedError at the end when the storage's own checksum says no."""

    def part(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `stop` in chunks, unverified."""


class PlainStorage:
    """A part of a file that carries no checksum of its own."""

    __slots__ = ("window",)

    def __init__(self, window: Window) -> None:
        """Take all bytes of `window`."""
        self.window = window

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""
        return self.window.size

    def verified(self) -> Iterator[bytes]:
        """Yield all bytes; there is nothing to verify."""
        return self.window.chunks()

    def part(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `stop`."""
        return self.window.chunks(start, stop)


class MemoryStorage:
    """Bytes that were read already, such as an array inside a pickle."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        """Keep `data`."""
        self.data = data

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""
        return len(self.data)

    def verified(self) -> Iterator[bytes]:
        """Yield all bytes at once."""
        yield self.data

    def part(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `stop` at once."""
        yield self.data[start:stop]


class Tensor:
    """A strided view of a storage; `strides` and `offset` count bytes."""

    __slots__ = ("dtype", "is_contiguous", "item_bytes", "offset", "shape", "size_bytes", "storage", "strides")

    def __init__(
        self,
        dtype: str,
        item_bytes: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        storage: Storage,
    ) -> None:
        """Check the view against its storage; raises DamagedError when it reaches outside."""
        if len(shape) != len(strides) or min((*shape, *strides, offset), default=0) < 0:
            raise DamagedError("a tensor's shape and strides make no sense")
        self.dtype = dtype
        self.item_bytes = item_bytes
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.storage = storage
        self.size_bytes = math.prod(shape) * item_bytes
        self.is_contiguous = strides == contiguous_strides(shape, item_bytes) or self._is_packed()
        if self.size_bytes and self.stop > storage.size_bytes:
            raise DamagedError(f"a tensor ends at byte {self.stop} of a storage of {storage.size_bytes} bytes")

    @property
    def stop(self) -> int:
        """The end of the bytes that the view touches, as an offset in the storage."""
        if not self.size_bytes:
            return self.offset
        reach = sum((length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True))
        return self.offset + reach + self.item_bytes

    def _is_packed(self) -> bool:
        """Tell whether the elements lie in order without gaps: strides of dimensions of length 1 do not matter."""
        expected = contiguous_strides(self.shape, self.item_bytes)
        each = zip(self.shape, self.strides, expected, strict=True)
        return not self.size_bytes or all(length == 1 or have == want for length, have, want in each)

    def chunks(self) -> Iterator[bytes]:
        """Yield the elements' bytes in row-major order, unverified, in pieces; raises UnjudgeableError for too many."""
        if not self.size_bytes:
            return iter(())
        if self.is_contiguous:
            return self.storage.part(self.offset, self.offset + self.size_bytes)
        span_bytes = self.stop - self.offset
        if self.size_bytes > max(MOST_REPEATED_BYTES, MOST_REPEATS * span_bytes):
            raise UnjudgeableError(
                f"a tensor of {self.size_bytes} bytes repeats {span_bytes} bytes: it is too large to be read"
            )
        return self._gathered()

    def _gathered(self) -> Iterator[bytes]:
        """Yield a strided view's bytes; the span that it touches is held in memory meanwhile."""
        # Imported here: most files have contiguous tensors only, and numpy is two thirds of the start-up time.
        import numpy as np

        span = b"".join(self.storage.part(self.offset, self.stop))
        view = np.ndarray(self.shape, dtype=f"V{self.item_bytes}", buffer=span, strides=self.strides)
        pending = [view]
        while pending:
            block = pending.pop()
            if block.nbytes <= CHUNK_BYTES or block.ndim == 0:
                yield block.tobytes()
                continue
            rows = max(1, CHUNK_BYTES * len(block) // block.nbytes)
            if len(block) == 1:
                pending.append(block[0])
            else:
                pending.extend((block[rows:], block[:rows]))


def contiguous_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Return the byte strides of a row-major array."""
    strides: list[int] = []
    step = item_bytes
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def column_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Return the byte strides of a column-major (Fortran order) array."""
    return tuple(reversed(contiguous_strides(shape[::-1], item_bytes)))
