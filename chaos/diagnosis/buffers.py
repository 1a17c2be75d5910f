"""How buffers differ: a forward pass has changed them already, so other data or weights change them too.

What counts forward passes (`num_batches_tracked`) tells a loss even then.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.diagnosis.finding import away, lost
from chaos.diagnosis.seam import Pair, Seam
from chaos.diagnosis.tensors import Sorted, Tensors, first_tensors, some, sort_tensors
from chaos.model import Component, LostState, Manner
from chaos.model.steps import BUFFERS


@dataclass(frozen=True, slots=True, kw_only=True)
class LostBuffers:
    """How buffers differ; `is_certain` where no other difference can be the cause."""

    loss: LostState
    is_certain: bool


def lost_buffers(pair: Pair, seam: Seam) -> LostBuffers | None:
    """Say how buffers differ (None: they do not)."""
    if BUFFERS not in pair.differs:
        return None
    counted = _by_counters(pair, seam)
    if counted is not None:
        is_same_number = len(pair.life.batches) == len(pair.reference.batches)
        return LostBuffers(loss=counted, is_certain=is_same_number)
    return LostBuffers(loss=_by_tensors(pair, seam), is_certain=False)


def _by_counters(pair: Pair, seam: Seam) -> LostState | None:
    """Tell by what counts forward passes (None: there is nothing, or it is right)."""
    own, other = _counters(pair.life.details.get(BUFFERS, {})), _counters(pair.reference.details.get(BUFFERS, {}))
    wrong = sorted(name for name in own if name in other and own[name] != other[name])
    if not wrong:
        return None
    first = _counters(first_tensors(seam.records(pair), BUFFERS))
    counts = f"{wrong[0]} is {own[wrong[0]]:g}; the reference has {other[wrong[0]]:g}"
    if all(own[name] == first.get(name) for name in wrong):
        manner = Manner.MISSING if len(wrong) == len(own) else Manner.PARTLY_MISSING
        return lost(pair, Component.BUFFERS, manner, f"the buffers began anew: {counts}{_of(len(wrong), len(own))}")
    detail = f"the buffers are {away(round(own[wrong[0]] - other[wrong[0]]))}: {counts}{_of(len(wrong), len(own))}"
    return lost(pair, Component.BUFFERS, Manner.OTHER_STEP, detail)


def _of(wrong: int, total: int) -> str:
    """Say in how many layers that is."""
    return f" (in {wrong} of {total} layers)"


def _counters(tensors: Tensors) -> dict[str, float]:
    """Return the values of buffers that are one whole number."""
    return {name: facts.value for name, facts in tensors.items() if facts.value is not None and "int" in facts.dtype}


def _by_tensors(pair: Pair, seam: Seam) -> LostState:
    """Tell by digests of all buffers, and of each where both have details."""
    if BUFFERS not in pair.life.components:
        return lost(pair, Component.BUFFERS, Manner.MISSING, "there are no buffers; the reference has some")
    positions = seam.reference.where(pair.stream, BUFFERS, pair.life.components.get(BUFFERS))
    if 0 in positions:
        return lost(pair, Component.BUFFERS, Manner.MISSING, "the buffers are as at the reference's first step")
    if positions:
        nearest = min(positions, key=lambda position: abs(position - pair.should_be))
        detail = f"the buffers are the reference's of step {nearest + 1}, {away(nearest - pair.should_be)}"
        return lost(pair, Component.BUFFERS, Manner.OTHER_STEP, detail)
    own, other = pair.life.details.get(BUFFERS), pair.reference.details.get(BUFFERS)
    if not own or not other:
        return lost(pair, Component.BUFFERS, Manner.DIFFERENT, "the buffers are those of no step of the reference")
    return _sorted_loss(pair, sort_tensors(own, other, first_tensors(seam.records(pair), BUFFERS)))


def _sorted_loss(pair: Pair, sorts: Sorted) -> LostState:
    """Say how buffers differ that are like no other step's."""
    wrong = sorts.total - len(sorts.equal)
    where = f"in {wrong} of {sorts.total} buffers"
    if len(sorts.lost) == wrong:
        manner = Manner.PARTLY_MISSING if sorts.equal else Manner.MISSING
        detail = f"the buffers are missing, zero or as at the start {where}{some(sorts.lost)}"
        return lost(pair, Component.BUFFERS, manner, detail)
    if len(sorts.rounded) == wrong:
        precision = "bfloat16" if sorts.bfloat16 else "float16"
        detail = f"the buffers are rounded to {precision} {where}{some(sorts.rounded)}"
        return lost(pair, Component.BUFFERS, Manner.LOWER_PRECISION, detail)
    names = sorts.lost + sorts.rounded + sorts.moved + sorts.other
    return lost(pair, Component.BUFFERS, Manner.DIFFERENT, f"the buffers differ {where}{some(names)}")
