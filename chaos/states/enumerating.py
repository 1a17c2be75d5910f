"""Every crash point of a recorded life, by kinds of fault, with the state that is left there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import HarnessError
from chaos.model import (
    Acknowledgement,
    Enumeration,
    FaultKind,
    FoundState,
    Operation,
    Record,
    Target,
    TargetProfile,
)
from chaos.states.log import StateAt
from chaos.states.losing import losses_of
from chaos.states.places import Place, places_of, state_at
from chaos.states.recording import Recording

FOUND: Final = "states.ndjson"


class Enumerated(Record, kw_only=True):
    """What was enumerated in a recording; at `num_cut` points a loss may leave more states than were taken."""

    states: tuple[FoundState, ...]
    num_cut: int = 0


def enumerate_states(
    recording: Recording,
    log: Sequence[Operation],
    target: Target,
    profile: TargetProfile,
    enumeration: Enumeration,
    *,
    is_first_life: bool,
    acknowledgements: Sequence[Acknowledgement] = (),
    before: Sequence[Acknowledgement] = (),
) -> Enumerated:
    """Return the crash points of the life whose operations are `log`, by kinds of fault.

    `acknowledgements` are the life's own, `before` those of the lives before it. Files that belong to no checkpoint are
    crash points here, too, unless the target's `ignore` names them: nobody knows what a resume reads.
    """
    places = tuple(places_of(log, target, profile, is_first_life=is_first_life))
    found: list[FoundState] = []
    num_cut = 0
    for fault in enumeration.faults:
        match fault:
            case FaultKind.KILL:
                found += _kills(recording, places, has_all_tears=enumeration.has_all_tears)
            case FaultKind.TORN_WRITE:
                found += _torn_writes(recording, places)
            case FaultKind.POWER_LOSS:
                losses = losses_of(recording, places, enumeration, acknowledgements, before)
                found += losses.states
                num_cut += losses.num_cut
            case FaultKind.BIT_FLIP:
                found += _damages(recording, places, enumeration.num_damages)
            case _:
                pass  # errors have no states: lives have to meet them
    return Enumerated(states=tuple(found), num_cut=num_cut)


def _kills(recording: Recording, places: Sequence[Place], *, has_all_tears: bool) -> Iterator[FoundState]:
    """Yield the states of a kill before each operation, and inside writes at page boundaries."""
    for walked in recording.walk(has_all_tears=has_all_tears):
        index = walked.state.index
        if index < len(places) and places[index].address is not None:  # after the end there is nothing to kill
            yield state_at(places[index], index, walked.digest, tear_offset=walked.state.tear_offset)


def _torn_writes(recording: Recording, places: Sequence[Place]) -> Iterator[FoundState]:
    """Yield the states of writes that are torn elsewhere."""
    for index, place in enumerate(places):
        for tear in recording.odd_tears(index) if place.address is not None else ():
            digest = recording.tree_at(StateAt(index=index, tear_offset=tear)).state_digest()
            yield state_at(place, index, digest, fault=FaultKind.TORN_WRITE, tear_offset=tear)


def _damages(recording: Recording, places: Sequence[Place], num_damages: int) -> Iterator[FoundState]:
    """Yield the first point after each acknowledged save, as often as its checkpoint is to be damaged."""
    seen = 0
    for index, place in enumerate(places):
        if place.num_acknowledged > seen and place.address is not None:
            seen = place.num_acknowledged
            digest = recording.tree_at(StateAt(index=index)).state_digest()
            for variant in range(num_damages):
                yield state_at(place, index, f"{digest}:{variant}", fault=FaultKind.BIT_FLIP, variant=variant)


def write_found(folder: Path, found: Enumerated) -> None:
    """Leave what was enumerated in a recording's folder; HarnessError where there is no room."""
    encoder = msgspec.json.Encoder()
    lines = (str(found.num_cut).encode(), *(encoder.encode(state) for state in found.states))
    try:
        (folder / FOUND).write_bytes(b"".join(line + b"\n" for line in lines))
    except OSError as error:
        message = f"the crash states in {folder} cannot be written: {error.strerror}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error


def read_found(folder: Path) -> Enumerated:
    """Read what was enumerated in a recording."""
    decoder = msgspec.json.Decoder(FoundState)
    with (folder / FOUND).open("rb") as lines:
        num_cut = int(next(lines))
        return Enumerated(states=tuple(decoder.decode(line) for line in lines), num_cut=num_cut)
