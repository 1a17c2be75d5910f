"""How two streams of elements of one dtype differ: number, largest absolute difference, largest distance in ulp."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.checkpoints.tensors import Tensor
from chaos.checkpoints.window import CHUNK_BYTES

# The unsigned integers with the same bits; a complex number is two floats.
FLOATS = {
    "float16": np.uint16,
    "bfloat16": np.uint16,
    "float32": np.uint32,
    "float64": np.uint64,
    "complex64": np.uint32,
    "complex128": np.uint64,
}
INTEGERS = frozenset({"bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"})
Array = NDArray[Any]


class ElementDifference:
    """Counts and extremes over the differing elements of any number of tensors.

    `largest_absolute` is that of the numbers; one that is not finite (infinity against a number, NaN against a number)
    counts as the largest float, since JSON has no infinity. `largest_ulp` is the distance of the bit patterns read as
    sign and magnitude, so 0.0 and -0.0 are 0 apart, and two NaNs the difference of their payloads. Dtypes narrower than
    16 bits have counts only.
    """

    __slots__ = ("differing", "largest_absolute", "largest_ulp")

    def __init__(self) -> None:
        """Begin with no difference."""
        self.differing = 0
        self.largest_absolute = 0.0
        self.largest_ulp = 0

    def add(self, left: Tensor, right: Tensor) -> None:
        """Compare two tensors of the same dtype and shape, in pieces."""
        width = left.item_bytes
        size = max(width, CHUNK_BYTES // width * width)
        for one, two in zip(_rechunked(left.chunks(), size), _rechunked(right.chunks(), size), strict=True):
            if one != two:
                self._add_piece(left.dtype, width, one, two)

    def _add_piece(self, dtype: str, width: int, left: bytes, right: bytes) -> None:
        """Compare one piece of whole elements that is known to differ."""
        pair = [np.frombuffer(data, np.uint8).reshape(-1, width) for data in (left, right)]
        which = (pair[0] != pair[1]).any(axis=1)
        self.differing += int(which.sum())
        bits_left, bits_right = (np.ascontiguousarray(data[which]) for data in pair)
        if dtype in FLOATS:
            self._add_floats(dtype, bits_left, bits_right)
        elif dtype in INTEGERS:
            self._note(float(_integer_distance(dtype, bits_left, bits_right)), 0)

    def _add_floats(self, dtype: str, left: Array, right: Array) -> None:
        """Take the extremes over differing floats, complex numbers by their parts."""
        unsigned = FLOATS[dtype]
        one, two = left.view(unsigned).ravel(), right.view(unsigned).ravel()
        with np.errstate(all="ignore"):
            distance = np.abs(_as_float64(dtype, one) - _as_float64(dtype, two))
        # NaN against NaN, or one infinity in a complex number against itself: no number differs.
        both_nan = np.isnan(_as_float64(dtype, one)) & np.isnan(_as_float64(dtype, two))
        distance[both_nan | (one == two)] = 0.0
        distance[~np.isfinite(distance)] = sys.float_info.max
        self._note(float(distance.max()), int(_ulp_distance(one, two).max()))

    def _note(self, absolute: float, ulp: int) -> None:
        """Keep the larger ones."""
        self.largest_absolute = max(self.largest_absolute, absolute)
        self.largest_ulp = max(self.largest_ulp, ulp)


def _as_float64(dtype: str, bits: Array) -> Array:
    """Return the numbers that the bits stand for."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view(f"f{bits.itemsize}").astype(np.float64)


def _ulp_distance(left: Array, right: Array) -> Array:
    """Return how many representable numbers lie between, by the bits as sign and magnitude, without overflow."""
    sign = np.uint64(1 << (8 * left.itemsize - 1))
    one, two = left.astype(np.uint64), right.astype(np.uint64)
    first, second = one & ~sign, two & ~sign
    apart = np.where(first > second, first - second, second - first)
    return np.where((one & sign) == (two & sign), apart, first + second)


def _integer_distance(dtype: str, left: Array, right: Array) -> int:
    """Return the largest distance of integers, exactly."""
    kind = np.uint8 if dtype == "bool" else np.dtype(dtype)
    wide = np.uint64 if dtype == "uint64" else np.int64
    one, two = (bits.view(kind).ravel().astype(wide) for bits in (left, right))
    larger, smaller = np.maximum(one, two).view(np.uint64), np.minimum(one, two).view(np.uint64)
    # Unsigned subtraction wraps to the true distance, which can be too large for a signed integer.
    return int((larger - smaller).max())


def _rechunked(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes in pieces of exactly `size`, the last one shorter."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)
