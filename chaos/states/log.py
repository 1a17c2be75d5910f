"""A recording on disk: a folder with `changes.ndjson` (a head, changes in order, an end) and `content.bin`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import HarnessError
from chaos.model import SCHEMA, Record
from chaos.states.changes import Change

CHANGES: Final = "changes.ndjson"
CONTENT: Final = "content.bin"
_AGAIN: Final = "the run that made it was cut off, or its files were changed; record it again"


class StateAt(Record, kw_only=True):
    """A crash state of a recorded life: the one right before operation `index` takes place.

    `index` may be the number of operations: after the last. With `tear_offset` (a file offset strictly inside the write
    that the operation is; SIGKILL tears at multiples of 4096 alone) the write's bytes up to it are there too.
    """

    index: int
    tear_offset: int | None = None


class Head(Record, kw_only=True, tag="head", omit_defaults=True):
    """The first line: `base` is the folder of the recording that this one goes on from, relative to this one's own."""

    schema: int = SCHEMA
    base: str = ""
    state: StateAt | None = None


class End(Record, kw_only=True, tag="end"):
    """The last line of a recording that is whole."""

    num_operations: int


def head_for(folder: Path, base: tuple[Path, StateAt] | None) -> Head:
    """Return the head of a recording in `folder` that goes on from a state of another one."""
    if base is None:
        return Head()
    return Head(base=os.path.relpath(os.path.realpath(base[0]), os.path.realpath(folder)), state=base[1])


def read_changes(folder: Path) -> tuple[Head, tuple[Change, ...], End]:
    """Read a whole recording's lines; HarnessError where it is cut off or damaged."""
    decoder = msgspec.json.Decoder(Head | Change | End)
    try:
        with (folder / CHANGES).open("rb") as file:
            records = [decoder.decode(line) for line in file]
    except (OSError, msgspec.DecodeError) as error:
        raise HarnessError(f"the recording in {folder} cannot be read: {error}", hint=_AGAIN) from error
    if len(records) < 2 or not isinstance(records[0], Head) or not isinstance(records[-1], End):  # noqa: PLR2004 - both
        raise HarnessError(f"the recording in {folder} is not whole", hint=_AGAIN)
    head, *changes, end = records
    return head, tuple(changes), end
