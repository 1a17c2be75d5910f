"""Every crash state once: which points are in question, which one stands for its state, in what order; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chaos.model import FaultKind, FoundState, Phase

_PASSES: Final = 16


def within_saves(found: Sequence[FoundState], saves: str) -> tuple[FoundState, ...]:
    """Return the points in the saves asked for, each with the first one after it.

    `saves` is `first`, `last`, an ordinal, or `all`: everything, what lies outside of saves too. The points of each
    kind of fault are in the order of the run.
    """
    if saves == "all":
        return tuple(found)
    last = max((state.address.save for state in found), default=0)
    wanted = save_asked_for(saves, last)
    chosen = []
    after: dict[FaultKind, int] = {}
    for state in found:
        if state.fault is FaultKind.BIT_FLIP:  # a checkpoint is damaged once its save is over
            chosen += [state] if state.saves == wanted else []
        elif state.address.save == wanted:
            chosen.append(state)
            after[state.fault] = -1
        elif after.get(state.fault) in {-1, state.index}:  # all states of the first point after it
            chosen.append(state)
            after[state.fault] = state.index
        else:
            after.pop(state.fault, None)
    return tuple(chosen)


def save_asked_for(saves: str, last: int) -> int:
    """Return the ordinal of the save that is asked for, of `last` ones; 0 for all."""
    words = {"all": 0, "first": 1, "last": last}
    return words[saves] if saves in words else int(saves)


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
