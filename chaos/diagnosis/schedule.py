"""How the values of an optimizer's groups differ: the learning rate's schedule is ahead or behind, or a setting is."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Final

from chaos.diagnosis.finding import away, lost
from chaos.diagnosis.seam import Pair, Seam
from chaos.diagnosis.tensors import joined
from chaos.model import Component, LostState, Manner, StepRecord
from chaos.model.steps import GROUP_PREFIX

_LR = "group.lr"
_SET_BY_SCHEDULERS: Final = frozenset(
    f"{GROUP_PREFIX}{name}"
    for name in ("lr", "initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr")
)
_LOOKED_AT = 64  # steps over which a schedule is followed
_ULPS = 1e-9  # relative: the same rate, worked out in another way
_MOST_NUMBERS = 3


def is_scheduled(name: str) -> bool:
    """Tell whether a component is a value that schedulers set."""
    return name in _SET_BY_SCHEDULERS


def lost_settings(pair: Pair, seam: Seam) -> tuple[LostState, ...]:
    """Say how the groups' values differ: those that the schedule moves as one loss, the others as another."""
    names = sorted(name for name in pair.differs if name.startswith(GROUP_PREFIX))
    position = _matched(pair, seam, _LR) if _LR in names else None
    scheduled = [name for name in names if _is_moved_by_schedule(name, pair, seam, position)]
    settings = [name for name in names if name not in scheduled]
    found = []
    if scheduled:
        found.append(_lost_schedule(pair, seam, scheduled, position))
    if settings:
        detail = "; ".join(_both(pair, name) for name in settings)
        found.append(lost(pair, Component.SETTINGS, Manner.DIFFERENT, detail))
    return tuple(found)


def is_initial_rate(loss: LostState, pair: Pair, seam: Seam) -> bool:
    """Tell whether a loss is of a learning rate that is as at the start, but does not go on as it did from there."""
    if loss.component is not Component.SCHEDULER or loss.manner is not Manner.REBUILT:
        return False
    return _run(seam.following(pair), seam.records(pair), 0, _LR) < _length(pair, seam, 0)


def _is_moved_by_schedule(name: str, pair: Pair, seam: Seam, position: int | None) -> bool:
    """Tell whether a value that differs was moved along with the learning rate (momentum in a one-cycle schedule)."""
    if name in _SET_BY_SCHEDULERS:
        return True
    if _LR not in pair.differs:
        return False  # a setting that is changed by itself
    if len(seam.reference.found[pair.stream].get(name, {})) <= 1:
        return False  # the same at every step of the reference
    at = seam.reference.where(pair.stream, name, pair.life.components.get(name))
    return position in at if position is not None else True


def _lost_schedule(pair: Pair, seam: Seam, names: Sequence[str], position: int | None) -> LostState:
    """Say by how many steps the schedule is ahead or behind, or that it was built anew."""
    shown = _LR if _LR in names else names[0]
    if position is None and shown != _LR:
        position = _matched(pair, seam, shown)
    also = [name.removeprefix(GROUP_PREFIX) for name in names if name != shown]
    more = f"; so {'is' if len(also) == 1 else 'are'} {joined(also)}" if also else ""
    if position is None:
        return lost(pair, Component.SCHEDULER, Manner.DIFFERENT, f"{_both(pair, shown)}; no step of it has this{more}")
    apart = position - pair.should_be
    manner = Manner.REBUILT if position == 0 else Manner.AHEAD if apart > 0 else Manner.BEHIND
    own = f"{shown.removeprefix(GROUP_PREFIX)} is {_numbers(pair.life.values.get(shown, ()))}"
    detail = f"{own}, the reference's of step {position + 1}, {away(apart)}"
    if _run(seam.following(pair), seam.records(pair), position, shown) < _length(pair, seam, position):
        detail += ", and does not go on from there as the reference's does"
    return lost(pair, Component.SCHEDULER, manner, detail + more)


def _matched(pair: Pair, seam: Seam, name: str) -> int | None:
    """Return the position in the reference whose value the life has, and best goes on from (None: no step has it).

    A value that is the same but for rounding counts only where it goes on from there all the way.
    """
    records, following = seam.records(pair), seam.following(pair)
    exact = seam.reference.where(pair.stream, name, pair.life.components.get(name))
    lengths = {at: _run(following, records, at, name) for at in exact or _close(pair, records, name)}
    whole = [at for at, length in lengths.items() if length >= _length(pair, seam, at)]
    longest = [at for at in exact if lengths[at] == max(lengths.values())]
    best = whole or longest
    return 0 if 0 in best else min(best, key=lambda at: abs(at - pair.should_be), default=None)


def _close(pair: Pair, records: Sequence[StepRecord], name: str) -> tuple[int, ...]:
    """Return the positions whose value is the life's but for rounding; not that of the step it should be."""
    own = pair.life.values.get(name, ())
    return tuple(
        at
        for at, record in enumerate(records)
        if own and at != pair.should_be and _is_close(own, record.values.get(name, ()))
    )


def _is_close(left: Sequence[float], right: Sequence[float]) -> bool:
    """Tell whether numbers are the same but for rounding."""
    return len(left) == len(right) and all(
        isclose(one, other, rel_tol=_ULPS) for one, other in zip(left, right, strict=True)
    )


def _run(following: Sequence[StepRecord], records: Sequence[StepRecord], position: int, name: str) -> int:
    """Return for how many steps the life's value goes on as the reference's from a position."""
    length = 0
    for own, other in zip(following[:_LOOKED_AT], records[position:], strict=False):
        is_unknown = name not in own.components or name not in other.components
        is_same = is_unknown or own.components.get(name) == other.components.get(name)
        if not is_same and not _is_close(own.values.get(name, ()), other.values.get(name, (float("nan"),))):
            break
        length += 1
    return length


def _length(pair: Pair, seam: Seam, position: int) -> int:
    """Return for how many steps a value can be followed from a position."""
    return min(_LOOKED_AT, len(seam.following(pair)), len(seam.records(pair)) - position)


def _both(pair: Pair, name: str) -> str:
    """Say what a value is, and what the reference has."""
    plain = name.removeprefix(GROUP_PREFIX)
    if name not in pair.life.components:
        return f"{plain} is missing"
    if name not in pair.reference.components:
        return f"{plain} is there, which the reference has not"
    own, other = pair.life.values.get(name, ()), pair.reference.values.get(name, ())
    if not own or not other:
        return f"{plain} is not the reference's"
    exactly = _numbers(own) == _numbers(other)
    digits = ".17g" if exactly else "g"
    return f"{plain} is {_numbers(own, digits)}, the reference has {_numbers(other, digits)}"


def _numbers(values: Sequence[float], digits: str = "g") -> str:
    """Return the numbers of all groups, each once."""
    distinct = [f"{value:{digits}}" for value in dict.fromkeys(values)]
    return ", ".join(distinct[:_MOST_NUMBERS]) + (", …" if len(distinct) > _MOST_NUMBERS else "")
