"""How weights differ: of another step, rounded, in part as at the start, an average, or unlike anything."""

from __future__ import annotations

from chaos.diagnosis.averages import fitted_average, lies_between
from chaos.diagnosis.finding import away, lost
from chaos.diagnosis.seam import Pair, Seam
from chaos.diagnosis.sketches import Precision, distance, filled, rounding_between
from chaos.diagnosis.tensors import Sorted, first_tensors, most_alike, some, sort_tensors
from chaos.model import Component, LostState, Manner
from chaos.model.steps import WEIGHTS


def lost_weights(pair: Pair, seam: Seam) -> LostState | None:
    """Say how the weights differ (None: they do not)."""
    if WEIGHTS not in pair.differs:
        return None
    if pair.has_gap:
        detail = "the weights differ, and the steps before were not digested: what they follow from was not seen"
        return lost(pair, Component.WEIGHTS, Manner.DIFFERENT, detail)
    ways = (_of_other_step, _rounded, _in_part, _averaged)
    found = next((found for way in ways if (found := way(pair, seam)) is not None), None)
    return found or lost(pair, Component.WEIGHTS, Manner.DIFFERENT, _unlike_anything(pair, seam))


def _of_other_step(pair: Pair, seam: Seam) -> LostState | None:
    """Find weights that are those of another step, all of them."""
    positions = seam.reference.where(pair.stream, WEIGHTS, pair.life.components.get(WEIGHTS))
    if not positions:
        return None
    nearest = min(positions, key=lambda position: abs(position - pair.should_be))
    return lost(pair, Component.WEIGHTS, Manner.OTHER_STEP, f"the weights are {of_step(nearest, pair)}")


def of_step(position: int, pair: Pair) -> str:
    """Say whose step's state the one at a position is; it had done as many updates."""
    if position == 0:
        return "as at the start"
    return f"the reference's after step {position}, {away(position - pair.should_be)}"


def _rounded(pair: Pair, seam: Seam) -> LostState | None:
    """Find weights that were rounded, of this step or another: by tensors where both have them, else by some values."""
    records = seam.records(pair)
    for position in sorted(range(len(records)), key=lambda position: abs(position - pair.should_be)):
        own, other = pair.life.details.get(WEIGHTS), records[position].details.get(WEIGHTS)
        if own and other:
            sorts = sort_tensors(own, other, {})
            precision: Precision | None = "bfloat16" if sorts.bfloat16 else "float16"
            is_found = sorts.rounded and len(sorts.rounded) + len(sorts.equal) == sorts.total
            where = f" in {len(sorts.rounded)} of {sorts.total} tensors{some(sorts.rounded)}"
        else:
            precision = rounding_between(pair.life.sketch, records[position].sketch)
            is_found, where = precision is not None, f" in all {len(pair.life.sketch)} values that were looked at"
        if is_found:
            whose = "the reference's" if position == pair.should_be else of_step(position, pair)
            detail = f"the weights are {whose}, rounded to {precision},{where}"
            return lost(pair, Component.WEIGHTS, Manner.LOWER_PRECISION, detail)
    return None


def _in_part(pair: Pair, seam: Seam) -> LostState | None:
    """Find weights of which some tensors are right, and the others not restored, or of another step."""
    own, other = pair.life.details.get(WEIGHTS), pair.reference.details.get(WEIGHTS)
    if not own or not other:
        return None
    sorts = sort_tensors(own, other, first_tensors(seam.records(pair), WEIGHTS))
    wrong = sorts.total - len(sorts.equal)
    if len(sorts.lost) == wrong:
        manner = Manner.PARTLY_MISSING if sorts.equal else Manner.MISSING
        return lost(pair, Component.WEIGHTS, manner, f"the weights {_not_restored(sorts)}")
    if sorts.other and len(sorts.other) == wrong:
        position, count = most_alike(own, sorts.other, seam.records(pair), WEIGHTS)
        if count == wrong:
            where = f"in {wrong} of {sorts.total} tensors{some(sorts.other)}"
            return lost(
                pair, Component.WEIGHTS, Manner.OTHER_STEP, f"the weights are {of_step(position, pair)}, {where}"
            )
    return None


def _not_restored(sorts: Sorted) -> str:
    """Say which tensors were not restored."""
    parts = [
        f"are {what} in {len(names)} of {sorts.total} tensors{some(names)}"
        for what, names in (("missing", sorts.missing), ("zero", sorts.zero), ("as at the start", sorts.initial))
        if names
    ]
    return " and ".join(parts)


def _averaged(pair: Pair, seam: Seam) -> LostState | None:
    """Find weights that are an average of those up to this step."""
    steps = filled([record.sketch for record in seam.records(pair)[: pair.step]])
    words = fitted_average(pair.life.sketch, steps)
    if words is None:
        return None
    detail = f"the weights are {words}, by {len(pair.life.sketch)} values"
    return lost(pair, Component.WEIGHTS, Manner.AVERAGED, detail)


def _unlike_anything(pair: Pair, seam: Seam) -> str:
    """Say how far weights are from those that they should be."""
    parts = ["the weights are those of no step of the reference"]
    own, other = pair.life.details.get(WEIGHTS), pair.reference.details.get(WEIGHTS)
    if own and other:
        sorts = sort_tensors(own, other, {})
        wrong = [name for name in (*other, *sorts.other) if name not in sorts.equal]
        parts.append(f"{len(dict.fromkeys(wrong))} of {sorts.total} tensors differ{some(tuple(dict.fromkeys(wrong)))}")
        retyped = {
            f"{own[name].dtype} and not {other[name].dtype}"
            for name in sorts.equal
            if own[name].dtype != other[name].dtype
        }
        parts += [f"some are {words}" for words in sorted(retyped)]
    far = distance(pair.life.sketch, pair.reference.sketch)
    if far:
        parts.append(f"by {far:.3g} in the values that were looked at")
    steps = filled([record.sketch for record in seam.records(pair)[: pair.step]])
    if lies_between(pair.life.sketch, steps):
        parts.append("all of which lie between those of steps before: perhaps an average")
    return ", ".join(parts)
