"""What may have made one tensor of another: rounding to fewer bits, another dtype, or nothing but zeros.

Each guess lives until a piece contradicts it. Pieces that are equal on both sides are not looked at for rounding: in a
tensor that was rounded hardly any is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.checkpoints.elements import BIG, FLOATS, as_floats

Array = NDArray[Any]
# Bits of the significand: a dtype with fewer is what numbers can have been rounded to.
PRECISION = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
# Contradictions show in the first elements: the rest need not be rounded then.
FIRST = 1024
HEAD_BYTES = 64


class Guess(StrEnum):
    """What the right tensor (or the left one) may be."""

    SAME_NUMBERS = "same numbers"
    RIGHT_ZERO = "right all zero"
    LEFT_ZERO = "left all zero"
    RIGHT_FLOAT16 = "right rounded to float16"
    RIGHT_BFLOAT16 = "right rounded to bfloat16"
    RIGHT_FLOAT32 = "right rounded to float32"
    LEFT_FLOAT16 = "left rounded to float16"
    LEFT_BFLOAT16 = "left rounded to bfloat16"
    LEFT_FLOAT32 = "left rounded to float32"


def roundings(left: str, right: str) -> dict[Guess, str]:
    """Return which roundings may lie between two dtypes: the guess, and what was rounded to."""
    found: dict[Guess, str] = {}
    for side, source, result in (("right", left, right), ("left", right, left)):
        precisions = [name for name in ("float16", "bfloat16", "float32") if PRECISION[name] < PRECISION[source]]
        for name in precisions:
            # A result that is stored in another dtype can only have been rounded to that one, unless it was widened.
            if result in {source, name} or PRECISION[result] >= PRECISION[source]:
                found[Guess(f"{side} rounded to {name}")] = name
    return found


class Guesses:
    """The guesses about one pair of tensors of the same shape that no piece has contradicted so far."""

    def __init__(self, left: str, right: str) -> None:
        """Begin with all that the two dtypes allow."""
        self._kinds = (left.removeprefix(BIG), right.removeprefix(BIG))
        self._is_big = (left.startswith(BIG), right.startswith(BIG))
        self.left_zero = True
        self.right_zero = True
        self._roundings = roundings(*self._kinds) if all(kind in PRECISION for kind in self._kinds) else {}
        self._may_be_same = left != right and all(kind in PRECISION for kind in self._kinds)

    @property
    def is_readable(self) -> bool:
        """Tell whether both sides are floats whose numbers can be compared."""
        return all(kind in PRECISION for kind in self._kinds)

    def see_equal(self, piece: bytearray) -> None:
        """Take notice of a piece that is the same bytes on both sides."""
        if self.left_zero or self.right_zero:
            is_zero = self._is_zero(piece, 0)
            self.left_zero &= is_zero
            self.right_zero &= is_zero

    def see(self, left: bytearray, right: bytearray) -> None:
        """Take notice of a piece with the same elements, not the same bytes, on both sides."""
        self.left_zero = self.left_zero and self._is_zero(left, 0)
        self.right_zero = self.right_zero and self._is_zero(right, 1)
        if not self._roundings and not self._may_be_same:
            return
        one, two = self.numbers(left, right)
        for part in (slice(0, FIRST), slice(FIRST, None)):
            self._try(one[part], two[part])

    def _is_zero(self, piece: bytearray, side: int) -> bool:
        """Tell whether all elements of a piece of one side are zero, of whichever sign."""
        return _is_zero(piece, self._kinds[side], is_big=self._is_big[side])

    def numbers(self, left: bytearray, right: bytearray) -> tuple[Array, Array]:
        """Return the numbers of a piece of each side, as float32 or float64."""
        one, two = (
            as_floats(kind, _bits(kind, data, is_big=is_big))
            for kind, is_big, data in zip(self._kinds, self._is_big, (left, right), strict=True)
        )
        return one, two

    def _try(self, left: Array, right: Array) -> None:
        """Drop the guesses that these elements contradict."""
        self._may_be_same = self._may_be_same and _agree(left, right)
        for guess, name in list(self._roundings.items()):
            source, result = (left, right) if guess.startswith("right") else (right, left)
            if not _agree(_rounded(source, name), result):
                del self._roundings[guess]

    @property
    def left_over(self) -> frozenset[Guess]:
        """What was not contradicted; a side is told to be zero only where the other one is not."""
        found = set(self._roundings)
        found |= {Guess.SAME_NUMBERS} if self._may_be_same else set()
        found |= {Guess.LEFT_ZERO} if self.left_zero and not self.right_zero else set()
        found |= {Guess.RIGHT_ZERO} if self.right_zero and not self.left_zero else set()
        return frozenset(found)


def _bits(kind: str, data: bytearray, *, is_big: bool) -> Array:
    """Return the bits of elements of a float's dtype in this machine's order."""
    native = np.dtype(FLOATS[kind])
    return np.frombuffer(data, native.newbyteorder(BIG)).astype(native) if is_big else np.frombuffer(data, native)


def _is_zero(piece: bytearray, kind: str, *, is_big: bool) -> bool:
    """Tell whether all elements are zero, floats of whichever sign; most pieces show at their head that they are not.

    Elements of a dtype that is not known here are zero where all their bytes are.
    """
    if kind not in FLOATS:
        return not any(piece[:HEAD_BYTES]) and piece.count(0) == len(piece)
    head = _bits(kind, piece[:HEAD_BYTES], is_big=is_big)
    sign = head.dtype.type(1)
    return not (head << sign).any() and not (_bits(kind, piece, is_big=is_big) << sign).any()


def _rounded(numbers: Array, name: str) -> Array:
    """Return numbers rounded to a dtype with fewer bits (to the nearest, ties to even), as float32."""
    with np.errstate(all="ignore"):
        single = numbers.astype(np.float32, copy=False)
        if name == "float16":
            return single.astype(np.float16).astype(np.float32)
        if name == "float32":
            return single
        bits = single.view(np.uint32)
        half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        rounded = ((bits + half) & np.uint32(0xFFFF0000)).view(np.float32)
    # Half of the last place must not carry a NaN's payload over into the sign.
    return np.where(np.isnan(single), single, rounded)


def _agree(left: Array, right: Array) -> bool:
    """Tell whether two arrays hold the same numbers, with the signs of zeros; a NaN is like any other."""
    bits = f"u{left.itemsize}"
    if left.dtype == right.dtype and np.array_equal(left.view(bits), right.view(bits)):
        return True
    same = (left == right) & (np.signbit(left) == np.signbit(right))
    return bool((same | (np.isnan(left) & np.isnan(right))).all())
