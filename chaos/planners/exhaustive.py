"""Every crash state once: which points are in question, which one stands for its state, in what order; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chaos.model import FoundState, Phase

_PASSES: Final = 16


def within_saves(found: Sequence[FoundState], saves: str) -> tuple[FoundState, ...]:
    """Return the points in the saves asked for, each with the first one after it.

    `saves` is `first`, `last`, an ordinal, or `all`: everything, what lies outside of saves too.
    """
    if saves == "all":
        return tuple(found)
    last = max((state.address.save for state in found), default=0)
    wanted = {"first": 1, "last": last}.get(saves) or int(saves)
    chosen = []
    is_inside = False
    for state in found:
        if state.address.save == wanted or is_inside:
            chosen.append(state)
        is_inside = state.address.save == wanted
    return tuple(chosen)


def within_first_save(found: Sequence[FoundState]) -> tuple[FoundState, ...]:
    """Return the points of a later life from its start to the end of its first save, with the first one after it.

    From there on it stands where the recorded run stood; what it changes while it recovers is before.
    """
    chosen = []
    for state in found:
        if state.address.save > 1 or (state.saves >= 1 and state.address.save == 0 and state.phase is Phase.SAVE):
            break
        chosen.append(state)
        if state.saves >= 1 and state.address.save == 0:
            break
    return tuple(chosen)


def representatives(found: Sequence[FoundState]) -> tuple[FoundState, ...]:
    """Return one point for each state, the last one, by when most was acknowledged.

    In several passes over the life, prefixes before tears, so that a budget that runs out has covered all parts alike.
    """
    last = {state.digest: state for state in found}
    prefixes = [state for state in last.values() if state.tear_offset is None]
    torn = [state for state in last.values() if state.tear_offset is not None]
    return tuple(state for group in (prefixes, torn) for start in _spread() for state in group[start::_PASSES])


def _spread() -> tuple[int, ...]:
    """Return the starts of the passes, each halving what the ones before it left out."""
    order = [0]
    step = _PASSES
    while step > 1:
        order += [start + step // 2 for start in order]
        step //= 2
    return tuple(order)
