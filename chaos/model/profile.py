"""What the two references taught about the target."""

from __future__ import annotations

from chaos.model.operations import Address, Phase
from chaos.model.record import Record


class NameRule(Record, kw_only=True):
    """One family of file names: `pattern` (a regular expression, full match on the relative path) gives `key`."""

    pattern: str
    key: str


class SaveProfile(Record, kw_only=True):
    """One save of the reference, as later saves are expected to be.

    `ordinal` counts from 1, `ticks_before` is the number of steps completed when it began, `step` the one it
    acknowledged. `addresses` are the save's watched operations in their order, `publish` the position in it of the
    operation that puts the new checkpoint in place (a kill at a later one should resume from this save).
    `has_several_writers` is true when more than one thread wrote; only then need the order be enforced.
    """

    ordinal: int
    ticks_before: int
    step: int | None = None
    addresses: tuple[Address, ...] = ()
    publish: int = 0
    has_several_writers: bool = False


class TargetProfile(Record, kw_only=True):
    """What the two references taught about the target: all that addresses and plans need.

    `temporaries` are file keys that become a checkpoint or a final file by rename or link; `final_temporaries` those of
    them that become only a final file, so that a change of one begins no save. `has_steps`: ticks or step lines were
    seen. `uses_ticks`: the clock is the probe's ticks; otherwise step lines. `total_steps` counts ticks (or step lines)
    of the whole reference; `last_step` is the largest step number that a step line showed.
    """

    names: tuple[NameRule, ...] = ()
    temporaries: tuple[str, ...] = ()
    final_temporaries: tuple[str, ...] = ()
    has_steps: bool = False
    uses_ticks: bool = False
    prints_acknowledgements: bool = False
    total_steps: int = 0
    last_step: int | None = None
    saves: tuple[SaveProfile, ...] = ()


class PlannablePoint(Record, kw_only=True):
    """A crash point that both references reached: its address in a first life, phase, and position.

    `position` is the number of steps that the reference had completed there. `tears` are the file offsets, multiples of
    4096, strictly inside the write (empty for other calls; at most 64 of them, spread evenly), `start` and `end` the
    offsets between which both references wrote (0 for other calls). `is_published` tells that the save this point is in
    had been put in place before it.
    """

    address: Address
    phase: Phase
    position: int
    tears: tuple[int, ...] = ()
    start: int = 0
    end: int = 0
    is_published: bool = False
