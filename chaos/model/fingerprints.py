"""What became of a diverged lineage that was run again with parts of its checkpoints reset."""

from __future__ import annotations

import msgspec

from chaos.model.record import Record


class ResetPart(Record, kw_only=True):
    """What was done to the whole checkpoints that the last killed life left, before the next one began.

    `part` is what was reset in each of them (empty: nothing, this is the control), `changed` how many of their values
    are others since (0: they were zero already), `problem` why it could not be done. `parts` are all there are.
    """

    part: str = ""
    parts: tuple[str, ...] = ()
    changed: int = 0
    problem: str = ""


class Fingerprint(Record, kw_only=True):
    """Which parts of the checkpoint the resumed run of trial `trial` used: those whose reset changed its end.

    `unused` are those whose reset changed nothing: state that the checkpoint holds, and that the resume loses.
    `unknown` says of others why their reset showed nothing; `untried` counts those that were left.
    """

    trial: int
    unused: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    unknown: dict[str, str] = msgspec.field(default_factory=dict)
    untried: int = 0
