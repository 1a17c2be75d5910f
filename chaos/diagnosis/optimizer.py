"""How an optimizer's state differs: missing, in part, rounded, of another step; and its step counter by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.diagnosis.finding import away, lost
from chaos.diagnosis.seam import Pair, Seam
from chaos.diagnosis.tensors import Sorted, first_tensors, joined, most_alike, some, sort_tensors
from chaos.diagnosis.weights import of_step
from chaos.model import Component, LostState, Manner
from chaos.model.steps import STATE_PREFIX, WEIGHTS

_COUNTER = "state.step"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """The keys of the state that differ, the counter apart: those that the life has not at all, and the others sorted.

    `num_parameters` is how many parameters have state in the reference, as far as that is known; `all_keys` are those
    of the reference.
    """

    all_keys: tuple[str, ...]
    differing: tuple[str, ...]
    gone: tuple[str, ...]
    sorts: dict[str, Sorted]
    num_parameters: int

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the tensors of one sort, of all keys."""
        return tuple(name for sorts in self.sorts.values() for name in getattr(sorts, kind))

    @property
    def num_wrong(self) -> int:
        """How many tensors are not the reference's."""
        return sum(sorts.total - len(sorts.equal) for sorts in self.sorts.values())

    @property
    def is_complete(self) -> bool:
        """Whether the tensors of all keys that differ and are there at all are known."""
        return len(self.sorts) + len(self.gone) == len(self.differing)


def lost_optimizer(pair: Pair, seam: Seam) -> tuple[LostState, ...]:
    """Say how the optimizer's state differs, and its step counter where that is no part of the same loss."""
    if not any(name.startswith(STATE_PREFIX) for name in pair.differs) or (pair.has_gap and WEIGHTS in pair.differs):
        return ()  # after a gap both follow from what was not seen in there
    keys = _keys(pair, seam)
    state = _lost_state(pair, seam, keys)
    counter = _lost_counter(pair, seam)
    if state is None or (counter is not None and not _is_part_of(state, pair, seam)):
        return tuple(found for found in (state, counter) if found is not None)
    return (state,)


def _keys(pair: Pair, seam: Seam) -> _Keys:
    """Look at the keys that differ."""
    own, other = pair.life.details, pair.reference.details
    reference = [name for name in pair.reference.components if name.startswith(STATE_PREFIX) and name != _COUNTER]
    differing = sorted(name for name in pair.differs if name.startswith(STATE_PREFIX) and name != _COUNTER)
    gone = [name for name in differing if name not in pair.life.components]
    sorts = {
        name: sort_tensors(own[name], other[name], first_tensors(seam.records(pair), name))
        for name in differing
        if name in own and name in other
    }
    counts = [len(tensors) for name, tensors in other.items() if name.startswith(STATE_PREFIX)]
    return _Keys(
        all_keys=tuple(reference),
        differing=tuple(differing),
        gone=tuple(gone),
        sorts=sorts,
        num_parameters=max(counts, default=0),
    )


def _lost_state(pair: Pair, seam: Seam, keys: _Keys) -> LostState | None:
    """Say how the state differs, the counter apart (None: it does not)."""
    if not keys.differing:
        return None
    whole = _of_other_step(pair, seam, keys)
    if whole is not None:
        return whole
    num_rounded = len(keys.names("rounded"))
    if num_rounded and not keys.gone and num_rounded == keys.num_wrong and keys.is_complete:
        return lost(pair, Component.OPTIMIZER, Manner.LOWER_PRECISION, _rounded_in_words(keys))
    if keys.gone or keys.names("lost"):
        manner = Manner.MISSING if _has_nothing_left(keys) else Manner.PARTLY_MISSING
        return lost(pair, Component.OPTIMIZER, manner, _lost_in_words(keys))
    return _in_part_of_other_step(pair, seam, keys) or _different(pair, keys)


def _of_other_step(pair: Pair, seam: Seam, keys: _Keys) -> LostState | None:
    """Find state that is another step's, all of it that differs."""
    positions: set[int] | None = None
    for name in keys.differing:
        at = set(seam.reference.where(pair.stream, name, pair.life.components.get(name)))
        positions = at if positions is None else positions & at
    if not positions:
        return None
    nearest = min(positions, key=lambda position: abs(position - pair.should_be))
    is_fresh = nearest == 0 and set(keys.all_keys) <= set(keys.differing)
    manner = Manner.MISSING if is_fresh else Manner.OTHER_STEP
    verb = "is" if len(keys.differing) == 1 else "are"
    return lost(pair, Component.OPTIMIZER, manner, f"{_plain(keys.differing)} {verb} {of_step(nearest, pair)}")


def _in_part_of_other_step(pair: Pair, seam: Seam, keys: _Keys) -> LostState | None:
    """Find state of which some tensors are another step's."""
    found = []
    for name, sorts in keys.sorts.items():
        position, count = most_alike(pair.life.details[name], sorts.other, seam.records(pair), name)
        if not count or count != sorts.total - len(sorts.equal):
            return None
        where = f"in {count} of {sorts.total} parameters{some(sorts.other)}"
        found.append(f"{_plain((name,))} is {of_step(position, pair)}, {where}")
    if not found or not keys.is_complete:
        return None
    return lost(pair, Component.OPTIMIZER, Manner.OTHER_STEP, "; ".join(found))


def _has_nothing_left(keys: _Keys) -> bool:
    """Tell whether no tensor of any key was restored."""
    if set(keys.all_keys) - set(keys.differing):
        return False
    return keys.is_complete and all(len(sorts.lost) == sorts.total for sorts in keys.sorts.values())


def _lost_in_words(keys: _Keys) -> str:
    """Say what is missing, zero, or as at the start, in how many parameters; and what is rounded beside that."""
    parts: dict[str, list[str]] = {}
    if keys.gone and keys.num_parameters:
        parts[f"missing in {keys.num_parameters} of {keys.num_parameters} parameters"] = list(keys.gone)
    elif keys.gone:
        parts["missing"] = list(keys.gone)
    for name, sorts in keys.sorts.items():
        kinds = {"missing": sorts.missing, "zero": sorts.zero, "as at the start": sorts.initial}
        kinds |= {"rounded": sorts.rounded, "different": sorts.moved + sorts.other}
        for what, tensors in kinds.items():
            if tensors:
                shown = some(tensors) if len(tensors) < sorts.total else ""
                where = f"{what} in {len(tensors)} of {sorts.total} parameters{shown}"
                parts.setdefault(where, []).append(name)
    return "; ".join(f"{_plain(names)} {'is' if len(names) == 1 else 'are'} {what}" for what, names in parts.items())


def _rounded_in_words(keys: _Keys) -> str:
    """Say what was rounded, to which type, in how many parameters."""
    parts: dict[str, list[str]] = {}
    for name, sorts in keys.sorts.items():
        for precision, tensors in (("float16", sorts.float16), ("bfloat16", sorts.bfloat16)):
            if tensors:
                shown = some(tensors) if len(tensors) < sorts.total else ""
                where = f"rounded to {precision} in {len(tensors)} of {sorts.total} parameters{shown}"
                parts.setdefault(where, []).append(name)
    return "; ".join(f"{_plain(names)} {'is' if len(names) == 1 else 'are'} {what}" for what, names in parts.items())


def _different(pair: Pair, keys: _Keys) -> LostState:
    """Say what differs, of state that is like no other."""
    if set(keys.differing) - set(pair.reference.components):
        extra = [name for name in keys.differing if name not in pair.reference.components]
        detail = f"{_plain(extra)} is there, which the reference has not"
        return lost(pair, Component.OPTIMIZER, Manner.DIFFERENT, detail)
    moved = keys.names("moved")
    if moved and len(moved) == keys.num_wrong:
        whose = f"{len(moved)} tensors are those of another name{some(moved)}"
        detail = f"{_plain(keys.differing)} belong to other parameters: {whose}"
        return lost(pair, Component.OPTIMIZER, Manner.DIFFERENT, detail)
    detail = "; ".join(_count_in_words(name, sorts) for name, sorts in keys.sorts.items())
    detail = detail or f"{_plain(keys.differing)} {'differs' if len(keys.differing) == 1 else 'differ'}"
    return lost(pair, Component.OPTIMIZER, Manner.DIFFERENT, detail)


def _count_in_words(name: str, sorts: Sorted) -> str:
    """Say in how many parameters a key differs."""
    wrong = sorts.total - len(sorts.equal)
    shown = some(sorts.rounded + sorts.moved + sorts.other) if wrong < sorts.total else ""
    return f"{_plain((name,))} differs in {wrong} of {sorts.total} parameters{shown}"


def _lost_counter(pair: Pair, seam: Seam) -> LostState | None:
    """Say how the step counter differs (None: it does not)."""
    if _COUNTER not in pair.differs:
        return None
    own, other = pair.life.values.get(_COUNTER, ()), pair.reference.values.get(_COUNTER, ())
    if _COUNTER not in pair.life.components:
        detail = f"there is no step counter; the reference has {_numbers(other)}"
        return lost(pair, Component.STEP_COUNTER, Manner.MISSING, detail)
    if own == other or not own or not other:
        return lost(pair, Component.STEP_COUNTER, Manner.DIFFERENT, _counter_of_other_kind(pair, seam))
    where = f"{_numbers(own)} in all parameters" if own[0] == own[-1] else f"from {_numbers(own)}, by parameter"
    detail = f"the step counter is {where}; the reference has {_numbers(other)}"
    if own[0] == own[-1] and other[0] == other[-1]:
        detail += f", so it is {away(round(own[0] - other[0]))}"
    return lost(pair, Component.STEP_COUNTER, Manner.OTHER_STEP, detail)


def _counter_of_other_kind(pair: Pair, seam: Seam) -> str:
    """Say in what counters with the same values differ."""
    own, other = pair.life.details.get(_COUNTER, {}), pair.reference.details.get(_COUNTER, {})
    sorts = sort_tensors(own, other, first_tensors(seam.records(pair), _COUNTER))
    types = sorted(
        {
            f"{own[name].dtype} and not {other[name].dtype}"
            for name in own
            if name in other and own[name].dtype != other[name].dtype
        }
    )
    if types:
        return f"the step counter is kept as {joined(types)}"
    if sorts.missing:
        return f"the step counter is missing in {len(sorts.missing)} of {sorts.total} parameters{some(sorts.missing)}"
    return "the step counter is not kept in the same way, or not the same in all parameters"


def _is_part_of(state: LostState, pair: Pair, seam: Seam) -> bool:
    """Tell whether a step counter that differs belongs to the same loss as the rest of the state."""
    own, other = pair.life.values.get(_COUNTER, ()), pair.reference.values.get(_COUNTER, ())
    if own == other or not own:
        return True
    if state.manner in (Manner.MISSING, Manner.PARTLY_MISSING):
        return min(own) <= seam.records(pair)[0].values.get(_COUNTER, (0.0,))[0]
    if state.manner is Manner.OTHER_STEP:
        counter = seam.reference.where(pair.stream, _COUNTER, pair.life.components.get(_COUNTER))
        return any(f"step {position}," in state.detail for position in counter) or "the start" in state.detail
    sorts = sort_tensors(pair.life.details.get(_COUNTER, {}), pair.reference.details.get(_COUNTER, {}), {})
    return state.manner is Manner.LOWER_PRECISION and bool(sorts.rounded)


def _plain(names: Sequence[str]) -> str:
    """Return keys as the optimizer calls them."""
    return joined([name.removeprefix(STATE_PREFIX) for name in names])


def _numbers(values: Sequence[float]) -> str:
    """Return a number, or the smallest and the largest of several."""
    return " to ".join(f"{value:g}" for value in dict.fromkeys(values)) or "none"
