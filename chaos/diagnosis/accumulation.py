"""A step of which a life did only the last batches: what became of the gradients of those before."""

from __future__ import annotations

from chaos.diagnosis.finding import lost, plural
from chaos.diagnosis.seam import Pair
from chaos.diagnosis.tensors import some, sort_tensors
from chaos.model import Component, LostState, Manner
from chaos.model.steps import CARRIED


def lost_accumulation(pair: Pair, begun: int) -> LostState:
    """Say how the gradients of a step's first `begun` batches are lost, in a life that did only those after them.

    What was there before the life's first batch tells: nothing at all, or something that is not the reference's.
    """
    own, other = len(pair.life.batches), len(pair.reference.batches)
    used = f"the step used {plural(own, 'batch')}, the reference {other}"
    if CARRIED not in pair.life.components:
        return lost(pair, Component.ACCUMULATION, Manner.MISSING, f"{used}: the first {begun} are missing")
    sorts = sort_tensors(pair.life.details.get(CARRIED, {}), pair.reference.details.get(CARRIED, {}), {})
    if sorts.rounded:
        kinds = {"bfloat16": sorts.bfloat16, "float16": sorts.float16}
        types = " and ".join(kind for kind, names in kinds.items() if names)
        what = f"rounded to {types} in {len(sorts.rounded)} of {sorts.total} tensors{some(sorts.rounded)}"
        return lost(
            pair, Component.ACCUMULATION, Manner.LOWER_PRECISION, f"{used}; those of the first {begun} are {what}"
        )
    gone = sorts.missing + sorts.zero
    if gone:
        manner = Manner.MISSING if len(gone) == sorts.total else Manner.PARTLY_MISSING
        what = f"gone in {len(gone)} of {sorts.total} tensors{some(gone)}"
        return lost(pair, Component.ACCUMULATION, manner, f"{used}; those of the first {begun} are {what}")
    return lost(pair, Component.ACCUMULATION, Manner.DIFFERENT, f"{used}; those of the first {begun} are others")
