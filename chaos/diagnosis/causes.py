"""What is a loss of its own, and what only follows from one.

At the first record that differs, weights, optimizer state and settings are as they came from the checkpoint: nothing
there follows from anything else. Gradients follow from weights, buffers, data and generators; buffers from weights,
data and dropout's generator, since the forward pass has been; data from the generators that shuffle; and generators
from the number of draws, which another number of batches changes, or an epoch that begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from chaos.diagnosis.batches import Data, lost_data
from chaos.diagnosis.buffers import lost_buffers
from chaos.diagnosis.finding import lost
from chaos.diagnosis.generators import Generator, lost_generators
from chaos.diagnosis.groups import lost_parameters
from chaos.diagnosis.optimizer import lost_optimizer
from chaos.diagnosis.schedule import is_initial_rate, lost_settings
from chaos.diagnosis.seam import Pair, Seam, compared
from chaos.diagnosis.weights import lost_weights
from chaos.model import Component, LostState, Manner
from chaos.model.steps import BUFFERS, DATA, GRADIENTS, RNG_CUDA, RNG_LOADER, RNG_NUMPY, RNG_RANDOM, RNG_TORCH, WEIGHTS

_ALL_GENERATORS = (RNG_TORCH, RNG_CUDA, RNG_NUMPY, RNG_RANDOM, RNG_LOADER)
_DROPOUT = (RNG_TORCH, RNG_CUDA)
_FEEDS_GRADIENTS = (WEIGHTS, BUFFERS, DATA, *_ALL_GENERATORS)
_FEEDS_BUFFERS = (WEIGHTS, DATA, *_DROPOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """What a rank's first differing record says of what all of its optimizers share: data and generators."""

    pair: Pair
    data: Data
    generators: tuple[Generator, ...]
    has_other_weights: bool


def unexplained(seam: Seam) -> tuple[LostState, ...]:
    """Return the losses that no other difference explains: of each optimizer, and of each rank."""
    found: list[LostState] = []
    for pair in seam.pairs:
        found += _of_optimizer(pair, seam)
    for pair in seam.mains:
        found += _shared(pair, seam)
    for pair in seam.pairs:
        weights = lost_weights(pair, seam) if lost_parameters(pair) is None else None
        if weights is not None and not (pair.has_gap and found):  # after a gap they may follow from anything
            found.append(weights)
    return tuple(found) or _whatever_differs(seam)


def _of_optimizer(pair: Pair, seam: Seam) -> list[LostState]:
    """Return an optimizer's losses of its own.

    The learning rate is kept with its state: where all of that is missing, the rate is as at the start, until a
    scheduler that was restored goes on. One that is rebuilt goes on as it did from the start: that is a second loss.
    """
    parameters = lost_parameters(pair)
    if parameters is not None:
        return [parameters]  # state and settings of those that are there have other digests by that alone
    state, settings = lost_optimizer(pair, seam), lost_settings(pair, seam)
    if not any(one.component is Component.OPTIMIZER and one.manner is Manner.MISSING for one in state):
        return [*state, *(settings or _late_settings(pair, seam))]
    with_state = [one for one in settings if is_initial_rate(one, pair, seam)]
    more = "".join(f"; with it {one.detail}, until the schedule sets it" for one in with_state)
    fresh = [replace(one, detail=one.detail + more) if one.manner is Manner.MISSING else one for one in state]
    return [*fresh, *(one for one in settings if one not in with_state)]


def _late_settings(pair: Pair, seam: Seam) -> tuple[LostState, ...]:
    """Return what a life's second step shows of the schedule: it moves after the first one, whatever else was lost."""
    after = seam.next(pair) if pair.at == 0 else None
    return () if after is None else lost_settings(after, seam)


def _shared(pair: Pair, seam: Seam) -> list[LostState]:
    """Return a rank's losses of what its optimizers share."""
    process = _Process(
        pair=pair,
        data=lost_data(pair, seam),
        generators=lost_generators(pair, seam),
        has_other_weights=seam.any_other(pair.stream[0], WEIGHTS),
    )
    found = [] if process.data.accumulation is None else [process.data.accumulation]
    has_data = process.data.loss is not None and not _data_follow(process)
    if has_data and process.data.loss is not None:
        found.append(process.data.loss)
    lost_ones = [one for one in process.generators if not _generator_follows(one, process, has_data=has_data)]
    found += [one.loss if has_data else _with_data(one, process) for one in lost_ones]
    buffers = lost_buffers(pair, seam)
    is_certain = buffers is not None and buffers.is_certain and process.data.accumulation is None
    is_data_seen = DATA in compared(pair.life, pair.reference)
    may_follow = seam.any_other(None, *_FEEDS_BUFFERS) or (GRADIENTS in pair.differs and not is_data_seen)
    if buffers is not None and (is_certain or not may_follow):
        found.append(buffers.loss)
    if GRADIENTS in pair.differs and not pair.has_gap and not _are_fed_otherwise(seam, found):
        found.append(_lost_gradients(pair, is_data_seen=is_data_seen))
    return found


def _shuffling(process: _Process) -> tuple[Generator, ...]:
    """Return the generators that differ and may have drawn the order of the data.

    A loader with a generator of its own takes nothing from torch's.
    """
    own = RNG_LOADER if RNG_LOADER in process.pair.reference.components else RNG_TORCH
    return tuple(one for one in process.generators if one.name in (own, RNG_NUMPY, RNG_RANDOM))


def _with_data(one: Generator, process: _Process) -> LostState:
    """Say of a lost generator that the data are of the same step: by it, or for a reason of their own."""
    at = process.data.position
    if at is None or at not in one.positions or process.data.is_in_place is not None:
        return one.loss
    more = f"; the data are those of step {at + 1}, too: they are drawn from it, or their place was lost as well"
    return replace(one.loss, detail=one.loss.detail + more)


def _data_follow(process: _Process) -> bool:
    """Tell whether the data differ because something else does.

    With the first batch right, the others are what other modules made of it (features, a generator's images). A lost
    generator gives the same place of an epoch in another order: data from another place have lost that as well. Where
    there are no epochs, data are drawn step by step: then they are of the step that the generator is of.
    """
    data, shuffling = process.data, _shuffling(process)
    if data.keeps_first and (process.generators or process.has_other_weights):
        return True
    if not shuffling:
        return False
    if data.is_in_place is not None:
        return data.is_in_place
    if data.position is not None:
        return any(data.position in one.positions for one in shuffling)
    return True


def _generator_follows(one: Generator, process: _Process, *, has_data: bool) -> bool:
    """Tell whether a generator differs because more or fewer numbers were drawn from it."""
    data = process.data
    is_nowhere = not one.positions
    if is_nowhere and data.accumulation is not None:
        return True
    if is_nowhere and one.name in _DROPOUT and has_data and data.changes_size:
        return True
    if not has_data or one.name not in (RNG_TORCH, RNG_LOADER) or data.is_in_place is not False:
        return False
    # A new epoch draws its order: from a generator that was right, so what comes out is new, or of a later step. And
    # a loader's own generator does nothing else: of the step that the data are of, it is a part of their place.
    is_with_data = data.position is not None and data.position in one.positions
    is_ahead = data.position is not None and data.position > process.pair.should_be
    return (is_with_data and (is_ahead or one.name == RNG_LOADER)) or (is_nowhere and data.begins_epoch)


def _are_fed_otherwise(seam: Seam, found: Sequence[LostState]) -> bool:
    """Tell whether anything that gradients follow from differs, but for buffers that follow from the same."""
    if seam.any_other(None, *(name for name in _FEEDS_GRADIENTS if name != BUFFERS)):
        return True
    return any(one.component in (Component.BUFFERS, Component.ACCUMULATION) for one in found)


def _lost_gradients(pair: Pair, *, is_data_seen: bool) -> LostState:
    """Say that gradients differ by themselves."""
    equal = "weights, data and generators are equal" if is_data_seen else "the data were not seen"
    detail = (
        f"the gradients differ, and nothing that was seen explains it: {equal} "
        "(a loss scale, the state of a loss, or gradients kept from before)"
    )
    return lost(pair, Component.GRADIENTS, Manner.DIFFERENT, detail)


def _whatever_differs(seam: Seam) -> tuple[LostState, ...]:
    """Return what differs without any reading: nothing that differs may go unnamed."""
    pair = next(pair for pair in seam.pairs if pair.differs)
    detail = f"{', '.join(sorted(pair.differs))} differ"
    component = Component.GRADIENTS if pair.differs <= {GRADIENTS, BUFFERS} else Component.OPTIMIZER
    return (lost(pair, component, Manner.DIFFERENT, detail),)
