"""Reads what the probe wrote with its ticks: one record of each optimizer step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import HarnessError
from chaos.model import Record, StepRecord

# A training of more steps than this is judged by its first ones, and by what it leaves.
MOST_RECORDS: Final = 20_000
_MOST_LINE_BYTES: Final = 64 << 20


def read_steps(ticks: Path, *, has_all_details: bool) -> tuple[StepRecord, ...]:
    """Return the records in a life's file of ticks, in the order of the steps; none of a life without a probe.

    Details are kept where a reference needs them for lives that resume anywhere (`has_all_details`), else only of the
    first record of each rank and optimizer: that is where a life resumed. A line that cannot be read is left out: the
    life was ended in it, or something else of the target wrote there.
    """
    decoder = msgspec.json.Decoder(StepRecord)
    records: list[StepRecord] = []
    seen: set[tuple[int, str]] = set()
    for text in _texts(ticks):
        if len(records) == MOST_RECORDS:
            break
        try:
            record = decoder.decode(text)
        except msgspec.DecodeError:
            continue
        whose = (record.rank, record.optimizer)
        if whose in seen and record.details and not has_all_details:
            record = msgspec.structs.replace(record, details={})
        seen.add(whose)
        records.append(record)
    return tuple(records)


class KnownSteps(Record, kw_only=True):
    """The records of the reference's steps, and the components that vary between uninterrupted runs."""

    records: tuple[StepRecord, ...]
    unsteady: tuple[str, ...]


def write_known_steps(path: Path, known: KnownSteps) -> None:
    """Leave the reference's records where the workers find them; HarnessError where there is no room."""
    try:
        path.write_bytes(msgspec.json.encode(known))
    except OSError as error:
        message = f"the reference's steps cannot be written to {path}: {error.strerror}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or free some space") from error


@lru_cache(maxsize=1)
def read_known_steps(path: Path) -> KnownSteps:
    """Return what `write_known_steps` left; kept, since every trial of a worker asks for the same."""
    return msgspec.json.decode(path.read_bytes(), type=KnownSteps)


def _texts(ticks: Path) -> Iterator[bytes]:
    """Yield the JSON behind each tick that has some."""
    with ticks.open("rb") as file:
        while line := file.readline(_MOST_LINE_BYTES):
            word, _, rest = line.partition(b" ")
            _, _, text = rest.partition(b" ")
            if word == b"tick" and text:
                yield text
