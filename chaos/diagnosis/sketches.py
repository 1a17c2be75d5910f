"""What a few weights' values at fixed places tell: which step's are nearest, and whether they were rounded."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

LEAST_VALUES: Final = 4

Precision: TypeAlias = Literal["float16", "bfloat16"]
_FORMATS: Final[Mapping[Precision, str]] = MappingProxyType({"float16": "<e", "bfloat16": "<f"})
_DROPPED_BITS = 16  # of a float32, where it becomes a bfloat16


def distance(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return the largest absolute difference (None: they are not of the same places)."""
    if not left or len(left) != len(right):
        return None
    return max(abs(one - other) for one, other in zip(left, right, strict=True))


def filled(sketches: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    """Return sketches in which those that were left out, between two that were not, lie on a line between them."""
    found = [tuple(sketch) for sketch in sketches]
    seen = [at for at, sketch in enumerate(found) if sketch]
    for before, after in pairwise(seen):
        for at in range(before + 1, after):
            share = (at - before) / (after - before)
            pairs = zip(found[before], found[after], strict=False)
            found[at] = tuple(low + share * (high - low) for low, high in pairs)
    return found


def nearest(sketch: Sequence[float], others: Sequence[Sequence[float]]) -> int | None:
    """Return the position of the sketch that is nearest to one (None: there is nothing to compare)."""
    distances = {position: distance(sketch, other) for position, other in enumerate(others)}
    known = {position: far for position, far in distances.items() if far is not None}
    return min(known, key=lambda position: known[position], default=None)


def rounding_between(life: Sequence[float], reference: Sequence[float]) -> Precision | None:
    """Return the type that makes the life's values out of the reference's (None: neither does, or both are equal)."""
    if len(life) < LEAST_VALUES or len(life) != len(reference) or tuple(life) == tuple(reference):
        return None
    for precision in _FORMATS:
        if all(one == rounded(other, precision) for one, other in zip(life, reference, strict=True)):
            return precision
    return None


def rounded(value: float, precision: Precision) -> float:
    """Return a number as it comes back from a type of 16 bits: to the nearest, to even between two."""
    try:
        if precision == "float16":
            return float(struct.unpack("<e", struct.pack("<e", value))[0])
        bits = int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:  # no finite number of that type is near
        return float("inf") if value > 0 else float("-inf")
    half = (1 << (_DROPPED_BITS - 1)) - 1 + ((bits >> _DROPPED_BITS) & 1)
    kept = ((bits + half) >> _DROPPED_BITS) << _DROPPED_BITS
    return float(struct.unpack("<f", (kept & 0xFFFFFFFF).to_bytes(4, "little"))[0])
