"""What the supervisor and the examiner's child say to each other: one JSON object a line, in turns."""

from __future__ import annotations

from enum import StrEnum

from chaos.checkpoints.examine import Examination
from chaos.model import CheckpointDifference, Record, TensorDifference


class Task(StrEnum):
    """What the child is asked to do."""

    EXAMINE = "examine"
    COMPARE = "compare"
    DIFF = "diff"
    FLIP_BIT = "flip_bit"
    PARTS = "parts"
    RESET = "reset"


class Request(Record, kw_only=True):
    """One task; paths are bytes (a name need not be Unicode); `deadline_s` bounds it in the child too.

    With `variant` the bit to flip is one that rots, else one that is planted. `ignored` are globs of leaf names that a
    diff leaves out, `limit` how many leaves of a component it shows. `part` is what is to be reset.
    """

    task: Task
    path: bytes
    other: bytes = b""
    without: tuple[str, ...] = ()
    variant: int | None = None
    part: str = ""
    ignored: tuple[str, ...] = ()
    limit: int = 0
    deadline_s: float


class Reply(Record, kw_only=True):
    """The answer to one request: the field of its task, or `usage_error` with its hint, or `failure`."""

    examination: Examination | None = None
    difference: TensorDifference | None = None
    diff: CheckpointDifference | None = None
    name: str | None = None
    parts: tuple[str, ...] | None = None
    changed: int | None = None
    usage_error: str | None = None
    hint: str = ""
    failure: str | None = None
