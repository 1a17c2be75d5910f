"""Compares two checkpoints by bits, not by values: 0.0 is not -0.0, and a NaN equals itself."""

from __future__ import annotations

from pathlib import Path

from chaos.checkpoints.elements import ElementDifference
from chaos.checkpoints.examine import NOTHING
from chaos.checkpoints.pairs import Pair, pairs
from chaos.checkpoints.sides import Side
from chaos.model import DifferenceKind, TensorDifference


def compare(left: Path, right: Path, without: frozenset[str] = NOTHING) -> TensorDifference:
    """Return how two whole checkpoints differ, apart from the leaves named in `without`.

    `tensors` counts the names that are tensors on both sides, `tensors_differing` those with other bits, dtype or shape
    (these are in `shape_or_dtype` too, and their elements are not counted). `leaves_differing` are the other values
    that differ. `first_name` is the first name in sorted order that differs in any way. Raises UsageError when one side
    is not whole.
    """
    sides = Side(left, follows_links=False), Side(right, follows_links=False)
    found = list(pairs(*sides, lambda name: name not in without))
    both = [pair for pair in found if pair.are_tensors]
    elements = ElementDifference()
    for pair in both:
        if pair.kind is DifferenceKind.ELEMENTS and pair.difference is not None:
            elements.add(pair.difference)
    return TensorDifference(
        tensors=len(both),
        tensors_differing=sum(pair.kind is not None for pair in both),
        elements=sum(pair.elements for pair in both),
        elements_differing=elements.differing,
        largest_absolute=elements.largest_absolute,
        largest_ulp=elements.largest_ulp,
        first_name=min((pair.name for pair in found if pair.kind is not None), default=""),
        leaves_differing=_names(found, DifferenceKind.VALUE),
        only_left=_names(found, DifferenceKind.ONLY_A),
        only_right=_names(found, DifferenceKind.ONLY_B),
        shape_or_dtype=_names(found, DifferenceKind.FORM),
    )


def _names(found: list[Pair], kind: DifferenceKind) -> tuple[str, ...]:
    """Return the sorted names that differ in one way."""
    return tuple(sorted(pair.name for pair in found if pair.kind is kind))
