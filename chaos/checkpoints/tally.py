"""The pairs of one component, counted, with those that differ."""

from __future__ import annotations

from heapq import nsmallest

from chaos.checkpoints.elements import ElementDifference
from chaos.checkpoints.leaves import natural
from chaos.checkpoints.pairs import Pair
from chaos.model import ComponentDifference, DifferenceKind, LeafDifference


class Tally:
    """What was found of one component so far."""

    def __init__(self, name: str) -> None:
        """Begin with nothing."""
        self.name = name
        self.tensors = 0
        self.values = 0
        self.elements = 0
        self.differing: list[Pair] = []

    def add(self, pair: Pair) -> None:
        """Count a pair."""
        is_on_both = pair.kind not in {DifferenceKind.ONLY_A, DifferenceKind.ONLY_B}
        self.tensors += is_on_both and pair.is_tensor
        self.values += is_on_both and not pair.is_tensor
        self.elements += pair.elements
        if pair.kind is not None:
            self.differing.append(pair)

    @property
    def is_equal(self) -> bool:
        """Tell whether nothing differs."""
        return not self.differing

    def of_kind(self, kind: DifferenceKind) -> list[Pair]:
        """Return the pairs that differ in one way."""
        return [pair for pair in self.differing if pair.kind is kind]

    @property
    def tensors_differing(self) -> list[Pair]:
        """Return the tensors on both sides that differ, dtype and shape included."""
        return [*self.of_kind(DifferenceKind.ELEMENTS), *self.of_kind(DifferenceKind.FORM)]

    def component(self, limit: int) -> ComponentDifference:
        """Return the figures, with the first `limit` differing leaves."""
        elements = ElementDifference()
        for pair in self.differing:
            if pair.difference is not None:
                elements.add(pair.difference)
        first = nsmallest(limit, self.differing, key=lambda pair: natural(pair.name))
        return ComponentDifference(
            name=self.name,
            is_equal=self.is_equal,
            tensors=self.tensors,
            tensors_differing=len(self.tensors_differing),
            elements=self.elements,
            elements_differing=elements.differing,
            largest_absolute=elements.largest_absolute,
            largest_ulp=elements.largest_ulp,
            values=self.values,
            values_differing=len(self.of_kind(DifferenceKind.VALUE)),
            form_changed=len(self.of_kind(DifferenceKind.FORM)),
            only_a=len(self.of_kind(DifferenceKind.ONLY_A)),
            only_b=len(self.of_kind(DifferenceKind.ONLY_B)),
            shown=tuple(_leaf(pair) for pair in first),
        )


def _leaf(pair: Pair) -> LeafDifference:
    """Return a differing pair as a record."""
    found = pair.difference or ElementDifference()
    return LeafDifference(
        name=pair.name,
        kind=pair.kind or DifferenceKind.VALUE,
        a=pair.left,
        b=pair.right,
        elements=pair.elements,
        elements_differing=found.differing,
        largest_absolute=found.largest_absolute,
        largest_ulp=found.largest_ulp,
    )
