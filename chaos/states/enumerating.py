"""Every crash point of a recorded life, with the state that a kill there leaves and what the life had shown by then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from chaos.address import Located, Locator
from chaos.errors import HarnessError
from chaos.model import Address, FoundState, Operation, OperationKind, Record, Target, TargetProfile
from chaos.roles import FileNames, anywhere, compile_globs
from chaos.states.recording import Recording

_FOUND: Final = "states.ndjson"


class _Place(Record, kw_only=True):
    """Where an operation is, and what a watcher has counted when it is struck there."""

    located: Located
    address: Address | None
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
    """Yield the crash points of the life whose operations are `log`: before each of them, and inside writes.

    Files that belong to no checkpoint are crash points here, too, unless the target's `ignore` names them: nobody knows
    what a resume reads.
    """
    places = list(_places(log, target, profile, is_first_life=is_first_life))
    for walked in recording.walk(has_all_tears=has_all_tears):
        index = walked.state.index
        if index >= len(places):
            continue  # after the end there is nothing to kill
        place = places[index]
        if place.address is not None:
            yield FoundState(
                index=index,
                tear_offset=walked.state.tear_offset,
                digest=walked.digest,
                address=place.address,
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
    others = _Others(target, profile)
    num_acknowledged = 0
    for operation in log:
        located = locator.locate(operation)
        save = locator.saves if locator.is_in_save else 0
        address = located.address or others.address(operation, save=save, tick=0 if save else locator.steps)
        said = located.acknowledges
        # What is struck is not printed any more; but that the thread came to it shows that it had gone on.
        shown = num_acknowledged + (said is not None and not said.is_printed)
        yield _Place(
            located=located,
            address=address,
            num_acknowledged=shown,
            steps=locator.steps,
            first_step=locator.first_step,
            last_step=locator.last_step,
            saves=locator.saves,
        )
        num_acknowledged += said is not None


class _Others:
    """Gives addresses to operations on files that a campaign of drawn kills leaves alone."""

    def __init__(self, target: Target, profile: TargetProfile) -> None:
        """Name files as a locator does."""
        self._names = FileNames(target, profile)
        self._ignored = compile_globs(tuple(anywhere(glob) for glob in target.ignore))
        self._counts: Counter[tuple[int, int, str, str]] = Counter()

    def address(self, operation: Operation, *, save: int, tick: int) -> Address | None:
        """Return the place of an operation on a file in the folder; None for one outside, ignored, or without a name.

        The incarnation is -1: such a file's are not counted.
        """
        path = operation.new_path or operation.path
        is_inside = operation.kind is OperationKind.FILE and not path.startswith(("/", "#"))
        if not is_inside or self._ignored.fullmatch(path):
            return None
        key = self._names.name(path).key
        self._counts[save, tick, key, operation.call] += 1
        occurrence = self._counts[save, tick, key, operation.call]
        return Address(save=save, tick=tick, file=key, incarnation=-1, call=operation.call, occurrence=occurrence)


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
