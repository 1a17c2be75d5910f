"""How the elements of two tensors differ: number, largest absolute difference, largest distance in ulp."""

from __future__ import annotations

import sys
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

# The unsigned integers with the same bits; a complex number is two floats.
FLOATS = {
    "float16": np.uint16,
    "bfloat16": np.uint16,
    "float32": np.uint32,
    "float64": np.uint64,
    "complex64": np.uint32,
    "complex128": np.uint64,
}
COMPLEX = frozenset({"complex64", "complex128"})
INTEGERS = frozenset({"bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"})
WHOLE_WIDTHS = frozenset({1, 2, 4, 8})
BIG: Final = ">"
# Where fewer elements than one in so many differ, they are picked out first.
FEW = 8
Array = NDArray[Any]


class ElementDifference:
    """Counts and extremes over the differing elements of any number of tensors.

    `largest_absolute` is that of the numbers; one that is not finite (infinity against a number, NaN against a number)
    counts as the largest float, since JSON has no infinity. `largest_ulp` is the distance of the bit patterns read as
    sign and magnitude, so 0.0 and -0.0 are 0 apart, and two NaNs the difference of their payloads. Dtypes narrower than
    16 bits, and others that numpy does not know, have counts only. `bits_differing` is exact where one element
    differs, and not less than their number else: one bit alone is what rot looks like.
    """

    __slots__ = ("bits_differing", "differing", "has_numbers", "largest_absolute", "largest_ulp")

    def __init__(self) -> None:
        """Begin with no difference."""
        self.differing = 0
        self.has_numbers = False
        self.bits_differing = 0
        self.largest_absolute = 0.0
        self.largest_ulp = 0

    @property
    def is_of_equal_numbers(self) -> bool:
        """Tell whether bits differ and no number does: in signs of zeros and in payloads of NaNs."""
        return self.differing > 0 and self.has_numbers and self.largest_absolute == 0.0

    def add(self, other: ElementDifference) -> None:
        """Take in what was found elsewhere."""
        self.differing += other.differing
        self.bits_differing += other.bits_differing
        self.note(other.largest_absolute, other.largest_ulp)

    def repeat(self, times: int) -> None:
        """Count what was found so often: a view may show the same elements again and again."""
        self.differing *= times
        self.bits_differing *= times

    def add_piece(self, dtype: str, width: int, left: bytearray, right: bytearray) -> None:
        """Compare two pieces of whole elements of `width` bytes."""
        kind = dtype.removeprefix(BIG)
        one, two, which = _unlike(width, left, right)
        count = int(np.count_nonzero(which))
        if not count:
            return
        if not self.differing:
            self.bits_differing = _bits_apart(one, two) if count == 1 else count
        else:
            self.bits_differing += count
        self.differing += count
        if count * FEW < len(one) and len(which) == len(one):
            one, two = one[which], two[which]
        self.has_numbers = kind in FLOATS.keys() | INTEGERS
        if kind in FLOATS:
            unsigned = np.dtype(FLOATS[kind])
            self._add_floats(kind, *(_native(part, unsigned, is_big=dtype != kind) for part in (one, two)))
        elif kind in INTEGERS:
            numbers = np.dtype(np.uint8 if kind == "bool" else kind)
            pair = (_native(part, numbers, is_big=dtype != kind) for part in (one, two))
            self.note(float(_integer_distance(*pair)), 0)

    def _add_floats(self, kind: str, left: Array, right: Array) -> None:
        """Take the extremes over floats (complex numbers by their parts), some of which differ."""
        absolute = largest_absolute(as_floats(kind, left), as_floats(kind, right), at_least=self.largest_absolute)
        self.note(absolute, _ulp_distance(left, right))

    def note(self, absolute: float, ulp: int) -> None:
        """Keep the larger ones of these extremes."""
        self.largest_absolute = max(self.largest_absolute, absolute)
        self.largest_ulp = max(self.largest_ulp, ulp)


def _unlike(width: int, left: bytearray, right: bytearray) -> tuple[Array, Array, Array]:
    """Return the elements of both sides as rows of bits, and which of them differ."""
    if width in WHOLE_WIDTHS:
        one, two = (np.frombuffer(data, f"u{width}") for data in (left, right))
        return one, two, one != two
    one, two = (np.frombuffer(data, np.uint8).reshape(-1, width) for data in (left, right))
    if width % 8:
        return one, two, (one != two).any(axis=1)
    wide = (one.view(np.uint64), two.view(np.uint64))
    return one, two, (wide[0] != wide[1]).any(axis=1)


def _bits_apart(left: Array, right: Array) -> int:
    """Return in how many single bits two pieces differ."""
    apart = np.bitwise_xor(left, right)
    return int(np.unpackbits(np.ascontiguousarray(apart[apart != 0]).view(np.uint8)).sum())


def _native(part: Array, kind: np.dtype[Any], *, is_big: bool) -> Array:
    """Return the bits of elements as numbers of `kind` in this machine's order; a complex one becomes two."""
    flat = np.ascontiguousarray(part).reshape(-1)
    return flat.view(kind.newbyteorder(BIG)).astype(kind) if is_big else flat.view(kind)


def as_floats(kind: str, bits: Array) -> Array:
    """Return the numbers that the bits of a float's dtype stand for, exactly, as float32 or float64."""
    if kind == "bfloat16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return bits.view(np.float16).astype(np.float32) if kind == "float16" else bits.view(f"f{bits.itemsize}")


def shown_element(dtype: str, data: bytearray) -> str:
    """Return one element as text: a number where the dtype is known, its bytes otherwise."""
    kind = dtype.removeprefix(BIG)
    if kind not in FLOATS.keys() | INTEGERS:
        return f"0x{data.hex()}"
    order: Literal[">", "<"] = BIG if dtype != kind else "<"
    if kind == "bfloat16":
        bits = np.frombuffer(data, np.dtype(np.uint16).newbyteorder(order)).astype(np.uint16)
        return str(as_floats(kind, bits)[0])
    return str(np.frombuffer(data, np.dtype(kind).newbyteorder(order))[0])


def largest_absolute(left: Array, right: Array, at_least: float = 0.0) -> float:
    """Return the largest absolute difference of two arrays of numbers of the same dtype, worked out in float64.

    Two NaNs do not differ, nor do equal infinities; what is not finite else counts as the largest float. A result that
    is not above `at_least` may be anything up to it.
    """
    with np.errstate(all="ignore"):
        apart = np.subtract(left, right)
        np.abs(apart, out=apart)
        most = apart.max()
        if np.isfinite(most):
            # Rounding keeps order: the largest in float64 is among the largest in float32.
            if apart.itemsize == np.dtype(np.float64).itemsize or most < np.float32(at_least):
                return float(most)
            which = apart == most
            return float(np.abs(left[which].astype(np.float64) - right[which].astype(np.float64)).max())
        distance = np.abs(left.astype(np.float64) - right.astype(np.float64))
    distance[(np.isnan(left) & np.isnan(right)) | (left == right)] = 0.0
    distance[~np.isfinite(distance)] = sys.float_info.max
    return float(distance.max())


def _ulp_distance(left: Array, right: Array) -> int:
    """Return how many representable numbers lie between at most, by the bits as sign and magnitude."""
    width = left.itemsize
    signed = np.dtype(f"i{width}")
    sign = left.dtype.type(1 << (8 * width - 1))
    if int(np.bitwise_xor(left, right).max()) < int(sign):
        # The same sign everywhere: what is between is the difference of the bits, which cannot overflow.
        apart = np.subtract(left, right).view(signed)
        return max(int(apart.max()), -int(apart.min()))
    first, second = left & ~sign, right & ~sign
    apart = np.where(first > second, first - second, second - first)
    # Both magnitudes are below the sign's bit, so their sum fits.
    return int(np.where((left & sign) == (right & sign), apart, first + second).max())


def _integer_distance(left: Array, right: Array) -> int:
    """Return the largest distance of integers, exactly."""
    larger, smaller = np.maximum(left, right), np.minimum(left, right)
    # Unsigned subtraction wraps to the true distance, which can be too large for a signed integer.
    unsigned = f"u{left.itemsize}"
    return int(np.subtract(larger.view(unsigned), smaller.view(unsigned)).max())
