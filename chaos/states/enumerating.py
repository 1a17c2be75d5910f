"""Every crash point of a recorded life, with the state that a kill there leaves and what the life had shown by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from chaos.address import Located, Locator
from chaos.errors import HarnessError
from chaos.model import FoundState, Operation, OperationKind, Record, Target, TargetProfile
from chaos.states.recording import Recording

_FOUND: Final = "states.ndjson"


class _Place(Record, kw_only=True):
    """Where an operation is, and what a watcher has counted when it is struck there."""

    located: Located
    num_acknowledged: int
    steps: int
    first_step: int | None
    last_step: int | None
    saves: int


def enumerate_states(
    recording: Recording,
    log: Sequence[Operation],
    target: Target,
    profile: TargetProfile,
    *,
    is_first_life: bool,
    has_all_tears: bool = False,
) -> Iterator[FoundState]:
    """Yield the crash points of the life whose operations are `log`: before each with an address, and inside writes.

    What has no address (logs and the like) is no crash point of its own, though the states hold what it wrote.
    """
    places = list(_places(log, target, profile, is_first_life=is_first_life))
    for walked in recording.walk(has_all_tears=has_all_tears):
        index = walked.state.index
        if index >= len(places):
            continue  # after the end there is nothing to kill
        place = places[index]
        address = place.located.address
        if address is not None:
            yield FoundState(
                index=index,
                tear_offset=walked.state.tear_offset,
                digest=walked.digest,
                address=address,
                phase=place.located.phase,
                num_acknowledged=place.num_acknowledged,
                steps=place.steps,
                first_step=place.first_step,
                last_step=place.last_step,
                saves=place.saves,
                is_change=log[index].kind is OperationKind.FILE,
            )


def _places(
    log: Sequence[Operation], target: Target, profile: TargetProfile, *, is_first_life: bool
) -> Iterator[_Place]:
    """Yield each operation's place, counted as a life that is struck there counts."""
    locator = Locator(target, profile, is_first_life=is_first_life)
    num_acknowledged = 0
    for operation in log:
        located = locator.locate(operation)
        said = located.acknowledges
        # What is struck is not printed any more; but that the thread came to it shows that it had gone on.
        shown = num_acknowledged + (said is not None and not said.is_printed)
        yield _Place(
            located=located,
            num_acknowledged=shown,
            steps=locator.steps,
            first_step=locator.first_step,
            last_step=locator.last_step,
            saves=locator.saves,
        )
        num_acknowledged += said is not None


def write_found(folder: Path, found: Iterable[FoundState]) -> None:
    """Leave the crash states of a recording in its folder; HarnessError where there is no room."""
    encoder = msgspec.json.Encoder()
    try:
        (folder / _FOUND).write_bytes(b"".join(encoder.encode(state) + b"\n" for state in found))
    except OSError as error:
        message = f"the crash states in {folder} cannot be written: {error.strerror}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error


def read_found(folder: Path) -> tuple[FoundState, ...]:
    """Read the crash states of a recording."""
    decoder = msgspec.json.Decoder(FoundState)
    with (folder / _FOUND).open("rb") as lines:
        return tuple(decoder.decode(line) for line in lines)
