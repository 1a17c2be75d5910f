"""At which step of the reference a life went on: each component of its first records votes for the steps it is of.

Weights weigh most; a digest that is found at many steps says little; what is as at the reference's first step may just
never have been restored, and says little too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.diagnosis.sketches import nearest
from chaos.diagnosis.streams import Known, Stream, Track
from chaos.diagnosis.tensors import share_recognized
from chaos.model import StepRecord
from chaos.model.steps import BUFFERS, CARRIED, DATA, GRADIENTS, GROUP_PREFIX, STATE_PREFIX, WEIGHTS

_WEIGHTS, _GRADIENTS, _BUFFERS, _DATA, _GENERATOR, _GROUP, _STATE = 8.0, 4.0, 2.0, 1.5, 1.5, 1.0, 6.0
_MOST_FOR_A_STATE_KEY = 3.0
_RECOGNIZED = 6.0  # weights that are the reference's in part, or rounded
_LEAST_RECOGNIZED = 0.3  # the share of tensors below which this is chance
_AS_AT_START = 0.1
_EXPECTED = 8.0
_EVIDENCE = 1.0  # below this, nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """How many steps of the reference each stream had done when a life began; `is_guess`: only a hint says so."""

    updates: Mapping[Stream, int]
    steps: int
    is_guess: bool = False


def align(life: Track, reference: Known, expected: int | None) -> Alignment | None:
    """Return where in the reference a life went on (None: nothing in it is like the reference).

    The streams of a rank step in a fixed order, so there is one place for all of them: the votes of all are counted
    together. `expected` decides between places that have some evidence each, and where there is no other.
    """
    places = _candidates(life, reference.track)
    votes = {stream: _votes(records, reference, stream) for stream, records in _common(life, reference.track)}
    scores = {place: _score(place, votes, reference.track) for place in places}
    hinted = [place for place in places if expected is not None and _is_of(reference.track, place, expected)]
    for place in hinted:
        scores[place] += _EXPECTED if scores[place] >= _EVIDENCE else 0
    best = max(scores, key=lambda place: (scores[place], place in hinted, -place), default=None)
    if best is not None and scores[best] >= _EVIDENCE:
        return _aligned(reference.track, best)
    guess = next(iter(hinted), None)
    if guess is None:
        guess = _by_nearness(life, reference.track)
    if guess is None and best is not None and scores[best] > 0:
        guess = best
    return None if guess is None else _aligned(reference.track, guess, is_guess=True)


def _aligned(track: Track, place: int, *, is_guess: bool = False) -> Alignment:
    """Return the alignment at a place."""
    updates = {stream: _updates(track, stream, place) for stream in track.streams}
    return Alignment(updates=updates, steps=updates[track.main], is_guess=is_guess)


def _updates(track: Track, stream: Stream, place: int) -> int:
    """Return how many steps a stream had done at a place in its rank."""
    return bisect_left(track.places[stream], place)


def _candidates(life: Track, track: Track) -> tuple[int, ...]:
    """Return the places in the reference at which the optimizer steps that steps first in the life."""
    rank = min((rank for rank in life.ranks if rank in track.ranks), default=None)
    if rank is None:
        return ()
    return track.places.get(life.ranks[rank][0], ())


def _common(life: Track, track: Track) -> list[tuple[Stream, tuple[StepRecord, ...]]]:
    """Return the life's streams that the reference has too."""
    return [(stream, records) for stream, records in life.streams.items() if stream in track.streams]


def _is_of(track: Track, place: int, expected: int) -> bool:
    """Tell whether a number of steps, of the main stream's or of all, is that at a place."""
    total = sum(min(place, len(order)) for order in track.ranks.values())
    return expected in (_updates(track, track.main, place), total)


def _score(place: int, votes: Mapping[Stream, Mapping[int, float]], track: Track) -> float:
    """Return what all streams say of a place."""
    return sum(given.get(_updates(track, stream, place), 0.0) for stream, given in votes.items())


def _votes(records: Sequence[StepRecord], reference: Known, stream: Stream) -> dict[int, float]:
    """Return what a stream's first digested record (or its first one) says of how many steps had been done."""
    at = next((number for number, record in enumerate(records) if record.is_digested), 0)
    record = records[at]
    num_keys = sum(name.startswith(STATE_PREFIX) for name in record.components)
    votes: dict[int, float] = {}
    for name, digest in record.components.items():
        positions = reference.where(stream, name, digest)
        weight = _weight(name, num_keys) * _rarity(len(positions), _total(reference, stream, name))
        for position in positions:
            _add(votes, position - at, weight)
    if not reference.where(stream, WEIGHTS, record.components.get(WEIGHTS)):
        for position in _recognized(record, reference.track.streams[stream]):
            _add(votes, position - at, _RECOGNIZED)
    return votes


def _add(votes: dict[int, float], updates: int, weight: float) -> None:
    """Count a vote; one for the start counts little."""
    if updates >= 0:
        votes[updates] = votes.get(updates, 0.0) + weight * (_AS_AT_START if updates == 0 else 1)


def _total(reference: Known, stream: Stream, name: str) -> int:
    """Return how many records of a stream have a component."""
    return sum(map(len, reference.found[stream].get(name, {}).values()))


def _rarity(matches: int, total: int) -> float:
    """Return how much a match says: 1 where it is the only one, 0 where every step matches."""
    if matches == 0 or (matches == total and total > 1):
        return 0.0
    return (1 - (matches - 1) / total) / matches


def _weight(name: str, num_keys: int) -> float:
    """Return how much a component's vote weighs."""
    if name.startswith(STATE_PREFIX):
        return min(_MOST_FOR_A_STATE_KEY, _STATE / num_keys)
    if name.startswith(GROUP_PREFIX):
        return _GROUP
    own = {WEIGHTS: _WEIGHTS, GRADIENTS: _GRADIENTS, BUFFERS: _BUFFERS, DATA: _DATA, CARRIED: 0.0}
    return own.get(name, _GENERATOR)


def _recognized(record: StepRecord, records: Sequence[StepRecord]) -> list[int]:
    """Return the positions whose weights, tensor by tensor, are most like a record's, rounded ones too."""
    own = record.details.get(WEIGHTS, {})
    shares = {
        position: share_recognized(own, other.details[WEIGHTS])
        for position, other in enumerate(records)
        if own and WEIGHTS in other.details
    }
    most = max(shares.values(), default=0.0)
    if most < _LEAST_RECOGNIZED or (len(shares) > 1 and most == min(shares.values())):
        return []
    return [position for position, share in shares.items() if share == most]


def _by_nearness(life: Track, track: Track) -> int | None:
    """Return the place whose weights are nearest to the life's first ones."""
    for stream, records in _common(life, track):
        position = nearest(records[0].sketch, [record.sketch for record in track.streams[stream]])
        if position is not None:
            return track.places[stream][position]
    return None
