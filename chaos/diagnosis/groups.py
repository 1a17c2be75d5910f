"""An optimizer that has fewer parameters than the reference's: a group that was added later is not there again."""

from __future__ import annotations

from chaos.diagnosis.finding import lost
from chaos.diagnosis.seam import Pair
from chaos.diagnosis.tensors import some
from chaos.model import Component, LostState, Manner
from chaos.model.steps import WEIGHTS


def lost_parameters(pair: Pair) -> LostState | None:
    """Say which parameters the optimizer lacks, if all others are the reference's (None: it lacks none)."""
    own, other = pair.life.details.get(WEIGHTS, {}), pair.reference.details.get(WEIGHTS, {})
    gone = tuple(name for name in other if name not in own)
    is_rest_equal = all(name in other and facts.digest == other[name].digest for name, facts in own.items())
    if not own or not gone or not is_rest_equal:
        return None
    detail = f"the optimizer has not got {len(gone)} of {len(other)} parameters{some(gone)}: a group of them is missing"
    return lost(pair, Component.OPTIMIZER, Manner.PARTLY_MISSING, detail)
